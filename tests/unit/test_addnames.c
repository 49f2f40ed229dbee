/* hsym: every byte of a dump is passed through, and the new names stand before the end mark. */
#include "tests/unit/t.h"

#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/load_dump.h"
#include "tests/unit/test_addnames.h"

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

TEST(test_names_stand_before_the_end_mark)
{
	expect(OURS END, OURS NAME_10 NAME_20 END);
}

TEST(test_line_ends_are_those_of_the_dump)
{
	char *in = with_crlf(OURS END), *wanted = with_crlf(OURS NAME_10 NAME_20 END);

	expect(in, wanted);
	free(in);
	free(wanted);
}

TEST(test_names_that_are_there_stay)
{
	static const char mine[] = "// hsnap: name later=1 function=mine addr=400010 offset=000A\n";
	char in[1000], wanted[1000];

	snprintf(in, sizeof(in), "%s%s%s", OURS, mine, END "// more\n");
	snprintf(wanted, sizeof(wanted), "%s%s%s", OURS, mine, NAME_20 END "// more\n");
	expect(in, wanted);
}

TEST(test_umdh_logs_get_them_at_the_end)
{
	expect(MODULES STACK, MODULES STACK NAME_10 NAME_20);
	expect(MODULES STACK "last words", MODULES STACK "last words\n" NAME_10 NAME_20);
}

