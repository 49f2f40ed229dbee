/*
 * A segment heap's variable-size allocator: subsegments divided into chunks, each with a header.
 *
 * Header: MemoryCost, UnsafeSize, UnsafePrevSize (in units, header included) and Allocated, XORed
 * with the chunk's address and HeapKey; then the byte EncodedSegmentPageOffset, XORed with the low
 * byte of the same value, and the bit UnusedBytes [2+]. The page offset is the chunk's in its
 * subsegment [inf]. A free chunk has a node of FreeChunkTree in place of the second part. The list
 * of subsegments: each link is XORed with the address of its list entry [1]. Size covers the whole
 * subsegment, including its header [inf].
 *
 * From 26100 on affinity slots have the list and the tree. A map of references leads from the
 * context to the slots, and a subsegment's OwnerSlotRef back to its slot. Inferred: links are XORed
 * as before; OwnerSlotRef has the unit of the map's references; VsContextOffset has the size of the
 * pointer that it replaced; and two places of the map can refer to one slot, as the existence of
 * ContentionRemapCount suggests.
 */
#include <stdlib.h>

#include "tests/images/rb_image.h"
#include "tests/images/segment_parts.h"

#define SUBSEGMENT_BYTES 0x10000u
#define BIG_SUBSEGMENT_BYTES 0x40000u
#define SIZE_SIGNATURE 0x2bedu
#define FULL_COMMIT 0x8000u
#define UNUSED_BYTES_BIT 0x100u
#define LFH_SUBSEGMENT 0x2000u
#define MOST_SLOTS 8u
#define MOST_CHUNKS (BIG_SUBSEGMENT_BYTES / 16)

struct chunk {
	const struct vs_item *item; /* NULL: a free chunk */
	uint32_t first, units; /* units from the subsegment's start */
};

/* List of subsegments, with the tree of their free chunks. */
struct vs_slot {
	uint64_t addr; /* 0 before 26100, when the list and the tree are in the context */
	uint64_t list, free_tree;
	struct rb_nodes subsegments, free_chunks;
};

struct vs_slots {
	struct vs_slot at[MOST_SLOTS];
	unsigned count;
	unsigned used; /* number of slots that have subsegments */
	uint64_t total_units, free_units;
};

struct subsegment {
	struct vs_slot *slot;
	uint64_t addr;
	uint32_t units, next; /* next: first unit after the last chunk */
	size_t chunk_count;
	struct chunk chunks[MOST_CHUNKS];
};

static void add_item(struct segment_model *model, const struct vs_item *item)
{
	model->items = image_grow(
		model->items, &model->item_capacity, model->item_count, sizeof *model->items);
	model->items[model->item_count++] = *item;
}

void segment_vs_add_block(struct segment_model *model, const struct segment_block *block)
{
	uint32_t bytes = (block->requested + model->unit - 1) / model->unit * model->unit;
	bytes += segment_tail_bytes(model, block, TAIL_WORD_PRESENT);
	if (!segment_random(model, 8))
		bytes += model->unit; /* the rest was too small for a chunk */
	add_item(model, &(struct vs_item){.block = *block, .bytes = bytes});
}

/* The last two bytes of the chunk describe its content. */
void segment_vs_add_subsegment(struct segment_model *model, struct segment_subsegment *subsegment)
{
	add_item(
		model, &(struct vs_item){.subsegment = subsegment, .bytes = subsegment->bytes + 2});
}

/* ---- chunks of one subsegment */

static void add_chunk(struct subsegment *subsegment, const struct vs_item *item, uint32_t units)
{
	subsegment->chunks[subsegment->chunk_count++] =
		(struct chunk){.item = item, .first = subsegment->next, .units = units};
	subsegment->next += units;
}

/* Turns the rest into a free chunk, or adds it to the last chunk. */
static void fill_up(const struct segment_model *model, struct subsegment *subsegment)
{
	uint32_t left = subsegment->units - subsegment->next;
	if (left * model->unit >= model->at->chunk.least_free)
		add_chunk(subsegment, NULL, left);
	else if (subsegment->chunk_count)
		subsegment->chunks[subsegment->chunk_count - 1].units += left;
}

static bool is_free(const struct chunk *chunk)
{
	return !chunk->item || (!chunk->item->subsegment && !chunk->item->block.is_live);
}

