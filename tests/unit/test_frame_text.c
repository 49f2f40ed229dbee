#include "tests/unit/t.h"

#include "tests/unit/test_diff.h"

#include "diff/read/frame.h"
#include "diff/report/report.h"

#define COUNT(list) (sizeof(list) / sizeof(*(list)))

static void assert_text(const char *is, const char *should)
{
	assert_true(!is == !should);
	if (should)
		assert_string_equal(is, should);
}

static void assert_frame(const struct frame *is, const struct frame *should)
{
	assert_text(is->module, should->module);
	assert_text(is->function, should->function);
	assert_text(is->file, should->file);
	assert_int_equal(is->line, should->line);
	assert_int_equal(is->is_inline, should->is_inline);
	assert_int_equal(is->offset_bytes, should->offset_bytes);
	assert_int_equal(is->has_addr, should->has_addr);
	if (should->has_addr)
		assert_int_equal(is->addr, should->addr);
}

static void assert_parses(const char *text, struct frame should)
{
	struct arena arena;
	struct frame frame = {.line = 12345};
	/* This copy has the exact size: a read past its end is an error. */
	char *copy = strdup(text);

	assert_non_null(copy);
	arena_init(&arena);
	frame_parse(&frame, &arena, copy, strlen(copy));
	free(copy);
	assert_frame(&frame, &should);
	arena_release(&arena);
}

/* Members that are 0 or NULL must be absent from the text. */
static const struct {
	const char *text, *module, *function;
	uint64_t offset_bytes, addr;
	const char *file;
	uint32_t line;
} truths[] = {
	/* from published samples; see the grammar of comparisons */
	{"ntdll!RtlAllocateHeap+00000274", "ntdll", "RtlAllocateHeap", 0x274, 0, NULL, 0},
	{"MyApp!operator new+0x0000000E", "MyApp", "operator new", 14, 0, NULL, 0},
	{"KERNEL32!BaseProcessStart+0x0000003D ", "KERNEL32", "BaseProcessStart", 0x3d, 0, NULL, 0},
	{"CppResourceLeaks!LeakHeapMemory+00000083 (...\\cppresourceleaks.cpp, 228)",
		"CppResourceLeaks", "LeakHeapMemory", 0x83, 0, "...\\cppresourceleaks.cpp", 228},
	{"\tSHELL32!Ordinal915+FDE", "SHELL32", "Ordinal915", 0xfde, 0, NULL, 0},
	/* without names */
	{"app+1010 : 140001010", "app", NULL, 0x1010, 0x140001010, NULL, 0},
	{"notepad+++1F : 7FFE82352933", "notepad++", NULL, 0x1f, 0x7ffe82352933, NULL, 0},
	{"7FFE82352933", NULL, NULL, 0, 0x7ffe82352933, NULL, 0},
	{"0xffffffffffffffff", NULL, NULL, 0, UINT64_MAX, NULL, 0},
	{"app!+1010 : 140001010", "app", NULL, 0x1010, 0x140001010, NULL, 0},
	{"app!near+10 : 140001010 (a.c, 7)", "app", "near", 0x10, 0x140001010, "a.c", 7},
	{"<nomodule>!00401020", NULL, "<nomodule>!00401020", 0, 0, NULL, 0},
	/* as Windows XP and 2003 print them, and similar forms */
	{"7C8531E4 : ntdll!RtlAllocateHeapSlowly+00000044", "ntdll", "RtlAllocateHeapSlowly", 0x44,
		0x7c8531e4, NULL, 0},
	{"\t00401A12 : ledger!post_entry+00000032 (d:\\src\\ledger\\post.c, 88) ", "ledger",
		"post_entry", 0x32, 0x401a12, "d:\\src\\ledger\\post.c", 88},
	{"00007ffe1000a123 : a b!std::map<int, a : b>::f+1A (a, b (1).c, 2)", "a b",
		"std::map<int, a : b>::f", 0x1a, 0x7ffe1000a123, "a, b (1).c", 2},
	{"401A12:  ledger!f (f.c, 3)", "ledger", "f", 0, 0x401a12, "f.c", 3},
	{"0x401A12 : ledger+1A12", "ledger", NULL, 0x1a12, 0x401a12, NULL, 0},
	{"401A12 : m!f+1 : 401A13", "m", "f", 1, 0x401a13, NULL, 0},
	{"401A12 : m!f : 401A13", "m", "f : 401A13", 0, 0x401a12, NULL, 0},
	/* code of a just-in-time compiler: its address is all that is known */
	{"<nomodule>!+20 : 401020", NULL, NULL, 0, 0x401020, NULL, 0},
	{"401020 : <nomodule>!+20", NULL, NULL, 0, 0x401020, NULL, 0},
	{"<no module>!???+00000000 : 7FF9641B2C44", NULL, NULL, 0, 0x7ff9641b2c44, NULL, 0},
	{"<nomodule>!???", NULL, "<nomodule>!???", 0, 0, NULL, 0},
	{"<Foo>!f?+1 : 401020", NULL, "<Foo>!f?", 1, 0x401020, NULL, 0},
	/* as debuggers print them: an address is the frame's own only if it is alone */
	{"77c9a1f2 ntdll!f+0x9f", "ntdll", "f", 0x9f, 0x77c9a1f2, NULL, 0},
	{"0x9f12 ntdll!f", "ntdll", "f", 0, 0x9f12, NULL, 0},
	{"FACEFEED : ntdll!f", "ntdll", "f", 0, 0xfacefeed, NULL, 0},
	{"00007ffc`2000a1f2 a.DLL!g<int>+1 [d:\\x (1) [2]\\f.c @ 7]", "a", "g<int>", 1,
		0x7ffc2000a1f2, "d:\\x (1) [2]\\f.c", 7},
	{"1f 77c9a1f2\tntdll+1A", "ntdll", NULL, 0x1a, 0x77c9a1f2, NULL, 0},
	{"00 0018fe10 77c9a1f2 ntdll!f+9f", "ntdll", "f", 0x9f, 0, NULL, 0},
	{"00 : ntdll!f", "ntdll", "f", 0, 0, NULL, 0},
	{"m!f (C:\\a (x86)\\f.c:3)", "m", "f", 0, 0, "C:\\a (x86)\\f.c", 3},
	/* names of files that begin like columns */
	{"3D 2 x!f+1", "3D 2 x", "f", 1, 0, NULL, 0}, {"7 zip!f+1", "7 zip", "f", 1, 0, NULL, 0},
	{"facade f.c!f+1", "facade f.c", "f", 1, 0, NULL, 0},
	/* the largest offset is 2^64 - 1; line numbers begin at 1 and have 32 bits */
	{"m!f+FFFFFFFFFFFFFFFF", "m", "f", UINT64_MAX, 0, NULL, 0},
	{"m!f+0x000000000000000000001", "m", "f", 1, 0, NULL, 0},
	{"m!f+10000000000000000", "m", "f+10000000000000000", 0, 0, NULL, 0},
	{"m!f+1 (a.c, 4294967295)", "m", "f", 1, 0, "a.c", UINT32_MAX},
	{"m!f+1 (a.c, 4294967296)", "m", "f+1 (a.c, 4294967296)", 0, 0, NULL, 0},
	{"m!f+1 (a.c, 0)", "m", "f+1 (a.c, 0)", 0, 0, NULL, 0},
	/* without an offset */
	{"", NULL, "", 0, 0, NULL, 0}, {"fun (a.c, 3)", NULL, "fun", 0, 0, "a.c", 3},
	{"x!y", "x", "y", 0, 0, NULL, 0}, {"app!f", "app", "f", 0, 0, NULL, 0}};

