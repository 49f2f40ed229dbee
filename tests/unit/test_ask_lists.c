/* hdiff: allocators' frames, and lists in files of such and of suppressions. */
#include "tests/unit/t.h"

#include "tests/unit/test_ask.h"

#include "diff/query/strip.h"

static made_stack stacks[] = {
	{NEW, MALLOC, LEAK, MAIN}, /* 1 */
	{MALLOC, CACHE, MALLOC, MAIN}, /* 2 */
	{MALLOC, NEW}, /* 4 */
	{LIB_NAMELESS, MALLOC, HELPER}, /* 8 */
	{NOWHERE, MAIN}, /* 16 */
};

static void make(void)
{
	write_stacks("new.txt", stacks, sizeof(stacks) / sizeof(*stacks));
}

static void write_list(const char *text)
{
	write_bytes("more.txt", text, strlen(text));
}

/* The functions of the row of 2^n bytes that are shown, innermost first: made frames' numbers. */
static void check_frames(const struct result *result, unsigned n, const unsigned *wanted)
{
	for (size_t i = 0; i < result->row_count; i++) {
		const char *at = result->rows[i].frames;

		if (result->rows[i].new_bytes != UINT64_C(1) << n)
			continue;
		for (; *wanted; wanted++, at = next_text(at)) {
			const struct made_frame *frame = &made_frames[*wanted];
			char text[100];

			snprintf(text, sizeof(text), "\t%s%s%s",
				frame->base == APP_BASE ? "app" :
				frame->base		? "lib" :
							  "",
				frame->function ? "!" :
				frame->base	? "+" :
						  "",
				frame->function ? frame->function : "");
			if (strncmp(at, text, strlen(text)) != 0)
				fail_msg("wanted %s before %s", text, at);
		}
		assert_string_equal(at, "");
		return;
	}
	fail_msg("no row of 2^%u bytes", n);
}

#define FRAMES_OF(...) ((const unsigned[]){__VA_ARGS__, 0})

TEST(stacks_are_stripped_only_when_asked_for)
{
	make();
	struct result *result = ask_hdiff("new.txt");
	check_frames(result, 0, FRAMES_OF(NEW, MALLOC, LEAK, MAIN));
	result = ask_hdiff("--strip", "--no-strip", "new.txt");
	check_frames(result, 1, FRAMES_OF(MALLOC, CACHE, MALLOC, MAIN));
}

TEST(stripping_goes_inside_out_to_the_first_other_frame)
{
	make();
	struct result *result = ask_hdiff("--strip", "new.txt");
	check_frames(result, 0, FRAMES_OF(LEAK, MAIN));
	check_frames(result, 1, FRAMES_OF(CACHE, MALLOC, MAIN));
	check_frames(result, 3, FRAMES_OF(LIB_NAMELESS, MALLOC, HELPER));
	check_frames(result, 4, FRAMES_OF(NOWHERE, MAIN));
}

TEST(the_last_frame_of_a_stack_stays)
{
	make();
	struct result *result = ask_hdiff("--strip", "new.txt");
	check_frames(result, 2, FRAMES_OF(NEW));
}

TEST(frames_can_be_turned_round)
{
	make();
	struct result *result = ask_hdiff("--invert", "new.txt");
	check_frames(result, 0, FRAMES_OF(MAIN, LEAK, MALLOC, NEW));
	check_frames(result, 4, FRAMES_OF(MAIN, NOWHERE));
	result = ask_hdiff("--invert", "--strip", "new.txt");
	check_frames(result, 0, FRAMES_OF(MAIN, LEAK));
}

TEST(each_candidate_is_turned_round_by_itself)
{
	struct maker maker = dump_new((struct maker){0});
	put_names(&maker);
	put(&maker, "%s", "");
	put_entry(&maker, 1, 8, "A");
	put_frames(&maker, (made_stack){NEW, LEAK, MAIN});
	put(&maker, "\tAlias");
	put_frames(&maker, (made_stack){MALLOC, CACHE});
	put(&maker, "%s", "");
	dump_end(&maker, "new.txt");
	struct result *result = ask_hdiff("--invert", "--strip", "new.txt");
	assert_int_equal(result->row_count, 1);
	assert_string_equal(result->rows[0].frames,
		"\tapp!main+5 (C:\\src\\main.c, 4)\n\tapp!leak_here+5 (C:\\src\\leak.c, 3)\n"
		"\tAlias\n\tapp!Cache::fill<int>+5 (C:\\src\\cache.cpp, 5)\n");
	result = ask_hdiff("--invert", "new.txt");
	assert_string_equal(result->rows[0].frames,
		"\tapp!main+5 (C:\\src\\main.c, 4)\n\tapp!leak_here+5 (C:\\src\\leak.c, 3)\n"
		"\tlib!operator new(unsigned long long)+5\n"
		"\tAlias\n\tapp!Cache::fill<int>+5 (C:\\src\\cache.cpp, 5)\n\tlib!malloc+5\n");
}

