/* Generated code, whose frames are found with its current unwind data. Unreadable unwind data and
 * callbacks that raise exceptions do no harm. Prints TAP. */
#include <string.h>

#include "snapshot/tracer/unwind.h"
#include "tests/win/again.h"
#include "tests/win/unwind_truth.h"

#define PAGE 4096
#define DATA 512 /* offset of the unwind data in a page of code */
#define WAIT_MS 20000

static const struct unwind_skip none = {0, 0};

/* Frames that were found from a function below generated code. */
static struct seen {
	uint64_t ours[FRAMES_MAX], theirs[FRAMES_MAX];
	uint32_t count, true_count;
	bool with_truth; /* also walk with the system's unwinder, which must support the code */
} seen;

static volatile LONG exceptions_seen; /* counted by a vectored handler */
static volatile LONG callbacks;

/* sub rsp, N; call rcx; add rsp, N; ret */
static void make_code(uint8_t *at, uint8_t frame_bytes)
{
	const uint8_t code[] = {
		0x48, 0x83, 0xec, frame_bytes, 0xff, 0xd1, 0x48, 0x83, 0xc4, frame_bytes, 0xc3};
	/* version 1, a prologue of 4 bytes, 1 code: at 4, UWOP_ALLOC_SMALL, (N - 8) / 8 */
	const uint8_t data[] = {1, 4, 1, 0, 4, (uint8_t)((frame_bytes - 8) / 8 << 4 | 2), 0, 0};

	memcpy(at, code, sizeof(code));
	memcpy(at + DATA, data, sizeof(data));
	FlushInstructionCache(GetCurrentProcess(), at, PAGE);
}

typedef void (*made_fn)(void (*called)(void));

/* Makes a page of code, followed by an unreadable page. */
static uint8_t *made_page(uint8_t frame_bytes)
{
	uint8_t *page = VirtualAlloc(NULL, 2 * PAGE, MEM_RESERVE, PAGE_NOACCESS);

	VirtualAlloc(page, PAGE, MEM_COMMIT, PAGE_EXECUTE_READWRITE);
	make_code(page, frame_bytes);
	return page;
}

static NOINLINE void look(void)
{
	seen.count = unwind_stack(seen.ours, FRAMES_MAX, &none);
	seen.true_count = seen.with_truth ? true_stack(seen.theirs, FRAMES_MAX) : 0;
}

static NOINLINE void go_through(const uint8_t *code, bool with_truth)
{
	seen.with_truth = with_truth;
	((made_fn)(void *)code)(look);
	KEEP_FRAME();
}

static bool is_true(void)
{
	return seen.count == seen.true_count && seen.count > 3 &&
	       !memcmp(seen.ours + 1, seen.theirs + 1, (seen.count - 1) * 8);
}

/* Returns true if the walk ended at the generated code's return address. */
static bool ended_at(const uint8_t *code)
{
	return seen.count == 2 && seen.ours[1] == (uint64_t)code + 6;
}

/* Calls its argument like a normal function, but without unwind data. */
void call_bare(void (*called)(void));
extern const char bare_return[];
__asm__(".text\n"
	".globl call_bare, bare_return\n"
	"call_bare:\n"
	"	pushq %rbx\n"
	"	subq $32, %rsp\n"
	"	call *%rcx\n"
	"bare_return:\n"
	"	addq $32, %rsp\n"
	"	popq %rbx\n"
	"	ret\n");

/* All forms in which code can call look(). Each form's bytes are at code + 9 and begin with its
 * setup. rcx, [rsp + 32] and [code + DATA] hold the address of look(), and jmp rcx is at code +
 * 64. */
static const struct {
	uint8_t bytes[20];
	uint8_t len;
} calls[] = {
	{{0xff, 0xd1}, 2}, /* rcx */
	{{0x49, 0x89, 0xca, 0x41, 0xff, 0xd2}, 6}, /* mov r10, rcx; r10 */
	{{0x48, 0x8d, 0x44, 0x24, 32, 0xff, 0x10}, 7}, /* lea rax, [rsp + 32]; [rax] */
	{{0x31, 0xc0, 0x48, 0x8d, 0x54, 0x24, 32, 0xff, 0x14, 0x02}, 10}, /* [rdx + rax] */
	{{0x48, 0x89, 0xe0, 0xff, 0x50, 32}, 6}, /* mov rax, rsp; [rax + 32] */
	{{0xff, 0x54, 0x24, 32}, 4}, /* [rsp + 32] */
	{{0xff, 0x15, (DATA - 15) & 0xff, (DATA - 15) >> 8, 0, 0}, 6}, /* [rip + ...] */
	/* [rip + ...] with a displacement of 32 bits */
	{{0x48, 0x89, 0xe0, 0xff, 0x90, 32, 0, 0, 0}, 9},
	{{0xff, 0x94, 0x24, 32, 0, 0, 0}, 7},
	{{0x48, 0x8d, 0x44, 0x24, 32, 0x48, 0xc1, 0xe8, 3, 0xff, 0x14, 0xc5, 0, 0, 0, 0},
		16}, /* shr rax, 3; [rax * 8] */
	{{0xe8, 64 - 14, 0, 0, 0}, 5},
};

