#include <stdlib.h>

#include "core/buf.h"
#include "core/text.h"
#include "symbolize/command/addnames.h"

#define MISSING_MAX 5 /* modules that are named */

struct missing {
	const struct module *module; /* NULL: outside of all */
	size_t count;
};

/* Most first, then by address. */
static int by_count(const void *a, const void *b)
{
	const struct missing *x = a, *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	if (!x->module || !y->module)
		return !x->module - !y->module;
	return x->module->base < y->module->base ? -1 : 1;
}

/* Queries are by address, so those of one module follow each other. Returns how many groups. */
static size_t find_missing(const struct addnames *work, struct missing *missing)
{
	size_t count = 1;

	missing[0] = (struct missing){0};
	for (size_t i = 0; i < work->count; i++) {
		const struct symbol_query *query = &work->queries[i];

		if (query->found.count)
			continue;
		if (!query->module)
			missing[0].count++;
		else if (missing[count - 1].module == query->module)
			missing[count - 1].count++;
		else
			missing[count++] = (struct missing){query->module, 1};
	}
	qsort(missing, count, sizeof(*missing), by_count);
	return missing[count - 1].count ? count : count - 1;
}

static void print_place(const struct module *module, FILE *to)
{
	struct buf text;

	buf_init(&text);
	if (!buf_printf(&text, "in %s", path_base(module->path)))
		fputs(text_harmless(text.data), to);
	buf_release(&text);
}

static void print_missing(const struct missing *missing, size_t count, FILE *to)
{
	size_t shown = count < MISSING_MAX ? count : MISSING_MAX, rest = 0;

	for (size_t i = 0; i < shown; i++) {
		const struct module *module = missing[i].module;

		fprintf(to, "%s %zu ", i ? "," : "; no names:", missing[i].count);
		if (module)
			print_place(module, to);
		else
			fprintf(to, "outside all modules");
	}
	for (size_t i = shown; i < count; i++)
		rest += missing[i].count;
	if (rest)
		fprintf(to, ", %zu in %zu more", rest, count - shown);
}

static void print_bad_lines(const struct addnames *work, FILE *to)
{
	struct err first = work->first_bad;

	if (!work->bad_lines)
		return;
	fprintf(to, "; %d bad line%s passed over, the first is %s", work->bad_lines,
		work->bad_lines > 1 ? "s" : "", text_harmless(first.place));
	if (first.detail[0])
		fprintf(to, " (%s)", text_harmless(first.detail));
}

size_t addnames_named(const struct addnames *work)
{
	size_t named = 0;

	for (size_t i = 0; i < work->count; i++)
		named += work->queries[i].found.count > 0;
	return named;
}

bool addnames_lacks_builds(const struct addnames *work)
{
	return !work->is_ours && work->modules.count;
}

void addnames_summary(const struct addnames *work, FILE *to, const char *program)
{
	struct missing *missing = malloc((work->count + 1) * sizeof(*missing));
	const char *trouble = symbolizer_trouble(work->symbolizer);
	size_t named = addnames_named(work), groups = missing ? find_missing(work, missing) : 0;

	if (symbol_console_stopped() && named < work->count)
		fprintf(to, "%s: stopped looking for names; %zu addresses have none\n", program,
			work->count - named);
	fprintf(to, "%s: %zu of %zu addresses named", program, named, work->count);
	if (groups)
		print_missing(missing, groups, to);
	if (trouble)
		fprintf(to, "; %s", trouble);
	if (addnames_lacks_builds(work))
		fprintf(to, "; " LACKS_BUILDS);
	print_bad_lines(work, to);
	fprintf(to, "\n");
	free(missing);
}
