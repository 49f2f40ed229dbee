/*
 * A segment heap's low-fragmentation allocator: subsegments of blocks of one size. BlockBitmap has
 * two bits for each block: busy, and has unused bytes [2+]. Before 26100 they are a pair. From
 * 26100 on a word of 64 bits has the busy bits of 32 blocks in its low half, and their other bits
 * in its high half [run]. BlockOffsets {BlockSize, FirstBlockOffset} is XORed with LfhKey and with
 * bits 12..31 of the subsegment's address [2+], from 26100 on with bits 12..43 [1].
 *
 * A block across a page's edge may be withheld: it is never allocated. It counts in BlockCount and
 * in WitheldBlockCount, and not in FreeCount [inf]. From 26100 on its bit is busy, so that busy and
 * free blocks add up to BlockCount; before, the bit is clear [inf]. In the kernel of 26100
 * BlockCount excludes withheld blocks; user heaps are not known.
 *
 * A subsegment lies in the back end or in a VS chunk. It is in one list of its bucket or is the
 * active subsegment of an affinity slot, with a reference count in the low 12 bits [PDB]. From
 * 26100 on it has references to its owner and its bucket in place of a pointer. The facts do not
 * describe the slots of those builds. Inferred: a slot consists of an owner only, without an active
 * subsegment; the slot map at SlotMaps is private, and subsegments of slots refer to it if their
 * format is private; bucket N is at Buckets[N] as before, although there are only 128.
 */
#include <stdlib.h>

#include "tests/images/segment_parts.h"

#define MOST_BUCKETS 129u
#define SLOT_COUNT 2u
#define BUCKETS_USED 14u
#define BUSY 1u
#define HAS_UNUSED 2u
#define BLOCKS_OF_WORD 32u /* since 26100 */

/* Returns the size of a bucket in units. The sizes of the 128 buckets have 64 steps of one unit,
 * then 16 steps each of 4, 8, 16 and 32 units [inf for x86; published for x64]. */
static uint32_t bucket_units(unsigned bucket)
{
	static const struct {
		unsigned last, base, step;
	} parts[] = {{64, 0, 1}, {80, 64, 4}, {96, 128, 8}, {112, 256, 16}, {128, 512, 32}};
	unsigned before = 0;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		if (bucket <= parts[i].last)
			return parts[i].base + (bucket - before) * parts[i].step;
		before = parts[i].last;
	}
	image_die("no bucket %u", bucket);
}

/* Returns true for a heap of 26100 and later. */
static bool has_references(const struct segment_model *model)
{
	return model->at->subsegment.bucket;
}

static uint32_t round_up(uint32_t value, uint32_t to)
{
	return (value + to - 1) / to * to;
}

/* ---- planning */

/* Returns the offset of the first of `count` blocks, which follows the bitmap and one word of state
 * for each page. */
static uint32_t first_offset(
	const struct segment_model *model, uint32_t bytes, uint32_t count, uint32_t *commit_state)
{
	uint32_t word = model->at->bits / 8;
	uint32_t bitmap = has_references(model) ? round_up(count, BLOCKS_OF_WORD) / 4 :
						  round_up((count * 2 + 7) / 8, word);
	*commit_state = model->at->subsegment.bitmap + bitmap;
	uint32_t pages = (bytes + SEGMENT_PAGE - 1) / SEGMENT_PAGE;
	/* The sources do not define the distance of the first block. */
	uint32_t later = (uint32_t)image_chance(model->image, "first block", 5);
	return round_up(*commit_state + 2 * pages, model->unit) + later * model->unit;
}

static void plan_count(const struct segment_model *model, struct segment_subsegment *subsegment)
{
	uint32_t count = subsegment->bytes / subsegment->block_bytes, state;
	uint32_t first = first_offset(model, subsegment->bytes, count, &state);
	while (count && first + count * subsegment->block_bytes > subsegment->bytes)
		first = first_offset(model, subsegment->bytes, --count, &state);
	subsegment->block_count = (uint16_t)count;
	subsegment->first_offset = (uint16_t)first;
	subsegment->commit_state = (uint16_t)state;
}

