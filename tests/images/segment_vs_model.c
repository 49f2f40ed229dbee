/*
 * A segment heap's variable-size allocator: subsegments cut into chunks, each with a header.
 *
 * Header: MemoryCost, UnsafeSize, UnsafePrevSize (in units, header included) and Allocated, XORed
 * with the chunk's address and HeapKey; then the byte EncodedSegmentPageOffset, XORed with the low
 * byte of the same, and the bit UnusedBytes [2+]. The page offset is that of the chunk in its
 * subsegment [inf]. A free chunk has a node of FreeChunkTree in place of the second part.
 *
 * The list of subsegments: each link is XORed with the address of the list entry it stands in [1].
 * Size is the whole subsegment's, its header included [inf].
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
#define MOST_CHUNKS (BIG_SUBSEGMENT_BYTES / 16)

struct chunk {
	const struct vs_item *item; /* NULL: free */
	uint32_t first, units; /* from the subsegment's start */
};

struct subsegment {
	uint64_t addr;
	uint32_t units, next; /* next: the first unit that no chunk has */
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
		bytes += model->unit; /* what was left was too little for a chunk */
	add_item(model, &(struct vs_item){.block = *block, .bytes = bytes});
}

/* Its last two bytes say what lies there. */
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

/* What is left becomes a free chunk, or part of the last one. */
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

static void put_header(struct segment_model *model, const struct subsegment *subsegment,
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
	image_put_ptr(model->image, addr, plain ^ addr ^ model->heap_key);
	image_mark(model->image, "vs chunk", addr);
}

static void put_bits(struct segment_model *model, uint64_t addr, unsigned page, bool has_unused)
{
	unsigned key = (addr ^ model->heap_key) & 0xff;
	image_put(model->image, addr + model->at->chunk.bits,
		(page ^ key) | (has_unused ? UNUSED_BYTES_BIT : 0), 4);
}

static void put_busy(
	struct segment_model *model, const struct subsegment *subsegment, const struct chunk *chunk)
{
	uint64_t addr = subsegment->addr + (uint64_t)chunk->first * model->unit;
	uint64_t user = addr + model->at->chunk.bytes;
	uint64_t usable = (uint64_t)chunk->units * model->unit - model->at->chunk.bytes;
	unsigned page = chunk->first * model->unit / SEGMENT_PAGE;
	const struct vs_item *item = chunk->item;
	if (item->subsegment) {
		item->subsegment->addr = user;
		put_bits(model, addr, page, true);
		image_put(model->image, user + usable - 2,
			LFH_SUBSEGMENT | (usable - item->subsegment->bytes), 2);
		return;
	}
	put_bits(model, addr, page, usable > item->block.requested);
	segment_put_block(model, &item->block, user, usable, TAIL_WORD_PRESENT);
	segment_tell(model, &item->block, user, usable + model->at->chunk.bytes);
}

/* Whole pages inside a big free chunk are given back; returns the bitmap of those that were not. */
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

static void add_free(struct segment_model *model, struct rb_nodes *nodes, uint64_t addr)
{
	rb_image_add(nodes, addr + model->at->chunk.free_node);
}

/* A chunk that was freed lies beside the free ones; Windows would have made them one. */
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

static void put_subsegment_header(
	struct segment_model *model, const struct subsegment *subsegment, uint64_t bitmap)
{
	const struct segment_image_layout *at = model->at;
	unsigned signature = (subsegment->units ^ SIZE_SIGNATURE) & 0x7fff;
	unsigned pages = subsegment->units * model->unit / SEGMENT_PAGE;
	uint64_t all = pages == 64 ? UINT64_MAX : (UINT64_C(1) << pages) - 1;
	image_put(model->image, subsegment->addr + at->vs_subsegment.bitmap, bitmap & all, 8);
	image_put(model->image, subsegment->addr + at->vs_subsegment.size, subsegment->units, 2);
	image_put(model->image, subsegment->addr + at->vs_subsegment.signature,
		signature | ((bitmap & all) == all ? FULL_COMMIT : 0), 2);
	image_mark(model->image, "vs subsegment", subsegment->addr);
}

