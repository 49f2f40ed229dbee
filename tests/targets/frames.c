/* Allocates once through each of several doors to the heap, from callers with different kinds of
 * frames. It prints "chain FUNCTION CALLER ..." for each call, innermost function first, up to main
 * or the thread's function. tests/e2e_frames32.t builds it for 32 bits, with frame pointers and
 * without. With the argument "hide" its unwind rules are unreadable. */
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#define NOINLINE __attribute__((noinline, noclone))

PVOID WINAPI RtlAllocateHeap(HANDLE heap, ULONG flags, SIZE_T bytes);

static void *volatile kept;
static volatile unsigned zero;
static HANDLE own_heap;

typedef void door(unsigned bytes);

/* The test after the call prevents a tail call. */
static inline void keep(void *block)
{
	if (!block)
		ExitProcess(3);
	kept = block;
}

/* ---------------------------------------------------------------- doors */

static NOINLINE void by_malloc(unsigned bytes)
{
	keep(malloc(bytes));
}

static NOINLINE void by_calloc(unsigned bytes)
{
	keep(calloc(bytes, 1));
}

static NOINLINE void by_realloc(unsigned bytes)
{
	keep(realloc(NULL, bytes));
}

static NOINLINE void by_growth(unsigned bytes)
{
	keep(realloc(malloc(1), bytes * 100));
}

static NOINLINE void by_strdup(unsigned bytes)
{
	char text[300];

	memset(text, 'x', sizeof(text));
	text[bytes % sizeof(text)] = 0;
	keep(_strdup(text));
}

static NOINLINE void by_wcsdup(unsigned bytes)
{
	wchar_t text[300];

	for (unsigned i = 0; i < 300; i++)
		text[i] = 'x';
	text[bytes % 300] = 0;
	keep(_wcsdup(text));
}

static NOINLINE void by_aligned_malloc(unsigned bytes)
{
	keep(_aligned_malloc(bytes, 64));
}

static NOINLINE void by_HeapAlloc(unsigned bytes)
{
	keep(HeapAlloc(GetProcessHeap(), 0, bytes));
}

static NOINLINE void by_own_heap(unsigned bytes)
{
	keep(HeapAlloc(own_heap, HEAP_ZERO_MEMORY, bytes));
}

static NOINLINE void by_HeapReAlloc(unsigned bytes)
{
	keep(HeapReAlloc(own_heap, 0, HeapAlloc(own_heap, 0, 1), bytes * 100));
}

static NOINLINE void by_LocalAlloc(unsigned bytes)
{
	keep(LocalAlloc(LMEM_FIXED, bytes));
}

static NOINLINE void by_GlobalAlloc(unsigned bytes)
{
	keep(GlobalAlloc(GMEM_FIXED, bytes));
}

static NOINLINE void by_ntdll(unsigned bytes)
{
	keep(RtlAllocateHeap(own_heap, 0, bytes));
}

static NOINLINE void by_VirtualAlloc(unsigned bytes)
{
	keep(VirtualAlloc(NULL, bytes, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE));
}

/* ---------------------------------------------------------------- callers */

static NOINLINE void plain(door *by, unsigned bytes)
{
	by(bytes);
	zero = 0;
}

static NOINLINE void WINAPI as_stdcall(unsigned bytes, door *by)
{
	by(bytes);
	zero = 0;
}

static NOINLINE void __fastcall as_fastcall(unsigned bytes, door *by)
{
	by(bytes);
	zero = 0;
}

/* The compiler pushes this function's arguments between calls. */
static NOINLINE unsigned with_arguments(door *by, unsigned a, unsigned b, unsigned c, unsigned d,
	unsigned e, unsigned f, unsigned g)
{
	as_stdcall(a + zero, by);
	as_stdcall(b + zero, by);
	return c + d * e + f * g + zero;
}

static NOINLINE void with_alloca(door *by, unsigned bytes)
{
	volatile char *room = __builtin_alloca(bytes + zero);

	room[bytes - 1] = 1;
	by(bytes);
	zero = room[bytes - 1] - 1u;
}

