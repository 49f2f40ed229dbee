/* Rules of 32-bit code from .eh_frame. Sections are assembled by hand after the DWARF standard,
 * section 6.4 of version 4. They are allocated with exact sizes, so that the sanitizers detect a
 * read outside. */
#include "tests/unit/t.h"

#include "snapshot/tracer/unwind_parts_x86.h"

static uint32_t begins; /* start of the function that was found last */

#define IMAGE 0x400000u
#define IMAGE_END 0x500000u
#define SECTION 0x480000u

static struct made {
	uint8_t bytes[4096];
	uint32_t len;
} made;

static void add(const void *bytes, uint32_t len)
{
	assert_true(made.len + len <= sizeof(made.bytes));
	memcpy(made.bytes + made.len, bytes, len);
	made.len += len;
}

static void add_u32(uint32_t value)
{
	add(&value, 4);
}

/* A CIE as gcc writes it: version 1, "zR", code 1, data -4, return column 8; pcrel sdata4; def_cfa
 * esp 4; offset r8 1. */
static const uint8_t common_cie[] = {
	0x14, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x7c, 8, 1, 0x1b, 0x0c, 4, 4, 0x88, 1, 0, 0};

static uint32_t add_cie(const void *bytes, uint32_t len)
{
	uint32_t offset = made.len;

	add(bytes, len);
	return offset;
}

static uint32_t add_common(void)
{
	return add_cie(common_cie, sizeof(common_cie));
}

/* Adds an FDE with pcrel addresses, and pads it with DW_CFA_nop. */
static uint32_t add_fde(
	uint32_t cie, uint32_t begin, uint32_t bytes, const uint8_t *program, uint32_t len)
{
	uint32_t offset = made.len, padded = (len + 1 + 3) & ~3u;
	static const uint8_t zeros[4] = {0};

	add_u32(12 + padded);
	add_u32(made.len - cie);
	add_u32(begin - (SECTION + made.len));
	add_u32(bytes);
	add(zeros, 1); /* no augmentation */
	add(program, len);
	add(zeros, padded - 1 - len);
	return offset;
}

#define ADD_FDE(cie, begin, bytes, ...)                                                            \
	add_fde(cie, begin, bytes, (const uint8_t[]){__VA_ARGS__},                                 \
		sizeof((const uint8_t[]){__VA_ARGS__}))

static struct unwind32_section section_of(const uint8_t *bytes, uint32_t len)
{
	return (struct unwind32_section){IMAGE, IMAGE_END, SECTION, len, bytes};
}

/* Looks up the rule of a return address in the section, with the list and without it. The answers
 * must be equal. */
static enum unwind32_answer ask(uint32_t addr, struct unwind32_rule *rule)
{
	uint8_t *bytes = calloc(1, made.len ? made.len : 1);
	struct unwind32_section section = section_of(bytes, made.len);
	struct unwind32_place places[64];
	struct unwind32_rule listed = {0};
	uint32_t count;
	enum unwind32_answer answer;

	assert_non_null(bytes);
	memcpy(bytes, made.bytes, made.len);
	*rule = (struct unwind32_rule){0};
	answer = unwind32_read(&section, NULL, 0, addr, rule, &begins);
	count = unwind32_list(&section, places, 64);
	assert_true(count <= 64);
	assert_int_equal(unwind32_read(&section, places, count, addr, &listed, &begins), answer);
	assert_memory_equal(&listed, rule, sizeof(listed));
	free(bytes);
	return answer;
}

static void check(uint32_t addr, enum unwind32_from cfa_from, int32_t cfa, bool is_indirect,
	enum unwind32_from ebp_from, int32_t ebp)
{
	struct unwind32_rule rule;

	assert_int_equal(ask(addr, &rule), UNWIND32_FOUND);
	assert_int_equal(rule.kind, UNWIND32_STEP);
	assert_int_equal(rule.cfa_from, cfa_from);
	assert_int_equal(rule.cfa, cfa);
	assert_int_equal(rule.is_indirect, is_indirect);
	assert_int_equal(rule.ebp_from, ebp_from);
	assert_int_equal(rule.ebp, ebp);
}

static void check_refused(uint32_t addr)
{
	struct unwind32_rule rule;

	assert_int_equal(ask(addr, &rule), UNWIND32_NOT_UNDERSTOOD);
}

static int begin(void **state)
{
	(void)state;
	made.len = 0;
	return 0;
}

#undef TEST_AROUND
#define TEST_AROUND begin, NULL

