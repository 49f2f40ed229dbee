/* The tracer's unwinder finds the same stacks as the system's, and both agree with the program, in
 * which every function on a way records its return address. Ways lead through functions of many
 * kinds in random order. Further tests cover stacks that are cut, damaged or not the thread's own,
 * and how rarely the system's unwinder is called. Prints TAP. */
#include <stdlib.h>
#include <string.h>

#include "snapshot/tracer/unwind.h"
#include "tests/win/unwind_truth.h"

#define SAID_MAX 128
#define THREADS 4
#define WAYS_LONG 3000

/* A way down the stack: its functions, and the return addresses that they recorded. */
struct way {
	uint64_t random;
	unsigned left; /* number of functions still to come */
	bool is_plain; /* the system calls none of the functions */
	unsigned said_count;
	uint64_t said[SAID_MAX];
	bool is_right;
	uint32_t frames_count;
	unsigned long compared;
	struct way *through; /* the way, for callbacks without an argument */
};

typedef void (*kind_fn)(struct way *way);

static const struct unwind_skip none = {0, 0};
static DWORD way_slot;

static unsigned pick(struct way *way, unsigned count)
{
	way->random = way->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(way->random >> 33) % count;
}

/* Returns true if the recorded addresses are frames in the right order. If no system code lies in
 * between, they must be consecutive. */
static bool says_so(const struct way *way, const uint64_t *frames, uint32_t count)
{
	uint32_t at = 3; /* skips the frames of unwind_stack(), compare() and arrive() */

	for (unsigned i = way->said_count; i-- > 0; at++) {
		while (!way->is_plain && at < count && frames[at] != way->said[i])
			at++;
		if (at >= count || frames[at] != way->said[i])
			return false;
	}
	return true;
}

/* The first return addresses are those of the two calls in this function. */
static NOINLINE bool compare(struct way *way)
{
	uint64_t ours[FRAMES_MAX], theirs[FRAMES_MAX];
	uint32_t count, true_count;

	count = unwind_stack(ours, FRAMES_MAX, &none);
	true_count = true_stack(theirs, FRAMES_MAX);
	way->frames_count = count;
	way->compared++;
	return count == true_count && count > 2 && !memcmp(ours + 1, theirs + 1, (count - 1) * 8) &&
	       says_so(way, ours, count);
}

static NOINLINE void arrive(struct way *way)
{
	for (int i = 0; i < 2; i++)
		way->is_right = compare(way) && way->is_right;
}

static kind_fn next(struct way *way);

/* Records the return address, runs the kind's own code, then continues on the way. */
#define SAY(way) ((way)->said[(way)->said_count++] = (uint64_t)__builtin_return_address(0))
#define GO_ON(way)                                                                                 \
	do {                                                                                       \
		next(way)(way);                                                                    \
		KEEP_FRAME();                                                                      \
		(way)->said_count--;                                                               \
	} while (0)

/* A kind that differs in how it is compiled and in the size of its frame. */
#define GO(name, bytes, ...)                                                                       \
	static NOINLINE __VA_ARGS__ void name(struct way *way)                                     \
	{                                                                                          \
		volatile char room[bytes];                                                         \
                                                                                                   \
		room[0] = room[(bytes)-1] = 1;                                                     \
		SAY(way);                                                                          \
		GO_ON(way);                                                                        \
	}
GO(go_unoptimized, 40, __attribute__((optimize("O0"))))
GO(go_without_rbp, 200, __attribute__((optimize("omit-frame-pointer"))))
GO(go_with_rbp, 200, __attribute__((optimize("no-omit-frame-pointer"))))
GO(go_large, 9000, ) /* a frame larger than a page */
GO(go_huge, 300000, ) /* a step too large for the cache */

static NOINLINE void go_small(struct way *way)
{
	SAY(way);
	GO_ON(way);
}

static NOINLINE void go_alloca(struct way *way)
{
	volatile char *room = __builtin_alloca(16 + pick(way, 700));

	room[0] = 1;
	room[1] = room[0];
	SAY(way);
	GO_ON(way);
}

/* RBP is a general register with any value, and all callee-saved registers are in use. */
static NOINLINE __attribute__((optimize("omit-frame-pointer"))) void go_registers(struct way *way)
{
	__asm__ volatile("xorq %%rbx, %%rbx; movq $77, %%rbp; xorq %%rsi, %%rsi; xorq %%rdi, %%rdi;"
			 "xorq %%r12, %%r12; xorq %%r13, %%r13; xorq %%r14, %%r14"
			 :
			 :
			 : "rbx", "rbp", "rsi", "rdi", "r12", "r13", "r14", "r15");
	SAY(way);
	GO_ON(way);
}

static struct way *way_now(void)
{
	return TlsGetValue(way_slot);
}

static int on_sort(const void *left, const void *right)
{
	struct way *way = way_now();

	(void)left;
	(void)right;
	if (way->through) {
		way->through = NULL;
		SAY(way);
		GO_ON(way);
	}
	return 0;
}