/* Generates code that has no unwind data and this form of call. Returns true if its frame is the
 * last one. */
static bool ends_behind(unsigned form)
{
	static const uint8_t start[] = {0x48, 0x83, 0xec, 40, 0x48, 0x89, 0x4c, 0x24, 32};
	static const uint8_t end[] = {0x48, 0x83, 0xc4, 40, 0xc3};
	void (*called)(void) = look;
	uint8_t *code = made_page(0x28);
	uint8_t len = calls[form].len;

	memcpy(code, start, sizeof(start));
	memcpy(code + sizeof(start), calls[form].bytes, len);
	memcpy(code + sizeof(start) + len, end, sizeof(end));
	memcpy(code + 64, (const uint8_t[]){0xff, 0xe1}, 2);
	memcpy(code + DATA, &called, sizeof(called));
	go_through(code, false);
	return seen.count == 2 && seen.ours[1] == (uint64_t)code + sizeof(start) + len;
}

/* The frames of this code are correct, because return addresses point to them. The frames after
 * them are unknown. */
static void try_no_data(void)
{
	uint8_t *code = made_page(0x28);
	bool image_right = true, made_right = true;

	seen.with_truth = false;
	/* Must not be unrolled, so that there is one return address. */
	for (volatile int i = 0; i < 5; i++) {
		call_bare(look);
		image_right =
			image_right && seen.count == 2 && seen.ours[1] == (uint64_t)bare_return;
		go_through(code, false);
		made_right = made_right && ended_at(code);
	}
	ok(image_right, "code of an image that has no unwind data ends the walk");
	ok(made_right, "and so does made code that has none");
	made_right = true;
	for (unsigned form = 0; form < sizeof(calls) / sizeof(*calls); form++)
		made_right = ends_behind(form) && made_right;
	ok(made_right, "in whatever form it calls");
}

static LONG CALLBACK on_exception(EXCEPTION_POINTERS *exception)
{
	(void)exception;
	InterlockedIncrement(&exceptions_seen);
	return EXCEPTION_CONTINUE_SEARCH;
}

static bool data_may_change(void)
{
	static RUNTIME_FUNCTION function = {0, 11, DATA};
	uint8_t *code = made_page(0x28);
	bool right = true;

	for (int i = 0; i < 6; i++) { /* other frames at the same addresses */
		make_code(code, i % 2 ? 0x58 : 0x28);
		RtlAddFunctionTable(&function, 1, (DWORD64)code);
		for (int again = 0; again < 3; again++) {
			go_through(code, true);
			right = right && is_true() && seen.ours[1] == (uint64_t)code + 6;
		}
		RtlDeleteFunctionTable(&function);
	}
	return right;
}

/* Returns true if the callee-saved registers are unchanged after the call. */
static NOINLINE bool registers_stay(uint8_t *code)
{
	void *called = (void *)look;
	uint64_t sum = 0;

	__asm__ volatile(
		"movq %[code], %%rax; movq %[called], %%rcx;"
		"movq %%rsp, %%rbx; andq $-16, %%rsp; subq $32, %%rsp;"
		"movq $2, %%rsi; movq $3, %%rdi; movq $4, %%r12; movq $5, %%r13;"
		"movq $6, %%r14; movq $7, %%r15; movq %%r14, %%xmm6; movq %%r15, %%xmm15;"
		"call *%%rax; movq %%rbx, %%rsp;"
		"movq %%rsi, %%rax; addq %%rdi, %%rax; addq %%r12, %%rax; addq %%r13, %%rax;"
		"addq %%r14, %%rax; addq %%r15, %%rax; movq %%xmm6, %%rsi; addq %%rsi, %%rax;"
		"movq %%xmm15, %%rsi; addq %%rsi, %%rax; movq %%rax, %[sum]"
		: [sum] "=m"(sum)
		: [code] "m"(code), [called] "m"(called)
		: "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
		"r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm15",
		"memory", "cc");
	return sum == 2 + 3 + 4 + 5 + 6 + 7 + 6 + 7;
}

