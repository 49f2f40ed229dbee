/* Live blocks of LFH subsegments. A subsegment is decoded with the key of the process, and its
 * counts are checked. Data that is marked as something else but looks like a subsegment is
 * reported. */
#include "snapshot/heap/segment/segment.h"

static unsigned state_of(const struct lfh *lfh, uint32_t k)
{
	return lfh_state(lfh->bitmap, lfh->form, k);
}

static bool crosses_page(const struct lfh *lfh, uint64_t addr)
{
	return (addr ^ (addr + lfh->block_bytes - 1)) / CLAIM_PAGE_BYTES != 0;
}

/*
 * Decides whether to skip blocks that cross a page. A subsegment may withhold such blocks: they are
 * then never allocated. It is not known how withheld blocks are marked. If the number of busy
 * blocks that cross a page is at most the number of withheld blocks, these busy blocks are treated
 * as withheld.
 */
static void withheld_find(struct lfh *lfh)
{
	uint32_t crossing = 0, withheld = lfh->sample->withheld_count;

	for (uint32_t k = 0; withheld && k < lfh->sample->block_count; k++) {
		crossing += (state_of(lfh, k) & 1) &&
			    crosses_page(lfh, lfh->first + (uint64_t)k * lfh->block_bytes);
	}
	lfh->skips_crossing = crossing && crossing <= withheld;
	if (crossing > withheld && withheld)
		walk_broken(lfh->heap->nt->walk, lfh->sample->addr,
			"LFH blocks, some of them withheld");
}

/* Returns the reason why the counts of a subsegment are impossible, or NULL. Withheld blocks may be
 * counted as busy, as free, as both or as neither. */
static const char *counts_fault(const struct lfh *lfh)
{
	const struct lfh_sample *sample = lfh->sample;
	uint32_t sum = lfh_busy_count(lfh) + sample->free_count;

	if (sum + sample->withheld_count < sample->block_count)
		return "LFH blocks neither free nor in use";
	if (sum > sample->block_count + sample->withheld_count)
		return "more LFH blocks free and in use than the subsegment has";
	return NULL;
}

static int live_block(struct lfh *lfh, uint64_t addr, bool has_unused)
{
	struct segment_block block = {.addr = addr, .bytes = lfh->block_bytes};
	struct segment_tail tail = {0};

	if (has_unused && !segment_tail_read(lfh->heap, addr + lfh->block_bytes, lfh->block_bytes,
				  SEGMENT_TAIL_LFH, &tail))
		walk_broken(lfh->heap->nt->walk, addr,
			"LFH block with more unused bytes than its size");
	block.unused_bytes = tail.unused_bytes;
	block.has_extra = tail.has_extra;
	return segment_block_add(lfh->heap, &block);
}

static int live_blocks(struct lfh *lfh)
{
	int rc = 0;

	for (uint32_t k = 0; !rc && k < lfh->sample->block_count; k++) {
		unsigned state = state_of(lfh, k);
		uint64_t addr = lfh->first + (uint64_t)k * lfh->block_bytes;
		uint64_t ahead = addr + (uint64_t)MEMORY_AHEAD_BLOCKS * lfh->block_bytes;

		memory_fetch(&lfh->heap->nt->memory->last, ahead - 64, 64);
		if ((state & 1) && !(lfh->skips_crossing && crosses_page(lfh, addr)))
			rc = live_block(lfh, addr, state & 2);
	}
	return rc;
}

/* Reads the bitmap and finds the first block. Returns false if the bitmap is unreadable. */
static bool lfh_open(struct lfh *lfh, const struct lfh_offsets *offsets)
{
	lfh->first = lfh->sample->addr + offsets->first;
	lfh->block_bytes = offsets->block_bytes;
	lfh->form = lfh->heap->nt->segment_keys.is_halved ? LFH_HALVES : LFH_PAIRS;
	return lfh_read_bitmap(lfh);
}

int segment_lfh_walk(struct segment_heap *heap, uint64_t addr, uint64_t bytes)
{
	const struct segment_keys *keys = &heap->nt->segment_keys;
	struct walk *walk = heap->nt->walk;
	struct lfh_sample sample;
	struct lfh lfh = {.heap = heap, .sample = &sample};
	struct lfh_offsets offsets;
	const char *fault;
	int rc = segment_lfh_key_find(heap->nt);

	if (rc)
		return rc;
	if (!lfh_sample_read(heap, addr, bytes, &sample))
		return segment_fault(heap, addr, "broken LFH subsegment");
	if (!keys->has_lfh)
		return walk_broken(walk, addr, "LFH subsegment with an uncertain key");
	offsets = lfh_decode(&sample, keys->lfh, keys->is_wide);
	if (!lfh_offsets_fit(heap->parts, &sample, &offsets))
		return walk_broken(walk, addr, "LFH subsegment with a different key");
	if (!lfh_open(&lfh, &offsets))
		return walk_missing(walk, addr, "unreadable LFH subsegment");
	withheld_find(&lfh);
	fault = counts_fault(&lfh);
	if (fault)
		walk_broken(walk, addr, fault);
	rc = walk_add_container(walk, addr, bytes, CONTAINER_LFH);
	return rc ? rc : live_blocks(&lfh);
}

/* Returns false for most blocks that are no LFH subsegment. This check is made first because it is
 * cheap, and is needed for many blocks. */
static bool may_be_lfh(struct segment_heap *heap, uint64_t addr, uint64_t bytes)
{
	const struct segment_parts *parts = heap->parts;
	const unsigned char *header = bytes > parts->lfh_bitmap ?
					      memory_at(heap->nt->memory, addr, parts->lfh_bitmap) :
					      NULL;
	uint32_t blocks = header ? bytes_u16(header + parts->lfh_block_count) : 0;

	return blocks && bytes_u16(header + parts->lfh_free_count) < blocks &&
	       (uint64_t)blocks * parts->unit < bytes;
}

/* Returns true if the data is a subsegment with live blocks. A subsegment that was freed has no
 * live blocks. */
static bool is_live_lfh(struct lfh *lfh)
{
	const struct segment_keys *keys = &lfh->heap->nt->segment_keys;
	const struct lfh_sample *sample = lfh->sample;
	struct lfh_offsets offsets = lfh_decode(sample, keys->lfh, keys->is_wide);

	if (!keys->has_lfh || !lfh_offsets_fit(lfh->heap->parts, sample, &offsets) ||
		lfh_bucket_bytes(lfh->heap->parts, sample->bucket) != offsets.block_bytes ||
		!lfh_open(lfh, &offsets))
		return false;
	return lfh_busy_count(lfh) > sample->withheld_count && !counts_fault(lfh);
}

int segment_lfh_notice(struct segment_heap *heap, uint64_t addr, uint64_t bytes)
{
	struct lfh_sample sample;
	struct lfh lfh = {.heap = heap, .sample = &sample};
	int rc;

	if (!may_be_lfh(heap, addr, bytes) || !lfh_sample_read(heap, addr, bytes, &sample) ||
		sample.bucket < 0)
		return 0;
	rc = segment_lfh_key_find(heap->nt);
	if (!rc && is_live_lfh(&lfh))
		walk_broken(heap->nt->walk, addr, "possible LFH subsegment");
	return rc;
}