TEST(forms_of_umdh_and_ours_are_taken_apart)
{
	for (size_t i = 0; i < COUNT(truths); i++)
		assert_parses(truths[i].text, (struct frame){.module = truths[i].module,
						      .function = truths[i].function,
						      .offset_bytes = truths[i].offset_bytes,
						      .has_addr = truths[i].addr != 0,
						      .addr = truths[i].addr,
						      .file = truths[i].file,
						      .line = truths[i].line});
}

TEST(what_fits_nothing_is_kept_whole)
{
	static const char *const texts[] = {"(no stack recorded)", "?", "+", "+12", "!", "!x", "x!",
		"()", "(a, 1)", ",", " [inline]x", "a b c", ")", ": 12", "+1 : z", "401020 : f",
		"401020 : 401021", "401020 :f+1 x", "10000000000000000 : m!f x", "C:\\x.dll!f",
		"a::operator!"};
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct frame should = {
			.function = strchr(texts[i], ' ') == texts[i] ? texts[i] + 1 : texts[i]};

		assert_parses(texts[i], should);
	}
}

/* ---------------------------------------------------------------- as in hdiff's reports */

static const char *const modules[] = {
	NULL, "app", "my app (1)", "notepad++", "a,b", "x+1F", "a-b.c"};
static const char *const functions[] = {"main", "operator<", "operator<<", "operator()",
	"operator+", "operator++", "operator,", "operator new[]", "std::map<int, (x)>::f", "f+1",
	"f+1 (x)", "f+1 : 2", "a (b.c, 3)", "`anonymous namespace'::f", "<lambda_1>::operator ()",
	"v<(1>2)>::f", "x [inline]", "Alias", "(no stack recorded)", "unbalanced<(", "DEADBEEF",
	"+", "f (int", "f)", "?f@@YAXH@Z", "A::operator!=", "A::operator!"};
static const char *const files[] = {NULL, "a.cpp", "C:\\Program Files (x86)\\a, b (1).cpp",
	"/usr/src/a+1 (x).c", "..\\a.c", "C:\\x)\\a.c", "C:\\(x\\a.c", "C:\\ (x\\a.c", "a, 7"};

