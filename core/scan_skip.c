/* Lines that break the rules: told of and passed over, within bounds, or an error. */
#include <inttypes.h>
#include <stdio.h>

#include "core/scanner.h"

#define TEXT_OF_(text) #text
#define TEXT_OF(macro) TEXT_OF_(macro)

static int fill_in(const struct dump_scanner *scanner, struct err *err, enum err_code code,
	uint64_t line, const char *detail)
{
	char place[600];

	snprintf(place, sizeof(place), "%.500s:%" PRIu64, scanner->name, line);
	return err_set(err, code, place, detail ? "%s" : NULL, detail);
}

int scan_fail(struct dump_scanner *scanner, enum err_code code, const char *detail)
{
	return fill_in(scanner, scanner->err, code, scanner->line_number, detail);
}

static int report(struct dump_scanner *scanner, uint64_t line, const char *detail)
{
	struct err why = {0};

	fill_in(scanner, &why, ERR_BAD_LINE, line, detail);
	return scanner->sink.skipped(scanner->sink.ctx, &why);
}

int scan_skip(struct dump_scanner *scanner, const char *detail)
{
	scanner->is_passing = true;
	if (!scanner->sink.skipped)
		return scan_fail(scanner, ERR_BAD_LINE, detail);
	if (scanner->skip_count == DUMP_SKIPS_MAX && !scanner->is_dump)
		return err_set(scanner->err, ERR_NOT_DUMP, scanner->name, NULL);
	if (scanner->skip_count == DUMP_SKIPS_MAX)
		return scan_fail(scanner, ERR_BAD_LINE,
			"too many bad lines (" TEXT_OF(DUMP_SKIPS_MAX) " were passed over)");
	scanner->skip_count++;
	if (scanner->is_dump)
		return report(scanner, scanner->line_number, detail);
	scanner->held[scanner->skip_count - 1] = (struct scan_held){scanner->line_number, detail};
	return 0;
}

int scan_skip_or_cut(struct dump_scanner *scanner, const char *detail)
{
	return scanner->no_newline ? scan_fail(scanner, ERR_CUT, detail) :
				     scan_skip(scanner, detail);
}

int scan_is_dump(struct dump_scanner *scanner)
{
	int rc = 0;

	if (scanner->is_dump)
		return 0;
	scanner->is_dump = true;
	for (size_t i = 0; !rc && i < scanner->skip_count; i++)
		rc = report(scanner, scanner->held[i].line, scanner->held[i].detail);
	return rc;
}