#define AT 0x401000u

/* 401000 push ebp; 401001 mov ebp, esp; 401003 ...; 401010 leave; 401011 ret. For a return address,
 * the row of the byte before it is used. */
TEST(frame_pointer_follows_prologue_and_epilogue)
{
	ADD_FDE(add_common(), AT, 0x12, 0x41, 0x0e, 8, 0x85, 2, 0x42, 0x0d, 5, 0x4e, 0xc5, 0x0c, 4,
		4);
	check(AT + 1, UNWIND32_ESP, 4, false, UNWIND32_KEPT, 0);
	check(AT + 2, UNWIND32_ESP, 8, false, UNWIND32_CFA, -8);
	check(AT + 3, UNWIND32_ESP, 8, false, UNWIND32_CFA, -8);
	check(AT + 4, UNWIND32_EBP, 8, false, UNWIND32_CFA, -8);
	check(AT + 0x11, UNWIND32_EBP, 8, false, UNWIND32_CFA, -8);
	check(AT + 0x12, UNWIND32_ESP, 4, false, UNWIND32_KEPT, 0);
	assert_int_equal(begins, AT);
}

/* push ebp; push edi; push esi; sub esp, 300; push args: DW_CFA_GNU_args_size does not affect the
 * CFA. */
TEST(code_without_frame_pointer_counts_from_esp)
{
	ADD_FDE(add_common(), AT, 0x100, 0x41, 0x0e, 8, 0x85, 2, 0x41, 0x0e, 12, 0x87, 3, 0x41,
		0x0e, 16, 0x86, 4, 0x46, 0x0e, 0xbc, 2, 0x4a, 0x2e, 16, 0x0e, 0xcc, 2, 0x45, 0x2e,
		0, 0x0e, 0xbc, 2);
	check(AT + 3, UNWIND32_ESP, 12, false, UNWIND32_CFA, -8);
	check(AT + 9, UNWIND32_ESP, 16, false, UNWIND32_CFA, -8);
	check(AT + 0x13, UNWIND32_ESP, 0x13c, false, UNWIND32_CFA, -8);
	check(AT + 0x14, UNWIND32_ESP, 0x14c, false, UNWIND32_CFA, -8);
	check(AT + 0x19, UNWIND32_ESP, 0x13c, false, UNWIND32_CFA, -8);
}

/* main(): lea ecx, [esp+4]; and esp, -16; push [ecx-4]; push ebp; mov ebp, esp; push ecx. */
TEST(realigned_stack_is_found_by_its_saved_pointer)
{
	ADD_FDE(add_common(), AT, 0x80, 0x44, 0x0c, 1, 0, 0x47, 0x10, 5, 2, 0x75, 0, 0x43, 0x0f, 3,
		0x75, 0x7c, 6, 0x42, 0x10, 3, 2, 0x75, 0x78, 0x50, 0x0c, 1, 0, 0xc3, 0xc5, 0x42,
		0x0c, 4, 4);
	check(AT + 2, UNWIND32_ESP, 4, false, UNWIND32_KEPT, 0);
	check_refused(AT + 5); /* the CFA is in ecx, which is unknown */
	check_refused(AT + 0xc);
	check(AT + 0xf, UNWIND32_EBP, -4, true, UNWIND32_EBP, 0);
	check(AT + 0x20, UNWIND32_EBP, -4, true, UNWIND32_EBP, 0);
	check_refused(AT + 0x21);
	check(AT + 0x23, UNWIND32_ESP, 4, false, UNWIND32_KEPT, 0);
}

TEST(expressions_may_add_and_count_from_esp)
{
	uint32_t cie = add_common();

	ADD_FDE(cie, AT, 0x10, 0x0f, 5, 0x74, 0x10, 0x23, 0x90, 1); /* breg4 16; plus_uconst 144 */
	ADD_FDE(cie, AT + 0x10, 0x10, 0x0f, 3, 0x74, 0xc, 6, 0x10, 5, 2, 0x74, 8);
	check(AT + 1, UNWIND32_ESP, 160, false, UNWIND32_KEPT, 0);
	check(AT + 0x11, UNWIND32_ESP, 12, true, UNWIND32_ESP, 8);
}