TEST(test_a_cut_dump_is_refused_unless_asked_for)
{
	static const char cut[] = OURS "10 byt", wanted[] = OURS NAME_10 NAME_20 "10 byt";

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

/* The bytes of the output, NUL-terminated; the caller frees them. */
static char *read_out(size_t *len)
{
	char *text = malloc(65536);
	FILE *file = fopen(out_path, "rb");

	assert_non_null(text);
	assert_non_null(file);
	*len = fread(text, 1, 65535, file);
	text[*len] = '\0';
	(void)fclose(file);
	return text;
}

static void check_same_stack(
	const struct snapshot *a, uint32_t x, const struct snapshot *b, uint32_t y)
{
	const struct stack *in_a, *in_b;

	assert_int_equal(x == STACK_NONE, y == STACK_NONE);
	if (x == STACK_NONE)
		return;
	in_a = &a->stacks.stacks[x];
	in_b = &b->stacks.stacks[y];
	assert_string_equal(in_a->id, in_b->id);
	assert_int_equal(in_a->frame_count, in_b->frame_count);
	assert_int_equal(!in_a->frames, !in_b->frames);
	if (in_a->frames)
		assert_memory_equal(
			in_a->frames, in_b->frames, in_a->frame_count * sizeof(*in_a->frames));
}

/* Two dumps mean the same: blocks and stacks, and whether the end is missing. */
static void check_same_meaning(const char *a_path, const char *b_path)
{
	struct snapshot a, b;
	struct err err;

	snapshot_init(&a);
	snapshot_init(&b);
	assert_int_equal(dump_load_file(&a, a_path, &err), dump_load_file(&b, b_path, &err));
	assert_int_equal(a.block_count, b.block_count);
	assert_int_equal(a.heap_count, b.heap_count);
	assert_int_equal(a.module_count, b.module_count);
	for (size_t i = 0; i < a.block_count; i++) {
		assert_int_equal(a.blocks[i].addr, b.blocks[i].addr);
		assert_int_equal(a.blocks[i].requested_bytes, b.blocks[i].requested_bytes);
		assert_int_equal(a.blocks[i].heap, b.blocks[i].heap);
		check_same_stack(&a, a.blocks[i].stack, &b, b.blocks[i].stack);
	}
	snapshot_release(&a);
	snapshot_release(&b);
}

/* hsym --force twice on what is left of a dump: the same meaning, and then the same bytes. */
static void check_cut(const char *whole, size_t len)
{
	size_t once_len;
	char *once;
	int rc;

	write_in(whole, len);
	rc = add_names(true);
	if (rc) {
		assert_true(rc == -ERR_NOT_DUMP || rc == -ERR_EMPTY);
		return;
	}
	check_same_meaning(in_path, out_path);
	once = read_out(&once_len);
	write_in(once, once_len);
	assert_int_equal(add_names(true), 0);
	expect_bytes(once, once_len);
	free(once);
}

static void check_every_cut(const char *whole)
{
	char *crlf = with_crlf(whole);

	for (size_t len = 1; len <= strlen(whole); len++)
		check_cut(whole, len);
	for (size_t len = 1; len <= strlen(crlf); len++)
		check_cut(crlf, len);
	free(crlf);
}

#define TWO_STACKS                                                                                 \
	"10 bytes + 8 at 20000 by BackTrace1\n\t400010\n\t400020\n\t7\n\n"                         \
	"10 bytes + 8 at 20040 by BackTrace2\n\t400020\n\tAlias\n\t400030\n\n"

TEST(test_every_cut_means_the_same_with_names)
{
	check_every_cut("// hsnap: dump format=1\n" MODULES "// hsnap: heap addr=10000 kind=wine\n"
			"*- - - Heap 10000 Hogs\n\n" TWO_STACKS
			"// hsnap: end blocks=2 requested=32 overhead=16\n");
	check_every_cut(MODULES "*- - - - Start of data for heap @ 10000\n\n" TWO_STACKS
				"*- - - - End of data for heap @ 10000\n\n");
	check_every_cut(MODULES TWO_STACKS);
	check_every_cut(
		"// hsnap: dump format=1\n// hsnap: heap addr=10000 kind=wine\n" TWO_STACKS NAME_10
			NAME_20 "// hsnap: end blocks=2 requested=32 overhead=16\n");
}

static void append(char **to, const char *text)
{
	size_t len = strlen(text);

	memcpy(*to, text, len + 1);
	*to += len;
}

/* Whatever is missing, hsym says so or does without; the sanitizers look on. */
TEST(test_every_cut_is_survived)
{
	static const char whole[] = OURS NAME_10 END;

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
TEST(test_long_comments_are_copied_whole)
{
	size_t window = (size_t)1 << 20;
	char *in = malloc(4 * window), *wanted = malloc(4 * window), *to, *head;

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

TEST(test_the_summary_names_what_is_missing)
{
	struct addnames work;
	struct input input;
	struct err err;
	char text[200] = "";
	FILE *to = tmpfile();

	assert_non_null(to);
	write_in(OURS END, strlen(OURS END));
	assert_int_equal(input_open(&input, in_path, &err), 0);
	assert_int_equal(addnames_init(&work, &no_cache, &err), 0);
	assert_int_equal(addnames_read(&work, &input, false, &err), 0);
	addnames_resolve(&work);
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

/* Exit status of a command, and what must be in the words it prints. */
static void check_command(const char *command, int status, const char *words)
{
	char text[1000] = "", line[1100];
	FILE *pipe;

	snprintf(line, sizeof(line), "%s", command);
	pipe = popen(line, "r");
	assert_non_null(pipe);
	text[fread(text, 1, sizeof(text) - 1, pipe)] = '\0';
	assert_int_equal(WEXITSTATUS(pclose(pipe)), status);
	assert_non_null(strstr(text, words));
}

TEST(test_a_full_standard_output_is_an_error)
{
	if (access("build/linux/hsym", X_OK) != 0 || access("/dev/full", W_OK) != 0) {
		print_message("# no build/linux/hsym or no /dev/full here\n");
		skip();
	}
	check_command("build/linux/hsym --help 2>&1 >/dev/full", 2, "cannot write");
	check_command("build/linux/hsym --version 2>&1 >/dev/full", 2, "cannot write");
}

/* What the reading of in_path says when it is kept as a pipe's bytes are, up to max_bytes. */
static int read_kept(const char *path, size_t max_bytes, size_t *kept_bytes)
{
	struct addnames work;
	struct input input;
	struct err err;
	int rc;

	assert_int_equal(input_open(&input, path, &err), 0);
	input.is_pipe = true;
	if (max_bytes)
		input.max_bytes = max_bytes;
	assert_int_equal(addnames_init(&work, &no_cache, &err), 0);
	rc = addnames_read(&work, &input, false, &err);
	*kept_bytes = input.text.cap;
	addnames_release(&work);
	input_close(&input);
	return rc;
}

TEST(test_what_cannot_be_read_again_is_kept_within_bounds)
{
	size_t kept;

	assert_true(read_kept("/dev/zero", 0, &kept) < 0);
	assert_true(kept < (size_t)64 << 20);
	write_in(OURS END, strlen(OURS END));
	assert_int_equal(read_kept(in_path, strlen(OURS END), &kept), 0);
	assert_int_equal(read_kept(in_path, strlen(OURS END) - 1, &kept), -ERR_READ);
}

GROUP(make_dir, remove_dir)
