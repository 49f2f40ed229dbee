#include "tests/unit/test_symbolize.h"

static void check_symbol(const struct symbol *a, const struct symbol *b)
{
	assert_string_equal(a->function, b->function);
	assert_int_equal(a->offset_bytes, b->offset_bytes);
	assert_int_equal(!a->file, !b->file);
	if (a->file)
		assert_string_equal(a->file, b->file);
	assert_int_equal(a->line, b->line);
}

static int note(struct symbol_names *names, const char *text)
{
	struct kv pairs;
	int rc;

	kv_init(&pairs);
	rc = kv_parse(&pairs, text, strlen(text));
	if (!rc)
		rc = symbol_names_note(names, &pairs);
	kv_release(&pairs);
	return rc;
}

/* The function contains the labels .l_start and .l_end. llvm-symbolizer returns these labels in
 * place of the function. */
TEST(test_function_that_starts_program_has_its_name)
{
	struct symbols found;
	uint32_t from, returns;

	need_llvm();
	from = scratch_rva(exe, "mainCRTStartup");
	returns = return_in("mainCRTStartup");
	assert_true(scratch_rva(exe, ".l_start") > from);
	start(NULL);
	found = ask(&module, returns);
	assert_true(found.count > 0);
	assert_string_equal(found.list[found.count - 1].function, "mainCRTStartup");
	assert_int_equal(found.list[found.count - 1].offset_bytes, returns - from);
}

TEST(test_what_is_no_call_in_module_has_no_name)
{
	struct symbol_query queries[] = {{.addr = BASE, .module = &module},
		{.addr = BASE + api_return}, {.addr = UINT64_MAX, .module = &module},
		{.addr = BASE + 0x10, .module = &module}}; /* an address in the headers */

	need_exe();
	start(NULL);
	for (size_t i = 0; i < 4; i++) {
		queries[i].found.count = 9;
		symbolizer_resolve(symbolizer, &queries[i], 1);
		assert_int_equal(queries[i].found.count, 0);
	}
	symbolizer_resolve(symbolizer, NULL, 0);
}

/* Symbol tables have functions but no lines. */
TEST(test_without_llvm_symbolizer_symbol_tables_answer)
{
	const struct symbol truths[] = {{.function = "api", .offset_bytes = api_return - api_start},
		{.function = "hidden", .offset_bytes = hidden_return - hidden_start}};

	need_exe();
	setenv("PATH", "/nonexistent", 1);
	start(NULL);
	for (size_t i = 0; i < 2; i++) {
		struct symbols found = ask(&module, i ? hidden_return : api_return);

		assert_int_equal(found.count, 1);
		check_symbol(&found.list[0], &truths[i]);
	}
	setenv("PATH", old_path, 1);
}

/* The questions and answers are far larger than a socket's buffers. */
TEST(test_many_addresses_at_once_do_not_block)
{
	enum { COUNT = 30000 };
	struct symbol_query *queries;

	need_llvm();
	start(NULL);
	queries = calloc(COUNT, sizeof(*queries));
	assert_non_null(queries);
	for (uint32_t i = 0; i < COUNT; i++)
		queries[i] = (struct symbol_query){.addr = BASE + 0x1000 + i, .module = &module};
	queries[COUNT - 1].addr = BASE + hidden_return;
	symbolizer_resolve(symbolizer, queries, COUNT);
	assert_int_equal(queries[COUNT - 1].found.count, 1);
	assert_string_equal(queries[COUNT - 1].found.list[0].function, "hidden");
	assert_ptr_equal(queries[hidden_return - 0x1000].found.list,
		queries[COUNT - 1].found.list); /* resolved once */
	free(queries);
}

TEST(test_names_of_dump_come_first)
{
	struct symbol_names *names = symbol_names_new();
	struct symbol_query query = {.addr = 0x1234, .names = names};

	start(NULL);
	assert_int_equal(note(names, "addr=1234 function=f offset=4"), 0);
	symbolizer_resolve(symbolizer, &query, 1);
	assert_int_equal(query.found.count, 1);
	assert_string_equal(query.found.list[0].function, "f");
	symbol_names_free(names);
}

TEST(test_notes_are_strict_on_numbers_only)
{
	static const char *const bad[] = {"function=f offset=1", "addr=1 offset=1",
		"addr=1 function=f", "addr=0x1 function=f offset=1",
		"addr=1 function=\"\" offset=1", "addr=11111111111111111 function=f offset=1",
		"addr=1 function=f offset=-1", "addr=1 function=f offset=1 line=0",
		"addr=1 function=f offset=1 line=4294967296", "addr=1 function=f offset=1 line=1F"};
	struct symbol_names *names = symbol_names_new();

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(note(names, bad[i]), -ERR_BAD_LINE);
	assert_int_equal(symbol_names_find(names, 1).count, 0);
	assert_int_equal(note(names, "later=x addr=1 function=f offset=AB column=9"), 0);
	assert_int_equal(symbol_names_find(names, 1).list[0].offset_bytes, 0xab);
	symbol_names_free(names);
}

TEST(test_names_survive_writing_and_reading)
{
	static const struct symbol list[] = {
		{.function = "ns::Pool<int, \"x\\y\">::operator!=(A const&)",
			.file = "C:\\my src\\a b.cpp",
			.line = 4294967295u},
		{.function = "inlined", .offset_bytes = 0x10},
		{.function = "\xc3\xa4rger",
			.offset_bytes = UINT64_MAX,
			.file = "/src/=.c",
			.line = 1}};
	struct symbols symbols = {list, 3}, found;
	struct symbol_names *names = symbol_names_new();
	char path[340], line[500];
	struct err err;
	struct out out;
	FILE *file;

	snprintf(path, sizeof(path), "%s/names", dir);
	assert_int_equal(out_open(&out, path, &err), 0);
	symbol_names_write(&out, UINT64_MAX - 1, &symbols, "\n");
	assert_int_equal(out_commit(&out, &err), 0);
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		assert_memory_equal(line, "// hsnap: name ", 15);
		assert_int_equal(note(names, line + 15), 0);
	}
	(void)fclose(file);
	found = symbol_names_find(names, UINT64_MAX - 1);
	assert_int_equal(found.count, 3);
	for (size_t i = 0; i < 3; i++)
		check_symbol(&found.list[i], &list[i]);
	symbol_names_free(names);
}

GROUP(build, clean)