TEST(other_expressions_are_refused)
{
	static const uint8_t expressions[][6] = {
		{0x0f, 0}, /* empty */
		{0x0f, 1, 0x75}, /* offset missing */
		{0x0f, 2, 0x30, 6}, /* lit0 */
		{0x0f, 4, 0x75, 0x7c, 6, 6}, /* deref twice */
		{0x0f, 3, 0x75, 0x7c, 0x22}, /* plus */
		{0x0f, 3, 0x71, 0x7c, 6}, /* breg1 */
		{0x10, 5, 2, 0x71, 0}, /* ebp computed from ecx */
		{0x10, 5, 3, 0x75, 0, 6}, /* ebp loaded through a pointer */
		{0x10, 8, 2, 0x75, 0}, /* return address saved elsewhere */
		{0x16, 4, 2, 0x75, 0}, /* a rule for ESP */
		{0x16, 5, 2, 0x75, 0}, /* EBP computed, not saved */
	};

	for (size_t i = 0; i < sizeof(expressions) / sizeof(*expressions); i++) {
		made.len = 0;
		add_fde(add_common(), AT, 0x10, expressions[i], 6);
		check_refused(AT + 1);
	}
}

TEST(remembered_row_comes_back_whole)
{
	ADD_FDE(add_common(), AT, 0x40, 0x41, 0x0e, 8, 0x85, 2, 0x42, 0x0d, 5, 0x44, 0x0a, 0x42,
		0xc5, 0x0c, 4, 4, 0x41, 0x0b, 0x44, 0x0a, 0x0a, 0x0e, 99, 0x41, 0x0b, 0x41, 0x0b);
	check(AT + 4, UNWIND32_EBP, 8, false, UNWIND32_CFA, -8);
	check(AT + 0xa, UNWIND32_ESP, 4, false, UNWIND32_KEPT, 0);
	check(AT + 0xb, UNWIND32_EBP, 8, false, UNWIND32_CFA, -8);
	check(AT + 0xf, UNWIND32_EBP, 99, false, UNWIND32_CFA, -8);
	check(AT + 0x10, UNWIND32_EBP, 8, false, UNWIND32_CFA, -8);
	check(AT + 0x11, UNWIND32_EBP, 8, false, UNWIND32_CFA, -8);
}

/* advance_loc1, 2, 4; def_cfa_sf, def_cfa_offset_sf, offset_extended(_sf), restore_extended,
 * same_value. */
TEST(long_forms_do_as_short_ones)
{
	ADD_FDE(add_common(), AT, 0x20000, 2, 0x80, 0x12, 4, 0x7e, 3, 0, 2, 0x13, 0x7d, 4, 0, 0, 1,
		0, 5, 5, 3, 0x41, 0x11, 5, 4, 0x41, 6, 5, 0x41, 5, 5, 9, 0x41, 8, 5, 0x41, 7, 3);
	check(AT + 0x80, UNWIND32_ESP, 4, false, UNWIND32_KEPT, 0);
	check(AT + 0x81, UNWIND32_ESP, 8, false, UNWIND32_KEPT, 0);
	check(AT + 0x281, UNWIND32_ESP, 12, false, UNWIND32_KEPT, 0);
	check(AT + 0x10281, UNWIND32_ESP, 12, false, UNWIND32_CFA, -12);
	check(AT + 0x10282, UNWIND32_ESP, 12, false, UNWIND32_CFA, -16);
	check(AT + 0x10283, UNWIND32_ESP, 12, false, UNWIND32_KEPT, 0);
	check(AT + 0x10284, UNWIND32_ESP, 12, false, UNWIND32_CFA, -36);
	check(AT + 0x10285, UNWIND32_ESP, 12, false, UNWIND32_KEPT, 0);
}

TEST(undefined_return_address_ends_stack)
{
	struct unwind32_rule rule;

	ADD_FDE(add_common(), AT, 0x10, 7, 8);
	assert_int_equal(ask(AT + 5, &rule), UNWIND32_FOUND);
	assert_int_equal(rule.kind, UNWIND32_END);
}

TEST(registers_that_are_not_followed_are_passed_over)
{
	ADD_FDE(add_common(), AT, 0x10, 0x83, 3, 0x86, 4, 0x87, 5, 0xc3, 9, 3, 7, 0x14, 3, 2, 0x15,
		6, 2, 0x16, 7, 2, 0x75, 0, 0x10, 3, 2, 0x71, 0, 0x0e, 20);
	check(AT + 1, UNWIND32_ESP, 20, false, UNWIND32_KEPT, 0);
}

