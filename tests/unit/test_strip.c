#include "tests/unit/t.h"

#include "tests/unit/test_query.h"

#include "diff/query/strip.h"

static made_stack stacks[] = {
	{NEW, MALLOC, LEAK, MAIN}, /* 1 */
	{MALLOC, CACHE, MALLOC, MAIN}, /* 2 */
	{MALLOC, NEW}, /* 4 */
	{LIB_NAMELESS, MALLOC, HELPER}, /* 8 */
	{NOWHERE, MAIN}, /* 16 */
};
STACKS_IN_NEW_TXT(stacks)

static void write_list(const char *text)
{
	write_bytes("more.txt", text, strlen(text));
}

/* Checks the functions in the shown row of 2^n bytes, innermost first. The functions are numbers of
 * made frames. */
static void check_frames(const struct result *result, unsigned n, const unsigned *wanted)
{
	for (size_t i = 0; i < result->row_count; i++) {
		const char *at = result->rows[i].frames;

		if (result->rows[i].new_bytes != UINT64_C(1) << n)
			continue;
		for (; *wanted; wanted++, at = next_text(at)) {
			const struct made_frame *frame = &made_frames[*wanted];
			char text[100] = "\t";

			if (frame->base)
				snprintf(text, sizeof(text), "\t%s%s%s",
					frame->base == APP_BASE ? "app" : "lib",
					frame->function ? "!" : "+",
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

TEST(stacks_are_stripped_when_asked_for_from_inside_out_to_first_other_frame)
{
	struct result *result = ask_hdiff("new.txt");

	check_frames(result, 0, FRAMES_OF(NEW, MALLOC, LEAK, MAIN));
	result = ask_hdiff("--strip", "--no-strip", "new.txt");
	check_frames(result, 1, FRAMES_OF(MALLOC, CACHE, MALLOC, MAIN));
	result = ask_hdiff("--strip", "new.txt");
	check_frames(result, 0, FRAMES_OF(LEAK, MAIN));
	check_frames(result, 1, FRAMES_OF(CACHE, MALLOC, MAIN));
	check_frames(result, 2, FRAMES_OF(NEW)); /* the last frame is never stripped */
	check_frames(result, 3, FRAMES_OF(LIB_NAMELESS, MALLOC, HELPER));
	check_frames(result, 4, FRAMES_OF(NOWHERE, MAIN));
}

TEST(frames_can_be_turned_round)
{
	struct result *result = ask_hdiff("--invert", "new.txt");

	check_frames(result, 0, FRAMES_OF(MAIN, LEAK, MALLOC, NEW));
	check_frames(result, 4, FRAMES_OF(MAIN, NOWHERE));
	result = ask_hdiff("--invert", "--strip", "new.txt");
	check_frames(result, 0, FRAMES_OF(MAIN, LEAK));
}

TEST(each_candidate_is_turned_round_by_itself)
{
	struct maker maker = dump_new((struct maker){0});
	write_names(&maker);
	put(&maker, "%s", "");
	write_entry(&maker, 1, 8, "A");
	write_frames(&maker, (made_stack){NEW, LEAK, MAIN});
	put(&maker, "\tAlias");
	write_frames(&maker, (made_stack){MALLOC, CACHE});
	put(&maker, "%s", "");
	dump_end(&maker, "new.txt");
	struct result *result = ask_rows(1, "--invert", "--strip", "new.txt");
	assert_string_equal(result->rows[0].frames,
		"\tapp!main+5 (C:\\src\\main.c, 4)\n\tapp!leak_here+5 (C:\\src\\leak.c, 3)\n"
		"\tAlias\n\tapp!Cache::fill<int>+5 (C:\\src\\cache.cpp, 5)\n");
	result = ask_hdiff("--invert", "new.txt");
	assert_string_equal(result->rows[0].frames,
		"\tapp!main+5 (C:\\src\\main.c, 4)\n\tapp!leak_here+5 (C:\\src\\leak.c, 3)\n"
		"\tlib!operator new(unsigned long long)+5\n"
		"\tAlias\n\tapp!Cache::fill<int>+5 (C:\\src\\cache.cpp, 5)\n\tlib!malloc+5\n");
}

TEST(strip_file_adds_to_what_is_known)
{
	write_list("# ours\r\n\r\n  app!leak*  \nLIB!*\n\t#app!main");
	struct result *result = ask_hdiff("--strip-file", "more.txt", "new.txt");
	check_frames(result, 0, FRAMES_OF(MAIN));
	check_frames(result, 3, FRAMES_OF(HELPER)); /* every frame of lib, with or without a name */
	check_frames(result, 4, FRAMES_OF(NOWHERE, MAIN));
	write_list("*!*");
	result = ask_hdiff("--strip-file", "more.txt", "new.txt");
	check_frames(result, 4, FRAMES_OF(MAIN));
	write_list("app!LEAK*\napp!eak_here\napp!leak_her\n");
	result = ask_hdiff("--strip-file", "more.txt", "new.txt");
	check_frames(result, 0, FRAMES_OF(LEAK, MAIN));
}

TEST(bad_line_is_named_with_its_place)
{
	static const char *const bad[] = {"malloc", "!malloc", "lib!"};
	static char line[100000];

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

/* The names come from documents of Microsoft, GNU and the standards. facts/umdh.md has a log with
 * the names of ntdll and KERNELBASE. */
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
		/* From Wine's sources and GLib's manual. */
		{"combase", "allocator_Alloc"}, {"combase", "allocator_Realloc"},
		{"combase", "IMalloc_Alloc"}, {"oleaut32", "alloc_bstr"}, {"mshtml", "heap_alloc"},
		{"jscript", "heap_alloc_zero"}, {"jscript", "heap_realloc"},
		{"kernelbase", "heap_strdupAtoW"}, {"d3d9", "heap_calloc"}, {"comctl32", "Alloc"},
		{"comctl32", "ReAlloc"}, {"OLEAUT32", "SAFEARRAY_AllocDescriptor"},
		{"OLEAUT32", "SAFEARRAY_Malloc"}, {"SHELL32", "SHAlloc"}, {"shlwapi", "SHStrDupW"},
		{"libglib-2.0-0", "g_malloc0_n"}, {"libvips-42", "g_realloc"},
		{"app", "g_slice_alloc0"}, {"app", "g_strdup_printf"},
		/* Frames without a name are the normal case without symbols. */
		{"ntdll", NULL}, {"NTDLL", NULL}, {"KERNELBASE", NULL}, {"kernel32", NULL},
		{"ucrtbase", NULL}, {"ucrtbased", NULL}, {"MSVCR80", NULL}, {"msvcrt", NULL},
		{"VCRUNTIME140", NULL}, {"msvcp140", NULL}, {"verifier", NULL}, {"OLEAUT32", NULL},
		{"combase", NULL}, {"ole32", NULL}, {"ntdll", "ZwAllocateVirtualMemoryEx"},
		{"ntdll", "ZwMapViewOfSection"},
		/* Names of gcc, clang and Microsoft's compiler, with parameters and without. */
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
		{"app", "std::pmr::monotonic_buffer_resource::_M_new_buffer(unsigned long long)"},
		{"app", "std::__tree<int>::__emplace_unique_key_args<int>"},
		{"app", "std::__split_buffer<int, std::allocator<int>&>::__split_buffer(unsigned "
			"long long)"},
		{"app", "std::vector<int,std::allocator<int> >::_Emplace_reallocate<int const &>"},
		{"app", "std::_Tree<std::_Tset_traits<int,std::less<int>,std::allocator<int>,0> "
			">::_Emplace<int>"},
		{"app", "std::_Hash<std::_Umap_traits<int,int> >::emplace<int>"},
		{"app", "std::_Default_allocate_traits::_Allocate"},
		{"app", "std::_Ref_count_obj2<app::Doc>::_Ref_count_obj2<app::Doc><>"},
		{"app", "std::filesystem::__cxx11::path::_List::reserve(int, bool)"},
		{"app", "std::basic_stringbuf<char, std::char_traits<char>, "
			"std::allocator<char> >::overflow(int)"},
		{"app", "std::basic_istream<char, std::char_traits<char> >& std::getline<char, "
			"std::char_traits<char>, std::allocator<char> "
			">(std::basic_istream<char, std::char_traits<char> >&, std::string&, "
			"char)"},
		{"app", "std::ostream& std::ostream::_M_insert<double>(double)"},
		{"app", "void std::any::_Manager_external<Big>::_S_create<Big>("
			"std::any::_Storage&, Big&&)"}};
	static const char *const others[][2] = {{"ntdll", "RtlUserThreadStart"}, {"app", NULL},
		{"ntdllx", NULL}, {"shell32", NULL}, {"ntdll", "LdrpLoadDll"}, {"app", "Alloc"},
		{"app", "heap_allocation"}, {"app", "allocator_Alloc"}, {"app", "g_object_new"},
		{"app", "my_g_malloc"}, {"kernel32", "BaseThreadInitThunk"}, {"app", "my_malloc"},
		{"app", "mallocate"}, {"app", "HeapAlloc"}, {"app", "SysAllocString"},
		{"app", "pool::operator_new"}, {NULL, NULL}, {"app", "VirtualAlloc"},
		/* Functions that the library calls, callers of the library, and functions whose
		 * names only contain the library's types. */
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
	const size_t layer_count = sizeof(layers) / sizeof(*layers);
	const size_t other_count = sizeof(others) / sizeof(*others);
	struct strip strip;
	struct frames frames;

	strip_init(&strip);
	frames_init(&frames);
	strip_add_known(&strip);
	for (size_t i = 0; i < 2 * (layer_count + other_count); i++) {
		size_t at = i % (layer_count + other_count); /* the second pass reads the cache */
		bool is_layer = at < layer_count;
		const char *const *name = is_layer ? layers[at] : others[at - layer_count];

		frames_clear(&frames);
		frames_add(&frames, &(struct frame){.module = name[0], .function = name[1]});
		frames_add(&frames, &(struct frame){.function = "main"});
		strip_frames(&strip, &frames);
		if (frames.count != (is_layer ? 1 : 2) ||
			strcmp(frames.items[frames.count - 1].function, "main") != 0)
			fail_msg("%s!%s: %zu are left", name[0], name[1], frames.count);
	}
	frames_release(&frames);
	strip_release(&strip);
}

/* The folders are those of Debian's and MSYS2's gcc, of llvm-mingw, of Visual Studio 2010, 2015 and
 * later, and of the sources named in Microsoft's PDBs. */
TEST(frames_of_cpp_librarys_sources_are_stripped_whatever_their_names)
{
	static const char *const library[] = {
		"/usr/lib/gcc/x86_64-w64-mingw32/12-posix/include/c++/bits/std_function.h",
		"/usr/lib/gcc/x86_64-w64-mingw32/12-posix/include/c++/any",
		"C:/msys64/mingw64/include/c++/13.2.0/bits/stl_algo.h",
		"/opt/llvm-mingw/x86_64-w64-mingw32/include/c++/v1/__functional/function.h",
		"../../../../../src/libstdc++-v3/src/c++17/fs_path.cc", "include/c++/thread",
		"C:\\Program Files\\Microsoft Visual Studio\\2022\\Community\\VC\\Tools\\MSVC\\"
		"14.38.33130\\include\\functional",
		"c:\\program files (x86)\\microsoft visual studio 14.0\\vc\\include\\xmemory0",
		"D:\\a\\_work\\1\\s\\src\\vctools\\crt\\github\\stl\\inc\\xstring",
		"E:\\sdk\\crt\\Include\\xtree"};
	static const char *const others[] = {"C:\\src\\app\\include\\pool.h",
		"/src/include/map/tile.cpp", "/src/c++/any.cpp", "/src/my-libcxx/pool.cpp",
		"C:\\include\\c\\any.h", "thread", "lib.cpp", "",
		"C:\\work\\VC\\Tools\\include.cpp", NULL};
	const size_t library_count = sizeof(library) / sizeof(*library);
	struct strip strip, own;

	strip_init(&strip);
	strip_init(&own);
	strip_add_known(&strip);
	strip_add_start_up(&own);
	for (size_t i = 0; i < library_count + sizeof(others) / sizeof(*others); i++) {
		const char *file = i < library_count ? library[i] : others[i - library_count];
		const struct frame frame = {.module = "app",
			.function = "_M_create<run()::<lambda()> >",
			.file = file,
			.line = 7};

		for (int again = 0; again < 2; again++) {
			if (strip_matches(&strip, &frame) != (i < library_count))
				fail_msg("%s", file);
			/* This list has only the user's lines. */
			assert_false(strip_matches(&own, &frame));
		}
	}
	strip_release(&strip);
	strip_release(&own);
}

/* Spellings by gcc, by clang with its own library, and by Microsoft's compiler and tools. */
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
		/* not strings */
		{"std::basic_string<char, app::traits, std::allocator<char> >::f",
			"std::basic_string<char, app::traits, std::allocator<char> >::f"},
		{"std::basic_string<char, std::char_traits<char>, std::allocator<char",
			"std::basic_string<char, std::char_traits<char>, std::allocator<char"},
		{"mystd::__1::f(app::std::__1::g)", "mystd::__1::f(app::std::__1::g)"},
		{"std::", "std::"}, {"f", "f"}};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct maker maker = dump_new((struct maker){0});
		write_symbol_note(&maker, APP_BASE + 0x1010, names[i][0], 5, NULL, 0);
		put_block(&maker, 10, 8, "A", 1);
		dump_end(&maker, "new.txt");
		struct result *result = ask_rows(1, "new.txt");
		assert_memory_equal(result->rows[0].frames, "\tapp!", 5);
		assert_memory_equal(result->rows[0].frames + 5, names[i][1], strlen(names[i][1]));
		assert_memory_equal(result->rows[0].frames + 5 + strlen(names[i][1]), "+5\n", 3);
	}
}

/* ---------------------------------------------------------------- suppressions */

static uint64_t left_by(const char *list)
{
	write_list(list);
	return shown_of("--suppress", "more.txt", "new.txt");
}

TEST(suppression_matches_function_file_or_module_with_wildcards_and_anchors)
{
	assert_int_equal(left_by("leak:leak_here\n"), 31 - 1);
	assert_int_equal(left_by("leak:eak_he\n"), 31 - 1);
	assert_int_equal(left_by("leak:C:\\src\\main.c\n"), 31 - 1 - 2 - 16);
	assert_int_equal(left_by("leak:^lib$\n"), 16);
	assert_int_equal(left_by("leak:^lib.dll$\n"), 16);
	assert_int_equal(left_by("leak:^lib.exe$\n"), 31);
	assert_int_equal(left_by("leak:^lib!malloc$\n"), 16);
	assert_int_equal(left_by("leak:LEAK_HERE\n"), 31);
	assert_int_equal(left_by("leak:^eak\n"), 31);
	assert_int_equal(left_by("leak:leak_h$\n"), 31);
	assert_int_equal(left_by("leak:^leak_here$\n"), 31 - 1);
	assert_int_equal(left_by("leak:^Cache*fill\n"), 31 - 2);
	assert_int_equal(left_by("leak:e*k*re$\n"), 31 - 1);
	assert_int_equal(left_by("# all\n\nleak:*i*\n"), 31 - 1 - 2 - 4 - 8 - 16);
	assert_int_equal(left_by("leak:leak_here\nleak:helper"), 31 - 1 - 8);
}

TEST(suppression_of_everything_is_refused)
{
	static const char *const lists[] = {"leak:*", "leak:**", "leak:^*", "leak:^*$", "leak:*$",
		"leak:^$", "leak:^", "leak:$"};

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		write_list(lists[i]);
		refused("hdiff: more.txt:1: wrong usage (this would suppress everything)",
			"--suppress", "more.txt", "new.txt");
	}
}

