#include "snapshot/command/ps_table.h"

#include <inttypes.h>

#include "core/buf.h"
#include "core/text.h"

static void number(char *text, size_t size, int64_t value)
{
	if (value < 0)
		snprintf(text, size, "?");
	else
		snprintf(text, size, "%" PRId64, value);
}

static int print_row(FILE *to, const struct ps_row *row)
{
	char bits[24], heaps[24];
	struct buf name;
	int rc;

	buf_init(&name);
	rc = buf_add_text(&name, row->name);
	if (!rc) {
		number(bits, sizeof(bits), row->bits ? (int64_t)row->bits : -1);
		number(heaps, sizeof(heaps), row->heap_count);
		fprintf(to, "%10" PRIu32 " %4s %5s  %-8s  %s\n", row->pid, bits, heaps,
			row->stacks ? row->stacks : "?", name.data ? text_harmless(name.data) : "");
	}
	buf_release(&name);
	return rc;
}

int ps_print(FILE *to, const struct ps_row *rows, size_t count)
{
	int rc = 0;

	fprintf(to, "%10s %4s %5s  %-8s  %s\n", "pid", "bits", "heaps", "stacks", "name");
	for (size_t i = 0; !rc && i < count; i++)
		rc = print_row(to, &rows[i]);
	return rc;
}

void ps_print_missing(FILE *to, size_t closed_count, size_t ended_count)
{
	if (closed_count)
		fprintf(to, "hsnap: no right to look at %zu of them (?)\n", closed_count);
	if (ended_count)
		fprintf(to, "hsnap: %zu more ended meanwhile\n", ended_count);
}