static void make_frames(struct frames *frames)
{
	static const uint64_t offsets[] = {1, 0xabcdef, UINT64_MAX};

	for (size_t i = 0; i < COUNT(modules) * COUNT(functions) * COUNT(files) * COUNT(offsets);
		i++) {
		size_t k = i % (COUNT(files) * COUNT(offsets));
		const char *file = files[k / COUNT(offsets)];
		struct frame frame = {
			.function =
				functions[i / (COUNT(files) * COUNT(offsets)) % COUNT(functions)],
			.module = modules[i / (COUNT(files) * COUNT(offsets)) / COUNT(functions)],
			.offset_bytes = offsets[k % COUNT(offsets)],
			.file = file,
			.line = file ? (uint32_t)k * 1000 : 0,
			.is_inline = k % 3 == 0};

		frames_add(frames, &frame);
	}
	for (size_t m = 0; m < COUNT(modules); m++) {
		struct frame frame = {.module = modules[m],
			.offset_bytes = modules[m] ? 0xf00 : 0,
			.has_addr = true,
			.addr = 0x7ff812340000 + m};

		frames_add(frames, &frame);
	}
}

static char *print_frames(const struct frames *frames)
{
	const char *ids[] = {"1"};
	struct block_totals of[2] = {{0}, {1, 100, 0}};
	struct row row = {
		.kind = ROW_STACK, .totals = of, .frames = frames, .ids = ids, .id_count = 1};
	struct comparison comparison = {
		.dump_count = 2, .read_from = "x", .rows = &row, .row_count = 1};
	struct view view;
	struct out out;

	view_make(&view, &comparison, true);
	naming_find(&view.naming, view.rows, view.shown_count);
	assert_int_equal(out_open(&out, "out.txt", NULL), 0);
	report_umdh(&out, &(struct report){.views = &view, .view_count = 1});
	assert_int_equal(out_commit(&out, NULL), 0);
	view_release(&view);
	return read_text("out.txt");
}

TEST_WITH(frames_of_our_reports_parse_to_what_was_printed, enter_folder, leave_folder)
{
	struct frames frames;
	struct arena arena;
	char *text;
	const char *at;

	frames_init(&frames);
	arena_init(&arena);
	make_frames(&frames);
	text = print_frames(&frames);
	at = strstr(text, "\tallocations\n\n\t");
	assert_non_null(at);
	at = next_text(next_text(at));
	for (size_t i = 0; i < frames.count; i++, at = next_text(at)) {
		struct frame frame;
		size_t len = (size_t)(next_text(at) - at) - 2;

		assert_int_equal(*at, '\t');
		frame_parse(&frame, &arena, at + 1, len);
		assert_frame(&frame, &frames.items[i]);
	}
	assert_int_equal(*at, '\n');
	free(text);
	arena_release(&arena);
	frames_release(&frames);
}

TEST(frames_without_offset_are_taken_apart)
{
	static const char *const plain[] = {"main", "operator<", "operator()", "operator+",
		"operator++", "operator new[]", "std::map<int, (x)>::f", "`anonymous namespace'::f",
		"A::operator!=", "?f@@YAXH@Z", "app::f(int, char const*)"};
	static const char *const sources[] = {"a.cpp", "C:\\Program Files (x86)\\a, b (1).cpp"};
	char text[200];

	for (size_t i = 0; i < COUNT(plain); i++) {
		struct frame frame = {.module = "notepad++", .function = plain[i]};

		snprintf(text, sizeof(text), "notepad++!%s", plain[i]);
		assert_parses(text, frame);
		for (size_t k = 0; k < COUNT(sources); k++) {
			frame.file = sources[k];
			frame.line = 7;
			frame.is_inline = k;
			snprintf(text, sizeof(text), "notepad++!%s (%s, 7)%s", plain[i], sources[k],
				k ? " [inline]" : "");
			assert_parses(text, frame);
		}
	}
}

/* The long text has 12000 positions at which the parser could split it. */
TEST(no_text_is_read_past_its_end_or_takes_long)
{
	static const char alphabet[] = "!+ :(),0x1aF[inl]e<>";
	uint64_t seed = 1;
	char text[40], *large = malloc(60000);
	struct arena arena;
	struct frame frame;

	assert_non_null(large);
	for (unsigned i = 0; i < 200000; i++) {
		size_t len = i % sizeof(text);

		for (size_t k = 0; k < len; k++) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
			text[k] = alphabet[(seed >> 33) % (sizeof(alphabet) - 1)];
		}
		arena_init(&arena);
		frame_parse(&frame, &arena, text, len);
		assert_true(frame.function || frame.module || frame.has_addr);
		assert_true(!frame.file || frame.line);
		arena_release(&arena);
	}
	for (size_t i = 0; i < 60000; i++)
		large[i] = "+1 ( "[i % 5];
	for (size_t i = 0; i < 10; i++)
		large[59990 + i] = "(a.c, 123)"[i];
	arena_init(&arena);
	frame_parse(&frame, &arena, large, 60000);
	arena_release(&arena);
	free(large);
}
