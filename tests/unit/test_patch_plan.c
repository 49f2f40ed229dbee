/* Plans for patching the first bytes of functions. The prologues are real or generated, with 64 and
 * 32 bits, and are decoded as Intel's manual, volume 2, describes their encoding. Some patched
 * functions are executed. */
#include "tests/unit/t.h"

#include <sys/mman.h>

#include "snapshot/control/patch_plan.h"

#define FUNCTION UINT64_C(0x7ffc12340100)
#define SLOT (FUNCTION + 0x20000)
#define HOOK UINT64_C(0x112233445566)
#define FUNCTION_32 UINT64_C(0x77001230)
#define SLOT_32 UINT64_C(0x00340000) /* lies below the function, so distances wrap */
#define HOOK_32 UINT64_C(0x10001000)

struct made {
	struct patch_request request;
	struct patch_plan plan;
	uint8_t code[PATCH_CODE_BYTES];
	bool ok;
};

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

/* Makes a plan for the code, which is followed by nops. */
static struct made make_at(unsigned bits, const char *hex, uint64_t function, uint64_t slot)
{
	struct made made = {.request = {bits, NULL, PATCH_CODE_BYTES, function, slot,
				    bits == 64 ? HOOK : HOOK_32}};

	memset(made.code, 0x90, sizeof(made.code));
	from_hex(hex, made.code);
	made.request.code = made.code;
	made.ok = patch_plan(&made.plan, &made.request);
	made.request.code = NULL;
	return made;
}

static struct made make(unsigned bits, const char *hex)
{
	return bits == 64 ? make_at(64, hex, FUNCTION, SLOT) :
			    make_at(bits, hex, FUNCTION_32, SLOT_32);
}

