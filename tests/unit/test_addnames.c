/* hsym: every byte of a dump is passed through, and the new names stand before the end mark. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbolize/addnames.h"

#define MODULES                                                                                    \
	"// Loaded modules: \n//     Base Size Module\n"                                           \
	"//            400000     1000 C:\\none\\a.exe\n"                                          \
	"//\n// Process modules enumerated.\n"
#define STACK "\n10 bytes + 8 at 20000 by BackTrace1\n\t400010\n\t400020\n\t7\n\n"
#define OURS "// hsnap: dump format=1\n" MODULES STACK
#define END "// hsnap: end blocks=1 requested=16 overhead=8\n"
#define NAME_10 "// hsnap: name addr=400010 function=\"f\" offset=1\n"
#define NAME_20 "// hsnap: name addr=400020 function=\"g\" offset=2 file=\"s.c\" line=3\n"

static char dir[300], in_path[340], out_path[340];

static int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "%s/test_addnames.XXXXXX",
		getenv("TMPDIR") ? getenv("TMPDIR") : "build");
	if (!mkdtemp(dir))
		return -1;
	snprintf(in_path, sizeof(in_path), "%s/in", dir);
	snprintf(out_path, sizeof(out_path), "%s/out", dir);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	unlink(in_path);
	unlink(out_path);
	return rmdir(dir);
}

static void write_in(const char *text, size_t len)
{
	FILE *file = fopen(in_path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, len, file), len);
	(void)fclose(file);
}

/* "\n" as "\r\n"; the caller frees it. */
static char *with_crlf(const char *text)
{
	char *copy = malloc(2 * strlen(text) + 1), *to = copy;

	assert_non_null(copy);
	for (; *text; text++) {
		if (*text == '\n')
			*to++ = '\r';
		*to++ = *text;
	}
	*to = '\0';
	return copy;
}

/* As if a backend knew the first two addresses. */
static void name_by_hand(struct addnames *work)
{
	static const struct symbol f = {"f", 1, NULL, 0}, g = {"g", 2, "s.c", 3};

	for (size_t i = 0; i < work->count; i++) {
		struct symbol_query *query = &work->queries[i];

		if (query->found.count)
			continue;
		if (query->addr == 0x400010)
			query->found = (struct symbols){&f, 1};
		if (query->addr == 0x400020)
			query->found = (struct symbols){&g, 1};
	}
}

/* What hsym does; the error of the reading. */
static int add_names(bool accept_cut)
{
	struct addnames work;
	struct input input;
	struct out out;
	struct err err;
	int rc;

	assert_int_equal(input_open(&input, in_path, &err), 0);
	assert_int_equal(addnames_init(&work, &err), 0);
	rc = addnames_read(&work, &input, accept_cut, &err);
	if (!rc) {
		assert_int_equal(addnames_resolve(&work, &err), 0);
		name_by_hand(&work);
		assert_int_equal(input_rewind(&input, &err), 0);
		assert_int_equal(out_open(&out, out_path, &err), 0);
		assert_int_equal(addnames_copy(&work, &input, &out, &err), 0);
		assert_int_equal(out_commit(&out, &err), 0);
	}
	addnames_release(&work);
	input_close(&input);
	return rc;
}

static void expect_bytes(const char *wanted, size_t len)
{
	char *text = malloc(len + 2);
	FILE *file = fopen(out_path, "rb");

	assert_non_null(text);
	assert_non_null(file);
	assert_int_equal(fread(text, 1, len + 2, file), len);
	assert_memory_equal(text, wanted, len);
	(void)fclose(file);
	free(text);
}

static void expect(const char *in, const char *wanted)
{
	write_in(in, strlen(in));
	assert_int_equal(add_names(false), 0);
	expect_bytes(wanted, strlen(wanted));
	write_in(wanted, strlen(wanted)); /* its own output stays as it is */
	assert_int_equal(add_names(false), 0);
	expect_bytes(wanted, strlen(wanted));
}

static void test_names_stand_before_the_end_mark(void **state)
{
	(void)state;
	expect(OURS END, OURS NAME_10 NAME_20 END);
}

static void test_line_ends_are_those_of_the_dump(void **state)
{
	char *in = with_crlf(OURS END), *wanted = with_crlf(OURS NAME_10 NAME_20 END);

	(void)state;
	expect(in, wanted);
	free(in);
	free(wanted);
}

static void test_names_that_are_there_stay(void **state)
{
	static const char mine[] = "// hsnap: name later=1 function=mine addr=400010 offset=000A\n";
	char in[1000], wanted[1000];

	(void)state;
	snprintf(in, sizeof(in), "%s%s%s", OURS, mine, END "// more\n");
	snprintf(wanted, sizeof(wanted), "%s%s%s", OURS, mine, NAME_20 END "// more\n");
	expect(in, wanted);
}

