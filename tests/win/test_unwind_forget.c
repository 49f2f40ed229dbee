/* Code is unloaded and other code, with other frames, is loaded at its address: cached steps must
 * be removed. The test also shows that they would be wrong otherwise, and that a check detects
 * this. It simulates the replacement of a DLL by changing a function and its unwind data. Prints
 * TAP. */
#include <string.h>

#include "snapshot/tracer/unwind.h"
#include "tests/win/unwind_truth.h"

#define FRAMES 3 /* frames of look(), of the function, and of its caller */
/* A known code address that is not the caller's. */
#define WORD ((uint64_t)changing_return)

typedef void made_fn(void (*called)(void), uint64_t word);

/* Calls its first argument, with the second argument in its frame. If the frame is assumed to be 16
 * bytes smaller, the second argument is read as the return address. */
made_fn changing;
extern const char changing_return[], changing_end[];
__asm__(".section .text$changing, \"xw\"\n"
	".globl changing, changing_return, changing_end\n"
	".seh_proc changing\n"
	"changing:\n"
	"	subq $0x28, %rsp\n"
	"	.seh_stackalloc 0x28\n"
	"	.seh_endprologue\n"
	"	movq %rdx, 0x18(%rsp)\n"
	"	call *%rcx\n"
	"changing_return:\n"
	"	addq $0x28, %rsp\n"
	"	ret\n"
	"changing_end:\n"
	"	.seh_endproc\n"
	".text\n");

static const struct unwind_skip none = {0, 0};
static uint64_t ours[FRAMES_MAX], theirs[FRAMES_MAX];

static void write_byte(const void *at, unsigned value)
{
	DWORD old;

	VirtualProtect((void *)at, 1, PAGE_EXECUTE_READWRITE, &old);
	*(uint8_t *)at = (uint8_t)value;
	VirtualProtect((void *)at, 1, old, &old);
}

/* Gives the function a frame of frame_bytes bytes. */
static void change(unsigned frame_bytes)
{
	const uint8_t *code = (const uint8_t *)changing;
	DWORD64 base;
	const RUNTIME_FUNCTION *function = RtlLookupFunctionEntry((DWORD64)code, &base, NULL);

	write_byte(code + 3, frame_bytes); /* sub rsp, N */
	write_byte(code + 8, frame_bytes - 16); /* mov [rsp + N - 16], rdx */
	write_byte(code + 14, frame_bytes); /* add rsp, N */
	/* UWOP_ALLOC_SMALL, (N - 8) / 8 */
	write_byte(
		(const uint8_t *)base + function->UnwindData + 5, (frame_bytes - 8) / 8 << 4 | 2);
	FlushInstructionCache(GetCurrentProcess(), code, 16);
}

static void forget(const char *from, const char *to)
{
	unwind_forget((uint64_t)from, (uint64_t)to);
}

static uint32_t count, true_count;

static NOINLINE void look(void)
{
	count = unwind_stack(ours, FRAMES, &none);
	true_count = true_stack(theirs, FRAMES);
}

/* Walks the stack from a function below; returns true if the frames are correct. */
static NOINLINE bool is_right(uint64_t word)
{
	changing(look, word);
	KEEP_FRAME();
	return count == FRAMES && true_count == FRAMES && ours[1] == theirs[1] &&
	       ours[2] == theirs[2] && ours[1] == (uint64_t)changing_return;
}

/* Counts the walks that wrongly find the word in the function's frame as the return address. */
static unsigned wrong_of(unsigned looks)
{
	unsigned wrong = 0;

	for (unsigned i = 0; i < looks; i++)
		wrong += !is_right(WORD) && ours[2] == WORD;
	return wrong;
}

static bool are_right(unsigned looks)
{
	unsigned right = 0;

	for (unsigned i = 0; i < looks; i++)
		right += is_right(WORD);
	return right == looks;
}

/* Returns true if walks from here call the system's unwinder. */
static NOINLINE bool asks(void)
{
	uint64_t frames[FRAMES_MAX];
	LONG before = unwind_calls;

	unwind_stack(frames, FRAMES_MAX, &none);
	return unwind_calls != before;
}

static bool forgets_this_alone(void)
{
	bool asked[4];

	/* Must not be unrolled, so that there is one return address. */
	for (volatile int i = 0; i < 4; i++) {
		if (i == 2)
			forget((const char *)changing, changing_end);
		if (i == 3)
			unwind_forget((uint64_t)asks, (uint64_t)asks + 100);
		asked[i] = asks();
	}
	return asked[0] && !asked[1] && !asked[2] && asked[3];
}

int main(void)
{
	const char *from = (const char *)changing;

	/* Enough walks that no check is due soon. */
	ok(are_right(2500), "stacks through a function are right");
	change(0x38);
	ok(wrong_of(100) > 50, "when another one takes its place, what was learnt is wrong");
	forget(from, changing_end);
	ok(are_right(100), "after forgetting, stacks are right");
	change(0x48);
	forget(from, changing_return);
	forget(changing_return + 1, changing_end);
	ok(!is_right(WORD), "forgetting all but that address does not help");
	forget(changing_return, changing_return + 1);
	ok(are_right(100), "forgetting that address does");
	count_unwind_calls();
	ok(forgets_this_alone(), "what lies elsewhere is kept");

	change(0x28);
	forget(from, changing_end);
	ok(are_right(100), "stacks are right again");
	change(0x38);
	ok(unwind_mismatches == 0 && !is_right(WORD), "without forgetting they are not");
	wrong_of(4096);
	ok(unwind_mismatches == 1, "a check finds that");
	ok(are_right(100), "and all is right again");
	return ok_end();
}
