/*
 * How a program that takes virtual memory tells what there must be. First it says where its functions
 * are:
 *
 *	function NAME ADDR
 *
 * Then for each case it says what there must be, waits as samples do ("step K pid P"), and frees
 * everything:
 *
 *	case NAME
 *	pages KIND ADDR BYTES FUNCTION
 *	cannot WHAT
 *
 * KIND is committed, reserved or mapped; FUNCTION is who made it so. Nothing else may be there that a
 * function of the program has taken. What is said has been compared with VirtualQuery; a difference
 * is told in a line "wrong ...". "cannot" is what this system refuses, and what is said does without.
 * Numbers are hexadecimal.
 */
#ifndef TESTS_TARGETS_VIRTUAL_SAID_H
#define TESTS_TARGETS_VIRTUAL_SAID_H

#include <stdint.h>

#include "samples/step.h"

#define PAGE 0x1000u

static char said[1 << 18], *said_end = said;

static char *put_hex(char *to, uint64_t value)
{
	char digits[20];
	int count = 0;

	do
		digits[count++] = "0123456789ABCDEF"[value % 16];
	while (value /= 16);
	while (count)
		*to++ = digits[--count];
	return to;
}

static void say(const char *words)
{
	said_end = step_text(said_end, words);
}

static void say_hex(uint64_t value)
{
	*said_end++ = ' ';
	said_end = put_hex(said_end, value);
}

/* Whether the system says so of all pages. */
static bool is_so(const char *kind, const char *addr, SIZE_T bytes)
{
	DWORD state = strcmp(kind, "committed") ? MEM_RESERVE : MEM_COMMIT;
	bool is_view = !strcmp(kind, "mapped");
	MEMORY_BASIC_INFORMATION info;

	for (const char *at = addr; at < addr + bytes; at += info.RegionSize) {
		if (!VirtualQuery(at, &info, sizeof(info)))
			return false;
		if (is_view ? info.Type != MEM_MAPPED :
			      info.State != state || info.Type != MEM_PRIVATE)
			return false;
	}
	return true;
}

static void state(const char *kind, const void *addr, SIZE_T bytes, const char *function)
{
	if (!is_so(kind, addr, bytes))
		say("wrong ");
	say("pages ");
	say(kind);
	say_hex((uintptr_t)addr);
	say_hex(bytes);
	say(" ");
	say(function);
	say("\n");
}

static void wrong(const char *what)
{
	say("wrong ");
	say(what);
	say("\n");
}

static void begin(const char *name)
{
	say("case ");
	say(name);
	say("\n");
}

/* Says it all, and waits. */
static void done(void)
{
	static unsigned long step;
	DWORD put;

	WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), said, (DWORD)(said_end - said), &put, NULL);
	said_end = said;
	if (!step_done(++step))
		ExitProcess(0);
}

/* Where the functions are that take memory, and those that call them; the last one only ends them. */
struct said_function {
	const char *name;
	uintptr_t addr;
};
#define SAID_FUNCTION(name)                                                                        \
	{                                                                                          \
#name, (uintptr_t)(name)                                                           \
	}

static void say_functions(const struct said_function *functions, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		say("function ");
		say(functions[i].name);
		say_hex(functions[i].addr);
		say("\n");
	}
}

/* ---------------------------------------------------------------- what all take */

static void release(void *addr)
{
	if (!VirtualFree(addr, 0, MEM_RELEASE))
		wrong("release");
}

static NOINLINE char *both(void)
{
	return step_leak(VirtualAlloc(NULL, 100001, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
}

static NOINLINE char *only_reserve(SIZE_T bytes)
{
	return step_leak(VirtualAlloc(NULL, bytes, MEM_RESERVE, PAGE_READWRITE));
}

/* No frame of its own: the caller is who commits. */
static inline __attribute__((always_inline)) void commit(char *at, SIZE_T bytes)
{
	step_leak(VirtualAlloc(at, bytes, MEM_COMMIT, PAGE_READWRITE));
}

static NOINLINE void commit_low(char *base)
{
	commit(base + 0x3000, 0x2000);
}

#endif
