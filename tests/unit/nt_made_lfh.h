/* Low fragmentation heaps in small NT heaps: an _LFH_HEAP, a zone of subsegments, and
 * containers. */
#ifndef TESTS_UNIT_NT_MADE_LFH_H
#define TESTS_UNIT_NT_MADE_LFH_H

#include "tests/unit/nt_made.h"

#define MADE_LFH_KEY 0xa5c37e19u
#define MADE_SUBSEGMENTS 40
#define MADE_LFH_BYTES 0x80000u /* bytes of the heap in made_lfh_plain() */

struct made_lfh {
	const struct made_lfh_layout *layout;
	uint64_t addr, zone, next_subsegment;
	uint32_t key; /* RtlpLFHKey */
	bool wrong_headers; /* block headers are not coded with the key */
};

static struct made_lfh lfh;

/* Makes a heap whose first blocks contain its front end. */
static inline void made_lfh(void)
{
	const struct made_lfh_layout *layout = made_lfh_layout(made.kind->bits, made.kind->build);
	uint64_t bytes = layout->zone_first + MADE_SUBSEGMENTS * layout->subsegment_bytes;

	lfh = (struct made_lfh){.layout = layout, .key = MADE_LFH_KEY};
	made_heap(MADE_LFH_BYTES, MADE_LFH_BYTES);
	lfh.addr = made_block(0x100, NT_BLOCK_BUSY, 8) + made.shape->unit;
	made_write_ptr(lfh.addr + lfh.layout->heap, MADE_HEAP);
	made_list_init(lfh.addr + lfh.layout->zones);
	made_write_ptr(MADE_HEAP + made.row->front_end, lfh.addr);
	fake_write(MADE_HEAP + made.row->front_end_type, NT_FRONT_END_LFH, 1);
	lfh.zone = made_block((bytes + 0x2f) / 16 * 16, NT_BLOCK_BUSY, 8) + made.shape->unit;
	made_list_add(lfh.addr + lfh.layout->zones, lfh.zone);
	lfh.next_subsegment = lfh.zone + lfh.layout->zone_first;
}

static inline void made_zone_end(void)
{
	uint64_t first = lfh.zone + lfh.layout->zone_first;

	if (lfh.layout->is_zone_end_index)
		fake_write(lfh.zone + lfh.layout->zone_end,
			(lfh.next_subsegment - first) / lfh.layout->subsegment_bytes, 4);
	else
		made_write_ptr(lfh.zone + lfh.layout->zone_end, lfh.next_subsegment);
}

/* _HEAP_SUBSEGMENT.AggregateExchg.Depth, of Windows 7. */
static inline uint64_t made_depth_at(uint64_t subsegment)
{
	return subsegment + (made.kind->bits == 64 ? 0x10 : 8);
}

static inline uint64_t made_subsegment(uint64_t container, uint32_t stride, uint32_t count)
{
	uint64_t sub = lfh.next_subsegment;

	lfh.next_subsegment += lfh.layout->subsegment_bytes;
	made_write_ptr(sub + lfh.layout->user_blocks, container);
	fake_write(sub + lfh.layout->block_size, stride / made.shape->unit, 2);
	fake_write(sub + lfh.layout->block_count, count, 2);
	if (!lfh.layout->offsets)
		fake_write(made_depth_at(sub), count, 2);
	made_zone_end();
	return sub;
}

static inline uint32_t made_first_offset(uint32_t count)
{
	bool is_wide = made.kind->bits == 64;
	uint32_t words = (count + 31) / 32 * 4, head = is_wide ? 0x34 : 0x1c;
	uint32_t unit = is_wide ? 16 : 8;

	if (!lfh.layout->offsets)
		return is_wide ? 0x20 : 0x10;
	return (head + words + unit - 1) / unit * unit;
}

/* Writes the header of a block in a container. Only the header's last byte is not coded. */
static inline void made_lfh_header(uint64_t container, uint64_t entry, uint8_t mark)
{
	unsigned shift = made.kind->bits == 64 ? 4 : 3;
	uint32_t code = MADE_HEAP ^ (uint32_t)(entry >> shift) ^ lfh.key ^
			(uint32_t)((entry - container) >> shift) << 16;
	uint64_t at = entry + made.shape->header_at;

	fake_write(at, lfh.wrong_headers ? ~code : code, 4);
	fake_write(at + 7, mark, 1);
}

