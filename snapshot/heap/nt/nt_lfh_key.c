/*
 * RtlpLFHKey without symbols. It is in a container's offsets,
 *
 *     (first | stride << 16) ^ container ^ _LFH_HEAP ^ key          (32 bits each)
 *
 * of which the subsegment tells the rest, and in the header of each of its blocks,
 *
 *     heap ^ entry >> s ^ key ^ (entry - container) >> s << 16      (s: 4; in 32-bit processes 3)
 *
 * so that every container says it twice. A key is believed when nearly all containers that are tried
 * say it, and two things do.
 */
#include "snapshot/heap/nt/nt_chain.h"
#include "snapshot/heap/nt/nt_lfh.h"

#define SAMPLES 64

/* What a container says the key is: by its offsets, by its first block. */
struct sample {
	uint32_t by_offsets, by_header;
	bool has_offsets, has_header;
};

struct samples {
	struct sample list[SAMPLES];
	size_t count;
};

static uint32_t mask_of(const struct nt_heap *heap, const struct nt_container *container)
{
	return container->offsets ^ (uint32_t)container->addr ^ (uint32_t)heap->lfh.addr;
}

struct nt_offsets nt_offsets_decode(
	const struct nt_heap *heap, const struct nt_container *container, uint32_t key)
{
	uint32_t plain = container->offsets;

	if (heap->layout->lfh->data_is_coded)
		plain = mask_of(heap, container) ^ key;
	return (struct nt_offsets){.first = plain & 0xffff, .stride = plain >> 16};
}

static struct sample sample_of(struct nt_heap *heap, const struct nt_container *container)
{
	const struct nt_common_layout *layout = heap->layout->common;
	uint32_t first = nt_first_offset(heap, container);
	uint64_t entry = container->addr + first;
	const unsigned char *bytes = nt_span_at(&heap->span, entry, layout->entry_bytes);
	struct sample sample = {.has_offsets = heap->lfh.addr != 0, .has_header = bytes != NULL};

	sample.by_offsets = mask_of(heap, container) ^ (first | container->stride << 16);
	if (bytes)
		sample.by_header = bytes_u32(bytes + layout->entry_coded) ^ (uint32_t)heap->addr ^
				   (uint32_t)(entry >> layout->unit_shift) ^
				   first >> layout->unit_shift << 16;
	return sample;
}

/* Containers that are described, from all over the heap: of as many sizes as may be. */
static void pick(struct nt_heap *heap, struct samples *samples)
{
	const struct nt_lfh *lfh = &heap->lfh;
	size_t step = lfh->container_count / SAMPLES + 1;

	samples->count = 0;
	for (size_t start = 0; start < step && samples->count < SAMPLES; start++)
		for (size_t i = start; i < lfh->container_count; i += step)
			if (lfh->containers[i].stride && lfh->containers[i].block_count &&
				samples->count < SAMPLES)
				samples->list[samples->count++] =
					sample_of(heap, &lfh->containers[i]);
}

struct best {
	uint32_t key;
	size_t votes;
};

/* Counts how many times a key is said: here, and by another heap. By too few containers is not at all. */
static void try_key(
	const struct nt_walk *nt, const struct samples *samples, uint32_t key, struct best *best)
{
	size_t votes = nt->has_lfh_key && nt->lfh_key == key, fits = 0;

	for (size_t i = 0; i < samples->count; i++) {
		const struct sample *sample = &samples->list[i];
		bool offsets = sample->has_offsets && sample->by_offsets == key;
		bool header = sample->has_header && sample->by_header == key;

		votes += (size_t)offsets + header;
		fits += offsets || header;
	}
	if (fits * 4 >= samples->count * 3 && votes > best->votes)
		*best = (struct best){key, votes};
}

bool nt_lfh_key_find(struct nt_heap *heap, uint32_t *key)
{
	struct nt_walk *nt = heap->nt;
	struct samples samples;
	struct best best = {0};

	pick(heap, &samples);
	for (size_t i = 0; i < samples.count; i++) {
		try_key(nt, &samples, samples.list[i].by_offsets, &best);
		try_key(nt, &samples, samples.list[i].by_header, &best);
	}
	if (best.votes < 2)
		return false;
	*key = nt->lfh_key = best.key;
	nt->has_lfh_key = true;
	return true;
}
