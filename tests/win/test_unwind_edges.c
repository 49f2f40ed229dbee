/*
 * The tracer's unwinder where stacks are cut, damaged or not the thread's own, and how rarely it asks
 * the system's. Speaks TAP.
 */
#include <stdlib.h>
#include <string.h>

#include "snapshot/tracer/unwind.h"
#include "tests/win/unwind_truth.h"

static const struct unwind_skip none = {0, 0};

/* Under depth calls: the outermost frames are cut, and nothing past max is written. */
static NOINLINE bool cut(unsigned depth, uint32_t max)
{
	uint64_t ours[FRAMES_MAX + 1], theirs[FRAMES_MAX];
	uint32_t count, true_count;
	bool right;

	if (depth) {
		right = cut(depth - 1, max);
		KEEP_FRAME();
		return right;
	}
	ours[max] = 77;
	true_count = true_stack(theirs, max);
	count = unwind_stack(ours, max, &none);
	return count == true_count && count <= max && ours[max] == 77 &&
	       (count < 2 || !memcmp(ours + 1, theirs + 1, (count - 1) * 8));
}

static bool cuts_are_right(void)
{
	bool right = true;

	for (unsigned depth = 0; depth < 90; depth++) {
		for (uint32_t max = 0; max < 100; max += 9)
			right = cut(depth, max) && right;
	}
	return right;
}

/* A frame inside [from, to) is left out at the inner end, and nowhere else. */
static NOINLINE bool skips(unsigned depth)
{
	uint64_t all[FRAMES_MAX] = {0}, rest[FRAMES_MAX] = {0};
	struct unwind_skip own = {0, 0};
	uint32_t count[2], left_out = 0;
	bool right;

	if (depth) {
		right = skips(depth - 1);
		KEEP_FRAME();
		return right;
	}
	/* Both calls at one place: their return addresses are equal then. */
	for (int i = 0; i < 2; i++) {
		count[i] = unwind_stack(i ? rest : all, FRAMES_MAX, &own);
		own = (struct unwind_skip){(uint64_t)skips, (uint64_t)skips + 600};
	}
	while (left_out < count[0] && all[left_out] >= own.from && all[left_out] < own.to)
		left_out++;
	return left_out == 6 && count[1] + left_out == count[0] &&
	       !memcmp(all + left_out, rest, count[1] * 8);
}

/* How often the system's unwinder is asked in so many walks from here. */
static NOINLINE LONG calls_in(unsigned walks)
{
	uint64_t frames[FRAMES_MAX];
	LONG before = unwind_calls;

	for (unsigned i = 0; i < walks; i++)
		unwind_stack(frames, FRAMES_MAX, &none);
	return unwind_calls - before;
}

/* The same from a frame that hangs on RBP, for its size is known at run time only. */
static NOINLINE LONG calls_above_rbp(unsigned walks)
{
	volatile char *room = __builtin_alloca(walks % 1000 + 100);
	LONG calls;

	room[0] = 1;
	calls = calls_in(walks);
	KEEP_FRAME();
	return calls;
}

/* Walks by the cache, but for those that are checked: 1 in 4096 and a few at first. */
static bool asks_rarely(void)
{
	LONG calls[3];

	unwind_forget_all();
	for (volatile int i = 0; i < 3; i++) /* not unrolled: from one place */
		calls[i] = calls_above_rbp(i == 1 ? 4 * 4096 : 1);
	printf("# asked %ld, %ld, %ld times\n", calls[0], calls[1], calls[2]);
	return calls[0] > 2 && calls[1] > 0 && calls[1] < 20 * FRAMES_MAX && calls[2] == 0;
}

/*
 * The return address of the caller's caller is another one while the stack is looked at. If that is no
 * code, the walk ends with the frame before it, also where it is the last one asked for.
 */