/* Tries it twice: the first call must leave no state. */
static void try_unreadable_data(void)
{
	static RUNTIME_FUNCTION function = {0, 11, PAGE};
	uint8_t *code = made_page(0x28);

	RtlAddFunctionTable(&function, 1, (DWORD64)code);
	for (int i = 0; i < 2; i++) {
		uint64_t before = unwind_exceptions;

		exceptions_seen = 0;
		go_through(code, false);
		ok(ended_at(code), "unwind data that cannot be read ends the walk");
		ok(unwind_exceptions == before + 1, "that is counted");
		ok(exceptions_seen == 1, "a vectored handler sees one exception");
	}
	seen.with_truth = false;
	ok(registers_stay(code), "registers are as before");
	RtlDeleteFunctionTable(&function);
}

/* An entry of a function table that is chained to itself. */
static void try_endless_chain(void)
{
	static RUNTIME_FUNCTION function = {0, 11, DATA};
	static const uint8_t data[] = {1 | UNW_FLAG_CHAININFO << 3, 4, 0, 0};
	uint8_t *code = made_page(0x28);

	memcpy(code + DATA, data, sizeof(data));
	memcpy(code + DATA + sizeof(data), &function, sizeof(function));
	RtlAddFunctionTable(&function, 1, (DWORD64)code);
	go_through(code, false);
	ok(ended_at(code), "chained data without an end ends the walk");
	RtlDeleteFunctionTable(&function);
}

static DWORD raised_code, raised_flags;
static RUNTIME_FUNCTION answer = {0, 11, DATA};

static PRUNTIME_FUNCTION CALLBACK on_ask(DWORD64 pc, void *unused)
{
	(void)pc;
	(void)unused;
	InterlockedIncrement(&callbacks);
	if (raised_code)
		RaiseException(raised_code, raised_flags, 0, NULL);
	return &answer;
}

static DWORD WINAPI in_thread(void *code)
{
	go_through(code, false);
	return !ended_at(code);
}

static bool another_thread_walks(uint8_t *code)
{
	HANDLE thread = CreateThread(NULL, 0, in_thread, code, 0, NULL);
	DWORD status = 1;

	if (WaitForSingleObject(thread, WAIT_MS) == WAIT_OBJECT_0)
		GetExitCodeThread(thread, &status);
	return !status;
}

/* flags: a C++ exception is raised as not continuable. */
static void try_callback(DWORD code_raised, DWORD flags)
{
	uint8_t *code = made_page(0x28);

	RtlInstallFunctionTableCallback((DWORD64)code | 3, (DWORD64)code, PAGE, on_ask, NULL, NULL);
	go_through(code, true);
	ok(is_true() && callbacks > 0, "a callback's answer is taken");
	raised_code = code_raised;
	raised_flags = flags;
	exceptions_seen = 0;
	go_through(code, false);
	ok(ended_at(code) && exceptions_seen == 1, "a callback that raises ends the walk");
	callbacks = 0;
	go_through(code, false);
	ok(ended_at(code) && !callbacks && exceptions_seen == 1, "it is not asked again");
	ok(another_thread_walks(code), "walks of other threads are not held up");
}

/* Makes changes that cannot be undone, each in its own process. */
static int be_child(void)
{
	if (!freopen("NUL", "w", stdout)) /* discards the child's TAP */
		return 1;
	AddVectoredExceptionHandler(1, on_exception);
	try_callback(0xe06d7363, EXCEPTION_NONCONTINUABLE);
	return ok_failed;
}

static bool child_is_right(void)
{
	PROCESS_INFORMATION info;
	DWORD status = 77;

	if (!start_again(L"child", &info))
		return false;
	if (WaitForSingleObject(info.hProcess, 2 * WAIT_MS) == WAIT_OBJECT_0)
		GetExitCodeProcess(info.hProcess, &status);
	return status == 0;
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		return be_child();
	try_no_data();
	ok(data_may_change(), "frames of made code are always found by its present data");
	ok(unwind_exceptions == 0 && unwind_mismatches == 0, "without any trouble");
	AddVectoredExceptionHandler(1, on_exception);
	try_unreadable_data();
	try_endless_chain();
	ok(child_is_right(), "all of it with an exception that cannot be continued");
	try_callback(0xe0001111, 0);
	return ok_end();
}
