/* Steps up a stack of 64-bit code, made by hand after Microsoft's "x64 exception handling": every place
 * in a function a thread can be stopped at, and data that make no sense. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "snapshot/control/patch_plan.h"

#define IMAGE UINT64_C(0x140000000)
#define STACK UINT64_C(0x20000)
#define BYTES 0x1000
#define BEGIN 0x100 /* rva of the function, which is 0x80 bytes long */
#define INFO 0x800 /* rva of its unwind data */
#define CALLER UINT64_C(0x140000777)

enum {
	RBX = 3,
	RSP,
	RBP,
	RSI,
	RDI,
	R12 = 12,
};

static unsigned char image[BYTES], stack[BYTES];
static const struct unwind_function function = {BEGIN, BEGIN + 0x80, INFO};

static bool read_memory(void *ctx, uint64_t addr, void *bytes, size_t len)
{
	uint64_t base = addr >= IMAGE ? IMAGE : STACK;

	(void)ctx;
	if (addr < base || addr - base > BYTES || len > BYTES - (addr - base))
		return false;
	memcpy(bytes, (addr >= IMAGE ? image : stack) + (addr - base), len);
	return true;
}

static const struct unwind_source source = {.read = read_memory, .image = IMAGE};

static int start(void **state)
{
	(void)state;
	memset(image, 0x90, sizeof(image));
	memset(stack, 0xee, sizeof(stack));
	return 0;
}

static void put(uint32_t rva, const char *bytes, size_t len)
{
	memcpy(image + rva, bytes, len);
}

static void push(uint32_t offset, uint64_t value)
{
	memcpy(stack + offset, &value, sizeof(value));
}

static struct unwind_registers at(uint32_t offset, uint32_t sp)
{
	struct unwind_registers registers = {.ip = IMAGE + BEGIN + offset};

	registers.general[RSP] = STACK + sp;
	return registers;
}

/* push rbx (1 byte); sub rsp, 0x20 (4); ...; add rsp, 0x20 (at 0x40); pop rbx; ret */
static void plain_function(void)
{
	put(INFO, "\x01\x05\x02\x00\x05\x32\x01\x30", 8);
	put(BEGIN + 0x40, "\x48\x83\xc4\x20\x5b\xc3", 6);
	push(0x120, 0xb0b0);
	push(0x128, CALLER);
}

static void check(struct unwind_registers registers, bool is_innermost, uint64_t rbx)
{
	assert_true(unwind_step(&source, &function, is_innermost, &registers));
	assert_true(registers.ip == CALLER);
	assert_true(registers.general[RSP] == STACK + 0x130);
	assert_true(registers.general[RBX] == rbx);
}

static void body_begin_and_end(void **state)
{
	struct unwind_registers registers;

	(void)state;
	plain_function();
	check(at(0x20, 0x100), true, 0xb0b0); /* body */
	check(at(0x20, 0x100), false, 0xb0b0);
	check(at(5, 0x100), true, 0xb0b0); /* all of its beginning is over */
	check(at(1, 0x120), true, 0xb0b0); /* behind the push */
	registers = at(0, 0x128);
	registers.general[RBX] = 0xb1;
	check(registers, true, 0xb1); /* at its first instruction */
	check(at(0x40, 0x100), true, 0xb0b0); /* before the end's first */
	check(at(0x44, 0x120), true, 0xb0b0); /* behind it */
	registers = at(0x45, 0x128);
	registers.general[RBX] = 0xb1;
	check(registers, true, 0xb1); /* at ret */
	/* A return address may look like an end, but the frame is still there. */
	check(at(0x45, 0x100), false, 0xb0b0);
}

static void tail_calls(void **state)
{
	struct unwind_registers registers;

	(void)state;
	plain_function();
	/* pop rbx; jmp out of the function */
	put(BEGIN + 0x44, "\x5b\xe9\x00\x10\x00\x00", 6);
	check(at(0x44, 0x120), true, 0xb0b0);
	/* jmp inside it: not its end */
	put(BEGIN + 0x60, "\xeb\xc0", 2);
	registers = at(0x60, 0x100);
	check(registers, true, 0xb0b0);
	/* lea rsp, [rbp+0x20] begins one, too */
	put(BEGIN + 0x50, "\x48\x8d\x65\x20\x5b\xc3", 6);
	registers = at(0x50, 0x40);
	registers.general[RBP] = STACK + 0x100;
	check(registers, true, 0xb0b0);
}

static void frame_register(void **state)
{
	struct unwind_registers registers;

	(void)state;
	/* push rbp; push rbx; sub rsp, 0x28; lea rbp, [rsp+0x20], and rsp is anywhere below */
	put(INFO, "\x01\x0b\x04\x25\x0b\x03\x06\x42\x02\x30\x01\x50", 12);
	push(0x128, 0xb0b0); /* rbx */
	push(0x130, 0xbbbb); /* rbp */
	push(0x138, CALLER);
	registers = at(0x20, 0x40);
	registers.general[RBP] = STACK + 0x120;
	assert_true(unwind_step(&source, &function, false, &registers));
	assert_true(registers.ip == CALLER);
	assert_true(registers.general[RSP] == STACK + 0x140);
	assert_true(registers.general[RBP] == 0xbbbb && registers.general[RBX] == 0xb0b0);
	/* before rbp is set it is the caller's */
	registers = at(6, 0x100);
	registers.general[RBP] = 0x1234;
	assert_true(unwind_step(&source, &function, true, &registers));
	assert_true(registers.ip == CALLER && registers.general[RSP] == STACK + 0x140);
}

