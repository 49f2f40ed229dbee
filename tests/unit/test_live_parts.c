/* Small rules about live processes that need none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "snapshot/protection.h"
#include "snapshot/target.h"
#include "snapshot/wow64_path.h"

/* PAGE_* as the Windows SDK defines them. */
enum {
	NOACCESS = 0x01,
	READONLY = 0x02,
	READWRITE = 0x04,
	WRITECOPY = 0x08,
	EXECUTE = 0x10,
	EXECUTE_READ = 0x20,
	EXECUTE_READWRITE = 0x40,
	EXECUTE_WRITECOPY = 0x80,
	GUARD = 0x100,
	NOCACHE = 0x200,
	WRITECOMBINE = 0x400,
};

static void protections_say_what_may_be_done(void **state)
{
	const unsigned r = TARGET_READ, w = TARGET_WRITE, x = TARGET_EXECUTE;

	(void)state;
	assert_int_equal(protection_access(READONLY), r);
	assert_int_equal(protection_access(READWRITE), r | w);
	assert_int_equal(protection_access(WRITECOPY), r | w);
	assert_int_equal(protection_access(EXECUTE), x);
	assert_int_equal(protection_access(EXECUTE_READ), r | x);
	assert_int_equal(protection_access(EXECUTE_READWRITE), r | w | x);
	assert_int_equal(protection_access(EXECUTE_WRITECOPY), r | w | x);
	assert_int_equal(protection_access(READWRITE | NOCACHE), r | w);
	assert_int_equal(protection_access(READWRITE | WRITECOMBINE), r | w);
}

static void guarded_and_closed_pages_are_not_to_be_read(void **state)
{
	(void)state;
	assert_int_equal(protection_access(NOACCESS), 0);
	assert_int_equal(protection_access(0), 0);
	assert_int_equal(protection_access(READWRITE | GUARD), 0);
	assert_int_equal(protection_access(EXECUTE_READ | GUARD), 0);
	assert_int_equal(protection_access(READONLY | READWRITE), 0);
	assert_int_equal(protection_access(UINT32_MAX), 0);
}

static void check_path(const char *path, const char *expected)
{
	struct arena arena;

	arena_init(&arena);
	assert_string_equal(
		wow64_path(&arena, path, "C:\\Windows\\system32", "C:\\Windows\\SysWOW64"),
		expected);
	arena_release(&arena);
}

static void paths_of_32_bit_modules_lead_to_their_files(void **state)
{
	(void)state;
	check_path("C:\\Windows\\SYSTEM32\\ntdll.dll", "C:\\Windows\\SysWOW64\\ntdll.dll");
	check_path("c:\\windows\\system32\\a\\b.dll", "C:\\Windows\\SysWOW64\\a\\b.dll");
	check_path("C:\\Windows\\SysWOW64\\ntdll.dll", "C:\\Windows\\SysWOW64\\ntdll.dll");
	check_path("C:\\Windows\\system32x\\a.dll", "C:\\Windows\\system32x\\a.dll");
	check_path("C:\\Windows\\system32", "C:\\Windows\\system32");
	check_path("C:\\app.exe", "C:\\app.exe");
	check_path("", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(protections_say_what_may_be_done),
		cmocka_unit_test(guarded_and_closed_pages_are_not_to_be_read),
		cmocka_unit_test(paths_of_32_bit_modules_lead_to_their_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