static void write_header(struct segment_model *model, const struct subsegment *subsegment,
	const struct chunk *chunk, uint32_t previous_units)
{
	uint64_t addr = subsegment->addr + (uint64_t)chunk->first * model->unit;
	uint64_t plain;
	bool is_busy = !is_free(chunk);
	if (model->at->bits == 64)
		plain = 1 | (uint64_t)chunk->units << 16 | (uint64_t)previous_units << 32 |
			(uint64_t)is_busy << 48;
	else
		plain = 1 | chunk->units << 1 | previous_units << 16 | (uint32_t)is_busy << 31;
	image_write_ptr(model->image, addr, plain ^ addr ^ model->heap_key);
	image_mark(model->image, "vs chunk", addr);
}

static void write_bits(struct segment_model *model, uint64_t addr, unsigned page, bool has_unused)
{
	unsigned key = (addr ^ model->heap_key) & 0xff;
	image_write(model->image, addr + model->at->chunk.bits,
		(page ^ key) | (has_unused ? UNUSED_BYTES_BIT : 0), 4);
}

static void write_busy(
	struct segment_model *model, const struct subsegment *subsegment, const struct chunk *chunk)
{
	uint64_t addr = subsegment->addr + (uint64_t)chunk->first * model->unit;
	uint64_t user = addr + model->at->chunk.bytes;
	uint64_t usable = (uint64_t)chunk->units * model->unit - model->at->chunk.bytes;
	unsigned page = chunk->first * model->unit / SEGMENT_PAGE;
	const struct vs_item *item = chunk->item;
	if (item->subsegment) {
		item->subsegment->addr = user;
		write_bits(model, addr, page, true);
		image_write(model->image, user + usable - 2,
			LFH_SUBSEGMENT | (usable - item->subsegment->bytes), 2);
		return;
	}
	write_bits(model, addr, page, usable > item->block.requested);
	segment_write_block(model, &item->block, user, usable, TAIL_WORD_PRESENT);
	segment_print(model, &item->block, user, usable + model->at->chunk.bytes);
}

/* Decommits the whole pages inside a big free chunk; returns the bitmap of the committed pages. */
static uint64_t trim(
	struct segment_model *model, const struct subsegment *subsegment, const struct chunk *chunk)
{
	uint64_t from = (uint64_t)chunk->first * model->unit + model->at->chunk.least_free;
	uint64_t to = (uint64_t)(chunk->first + chunk->units) * model->unit;
	unsigned first = (unsigned)((from + SEGMENT_PAGE - 1) / SEGMENT_PAGE);
	unsigned end = (unsigned)(to / SEGMENT_PAGE);
	if (first >= end)
		return UINT64_MAX;
	image_decommit(model->image, subsegment->addr + (uint64_t)first * SEGMENT_PAGE,
		(uint64_t)(end - first) * SEGMENT_PAGE);
	uint64_t bits = UINT64_MAX;
	for (unsigned page = first; page < end; page++)
		bits &= ~(UINT64_C(1) << page);
	return bits;
}

/* Merges a freed chunk with its free neighbours, as Windows does. */
static void join_free(struct subsegment *subsegment)
{
	size_t kept = 0;
	for (size_t i = 0; i < subsegment->chunk_count; i++) {
		struct chunk *last = kept ? &subsegment->chunks[kept - 1] : NULL;
		if (last && is_free(last) && is_free(&subsegment->chunks[i]))
			last->units += subsegment->chunks[i].units;
		else
			subsegment->chunks[kept++] = subsegment->chunks[i];
	}
	subsegment->chunk_count = kept;
}

static unsigned clear_bits(uint64_t bits)
{
	unsigned count = 0;
	for (bits = ~bits; bits; bits &= bits - 1)
		count++;
	return count;
}