static void large_frames_and_saved_registers(void **state)
{
	struct unwind_registers registers = at(0x30, 0x100);

	(void)state;
	/* sub rsp, 0x100; mov [rsp+0x40], rsi; movaps [rsp+0x50], xmm6; mov [rsp+0x48], rdi (far) */
	put(INFO,
		"\x01\x20\x09\x00"
		"\x20\x75\x48\x00\x00\x00"
		"\x18\x68\x05\x00"
		"\x10\x64\x08\x00"
		"\x07\x01\x20\x00",
		22);
	push(0x140, 0x51);
	push(0x148, 0xd1);
	push(0x200, CALLER);
	assert_true(unwind_step(&source, &function, false, &registers));
	assert_true(registers.ip == CALLER && registers.general[RSP] == STACK + 0x208);
	assert_true(registers.general[RSI] == 0x51 && registers.general[RDI] == 0xd1);
	/* the same by the code with 32 bits */
	put(INFO, "\x01\x07\x03\x00\x07\x11\x00\x01\x00\x00", 10);
	registers = at(0x30, 0x100);
	assert_true(unwind_step(&source, &function, false, &registers));
	assert_true(registers.ip == CALLER && registers.general[RSP] == STACK + 0x208);
}

static void parts_of_functions(void **state)
{
	struct unwind_registers registers = at(2, 0x100);

	(void)state;
	/* sub rsp, 8 by the part; its function is plain */
	put(INFO + 0x40, "\x01\x05\x02\x00\x05\x32\x01\x30", 8);
	put(INFO,
		"\x21\x02\x01\x00\x02\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x40\x08\x00\x00",
		20);
	push(0x128, 0xb0b0);
	push(0x130, CALLER);
	assert_true(unwind_step(&source, &function, false, &registers));
	assert_true(registers.ip == CALLER && registers.general[RSP] == STACK + 0x138);
	assert_true(registers.general[RBX] == 0xb0b0);
	/* one that is a part of itself */
	put(INFO, "\x21\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x08\x00\x00", 16);
	registers = at(2, 0x100);
	assert_false(unwind_step(&source, &function, false, &registers));
}

static void functions_without_frame(void **state)
{
	struct unwind_registers registers = at(0, 0x128);

	(void)state;
	push(0x128, CALLER);
	assert_true(unwind_step(&source, NULL, true, &registers));
	assert_true(registers.ip == CALLER && registers.general[RSP] == STACK + 0x130);
	registers = at(0, 0x128);
	assert_false(unwind_step(&source, NULL, false, &registers));
}

static void refused(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} infos[] = {
		{"\x03\x05\x00\x00", 4}, /* version 3 */
		{"\x00\x05\x00\x00", 4},
		{"\x01\x05\x01\x00\x05\x0a", 6}, /* a frame of the processor's */
		{"\x01\x05\x01\x00\x05\x01", 6}, /* codes that are cut */
		{"\x01\x05\x02\x00\x05\x21\x00\x00", 8}, {"\x01\x05\x02\x00\x05\x32\x05\x0f", 8},
		{"\x01\x05\x01\x00\x05\x06", 6}, /* the end's place, of version 2 */
	};

	(void)state;
	push(0x100, CALLER);
	for (size_t i = 0; i < sizeof(infos) / sizeof(*infos); i++) {
		struct unwind_registers registers = at(0x20, 0x100), before = registers;

		put(INFO, infos[i].bytes, infos[i].len);
		if (unwind_step(&source, &function, false, &registers))
			fail_msg("data %zu are taken", i);
		assert_memory_equal(&registers, &before, sizeof(before));
	}
	put(INFO, "\x02\x00\x01\x00\x05\x06", 6);
	{
		struct unwind_registers registers = at(0x20, 0x100);

		assert_true(unwind_step(&source, &function, false, &registers));
		assert_true(registers.ip == CALLER);
		registers = at(0x20, BYTES); /* a stack that is not there */
		assert_false(unwind_step(&source, &function, false, &registers));
	}
}

static void any_data(void **state)
{
	uint64_t random = 88172645463325252u;

	(void)state;
	for (unsigned i = 0; i < 100000; i++) {
		struct unwind_registers registers = at(random % 0x80, 0x100);

		for (size_t k = 0; k < 64; k++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			image[INFO + k] = (unsigned char)random;
			image[BEGIN + k] = (unsigned char)(random >> 8);
		}
		image[INFO] = (unsigned char)((image[INFO] & 0xf8) | 1);
		unwind_step(&source, &function, i & 1, &registers);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(body_begin_and_end, start),
		cmocka_unit_test_setup(tail_calls, start),
		cmocka_unit_test_setup(frame_register, start),
		cmocka_unit_test_setup(large_frames_and_saved_registers, start),
		cmocka_unit_test_setup(parts_of_functions, start),
		cmocka_unit_test_setup(functions_without_frame, start),
		cmocka_unit_test_setup(refused, start),
		cmocka_unit_test_setup(any_data, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
