/* Answers of llvm-symbolizer. hsym parses complete answers; incomplete ones do no harm. A script
 * replaces the program and prints a file in the form of LLVM's DIPrinter.cpp. */
#include "tests/unit/scratch.h"

#include "symbolize/backend/backend.h"

#define BASE UINT64_C(0x1400015ae)
#define GOOD "good\n  Filename: g.c\n  Line: 7\n\n"
#define MANY 20000
#define PATH_BYTES 900

static char program[340];

/* Parts of the file are separated by form feeds. Part n answers the question about rva n. The
 * default answer is 'fN'. */
static const char script[] =
	"#!/usr/bin/perl\n"
	"exec 'sleep', 30 if \"@ARGV\" eq '--version' && open my $told, '>', \"$0.version\";\n"
	"open my $file, '<', \"$0.answers\" or die; local $/; my @said = split /\\f/, <$file>;\n"
	"$/ = \"\\n\"; $| = 1;\n"
	"while (<STDIN>) {\n"
	"\tmy ($addr) = / 0x([0-9a-f]+)$/ or die;\n"
	"\tmy $n = length $addr < 9 ? hex $addr : 1 << 40;\n"
	"\tmy $text = \"0x$addr\\n\" . ($said[$n] // \"f$addr\\n  Filename: s.c\\n  Line: "
	"7\\n\\n\");\n"
	"\tprint $text if !-e \"$0.slow\";\n"
	"\tfor my $byte (-e \"$0.slow\" ? split(//, $text) : ()) {\n"
	"\t\tprint $byte; select undef, undef, undef, 0.001;\n"
	"\t}\n"
	"}\n";

static int make_program(void **state)
{
	if (scratch_begin(state))
		return -1;
	snprintf(program, sizeof(program), "%s/llvm", dir);
	scratch_write("llvm", script, 0755);
	return setenv("HSYM_LLVM", program, 1);
}

static struct arena arena;

static int end(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

#undef TEST_AROUND
#define TEST_AROUND NULL, end

/* Requests the addresses 0, 1, ... of a PDB or of an image, which is never opened. */
static void ask(struct lookup *lookups, size_t count, const char *said, const char *image,
	const char *pdb, const struct symbol_options *options)
{
	static const struct symbol_options patient = {.patience_ms = 60000};
	void *backend = llvm_backend.make(options ? options : &patient, NULL);
	struct module module = {.path = "C:\\m.exe"};
	struct pe_image pe = {.preferred_base = BASE, .bits = 64};
	struct sym_module subject = {.module = &module,
		.files = {.image = (char *)(uintptr_t)image,
			.pe = &pe,
			.pdb = (char *)(uintptr_t)pdb}};

	scratch_write("llvm.answers", said, 0644);
	subject.tables = tables_new(&subject.files, false);
	for (size_t i = 0; i < count; i++)
		lookups[i] = (struct lookup){.rva = (uint32_t)i};
	llvm_backend.resolve(backend, &subject, lookups, count, &arena);
	assert_null(llvm_backend.trouble(backend));
	llvm_backend.release(backend);
	tables_free(subject.tables);
	buf_release(&subject.files.reason);
}

static void check(const struct lookup *lookup, size_t number, const char *function,
	const char *file, uint32_t line, uint64_t offset_bytes)
{
	const struct symbol *symbol = &lookup->found.list[number];

	assert_true(number < lookup->found.count);
	assert_string_equal(symbol->function, function);
	assert_int_equal(symbol->file != NULL, file != NULL);
	if (file)
		assert_string_equal(symbol->file, file);
	assert_int_equal(symbol->line, line);
	assert_int_equal(symbol->offset_bytes, offset_bytes);
}

static const char whole[] = "inner<int>\n"
			    "  Filename: /s\xc3\xa4.c\n"
			    "  Function start filename: /s.c\n"
			    "  Function start line: 4\n"
			    "  Line: 11\n"
			    "  Column: 9\n"
			    "  Discriminator: 2\n"
			    "api\n"
			    "  Filename: ??\n"
			    "  Function start address: 0x1400015b0\n"
			    "  Line: 0\n"
			    "  Column: 0\n"
			    "\n";

/* One answer has no name. In the other, the inner function has a name and the outer one has
 * none. */
#define NAMELESS "\n  Filename: ??\n  Line: 0\n  Column: 0\n\n"
#define WITHIN "f\n  Filename: a\n  Line: 3\n\n  Filename: ??\n  Line: 0\n\n"

TEST(answer_is_taken_apart)
{
	struct lookup lookups[4];
	char said[4 * sizeof(whole)];

	snprintf(said, sizeof(said), "%s\f%s\f%s\f%s", whole, whole, whole, whole);
	ask(lookups, 4, said, "/m.exe", NULL, NULL);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(lookups[i].found.count, 2);
		check(&lookups[i], 0, "inner<int>", "/s\xc3\xa4.c", 11, 0);
		/* api() begins at rva 2. The offset belongs to the byte after the address. */
		check(&lookups[i], 1, "api", NULL, 0, i < 2 ? 0 : i - 1);
	}
}

