/*
 * Bytes after a block's request in a segment heap.
 *
 * Sources: the last u16 of a place counts its unused bytes if there are any. Bit 15 alone means one
 * unused byte, which has no room for a u16, so only the high byte is stored. Bit 14: an extra is
 * present (PDB, two readers). The stack's pointer lies in the unused tail. A reader finds it by
 * searching there for 01 01 and zeros (12 on x64, 4 on x86) and takes the next pointer [1].
 *
 * Interpreted as structures [inf] that is
 *
 *   _SEGMENT_HEAP_EXTRA  AllocationTag u16 0, InterceptorIndex 1 (one byte with UserFlags 0),
 *                        ExtraSizeInUnits 1, Settable 0; 10h bytes on x64, 8 on x86
 *   interceptor's unit   pointer to the RTL_STACK_TRACE_ENTRY; 10h bytes on x64, 8 on x86; 0 or
 *                        0101000000000000 (01010000 on x86): no stack (facts, sections 2.6a
 *                        and 5.3)
 *
 * The pair follows the user's bytes, rounded up to a unit, and the u16 at the end of the place has
 * its own room: block sizes of a real process on x64 fit this and no other tried layout (facts,
 * windows-2026, D1). Inferred for x86 and for builds before 11.
 */
#include "tests/images/segment_parts.h"

#define ONE_BYTE_UNUSED 0x80u /* value of the last byte */
#define EXTRA_PRESENT 0x4000u

static uint64_t round_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) / to * to;
}

/* Chosen by address, so that growth states draw equal random numbers. */
static uint64_t chance(const struct segment_model *model, uint64_t addr, uint64_t limit)
{
	uint64_t value = (addr ^ model->heap_key) * 0x9e3779b97f4a7c15;
	return (value >> 32) % limit;
}

uint32_t segment_tail_bytes(
	const struct segment_model *model, const struct segment_block *block, enum tail_word word)
{
	if (!block->has_stack_place)
		return 0;
	return 2 * model->unit + (word == TAIL_WORD_PRESENT ? 2 : 0);
}

static void write_extra(struct segment_model *model, uint64_t addr, uint64_t record)
{
	image_fill(model->image, addr, 0, model->unit);
	image_write(model->image, addr + 2, 1, 1);
	image_write(model->image, addr + 3, 1, 1);
	image_write_ptr(model->image, addr + model->unit, record);
}

/* Writes user bytes that look like an extra part but point nowhere. */
static void write_decoy(
	struct segment_model *model, const struct segment_block *block, uint64_t user)
{
	if (block->requested < 4 * model->unit || chance(model, user, 8))
		return;
	uint64_t end = (user + block->requested) / model->unit * model->unit;
	write_extra(model, end - 2 * model->unit, image_stack_record(model->image, 0));
}

/* Writes a block with user flags and a settable value, but without an interceptor. */
static bool write_settable(struct segment_model *model, uint64_t addr, uint64_t end)
{
	if (addr + model->unit + 2 > end || chance(model, addr, 4))
		return false;
	image_fill(model->image, addr, 0, model->unit);
	image_write(model->image, addr + 2, 0x20, 1);
	image_write_ptr(model->image, addr + model->unit / 2, 0x5e77ab1e);
	return true;
}

static void write_word(struct segment_model *model, uint64_t end, uint64_t unused, bool has_extra)
{
	if (unused == 1)
		image_write(model->image, end - 1, ONE_BYTE_UNUSED, 1);
	else if (unused)
		image_write(model->image, end - 2, unused | (has_extra ? EXTRA_PRESENT : 0), 2);
}

static bool write_tail(struct segment_model *model, const struct segment_block *block,
	uint64_t user, uint64_t end, enum tail_word word)
{
	uint64_t first = user + round_up(block->requested, model->unit);
	if (!block->has_stack_place)
		return word == TAIL_WORD_PRESENT && write_settable(model, first, end);
	bool has_stack = block->stack != STACK_NOTHING;
	uint64_t nothing = chance(model, user, 4) < 2 ? 0 :
			   model->unit == 16	      ? 0x0101000000000000 :
							0x01010000;
	uint64_t record = has_stack ? image_stack_record(model->image, block->stack) : nothing;
	write_extra(model, first, record);
	if (has_stack)
		image_mark(model->image, "segment record", first + model->unit);
	return true;
}

void segment_write_block(struct segment_model *model, const struct segment_block *block,
	uint64_t user, uint64_t usable, enum tail_word word)
{
	uint64_t unused = usable - block->requested;
	if (block->requested >= 8)
		image_write(model->image, user, 0x6f6c6c6568ull + (user << 40), 8);
	write_decoy(model, block, user);
	if (unused <= 0x200)
		image_fill(model->image, user + block->requested, 0xdd, unused);
	bool has_extra = write_tail(model, block, user, user + usable, word);
	if (word == TAIL_WORD_PRESENT)
		write_word(model, user + usable, unused, has_extra);
}