/* A kind in which the system calls the function that continues. */
#define CALLED_BACK(name, ...)                                                                     \
	static NOINLINE void name(struct way *way)                                                 \
	{                                                                                          \
		SAY(way);                                                                          \
		way->through = way;                                                                \
		__VA_ARGS__;                                                                       \
		KEEP_FRAME();                                                                      \
		way->said_count--;                                                                 \
	}

static int numbers[2] = {2, 1};

CALLED_BACK(go_qsort, qsort(numbers, 2, sizeof(int), on_sort))
CALLED_BACK(go_bsearch, (void)bsearch(numbers, numbers, 1, sizeof(int), on_sort))

static BOOL CALLBACK on_locale(LPWSTR name)
{
	(void)name;
	on_sort(NULL, NULL);
	KEEP_FRAME();
	return FALSE;
}

CALLED_BACK(go_locales, EnumSystemLocalesW(on_locale, LCID_INSTALLED))

/* A leaf. It has no unwind data and needs none, because it calls nothing. Reads from its
 * argument. */
void read_leaf(const void *at);
extern const char read_leaf_end[];
__asm__(".text\n"
	".globl read_leaf, read_leaf_end\n"
	"read_leaf:\n"
	"	movb (%rcx), %al\n"
	"read_leaf_end:\n"
	"	ret\n");

static LONG CALLBACK on_exception(EXCEPTION_POINTERS *exception)
{
	if (exception->ContextRecord->Rip == (DWORD64)read_leaf)
		exception->ContextRecord->Rip = (DWORD64)read_leaf_end;
	else if (exception->ExceptionRecord->ExceptionCode != 0xe0001234)
		return EXCEPTION_CONTINUE_SEARCH;
	on_sort(NULL, NULL);
	KEEP_FRAME();
	return EXCEPTION_CONTINUE_EXECUTION;
}

CALLED_BACK(go_exception, RaiseException(0xe0001234, 0, 0, NULL))

/* An interrupted leaf is a normal frame. */
CALLED_BACK(go_leaf, read_leaf(NULL))

static void CALLBACK on_apc(ULONG_PTR unused)
{
	(void)unused;
	on_sort(NULL, NULL);
	KEEP_FRAME();
}

CALLED_BACK(go_apc, QueueUserAPC(on_apc, GetCurrentThread(), 0); SleepEx(0, TRUE))

/* Continues in a thread of the pool, which has its own stack. */
struct ride {
	struct way *way;
	HANDLE done;
};

static DWORD CALLBACK on_pool(void *arg)
{
	struct ride *ride = arg;
	struct way *way = ride->way;

	TlsSetValue(way_slot, way);
	way->through = way;
	on_sort(NULL, NULL);
	SetEvent(ride->done);
	return 0;
}

static NOINLINE void go_pool(struct way *way)
{
	struct ride ride = {way, CreateEventW(NULL, TRUE, FALSE, NULL)};
	unsigned said_count = way->said_count;

	way->said_count = 0;
	QueueUserWorkItem(on_pool, &ride, WT_EXECUTEDEFAULT);
	WaitForSingleObject(ride.done, INFINITE);
	CloseHandle(ride.done);
	way->said_count = said_count;
}

static const kind_fn kinds[] = {go_small, go_unoptimized, go_without_rbp, go_with_rbp, go_alloca,
	go_large, go_registers, go_small, go_qsort, go_bsearch, go_locales, go_exception, go_leaf,
	go_apc, go_pool, go_huge};
#define KINDS ((unsigned)(sizeof(kinds) / sizeof(*kinds)))
#define PLAIN_KINDS 8u

/* Chooses the next kind; slow kinds are rare. */
static kind_fn next(struct way *way)
{
	unsigned kind;

	if (!way->left)
		return arrive;
	way->left--;
	kind = pick(way, way->is_plain || pick(way, 4) ? PLAIN_KINDS : KINDS);
	if (kinds[kind] == go_huge && (way->is_plain || pick(way, 8)))
		kind = 0;
	return kinds[kind];
}

/* Walks some ways of random lengths; returns true if all walks were right. */
static bool walk_ways(
	uint64_t seed, unsigned ways, unsigned longest, bool is_plain, unsigned long *compared)
{
	struct way way = {.random = seed, .is_plain = is_plain, .is_right = true};

	TlsSetValue(way_slot, &way);
	for (unsigned i = 0; i < ways; i++) {
		way.left = pick(&way, longest + 1);
		way.said_count = 0;
		next (&way)(&way);
	}
	*compared += way.compared;
	return way.is_right;
}

static DWORD WINAPI in_thread(void *arg)
{
	unsigned long compared = 0;

	return !walk_ways((uintptr_t)arg, WAYS_LONG / THREADS, 20, false, &compared);
}

static volatile LONG all_done;

static DWORD WINAPI forgetful(void *unused)
{
	(void)unused;
	while (!all_done)
		unwind_forget_all();
	return 0;
}