/* The modules have moved. Only the old dump has names, for an address in its own module. */
TEST(module_of_old_dump_has_its_extension_too)
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
		ask_rows(i, "--suppress", "more.txt", "old.txt", "new.txt");
	}
}

/* Stack 2 is malloc, Cache::fill<int>, malloc, main. Stack 8 is lib+..., malloc, helper. */
TEST(suppression_may_be_of_frames_that_follow_each_other)
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
	struct maker maker = dump_new((struct maker){.is_ours = true});
	if (has_stacks)
		put_block(&maker, 100, 8, "A", 1);
	write_stackless(&maker, 3, 30, 8);
	dump_end(&maker, "new.txt");
	write_list(list);
	return ask_status(0, "--suppress", "more.txt", "new.txt")->requested;
}

/* A pattern must match the whole displayed text, not a part of it. */
TEST(what_has_no_stack_is_suppressed_by_its_words_alone)
{
	assert_int_equal(left_of_stackless(true, "leak:(no stack recorded)\n"), 100);
	assert_int_equal(left_of_stackless(true, "leak:stack\nleak:(no stack\n"), 130);
	/* A growth limit can match only this text. */
	assert_int_equal(left_of_stackless(false, "leak:(no stack recorded)\n"), 30);
}

TEST(built_in_list_reports_one_line)
{
	left_of_stackless(true, "");
	struct result *result = ask_hdiff("--suppress=runtime", "new.txt");
	assert_int_equal(result->requested, 100);
	assert_string_equal(result->words,
		"hdiff: --suppress: runtime suppressed stacks: 1, bytes: 30, blocks: 3\n"
		"hdiff: 3 of 3 frames have no name: 2 in app, 1 in lib; hsym --explain new.txt "
		"shows why\n");
}