struct made_container {
	uint64_t addr, subsegment;
	uint32_t first, stride, count;
};

/* Makes a container of `count` free blocks, followed by `more` bytes. Padding fills the chunk to a
 * power of two. */
static inline struct made_container made_container_and(
	uint32_t stride, uint32_t count, uint32_t more)
{
	const struct made_lfh_layout *l = lfh.layout;
	struct made_container c = {.stride = stride, .count = count};
	uint64_t room, log = 4;

	c.first = made_first_offset(count);
	room = c.first + (uint64_t)count * stride + (made.kind->bits == 64 ? 0x10 : 0) + more;
	while ((uint64_t)2 << log <= room)
		log++;
	c.addr = made_block(made.shape->unit + room, NT_BLOCK_BUSY | NT_BLOCK_INTERNAL, 8) +
		 made.shape->unit;
	c.subsegment = made_subsegment(c.addr, stride, count);
	made_write_ptr(c.addr, c.subsegment);
	fake_write(c.addr + l->blocks_signature, NT_LFH_SIGNATURE, 4);
	if (l->offsets) {
		uint32_t plain = c.first | stride << 16;

		if (l->are_offsets_coded)
			plain ^= (uint32_t)c.addr ^ (uint32_t)lfh.addr ^ lfh.key;
		fake_write(c.addr + l->offsets, plain, 4);
		fake_write(c.addr + (made.kind->bits == 64 ? 0x10 : 8),
			log | (room - ((uint64_t)1 << log)) << 16, 4);
		made_write_ptr(c.addr + l->bitmap, count);
		made_write_ptr(c.addr + l->bitmap_buffer, c.addr + l->bitmap_data);
	}
	for (uint32_t i = 0; i < count; i++)
		made_lfh_header(c.addr, c.addr + c.first + (uint64_t)i * stride, 0x80);
	return c;
}

static inline struct made_container made_container(uint32_t stride, uint32_t count)
{
	return made_container_and(stride, count, 0);
}

static inline uint64_t made_lfh_busy(const struct made_container *c, uint32_t i, uint8_t mark)
{
	uint64_t entry = c->addr + c->first + (uint64_t)i * c->stride;
	uint64_t byte = c->addr + lfh.layout->bitmap_data + i / 8;

	made_lfh_header(c->addr, entry, mark);
	if (!lfh.layout->offsets && mark != 0x80) {
		uint64_t depth = made_depth_at(c->subsegment);

		fake_write(depth, fake_get(depth, 2) - 1, 2);
	}
	if (lfh.layout->offsets)
		fake_write(byte, fake_get(byte, 1) | 1u << i % 8, 1);
	return entry;
}

/* Makes some of a container's blocks busy and adds them to the expected blocks. */
static inline void made_lfh_fill(const struct made_container *c, uint64_t *seed)
{
	for (uint32_t i = 0; i < c->count; i++) {
		uint8_t unused = (uint8_t)(8 + fake_random(seed) % 16);
		uint64_t entry;

		if (fake_random(seed) % 2)
			continue;
		entry = made_lfh_busy(c, i, 0x80 | unused);
		made_expect(entry + made.shape->unit, c->stride - unused, unused, 0);
	}
}

/* Makes a heap with a front end and containers of several sizes; returns the address of the first
 * container. */
static inline uint64_t made_lfh_plain(void)
{
	uint64_t seed = 7, first = 0;

	made_lfh();
	made_busy(0x40, 8);
	for (uint32_t i = 0; i < 12; i++) {
		struct made_container c = made_container(0x20 + 0x10 * i, 20 + 25 * i);

		first = i ? first : c.addr;
		made_lfh_fill(&c, &seed);
		made_busy(0x90, 9);
	}
	made_rest(MADE_LFH_BYTES);
	return first;
}

#endif
