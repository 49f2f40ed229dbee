#include "tests/unit/t.h"

#include "tests/unit/test_diff.h"

TEST(module_names_match_in_either_case_and_by_their_own_file)
{
	static const char old[] = "// Loaded modules: \n"
				  "//    10000 1000 C:\\a\\Same.DLL\n"
				  "//    20000 1000 C:\\b\\same.dll\n"
				  "// Process modules enumerated.\n"
				  "*- - Heap 0 Hogs - -\n"
				  "10 bytes + 8 at 100 by BackTrace1\n\t10123\n\n"
				  "20 bytes + 8 at 200 by BackTrace2\n\t20123\n\n";
	/* In the new file the two modules have exchanged addresses, and their names differ in
	 * case. */
	static const char now[] = "// Loaded modules: \n"
				  "//    20000 1000 c:\\A\\SAME.dll\n"
				  "//    10000 1000 C:\\B\\same.dll\n"
				  "// Process modules enumerated.\n"
				  "*- - Heap 0 Hogs - -\n"
				  "10 bytes + 8 at 100 by BackTrace1\n\t20123\n\n"
				  "28 bytes + 8 at 200 by BackTrace2\n\t10123\n\n";

	write_bytes("old.txt", old, strlen(old));
	write_bytes("new.txt", now, strlen(now));
	struct result *result = run_rows(1, "old.txt", "new.txt");
	assert_int_equal(growth(&result->rows[0]), 8);
	assert_string_equal(result->rows[0].frames, "\tsame+123 : 10123\n");
}

TEST(frames_outside_modules_match_by_address)
{
	EACH_DUMP (maker, is_new, .slide = is_new ? 0x90000 : 0) {
		put_lines(&maker, "10 bytes + 8 at 100 by BackTrace1\n\t1234\n\n");
		put_lines(&maker, is_new ? "10 bytes + 8 at 200 by BackTrace2\n\tABCD\n\n" : "");
	}
	struct result *result = run_rows(1, "old.txt", "new.txt");
	assert_string_equal(result->rows[0].frames, "\tABCD\n");
}

static void write_many_modules(struct maker *maker, unsigned count, bool is_new)
{
	put(maker, "// Loaded modules: ");
	for (unsigned i = 0; i < count; i++)
		put(maker, "//  %X 1000 C:\\%u\\same.dll",
			0x1000000 + 0x1000 * (is_new ? count - i : i), i);
	for (unsigned i = 0; i < count; i++)
		put(maker, "//  %X 1000 C:\\one\\path.dll",
			0x20000000 + 0x1000 * (is_new ? count - i : i));
	put(maker, "// Process modules enumerated.");
	for (unsigned i = 0; i < count; i++)
		put(maker, "// hsnap: module base=%X timestamp=%X checksum=1",
			0x20000000 + 0x1000 * (is_new ? count - i : i), i + 1);
}

TEST(any_number_of_modules_with_one_name_are_distinguished)
{
	const unsigned count = 3000;

	EACH_DUMP (maker, is_new, .is_ours = true) {
		write_many_modules(&maker, count, is_new);
		for (unsigned i = 0; i < count; i++) {
			unsigned at = 0x1000 * (is_new ? count - i : i) + 0x10;

			write_entry(&maker, i == 77 && is_new ? 1077 : i, 8, "1");
			put(&maker, "\t%X", 0x1000000 + at);
			write_entry(&maker, i == 78 && is_new ? 2078 : i, 8, "2");
			put(&maker, "\t%X", 0x20000000 + at);
		}
	}
	run_rows(0, "old.txt", "old.txt");
	struct result *result = run_rows(2, "old.txt", "new.txt");
	assert_int_equal(growth(&result->rows[0]), 2000);
	assert_int_equal(growth(&result->rows[1]), 1000);
}

/* Compares two dumps that contain one block with this return address, and expects `rows` rows. The
 * other arguments are lines before the block. */
static void check_lines(uint64_t addr, const char *old, const char *now, size_t rows)
{
	struct result *result;

	EACH_DUMP (maker, is_new, 0) {
		put_lines(&maker, is_new ? now : old);
		write_entry(&maker, is_new ? 300 : 100, 8, "1");
		put(&maker, "\t%" PRIX64, addr);
	}
	result = run_rows(rows, "old.txt", "new.txt");
	assert_int_equal(result->requested, 200);
	assert_int_equal(growth(&result->rows[0]), rows == 1 ? 200 : 300);
}