TEST(each_suppression_reports_what_it_suppressed)
{
	write_list("leak:nothing\nleak:malloc\nleak:main\nleak:leak\n");
	struct result *result = ask_rows(0, "--suppress", "more.txt", "new.txt");
	assert_non_null(strstr(result->words,
		"hdiff: more.txt:1: leak:nothing suppressed nothing: no changed "
		"stack matches it\n"));
	/* malloc is in stacks 1, 2, 4 and 8. Each stack counts for the first line that matches. */
	assert_non_null(strstr(result->words,
		"hdiff: more.txt:2: leak:malloc suppressed stacks: 4, bytes: 15, blocks: 4\n"));
	assert_non_null(strstr(result->words,
		"hdiff: more.txt:3: leak:main suppressed stacks: 1, bytes: 16, blocks: 1\n"));
	assert_non_null(strstr(result->words,
		"more.txt:4: leak:leak suppressed nothing: an earlier suppression covers"));
}

TEST(what_is_filtered_out_is_not_suppressed)
{
	write_list("leak:malloc\n");
	struct result *result = ask_rows(1, "--suppress=more.txt", "-x", "leak_here", "new.txt");
	assert_int_equal(result->rows[0].new_bytes, 16);
	assert_non_null(strstr(result->words, " stacks: 3, bytes: 14, blocks: 3\n"));
}

