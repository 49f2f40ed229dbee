/* Rights to a task's program and folder, and the words of its arguments. Lists of rights have the
 * form of "Security Descriptor String Format", Microsoft Learn: FA means all rights of files,
 * 0x1200a9 reading and running, 0x1301bf Explorer's Modify. Prints TAP. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>
#include <sddl.h>

#include "core/base/os_windows.h"
#include "snapshot/schedule/scheduler.h"
#include "snapshot/schedule/scheduler_parts_windows.h"
#include "snapshot/schedule/task.h"
#include "tests/win/again.h"
#include "tests/win/tap.h"

static void test_lists(void)
{
	static const struct {
		const char *list;
		bool is_everybodys;
		const char *what;
	} cases[] = {
		{RIGHTS_OF_ADMINISTRATORS, false, "what is made for the system is administrators'"},
		{"D:(A;OICIID;FA;;;BA)(A;OICIID;FA;;;SY)(A;OICIID;0x1200a9;;;BU)"
		 "(A;ID;0x1301bf;;;AU)(A;OICIIOID;SDGXGWGR;;;AU)",
			true, "a folder made in C:\\ is everybody's"},
		{"D:(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)(A;;0x1200a9;;;WD)", false,
			"everybody may read"},
		{"D:(A;OICIIO;FA;;;BU)", false, "only what comes into it is everybody's"},
		{"D:(D;;FA;;;WD)", false, "everybody may not"},
		{"D:(A;;0x2;;;IU)", true, "whoever sits there may write"},
		{"D:(A;;0x4;;;BU)", true, "users may add"},
		{"D:(A;;0x40;;;BU)", true, "users may remove what is in it"},
		{"D:(A;;SD;;;AU)", true, "users may remove it"},
		{"D:(A;;WD;;;WD)", true, "everybody may give himself rights"},
		{"D:(A;;WO;;;BU)", true, "users may take it"},
		{"D:(A;;GA;;;WD)", true, "everybody may do all"},
		{"D:(A;;FA;;;S-1-5-21-1-2-3-1001)", false, "one user may do all"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		PSECURITY_DESCRIPTOR all = NULL;
		BOOL is_there = FALSE, by_default;
		ACL *list = NULL;

		if (!ConvertStringSecurityDescriptorToSecurityDescriptorA(
			    cases[i].list, SDDL_REVISION_1, &all, NULL))
			all = NULL;
		ok(all && GetSecurityDescriptorDacl(all, &is_there, &list, &by_default) &&
				is_there && rights_are_everybodys(list) == cases[i].is_everybodys,
			cases[i].what);
		LocalFree(all);
	}
	ok(rights_are_everybodys(NULL), "no list gives everybody all rights");
}

/* Wine reduces the list to a Unix mode. */
static void test_folders(const char *base, const char *program)
{
	char above[400], folder[440];
	struct err err = {0};

	snprintf(above, sizeof(above), "%s\\made-%lu", base, GetCurrentProcessId());
	snprintf(folder, sizeof(folder), "%s\\d", above);
	ok(!scheduler_places(folder, program, base, true, &err), "a folder for the system");
	ok(GetFileAttributesA(folder) != INVALID_FILE_ATTRIBUTES, "it is there");
	ok(!rights_of_path_are_everybodys(folder) && !rights_of_path_are_everybodys(above),
		"neither it nor the one above is everybody's");
	ok(!scheduler_places(folder, program, base, true, &err), "one that is there is left");
	ok(RemoveDirectoryA(folder) && RemoveDirectoryA(above), "they go");
	ok(!scheduler_places(folder, program, base, false, &err), "a folder for a user");
	ok(RemoveDirectoryA(folder) && RemoveDirectoryA(above), "it goes");
}

#define NAME "my \xc3\xbc & app.exe"
#define DUMPS "C:\\d {more} & \xc3\xbc\\"

/* The arguments of a task with much quoting, as every task passes them; Windows splits them into
 * words. */
static void test_words(void)
{
	static const char *const expected[] = {"hsnap", "-pn", NAME, "-f",
		"C:\\d {{more} & \xc3\xbc\\{name}-{pid}-{time}.txt", "--gzip", "--keep", "7",
		"--max-bytes", "2G", "--all", "--log", (DUMPS NAME ".log")};
	const struct task_request request = {.name = NAME,
		.every = "30m",
		.folder = DUMPS,
		.program = "C:\\hsnap.exe",
		.start = "2026-11-20T10:00",
		.keep = "7",
		.max_bytes = "2G",
		.is_full = true,
		.is_packed = true};
	struct task_plan plan = {0};
	struct err err = {0};
	struct buf line = {0};
	wchar_t *wide;
	char **argv;
	int argc, same = 0;

	ok(!task_plan_make(&plan, &request, &err), "a task is planned");
	buf_printf(&line, "hsnap %s", plan.arguments.data);
	wide = wide_from_utf8(line.data);
	windows_arguments(wide, &argc, &argv);
	ok(argc == (int)(sizeof(expected) / sizeof(*expected)), "it has as many words");
	while (same < argc && !strcmp(argv[same], expected[same]))
		same++;
	ok(same == argc, "and these");
	free(wide);
	buf_release(&line);
	task_plan_release(&plan);
}

int main(void)
{
	char base[300], program[3 * MAX_PATH];

	GetTempPathA(sizeof(base), base);
	base[strlen(base) - 1] = '\0';
	own_path(program, sizeof(program));
	test_lists();
	test_folders(base, program);
	test_words();
	return ok_end();
}
