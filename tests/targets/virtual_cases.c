/*
 * virtual_cases: takes memory from the system by VirtualAlloc in all ways, and gives it back in all
 * ways. What it says is explained in virtual_said.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

#include "tests/targets/virtual_said.h"

#define THIS_PROCESS ((HANDLE)(LONG_PTR)-1)

typedef NTSTATUS(NTAPI *nt_allocate_fn)(
	HANDLE process, PVOID *base, ULONG_PTR zero_bits, PSIZE_T bytes, ULONG type, ULONG protect);
typedef NTSTATUS(NTAPI *nt_free_fn)(HANDLE process, PVOID *base, PSIZE_T bytes, ULONG type);
typedef PVOID(WINAPI *allocate2_fn)(HANDLE process, PVOID base, SIZE_T bytes, ULONG type,
	ULONG protect, PVOID parameters, ULONG count);

static nt_allocate_fn nt_allocate;
static nt_free_fn nt_free;
static allocate2_fn allocate2; /* NULL: this system is older */

static void cannot(const char *what)
{
	say("cannot ");
	say(what);
	say("\n");
}

/* ---------------------------------------------------------------- plainly */

static NOINLINE char *commit_nowhere(void)
{
	return step_leak(VirtualAlloc(NULL, 2 * PAGE, MEM_COMMIT, PAGE_READWRITE));
}

static NOINLINE char *top_down(void)
{
	return step_leak(VirtualAlloc(
		NULL, 3 * PAGE, MEM_RESERVE | MEM_COMMIT | MEM_TOP_DOWN, PAGE_EXECUTE_READWRITE));
}

static NOINLINE char *watched(void)
{
	return step_leak(VirtualAlloc(
		NULL, 4 * PAGE, MEM_RESERVE | MEM_COMMIT | MEM_WRITE_WATCH, PAGE_READWRITE));
}

