/*
 * Rules from .eh_frame: an interpreter of the programs that CIEs and FDEs contain
 * (unwind_records_x86.c). Register numbers are those of the System V i386 supplement. Each read is
 * checked, and each loop consumes bytes.
 */
#include <stddef.h>

#include "snapshot/tracer/unwind_parts_x86.h"

#define REGISTER_ESP 4
#define REGISTER_EBP 5

#define REMEMBERED_MAX 8

enum return_rule {
	RETURN_UNKNOWN,
	RETURN_BELOW_CFA,
	RETURN_NONE, /* the frame is the outermost frame */
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
	const struct unwind32_cie *cie;
	struct rule_row row, initial, remembered[REMEMBERED_MAX];
	uint32_t remembered_count;
	uint32_t at, until; /* current address; address for which the row is wanted */
};

/* An address expression: a register plus a number of bytes, optionally dereferenced. Compilers
 * write no other forms. */
struct expression {
	uint32_t from_register;
	int32_t bytes;
	bool is_indirect;
};

static bool read_expression(struct unwind32_cursor *program, struct expression *expression)
{
	enum { DEREF = 0x06, PLUS_UCONST = 0x23, BREG0 = 0x70, BREG31 = 0x8f };
	uint32_t len = unwind32_uleb(program), what;
	struct unwind32_cursor cursor = {.at = unwind32_skip(program, len)};

	if (!cursor.at)
		return false;
	cursor.end = program->at;
	what = unwind32_bytes(&cursor, 1);
	if (what < BREG0 || what > BREG31)
		return false;
	*expression = (struct expression){.from_register = what - BREG0};
	expression->bytes = unwind32_sleb(&cursor);
	while (cursor.at < cursor.end && !cursor.is_bad) {
		what = unwind32_bytes(&cursor, 1);
		if (expression->is_indirect)
			return false;
		if (what == DEREF)
			expression->is_indirect = true;
		else if (what == PLUS_UCONST)
			expression->bytes =
				(int32_t)((uint32_t)expression->bytes + unwind32_uleb(&cursor));
		else
			return false;
	}
	return !cursor.is_bad;
}

static void set_cfa_expression(struct machine *machine, struct unwind32_cursor *program)
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
	} else if (reg == UNWIND32_REGISTER_RETURN) {
		row->ret = bytes == -UNWIND32_WORD_BYTES ? RETURN_BELOW_CFA : RETURN_UNKNOWN;
	} else if (reg == REGISTER_ESP) {
		row->is_cfa_known = false; /* the CFA must be the caller's ESP */
	}
}

/* Records that a register is saved at the address that an expression computes. */
static void set_place(struct rule_row *row, uint32_t reg, struct unwind32_cursor *program)
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
	} else if (reg == UNWIND32_REGISTER_RETURN) {
		row->ret = RETURN_UNKNOWN;
	} else if (reg == REGISTER_ESP) {
		row->is_cfa_known = false;
	}
}

/* Records that a register is unchanged. Rules may also describe a register as undefined. It then
 * counts as unchanged too, because code that does not save a register usually does not change
 * it. */
static void set_kept(struct rule_row *row, uint32_t reg, bool is_undefined)
{
	if (reg == REGISTER_EBP) {
		row->ebp_from = UNWIND32_KEPT;
		row->ebp = 0;
		row->is_ebp_known = true;
	} else if (reg == UNWIND32_REGISTER_RETURN) {
		row->ret = is_undefined ? RETURN_NONE : RETURN_UNKNOWN;
	}
}