static NOINLINE void use(volatile char *room, unsigned bytes)
{
	room[bytes - 1] = 1;
}

static NOINLINE void with_alignment(door *by, unsigned bytes)
{
	__attribute__((aligned(64))) volatile char room[128];

	use(room, sizeof(room));
	by(bytes);
	zero = room[127] - 1u;
}

__attribute__((force_align_arg_pointer)) static NOINLINE void with_realignment(
	door *by, unsigned bytes)
{
	by(bytes);
	zero = 0;
}

/* The frame is larger than the guard page, so the prologue calls a function. */
static NOINLINE void with_large_frame(door *by, unsigned bytes)
{
	volatile char room[50000];

	use(room, sizeof(room));
	by(bytes);
	zero = room[49999] - 1u;
}

struct large {
	unsigned words[20];
};

/* This function receives the address of its return value. */
static NOINLINE struct large with_structure(door *by, unsigned bytes)
{
	struct large value = {{bytes}};

	by(bytes);
	value.words[19] = zero;
	return value;
}

/* Uses more values than there are registers. If EBP is free, EBP is used too. */
static NOINLINE unsigned with_registers(door *by, unsigned bytes)
{
	unsigned a = zero + 1, b = zero + 2, c = zero + 3, d = zero + 4, e = zero + 5;

	for (unsigned i = 0; i < 1 + zero; i++) {
		by(bytes + zero);
		a += b ^ i;
		b += c;
		c += d;
		d += e;
		e += a;
	}
	return a ^ b ^ c ^ d ^ e;
}

static NOINLINE void with_varargs(door *by, ...)
{
	va_list list;

	va_start(list, by);
	by(va_arg(list, unsigned));
	va_end(list);
	zero = 0;
}

static NOINLINE void recursive(door *by, unsigned depth)
{
	if (depth)
		recursive(by, depth - 1);
	else
		by(100);
	zero = 0;
}

static door *for_callback;
static unsigned compared;

static NOINLINE int __cdecl compare(const void *a, const void *b)
{
	if (!compared++)
		for_callback(90);
	return *(const char *)a - *(const char *)b;
}

/* The C library calls the function that allocates. */
static NOINLINE void with_callback(door *by)
{
	char letters[2] = {'b', 'a'};

	for_callback = by;
	compared = 0;
	qsort(letters, 2, 1, compare);
	zero = 0;
}

static NOINLINE BOOL WINAPI once(PINIT_ONCE init, PVOID parameter, PVOID *context)
{
	(void)init;
	(void)context;
	((door *)parameter)(80);
	return zero == 0;
}

/* The system calls the function that allocates. */
static NOINLINE void with_system(door *by)
{
	static INIT_ONCE init = INIT_ONCE_STATIC_INIT;

	InitOnceExecuteOnce(&init, once, (PVOID)by, NULL);
	zero = 0;
}

/* The function's call instruction begins at the last byte of a page. */
void across_pages(door *by);

__asm__(".text\n"
	".p2align 12\n"
	".space 4090, 0x90\n"
	".globl _across_pages\n"
	".def _across_pages; .scl 2; .type 32; .endef\n"
	"_across_pages:\n"
	".cfi_startproc\n"
	"	pushl %ebp\n"
	".cfi_def_cfa_offset 8\n"
	".cfi_offset 5, -8\n"
	"	movl %esp, %ebp\n"
	".cfi_def_cfa_register 5\n"
	"	pushl $60\n"
	"	call *8(%ebp)\n"
	"	leave\n"
	"	ret\n"
	".cfi_endproc\n");

/* The system may call this function at any place of the thread, so its stack ends there. */
static NOINLINE void CALLBACK apc(ULONG_PTR by)
{
	((door *)by)(75);
	zero = 0;
}

static NOINLINE void with_apc(door *by)
{
	QueueUserAPC(apc, GetCurrentThread(), (ULONG_PTR)by);
	SleepEx(0, TRUE);
	zero = 0;
}