TEST(rules_that_do_not_lead_on_are_refused)
{
	static const uint8_t programs[][7] = {
		{0x0c, 6, 4}, /* CFA computed from esi */
		{0x0c, 16, 4},
		{0x88, 2}, /* return address saved elsewhere */
		{9, 5, 3}, /* EBP saved in ebx */
		{9, 8, 3},
		{0x0b}, /* empty row stack */
		{1, 0, 0, 0}, /* set_loc */
		/* an unterminated number */
		{0x1c},
		{0x3f},
		{0x0e, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80},
	};

	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		made.len = 0;
		add_fde(add_common(), AT, 0x10, programs[i], 7);
		check_refused(AT + 1);
	}
	made.len = 0;
	ADD_FDE(add_common(), AT, 0x10, 10, 10, 10, 10, 10, 10, 10, 10, 10);
	check_refused(AT + 1);
}

/* "zPLR": a personality of 4 bytes, and language data in the FDE. */
TEST(functions_with_handlers_are_read)
{
	static const uint8_t cie[] = {0x1c, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'P', 'L', 'R', 0, 1, 0x7c,
		8, 7, 0x9b, 1, 2, 3, 4, 0x1b, 0x1b, 0x0c, 4, 4, 0x88, 1, 0, 0};
	uint32_t offset = add_cie(cie, sizeof(cie));

	add_u32(20);
	add_u32(made.len - offset);
	add_u32(AT - (SECTION + made.len));
	add_u32(0x20);
	add((const uint8_t[]){4, 9, 9, 9, 9, 0x0e, 24, 0}, 8);
	check(AT + 7, UNWIND32_ESP, 24, false, UNWIND32_KEPT, 0);
}

TEST(addresses_may_be_absolute)
{
	static const uint8_t cie[] = {0x14, 0, 0, 0, 0, 0, 0, 0, 3, 'z', 'R', 0, 1, 0x7c, 8, 1, 0,
		0x0c, 4, 4, 0x88, 1, 0, 0};
	uint32_t offset = add_cie(cie, sizeof(cie));

	add_u32(16);
	add_u32(made.len - offset);
	add_u32(AT);
	add_u32(0x20);
	add((const uint8_t[]){0, 0x0e, 24, 0}, 4);
	check(AT + 0x20, UNWIND32_ESP, 24, false, UNWIND32_KEPT, 0);
}

/* In a signal frame the address is that of the interrupted instruction, not that of the instruction
 * after a call. */
TEST(signal_frame_has_row_of_its_address)
{
	static const uint8_t cie[] = {0x14, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 'S', 0, 1, 0x7c, 8, 1,
		0x1b, 0x0c, 4, 4, 0x88, 1, 0};

	ADD_FDE(add_cie(cie, sizeof(cie)), AT, 0x20, 0x44, 0x0e, 40);
	check(AT + 3, UNWIND32_ESP, 4, false, UNWIND32_KEPT, 0);
	check(AT + 4, UNWIND32_ESP, 40, false, UNWIND32_KEPT, 0);
}

TEST(other_augmentations_are_not_read)
{
	static const char *const letters[] = {"", "eh", "R", "zRX", "zQ", "zRRRRRRRR"};
	struct unwind32_rule rule;

	for (size_t i = 0; i < sizeof(letters) / sizeof(*letters); i++) {
		uint32_t len = (uint32_t)strlen(letters[i]) + 1;
		uint32_t body = 5 + len + 12, cie;

		made.len = 0;
		cie = made.len;
		add_u32(body);
		add_u32(0);
		add((const uint8_t[]){1}, 1);
		add(letters[i], len);
		add((const uint8_t[]){1, 0x7c, 8, 1, 0x1b, 0x0c, 4, 4, 0x88, 1, 0, 0}, 12);
		ADD_FDE(cie, AT, 0x10, 0x0e, 8);
		assert_int_equal(ask(AT + 1, &rule), UNWIND32_NOT_COVERED);
		assert_false(unwind32_is_eh_frame(&(struct unwind32_section){
			IMAGE, IMAGE_END, SECTION, made.len, made.bytes}));
	}
}

/* The FDEs are not in order, and a terminator and other CIEs lie between them. The byte after a
 * function belongs to the next function. */