static bool threads_are_right(bool with_forgetting)
{
	HANDLE threads[THREADS], other = NULL;
	bool right = true;

	all_done = 0;
	if (with_forgetting)
		other = CreateThread(NULL, 0, forgetful, NULL, 0, NULL);
	for (uintptr_t i = 0; i < THREADS; i++)
		threads[i] = CreateThread(NULL, 0, in_thread, (void *)(i + 5), 0, NULL);
	for (int i = 0; i < THREADS; i++) {
		DWORD status = 1;

		WaitForSingleObject(threads[i], INFINITE);
		GetExitCodeProcess(threads[i], &status);
		GetExitCodeThread(threads[i], &status);
		right = right && !status;
		CloseHandle(threads[i]);
	}
	all_done = 1;
	if (other) {
		WaitForSingleObject(other, INFINITE);
		CloseHandle(other);
	}
	return right;
}

/* ---------------------------------------------------------------- limits */

/* Walks at the end of `depth` calls. The outermost frames are cut, and nothing is written after
 * max. */
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

/* A frame inside [from, to) is skipped at the inner end only. */
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
	/* Both walks are called from one place, so their return addresses are equal. */
	for (int i = 0; i < 2; i++) {
		count[i] = unwind_stack(i ? rest : all, FRAMES_MAX, &own);
		own = (struct unwind_skip){(uint64_t)skips, (uint64_t)skips + 600};
	}
	while (left_out < count[0] && all[left_out] >= own.from && all[left_out] < own.to)
		left_out++;
	return left_out == 6 && count[1] + left_out == count[0] &&
	       !memcmp(all + left_out, rest, count[1] * 8);
}

/* Returns how often this many walks from here call the system's unwinder. */
static NOINLINE LONG calls_in(unsigned walks)
{
	uint64_t frames[FRAMES_MAX];
	LONG before = unwind_calls;

	for (unsigned i = 0; i < walks; i++)
		unwind_stack(frames, FRAMES_MAX, &none);
	return unwind_calls - before;
}

/* Like calls_in(), but from a frame based on RBP, whose size is known only at run time. */
static NOINLINE LONG calls_above_rbp(unsigned walks)
{
	volatile char *room = __builtin_alloca(walks % 1000 + 100);
	LONG calls;

	room[0] = 1;
	calls = calls_in(walks);
	KEEP_FRAME();
	return calls;
}

/* Walks use the cache, except for checks: one walk in 4096, and a few at first. */
static bool asks_rarely(void)
{
	LONG calls[3];

	unwind_forget_all();
	/* Must not be unrolled, so that there is one return address. */
	for (volatile int i = 0; i < 3; i++)
		calls[i] = calls_above_rbp(i == 1 ? 4 * 4096 : 1);
	printf("# asked %ld, %ld, %ld times\n", calls[0], calls[1], calls[2]);
	return calls[0] > 2 && calls[1] > 0 && calls[1] < 20 * FRAMES_MAX && calls[2] == 0;
}

/* Changes the return address of the caller's caller during the walk. If it is not in code, the walk
 * ends at the frame before it, even if it is the last requested frame. */
static NOINLINE bool damaged(uint64_t wanted, uint64_t value)
{
	uint64_t *slot = __builtin_frame_address(0); /* above the local variables */
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

/* Returns the number of frames found on a new way that leaves `bytes` bytes of the thread's
 * stack. */
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

/* Uses memory that the system does not regard as the thread's stack. */
static uint32_t elsewhere_count, named_count;

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
	named_count = unwind_stack(frames, 8, &none);
	SwitchToFiber(back);
}

static bool is_whole_elsewhere(void)
{
	void *here = ConvertThreadToFiber(NULL);
	void *fiber = CreateFiber(0, on_fiber, here);

	SwitchToFiber(fiber);
	DeleteFiber(fiber);
	return elsewhere_count > 1 && elsewhere_count == named_count;
}

int main(void)
{
	unsigned long compared = 0;

	ok(cuts_are_right(), "stacks deeper than what was asked for");
	ok(skips(5), "frames of the tracer's own are left out");
	ok(damage_is_survived(), "a return address that is no code is no frame");
	ok(is_whole_elsewhere(), "a stack that is not the thread's is walked as if it were");
	ok(frames_in_thread_near_end(100000) > 200, "nearly full stacks");
	ok(frames_in_thread_near_end(25000) == 0, "full ones are not filled further");
	count_unwind_calls();
	ok(asks_rarely(), "the system's unwinder is asked once, and then to check");
	way_slot = TlsAlloc();
	AddVectoredExceptionHandler(1, on_exception);
	ok(walk_ways(1, WAYS_LONG, 60, true, &compared), "ways through functions of all kinds");
	ok(walk_ways(2, WAYS_LONG, 16, false, &compared), "ways through callbacks of the system");
	ok(compared >= 4 * WAYS_LONG, "thousands of stacks were compared");
	ok(threads_are_right(false), "several threads at once");
	ok(threads_are_right(true), "while another one forgets all");
	ok(unwind_mismatches == 0, "no walk was found wrong");
	ok(unwind_exceptions == 0, "none was ended by an exception");
	return ok_end();
}