TEST(a_strip_file_adds_to_what_is_known)
{
	make();
	write_list("# ours\r\n\r\n  app!leak*  \nLIB!*\n\t#app!main");
	struct result *result = ask_hdiff("--strip-file", "more.txt", "new.txt");
	check_frames(result, 0, FRAMES_OF(MAIN));
	check_frames(result, 3, FRAMES_OF(HELPER)); /* all of lib, names or not */
	check_frames(result, 4, FRAMES_OF(NOWHERE, MAIN));
	write_list("*!*");
	result = ask_hdiff("--strip-file", "more.txt", "new.txt");
	check_frames(result, 4, FRAMES_OF(MAIN));
	write_list("app!LEAK*\napp!eak_here\napp!leak_her\n");
	result = ask_hdiff("--strip-file", "more.txt", "new.txt");
	check_frames(result, 0, FRAMES_OF(LEAK, MAIN));
}

TEST(a_bad_line_is_named_with_its_place)
{
	static const char *const bad[] = {"malloc", "!malloc", "lib!"};
	static char line[100000];

	make();
	for (size_t i = 0; i < 3; i++) {
		char text[100];

		snprintf(text, sizeof(text), "# fine\nlib!a\n%s\n", bad[i]);
		write_list(text);
		refused("hdiff: more.txt:3: ", "--strip-file", "more.txt", "new.txt");
	}
	write_bytes("more.txt", "a!b\nc!\0d\n", 9);
	refused("hdiff: more.txt:2: ", "--strip-file", "more.txt", "new.txt");
	memset(line, 'a', sizeof(line));
	line[1] = '!';
	write_bytes("more.txt", line, sizeof(line));
	refused("hdiff: more.txt:1: ", "--strip-file", "more.txt", "new.txt");
	refused("hdiff: no-such: ", "--strip-file", "no-such", "new.txt");
	write_list("leak:a\n\nrace:b\n");
	refused("hdiff: more.txt:3: ", "--suppress", "more.txt", "new.txt");
	write_list("leak:\n");
	refused("hdiff: more.txt:1: ", "--suppress", "more.txt", "new.txt");
	refused("hdiff: no-such: ", "--suppress", "no-such", "new.txt");
}

/* The names are those of Microsoft's, GNU's and the standards' documents; facts/umdh.md has a log
 * with ntdll's and KERNELBASE's. */
