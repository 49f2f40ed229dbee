/*
 * Rules from .eh_frame. The format is described in "DWARF Debugging Information Format", version 4,
 * section 6.4. The Linux Standard Base, "Exception Frames", describes how .eh_frame differs.
 * Register numbers are those of the System V i386 supplement.
 *
 * All data read here may be damaged, and may change while it is read. Each read is checked, and
 * each loop consumes bytes.
 */
#include <stddef.h>

#include "snapshot/tracer/unwind_parts_x86.h"

#define REGISTER_ESP 4
#define REGISTER_EBP 5
#define REGISTER_RETURN 8

#define WORD_BYTES 4 /* bytes per word of 32-bit code */
#define REMEMBERED_MAX 8

struct cursor {
	const uint8_t *at, *end;
	bool is_bad;
};

static const uint8_t *skip(struct cursor *cursor, uint32_t len)
{
	const uint8_t *at = cursor->at;

	if (cursor->is_bad || len > (size_t)(cursor->end - at)) {
		cursor->is_bad = true;
		cursor->at = cursor->end;
		return NULL;
	}
	cursor->at = at + len;
	return at;
}

static uint32_t read_bytes(struct cursor *cursor, uint32_t len)
{
	const volatile uint8_t *at = skip(cursor, len);
	uint32_t value = 0;

	for (uint32_t i = 0; at && i < len; i++)
		value |= (uint32_t)at[i] << 8 * i;
	return value;
}

/* Reads a LEB128 number. Bits above the low 32 are ignored. */
static uint32_t read_leb(struct cursor *cursor, bool is_signed)
{
	uint32_t value = 0, byte = 0x80;
	unsigned shift = 0;

	while (byte & 0x80 && !cursor->is_bad) {
		byte = read_bytes(cursor, 1);
		if (shift < 32)
			value |= (byte & 0x7f) << shift;
		shift += 7;
	}
	if (is_signed && byte & 0x40 && shift < 32)
		value |= UINT32_MAX << shift;
	return value;
}

static uint32_t read_uleb(struct cursor *cursor)
{
	return read_leb(cursor, false);
}

static int32_t read_sleb(struct cursor *cursor)
{
	return (int32_t)read_leb(cursor, true);
}

/* ---------------------------------------------------------------- CIE, FDE */

/* Pointer encodings: the low four bits are the form, the next three bits are the base. */
#define ENCODING_WORD 0x00
#define ENCODING_UDATA4 0x03
#define ENCODING_SDATA4 0x0b
#define ENCODING_PCREL 0x10
#define ENCODING_OMIT 0xff

struct cie {
	uint32_t offset; /* offset in the section */
	uint32_t code_align;
	int32_t data_align;
	uint8_t encoding; /* encoding of addresses in FDEs */
	/* return addresses in these functions are addresses of interrupted instructions */
	bool is_signal;
	struct cursor program;
};

struct fde {
	uint32_t begin, end; /* bounds of the function, as addresses */
	struct cursor program;
};

/* A CIE or an FDE. body is the part after its length and id. */
struct record {
	uint32_t offset;
	uint32_t id; /* 0 for a CIE; in an FDE, bytes from the id back to its CIE */
	struct cursor body;
};

/* Reads the record at *offset, and advances *offset. A terminator has no body. Returns false at the
 * end. */
static bool read_record(
	const struct unwind32_section *section, uint32_t *offset, struct record *record)
{
	struct cursor cursor = {section->bytes + *offset, section->bytes + section->len, false};
	uint32_t len = read_bytes(&cursor, 4);

	*record = (struct record){.offset = *offset};
	if (cursor.is_bad)
		return false;
	*offset += 4;
	if (!len)
		return true;
	record->body.at = cursor.at;
	/* A length of 0xffffffff introduces the 64-bit form. Such a length is too large for any
	 * section. */
	if (len < 4 || !skip(&cursor, len))
		return false;
	record->body.end = cursor.at;
	record->id = read_bytes(&record->body, 4);
	*offset += len;
	return true;
}

