/* Who may change what a task runs and where it writes, and drives that no task has. The lists of rights are in the form
 * of "Security Descriptor String Format", Microsoft Learn: FA is all rights of files, 0x1200a9 reading and running,
 * 0x1301bf what Explorer calls Modify. Speaks TAP. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>
#include <sddl.h>

#include "core/base/os.h"
#include "core/base/os_windows.h"
#include "snapshot/schedule/scheduler_windows.h"
#include "snapshot/schedule/scheduler.h"

static int count, failed;

static void ok(bool is_well, const char *what)
{
	failed += !is_well;
	printf("%sok %d - %s\n", is_well ? "" : "not ", ++count, what);
}

static void test_lists(void)
{
	static const struct {
		const wchar_t *list;
		bool is_everybodys;
		const char *what;
	} cases[] = {
		{RIGHTS_OF_ADMINISTRATORS, false, "what is made for the system is administrators'"},
		{L"D:(A;OICIID;FA;;;BA)(A;OICIID;FA;;;SY)(A;OICIID;0x1200a9;;;BU)"
		 L"(A;ID;0x1301bf;;;AU)(A;OICIIOID;SDGXGWGR;;;AU)",
			true, "a folder made in C:\\ is everybody's"},
		{L"D:(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)(A;;0x1200a9;;;WD)", false,
			"everybody may read"},
		{L"D:(A;OICIIO;FA;;;BU)", false, "only what comes into it is everybody's"},
		{L"D:(D;;FA;;;WD)", false, "everybody may not"},
		{L"D:(A;;0x2;;;IU)", true, "whoever sits there may write"},
		{L"D:(A;;0x4;;;BU)", true, "users may add"},
		{L"D:(A;;0x40;;;BU)", true, "users may remove what is in it"},
		{L"D:(A;;SD;;;AU)", true, "users may remove it"},
		{L"D:(A;;WD;;;WD)", true, "everybody may give himself rights"},
		{L"D:(A;;WO;;;BU)", true, "users may take it"},
		{L"D:(A;;GA;;;WD)", true, "everybody may do all"},
		{L"D:(A;;FA;;;S-1-5-21-1-2-3-1001)", false, "one user may do all"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		PSECURITY_DESCRIPTOR all = NULL;
		BOOL is_there = FALSE, by_default;
		ACL *list = NULL;

		if (!ConvertStringSecurityDescriptorToSecurityDescriptorW(
			    cases[i].list, SDDL_REVISION_1, &all, NULL))
			all = NULL;
		ok(all && GetSecurityDescriptorDacl(all, &is_there, &list, &by_default) &&
				is_there && rights_are_everybodys(list) == cases[i].is_everybodys,
			cases[i].what);
		LocalFree(all);
	}
	ok(rights_are_everybodys(NULL), "no list gives everybody all rights");
}

static bool is_open(const char *path)
{
	wchar_t *wide = wide_from_utf8(path);
	bool is_so = wide && rights_of_path_are_everybodys(wide);

	free(wide);
	return is_so;
}

/* Under Wine the list is what remains of it in a mode of Unix. */
static void test_folders(const char *base, const char *program)
{
	char above[400], folder[440];
	struct err err = {0};

	snprintf(above, sizeof(above), "%s\\made-%lu", base, GetCurrentProcessId());
	snprintf(folder, sizeof(folder), "%s\\d", above);
	ok(!scheduler_places(folder, program, true, &err), "a folder for the system");
	ok(GetFileAttributesA(folder) != INVALID_FILE_ATTRIBUTES, "it is there");
	ok(!is_open(folder) && !is_open(above), "neither it nor the one above is everybody's");
	ok(!scheduler_places(folder, program, true, &err), "one that is there is left");
	ok(RemoveDirectoryA(folder) && RemoveDirectoryA(above), "they go");
	ok(!scheduler_places(folder, program, false, &err), "a folder for a user");
	ok(RemoveDirectoryA(folder) && RemoveDirectoryA(above), "it goes");
}

/* A letter that nothing has; 0: none. */
static char free_letter(void)
{
	DWORD drives = GetLogicalDrives();

	for (char letter = 'Y'; letter > 'D'; letter--) {
		if (!(drives & 1u << (letter - 'A')))
			return letter;
	}
	return 0;
}

static void test_subst(const char *base, const char *program)
{
	char drive[] = "?:", target[300] = "", folder[] = "?:\\d";
	struct err err = {0};

	drive[0] = folder[0] = free_letter();
	if (!drive[0] || !DefineDosDeviceA(0, drive, base) ||
		!QueryDosDeviceA(drive, target, sizeof(target)) ||
		strncmp(target, "\\??\\", 4) != 0) {
		printf("ok %d # SKIP no drives by subst here: %s\n", ++count, target);
	} else {
		ok(scheduler_places(folder, program, true, &err) == -ERR_USAGE &&
				strstr(err.detail, "subst"),
			"a drive that only this session has is refused");
	}
	if (*target)
		DefineDosDeviceA(DDD_REMOVE_DEFINITION, drive, base);
}

int main(void)
{
	char base[300], program[300];

	GetTempPathA(sizeof(base), base);
	base[strlen(base) - 1] = '\0';
	GetModuleFileNameA(NULL, program, sizeof(program));
	test_lists();
	test_folders(base, program);
	test_subst(base, program);
	printf("1..%d\n", count);
	return failed != 0;
}
