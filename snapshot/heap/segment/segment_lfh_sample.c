/* Reads an LFH subsegment as it is stored: its header, its bucket, its encoded offsets, and its
 * bitmap. Samples of subsegments show which key and which form of bitmaps a process uses. */
#include "snapshot/heap/segment/segment.h"

/* The table divides the buckets into groups. Up to and including bucket `last`, the block sizes of
 * consecutive buckets differ by `step`, as documented for the low-fragmentation heap. If the unit
 * is 16 bytes, the step of the first 64 buckets is 16 bytes. */
uint32_t lfh_bucket_bytes(const struct segment_parts *parts, int bucket)
{
	static const struct {
		int last;
		uint32_t step;
	} steps[] = {{32, 8}, {48, 16}, {64, 32}, {80, 64}, {96, 128}, {112, 256}, {128, 512}};
	uint32_t bytes = 0;
	int at = 0;

	if (bucket < 1 || bucket > 128)
		return 0;
	if (parts->unit == 16 && bucket <= 64)
		return (uint32_t)bucket * 16;
	for (size_t i = 0; at < bucket; at = steps[i++].last) {
		int last = steps[i].last < bucket ? steps[i].last : bucket;

		bytes += (uint32_t)(last - at) * steps[i].step;
	}
	return bytes;
}

/* Returns the bucket to which a subsegment refers, or -1 if the table of the context does not
 * confirm the reference. */
static int referred_bucket(struct segment_heap *heap, uint64_t addr)
{
	const struct segment_parts *parts = heap->parts;
	const uint64_t context = heap->addr + heap->layout->lfh_context;
	struct memory *memory = heap->nt->memory;
	uint64_t bucket, listed;
	uint16_t ref;
	uint8_t owner; /* bit 0: IsBucket; bits 1..7: BucketIndex */

	if (memory_u16(memory, addr + parts->lfh_bucket_ref, &ref))
		return -1;
	bucket = context + ((uint64_t)ref << parts->slot_shift);
	if (memory_u8(memory, bucket, &owner) || !(owner & 1) ||
		memory_ptr(memory, parts->bits,
			context + parts->lfh_buckets + (owner >> 1) * (parts->bits / 8), &listed))
		return -1;
	return listed == bucket ? owner >> 1 : -1;
}

/* Returns the bucket of a subsegment's owner, or -1 if unknown. The owner is a bucket or an
 * affinity slot. */
static int bucket_of(struct segment_heap *heap, uint64_t addr)
{
	const struct segment_parts *parts = heap->parts;
	uint64_t owner;
	uint8_t bucket;

	if (parts->lfh_bucket_ref)
		return referred_bucket(heap, addr);
	if (memory_ptr(heap->nt->memory, parts->bits, addr + parts->lfh_owner, &owner) || !owner ||
		owner & 1 || memory_u8(heap->nt->memory, owner + parts->owner_bucket, &bucket))
		return -1;
	return bucket;
}

/* Returns the size of a header including the bitmap, which has two bits per block and consists of
 * whole words. */
static uint32_t header_bytes(const struct segment_parts *parts, uint32_t block_count)
{
	uint32_t words = (block_count * 2 + parts->bits - 1) / parts->bits;

	return parts->lfh_bitmap + words * (parts->bits / 8);
}

bool lfh_sample_read(
	struct segment_heap *heap, uint64_t addr, uint64_t bytes, struct lfh_sample *sample)
{
	const struct segment_parts *parts = heap->parts;
	const unsigned char *header;
	uint16_t withheld = heap->layout->lfh_withheld;

	if (bytes < parts->lfh_bitmap)
		return false;
	header = memory_at(heap->nt->memory, addr, parts->lfh_bitmap);
	if (!header)
		return false;
	*sample = (struct lfh_sample){.addr = addr,
		.bytes = bytes,
		.free_count = bytes_u16(header + parts->lfh_free_count),
		.block_count = bytes_u16(header + parts->lfh_block_count),
		.encoded = bytes_u32(header + parts->lfh_offsets),
		.withheld_count = withheld ? header[withheld] : 0};
	sample->header_bytes = header_bytes(parts, sample->block_count);
	sample->bucket = bucket_of(heap, addr);
	return sample->block_count && sample->header_bytes < bytes;
}

struct lfh_offsets lfh_decode(const struct lfh_sample *sample, uint32_t key, bool is_wide)
{
	uint32_t mask = is_wide ? (uint32_t)(sample->addr >> 12) : (uint32_t)sample->addr >> 12;
	uint32_t plain = sample->encoded ^ key ^ mask;

	return (struct lfh_offsets){.block_bytes = plain & 0xffff, .first = plain >> 16};
}

bool lfh_offsets_fit(const struct segment_parts *parts, const struct lfh_sample *sample,
	const struct lfh_offsets *offsets)
{
	uint64_t blocks = (uint64_t)sample->block_count * offsets->block_bytes;

	return offsets->block_bytes && offsets->block_bytes % parts->unit == 0 &&
	       offsets->first % parts->unit == 0 && offsets->first >= sample->header_bytes &&
	       offsets->first < sample->bytes && blocks <= sample->bytes - offsets->first;
}

uint32_t lfh_busy_count(const struct lfh *lfh)
{
	const uint32_t word_blocks = 32, count = lfh->sample->block_count;
	const uint64_t mask = lfh->form == LFH_PAIRS ? 0x5555555555555555 : UINT32_MAX;
	uint32_t whole = count / word_blocks, busy = 0;

	for (uint32_t i = 0; i < whole; i++)
		busy += (uint32_t)__builtin_popcountll(
			bytes_u64(lfh->bitmap + (size_t)i * 8) & mask);
	for (uint32_t k = whole * word_blocks; k < count; k++)
		busy += lfh_state(lfh->bitmap, lfh->form, k) & 1;
	return busy;
}

bool lfh_read_bitmap(struct lfh *lfh)
{
	const struct segment_parts *parts = lfh->heap->parts;

	return !memory_copy(lfh->heap->nt->memory, lfh->sample->addr + parts->lfh_bitmap,
		lfh->bitmap, lfh->sample->header_bytes - parts->lfh_bitmap);
}

enum lfh_form lfh_form_choose(
	struct segment_heap *heap, const struct lfh_sample *samples, size_t count)
{
	size_t fit_counts[LFH_FORMS] = {0};
	enum lfh_form likely = heap->parts->lfh_is_halved ? LFH_HALVES : LFH_PAIRS;

	/* In 32-bit heaps, words have 32 bits, and bitmaps in halves are not known to exist. */
	for (size_t i = 0; heap->parts->bits == 64 && i < count; i++) {
		struct lfh lfh = {.heap = heap, .sample = &samples[i]};

		if (!lfh_read_bitmap(&lfh))
			continue;
		for (lfh.form = 0; lfh.form < LFH_FORMS; lfh.form++)
			fit_counts[lfh.form] += lfh_busy_count(&lfh) + samples[i].free_count ==
						samples[i].block_count;
	}
	if (fit_counts[LFH_PAIRS] == fit_counts[LFH_HALVES])
		return likely;
	return fit_counts[LFH_HALVES] > fit_counts[LFH_PAIRS] ? LFH_HALVES : LFH_PAIRS;
}
