/* Real minidumps without full memory, compared with facts that were found by hand. */
#include "tests/unit/data.h"
#include "tests/unit/test_minidump.h"

static struct target target;
static struct snapshot snapshot;
static struct err err;

static void open_real(const char *name)
{
	char file[100];

	snprintf(file, sizeof(file), "dumps/%s.dmp", name);
	assert_int_equal(target_open_minidump(&target, data_file(file), &err), 0);
	snapshot_init(&snapshot);
	assert_int_equal(target.ops->modules(&target, &snapshot, &err), 0);
}

static void close_real(void)
{
	target.ops->close(&target);
	snapshot_release(&snapshot);
}

static uint32_t number_at(uint64_t addr)
{
	uint32_t value;

	assert_int_equal(target_u32(&target, addr, &value), 0);
	return value;
}

static uint64_t long_at(uint64_t addr)
{
	return number_at(addr) | (uint64_t)number_at(addr + 4) << 32;
}

static const struct module *module_named(const char *name)
{
	for (size_t i = 0; i < snapshot.module_count; i++) {
		if (!strcmp(module_path_base(snapshot.modules[i].path), name))
			return &snapshot.modules[i];
	}
	fail_msg("no module %s", name);
	return NULL;
}

static size_t warnings(const char *words)
{
	size_t count = 0;

	for (size_t i = 0; i < snapshot.warning_count; i++)
		count += strstr(snapshot.warnings[i], words) != NULL;
	return count;
}

/* Checks the modules. Microsoft's and Google's compilers built all of them, so each module has a
 * CodeView record. */
static void check_modules(size_t count)
{
	assert_int_equal(snapshot.module_count, count);
	for (size_t i = 0; i < count; i++) {
		const struct module *module = &snapshot.modules[i];

		assert_true(module->has_identity && module->timestamp && module->pdb_age);
		assert_non_null(module->pdb);
		assert_int_equal(strlen(module->pdb_guid), 32);
		assert_int_equal(strspn(module->pdb_guid, "0123456789ABCDEF"), 32);
		assert_true(module->size_bytes % 0x1000 == 0 && module->base % 0x1000 == 0);
	}
}

/* Windows 10 14393, x64. The PEB has 4 heaps and no global flag. The list of heaps lies in ntdll's
 * data, which the dump lacks. */
TEST(windows_10_x64)
{
	open_real("node-minidump_windows_x64_14393");
	assert_string_equal(target.os, "Windows 10.0.14393");
	assert_int_equal(target.os_build, 14393);
	assert_int_equal(target.bits, 64);
	assert_true(target.host_peb == 0);
	assert_int_equal(number_at(target.peb + 0x120) & 0xffff, 14393); /* OSBuildNumber */
	assert_int_equal(number_at(target.peb + 0xbc), 0); /* NtGlobalFlag */
	assert_int_equal(number_at(target.peb + 0xe8), 4); /* NumberOfHeaps */
	assert_ptr_equal(
		module_at(snapshot.modules, snapshot.module_count, long_at(target.peb + 0xf0)),
		module_named("ntdll.dll"));
	check_modules(58); /* the stream's 6268 bytes are 4 and 58 entries of 108 */
	assert_string_equal(module_named("ntdll.dll")->pdb, "ntdll.pdb");
	assert_non_null(strstr(target.image, "electron.exe"));
	assert_int_equal(warnings("memory is missing: the list of 4 heaps"), 1);
	assert_int_equal(warnings("without full memory"), 1);
	close_real();
}

/* Windows 7, x86. A debugger started the process, hence flag 70. The dump has parts of the heap
 * 8B0000 and the header of the 64-bit heap 10000. */
TEST(windows_7_x86)
{
	open_real("syzygy_notepad-larger-32bit");
	assert_string_equal(target.os, "Windows 6.1.7601");
	assert_int_equal(target.bits, 32);
	assert_int_equal(number_at(target.peb + 0x68), 0x70);
	assert_int_equal(number_at(target.peb + 0xac) & 0xffff, 7601);
	assert_ptr_equal(
		module_at(snapshot.modules, snapshot.module_count, number_at(target.peb + 0x90)),
		module_named("ntdll.dll"));
	assert_true(number_at(0x8b0008) == 0xffeeffee);
	assert_true(number_at(0x8b0064) == 0xeeffeeff);
	assert_true(number_at(0x10010) == 0xffeeffee);
	check_modules(22); /* the stream has 2380 bytes */
	assert_string_equal(module_path_base(target.image), "notepad.exe");
	close_real();
}

/* Another dump of that program, by a 64-bit writer. The first pointer in the 64-bit TEB is
 * 7EFDD000, the address of the 32-bit TEB. The dump lacks the 32-bit TEB. */
TEST(windows_7_wow64)
{
	open_real("syzygy_notepad-larger-64bit");
	assert_int_equal(target.bits, 32);
	assert_true(target.peb == 0);
	assert_int_equal(number_at(target.host_peb + 0xbc), 0x70);
	assert_int_equal(number_at(target.host_peb + 0x120) & 0xffff, 7601);
	/* A 64-bit TEB occupies the two pages before the 32-bit TEB. */
	assert_true(long_at(0x7efdd000 - 0x2000) == 0x7efdd000);
	assert_true(long_at(0x7efdd000 - 0x2000 + 0x30) == 0x7efdd000 - 0x2000);
	check_modules(5); /* the stream has 544 bytes */
	assert_string_equal(module_path_base(target.image), "notepad.exe");
	assert_int_equal(warnings("environment blocks, which lead to the heaps"), 1);
	close_real();
}
