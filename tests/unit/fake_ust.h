/* Stack records and their database in a made process. Their layout follows the known facts about
 * Windows 7 to 10, not the program's own table. */
#ifndef TESTS_UNIT_FAKE_UST_H
#define TESTS_UNIT_FAKE_UST_H

#include "tests/unit/fake_target.h"

#include "snapshot/stacks/ust.h"

#define CODE_BASE 0x10000000u /* code of a module */
#define CODE_BYTES 0x100000u
#define RECORDS 0x20000000u
#define RECORDS_BYTES 0x10000u

/* RTL_STACK_TRACE_ENTRY */
struct made_record {
	uint64_t chain;
	unsigned trace_count, block_depth;
	/* record's number in the database; some sources read its lower half as a frame count */
	uint32_t index;
	unsigned depth;
	unsigned frame_count; /* number of stored frames */
	uint64_t first_frame; /* the other frames follow at intervals of 16 bytes */
};

static inline uint64_t slot_at(unsigned bits, uint64_t record)
{
	return record + (bits == 64 ? 0x10 : 0x0c);
}

static inline void write_record(unsigned bits, uint64_t addr, const struct made_record *record)
{
	unsigned size = bits / 8;

	fake_write(addr, record->chain, size);
	fake_write(addr + size, record->trace_count | record->block_depth << 11, 2);
	fake_write(addr + size + 2, record->index >> 16, 2);
	fake_write(addr + size + 4, record->index & 0xffff, 2);
	fake_write(addr + size + 6, record->depth, 2);
	for (unsigned i = 0; i < record->frame_count; i++)
		fake_write(slot_at(bits, addr) + i * size, record->first_frame + i * 16, size);
}

/* Makes a module with code, and memory for records. */
static inline void ust_place(unsigned bits)
{
	fake_init();
	fake.target.bits = bits;
	fake.modules[fake.module_count++] = (struct module){
		.base = CODE_BASE, .size_bytes = CODE_BYTES, .path = "C:\\app\\app.exe"};
	fake_map(RECORDS, RECORDS_BYTES)->needs_hold = true;
	fake.is_held = true;
}

#endif
