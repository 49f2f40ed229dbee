/* Compared dumps, and a view of the comparison. A test may modify the view before printing it. */
#ifndef TESTS_UNIT_TEST_REPORT_H
#define TESTS_UNIT_TEST_REPORT_H

#include "core/io/out.h"
#include "diff/report/report.h"
#include "tests/unit/test_diff.h"

struct made {
	struct dump_sums dumps[2];
	size_t dump_count;
	struct comparison comparison;
	struct view view;
};

/* Starts a new, empty comparison, which replaces the previous one. */
static inline struct made *made_new(void)
{
	static struct made made;

	made.view.groups = NULL; /* the test owns the groups */
	if (made.view.rows)
		view_release(&made.view);
	if (made.comparison.dumps)
		comparison_release(&made.comparison);
	for (size_t i = 0; i < made.dump_count; i++)
		sums_release(&made.dumps[i]);
	made = (struct made){0};
	return &made;
}

static inline void made_view(struct made *made)
{
	view_make(&made->view, &made->comparison, made->comparison.dumps != NULL);
	naming_find(&made->view.naming, made->view.rows, made->view.row_count);
}

/* Compares old.txt with new.txt, or reads only new.txt. Uses the names in the dumps. */
static inline struct made *made_read(size_t dump_count)
{
	struct match_request request = {.mode = MATCH_AUTO};
	struct made *made = made_new();

	made->dump_count = dump_count;
	for (size_t i = 0; i < dump_count; i++) {
		assert_int_equal(
			read_sums(&made->dumps[i], i + 1 < dump_count ? "old.txt" : "new.txt"), 0);
	}
	comparison_make(&made->comparison, made->dumps, dump_count, &request);
	made_view(made);
	return made;
}

/* Returns a report, valid until the next call. */
static inline char *made_report(const struct made *made, const char *name, bool hex)
{
	static char *text;
	const struct report report = {.views = &made->view, .view_count = 1, .style = {.hex = hex}};
	const struct report_format *format = report_formats;
	struct out out;

	while (format->name && strcmp(format->name, name) != 0)
		format++;
	assert_non_null(format->name);
	assert_int_equal(out_open(&out, "out.txt", NULL), 0);
	format->write(&out, &report);
	assert_int_equal(out_commit(&out, NULL), 0);
	free(text);
	return text = read_text("out.txt");
}

/* Returns `text` with each ' replaced by ". The result is valid until the next call. */
static inline char *quoted(const char *text)
{
	static char space[4000];
	size_t i;

	assert_true(strlen(text) < sizeof(space));
	for (i = 0; text[i]; i++)
		space[i] = text[i] == '\'' ? '"' : text[i];
	space[i] = '\0';
	return space;
}

static inline void has(const char *text, const char *part)
{
	if (!strstr(text, quoted(part)))
		fail_msg("no %s in:\n%s", quoted(part), text);
}

/* Adds a name for the innermost frame of made stack `number`. The name must be valid inside a
 * note's quotes. */
static inline void write_function(struct maker *maker, unsigned number, const char *name)
{
	put(maker, "// hsnap: name addr=%" PRIX64 " function=\"%s\" offset=2F",
		APP_BASE + maker->slide + 0x1000 + 0x10 * number, name);
}

/* Stack 1 grows by 500 bytes in one block, and stack 2 by 300 bytes in three. Stack 3 shrinks by
 * 100 bytes in one block. Stack 4's 64 bytes in 2 blocks do not change. Each block has 8 bytes of
 * overhead. */
static inline void write_three(void)
{
	EACH_DUMP (maker, is_new, .is_ours = true, .slide = is_new ? 0x700000 : 0) {
		if (!is_new)
			put_block(&maker, 100, 8, "A3", 3);
		for (unsigned i = 0; i < 2; i++)
			put_block(&maker, 32, 8, is_new ? "B4" : "A4", 4);
		if (!is_new)
			continue;
		write_function(&maker, 1, "leak");
		put_block(&maker, 500, 8, "B1", 1);
		for (unsigned i = 0; i < 3; i++)
			put_block(&maker, 100, 8, "B2", 2);
	}
}

static inline struct made *made_three(void)
{
	write_three();
	return made_read(2);
}

static inline struct made *made_grouped(enum view_group group, struct view_group_row groups[2])
{
	struct made *made = made_three();

	made->view.group = group;
	made->view.groups = groups;
	made->view.group_count = 2;
	made->view.shown_count = 1;
	return made;
}

#endif