/* Returns a pointer's size in bytes, or 0 for an unknown form. */
static uint32_t pointer_bytes(uint8_t encoding)
{
	switch (encoding & 0x0f) {
	case ENCODING_WORD:
	case ENCODING_UDATA4:
	case ENCODING_SDATA4: return WORD_BYTES;
	default: return 0;
	}
}

/* Reads the augmentation data, one letter at a time. "R": encoding; "P": personality; "L": encoding
 * of the language-specific data; "S": signal frame. */
static bool read_augmentation(struct cie *cie, const uint8_t *letters, struct cursor data)
{
	for (; *letters; letters++) {
		if (*letters == 'R')
			cie->encoding = (uint8_t)read_bytes(&data, 1);
		else if (*letters == 'P')
			skip(&data, pointer_bytes((uint8_t)read_bytes(&data, 1)));
		else if (*letters == 'L')
			read_bytes(&data, 1);
		else if (*letters == 'S')
			cie->is_signal = true;
		else
			return false;
	}
	return !data.is_bad && cie->encoding != ENCODING_OMIT && pointer_bytes(cie->encoding) &&
	       !(cie->encoding & ~(ENCODING_PCREL | 0x0f));
}

#define LETTERS_MAX 8

static bool parse_cie(const struct record *record, struct cie *cie)
{
	struct cursor body = record->body, data;
	uint8_t letters[LETTERS_MAX + 1] = {0};
	uint32_t version = read_bytes(&body, 1), count = 0, len, reg;

	*cie = (struct cie){.offset = record->offset};
	while (count < LETTERS_MAX && (letters[count] = (uint8_t)read_bytes(&body, 1)))
		count++;
	cie->code_align = read_uleb(&body);
	cie->data_align = read_sleb(&body);
	reg = version == 1 ? read_bytes(&body, 1) : read_uleb(&body);
	if ((version != 1 && version != 3) || *letters != 'z' || count == LETTERS_MAX ||
		reg != REGISTER_RETURN)
		return false;
	len = read_uleb(&body);
	data.at = skip(&body, len);
	if (!data.at)
		return false;
	data.end = body.at;
	data.is_bad = false;
	cie->program = body;
	return read_augmentation(cie, letters + 1, data);
}

/* Reads an FDE's CIE, unless *cie is that CIE already. */
static bool read_cie(
	const struct unwind32_section *section, const struct record *record, struct cie *cie)
{
	uint32_t id_offset = record->offset + 4, offset = id_offset - record->id;
	struct record of_cie;

	if (record->id > id_offset)
		return false;
	if (cie->program.at && cie->offset == offset)
		return true;
	cie->program.at = NULL;
	return read_record(section, &offset, &of_cie) && of_cie.body.at && !of_cie.id &&
	       parse_cie(&of_cie, cie);
}

static bool parse_fde(const struct unwind32_section *section, const struct record *record,
	struct cie *cie, struct fde *fde)
{
	struct cursor body = record->body;
	uint32_t at = section->addr + (uint32_t)(body.at - section->bytes);

	if (!read_cie(section, record, cie))
		return false;
	fde->begin = read_bytes(&body, WORD_BYTES);
	if (cie->encoding & ENCODING_PCREL)
		fde->begin += at;
	fde->end = fde->begin + read_bytes(&body, WORD_BYTES);
	skip(&body, read_uleb(&body)); /* augmentation data */
	fde->program = body;
	return !body.is_bad && fde->end > fde->begin;
}

bool unwind32_is_eh_frame(const struct unwind32_section *section)
{
	struct record record;
	struct cie cie;
	uint32_t offset = 0;

	return read_record(section, &offset, &record) && record.body.at && !record.id &&
	       parse_cie(&record, &cie);
}

/* ---------------------------------------------------------------- list of functions */

