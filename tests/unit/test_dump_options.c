#include "tests/unit/t.h"

#include "snapshot/command/command.h"

static const struct opt dump_table[] = {READ_OPTIONS, DUMP_OPTIONS, {0}};
static const struct opt process_table[] = {PROCESS_OPTIONS("read"), {0}};

TEST(test_each_row_is_taken)
{
	struct snapshot_request take = {0};
	struct err err = {0};

	for (const struct opt *opt = dump_table; opt->id; opt++) {
		const char *value = opt->id == OPT_DUMP_INTERIOR ? "no" :
				    opt->id == OPT_DUMP_CONTENT	 ? "7" :
				    opt->id == OPT_DUMP_STACKS	 ? "ust" :
								   NULL;

		assert_int_equal(dump_option(&take, opt->id, value, &err), 0);
	}
	assert_true(take.by_stack && take.is_packed && take.is_verbose);
	assert_true(take.options.finds_lost && take.options.only_starts);
	assert_int_equal(dump_option(&take, OPT_DUMP_INTERIOR, "yes", &err), 0);
	assert_false(take.options.only_starts);
	assert_int_equal(take.options.stacks, STACKS_UST);
	assert_int_equal(take.options.content_count, 7);
	assert_int_equal(dump_option(&take, OPT_DUMP_CONTENT, "0", &err), -ERR_USAGE);
	assert_int_equal(dump_option(&take, OPT_DUMP_CONTENT, "101", &err), -ERR_USAGE);
	assert_int_equal(dump_option(&take, 7, "x", &err), 7);
	assert_int_equal(dump_option(&take, OPT_ARGUMENT, "x", &err), OPT_ARGUMENT);
	assert_int_equal(dump_option(&take, OPT_DUMP_STACKS, "x", &err), -ERR_USAGE);
}

TEST(test_packed_file_has_one_gz_in_its_name)
{
	static const struct {
		const char *pattern, *plain, *packed;
	} cases[] = {
		{"a.txt", "a.txt", "a.txt.gz"},
		{"{name}-{pid}", "app-12", "app-12.gz"},
		{"{pid}.gz", "12.gz", "12.gz"},
		{"{{.GZ", "{.GZ", "{.GZ"},
		{"-", "-", "-"},
	};
	const struct file_names names = {.program = "app.exe", .pid = 12};

	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(*cases); i++) {
		bool is_packed = i % 2;
		struct buf path;

		buf_init(&path);
		dump_name_add(&path, cases[i / 2].pattern, &names, is_packed);
		assert_string_equal(
			path.data, is_packed ? cases[i / 2].packed : cases[i / 2].plain);
		buf_release(&path);
	}
}

TEST(test_one_process_is_named_once)
{
	struct process_choice choice = {0};
	struct err err = {0};

	assert_int_equal(process_choice_check(&choice, "read", &err), -ERR_USAGE);
	assert_string_equal(err.place, "read");
	assert_string_equal(err.detail, "name the process: -p PID or -pn NAME");
	for (const struct opt *opt = process_table; opt->id; opt++) {
		choice = (struct process_choice){0};
		assert_int_equal(process_option(&choice, opt->id, "12", &err), 0);
		assert_int_equal(process_choice_check(&choice, "read", &err), 0);
		assert_int_equal(process_option(&choice, opt->id, "12", &err), 0);
		assert_int_equal(process_choice_check(&choice, "read", &err), -ERR_USAGE);
		assert_string_equal(err.detail, "give one of -p and -pn, once");
	}
	assert_int_equal(process_option(&choice, OPT_ARGUMENT, "x", &err), OPT_ARGUMENT);
}

TEST(test_pid_is_decimal_number)
{
	static const char *const wrong[] = {"", "0", "-1", "12x", "0x12", "4294967296", " 1"};
	struct err err = {0};
	uint32_t pid = 7;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(process_pid_parse(wrong[i], &pid, &err), -ERR_USAGE);
		assert_int_equal(pid, 7);
	}
	assert_int_equal(process_pid_parse("4294967295", &pid, &err), 0);
	assert_int_equal(pid, UINT32_MAX);
}