static NOINLINE DWORD WINAPI thread(PVOID parameter)
{
	plain((door *)parameter, 70);
	return zero;
}

/* Makes .eh_frame unreadable. It is the read-only section that begins with a CIE. */
static void hide_rules(void)
{
	char *base = (char *)GetModuleHandleW(NULL);
	const IMAGE_NT_HEADERS *nt =
		(const IMAGE_NT_HEADERS *)(base + ((const IMAGE_DOS_HEADER *)base)->e_lfanew);
	const IMAGE_SECTION_HEADER *section = IMAGE_FIRST_SECTION(nt);
	DWORD old;

	for (int i = 0; i < nt->FileHeader.NumberOfSections; i++, section++) {
		const DWORD *words = (const DWORD *)(base + section->VirtualAddress);

		if (section->Misc.VirtualSize > 16 && words[0] == 0x14 && !words[1] &&
			!memcmp((const char *)words + 8, "\1zR", 4) &&
			VirtualProtect(base + section->VirtualAddress, section->Misc.VirtualSize,
				PAGE_NOACCESS, &old))
			return;
	}
	ExitProcess(4);
}

int main(int argc, char **argv)
{
	HANDLE other;
	struct large value;

	if (argc > 1 && !strcmp(argv[1], "hide"))
		hide_rules();
	own_heap = HeapCreate(0, 0, 0);
	plain(by_malloc, 10);
	plain(by_calloc, 11);
	plain(by_realloc, 12);
	plain(by_growth, 13);
	plain(by_strdup, 14);
	plain(by_wcsdup, 15);
	plain(by_aligned_malloc, 16);
	plain(by_HeapAlloc, 17);
	plain(by_own_heap, 18);
	plain(by_HeapReAlloc, 19);
	plain(by_LocalAlloc, 20);
	plain(by_GlobalAlloc, 21);
	plain(by_ntdll, 22);
	plain(by_VirtualAlloc, 23);
	as_fastcall(30, by_malloc);
	zero = with_arguments(by_malloc, 31, 32, 0, 0, 0, 0, 0);
	with_alloca(by_malloc, 33);
	with_alignment(by_malloc, 34);
	with_realignment(by_malloc, 35);
	with_large_frame(by_malloc, 36);
	value = with_structure(by_malloc, 37);
	zero = value.words[19];
	zero = with_registers(by_malloc, 38) * zero;
	with_varargs(by_malloc, 39);
	recursive(by_calloc, 5);
	with_callback(by_calloc);
	with_system(by_calloc);
	across_pages(by_calloc);
	with_apc(by_calloc);
	other = CreateThread(NULL, 0, thread, (PVOID)by_ntdll, 0, NULL);
	WaitForSingleObject(other, INFINITE);
	puts("chain by_malloc plain main\nchain by_calloc plain main\nchain by_realloc plain main\n"
	     "chain by_growth plain main\nchain by_strdup plain main\nchain by_wcsdup plain main\n"
	     "chain by_aligned_malloc plain main\nchain by_HeapAlloc plain main\n"
	     "chain by_own_heap plain main\nchain by_HeapReAlloc plain main\n"
	     "chain by_LocalAlloc plain main\nchain by_GlobalAlloc plain main\n"
	     "chain by_ntdll plain main\nchain by_VirtualAlloc plain main\n"
	     "chain by_malloc as_fastcall main\nchain by_malloc as_stdcall with_arguments main\n"
	     "chain by_malloc with_alloca main\nchain by_malloc with_alignment main\n"
	     "chain by_malloc with_realignment main\nchain by_malloc with_large_frame main\n"
	     "chain by_malloc with_structure main\nchain by_malloc with_registers main\n"
	     "chain by_malloc with_varargs main\n"
	     "chain by_calloc recursive recursive recursive recursive recursive recursive main\n"
	     "chain by_calloc compare with_callback main\nchain by_calloc once with_system main\n"
	     "chain by_calloc across_pages main\nchain by_calloc apc\nchain by_ntdll plain thread");
	fflush(stdout);
	return 0;
}