static bool is_over_page(const struct segment_subsegment *subsegment, uint32_t number)
{
	uint32_t first = subsegment->first_offset + number * subsegment->block_bytes;
	uint32_t last = first + subsegment->block_bytes - 1;
	return subsegment->has_withheld && first / SEGMENT_PAGE != last / SEGMENT_PAGE;
}

/* The smallest blocks have no room for an interceptor's bytes. In other buckets the request must
 * fit this bucket and no smaller bucket. The request consists of the user's bytes, rounded up to a
 * unit, and the tail. */
static struct segment_block plan_block(struct segment_model *model, unsigned bucket)
{
	uint32_t most = bucket_units(bucket) * model->unit;
	uint32_t least = bucket_units(bucket - 1) * model->unit + 1;
	struct segment_block block = segment_plan_block(model, least, most);
	uint32_t tail = segment_tail_bytes(model, &block, TAIL_WORD_PRESENT);
	if (tail > most) {
		block.has_stack_place = false;
		block.stack = STACK_NOTHING;
	} else if (tail) {
		uint32_t last = (most - tail) / model->unit * model->unit;
		uint32_t first = least > tail ? round_up(least - tail, model->unit) : 0;
		first = first ? first - model->unit + 1 : 0;
		block.requested = first + (block.requested - least) % (last - first + 1);
	}
	return block;
}

static void plan_blocks(struct segment_model *model, struct segment_subsegment *subsegment)
{
	uint32_t count = subsegment->block_count;
	subsegment->blocks = model_zeroed(count, sizeof *subsegment->blocks);
	for (uint32_t i = 0; i < count; i++) {
		subsegment->blocks[i] = plan_block(model, subsegment->bucket);
		if (is_over_page(subsegment, i))
			subsegment->blocks[i].is_live = false;
	}
}

static uint32_t choose_bytes(
	struct segment_model *model, uint32_t block_bytes, bool is_in_vs, unsigned wanted)
{
	if (is_in_vs) {
		uint32_t count = 8 + (uint32_t)segment_random(model, 40);
		return 0x80 + count * block_bytes;
	}
	uint32_t most = 1 + wanted * block_bytes / SEGMENT_PAGE;
	uint32_t least = round_up(block_bytes * 4 + 0x100, SEGMENT_PAGE) / SEGMENT_PAGE;
	uint32_t pages = least + (uint32_t)segment_random(model, 8);
	if (pages > most)
		pages = most > least ? most : least;
	return (pages > 15 ? 15 : pages) * SEGMENT_PAGE;
}

static unsigned add_subsegment(struct segment_model *model, unsigned bucket, unsigned wanted)
{
	struct segment_subsegment *subsegment = model_zeroed(1, sizeof *subsegment);
	subsegment->bucket = (uint16_t)bucket;
	subsegment->block_bytes = (uint16_t)(bucket_units(bucket) * model->unit);
	/* For a few small blocks a whole page would be too large. */
	bool is_few = wanted * subsegment->block_bytes < SEGMENT_PAGE / 2;
	subsegment->is_in_vs =
		(!segment_random(model, 3) || is_few) && subsegment->block_bytes <= 0x100;
	subsegment->bytes =
		choose_bytes(model, subsegment->block_bytes, subsegment->is_in_vs, wanted);
	subsegment->has_withheld = model->at->subsegment.withheld && !subsegment->is_in_vs &&
				   subsegment->block_bytes > 0x100 &&
				   subsegment->block_bytes < SEGMENT_PAGE / 2 &&
				   segment_random(model, 2);
	plan_count(model, subsegment);
	plan_blocks(model, subsegment);
	if (subsegment->is_in_vs)
		segment_vs_add_subsegment(model, subsegment);
	else
		subsegment->addr = segment_backend_take(model, 0, subsegment->bytes, RANGE_LFH);
	model->subsegments = image_grow(model->subsegments, &model->subsegment_capacity,
		model->subsegment_count, sizeof *model->subsegments);
	model->subsegments[model->subsegment_count++] = subsegment;
	return subsegment->block_count;
}