/* Moves a place down in a heap whose top is the place with the highest address. */
static void sink(struct unwind32_place *places, uint32_t at, uint32_t count)
{
	struct unwind32_place moved = places[at];
	uint32_t child;

	while ((child = 2 * at + 1) < count) {
		if (child + 1 < count && places[child + 1].begin > places[child].begin)
			child++;
		if (places[child].begin <= moved.begin)
			break;
		places[at] = places[child];
		at = child;
	}
	places[at] = moved;
}

static void sort(struct unwind32_place *places, uint32_t count)
{
	for (uint32_t i = count / 2; i--;)
		sink(places, i, count);
	for (uint32_t i = count; i-- > 1;) {
		struct unwind32_place highest = places[0];

		places[0] = places[i];
		places[i] = highest;
		sink(places, 0, i);
	}
}

uint32_t unwind32_list(
	const struct unwind32_section *section, struct unwind32_place *places, uint32_t room)
{
	struct record record;
	struct cie cie = {0};
	struct fde fde;
	uint32_t offset = 0, count = 0;

	while (count <= room && read_record(section, &offset, &record)) {
		if (!record.id || !parse_fde(section, &record, &cie, &fde) ||
			fde.begin < section->image || fde.end > section->image_end)
			continue;
		if (count < room)
			places[count] =
				(struct unwind32_place){fde.begin - section->image, record.offset};
		count++;
	}
	if (count <= room)
		sort(places, count);
	return count;
}

/* ---------------------------------------------------------------- rules of a function */

enum return_rule {
	RETURN_UNKNOWN,
	RETURN_BELOW_CFA,
	RETURN_NONE, /* the frame is the outermost one */
};

/* Rules that apply to one instruction. */
struct rule_row {
	uint32_t cfa_register;
	int32_t cfa;
	bool is_indirect, is_cfa_known;
	enum unwind32_from ebp_from;
	int32_t ebp;
	bool is_ebp_known;
	enum return_rule ret;
};

struct machine {
	const struct cie *cie;
	struct rule_row row, initial, remembered[REMEMBERED_MAX];
	uint32_t remembered_count;
	uint32_t at, until; /* current address; address whose row is wanted */
};

/* An address expression: register plus bytes, optionally dereferenced. Compilers write no other
 * forms. */
struct expression {
	uint32_t from_register;
	int32_t bytes;
	bool is_indirect;
};

static bool read_expression(struct cursor *program, struct expression *expression)
{
	enum { DEREF = 0x06, PLUS_UCONST = 0x23, BREG0 = 0x70, BREG31 = 0x8f };
	uint32_t len = read_uleb(program), what;
	struct cursor cursor = {.at = skip(program, len)};

	if (!cursor.at)
		return false;
	cursor.end = program->at;
	what = read_bytes(&cursor, 1);
	if (what < BREG0 || what > BREG31)
		return false;
	*expression = (struct expression){.from_register = what - BREG0};
	expression->bytes = read_sleb(&cursor);
	while (cursor.at < cursor.end && !cursor.is_bad) {
		what = read_bytes(&cursor, 1);
		if (expression->is_indirect)
			return false;
		if (what == DEREF)
			expression->is_indirect = true;
		else if (what == PLUS_UCONST)
			expression->bytes =
				(int32_t)((uint32_t)expression->bytes + read_uleb(&cursor));
		else
			return false;
	}
	return !cursor.is_bad;
}

static void set_cfa_expression(struct machine *machine, struct cursor *program)
{
	struct expression expression = {0};

	machine->row.is_cfa_known = read_expression(program, &expression);
	machine->row.cfa_register = expression.from_register;
	machine->row.cfa = expression.bytes;
	machine->row.is_indirect = expression.is_indirect;
}