TEST(known_allocators_are_stripped_and_others_are_not)
{
	static const char *const layers[][2] = {{"ntdll", "RtlAllocateHeap"},
		{"ntdll", "RtlpAllocateHeapInternal"}, {"ntdll", "RtlDebugAllocateHeap"},
		{"ntdll", "RtlAllocateHeapSlowly"}, {"NTDLL", "RtlReAllocateHeap"},
		{"KERNELBASE", "LocalAlloc"}, {"kernel32", "HeapReAlloc"},
		{"KERNEL32", "GlobalAlloc"}, {"ucrtbase", "_malloc_base"}, {"msvcrt", "malloc"},
		{"MSVCR90D", "_heap_alloc_dbg"}, {"app", "calloc"}, {"app", "realloc"},
		{"app", "operator new"}, {"app", "operator new[](unsigned int)"},
		{"libstdc++-6", "_Znwy"}, {"combase", "CoTaskMemAlloc"},
		{"ole32", "CoTaskMemRealloc"}, {"OLEAUT32", "SysAllocStringLen"},
		{"verifier", "AVrfDebugPageHeapAllocate"}, {"hsnap-tracer64", NULL},
		{"hsnap-tracer64", "hook_anything"}, {"ucrtbased", "_strdup"}, {NULL, "malloc"},
		{"KERNELBASE", "VirtualAlloc"}, {"kernelbase", "VirtualAllocExNuma"},
		{"kernel32", "VirtualAlloc"}, {"kernelbase", "Virtual2AllocFromApp"},
		{"KERNELBASE", "MapViewOfFileEx"}, {"ntdll", "NtAllocateVirtualMemory"},
		{"ntdll", "ZwAllocateVirtualMemoryEx"}, {"ntdll", "ZwMapViewOfSection"},
		/* gcc, clang and Microsoft's compiler, with parameters and without */
		{"app", "std::_Vector_base<int, std::allocator<int> >::_M_allocate(unsigned long "
			"long)"},
		{"app", "void std::vector<app::Doc, std::allocator<app::Doc> "
			">::_M_realloc_insert<app::Doc>(app::Doc&&)"},
		{"app", "std::pair<std::_Rb_tree_iterator<int>, bool> "
			"std::set<int>::emplace<int>(int&&)"},
		{"app", "std::string::_M_create"},
		{"app", "std::string& "
			"std::vector<std::string>::emplace_back<std::string>(std::string&&)"},
		{"app", "std::unique_ptr<app::Doc, std::default_delete<app::Doc> > "
			"std::make_unique<app::Doc, (anonymous namespace)::Key>((anonymous "
			"namespace)::Key&&)"},
		{"app", "std::shared_ptr<int> std::make_shared<int, int>(int&&)"},
		{"app", "std::__tree<int>::__emplace_unique_key_args<int>"},
		{"app", "std::__split_buffer<int, std::allocator<int>&>::__split_buffer(unsigned "
			"long long)"},
		{"app", "std::vector<int,std::allocator<int> >::_Emplace_reallocate<int const &>"},
		{"app", "std::_Tree<std::_Tset_traits<int,std::less<int>,std::allocator<int>,0> "
			">::_Emplace<int>"},
		{"app", "std::_Hash<std::_Umap_traits<int,int> >::emplace<int>"},
		{"app", "std::_Default_allocate_traits::_Allocate"},
		{"app", "std::_Ref_count_obj2<app::Doc>::_Ref_count_obj2<app::Doc><>"}};
	static const char *const others[][2] = {{"ntdll", "RtlUserThreadStart"}, {"ntdll", NULL},
		{"kernel32", "BaseThreadInitThunk"}, {"app", "my_malloc"}, {"app", "mallocate"},
		{"app", "HeapAlloc"}, {"app", "SysAllocString"}, {"app", "pool::operator_new"},
		{NULL, NULL}, {"app", "VirtualAlloc"},
		/* what the library calls, or is called by it, and what has its types in its name only */
		{"app", "std::vector<int, std::allocator<int> > "
			"app::Pool<int>::grab<std::string>(std::string::value_type)"},
		{"app", "app::fill(std::vector<int, std::allocator<int> >::iterator)"},
		{"app", "void std::__introsort_loop<int*, long long, bool (*)(int, int)>(int*, "
			"int*, long long, bool (*)(int, int))"},
		{"app", "void std::sort<int*, bool (*)(int, int)>(int*, int*, bool (*)(int, int))"},
		{"app", "std::_Function_handler<void (), "
			"app::run()::{lambda()#1}>::_M_invoke(std::_Any_data const&)"},
		{"app", "std::_Func_impl_no_alloc<app::run::<lambda_1>,void>::_Do_call"},
		{"app", "std::thread::_State_impl<std::thread::_Invoker<std::tuple<app::run()::{"
			"lambda()#1}> > >::_M_run()"},
		{"app", "std::thread::_Invoke<std::tuple<void (__cdecl*)(void)>,0>"},
		{"app", "std::invoke<app::Call>"}};
	struct strip strip;
	struct frames frames;

	strip_init(&strip);
	frames_init(&frames);
	strip_add_known(&strip);
	for (int pass = 0; pass < 2; pass++) { /* again from what was remembered */
		for (size_t i = 0; i < sizeof(layers) / sizeof(*layers); i++) {
			struct frame frame = {.module = layers[i][0], .function = layers[i][1]};

			frames_clear(&frames);
			frames_add(&frames, &frame);
			frames_add(&frames, &(struct frame){.function = "main"});
			strip_frames(&strip, &frames);
			if (frames.count != 1 || strcmp(frames.items[0].function, "main") != 0)
				fail_msg("%s!%s stays", layers[i][0], layers[i][1]);
		}
		for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
			struct frame frame = {.module = others[i][0], .function = others[i][1]};

			frames_clear(&frames);
			frames_add(&frames, &frame);
			frames_add(&frames, &frame);
			strip_frames(&strip, &frames);
			if (frames.count != 2)
				fail_msg("%s!%s goes", others[i][0], others[i][1]);
		}
	}
	frames_release(&frames);
	strip_release(&strip);
}

