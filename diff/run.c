#include "diff/run.h"

#include <stdbool.h>
#include <string.h>

#include "core/buf.h"
#include "core/os.h"
#include "core/out.h"
#include "core/source.h"
#include "core/text.h"
#include "diff/match.h"
#include "diff/naming.h"
#include "diff/open_comparison.h"
#include "diff/report.h"
#include "diff/sum.h"
#include "diff/view.h"

#define DUMPS_MAX 2

enum { DECIMAL = 1, HEX, INPUT_BASE, OUTPUT, FORCE, NO_SYMBOLS, HELP, VERSION, IGNORED, LOG };

const struct opt hdiff_options[] = {
	{DECIMAL, "d", "decimal", NULL, "decimal numbers (the default)"},
	{HEX, NULL, "hex", NULL, "hexadecimal numbers"},
	{INPUT_BASE, NULL, "input-base", "BASE",
		"hex or decimal: the numbers of a comparison that is read"},
	{OUTPUT, "f", NULL, "FILE", "write to FILE: all of it or nothing"},
	{NO_SYMBOLS, NULL, "no-symbols", NULL, "modules and offsets only, no names"},
	{FORCE, NULL, "force", NULL, "use a dump that is cut short as far as it goes"},
	{HELP, "h", "help", NULL, "print this and end"},
	{VERSION, NULL, "version", NULL, "print the version and end"},
	{HELP, "?", NULL, NULL, NULL},
	{IGNORED, "l", NULL, NULL, NULL}, /* lines of source are shown anyway */
	{IGNORED, "v", NULL, NULL, NULL},
	{LOG, "v", NULL, "FILE", NULL}, /* as -v:FILE only */
	{0},
};

/* What was asked for. All zero is the default. */
struct request {
	struct report_style style;
	bool force, no_symbols, help, version;
	unsigned input_base; /* 16, 10, or 0: to be found out */
	const char *output;
	const char *paths[DUMPS_MAX];
	size_t path_count;
};

static int argument(struct request *request, const char *path, struct err *err)
{
	if (request->path_count == DUMPS_MAX)
		return err_set(err, ERR_USAGE, path, "two dumps at most");
	request->paths[request->path_count++] = path;
	return 0;
}

static int input_base(struct request *request, const char *value, struct err *err)
{
	if (strcmp(value, "hex") != 0 && strcmp(value, "decimal") != 0)
		return err_set(err, ERR_USAGE, "--input-base", "it takes hex or decimal");
	request->input_base = *value == 'h' ? 16 : 10;
	return 0;
}

static int parse(struct request *request, int argc, char **argv, struct err *err)
{
	struct opt_state state;
	int id, rc = 0;

	opt_init(&state, hdiff_options, argc, argv);
	while (!rc && !request->help && !request->version && (id = opt_next(&state, err))) {
		switch (id) {
		case DECIMAL: request->style.hex = false; break;
		case HEX: request->style.hex = true; break;
		case INPUT_BASE: rc = input_base(request, state.value, err); break;
		case OUTPUT: request->output = state.value; break;
		case FORCE: request->force = true; break;
		case NO_SYMBOLS: request->no_symbols = true; break;
		case HELP: request->help = true; break;
		case VERSION: request->version = true; break;
		case IGNORED: break;
		case LOG:
			if (argv[state.at - 1][2] != ':')
				rc = err_set(err, ERR_USAGE, argv[state.at - 1],
					"there is no such option");
			break;
		case OPT_ARGUMENT: rc = argument(request, state.value, err); break;
		default: rc = id;
		}
	}
	return rc;
}

static void usage(FILE *to)
{
	fprintf(to, "usage: hdiff [options] OLD [NEW]\n"
		    "Say which stacks grew from one heap dump to the next.\n\n");
	opt_help(hdiff_options, to);
}

/* One line, whatever the words hold. */
static void say_line(FILE *say, const struct buf *words)
{
	fprintf(say, "hdiff: %s\n", text_harmless(words->data));
	fflush(say);
}

/* What the dump lacks. */
static int say_warnings(const struct sums *sums, FILE *say)
{
	struct buf words;
	int rc = 0;

	buf_init(&words);
	for (size_t i = 0; !rc && i < sums->warning_count && i <= WARNINGS_MAX; i++) {
		buf_clear(&words);
		rc = buf_printf(&words, "%s: warning: ", sums->path);
		if (!rc && i < WARNINGS_MAX)
			rc = buf_add_text(&words, sums->warnings[i]);
		else if (!rc)
			rc = buf_printf(&words, "and %zu more", sums->warning_count - WARNINGS_MAX);
		if (!rc)
			say_line(say, &words);
	}
	buf_release(&words);
	return rc;
}