/* ---------------------------------------------------------------- limits */

TEST(growth_over_limit_is_status_1_and_reports_excess)
{
	struct result *result =
		ask_expect(1, "hdiff: growth of 31 bytes is 1 byte over the limit of 30 bytes\n",
			"--max-growth", "30", "new.txt");

	assert_int_equal(result->row_count, 5);
	ask_expect(1, "hdiff: growth of 5 blocks is 2 blocks over the limit of 3 blocks\n",
		"--max-growth=1K,3", "new.txt");
	result = ask_expect(1, "growth of 31 bytes is 31 bytes over the limit of 0 bytes",
		"--max-growth=0,0", "new.txt");
	assert_non_null(
		strstr(result->words, "growth of 5 blocks is 5 blocks over the limit of 0 blocks"));
}

TEST(growth_up_to_limit_is_status_0)
{
	write_stacks("old.txt", stacks, STACKS);
	write_stacks("more.txt", stacks, 3);
	ask_status(0, "--max-growth", "0,0", "--force", "old.txt", "new.txt"); /* equal dumps */
	for (int i = 0; i < 2; i++) {
		static const char *const asked[][3] = {
			{"31,5", "new.txt", NULL}, {"0,0", "old.txt", "more.txt"}};

		assert_null(strstr(
			ask_status(0, "--max-growth", asked[i][0], asked[i][1], asked[i][2])->words,
			"limit"));
	}
}