static NOINLINE bool damaged(uint64_t wanted, uint64_t value)
{
	uint64_t *slot = __builtin_frame_address(0); /* above what is local here */
	uint64_t whole[FRAMES_MAX], ours[FRAMES_MAX], theirs[FRAMES_MAX];
	uint32_t whole_count = unwind_stack(whole, FRAMES_MAX, &none), before = 0;
	uint32_t count, true_count, cut_count;

	while (before < whole_count && whole[before] != wanted)
		before++;
	while (*(volatile uint64_t *)slot != wanted)
		slot++;
	*(volatile uint64_t *)slot = value;
	cut_count = unwind_stack(ours, before + 1, &none);
	count = unwind_stack(ours, FRAMES_MAX, &none);
	true_count = true_stack(theirs, FRAMES_MAX);
	*(volatile uint64_t *)slot = wanted;
	if (!is_code(value) && (count != before || cut_count != before))
		return false;
	return count == true_count && count > 1 && !memcmp(ours + 1, theirs + 1, (count - 1) * 8);
}

static NOINLINE bool damage_below(unsigned depth, uint64_t value)
{
	bool right = depth ? damage_below(depth - 1, value) :
			     damaged((uint64_t)__builtin_return_address(0), value);

	KEEP_FRAME();
	return right;
}

static bool damage_is_survived(void)
{
	char *data = calloc(1, 8);
	const uint64_t values[] = {0, 1, 8, 0x1234, 0xdeadbabe, 0x7fffffff0000, 0xdeadbeefdeadbeef,
		UINT64_MAX, (uint64_t)&ok_count, (uint64_t)data, (uint64_t)&data,
		(uint64_t)damage_below, (uint64_t)cut};
	bool right = true;

	for (unsigned i = 0; i < sizeof(values) / sizeof(*values); i++) {
		for (int again = 0; again < 3; again++)
			right = damage_below(5 + i, values[i]) && right;
	}
	free(data);
	return right;
}

/* So many bytes above the end of the thread's stack: how many frames are found on a new way. */
static NOINLINE uint32_t frames_near_end(uint64_t bytes)
{
	volatile char room[1024];
	uint64_t frames[FRAMES_MAX];
	MEMORY_BASIC_INFORMATION info;
	uint32_t count;

	room[0] = 0;
	VirtualQuery((const void *)room, &info, sizeof(info));
	if ((uint64_t)room - (uint64_t)info.AllocationBase > bytes) {
		count = frames_near_end(bytes);
		KEEP_FRAME();
		return count;
	}
	unwind_forget_all();
	return unwind_stack(frames, FRAMES_MAX, &none);
}

static DWORD WINAPI near_end(void *bytes)
{
	return frames_near_end((uintptr_t)bytes);
}

static DWORD frames_in_thread_near_end(uintptr_t bytes)
{
	HANDLE thread = CreateThread(NULL, 0, near_end, (void *)bytes, 0, NULL);
	DWORD count = 77;

	WaitForSingleObject(thread, INFINITE);
	GetExitCodeThread(thread, &count);
	CloseHandle(thread);
	return count;
}

/* On memory that the system does not know as a stack of the thread. */
static uint32_t elsewhere_count;

static void CALLBACK on_fiber(void *back)
{
	uint64_t frames[8];
	NT_TIB *tib = (NT_TIB *)NtCurrentTeb();
	void *base = tib->StackBase, *limit = tib->StackLimit;

	tib->StackBase = (void *)0x20000;
	tib->StackLimit = (void *)0x10000;
	elsewhere_count = unwind_stack(frames, 8, &none);
	tib->StackBase = base;
	tib->StackLimit = limit;
	SwitchToFiber(back);
}

static uint32_t frames_elsewhere(void)
{
	void *here = ConvertThreadToFiber(NULL);
	void *fiber = CreateFiber(0, on_fiber, here);

	elsewhere_count = 77;
	SwitchToFiber(fiber);
	DeleteFiber(fiber);
	return elsewhere_count;
}

int main(void)
{
	ok(cuts_are_right(), "stacks deeper than what was asked for");
	ok(skips(5), "frames of the tracer's own are left out");
	ok(damage_is_survived(), "a return address that is no code is no frame");
	ok(frames_elsewhere() == 0, "no frames of a stack that is not the thread's");
	ok(frames_in_thread_near_end(100000) > 200, "nearly full stacks");
	ok(frames_in_thread_near_end(25000) == 0, "full ones are not filled further");
	ok(unwind_mismatches == 0, "no walk was found wrong");
	ok(unwind_exceptions == 0, "none was ended by an exception");
	count_unwind_calls();
	ok(asks_rarely(), "the system's unwinder is asked once, and then to check");
	return ok_end();
}