static void write_subsegment_header(
	struct segment_model *model, const struct subsegment *subsegment, uint64_t bitmap)
{
	const struct segment_image_layout *at = model->at;
	unsigned signature = (subsegment->units ^ SIZE_SIGNATURE) & 0x7fff;
	unsigned pages = subsegment->units * model->unit / SEGMENT_PAGE;
	uint64_t all = pages == 64 ? UINT64_MAX : (UINT64_C(1) << pages) - 1;
	image_write(model->image, subsegment->addr + at->vs_subsegment.bitmap, bitmap & all, 8);
	image_write(model->image, subsegment->addr + at->vs_subsegment.size, subsegment->units, 2);
	image_write(model->image, subsegment->addr + at->vs_subsegment.signature,
		signature | ((bitmap & all) == all ? FULL_COMMIT : 0), 2);
	if (at->vs_subsegment.owner) {
		image_write(model->image, subsegment->addr + at->vs_subsegment.owner,
			segment_ref(model->heap + at->heap.vs, subsegment->slot->addr), 2);
	}
	image_mark(model->image, "vs subsegment", subsegment->addr);
}

static void write_subsegment(
	struct segment_model *model, struct subsegment *subsegment, struct vs_slots *slots)
{
	uint64_t bitmap = UINT64_MAX;
	uint32_t previous = 0;
	fill_up(model, subsegment);
	join_free(subsegment);
	for (size_t i = 0; i < subsegment->chunk_count; i++) {
		const struct chunk *chunk = &subsegment->chunks[i];
		write_header(model, subsegment, chunk, previous);
		previous = chunk->units;
		if (!is_free(chunk)) {
			write_busy(model, subsegment, chunk);
			continue;
		}
		rb_image_add(&subsegment->slot->free_chunks,
			subsegment->addr + (uint64_t)chunk->first * model->unit +
				model->at->chunk.free_node);
		slots->free_units += chunk->units;
		bitmap &= trim(model, subsegment, chunk);
	}
	unsigned given_back = clear_bits(bitmap) * SEGMENT_PAGE / model->unit;
	slots->free_units -= given_back;
	slots->total_units += subsegment->units - given_back;
	write_subsegment_header(model, subsegment, bitmap);
}

/* ---- all subsegments */

static uint32_t item_units(const struct segment_model *model, const struct vs_item *item)
{
	uint32_t bytes = item->bytes + model->at->chunk.bytes;
	uint32_t units = (bytes + model->unit - 1) / model->unit;
	uint32_t least = model->at->chunk.least_free / model->unit;
	return units < least ? least : units;
}

static void open_subsegment(struct segment_model *model, struct subsegment *subsegment,
	struct vs_slots *slots, uint32_t item_bytes)
{
	uint32_t bytes =
		item_bytes > SUBSEGMENT_BYTES / 2 ? BIG_SUBSEGMENT_BYTES : SUBSEGMENT_BYTES;
	subsegment->addr = segment_backend_take(model, 0, bytes, RANGE_VS);
	subsegment->units = bytes / model->unit;
	truth_container(model->image, model->heap, "vs", subsegment->addr, bytes);
	subsegment->next = model->at->vs_subsegment.first_chunk / model->unit;
	subsegment->chunk_count = 0;
	uint64_t slot = slots->used > 1 ? segment_random(model, slots->used) : 0;
	subsegment->slot = &slots->at[slot];
	rb_image_add(&subsegment->slot->subsegments, subsegment->addr);
}

static void link_all(struct segment_model *model, const struct vs_slot *slot)
{
	unsigned ptr = image_ptr_bytes(model->image);
	uint64_t here = slot->list;
	for (size_t i = 0; i <= slot->subsegments.count; i++) {
		uint64_t next = i < slot->subsegments.count ? slot->subsegments.at[i] : slot->list;
		image_write_ptr(model->image, here, next ^ here);
		image_write_ptr(model->image, next + ptr, here ^ next);
		here = next;
	}
}

/* Returns how many units must stay free before a chunk. An LFH subsegment begins at a page, because
 * its slot's pointer has a count in the low 12 bits. */
static uint32_t choose_gap(
	struct segment_model *model, const struct subsegment *subsegment, bool is_for_lfh)
{
	uint32_t gap = segment_random(model, 6) ? 0 : 2 + (uint32_t)segment_random(model, 60);
	if (!is_for_lfh)
		return gap;
	uint32_t page = SEGMENT_PAGE / model->unit;
	uint32_t least = model->at->chunk.least_free / model->unit;
	uint32_t header = model->at->chunk.bytes / model->unit;
	gap = (2 * page - header - subsegment->next % page) % page;
	return gap && gap < least ? gap + page : gap;
}