TEST(limit_is_for_what_is_selected_not_for_what_is_shown)
{
	ask_status(1, "--max-growth", "30", "-n", "1", "new.txt");
	ask_status(0, "--max-growth", "3", "-i", "leak|cache", "new.txt");
	write_list("leak:main\n"); /* leaves stacks 4 and 8 */
	ask_status(0, "--max-growth", "12", "--suppress", "more.txt", "new.txt");
	ask_expect(1, "growth of 12 bytes is 1 byte over the limit of 11 bytes\n", "--max-growth",
		"11", "--suppress", "more.txt", "new.txt");
}

static void write_one(struct maker *maker, uint64_t bytes, const char *id, made_stack stack)
{
	put(maker, "%s", "");
	write_entry(maker, bytes, 8, id);
	write_frames(maker, stack);
	put(maker, "%s", "");
}

/* One stack frees a block of 40 bytes, and two others allocate 30 and 10. The sum is 0 bytes and 1
 * block. */
TEST(what_shrank_hides_no_growth)
{
	struct maker old = dump_new((struct maker){0}), now;
	write_names(&old);
	write_one(&old, 40, "1", (made_stack){MALLOC, CACHE, MAIN});
	dump_end(&old, "old.txt");
	now = dump_new((struct maker){0});
	write_names(&now);
	write_one(&now, 30, "2", (made_stack){MALLOC, LEAK, MAIN});
	write_one(&now, 10, "3", (made_stack){MALLOC, HELPER});
	dump_end(&now, "new.txt");

	ask_expect(1, "hdiff: growth of 40 bytes is 1 byte over the limit of 39 bytes\n",
		"--max-growth", "39", "old.txt", "new.txt");
	ask_expect(1, "hdiff: growth of 2 blocks is 1 block over the limit of 1 block\n",
		"--max-growth", "40,1", "old.txt", "new.txt");
	ask_status(0, "--max-growth", "40,2", "old.txt", "new.txt");
	ask_expect(1,
		"hdiff: growth of one stack of 30 bytes is 1 byte over the limit of 29 bytes: "
		"app!leak_here < app!main\n",
		"--max-growth-row", "29", "old.txt", "new.txt");
	ask_status(0, "--max-growth-row", "30,1", "old.txt", "new.txt");
	ask_expect(1, "growth of one stack of 1 block is 1 block over", "--max-growth-row", "30,0",
		"old.txt", "new.txt");
	ask_status(0, "--max-growth-net", "0,1", "old.txt", "new.txt");
	ask_expect(1, "hdiff: net growth of 1 block is 1 block over the limit of 0 blocks\n",
		"--max-growth-net", "0,0", "old.txt", "new.txt");
	ask_expect(1, "net growth of 10 bytes", "--max-growth-net", "9", "-i", "helper", "new.txt");
}

