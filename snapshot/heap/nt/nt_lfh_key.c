/*
 * RtlpLFHKey without symbols. A container's offsets are stored as
 *
 *     (first | stride << 16) ^ container ^ _LFH_HEAP ^ key          (32 bits each)
 *
 * The subsegment knows the stride, so the key's high half is exact from one container. The low half
 * is guessed: most first blocks lie as early as they can. A guess must fit nearly all containers that
 * are tried. A single container proves nothing by itself; then the encoded headers of its blocks
 * must agree, which are stored as
 *
 *     heap ^ entry >> 4 ^ key ^ (entry - container) << 12
 */
#include "snapshot/heap/nt/nt_chain.h"
#include "snapshot/heap/nt/nt_lfh.h"

#define SAMPLES 64

struct samples {
	const struct nt_container *list[SAMPLES];
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

/* Containers that are described, from all over the heap: of as many sizes as may be. */
static void pick(const struct nt_heap *heap, struct samples *samples)
{
	const struct nt_lfh *lfh = &heap->lfh;
	size_t step = lfh->container_count / SAMPLES + 1;

	samples->count = 0;
	for (size_t start = 0; start < step && samples->count < SAMPLES; start++)
		for (size_t i = start; i < lfh->container_count; i += step)
			if (lfh->containers[i].stride && lfh->containers[i].block_count &&
				samples->count < SAMPLES)
				samples->list[samples->count++] = &lfh->containers[i];
}

/* True when the header of the first block leads back to its container. */
static bool header_agrees(struct nt_heap *heap, const struct nt_container *container, uint32_t key)
{
	const struct nt_common_layout *layout = heap->layout->common;
	uint32_t first = nt_offsets_decode(heap, container, key).first;
	uint64_t entry = container->addr + first;
	const unsigned char *bytes = nt_span_at(&heap->span, entry, layout->entry_bytes);

	return bytes && (bytes_u32(bytes + layout->entry_coded) ^ (uint32_t)heap->addr ^
				(uint32_t)(entry >> 4) ^ key) == first << 12;
}

static bool container_fits(struct nt_heap *heap, const struct nt_container *container, uint32_t key)
{
	struct nt_offsets offsets = nt_offsets_decode(heap, container, key);

	return nt_offsets_are_legal(heap, container, offsets) &&
	       nt_offsets_are_marked(heap, container, offsets);
}

/* How many of the samples a key fits; headers: and how many headers agree. */
static size_t count_fits(
	struct nt_heap *heap, const struct samples *samples, uint32_t key, size_t *headers)
{
	size_t fits = 0;

	*headers = 0;
	for (size_t i = 0; i < samples->count; i++) {
		fits += container_fits(heap, samples->list[i], key);
		*headers += header_agrees(heap, samples->list[i], key);
	}
	return fits;
}

/* The key that one container has when its first block lies at first. */
static uint32_t key_of(
	const struct nt_heap *heap, const struct nt_container *container, uint32_t first)
{
	return mask_of(heap, container) ^ (first | container->stride << 16);
}

struct guess {
	uint32_t key;
	size_t fits, headers;
};

static void try_key(
	struct nt_heap *heap, const struct samples *samples, uint32_t key, struct guess *best)
{
	struct guess guess = {.key = key};

	if (best->fits && key == best->key)
		return;
	guess.fits = count_fits(heap, samples, key, &guess.headers);
	if (guess.fits > best->fits || (guess.fits == best->fits && guess.headers > best->headers))
		*best = guess;
}

/* Tries the key by which a container's first header agrees, wherever its first block lies. */
static void try_by_header(struct nt_heap *heap, const struct samples *samples,
	const struct nt_container *container, struct guess *best)
{
	unsigned unit = heap->layout->common->unit;
	uint32_t first = nt_first_offset_min(heap, container);

	for (; first <= NT_FIRST_OFFSET_MAX; first += unit) {
		uint32_t key = key_of(heap, container, first);

		if (header_agrees(heap, container, key))
			try_key(heap, samples, key, best);
	}
}

static bool is_sure(const struct guess *guess, const struct samples *samples)
{
	return guess->fits && guess->fits * 4 >= samples->count * 3 &&
	       (guess->fits > 1 || guess->headers);
}

bool nt_lfh_key_find(struct nt_heap *heap, uint32_t *key)
{
	struct nt_walk *nt = heap->nt;
	struct samples samples;
	struct guess best = {0};

	pick(heap, &samples);
	if (!heap->lfh.addr || !samples.count)
		return false;
	if (nt->has_lfh_key) {
		try_key(heap, &samples, nt->lfh_key, &best);
		best.headers += best.fits > 0; /* other heaps vouch for it */
	}
	for (size_t i = 0; i < samples.count && best.fits < samples.count; i++)
		try_key(heap, &samples,
			key_of(heap, samples.list[i], nt_first_offset_min(heap, samples.list[i])),
			&best);
	for (size_t i = 0; i < samples.count && i < 4 && !is_sure(&best, &samples); i++)
		try_by_header(heap, &samples, samples.list[i], &best);
	if (!is_sure(&best, &samples))
		return false;
	*key = nt->lfh_key = best.key;
	nt->has_lfh_key = true;
	return true;
}