static void place_items(
	struct segment_model *model, struct subsegment *subsegment, struct vs_slots *slots)
{
	for (size_t i = 0; i < model->item_count; i++) {
		const struct vs_item *item = &model->items[i];
		uint32_t units = item_units(model, item);
		uint32_t gap = choose_gap(model, subsegment, item->subsegment);
		if (subsegment->addr && subsegment->next + gap + units > subsegment->units) {
			write_subsegment(model, subsegment, slots);
			subsegment->addr = 0;
		}
		if (!subsegment->addr) {
			open_subsegment(model, subsegment, slots, units * model->unit);
			gap = item->subsegment ? choose_gap(model, subsegment, true) : 0;
		}
		if (gap)
			add_chunk(subsegment, NULL, gap);
		add_chunk(subsegment, item, units);
	}
	if (subsegment->addr)
		write_subsegment(model, subsegment, slots);
}

/* ---- affinity slots */

static void make_slot(struct segment_model *model, struct vs_slot *slot)
{
	const struct segment_image_layout *at = model->at;
	uint64_t vs = model->heap + at->heap.vs;
	slot->addr = segment_meta_by_ref(model, at->vs_slot.bytes);
	slot->list = slot->addr + at->vs_slot.list;
	slot->free_tree = slot->addr + at->vs_slot.free_tree;
	/* Later builds of 26100 store an offset. */
	bool is_offset = image_chance(model->image, "vs slots by offset", 2);
	image_write_ptr(
		model->image, slot->addr + at->vs_slot.context, is_offset ? slot->addr - vs : vs);
	image_mark(model->image, "vs slot", slot->addr);
}

/* Makes a map of one to eight places. In some images pairs of places share a slot. */
static void make_slots(struct segment_model *model, struct vs_slots *slots)
{
	const struct segment_image_layout *at = model->at;
	uint64_t vs = model->heap + at->heap.vs;
	unsigned places = 1u << image_chance(model->image, "vs slots", 4);
	bool is_shared = places > 1 && image_chance(model->image, "vs slots shared", 2);
	slots->count = is_shared ? places / 2 : places;
	slots->used = slots->count - slots->count / 4;
	uint64_t map = segment_meta_by_ref(model, 4ull * places);
	for (unsigned i = 0; i < slots->count; i++)
		make_slot(model, &slots->at[i]);
	for (unsigned i = 0; i < places; i++) {
		uint64_t slot = slots->at[i % slots->count].addr;
		image_write(model->image, map + 4ull * i, segment_ref(vs, slot), 2);
		image_write(model->image, map + 4ull * i + 2, i >= slots->count, 2);
	}
	image_write(model->image, vs + at->vs_slot.map, segment_ref(vs, map), 2);
	image_write(model->image, vs + at->vs_slot.mask, places - 1, 1);
}

/* Before 26100 the context has the list and the tree. */
static void use_context(struct segment_model *model, struct vs_slots *slots)
{
	uint64_t vs = model->heap + model->at->heap.vs;
	slots->at[0].list = vs + model->at->vs.list;
	slots->at[0].free_tree = vs + model->at->vs.free_tree;
	slots->count = 1;
	slots->used = 1;
}

static void write_slots(struct segment_model *model, struct vs_slots *slots)
{
	for (unsigned i = 0; i < slots->count; i++) {
		struct vs_slot *slot = &slots->at[i];
		link_all(model, slot);
		rb_image_build(model->image, slot->free_tree, &slot->free_chunks, false);
		free(slot->subsegments.at);
		free(slot->free_chunks.at);
	}
}

void segment_vs_write(struct segment_model *model)
{
	const struct segment_image_layout *at = model->at;
	uint64_t vs = model->heap + at->heap.vs;
	struct vs_slots slots = {0};
	struct subsegment *subsegment = model_zeroed(1, sizeof *subsegment);
	if (at->vs_slot.bytes)
		make_slots(model, &slots);
	else
		use_context(model, &slots);
	place_items(model, subsegment, &slots);
	write_slots(model, &slots);
	if (at->vs.backend)
		image_write_ptr(model->image, vs + at->vs.backend, model->contexts[0].addr);
	if (at->vs.total_units) {
		image_write_ptr(model->image, vs + at->vs.total_units, slots.total_units);
		image_write_ptr(model->image, vs + at->vs.free_units, slots.free_units);
	}
	free(subsegment);
}