TEST(amounts_over_limit_have_units)
{
	struct maker maker = dump_new((struct maker){0});
	write_one(&maker, 100000, "1", (made_stack){MALLOC, LEAK, MAIN});
	dump_end(&maker, "new.txt");
	ask_expect(1,
		"hdiff: growth of 97.7 KiB (100000 bytes) is 33.7 KiB over the limit of 64.0 KiB\n",
		"--max-growth", "64K", "new.txt");
}

/* Unless --force is given, missing data outweighs excess growth. */
TEST(growth_of_damaged_dump_is_reported_with_status_2)
{
	struct maker maker = dump_new((struct maker){0});
	put_block(&maker, 40, 8, "1", 1);
	put(&maker, "1 bytes + 2 at zz by BackTrace1");
	dump_end(&maker, "new.txt");
	for (int is_forced = 0; is_forced < 2; is_forced++) {
		struct result *result =
			ask_expect(is_forced ? 1 : 2, "growth of 40 bytes is 1 byte over the limit",
				"--max-growth", "39", is_forced ? "--force" : "--strip", "new.txt");

		assert_int_equal(result->row_count, 1);
	}
}

static const char incomplete[] = "// hsnap: incomplete missing=2";
static const char whole[] = "// hsnap: incomplete missing=0";
static const char also_whole[] = "// hsnap: incomplete missing=00"; /* equal dumps are refused */
/* A dump of a version without that note. */
static const char unwalked[] = "// hsnap: heap addr=5000 kind=unknown unwalked=1";