/* As gcc, clang with its own library, and Microsoft's compiler and tools write them. */
TEST(strings_are_shown_by_their_short_names)
{
	static const char *const names[][2] = {
		{"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> "
		 ">::_M_create(unsigned long long&)",
			"std::string::_M_create(unsigned long long&)"},
		{"std::__1::basic_string<wchar_t, std::__1::char_traits<wchar_t>, "
		 "std::__1::allocator<wchar_t>>::append",
			"std::wstring::append"},
		{"std::vector<std::basic_string<char,std::char_traits<char>,std::allocator<char> "
		 ">,int>::f",
			"std::vector<std::string,int>::f"},
		{"app::f(class std::basic_string<wchar_t,struct std::char_traits<wchar_t>,class "
		 "std::allocator<wchar_t> > const &)",
			"app::f(std::wstring const &)"},
		{"app::f(int, std::__cxx11::basic_string<char, std::char_traits<char>, "
		 "std::allocator<char> >, int)",
			"app::f(int, std::string, int)"},
		{"std::__cxx11::list<int>::push_back(int)", "std::list<int>::push_back(int)"},
		/* others */
		{"std::basic_string<char, app::traits, std::allocator<char> >::f",
			"std::basic_string<char, app::traits, std::allocator<char> >::f"},
		{"std::basic_string<char, std::char_traits<char>, std::allocator<char",
			"std::basic_string<char, std::char_traits<char>, std::allocator<char"},
		{"mystd::__1::f(app::std::__1::g)", "mystd::__1::f(app::std::__1::g)"},
		{"std::", "std::"}, {"f", "f"}};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct maker maker = dump_new((struct maker){0});
		put_symbol_note(&maker, APP_BASE + 0x1010, names[i][0], 5, NULL, 0);
		put_block(&maker, 10, 8, "A", 1);
		dump_end(&maker, "new.txt");
		struct result *result = ask_hdiff("new.txt");
		assert_int_equal(result->row_count, 1);
		assert_memory_equal(result->rows[0].frames, "\tapp!", 5);
		assert_memory_equal(result->rows[0].frames + 5, names[i][1], strlen(names[i][1]));
		assert_memory_equal(result->rows[0].frames + 5 + strlen(names[i][1]), "+5\n", 3);
	}
}

/* ---------------------------------------------------------------- suppressions */

static uint64_t left_by(const char *list)
{
	make();
	write_list(list);
	return shown_of("--suppress", "more.txt", "new.txt");
}

TEST(a_suppression_matches_function_file_or_module)
{
	assert_int_equal(left_by("leak:leak_here\n"), 31 - 1);
	assert_int_equal(left_by("leak:eak_he\n"), 31 - 1);
	assert_int_equal(left_by("leak:C:\\src\\main.c\n"), 31 - 1 - 2 - 16);
	assert_int_equal(left_by("leak:^lib$\n"), 16);
	assert_int_equal(left_by("leak:^lib.dll$\n"), 16);
	assert_int_equal(left_by("leak:^lib.exe$\n"), 31);
	assert_int_equal(left_by("leak:^lib!malloc$\n"), 16);
	assert_int_equal(left_by("leak:LEAK_HERE\n"), 31);
}

TEST(a_suppression_of_everything_is_refused)
{
	static const char *const lists[] = {"leak:*", "leak:**", "leak:^*", "leak:^*$", "leak:*$",
		"leak:^$", "leak:^", "leak:$"};

	make();
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		write_list(lists[i]);
		refused("hdiff: more.txt:1: wrong usage (this would suppress everything)",
			"--suppress", "more.txt", "new.txt");
	}
}

/* Modules have moved, and only the old dump has names: its address is in the old dump's module. */
TEST(a_module_of_the_old_dump_has_its_extension_too)
{
	static const char *const lists[] = {"leak:^lib.dll$", "leak:^lib.exe$"};

	EACH_DUMP (maker, is_new, .slide = is_new ? 0x10000000 : 0) {
		for (unsigned i = 0; !is_new && i < 2; i++)
			put(&maker, "// hsnap: name addr=%" PRIX64 " function=f offset=5",
				i ? LIB_BASE + 0x501 : APP_BASE + 0x1010);
		put_block(&maker, is_new ? 64 : 32, 8, "1", 1);
	}
	for (int i = 0; i < 2; i++) {
		write_list(lists[i]);
		struct result *result = ask_hdiff("--suppress", "more.txt", "old.txt", "new.txt");
		assert_int_equal(result->status, 0);
		assert_int_equal(result->row_count, i);
	}
}

TEST(a_suppression_has_wildcards_and_anchors)
{
	assert_int_equal(left_by("leak:^eak\n"), 31);
	assert_int_equal(left_by("leak:leak_h$\n"), 31);
	assert_int_equal(left_by("leak:^leak_here$\n"), 31 - 1);
	assert_int_equal(left_by("leak:^Cache*fill\n"), 31 - 2);
	assert_int_equal(left_by("leak:e*k*re$\n"), 31 - 1);
	assert_int_equal(left_by("# all\n\nleak:*i*\n"), 31 - 1 - 2 - 4 - 8 - 16);
	assert_int_equal(left_by("leak:leak_here\nleak:helper"), 31 - 1 - 8);
}