#define APP_NOTE "// hsnap: module base=140000000 timestamp=7 "
#define APP_PDB APP_NOTE "checksum=1 pdb=a.pdb guid=00112233445566778899AABBCCDDEE"

TEST(builds_are_distinguished_by_what_both_dumps_record)
{
	static const char a[] = APP_PDB "FF age=1\n", b[] = APP_PDB "FE age=1\n",
			  c[] = APP_PDB "FF age=2\n", bare[] = APP_NOTE "checksum=1\n",
			  later[] = "// hsnap: module base=140000000 timestamp=8 checksum=1\n";

	/* Offsets in different builds must not match. */
	check_lines(APP_BASE + 0x1010, bare, later, 2);
	check_lines(APP_BASE + 0x1010, bare, bare, 1);
	check_lines(
		/* The first dump has no build, so the module's name decides. */
		APP_BASE + 0x1010, "", later, 1);
	check_lines(APP_BASE + 0x1010, "", "", 1);
	check_lines(APP_BASE + 0x1010, a, a, 1);
	check_lines(APP_BASE + 0x1010, a, b, 2);
	check_lines(APP_BASE + 0x1010, a, c, 2);
	check_lines(APP_BASE + 0x1010, b, c, 2);
	check_lines(APP_BASE + 0x1010, a, bare, 1);
	check_lines(APP_BASE + 0x1010, bare, b, 1);
	check_lines(APP_BASE + 0x1010, bare, APP_NOTE "checksum=2\n", 2);
	check_lines(APP_BASE + 0x1010, a, APP_NOTE "checksum=2\n", 2);
}

TEST(module_of_unknown_build_takes_what_is_left_of_its_name)
{
#define LISTED(lines) "// Loaded modules: \n" lines "// Process modules enumerated.\n"
	static const char a[] = LISTED("//  10000 1000 C:\\b\\x.dll\n"
				       "//  20000 1000 C:\\a\\x.dll\n"
				       "// hsnap: module base=20000 timestamp=1 checksum=1\n");
	static const char b[] = LISTED("//  10000 1000 C:\\c\\x.dll\n"
				       "//  20000 1000 C:\\d\\x.dll\n"
				       "// hsnap: module base=10000 timestamp=2 checksum=1\n"
				       "// hsnap: module base=20000 timestamp=3 checksum=1\n");
	static const char c[] = LISTED("//  10000 1000 C:\\x.dll\n"
				       "// hsnap: module base=10000 timestamp=3 checksum=1\n");
	static const char d[] = LISTED("//  10000 2000 C:\\x.dll\n"
				       "// hsnap: module base=10000 timestamp=3 checksum=1\n");

	check_lines(0x10123, a, b, 1);
	check_lines(0x10123, b, a, 1);
	check_lines(0x10123, c, c, 1);
	check_lines(0x10123, c, d, 2); /* the module's size is part of its build */
}

/* The call determines the module. If the called function never returns, the call is the last
 * instruction of its module, and the return address lies outside. */
TEST(return_address_belongs_to_module_of_its_call)
{
	static const char text[] = "// Loaded modules: \n"
				   "//    10000 1000 C:\\first.dll\n"
				   "//    11000 1000 C:\\second.dll\n"
				   "// Process modules enumerated.\n"
				   "*- - Heap 0 Hogs - -\n"
				   "10 bytes + 8 at 100 by BackTrace1\n"
				   "\t10000\n\t11000\n\t11001\n\t12000\n\t12001\n\t10001\n\n";

	write_bytes("new.txt", text, strlen(text));
	struct result *result = run_hdiff("new.txt");
	assert_string_equal(result->rows[0].frames,
		"\tfirst+0 : 10000\n\tfirst+1000 : 11000\n\tsecond+1 : 11001\n"
		"\tsecond+1000 : 12000\n\t12001\n\tfirst+1 : 10001\n");
}