static void write_subsegment(
	struct segment_model *model, struct subsegment *subsegment, struct rb_nodes *nodes)
{
	uint64_t bitmap = UINT64_MAX;
	uint32_t previous = 0;
	fill_up(model, subsegment);
	join_free(subsegment);
	for (size_t i = 0; i < subsegment->chunk_count; i++) {
		const struct chunk *chunk = &subsegment->chunks[i];
		put_header(model, subsegment, chunk, previous);
		previous = chunk->units;
		if (!is_free(chunk)) {
			put_busy(model, subsegment, chunk);
			continue;
		}
		add_free(model, nodes, subsegment->addr + (uint64_t)chunk->first * model->unit);
		bitmap &= trim(model, subsegment, chunk);
	}
	put_subsegment_header(model, subsegment, bitmap);
}

/* ---- all of them */

static uint32_t item_units(const struct segment_model *model, const struct vs_item *item)
{
	uint32_t bytes = item->bytes + model->at->chunk.bytes;
	uint32_t units = (bytes + model->unit - 1) / model->unit;
	uint32_t least = model->at->chunk.least_free / model->unit;
	return units < least ? least : units;
}

static void open_subsegment(
	struct segment_model *model, struct subsegment *subsegment, uint32_t item_bytes)
{
	uint32_t bytes =
		item_bytes > SUBSEGMENT_BYTES / 2 ? BIG_SUBSEGMENT_BYTES : SUBSEGMENT_BYTES;
	subsegment->addr = segment_backend_take(model, 0, bytes, RANGE_VS);
	subsegment->units = bytes / model->unit;
	subsegment->next = model->at->vs_subsegment.first_chunk / model->unit;
	subsegment->chunk_count = 0;
}

static void link_all(struct segment_model *model, const uint64_t *subsegments, size_t count)
{
	uint64_t head = model->heap + model->at->heap.vs + model->at->vs.list;
	unsigned ptr = image_ptr_bytes(model->image);
	uint64_t here = head;
	for (size_t i = 0; i <= count; i++) {
		uint64_t next = i < count ? subsegments[i] : head;
		image_put_ptr(model->image, here, next ^ here);
		image_put_ptr(model->image, next + ptr, here ^ next);
		here = next;
	}
}

/* Units left free before a chunk. An LFH subsegment begins a page: its slot's pointer keeps a count
 * in the low 12 bits. */
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
	struct segment_model *model, struct subsegment *subsegment, struct rb_nodes *lists[2])
{
	for (size_t i = 0; i < model->item_count; i++) {
		const struct vs_item *item = &model->items[i];
		uint32_t units = item_units(model, item);
		uint32_t gap = choose_gap(model, subsegment, item->subsegment);
		if (subsegment->addr && subsegment->next + gap + units > subsegment->units) {
			write_subsegment(model, subsegment, lists[1]);
			subsegment->addr = 0;
		}
		if (!subsegment->addr) {
			open_subsegment(model, subsegment, units * model->unit);
			add_free(model, lists[0], subsegment->addr - model->at->chunk.free_node);
			gap = item->subsegment ? choose_gap(model, subsegment, true) : 0;
		}
		if (gap)
			add_chunk(subsegment, NULL, gap);
		add_chunk(subsegment, item, units);
	}
	if (subsegment->addr)
		write_subsegment(model, subsegment, lists[1]);
}

void segment_vs_write(struct segment_model *model)
{
	struct rb_nodes subsegments = {0}, free_chunks = {0};
	struct subsegment *subsegment = model_zeroed(1, sizeof *subsegment);
	place_items(model, subsegment, (struct rb_nodes *[]){&subsegments, &free_chunks});
	link_all(model, subsegments.at, subsegments.count);
	uint64_t vs = model->heap + model->at->heap.vs;
	rb_image_build(model->image, vs + model->at->vs.free_tree, &free_chunks, false);
	if (model->at->vs.backend)
		image_put_ptr(model->image, vs + model->at->vs.backend, model->contexts[0].addr);
	free(subsegments.at);
	free(free_chunks.at);
	free(subsegment);
}