void segment_lfh_plan(struct segment_model *model, unsigned place_count)
{
	static const uint8_t buckets[BUCKETS_USED] = {
		1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 40, 64, 68, 90};
	/* A program may allocate blocks of one size only. */
	uint64_t only = image_chance(model->image, "one bucket", 4 * BUCKETS_USED);
	for (unsigned i = 0; i < BUCKETS_USED; i++) {
		unsigned big = buckets[i] > 16 ? 40 : 10;
		unsigned wanted = place_count / big + 4;
		if (only < BUCKETS_USED && only != i)
			continue;
		for (unsigned got = 0; got < wanted;)
			got += add_subsegment(model, buckets[i], wanted - got);
	}
}

/* ---- writing */

static void set_bit(struct segment_model *model, uint64_t bitmap, unsigned bit)
{
	uint64_t byte = image_get(model->image, bitmap + bit / 8, 1);
	image_write(model->image, bitmap + bit / 8, byte | 1u << bit % 8, 1);
}

/* Sets the two bits of a block: BUSY, HAS_UNUSED. */
static void write_bits(struct segment_model *model, uint64_t bitmap, uint32_t number, unsigned bits)
{
	bool is_split = has_references(model);
	uint32_t word = number / BLOCKS_OF_WORD * BLOCKS_OF_WORD * 2;
	uint32_t busy = is_split ? word + number % BLOCKS_OF_WORD : 2 * number;
	if (bits & BUSY)
		set_bit(model, bitmap, busy);
	if (bits & HAS_UNUSED)
		set_bit(model, bitmap, busy + (is_split ? BLOCKS_OF_WORD : 1));
}

/* In the kernel of 19041 the bits after the last block are ones. In this model they are ones in
 * some heaps of 26100. */
static void write_bits_after(
	struct segment_model *model, const struct segment_subsegment *subsegment, uint64_t bitmap)
{
	if (!has_references(model) || !image_chance(model->image, "bits after blocks", 2))
		return;
	for (uint32_t i = subsegment->block_count; i % BLOCKS_OF_WORD; i++)
		write_bits(model, bitmap, i, BUSY | HAS_UNUSED);
}

static void write_blocks(struct segment_model *model, struct segment_subsegment *subsegment)
{
	uint64_t bitmap = subsegment->addr + model->at->subsegment.bitmap;
	unsigned withheld = 0;
	for (uint32_t i = 0; i < subsegment->block_count; i++) {
		const struct segment_block *block = &subsegment->blocks[i];
		uint64_t addr =
			subsegment->addr + subsegment->first_offset + i * subsegment->block_bytes;
		unsigned withheld_bits = has_references(model) ? BUSY : HAS_UNUSED;
		unsigned bits = is_over_page(subsegment, i) ? withheld_bits : 0;
		withheld += is_over_page(subsegment, i);
		if (block->is_live) {
			bits = BUSY | (block->requested < subsegment->block_bytes ? HAS_UNUSED : 0);
			segment_write_block(
				model, block, addr, subsegment->block_bytes, TAIL_WORD_PRESENT);
			segment_print(model, block, addr, subsegment->block_bytes);
		} else {
			subsegment->free_count++;
		}
		write_bits(model, bitmap, i, bits);
	}
	write_bits_after(model, subsegment, bitmap);
	subsegment->free_count -= withheld;
	if (withheld)
		image_write(model->image, subsegment->addr + model->at->subsegment.withheld,
			withheld, 1);
}

/* Decommits the pages after the last live block. */
static void trim(struct segment_model *model, const struct segment_subsegment *subsegment)
{
	uint32_t end = subsegment->first_offset;
	for (uint32_t i = 0; i < subsegment->block_count; i++)
		if (subsegment->blocks[i].is_live)
			end = subsegment->first_offset + (i + 1) * subsegment->block_bytes;
	end = round_up(end, SEGMENT_PAGE);
	if (!subsegment->is_in_vs && end < subsegment->bytes)
		image_decommit(model->image, subsegment->addr + end, subsegment->bytes - end);
}