static NOINLINE char *in_this_process(HANDLE process)
{
	return step_leak(
		VirtualAllocEx(process, NULL, 5 * PAGE, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
}

static NOINLINE char *newer(void)
{
	return allocate2(GetCurrentProcess(), NULL, 6 * PAGE, MEM_RESERVE | MEM_COMMIT,
		PAGE_READWRITE, NULL, 0);
}

static void plainly(void)
{
	HANDLE process = OpenProcess(PROCESS_ALL_ACCESS, FALSE, GetCurrentProcessId());
	char *made[] = {both(), only_reserve(0x100000), commit_nowhere(), top_down(), watched(),
		in_this_process(process), in_this_process(GetCurrentProcess()),
		allocate2 ? newer() : NULL};

	begin("plainly");
	state("committed", made[0], 0x19000, "both");
	state("reserved", made[1], 0x100000, "only_reserve");
	state("committed", made[2], 2 * PAGE, "commit_nowhere");
	state("committed", made[3], 3 * PAGE, "top_down");
	state("committed", made[4], 4 * PAGE, "watched");
	state("committed", made[5], 5 * PAGE, "in_this_process");
	state("committed", made[6], 5 * PAGE, "in_this_process");
	if (made[7])
		state("committed", made[7], 6 * PAGE, "newer");
	else
		cannot("VirtualAlloc2");
	VirtualAlloc(made[0], 3 * PAGE, MEM_RESET, PAGE_READWRITE);
	done();
	begin("plainly freed");
	if (!VirtualFreeEx(process, made[6], 0, MEM_RELEASE))
		wrong("release by a handle");
	for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++) {
		if (made[i] && i != 6)
			release(made[i]);
	}
	CloseHandle(process);
	done();
}

/* ---------------------------------------------------------------- in parts */

static NOINLINE void commit_high(char *base)
{
	commit(base + 0x8000, 0x2000);
}

static NOINLINE void commit_over_both(char *base)
{
	commit(base + 0x2000, 0xa000);
}

static NOINLINE void commit_few_bytes(char *base)
{
	commit(base + 0x20010, 1);
	commit(base + 0x30fff, 2);
}

static void in_parts(void)
{
	char *base = only_reserve(0x40000);

	commit_low(base);
	commit_high(base);
	commit_over_both(base);
	commit_low(base);
	commit_few_bytes(base);
	begin("commits");
	state("reserved", base, 0x2000, "only_reserve");
	state("committed", base + 0x2000, 0x1000, "commit_over_both");
	state("committed", base + 0x3000, 0x2000, "commit_low");
	state("committed", base + 0x5000, 0x3000, "commit_over_both");
	state("committed", base + 0x8000, 0x2000, "commit_high");
	state("committed", base + 0xa000, 0x2000, "commit_over_both");
	state("reserved", base + 0xc000, 0x14000, "only_reserve");
	state("committed", base + 0x20000, 0x1000, "commit_few_bytes");
	state("reserved", base + 0x21000, 0xf000, "only_reserve");
	state("committed", base + 0x30000, 0x2000, "commit_few_bytes");
	state("reserved", base + 0x32000, 0xe000, "only_reserve");
	done();
	begin("decommit a part");
	VirtualFree(base + 0x4abc, 0x4000, MEM_DECOMMIT); /* 5 pages */
	VirtualFree(base + 0x31000, 0x1000, MEM_DECOMMIT);
	state("reserved", base, 0x2000, "only_reserve");
	state("committed", base + 0x2000, 0x1000, "commit_over_both");
	state("committed", base + 0x3000, 0x1000, "commit_low");
	state("reserved", base + 0x4000, 0x5000, "only_reserve");
	state("committed", base + 0x9000, 0x1000, "commit_high");
	state("committed", base + 0xa000, 0x2000, "commit_over_both");
	state("reserved", base + 0xc000, 0x14000, "only_reserve");
	state("committed", base + 0x20000, 0x1000, "commit_few_bytes");
	state("reserved", base + 0x21000, 0xf000, "only_reserve");
	state("committed", base + 0x30000, 0x1000, "commit_few_bytes");
	state("reserved", base + 0x31000, 0xf000, "only_reserve");
	done();
	begin("decommit all");
	if (!VirtualFree(base, 0, MEM_DECOMMIT))
		wrong("decommit");
	state("reserved", base, 0x40000, "only_reserve");
	done();
	begin("commit again, release all");
	commit_low(base);
	release(base);
	done();
}

/* What was reserved and committed at once is its reserver's when it is decommitted. */
static void both_then_decommit(void)
{
	char *base = both();

	begin("decommit of both");
	VirtualFree(base + 0x8000, 0x4000, MEM_DECOMMIT);
	state("committed", base, 0x8000, "both");
	state("reserved", base + 0x8000, 0x4000, "both");
	state("committed", base + 0xc000, 0xd000, "both");
	done();
	release(base);
}

static void release_a_part(void)
{
	char *base = only_reserve(0x40000);
	PVOID at = base + 0x10000, behind = base + 0x20000;
	SIZE_T bytes = 0x10000;
	bool is_split;

	commit_low(base);
	commit_few_bytes(base);
	begin("release a part");
	is_split = nt_free(THIS_PROCESS, &at, &bytes, MEM_RELEASE) >= 0;
	if (!is_split) {
		cannot("release a part");
		state("reserved", base + 0x10000, 0x10000, "only_reserve");
	}
	state("reserved", base, 0x3000, "only_reserve");
	state("committed", base + 0x3000, 0x2000, "commit_low");
	state("reserved", base + 0x5000, 0xb000, "only_reserve");
	state("committed", base + 0x20000, 0x1000, "commit_few_bytes");
	state("reserved", base + 0x21000, 0xf000, "only_reserve");
	state("committed", base + 0x30000, 0x2000, "commit_few_bytes");
	state("reserved", base + 0x32000, 0xe000, "only_reserve");
	done();
	begin("release what is left");
	release(base);
	if (is_split)
		release(behind);
	done();
}

/* ---------------------------------------------------------------- refused */

static bool is_refused_everywhere(char *base, char *page)
{
	PVOID at = base;
	SIZE_T bytes = 0;
	bool is_refused = !VirtualFree(base + PAGE, 0, MEM_RELEASE);

	is_refused &= !VirtualFree(base, 5, MEM_RELEASE);
	is_refused &= !VirtualFree(base + PAGE, 0, MEM_DECOMMIT);
	is_refused &= !VirtualFree(base, 0, MEM_RELEASE | MEM_DECOMMIT);
	is_refused &= nt_free(THIS_PROCESS, (PVOID *)(uintptr_t)8, &bytes, MEM_RELEASE) < 0;
	is_refused &= nt_free(THIS_PROCESS, &at, (PSIZE_T)(uintptr_t)16, MEM_RELEASE) < 0;
	is_refused &= nt_free(THIS_PROCESS, (PVOID *)page, &bytes, MEM_RELEASE) < 0;
	is_refused &= nt_free(THIS_PROCESS, (PVOID *)(page - 4), &bytes, MEM_RELEASE) < 0;
	is_refused &= nt_free((HANDLE)(uintptr_t)0xabcc, &at, &bytes, MEM_RELEASE) < 0;
	is_refused &=
		nt_allocate(THIS_PROCESS, (PVOID *)page, 0, &bytes, MEM_COMMIT, PAGE_READWRITE) < 0;
	is_refused &= nt_allocate(THIS_PROCESS, (PVOID *)(uintptr_t)8, 0, &bytes, MEM_COMMIT,
			      PAGE_READWRITE) < 0;
	return is_refused;
}

static void refused(void)
{
	char *base = both(), *page = only_reserve(0x20000) + 0x10000;

	VirtualFree(base + 0x2000, 0x1000, MEM_DECOMMIT);
	begin("refused");
	/* Nothing can be read at that page, and a pointer may reach across its beginning. */
	VirtualAlloc(page - PAGE, PAGE, MEM_COMMIT, PAGE_READWRITE);
	VirtualFree(page - PAGE, PAGE, MEM_DECOMMIT);
	if (!is_refused_everywhere(base, page))
		wrong("something was not refused");
	state("committed", base, 0x2000, "both");
	state("reserved", base + 0x2000, 0x1000, "both");
	state("committed", base + 0x3000, 0x16000, "both");
	state("reserved", page - 0x10000, 0x20000, "only_reserve");
	done();
	release(base);
	release(page - 0x10000);
}

/* ---------------------------------------------------------------- other processes */

static bool start_again(const char *arguments, PROCESS_INFORMATION *info)
{
	STARTUPINFOA startup = {.cb = sizeof(startup)};
	char path[MAX_PATH], line[MAX_PATH + 100];

	GetModuleFileNameA(NULL, path, sizeof(path));
	snprintf(line, sizeof(line), "virtual_cases %s", arguments);
	return CreateProcessA(
		path, line, NULL, NULL, FALSE, CREATE_SUSPENDED, NULL, NULL, &startup, info);
}

static NOINLINE char *in_other_process(HANDLE process)
{
	return step_leak(
		VirtualAllocEx(process, NULL, 0x10000, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
}

static void other_process(void)
{
	PROCESS_INFORMATION child;

	begin("another process");
	if (start_again("", &child)) {
		in_other_process(child.hProcess);
		TerminateProcess(child.hProcess, 0);
		WaitForSingleObject(child.hProcess, INFINITE);
		CloseHandle(child.hThread);
		CloseHandle(child.hProcess);
	} else {
		wrong("no other process");
	}
	done();
}

/* What another process has reserved in this one: nothing was seen of that. */
static char *volatile from_outside;

static void reserve_for(const char *pid, const char *where)
{
	HANDLE process = OpenProcess(PROCESS_ALL_ACCESS, FALSE, strtoul(pid, NULL, 10));
	char *base = VirtualAllocEx(process, NULL, 0x40000, MEM_RESERVE, PAGE_READWRITE);

	WriteProcessMemory(
		process, (void *)(uintptr_t)strtoull(where, NULL, 16), &base, sizeof(base), NULL);
}

static NOINLINE void commit_found(char *base)
{
	commit(base + 0x1000, 0x3000);
	commit(base, 0x8000);
}

static void reserved_before(void)
{
	PROCESS_INFORMATION child;
	char arguments[64];
	char *base;

	begin("reserved before");
	snprintf(arguments, sizeof(arguments), "reserve %lu %llx", GetCurrentProcessId(),
		(unsigned long long)(uintptr_t)&from_outside);
	if (start_again(arguments, &child)) {
		ResumeThread(child.hThread);
		WaitForSingleObject(child.hProcess, INFINITE);
		CloseHandle(child.hThread);
		CloseHandle(child.hProcess);
	}
	base = step_leak(from_outside);
	commit_found(base);
	VirtualFree(base + 0x2000, 0x1000, MEM_DECOMMIT);
	state("committed", base, 0x2000, "commit_found");
	state("committed", base + 0x3000, 0x5000, "commit_found");
	done();
	begin("reserved before, released");
	release(base);
	done();
}

/* ---------------------------------------------------------------- */

static NOINLINE void no_more(void)
{
}

int main(int argc, char **argv)
{
	static const struct said_function functions[] = {SAID_FUNCTION(both),
		SAID_FUNCTION(only_reserve), SAID_FUNCTION(commit_nowhere), SAID_FUNCTION(top_down),
		SAID_FUNCTION(watched), SAID_FUNCTION(in_this_process), SAID_FUNCTION(newer),
		SAID_FUNCTION(plainly), SAID_FUNCTION(commit_low), SAID_FUNCTION(commit_high),
		SAID_FUNCTION(commit_over_both), SAID_FUNCTION(commit_few_bytes),
		SAID_FUNCTION(in_parts), SAID_FUNCTION(both_then_decommit),
		SAID_FUNCTION(release_a_part), SAID_FUNCTION(is_refused_everywhere),
		SAID_FUNCTION(refused), SAID_FUNCTION(start_again), SAID_FUNCTION(in_other_process),
		SAID_FUNCTION(other_process), SAID_FUNCTION(commit_found),
		SAID_FUNCTION(reserved_before), SAID_FUNCTION(no_more)};
	HMODULE ntdll = GetModuleHandleA("ntdll.dll");

	if (argc == 4 && !strcmp(argv[1], "reserve")) {
		reserve_for(argv[2], argv[3]);
		return 0;
	}
	nt_allocate = (nt_allocate_fn)(void *)GetProcAddress(ntdll, "NtAllocateVirtualMemory");
	nt_free = (nt_free_fn)(void *)GetProcAddress(ntdll, "NtFreeVirtualMemory");
	allocate2 = (allocate2_fn)(void *)GetProcAddress(
		GetModuleHandleA("kernelbase.dll"), "VirtualAlloc2");
	say_functions(functions, sizeof(functions) / sizeof(*functions));
	plainly();
	in_parts();
	both_then_decommit();
	release_a_part();
	refused();
	other_process();
	reserved_before();
	return 0;
}