TEST(functions_are_found_in_any_order)
{
	static const uint32_t order[] = {7, 0, 12, 3, 9, 1, 15, 4, 14, 2, 11, 6, 13, 5, 10, 8};
	struct unwind32_rule rule;
	uint32_t cie = 0;

	for (uint32_t i = 0; i < 16; i++) {
		if (i % 5 == 0)
			cie = add_common();
		if (i == 8)
			add_u32(0);
		ADD_FDE(cie, AT + order[i] * 0x20, 0x18, 0x0e, (uint8_t)(4 + 4 * order[i]));
	}
	for (uint32_t i = 0; i < 16; i++) {
		for (uint32_t byte = 1; byte <= 0x18; byte++)
			check(AT + i * 0x20 + byte, UNWIND32_ESP, 4 + 4 * (int32_t)i, false,
				UNWIND32_KEPT, 0);
		for (uint32_t byte = 0x19; byte <= 0x20; byte++)
			assert_int_equal(ask(AT + i * 0x20 + byte, &rule), UNWIND32_NOT_COVERED);
	}
	assert_int_equal(ask(AT, &rule), UNWIND32_NOT_COVERED);
	assert_int_equal(ask(0, &rule), UNWIND32_NOT_COVERED);
	assert_int_equal(ask(UINT32_MAX, &rule), UNWIND32_NOT_COVERED);
}

TEST(list_holds_for_image_elsewhere)
{
	struct unwind32_place places[8];
	struct unwind32_section section;
	struct unwind32_rule rule;
	uint32_t cie = add_common();

	ADD_FDE(cie, AT + 0x100, 0x10, 0x0e, 20);
	ADD_FDE(cie, AT, 0x10, 0x0e, 16);
	section = section_of(made.bytes, made.len);
	assert_int_equal(unwind32_list(&section, places, 8), 2);
	assert_int_equal(places[0].begin, AT - IMAGE);
	section.image += 0x12340000;
	section.image_end += 0x12340000;
	section.addr += 0x12340000;
	assert_int_equal(unwind32_read(&section, places, 2, AT + 0x12340105, &rule, &begins),
		UNWIND32_FOUND);
	assert_int_equal(rule.cfa, 20);
}

TEST(list_without_room_is_not_made)
{
	struct unwind32_place places[3] = {{77, 77}, {77, 77}, {77, 77}};
	struct unwind32_section section;
	uint32_t cie = add_common();

	for (uint32_t i = 0; i < 6; i++)
		ADD_FDE(cie, AT + i * 16, 0x10, 0x0e, 20);
	ADD_FDE(cie, IMAGE - 8, 0x10, 0x0e, 20); /* a function outside the image */
	ADD_FDE(cie, IMAGE_END - 8, 0x10, 0x0e, 20);
	section = section_of(made.bytes, made.len);
	assert_true(unwind32_list(&section, places, 2) > 2);
	assert_int_equal(places[2].begin, 77);
	assert_true(unwind32_list(&section, NULL, 0) > 0);
}

TEST(eh_frame_is_recognised_by_its_first_record)
{
	struct unwind32_section section = section_of(made.bytes, 0);

	assert_false(unwind32_is_eh_frame(&section));
	add_common();
	for (uint32_t len = 0; len < made.len; len++) {
		section.len = len;
		assert_false(unwind32_is_eh_frame(&section));
	}
	section.len = made.len;
	assert_true(unwind32_is_eh_frame(&section));
	for (uint32_t at = 4; at < 15; at++) {
		if (at == 12 || at == 13) /* the CIE's alignment factors may differ */
			continue;
		made.bytes[at] ^= 0x20;
		assert_false(unwind32_is_eh_frame(&section));
		made.bytes[at] ^= 0x20;
	}
	memset(made.bytes, 0, made.len);
	assert_false(unwind32_is_eh_frame(&section));
}

/* ---------------------------------------------------------------- damage */

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

/* Looks up addresses in a section and around it; ignores the answers. */
static void ask_all(const uint8_t *from, uint32_t len)
{
	uint8_t *bytes = calloc(1, len ? len : 1);
	struct unwind32_section section = section_of(bytes, len);
	struct unwind32_place places[32];
	struct unwind32_rule rule;
	uint32_t count;

	assert_non_null(bytes);
	memcpy(bytes, from, len);
	unwind32_is_eh_frame(&section);
	count = unwind32_list(&section, places, 32);
	for (uint32_t addr = AT - 1; addr < AT + 0x40; addr += 3) {
		unwind32_read(&section, NULL, 0, addr, &rule, &begins);
		if (count <= 32)
			unwind32_read(&section, places, count, addr, &rule, &begins);
	}
	free(bytes);
}