static uint64_t lfh_context(const struct segment_model *model)
{
	return model->heap + model->at->heap.lfh;
}

static unsigned private_map_ref(const struct segment_model *model)
{
	uint64_t lfh = lfh_context(model);
	return segment_ref(lfh, lfh + model->at->lfh.slot_maps);
}

/* The facts do not mention an effect of PrivateFormat on the bitmap; the model assumes no
 * effect. */
static void write_references(struct segment_model *model,
	const struct segment_subsegment *subsegment, uint64_t bucket, uint64_t owner)
{
	const struct segment_image_layout *at = model->at;
	struct image *image = model->image;
	uint64_t lfh = lfh_context(model);
	uint64_t addr = subsegment->addr;
	uint32_t last = subsegment->block_count - 1u;
	image_write(image, addr + at->subsegment.owner, segment_ref(lfh, owner), 2);
	image_write(image, addr + at->subsegment.bucket, segment_ref(lfh, bucket), 2);
	image_write(image, addr + at->subsegment.watermark, last, 2);
	image_write(image, addr + at->subsegment.search_width,
		round_up(subsegment->block_count, BLOCKS_OF_WORD) / BLOCKS_OF_WORD & 0xff, 1);
	if (owner != bucket && image_chance(image, "private subsegments", 2)) {
		image_write(image, addr + at->subsegment.private_format, 1, 1);
		image_write(image, addr + at->subsegment.private_map, private_map_ref(model), 2);
	}
}

static void write_subsegment(struct segment_model *model, struct segment_subsegment *subsegment,
	uint64_t bucket, uint64_t owner)
{
	const struct segment_image_layout *at = model->at;
	uint64_t addr = subsegment->addr;
	write_blocks(model, subsegment);
	trim(model, subsegment);
	truth_container(model->image, model->heap, "lfh", addr, subsegment->bytes);
	uint32_t offsets = subsegment->block_bytes | (uint32_t)subsegment->first_offset << 16;
	offsets ^= (uint32_t)model->lfh_key;
	offsets ^= has_references(model) ? (uint32_t)(addr >> 12) : (uint32_t)addr >> 12;
	if (has_references(model))
		write_references(model, subsegment, bucket, owner);
	else
		image_write_ptr(model->image, addr + at->subsegment.owner, owner);
	image_write(model->image, addr + at->subsegment.free_count, subsegment->free_count, 2);
	image_write(model->image, addr + at->subsegment.block_count, subsegment->block_count, 2);
	image_write(model->image, addr + at->subsegment.offsets, offsets, 4);
	image_write(model->image, addr + at->subsegment.commit_shift, 12, 1);
	image_write(model->image, addr + at->subsegment.commit_count,
		(subsegment->bytes + SEGMENT_PAGE - 1) / SEGMENT_PAGE, 1);
	image_write(model->image, addr + at->subsegment.commit_state, subsegment->commit_state, 2);
	image_mark(model->image, "lfh subsegment", addr);
}

/* number: for a bucket the count of slots, for a slot the slot's number. */
static void init_owner(struct segment_model *model, uint64_t owner, uint64_t bucket,
	unsigned bucket_index, unsigned number)
{
	const struct segment_image_layout *at = model->at;
	bool is_bucket = owner == bucket;
	if (has_references(model)) {
		uint64_t lfh = lfh_context(model);
		image_write(model->image, owner, is_bucket | bucket_index << 1, 1);
		image_write(model->image, owner + 1, number, 1);
		image_write(model->image, owner + at->owner.bucket, segment_ref(lfh, bucket), 2);
		image_write(model->image, owner + at->owner.private_map,
			is_bucket ? 0 : private_map_ref(model), 2);
	} else {
		image_write(model->image, owner, is_bucket, 1);
		image_write(model->image, owner + 1, bucket_index, 1);
		image_write(model->image, owner + 2, number, 1);
	}
	image_list_init(model->image, owner + at->owner.available);
	image_list_init(model->image, owner + at->owner.full);
}

static uint64_t new_owner(struct segment_model *model, uint64_t bytes)
{
	return has_references(model) ? segment_meta_by_ref(model, bytes) :
				       segment_meta(model, bytes);
}