/* A file is loaded at two addresses. Equal stacks are recognized by content, in any order. */
TEST(module_that_is_loaded_twice_is_one)
{
	static const char head[] = "// Loaded modules: \n"
				   "//    10000 1000 C:\\a.dll\n"
				   "//    20000 1000 C:\\a.dll\n"
				   "// Process modules enumerated.\n"
				   "*- - Heap 0 Hogs - -\n";
	static const char *const entries[] = {"10 bytes + 8 at 100 by BackTrace1\n\t10123\n\n",
		"20 bytes + 8 at 200 by BackTrace1\n\t20123\n\n",
		"40 bytes + 8 at 200 by BackTrace1\n"};
	static const unsigned char orders[][3] = {
		{0, 1, 2}, {1, 0, 2}, {2, 1, 0}, {2, 0, 1}, {0, 2, 1}, {1, 2, 0}};

	for (size_t i = 0; i < sizeof(orders) / sizeof(*orders); i++) {
		char text[1000];

		snprintf(text, sizeof(text), "%s%s%s%s", head, entries[orders[i][0]],
			entries[orders[i][1]], entries[orders[i][2]]);
		write_bytes("new.txt", text, strlen(text));
		struct result *result = run_rows(1, "new.txt");
		assert_int_equal(growth(&result->rows[0]), 0x70);
		assert_string_equal(result->rows[0].frames, "\ta+123 : 10123\n");
	}
}

/* Writes a log of UMDH with blocks of one frame each, at `frames`, which end with 0. `modules` are
 * the lines of its list. */
static void write_log(
	const char *path, const char *process, const char *modules, const uint64_t *frames)
{
	struct buf text;

	buf_init(&text);
	buf_printf(&text,
		"// \n// UMDH: version 10.0.19041.1: Logtime 2026-11-20 %s - %s\n// \n%s"
		"*- - Start of data for heap @ 1F0000 - -\n",
		strcmp(path, "new.txt") ? "10:00" : "11:00", process, modules);
	for (unsigned i = 0; frames[i]; i++)
		buf_printf(&text, "100 bytes + 8 at %X by BackTrace%u\n\t%" PRIX64 "\n\n",
			0x200000 + 0x1000 * i, i + 1, frames[i]);
	buf_add_text(&text, "*- - End of data for heap @ 1F0000 - -\n");
	write_bytes(path, text.data, text.len);
	buf_release(&text);
}

TEST(logs_of_one_process_share_their_modules)
{
#define PLUG "//  7FFD40000000 80000 C:\\app\\plug.dll\n"
#define REST(exe, exe_base, ntdll_base)                                                            \
	"//  " exe_base " 10000 C:\\app\\" exe "\n//  " ntdll_base " 10000 C:\\w\\ntdll.dll\n"
#define USUAL REST("app.exe", "7FF600000000", "7FFE10000000")
	static const char process[] = "Machine=SRV3 - PID=7", all[] = LISTED(PLUG USUAL),
			  *const others[][2] = {{"Machine=SRV4 - PID=7", LISTED(USUAL)},
				  {"Machine=SRV3 - PID=8", LISTED(USUAL)},
				  {process, LISTED(REST("b.exe", "7FF600000000", "7FFE10000000"))},
				  {process,
					  LISTED(REST("app.exe", "7FF600010000", "7FFE10000000"))},
				  {process,
					  LISTED(REST("app.exe", "7FF600000000", "7FFE10010000"))}};
	static const uint64_t once[] = {0x7FFD40001234, 0}, twice[] = {once[0], once[0], 0},
			      moved[] = {once[0], 0x7FFA00001234, 0};
	struct result *result;

	write_log("old.txt", process, all, once);
	write_log("new.txt", process, LISTED(USUAL), twice);
	result = run_rows(1, "old.txt", "new.txt");
	assert_int_equal(growth(&result->rows[0]), 0x100);
	assert_string_equal(result->rows[0].frames, "\tplug+1234 : 7FFD40001234\n");
	write_log("new.txt", process, "", twice); /* the list is missing */
	result = run_rows(1, "old.txt", "new.txt");
	assert_int_equal(growth(&result->rows[0]), 0x100);
	/* The module came back at another base. */
	write_log("new.txt", process, LISTED("//  7FFA00000000 80000 C:\\app\\plug.dll\n" USUAL),
		moved);
	result = run_rows(1, "old.txt", "new.txt");
	assert_int_equal(growth(&result->rows[0]), 0x100);
	/* Another module has its place: nothing is looked up. */
	write_log("new.txt", process, LISTED("//  7FFD40000000 80000 C:\\app\\other.dll\n" USUAL),
		once);
	run_rows(2, "old.txt", "new.txt");
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		write_log("new.txt", others[i][0], others[i][1], twice);
		result = run_hdiff("--force", "old.txt", "new.txt");
		assert_int_equal(result->row_count, 2);
	}
}