/* Records that a register is saved at an offset, in bytes, from the CFA. */
static void set_offset(struct rule_row *row, uint32_t reg, int32_t bytes)
{
	if (reg == REGISTER_EBP) {
		row->ebp_from = UNWIND32_CFA;
		row->ebp = bytes;
		row->is_ebp_known = true;
	} else if (reg == REGISTER_RETURN) {
		row->ret = bytes == -WORD_BYTES ? RETURN_BELOW_CFA : RETURN_UNKNOWN;
	} else if (reg == REGISTER_ESP) {
		row->is_cfa_known = false; /* the CFA must be the caller's ESP */
	}
}

/* Records that a register is saved at the address that an expression computes. */
static void set_place(struct rule_row *row, uint32_t reg, struct cursor *program)
{
	struct expression expression;
	bool is_known = read_expression(program, &expression) && !expression.is_indirect;

	if (reg == REGISTER_EBP) {
		row->is_ebp_known = is_known && (expression.from_register == REGISTER_EBP ||
							expression.from_register == REGISTER_ESP);
		if (row->is_ebp_known) {
			row->ebp_from = expression.from_register == REGISTER_EBP ? UNWIND32_EBP :
										   UNWIND32_ESP;
			row->ebp = expression.bytes;
		}
	} else if (reg == REGISTER_RETURN) {
		row->ret = RETURN_UNKNOWN;
	} else if (reg == REGISTER_ESP) {
		row->is_cfa_known = false;
	}
}

/* Records that a register is unchanged. This is assumed for undefined registers, too: code that
 * does not save a register usually does not change it. */
static void set_kept(struct rule_row *row, uint32_t reg, bool is_undefined)
{
	if (reg == REGISTER_EBP) {
		row->ebp_from = UNWIND32_KEPT;
		row->ebp = 0;
		row->is_ebp_known = true;
	} else if (reg == REGISTER_RETURN) {
		row->ret = is_undefined ? RETURN_NONE : RETURN_UNKNOWN;
	}
}

/* Records that a register's value is not in memory. */
static void set_unknown(struct rule_row *row, uint32_t reg)
{
	if (reg == REGISTER_EBP)
		row->is_ebp_known = false;
	else if (reg == REGISTER_RETURN)
		row->ret = RETURN_UNKNOWN;
	else if (reg == REGISTER_ESP)
		row->is_cfa_known = false;
}

static void restore(struct machine *machine, uint32_t reg)
{
	struct rule_row *row = &machine->row;
	const struct rule_row *initial = &machine->initial;

	if (reg == REGISTER_EBP) {
		row->ebp_from = initial->ebp_from;
		row->ebp = initial->ebp;
		row->is_ebp_known = initial->is_ebp_known;
	} else if (reg == REGISTER_RETURN) {
		row->ret = initial->ret;
	}
}

static void set_cfa(struct machine *machine, uint32_t reg, int32_t bytes)
{
	machine->row.cfa_register = reg;
	machine->row.cfa = bytes;
	machine->row.is_indirect = false;
	machine->row.is_cfa_known = true;
}

/* Advances in the code. Returns false if the current row already applies to the wanted
 * instruction. */
static bool advance(struct machine *machine, uint32_t steps)
{
	uint64_t bytes = (uint64_t)steps * machine->cie->code_align;

	if (bytes > machine->until - machine->at)
		return false;
	machine->at += (uint32_t)bytes;
	return true;
}

static int32_t scaled(const struct machine *machine, uint32_t number)
{
	return (int32_t)(number * (uint32_t)machine->cie->data_align);
}

enum {
	CFA_ADVANCE = 0x40, /* the low six bits are a number */
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
	CFA_NOP = 0,
	CFA_ADVANCE_1 = 2,
	CFA_ADVANCE_2,
	CFA_ADVANCE_4,
	CFA_OFFSET_EXTENDED,
	CFA_RESTORE_EXTENDED,
	CFA_UNDEFINED,
	CFA_SAME_VALUE,
	CFA_REGISTER,
	CFA_REMEMBER,
	CFA_RESTORE_STATE,
	CFA_DEF,
	CFA_DEF_REGISTER,
	CFA_DEF_OFFSET,
	CFA_DEF_EXPRESSION,
	CFA_EXPRESSION,
	CFA_OFFSET_SIGNED,
	CFA_DEF_SIGNED,
	CFA_DEF_OFFSET_SIGNED,
	CFA_VALUE_OFFSET,
	CFA_VALUE_OFFSET_SIGNED,
	CFA_VALUE_EXPRESSION,
	CFA_ARGS_SIZE = 0x2e,
};

