/* Functions that are patched as planned do what they did before, through a hook. Needs an x86-64. */
#include "tests/unit/t.h"

#include <sys/mman.h>

#include "snapshot/control/patch_plan.h"

#if defined(__x86_64__)

static size_t from_hex(const char *text, uint8_t *bytes)
{
	size_t count = 0;

	for (; *text; text++) {
		char digits[3] = {text[0], text[1], 0};

		if (*text == ' ')
			continue;
		bytes[count++] = (uint8_t)strtoul(digits, NULL, 16);
		text++;
	}
	return count;
}

typedef uint64_t (*function_type)(uint64_t a, uint64_t b);

static function_type original;
static unsigned hook_calls;

static uint64_t hook(uint64_t a, uint64_t b)
{
	hook_calls++;
	return original(a, b);
}

#define BODY 0x100 /* where the function is; at 0 and 0x80 is what it jumps to */

/* first: rax = a + 2 b; at 0x80: rax = a - b + 1 */
static void run_one(const char *hex)
{
	static const uint64_t arguments[][2] = {{0, 0}, {1, 0}, {0, 1}, {7, 3}, {3, 7}, {1000, 50}};
	uint8_t *code = mmap(
		NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct patch_request request = {
		.bits = 64, .code_bytes = PATCH_CODE_BYTES, .hook = (uintptr_t)hook};
	uint64_t before[6];
	struct patch_plan plan;
	function_type function;
	uintptr_t place;

	assert_true(code != MAP_FAILED);
	from_hex("48 8d 04 77 c3", code);
	from_hex("48 89 f8 48 29 f0 48 ff c0 c3", code + 0x80);
	memset(code + BODY, 0x90, PATCH_CODE_BYTES);
	from_hex(hex, code + BODY);
	place = (uintptr_t)(code + BODY);
	function = (function_type)place;
	for (size_t i = 0; i < 6; i++)
		before[i] = function(arguments[i][0], arguments[i][1]);
	request.code = code + BODY;
	request.function = place;
	request.slot = (uintptr_t)(code + 4096);
	if (!patch_plan(&plan, &request))
		fail_msg("%s is refused", hex);
	memcpy(code + 4096, plan.slot, sizeof(plan.slot));
	memcpy(code + BODY, plan.new_bytes, plan.patch_bytes);
	place = (uintptr_t)(code + 4096 + plan.original);
	original = (function_type)place;
	hook_calls = 0;
	for (size_t i = 0; i < 6; i++)
		assert_true(function(arguments[i][0], arguments[i][1]) == before[i]);
	assert_int_equal(hook_calls, 6);
	munmap(code, 8192);
}

TEST(patched_functions_do_what_they_did)
{
	run_one("48 89 f8 48 01 f0 c3"); /* mov rax, rdi; add rax, rsi */
	run_one("f3 0f 1e fa 48 8d 04 37 c3"); /* endbr64 */
	run_one("48 8b 05 09 00 00 00 48 01 f8 c3 90 90 90 90 90 88 77 66 55 44 33 22 11");
	run_one("e9 fb fe ff ff"); /* jmp to the first */
	run_one("e9 7b ff ff ff"); /* to the second */
	run_one("e8 fb fe ff ff 48 83 c0 05 c3"); /* call, then add 5 */
	run_one("53 e8 fa fe ff ff 5b c3"); /* push rbx; call; pop rbx; its stack is not aligned */
	/* test edi, edi; je +4; mov eax, 9 (3 bytes: push 9; pop rax); ret; lea; ret */
	run_one("85 ff 74 04 6a 09 58 c3 48 8d 04 76 c3");
	run_one("85 ff 75 04 6a 09 58 c3 48 8d 04 76 c3");
	/* test edi, edi; je and jmp both: to the first, or to the second */
	run_one("85 ff 0f 84 f8 fe ff ff e9 73 ff ff ff");
	/* mov rcx, rsi; jrcxz to xor eax, eax; else lea rax, [rdi+4] */
	run_one("48 89 f1 e3 05 48 8d 47 04 c3 31 c0 c3");
	/* mov rcx, rsi; loop: once to each side */
	run_one("48 89 f1 e2 05 48 8d 47 04 c3 31 c0 c3");
	run_one("48 31 c0 eb 02 90 90 48 8d 04 3e c3");
	/* a loop that comes back behind the jump: add rax until rsi is 0 */
	run_one("48 31 c0 85 f6 74 07 48 01 f8 ff ce 75 f9 c3");
}

/* Two tools in the same function: one on top of the other. */
TEST(hooks_on_hooks)
{
	uint8_t *code = mmap(
		NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t far[14] = {0xff, 0x25, 0, 0, 0, 0};
	struct patch_request request = {
		.bits = 64, .code_bytes = PATCH_CODE_BYTES, .hook = (uintptr_t)hook};
	uintptr_t place = (uintptr_t)code;
	function_type function = (function_type)place;
	struct patch_plan plan;

	assert_true(code != MAP_FAILED);
	from_hex("48 8d 04 77 c3", code + 0x200); /* the other tool's */
	place = (uintptr_t)(code + 0x200);
	memcpy(far + 6, &place, sizeof(place));
	memcpy(code, far, sizeof(far)); /* jmp [rip+0] and its address, as it has put it there */
	assert_int_equal(function(5, 7), 5 + 2 * 7);
	request.code = code;
	request.function = (uintptr_t)code;
	request.slot = (uintptr_t)(code + 4096);
	assert_true(patch_plan(&plan, &request));
	memcpy(code + 4096, plan.slot, sizeof(plan.slot));
	memcpy(code, plan.new_bytes, plan.patch_bytes);
	place = (uintptr_t)(code + 4096 + plan.original);
	original = (function_type)place;
	hook_calls = 0;
	assert_int_equal(function(5, 7), 5 + 2 * 7);
	assert_int_equal(hook_calls, 1);
	munmap(code, 8192);
}

#else

int main(void)
{
	print_message("[  SKIPPED ] this machine is no x86-64\n");
	return 0;
}

#endif