/* Records that a register's value is not in memory. */
static void set_unknown(struct rule_row *row, uint32_t reg)
{
	if (reg == REGISTER_EBP)
		row->is_ebp_known = false;
	else if (reg == UNWIND32_REGISTER_RETURN)
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
	} else if (reg == UNWIND32_REGISTER_RETURN) {
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
static bool set_register(struct machine *machine, uint32_t what, struct unwind32_cursor *program)
{
	struct rule_row *row = &machine->row;
	uint32_t reg = unwind32_uleb(program);

	switch (what) {
	case CFA_OFFSET_EXTENDED:
		set_offset(row, reg, scaled(machine, unwind32_uleb(program)));
		break;
	case CFA_OFFSET_SIGNED:
		set_offset(row, reg, scaled(machine, (uint32_t)unwind32_sleb(program)));
		break;
	case CFA_RESTORE_EXTENDED: restore(machine, reg); break;
	case CFA_UNDEFINED:
	case CFA_SAME_VALUE: set_kept(row, reg, what == CFA_UNDEFINED); break;
	case CFA_EXPRESSION: set_place(row, reg, program); break;
	case CFA_REGISTER:
	case CFA_VALUE_OFFSET:
	case CFA_VALUE_OFFSET_SIGNED:
		unwind32_uleb(program);
		set_unknown(row, reg);
		break;
	case CFA_VALUE_EXPRESSION:
		unwind32_skip(program, unwind32_uleb(program));
		set_unknown(row, reg);
		break;
	default: return false;
	}
	return true;
}

/* Executes an instruction about the CFA. Returns false for other instructions. */
static bool set_frame(struct machine *machine, uint32_t what, struct unwind32_cursor *program)
{
	uint32_t reg = machine->row.cfa_register;

	switch (what) {
	case CFA_DEF:
		reg = unwind32_uleb(program);
		set_cfa(machine, reg, (int32_t)unwind32_uleb(program));
		break;
	case CFA_DEF_SIGNED:
		reg = unwind32_uleb(program);
		set_cfa(machine, reg, scaled(machine, (uint32_t)unwind32_sleb(program)));
		break;
	case CFA_DEF_REGISTER: set_cfa(machine, unwind32_uleb(program), machine->row.cfa); break;
	case CFA_DEF_OFFSET: set_cfa(machine, reg, (int32_t)unwind32_uleb(program)); break;
	case CFA_DEF_OFFSET_SIGNED:
		set_cfa(machine, reg, scaled(machine, (uint32_t)unwind32_sleb(program)));
		break;
	case CFA_DEF_EXPRESSION: set_cfa_expression(machine, program); break;
	default: return false;
	}
	return true;
}

/* Pushes the current row or, if `is_back` is set, pops the last row. Returns false if the stack is
 * full or empty. */
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

/* Runs a program up to the wanted row or to the program's end. Returns false if the program is not
 * understood. */
static bool run(struct machine *machine, struct unwind32_cursor program)
{
	while (program.at < program.end && !program.is_bad) {
		uint32_t what = unwind32_bytes(&program, 1), number = what & 0x3f;

		switch (what & 0xc0) {
		case CFA_ADVANCE:
			if (!advance(machine, number))
				return true;
			continue;
		case CFA_OFFSET:
			set_offset(&machine->row, number, scaled(machine, unwind32_uleb(&program)));
			continue;
		case CFA_RESTORE: restore(machine, number); continue;
		default: break;
		}
		if (what >= CFA_ADVANCE_1 && what <= CFA_ADVANCE_4) {
			number = unwind32_bytes(&program, 1u << (what - CFA_ADVANCE_1));
			if (!program.is_bad && !advance(machine, number))
				return true;
		} else if (what == CFA_REMEMBER || what == CFA_RESTORE_STATE) {
			if (!remember(machine, what == CFA_RESTORE_STATE))
				return false;
		} else if (what == CFA_ARGS_SIZE) {
			unwind32_uleb(&program); /* the rows already account for pushed arguments */
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

static bool run_function(const struct unwind32_cie *cie, const struct unwind32_fde *fde,
	uint32_t addr, struct unwind32_rule *rule)
{
	struct machine machine = {
		.cie = cie, .row = {.ebp_from = UNWIND32_KEPT, .is_ebp_known = true}};

	/* Use the rules of the call, one byte before the return address. The return address itself
	 * may be in another function, or other rules may apply to it. */
	machine.at = fde->begin;
	machine.until = addr - !cie->is_signal;
	if (!run(&machine, cie->program))
		return false;
	machine.initial = machine.row;
	return run(&machine, fde->program) && to_rule(&machine.row, rule);
}

enum unwind32_answer unwind32_read(const struct unwind32_section *section,
	const struct unwind32_place *places, uint32_t count, uint32_t addr,
	struct unwind32_rule *rule, uint32_t *begin)
{
	struct unwind32_cie cie = {0};
	struct unwind32_fde fde;

	if (!unwind32_function(section, places, count, addr, &cie, &fde))
		return UNWIND32_NOT_COVERED;
	*begin = fde.begin;
	return run_function(&cie, &fde, addr, rule) ? UNWIND32_FOUND : UNWIND32_NOT_UNDERSTOOD;
}