/* Executes an instruction about a saved register. Returns false for other instructions. */
static bool set_register(struct machine *machine, uint32_t what, struct cursor *program)
{
	struct rule_row *row = &machine->row;
	uint32_t reg = read_uleb(program);

	switch (what) {
	case CFA_OFFSET_EXTENDED: set_offset(row, reg, scaled(machine, read_uleb(program))); break;
	case CFA_OFFSET_SIGNED:
		set_offset(row, reg, scaled(machine, (uint32_t)read_sleb(program)));
		break;
	case CFA_RESTORE_EXTENDED: restore(machine, reg); break;
	case CFA_UNDEFINED:
	case CFA_SAME_VALUE: set_kept(row, reg, what == CFA_UNDEFINED); break;
	case CFA_EXPRESSION: set_place(row, reg, program); break;
	case CFA_REGISTER:
	case CFA_VALUE_OFFSET:
	case CFA_VALUE_OFFSET_SIGNED:
		read_uleb(program);
		set_unknown(row, reg);
		break;
	case CFA_VALUE_EXPRESSION:
		skip(program, read_uleb(program));
		set_unknown(row, reg);
		break;
	default: return false;
	}
	return true;
}

/* Executes an instruction about the CFA. Returns false for other instructions. */
static bool set_frame(struct machine *machine, uint32_t what, struct cursor *program)
{
	uint32_t reg = machine->row.cfa_register;

	switch (what) {
	case CFA_DEF:
		reg = read_uleb(program);
		set_cfa(machine, reg, (int32_t)read_uleb(program));
		break;
	case CFA_DEF_SIGNED:
		reg = read_uleb(program);
		set_cfa(machine, reg, scaled(machine, (uint32_t)read_sleb(program)));
		break;
	case CFA_DEF_REGISTER: set_cfa(machine, read_uleb(program), machine->row.cfa); break;
	case CFA_DEF_OFFSET: set_cfa(machine, reg, (int32_t)read_uleb(program)); break;
	case CFA_DEF_OFFSET_SIGNED:
		set_cfa(machine, reg, scaled(machine, (uint32_t)read_sleb(program)));
		break;
	case CFA_DEF_EXPRESSION: set_cfa_expression(machine, program); break;
	default: return false;
	}
	return true;
}

/* Pushes the current row, or pops the last one if is_back. Returns false if the stack is full or
 * empty. */
static bool remember(struct machine *machine, bool is_back)
{
	if (is_back && machine->remembered_count)
		machine->row = machine->remembered[--machine->remembered_count];
	else if (!is_back && machine->remembered_count < REMEMBERED_MAX)
		machine->remembered[machine->remembered_count++] = machine->row;
	else
		return false;
	return true;
}

/* Runs a program to the wanted row, or to the program's end. Returns false if the program is not
 * understood. */