static void make_many(void)
{
	uint32_t cie = add_common();

	ADD_FDE(cie, AT, 0x12, 0x41, 0x0e, 8, 0x85, 2, 0x42, 0x0d, 5, 0x4e, 0xc5, 0x0c, 4, 4);
	ADD_FDE(cie, AT + 0x20, 0x30, 0x44, 0x0c, 1, 0, 0x47, 0x10, 5, 2, 0x75, 0, 0x43, 0x0f, 3,
		0x75, 0x7c, 6, 0x42, 0x0a, 0x10, 3, 2, 0x75, 0x78, 0x0b);
	ADD_FDE(cie, AT + 0x12, 0xe, 3, 1, 0, 0x2e, 16, 0x16, 7, 2, 0x75, 0);
}

TEST(section_that_is_cut_is_read_to_its_end_only)
{
	make_many();
	for (uint32_t len = 0; len <= made.len; len++)
		ask_all(made.bytes, len);
}

TEST(damaged_sections_lead_nowhere_outside)
{
	uint64_t random = 1;
	struct made whole;

	make_many();
	whole = made;
	for (int i = 0; i < 20000; i++) {
		made = whole;
		for (uint64_t changes = 1 + next_random(&random) % 6; changes--;) {
			uint8_t *byte = &made.bytes[next_random(&random) % made.len];

			*byte = next_random(&random) % 3 ? (uint8_t)next_random(&random) : 0xff;
		}
		ask_all(made.bytes, made.len);
	}
}

TEST(noise_leads_nowhere_outside)
{
	uint64_t random = 2;

	for (int i = 0; i < 20000; i++) {
		made.len = 0;
		add_common();
		for (uint64_t words = next_random(&random) % 40; words--;)
			add_u32(next_random(&random) % 2 ? (uint32_t)next_random(&random) % 64 :
							   (uint32_t)next_random(&random) * 3);
		ask_all(made.bytes, made.len);
	}
}

/* Lengths and ids near the limits of 32 bits. */
TEST(wild_lengths_and_ids_lead_nowhere_outside)
{
	static const uint32_t wild[] = {0, 1, 2, 3, 4, 5, 0x7fffffff, 0x80000000, 0xfffffff0,
		0xfffffffb, 0xfffffffc, 0xfffffffd, 0xfffffffe, 0xffffffff};
	struct made whole;

	make_many();
	whole = made;
	for (uint32_t at = 0; at + 4 <= whole.len; at += 4) {
		for (size_t i = 0; i < sizeof(wild) / sizeof(*wild); i++) {
			made = whole;
			memcpy(made.bytes + at, &wild[i], 4);
			ask_all(made.bytes, made.len);
		}
	}
}

/* ---------------------------------------------------------------- calls */

/* "CALL" in Intel's manual, volume 2: E8 cd, and FF /2 in all its forms. */
TEST(return_addresses_follow_call)
{
	static const struct {
		uint8_t code[8];
		unsigned bytes;
		bool is_call;
	} rows[] = {
		{{0xe8, 1, 2, 3, 4}, 5, true}, {{0xff, 0xd0}, 2, true}, /* eax */
		{{0xff, 0x10}, 2, true}, /* [eax] */
		{{0xff, 0x14, 0x24}, 3, true}, /* [esp] */
		{{0xff, 0x50, 8}, 3, true}, /* [eax+8] */
		{{0xff, 0x54, 0x24, 8}, 4, true}, /* [esp+8] */
		{{0xff, 0x15, 1, 2, 3, 4}, 6, true}, /* [disp32] */
		{{0xff, 0x90, 1, 2, 3, 4}, 6, true}, /* [eax+disp32] */
		{{0xff, 0x14, 0x85, 1, 2, 3, 4}, 7, true}, /* [eax*4+disp32] */
		{{0xff, 0x94, 0x24, 1, 2, 3, 4}, 7, true}, /* [esp+disp32] */
		{{0xff, 0xe0}, 2, false}, /* jmp eax */
		{{0xff, 0x25, 1, 2, 3, 4}, 6, false}, /* jmp [disp32] */
		{{0xe9, 1, 2, 3, 4}, 5, false},
		{{0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90}, 7, false},
		{{0xff, 0xd0, 0x90}, 3, false}, /* the call is not directly before the address */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint8_t *code = calloc(1, rows[i].bytes + 1);

		assert_non_null(code);
		memcpy(code, rows[i].code, rows[i].bytes);
		assert_int_equal(
			unwind_is_after_call(code + rows[i].bytes, rows[i].bytes), rows[i].is_call);
		if (rows[i].is_call)
			assert_false(unwind_is_after_call(code + rows[i].bytes, rows[i].bytes - 1));
		free(code);
	}
}