/* Stack 2 is malloc, Cache::fill<int>, malloc, main; 8 is lib+..., malloc, helper. */
TEST(a_suppression_may_be_of_frames_that_follow_each_other)
{
	assert_int_equal(left_by("leak:malloc < main\n"), 31 - 2);
	assert_int_equal(left_by("leak:^malloc$ < Cache < lib!malloc < ^app!main$\n"), 31 - 2);
	assert_int_equal(left_by("leak:malloc < ... < main\n"), 31 - 1 - 2);
	assert_int_equal(left_by("leak:malloc < ... < malloc\n"), 31 - 2);
	assert_int_equal(left_by("leak:main < malloc\n"), 31);
	assert_int_equal(left_by("leak:main < ...\n"), 31 - 1 - 2 - 16);
	assert_int_equal(left_by("leak:Cache < malloc < ... < main < ...\n"), 31 - 2);
	assert_int_equal(left_by("leak:Cache < malloc < ... < main < nothing\n"), 31);
	assert_int_equal(
		left_by("leak:helper\nleak:malloc < main\nleak:leak_here\n"), 31 - 8 - 2 - 1);
	for (int i = 0; i < 3; i++) {
		static const char *const all[] = {"leak:... < *", "leak:...", "leak:f < ^$"};

		write_list(all[i]);
		refused("this would suppress everything", "--suppress", "more.txt", "new.txt");
	}
}

static int64_t left_of_stackless(bool has_stacks, const char *list)
{
	int64_t left;

	struct maker maker = dump_new((struct maker){.is_ours = true});
	if (has_stacks)
		put_block(&maker, 100, 8, "A", 1);
	put_stackless(&maker, 3, 30, 8);
	dump_end(&maker, "new.txt");
	write_list(list);
	struct result *result = ask_hdiff("--suppress", "more.txt", "new.txt");
	assert_int_equal(result->status, 0);
	left = result->requested;
	return left;
}

/* By the words that are shown for it, and by nothing that is part of them. */
TEST(what_has_no_stack_is_suppressed_by_its_words_alone)
{
	assert_int_equal(left_of_stackless(true, "leak:(no stack recorded)\n"), 100);
	assert_int_equal(left_of_stackless(true, "leak:stack\nleak:(no stack\n"), 130);
	/* They are all that a gate could look at. */
	assert_int_equal(left_of_stackless(false, "leak:(no stack recorded)\n"), 30);
}

TEST(what_is_built_in_says_one_line)
{
	left_of_stackless(true, "");
	struct result *result = ask_hdiff("--suppress=runtime", "new.txt");
	assert_int_equal(result->requested, 100);
	assert_string_equal(result->words,
		"hdiff: --suppress: runtime suppressed stacks: 1, bytes: 30, blocks: 3\n"
		"hdiff: 3 of 3 frames have no name: 2 in app, 1 in lib; hsym --explain new.txt "
		"says why\n");
}

TEST(each_suppression_says_what_it_took)
{
	make();
	write_list("leak:nothing\nleak:malloc\nleak:main\nleak:leak\n");
	struct result *result = ask_hdiff("--suppress", "more.txt", "new.txt");
	assert_int_equal(result->status, 0);
	assert_int_equal(result->row_count, 0);
	assert_non_null(strstr(result->words,
		"hdiff: more.txt:1: leak:nothing suppressed nothing; it may be obsolete\n"));
	/* malloc is in 1, 2, 4 and 8: each stack counts for the first line that matches. */
	assert_non_null(strstr(result->words,
		"hdiff: more.txt:2: leak:malloc suppressed stacks: 4, bytes: 15, blocks: 4\n"));
	assert_non_null(strstr(result->words,
		"hdiff: more.txt:3: leak:main suppressed stacks: 1, bytes: 16, blocks: 1\n"));
	assert_non_null(strstr(result->words, "more.txt:4: leak:leak suppressed nothing;"));
}

TEST(what_is_filtered_out_is_not_suppressed)
{
	make();
	write_list("leak:malloc\n");
	struct result *result = ask_hdiff("--suppress=more.txt", "-x", "leak_here", "new.txt");
	assert_int_equal(result->row_count, 1);
	assert_int_equal(result->rows[0].new_bytes, 16);
	assert_non_null(strstr(result->words, " stacks: 3, bytes: 14, blocks: 3\n"));
}