static void make_one_block(const char *path, const char *note)
{
	struct maker maker = dump_new((struct maker){.is_ours = true});
	put(&maker, "%s", note);
	put_block(&maker, 40, 8, "1", 1);
	dump_end(&maker, path);
}

static void expect_judged(const char *old_note, const char *new_note)
{
	bool is_old_incomplete = old_note != whole,
	     is_new_incomplete = new_note != whole && new_note != also_whole;

	make_one_block("old.txt", old_note);
	make_one_block("new.txt", new_note);
	struct result *result = ask_status(is_old_incomplete || is_new_incomplete ? 2 : 0,
		"--max-growth", "1T", "old.txt", "new.txt");
	assert_int_equal(
		strstr(result->words, "old.txt: warning: --max-growth") != NULL, is_old_incomplete);
	assert_int_equal(
		strstr(result->words, "new.txt: warning: --max-growth") != NULL, is_new_incomplete);
	ask_status(0, "--max-growth", "1T", "old.txt", "new.txt", "--force");
	ask_status(0, "old.txt", "new.txt");
}

TEST(growth_of_incomplete_dump_is_not_judged)
{
	expect_judged(whole, also_whole);
	expect_judged(incomplete, whole);
	expect_judged(whole, unwalked);
	expect_judged(unwalked, incomplete);
	ask_status(2, "--max-growth", "39", "new.txt");
	ask_status(1, "--max-growth", "39", "--force", "new.txt");
}

/* ---------------------------------------------------------------- options */