/* Says which frames have no names: not a failure, but the reader may know a remedy. */
static int say_missing(const struct naming *naming, FILE *say)
{
	struct buf words;
	int rc;

	buf_init(&words);
	rc = naming_missing(naming, &words);
	if (!rc && words.len)
		say_line(say, &words);
	buf_release(&words);
	return rc;
}

static int report(const struct request *request, const struct comparison *comparison, FILE *say,
	struct err *err)
{
	struct naming naming;
	struct view view = {0};
	struct out out;
	int rc = naming_make(&naming, comparison, !request->no_symbols, err);

	if (!rc && view_make(&view, comparison, &naming))
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	if (!rc)
		rc = naming_find(&naming, view.rows, view.shown_count, err);
	if (!rc)
		rc = out_open(&out, request->output, err);
	if (!rc) {
		report_text(&out, &view, &request->style);
		rc = out_commit(&out, err);
	}
	if (!rc && !request->no_symbols && say_missing(&naming, say))
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	view_release(&view);
	naming_release(&naming);
	return rc;
}

static int say_cut(const struct err *err, FILE *say)
{
	struct buf words;
	int rc;

	buf_init(&words);
	rc = buf_printf(&words, "warning: %s: is cut short (%s); it is used as far as it goes",
		err->place, err->detail);
	if (!rc)
		say_line(say, &words);
	buf_release(&words);
	return rc;
}

/* Reads one dump; one that is cut short is used when that was asked for. */
static int read_dump(
	const struct request *request, size_t number, struct sums *sums, FILE *say, struct err *err)
{
	int rc = sums_read(sums, request->paths[number], err);

	if (rc == -ERR_CUT && request->force)
		rc = say_cut(err, say) ? err_set(err, ERR_NOMEM, NULL, NULL) : 0;
	if (!rc && say_warnings(sums, say))
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	return rc;
}

/* The report must not take the place of what it is made from. */
static int check_output(const struct request *request, struct err *err)
{
	for (size_t i = 0; request->output && i < request->path_count; i++) {
		const char *path = request->paths[i];

		if (strcmp(path, "-") != 0 && !os_is_special(path) &&
			os_same_file(request->output, path))
			return err_set(err, ERR_USAGE, request->output, "it is one of the dumps");
	}
	return 0;
}

/* A printed comparison is all there is to show: no dump goes with it. */
static int find_comparison(const struct request *request, struct source **source, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && !*source && i < request->path_count; i++)
		rc = comparison_open(source, request->paths[i], err);
	if (*source && request->path_count > 1)
		rc = err_set(err, ERR_USAGE, source_name(*source), "a comparison is read alone");
	return rc;
}

/* Reads the comparison at source, or makes one of the dumps. */
static int get_comparison(const struct request *request, struct source *source, struct sums *dumps,
	struct comparison *comparison, FILE *say, struct err *err)
{
	struct match_request match = {.no_symbols = request->no_symbols};
	int rc = 0;

	if (source) {
		rc = comparison_read_aloud(comparison, source, request->input_base, say, err);
		if (rc == -ERR_CUT && request->force)
			rc = say_cut(err, say) ? err_set(err, ERR_NOMEM, NULL, NULL) : 0;
		return rc;
	}
	for (size_t i = 0; !rc && i < request->path_count; i++)
		rc = read_dump(request, i, &dumps[i], say, err);
	if (!rc && comparison_make(comparison, dumps, request->path_count, &match))
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	return rc;
}

static int compare(const struct request *request, FILE *say, struct err *err)
{
	struct comparison comparison = {0};
	struct source *source = NULL;
	struct sums dumps[DUMPS_MAX];
	int rc = check_output(request, err);

	for (size_t i = 0; i < request->path_count; i++)
		sums_init(&dumps[i]);
	if (!rc)
		rc = find_comparison(request, &source, err);
	if (!rc)
		rc = get_comparison(request, source, dumps, &comparison, say, err);
	if (!rc)
		rc = report(request, &comparison, say, err);
	comparison_release(&comparison);
	source_close(source);
	for (size_t i = 0; i < request->path_count; i++)
		sums_release(&dumps[i]);
	return rc;
}

int hdiff_run(int argc, char **argv, FILE *say)
{
	struct request request = {0};
	struct err err = {0};
	int rc = parse(&request, argc, argv, &err);

	if (!rc && request.help) {
		usage(stdout);
	} else if (!rc && request.version) {
		printf("hdiff %s\n", HSNAP_VERSION);
	} else if (!rc && !request.path_count) {
		usage(say);
		return 2;
	} else if (!rc) {
		rc = compare(&request, say, &err);
	}
	if (!rc && fflush(stdout))
		rc = err_set(&err, ERR_WRITE, "standard output", NULL);
	if (rc)
		err_print(say, "hdiff", &err);
	return rc ? 2 : 0;
}