static int32_t i32_at(const uint8_t *bytes)
{
	int32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

static uint64_t u64_at(const uint8_t *bytes)
{
	uint64_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

static uint64_t wrapped(const struct made *made, uint64_t addr)
{
	return made->request.bits == 64 ? addr : (uint32_t)addr;
}

/* Returns the target of a jump or call at an offset of the slot, or 0 for anything else. Recognizes
 * e8, e9, 0f 8x, and ff 25 or ff 15 with the address after it. */
static uint64_t leads_to(const struct made *made, uint32_t at)
{
	const uint8_t *code = made->plan.slot + at;
	uint64_t here = made->request.slot + at;

	if (code[0] == 0xe8 || code[0] == 0xe9)
		return wrapped(made, here + 5 + (uint64_t)(int64_t)i32_at(code + 1));
	if (code[0] == 0x0f && (code[1] & 0xf0) == 0x80)
		return wrapped(made, here + 6 + (uint64_t)(int64_t)i32_at(code + 2));
	if (made->request.bits == 64 && code[0] == 0xff && (code[1] == 0x25 || code[1] == 0x15))
		return u64_at(code + 6 + i32_at(code + 2));
	return 0;
}

/* Checks the parts around the moved instructions. The function jumps to the slot, the slot jumps to
 * the hook, and the moved instructions jump to the rest of the function. */
static void check_frame(const struct made *made, uint32_t patch_bytes)
{
	const struct patch_plan *plan = &made->plan;
	uint64_t jump = made->request.function + 5 + (uint64_t)(int64_t)i32_at(plan->new_bytes + 1);
	uint32_t last;

	assert_true(made->ok);
	assert_int_equal(plan->patch_bytes, patch_bytes);
	assert_memory_equal(plan->old_bytes, made->code, patch_bytes);
	assert_int_equal(plan->new_bytes[0], 0xe9);
	assert_true(wrapped(made, jump) == made->request.slot);
	assert_memory_equal(plan->new_bytes + 5, made->code + 5, patch_bytes - 5);
	assert_true(leads_to(made, 0) == made->request.hook);
	assert_true(plan->move_count > 0);
	assert_int_equal(plan->moves[0].from, 0);
	assert_int_equal(plan->moves[0].to, plan->original);
	for (last = PATCH_SLOT_BYTES - 5; last > plan->original; last--) {
		if (leads_to(made, last) == made->request.function + patch_bytes)
			return;
	}
	fail_msg("nothing goes on behind what moved");
}

/* Checks instructions that are independent of their address. */
static void check_plain(unsigned bits, const char *hex, uint32_t patch_bytes)
{
	struct made made = make(bits, hex);

	check_frame(&made, patch_bytes);
	assert_memory_equal(made.plan.slot + made.plan.original, made.code, patch_bytes);
	for (uint32_t i = 0; i < made.plan.move_count; i++)
		assert_int_equal(
			made.plan.moves[i].to, made.plan.original + made.plan.moves[i].from);
	assert_true(leads_to(&made, made.plan.original + patch_bytes) ==
		    made.request.function + patch_bytes);
}

TEST(plain_prologues_of_64_bits)
{
	check_plain(64, "48 8d a4 24 00 00 00 00 55", 8); /* lea 0(%rsp),%rsp, as in Wine */
	check_plain(64, "41 57 41 56 41 55 41 54", 6); /* push r15, r14, r13 */
	check_plain(
		64, "4c 8b d1 b8 18 00 00 00 f6 04 25 08 03 fe 7f 01 75 03 0f 05 c3 cd 2e c3", 8);
	check_plain(64, "48 89 5c 24 08 48 89 6c 24 10 48 89 74 24 18 57", 5);
	check_plain(64, "f3 0f 1e fa 55 48 89 e5", 5); /* endbr64; push rbp */
	check_plain(64, "48 a1 88 77 66 55 44 33 22 11 c3", 10); /* mov rax, moffs */
	check_plain(64, "40 55 53 56 57 41 54", 5);
	check_plain(64, "48 b8 88 77 66 55 44 33 22 11 ff e0", 10); /* a far jump by another tool */
	check_plain(64, "33 c0 c2 04 00", 5); /* the function ends where the patched jump ends */
}

TEST(plain_prologues_of_32_bits)
{
	check_plain(32, "8b ff 55 8b ec 83 ec 10", 5);
	check_plain(32, "b8 18 00 00 00 ba 00 10 00 77 ff d2 c2 18 00", 5);
	check_plain(32, "a1 78 56 34 12 85 c0", 5); /* mov eax, moffs */
	check_plain(32, "6a 10 68 78 56 34 12 e8 00 00 00 00", 7);
	check_plain(32, "ff 25 78 56 34 12", 6); /* jmp through an absolute address */
	check_plain(32, "68 78 56 34 12 c3", 5); /* push and ret */
}

TEST(operands_by_distance)
{
	struct made made = make(64, "48 8b 05 10 20 30 00 c3"); /* mov rax, [rip+0x302010] */
	const uint8_t *moved = made.plan.slot + made.plan.original;

	check_frame(&made, 7);
	assert_memory_equal(moved, made.code, 3);
	assert_true(SLOT + made.plan.original + 7 + (uint64_t)(int64_t)i32_at(moved + 3) ==
		    FUNCTION + 7 + 0x302010);
	/* cmp byte [rip-16], 5: an immediate follows the distance. */
	made = make(64, "80 3d f0 ff ff ff 05 c3");
	moved = made.plan.slot + made.plan.original;
	check_frame(&made, 7);
	assert_int_equal(moved[6], 5);
	assert_true(SLOT + made.plan.original + 7 + (uint64_t)(int64_t)i32_at(moved + 2) ==
		    FUNCTION + 7 - 16);
	/* The address is relative to the lower half of the instruction pointer. */
	assert_false(make(64, "67 48 8b 05 10 20 30 00").ok);
	/* The slot is too far away for a 32-bit distance. */
	assert_false(make_at(64, "48 8b 05 00 00 00 80 c3", FUNCTION, FUNCTION + 0x1000000).ok);
}

static uint64_t moved_target(const struct made *made, unsigned move)
{
	return leads_to(made, made->plan.moves[move].to);
}

TEST(jumps_and_calls)
{
	struct made made = make(64, "e9 00 10 00 00");

	check_frame(&made, 5);
	assert_true(moved_target(&made, 0) == FUNCTION + 5 + 0x1000);
	made = make(64, "55 e8 00 f0 ff ff c3"); /* push rbp; call */
	check_frame(&made, 6);
	assert_int_equal(made.plan.slot[made.plan.moves[1].to], 0xe8);
	assert_true(moved_target(&made, 1) == FUNCTION + 6 - 0x1000);
	made = make(32, "e9 00 10 00 00");
	check_frame(&made, 5);
	assert_true(moved_target(&made, 0) == FUNCTION_32 + 5 + 0x1000);
	made = make(32, "90 e8 fb 00 10 88"); /* the distance wraps around */
	check_frame(&made, 6);
	assert_true(moved_target(&made, 1) == (uint32_t)(FUNCTION_32 + 6 + 0x881000fb));
	/* Jmp through an address that lies outside the patch. */
	made = make(64, "ff 25 fa ff 00 00 cc");
	check_frame(&made, 6);
	assert_memory_equal(made.plan.slot + made.plan.original, "\xff\x25", 2);
	assert_true(SLOT + made.plan.original + 6 +
			    (uint64_t)(int64_t)i32_at(made.plan.slot + made.plan.original + 2) ==
		    FUNCTION + 6 + 0xfffa);
	/* test ecx, ecx; je +0x20; nop. Short jumps become long. */
	made = make(64, "85 c9 74 20 90 90");
	check_frame(&made, 5);
	assert_memory_equal(made.plan.slot + made.plan.moves[1].to, "\x0f\x84", 2);
	assert_true(moved_target(&made, 1) == FUNCTION + 4 + 0x20);
	made = make(32, "85 c9 75 90 90 90");
	assert_memory_equal(made.plan.slot + made.plan.moves[1].to, "\x0f\x85", 2);
	assert_true(moved_target(&made, 1) == FUNCTION_32 + 4 - 0x70);
	made = make(64, "48 31 c0 eb 20"); /* the jump is the last moved instruction */
	check_frame(&made, 5);
	assert_true(moved_target(&made, 1) == FUNCTION + 5 + 0x20);
	made = make(64, "0f 8f 00 01 00 00");
	check_frame(&made, 6);
	assert_memory_equal(made.plan.slot + made.plan.original, "\x0f\x8f", 2);
	assert_true(moved_target(&made, 0) == FUNCTION + 6 + 0x100);
}

TEST(targets_out_of_reach)
{
	uint64_t slot = FUNCTION + 0x60000000, target = FUNCTION + 5 - 0x70000000;
	struct made made = make_at(64, "e9 00 00 00 90", FUNCTION, slot);

	check_frame(&made, 5);
	assert_true(moved_target(&made, 0) == target);
	made = make_at(64, "e8 00 00 00 90", FUNCTION, slot);
	check_frame(&made, 5);
	/* call [rip+2], then a jump over the address. */
	assert_memory_equal(made.plan.slot + made.plan.original, "\xff\x15\x02\0\0\0\xeb\x08", 8);
	assert_true(moved_target(&made, 0) == target);
	made = make_at(64, "0f 84 00 00 00 90", FUNCTION, slot);
	check_frame(&made, 6);
	/* jne that skips a far jump. */
	assert_memory_equal(made.plan.slot + made.plan.original, "\x75\x0e", 2);
	assert_true(leads_to(&made, made.plan.original + 2) == target + 1);
	assert_false(make_at(64, "90 90 90 90 90", FUNCTION, FUNCTION + PATCH_REACH + 1).ok);
	assert_false(make_at(64, "90 90 90 90 90", FUNCTION, FUNCTION - PATCH_REACH - 1).ok);
	assert_true(make_at(64, "90 90 90 90 90", FUNCTION, FUNCTION - PATCH_REACH).ok);
}

/* jrcxz and loop. The taken branch becomes a jump to a far jump. The other path skips the far
 * jump. */
TEST(counting_jumps)
{
	static const struct {
		const char *hex;
		unsigned bits;
		unsigned length;
	} cases[] = {{"e3 40 90 90 90", 64, 2}, {"67 e3 40 90 90", 64, 3},
		{"e2 40 90 90 90", 64, 2}, {"e0 40 90 90 90", 64, 2}, {"e3 40 90 90 90", 32, 2},
		{"67 e1 40 90 90", 32, 3}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct made made = make(cases[i].bits, cases[i].hex);
		unsigned length = cases[i].length;
		const uint8_t *at = made.plan.slot + made.plan.original;

		check_frame(&made, 5);
		assert_memory_equal(at, made.code, length - 1);
		assert_int_equal(at[length - 1], 2);
		assert_int_equal(at[length], 0xeb);
		assert_true(leads_to(&made, made.plan.original + length + 2) ==
			    made.request.function + length + 0x40);
		/* If the branch is not taken, execution continues with the next instruction. */
		assert_int_equal(
			made.plan.original + length + 2 + at[length + 1], made.plan.moves[1].to);
	}
}

TEST(refused)
{
	static const struct {
		unsigned bits;
		const char *hex;
	} cases[] = {
		{64, "c3 90 90 90 90"}, /* the function may end before the patched jump ends */
		{64, "33 c0 c3 cc cc cc"},
		{64, "33 c0 c2 08 cc"}, /* not refused: the ret ends where the patched jump ends */
		{64, "cc 90 90 90 90 90"},
		{64, "0f 0b 90 90 90 90"}, /* ud2 */
		/* The bytes after the jump do not belong to the function. */
		{64, "eb 10 90 90 90 90"},
		{64, "ff d0 90 90 90 90"}, /* the call would return into changed bytes */
		{32, "ff d2 c2 08 00 90"},
		{64, "0f 05 c3 90 90 90"}, /* syscall */
		{64, "48 ff e0 90 90 90"}, /* jmp rax */
		{64, "e8 00 00 00 00 58"}, /* the call reads its own address */
		{32, "e8 00 00 00 00 58"},
		{64, "06 90 90 90 90 90"}, /* not a valid instruction */
		{64, "85 c9 74 ff 90 90"}, /* jumps into itself */
		{64, "85 c9 74 00 90 90"}, /* jumps into the moved bytes */
		{64, "90 90 90 90 90 75 fc"}, /* later code jumps back into the patched jump */
		{64, "90 90 90 90 90 90 90 90 0f 84 f3 ff ff ff"},
		{32, "90 90 90 90 90 90 e9 f6 ff ff ff"},
		{32, "66 e9 00 10 90 90"}, /* the instruction pointer is cut to 16 bits */
		{64, "c7 f8 00 10 00 00"}, /* xbegin */
		{64, "90 90 90 90 48 b8 88 77 66 55 44 33 22 11 c3 48 90"}, /* not refused */
		{16, "90 90 90 90 90"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		bool expected = i == 2 || i == 20;

		if (make(cases[i].bits, cases[i].hex).ok != expected)
			fail_msg("%s: %d", cases[i].hex, !expected);
	}
}

TEST(jumps_to_first_byte_are_calls_of_hook)
{
	struct made made = make(64, "90 90 90 90 90 75 f9");

	check_frame(&made, 5);
	/* If later code jumps into the moved bytes, it finds the old bytes there. */
	made = make(64, "90 90 90 48 8d 64 24 00 75 fb");
	check_frame(&made, 8);
}

TEST(code_that_is_cut)
{
	uint8_t code[] = {0x90, 0x90, 0x48, 0x8b, 0x05, 1, 2, 3, 4};
	struct patch_request request = {64, code, sizeof(code), FUNCTION, SLOT, HOOK};
	struct patch_plan plan;

	assert_true(patch_plan(&plan, &request));
	assert_int_equal(plan.patch_bytes, 9);
	for (size_t bytes = 0; bytes < sizeof(code); bytes++) {
		uint8_t *cut = malloc(bytes ? bytes : 1);

		assert_non_null(cut);
		memcpy(cut, code, bytes);
		request.code = cut;
		request.code_bytes = bytes;
		assert_false(patch_plan(&plan, &request));
		free(cut);
	}
}

TEST(hot_patches_are_followed)
{
	uint8_t code[] = {0xeb, 0xf9, 0x55, 0x8b, 0xec};
	struct patch_request request = {64, code, sizeof(code), FUNCTION, SLOT, HOOK};
	uint64_t to = 1;

	assert_true(patch_follow(&request, &to));
	assert_true(to == FUNCTION - 5);
	request.bits = 32;
	request.function = 2;
	assert_true(patch_follow(&request, &to));
	assert_true(to == 0xfffffffd);
	code[0] = 0x55;
	assert_false(patch_follow(&request, &to));
	code[0] = 0xeb;
	request.code_bytes = 1;
	assert_false(patch_follow(&request, &to));
}

/* Random bytes. Each plan must be refused or keep within the size limits. */
TEST(any_bytes)
{
	uint64_t random = 88172645463325252u;
	unsigned planned = 0;

	for (unsigned i = 0; i < 200000; i++) {
		uint8_t code[PATCH_CODE_BYTES];
		struct patch_request request = {i & 1 ? 32 : 64, code, sizeof(code), FUNCTION_32,
			FUNCTION_32 + 0x10000, HOOK_32};
		struct patch_plan plan;

		for (size_t k = 0; k < sizeof(code); k++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			code[k] = (uint8_t)random;
		}
		if (!patch_plan(&plan, &request))
			continue;
		planned++;
		assert_in_range(plan.patch_bytes, 5, PATCH_BYTES_MAX);
		assert_in_range(plan.move_count, 1, 5);
		for (uint32_t k = 0; k < plan.move_count; k++) {
			assert_true(plan.moves[k].from < plan.patch_bytes);
			assert_true(plan.moves[k].to < PATCH_SLOT_BYTES);
		}
	}
	assert_in_range(planned, 1000, 199000);
}

/* ---------------------------------------------------------------- hooked functions are executed */

#if defined(__x86_64__)

typedef uint64_t (*function_type)(uint64_t a, uint64_t b);

static function_type original;
static unsigned hook_calls;

static uint64_t hook(uint64_t a, uint64_t b)
{
	hook_calls++;
	return original(a, b);
}

#define BODY 0x100 /* offset of the function; its jump targets are at 0 and 0x80 */

/* Executes a patched function. The target at 0 computes rax = a + 2 b, the target at 0x80 rax = a -
 * b + 1. */
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
	run_one("e9 fb fe ff ff"); /* jmp to the first target */
	run_one("e9 7b ff ff ff"); /* jmp to the second target */
	run_one("e8 fb fe ff ff 48 83 c0 05 c3"); /* call of the first target, then add 5 */
	run_one("53 e8 fa fe ff ff 5b c3"); /* push rbx; call; pop rbx; the stack is misaligned */
	/* test edi, edi; je +4; mov eax, 9 (3 bytes: push 9; pop rax); ret; lea; ret */
	run_one("85 ff 74 04 6a 09 58 c3 48 8d 04 76 c3");
	run_one("85 ff 75 04 6a 09 58 c3 48 8d 04 76 c3");
	/* test edi, edi; then je and jmp, one to the first target and one to the second */
	run_one("85 ff 0f 84 f8 fe ff ff e9 73 ff ff ff");
	/* mov rcx, rsi; jrcxz to xor eax, eax; otherwise lea rax, [rdi+4]. */
	run_one("48 89 f1 e3 05 48 8d 47 04 c3 31 c0 c3");
	/* mov rcx, rsi; loop. Each branch is taken in one call. */
	run_one("48 89 f1 e2 05 48 8d 47 04 c3 31 c0 c3");
	run_one("48 31 c0 eb 02 90 90 48 8d 04 3e c3");
	/* A loop whose start is right after the patched jump: adds to rax until rsi is 0. */
	run_one("48 31 c0 85 f6 74 07 48 01 f8 ff ce 75 f9 c3");
}

/* Two tools patch the same function, one after the other. */
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
	from_hex("48 8d 04 77 c3", code + 0x200); /* the other tool's hook */
	place = (uintptr_t)(code + 0x200);
	memcpy(far + 6, &place, sizeof(place));
	/* jmp [rip+0] and its address, as the other tool writes it */
	memcpy(code, far, sizeof(far));
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

#endif