TEST(wrong_values_are_refused_with_their_option)
{
	refused("hdiff: --max-growth 5X: ", "--max-growth", "5X", "new.txt");
	refused("hdiff: --max-growth 1K,: ", "--max-growth=1K,", "new.txt");
	refused("hdiff: --max-growth ,5: ", "--max-growth", ",5", "new.txt");
	refused("decimal number", "--max-growth", "5,", "new.txt");
	refused("the built-in list is called runtime", "--suppress=Runtime", "new.txt");
	refused("the built-in list is called runtime", "--suppress", "none.txt", "new.txt");
	refused("hdiff: --max-growth-row 1M/h: ", "--max-growth-row", "1M/h", "new.txt");
	refused("hdiff: --max-growth-net 1K,x: ", "--max-growth-net", "1K,x", "new.txt");
	refused("hdiff: --max-growth 5Q: ", "-max-growth:5Q", "new.txt");
	refused("hdiff: --min-bytes 99999999999T: ", "--min-bytes", "99999999999T", "new.txt");
	refused("hdiff: --min-count 1K: ", "--min-count", "1K", "new.txt");
	refused("hdiff: -n -1: ", "-n", "-1", "new.txt");
	refused("hdiff: -n 5x: ", "-n5x", "new.txt");
	refused("hdiff: --heap 12G4: ", "--heap", "12G4", "new.txt");
	refused("hdiff: --heap 0x: ", "--heap", "0x", "new.txt");
	refused("hdiff: --heap 11112222333344445: ", "--heap", "11112222333344445", "new.txt");
	refused("hdiff: --sort size: ", "--sort", "size", "new.txt");
	refused("bytes, count, new, old, total, name", "--sort", "size", "new.txt");
	refused("hdiff: --group line: ", "--group", "line", "new.txt");
	refused("stack, function, file, module, heap, memory", "--group", "line", "new.txt");
	refused("hdiff: --match name: ", "--match", "name", "new.txt");
	refused("auto, id, address, module, symbol", "--match", "name", "new.txt");
	refused("hdiff: --input-base 8: ", "--input-base", "8", "new.txt");
	refused("hex, decimal", "--input-base", "8", "new.txt");
	refused("hdiff: -o xml: ", "-o:xml", "new.txt");
	refused("hdiff: --format xml: ", "--format", "xml", "new.txt");
	refused("hdiff: -i a(: ", "--include", "a(", "new.txt");
	refused("hdiff: -x a(: ", "-x", "a(", "new.txt");
	refused("hdiff: --invert: ", "--group", "module", "--invert", "new.txt");
	refused("hdiff: --sort total: ", "--sort", "total", "new.txt");
	/* The report is in UMDH's format, as with -d. */
	refused("hdiff: --tree: ", "--tree", "new.txt");
	refused("hdiff: --tree: ", "--tree", "-otext", "--group", "module", "new.txt");
}

TEST(standard_input_is_read_once_only)
{
	refused("hdiff: -: wrong usage (standard input can be read only once)", "-", "-");
	refused("hdiff: -: wrong usage (standard", "--suppress", "-", "-");
	refused("hdiff: -: wrong usage (standard", "-", "--strip-file", "-");
	refused("hdiff: -: wrong usage (standard", "--strip-file=-", "--suppress=-", "new.txt");
	refused("hdiff: -: wrong usage (standard", "--suppress=-", "--suppress=-", "new.txt");
}

TEST(unknown_format_lists_what_there_is)
{
	for (const struct report_format *format = report_formats; format->name; format++)
		refused(format->name, "-o", "no such", "new.txt");
	assert_int_equal(shown_of("-o", "umdh", "new.txt"), 31);
	assert_int_equal(shown_of("--format=umdh", "new.txt"), 31);
}

TEST(report_takes_place_of_no_list)
{
	write_list("leak:a\n");
	for (int i = 0; i < 2; i++) {
		ask_expect(2, "hdiff: more.txt: ", "--output", "more.txt",
			i ? "--suppress" : "--strip-file", "more.txt", "new.txt");
	}
}

TEST(of_option_given_twice_last_one_counts)
{
	static const struct {
		const char *first, *second;
		bool strip, hex;
		size_t shown_max;
	} cases[] = {{"--strip", "--no-strip", false, false, SIZE_MAX},
		{"--strip-file=x", "--no-strip", false, false, SIZE_MAX},
		{"--no-strip", "--strip-file=x", true, false, SIZE_MAX},
		{"--hex", "-d", false, false, SIZE_MAX}, {"-d", "--hex", false, true, SIZE_MAX},
		{"-n7", "-n5", false, false, 5}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *argv[] = {(char *)(uintptr_t) "hdiff", (char *)(uintptr_t)cases[i].first,
			(char *)(uintptr_t)cases[i].second};
		struct options options;

		assert_int_equal(options_parse(&options, 3, argv, NULL), 0);
		assert_int_equal(options_strip(&options), cases[i].strip);
		assert_int_equal(options.style.hex, cases[i].hex);
		assert_int_equal(options.shown_max, cases[i].shown_max);
		options_release(&options);
	}
}