static bool run(struct machine *machine, struct cursor program)
{
	while (program.at < program.end && !program.is_bad) {
		uint32_t what = read_bytes(&program, 1), number = what & 0x3f;

		switch (what & 0xc0) {
		case CFA_ADVANCE:
			if (!advance(machine, number))
				return true;
			continue;
		case CFA_OFFSET:
			set_offset(&machine->row, number, scaled(machine, read_uleb(&program)));
			continue;
		case CFA_RESTORE: restore(machine, number); continue;
		default: break;
		}
		if (what >= CFA_ADVANCE_1 && what <= CFA_ADVANCE_4) {
			number = read_bytes(&program, 1u << (what - CFA_ADVANCE_1));
			if (!program.is_bad && !advance(machine, number))
				return true;
		} else if (what == CFA_REMEMBER || what == CFA_RESTORE_STATE) {
			if (!remember(machine, what == CFA_RESTORE_STATE))
				return false;
		} else if (what == CFA_ARGS_SIZE) {
			read_uleb(&program); /* the rows already account for pushed arguments */
		} else if (what != CFA_NOP && !set_frame(machine, what, &program) &&
			   !set_register(machine, what, &program)) {
			return false;
		}
	}
	return !program.is_bad;
}

static bool to_rule(const struct rule_row *row, struct unwind32_rule *rule)
{
	if (row->ret == RETURN_NONE) {
		*rule = (struct unwind32_rule){.kind = UNWIND32_END};
		return true;
	}
	if (!row->is_cfa_known || !row->is_ebp_known || row->ret != RETURN_BELOW_CFA ||
		(row->cfa_register != REGISTER_ESP && row->cfa_register != REGISTER_EBP))
		return false;
	*rule = (struct unwind32_rule){
		.cfa = row->cfa,
		.ebp = row->ebp,
		.cfa_from = row->cfa_register == REGISTER_ESP ? UNWIND32_ESP : UNWIND32_EBP,
		.is_indirect = row->is_indirect,
		.ebp_from = (uint8_t)row->ebp_from,
	};
	return true;
}

static bool run_function(
	const struct cie *cie, const struct fde *fde, uint32_t addr, struct unwind32_rule *rule)
{
	struct machine machine = {
		.cie = cie, .row = {.ebp_from = UNWIND32_KEPT, .is_ebp_known = true}};

	/* The return address may be in another function than the call, or other rules may apply to
	 * it. So use the rules of the call, one byte before the return address. */
	machine.at = fde->begin;
	machine.until = addr - !cie->is_signal;
	if (!run(&machine, cie->program))
		return false;
	machine.initial = machine.row;
	return run(&machine, fde->program) && to_rule(&machine.row, rule);
}

static bool covers(const struct fde *fde, uint32_t addr)
{
	return addr - 1 >= fde->begin && addr - 1 < fde->end;
}

/* Finds the last listed function that begins at or before an address. Returns NULL if all
 * begin after it. */
static const struct unwind32_place *find_place(
	const struct unwind32_place *places, uint32_t count, uint32_t begin)
{
	uint32_t from = 0, to = count;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (places[middle].begin <= begin)
			from = middle + 1;
		else
			to = middle;
	}
	return from ? &places[from - 1] : NULL;
}

/* Finds the function that contains an address. places: the list, or NULL to search the whole
 * section. */
static bool find_function(const struct unwind32_section *section,
	const struct unwind32_place *places, uint32_t count, uint32_t addr, struct cie *cie,
	struct fde *fde)
{
	const struct unwind32_place *place = NULL;
	struct record record;
	uint32_t offset = 0;

	if (places) {
		place = find_place(places, count, addr - 1 - section->image);
		offset = place ? place->offset : section->len;
		if (offset > section->len)
			return false;
	}
	while (offset <= section->len && read_record(section, &offset, &record)) {
		if (record.id && parse_fde(section, &record, cie, fde) && covers(fde, addr))
			return true;
		if (place)
			break;
	}
	return false;
}

enum unwind32_answer unwind32_read(const struct unwind32_section *section,
	const struct unwind32_place *places, uint32_t count, uint32_t addr,
	struct unwind32_rule *rule, uint32_t *begin)
{
	struct cie cie = {0};
	struct fde fde;

	if (!find_function(section, places, count, addr, &cie, &fde))
		return UNWIND32_NOT_COVERED;
	*begin = fde.begin;
	return run_function(&cie, &fde, addr, rule) ? UNWIND32_FOUND : UNWIND32_NOT_UNDERSTOOD;
}