TEST(of_very_many_functions_outermost_is_kept)
{
	struct lookup lookup;
	char said[4000] = "", name[20];

	for (int i = 1; i <= 70; i++)
		snprintf(said + strlen(said), sizeof(said) - strlen(said),
			"f%d\n  Filename: a\n  Line: %d\n%s", i, i, i == 70 ? "\n" : "");
	ask(&lookup, 1, said, "/m.exe", NULL, NULL);
	assert_int_equal(lookup.found.count, 64);
	for (uint32_t i = 1; i <= 63; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		check(&lookup, i - 1, name, "a", i, 0);
	}
	check(&lookup, 63, "f70", "a", 70, 0);
}

/* Valid answers keep their names, even between invalid ones. */
TEST(what_is_no_answer_gives_nothing)
{
	static const char *const bad[] = {NAMELESS, WITHIN, "??\n  Filename: ??\n  Line: 0\n\n",
		"f\n\n", "f\n  Line: 3\n\n", "  Filename: a\n\n", "f\n  Filename: a\ng\n\n",
		"f\ng\n  Filename: a\n\n"};
	enum { BAD = sizeof(bad) / sizeof(*bad) };
	struct lookup lookups[2 * BAD + 1];
	char said[2000] = "";

	for (size_t i = 0; i < BAD; i++)
		snprintf(
			said + strlen(said), sizeof(said) - strlen(said), "%s\f" GOOD "\f", bad[i]);
	strcat(said, "f\n  Filename: a\n  Line: 99999999999\n\n");
	ask(lookups, 2 * BAD + 1, said, "/m.exe", NULL, NULL);
	for (size_t i = 0; i < BAD; i++) {
		assert_true(lookups[2 * i].is_answered);
		assert_int_equal(lookups[2 * i].found.count, 0);
		check(&lookups[2 * i + 1], 0, "good", "g.c", 7, 0);
	}
	check(&lookups[2 * BAD], 0, "f", NULL, 0, 0); /* the line does not exist */
}

TEST(answers_may_come_byte_by_byte)
{
	struct lookup lookups[5];
	char slow[400];

	snprintf(slow, sizeof(slow), "%s.slow", program);
	scratch_write("llvm.slow", "", 0644);
	ask(lookups, 5, GOOD "\f" WITHIN "\f" GOOD "\f" NAMELESS "\f" GOOD, "/m.exe", NULL, NULL);
	unlink(slow);
	for (size_t i = 0; i < 5; i++) {
		assert_true(lookups[i].is_answered);
		assert_int_equal(lookups[i].found.count, i % 2 == 0);
	}
}

TEST(lines_that_are_no_address_are_passed_over)
{
	struct lookup lookups[2];

	ask(lookups, 2,
		GOOD "0x\nx12\n0x12g\n0x 12\n12\nf\n\n0x12345678901234567\n"
		     "0x1234567890123456789012345678901234567890\n\f" GOOD,
		"/m.exe", NULL, NULL);
	check(&lookups[0], 0, "good", "g.c", 7, 0);
	check(&lookups[1], 0, "good", "g.c", 7, 0);
}

/* Damages only bytes within lines, so that each question gets an answer. The sanitizers detect
 * errors. */
TEST(damaged_answers_give_nothing_or_something_sound)
{
	enum { ROUNDS = 5000, LEN = sizeof(whole) - 1 };
	static struct lookup lookups[ROUNDS];
	static char said[ROUNDS * (LEN + 1) + 1];
	uint64_t random = 7;
	char *to = said;

	for (int round = 0; round < ROUNDS; round++) {
		memcpy(to, whole, LEN);
		for (int i = 0; i < 3; i++) {
			char *at, byte;

			random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
			at = to + (size_t)(random >> 33) % LEN;
			byte = (char)(random >> 56);
			if (*at != '\n' && byte && byte != '\n' && byte != '\f' && byte != '\r')
				*at = byte;
		}
		to[LEN] = '\f';
		to += LEN + 1;
	}
	*to = '\0';
	ask(lookups, ROUNDS, said, "/m.exe", NULL, NULL);
	for (int round = 0; round < ROUNDS; round++) {
		assert_true(lookups[round].is_answered);
		for (size_t i = 0; i < lookups[round].found.count; i++)
			assert_in_range(strlen(lookups[round].found.list[i].function), 1, LEN);
	}
}

/* Each question contains the whole path. All questions together have 18 MB, which must not be
 * generated at once. */
TEST(each_answer_goes_to_its_question)
{
	static struct lookup lookups[MANY];
	char image[PATH_BYTES + 1], name[20];

	memset(image, 'p', PATH_BYTES);
	image[PATH_BYTES] = '\0';
	ask(lookups, MANY, "", image, NULL, NULL);
	for (uint32_t i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "f%x", i);
		check(&lookups[i], 0, name, "s.c", 7, 0);
	}
}

/* Requests a stop at the third call after the script was restarted to print its version. */
static bool stop_third(void *ctx)
{
	unsigned *asked = ctx;
	char told[400];

	snprintf(told, sizeof(told), "%s.version", program);
	*asked += !access(told, F_OK);
	return *asked == 3;
}

TEST(listener_can_stop_wait_for_version)
{
	unsigned asked = 0;
	struct symbol_options options = {
		.patience_ms = 60000, .listener = {.ctx = &asked, .is_cancelled = stop_third}};
	struct lookup lookup;

	ask(&lookup, 1, whole, "/m.exe", program, &options);
	check(&lookup, 0, "inner<int>", NULL, 0, 0); /* possibly with wrong lines */
	assert_in_range(asked, 3, 6);
}

GROUP(make_program, scratch_end)