static uint64_t new_bucket(struct segment_model *model, unsigned number, uint32_t block_bytes,
	uint64_t slots[SLOT_COUNT])
{
	const struct segment_image_layout *at = model->at;
	unsigned ptr = image_ptr_bytes(model->image);
	uint64_t bucket = new_owner(model, at->bucket.bytes);
	uint64_t array = at->bucket.slots ? segment_meta(model, (uint64_t)SLOT_COUNT * ptr) : 0;
	init_owner(model, bucket, bucket, number, SLOT_COUNT);
	image_write(
		model->image, bucket + at->bucket.reciprocal, (UINT32_MAX / block_bytes) + 1, 4);
	if (array)
		image_write_ptr(model->image, bucket + at->bucket.slots, array);
	for (unsigned i = 0; i < SLOT_COUNT; i++) {
		slots[i] = new_owner(model, at->slot.bytes);
		init_owner(model, slots[i], bucket, number, i);
		if (array)
			image_write_ptr(model->image, array + (uint64_t)i * ptr, slots[i]);
	}
	return bucket;
}

/* Links subsegment `number` of its bucket. The subsegment becomes active in a slot, or enters a
 * list of the slot or of the bucket. */
static void write_owned(struct segment_model *model, struct segment_subsegment *subsegment,
	uint64_t bucket, const uint64_t slots[SLOT_COUNT], unsigned number)
{
	const struct segment_image_layout *at = model->at;
	uint64_t owner = number < SLOT_COUNT ? slots[number] : bucket;
	write_subsegment(model, subsegment, bucket, owner);
	if (number < SLOT_COUNT && at->slot.active) {
		image_write_ptr(model->image, owner + at->slot.active, subsegment->addr | 1);
		return;
	}
	uint64_t count = owner + at->owner.available_count;
	bool is_full = !subsegment->free_count;
	image_list_add(model->image, owner + (is_full ? at->owner.full : at->owner.available),
		subsegment->addr);
	if (!is_full && at->owner.available_count)
		image_write_ptr(model->image, count, image_get_ptr(model->image, count) + 1);
}

static void write_bucket(struct segment_model *model, unsigned number)
{
	const struct segment_image_layout *at = model->at;
	unsigned ptr = image_ptr_bytes(model->image);
	uint64_t slots[SLOT_COUNT], bucket = 0, blocks = 0;
	unsigned count = 0;
	for (size_t i = 0; i < model->subsegment_count; i++) {
		struct segment_subsegment *subsegment = model->subsegments[i];
		if (subsegment->bucket != number)
			continue;
		if (!bucket)
			bucket = new_bucket(model, number, subsegment->block_bytes, slots);
		write_owned(model, subsegment, bucket, slots, count++);
		blocks += subsegment->block_count;
	}
	uint64_t pointer = lfh_context(model) + at->lfh.buckets + (uint64_t)number * ptr;
	/* _HEAP_LFH_ONDEMAND_POINTER of a bucket that was not made yet; contains the number of
	 * requests. */
	if (!bucket)
		image_write_ptr(model->image, pointer, 1 | (uint64_t)(number % 16) << 16);
	else
		image_write_ptr(model->image, pointer, bucket);
	if (bucket) {
		image_write_ptr(model->image, bucket + at->bucket.block_count, blocks);
		image_write_ptr(model->image, bucket + at->bucket.subsegment_count, count);
	}
}

void segment_lfh_write(struct segment_model *model)
{
	image_write_ptr(
		model->image, lfh_context(model) + model->at->lfh.backend, model->contexts[0].addr);
	unsigned count = model->at->lfh.slot_maps ? MOST_BUCKETS - 1 : MOST_BUCKETS;
	for (unsigned number = 0; number < count; number++)
		write_bucket(model, number);
}

void segment_lfh_release(struct segment_model *model)
{
	for (size_t i = 0; i < model->subsegment_count; i++) {
		free(model->subsegments[i]->blocks);
		free(model->subsegments[i]);
	}
	free(model->subsegments);
}