static void test_umdh_logs_get_them_at_the_end(void **state)
{
	(void)state;
	expect(MODULES STACK, MODULES STACK NAME_10 NAME_20);
	expect(MODULES STACK "last words", MODULES STACK "last words\n" NAME_10 NAME_20);
}

static void test_a_cut_dump_is_refused_unless_asked_for(void **state)
{
	static const char cut[] = OURS "10 byt", wanted[] = OURS NAME_10 NAME_20 "10 byt";

	(void)state;
	write_in(cut, strlen(cut));
	unlink(out_path);
	assert_int_equal(add_names(false), -ERR_CUT);
	assert_int_equal(access(out_path, F_OK), -1);
	assert_int_equal(add_names(true), 0);
	expect_bytes(wanted, strlen(wanted));
	write_in(wanted, strlen(wanted));
	assert_int_equal(add_names(true), 0);
	expect_bytes(wanted, strlen(wanted));
	write_in(OURS, strlen(OURS));
	assert_int_equal(add_names(true), 0);
	expect_bytes(OURS NAME_10 NAME_20, strlen(OURS NAME_10 NAME_20));
}

static void append(char **to, const char *text)
{
	size_t len = strlen(text);

	memcpy(*to, text, len + 1);
	*to += len;
}

/* Whatever is missing, hsym says so or does without; the sanitizers look on. */
static void test_every_cut_is_survived(void **state)
{
	static const char whole[] = OURS NAME_10 END;

	(void)state;
	for (size_t len = 1; len < strlen(whole); len++) {
		int rc;

		write_in(whole, len);
		rc = add_names(false);
		assert_true(rc < 0 || len + 1 == strlen(whole));
		rc = add_names(true);
		assert_true(rc <= 0);
	}
}

/* Lines longer than any window, and a window's edge at every place of the end mark. */
static void test_long_comments_are_copied_whole(void **state)
{
	size_t window = (size_t)1 << 20;
	char *in = malloc(4 * window), *wanted = malloc(4 * window), *to, *head;

	(void)state;
	assert_non_null(in);
	assert_non_null(wanted);
	for (size_t shift = 0; shift < 64; shift += 3) {
		to = in;
		append(&to, OURS "//");
		memset(to, 'x', 2 * window - strlen(OURS) - 40 + shift);
		to += 2 * window - strlen(OURS) - 40 + shift;
		append(&to, "\n");
		head = wanted;
		append(&head, in);
		append(&head, NAME_10 NAME_20 END);
		append(&to, END);
		write_in(in, (size_t)(to - in));
		assert_int_equal(add_names(false), 0);
		expect_bytes(wanted, (size_t)(head - wanted));
	}
	free(in);
	free(wanted);
}

static void test_the_summary_names_what_is_missing(void **state)
{
	struct addnames work;
	struct input input;
	struct err err;
	char text[200] = "";
	FILE *to = tmpfile();

	(void)state;
	assert_non_null(to);
	write_in(OURS END, strlen(OURS END));
	assert_int_equal(input_open(&input, in_path, &err), 0);
	assert_int_equal(addnames_init(&work, &err), 0);
	assert_int_equal(addnames_read(&work, &input, false, &err), 0);
	assert_int_equal(addnames_resolve(&work, &err), 0);
	addnames_summary(&work, to, "hsym");
	name_by_hand(&work);
	addnames_summary(&work, to, "hsym");
	assert_int_equal(fseek(to, 0, SEEK_SET), 0);
	assert_true(fread(text, 1, sizeof(text) - 1, to) > 0);
	assert_string_equal(text,
		"hsym: 0 of 3 addresses named; no names: 2 in a.exe, 1 outside all modules\n"
		"hsym: 2 of 3 addresses named; no names: 1 outside all modules\n");
	(void)fclose(to);
	addnames_release(&work);
	input_close(&input);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_stand_before_the_end_mark),
		cmocka_unit_test(test_line_ends_are_those_of_the_dump),
		cmocka_unit_test(test_names_that_are_there_stay),
		cmocka_unit_test(test_umdh_logs_get_them_at_the_end),
		cmocka_unit_test(test_a_cut_dump_is_refused_unless_asked_for),
		cmocka_unit_test(test_every_cut_is_survived),
		cmocka_unit_test(test_long_comments_are_copied_whole),
		cmocka_unit_test(test_the_summary_names_what_is_missing),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
