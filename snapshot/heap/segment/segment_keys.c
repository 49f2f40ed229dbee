/*
 * Recovers the keys of segment heaps.
 *
 * The keys of a process are in ntdll, at addresses that are known only from symbols. So each heap
 * key is computed from data that it encodes, and is verified on more such data. This is done before
 * any heap is walked. The key of the LFH is recovered before the first LFH subsegment is walked. It
 * is read from ntdll, where it is stored next to the heap key. If it is not found there, it is
 * guessed (segment_lfh_key.c).
 */
#include <stdlib.h>

#include "core/base/memory.h"
#include "snapshot/heap/segment/segment.h"

#define SAMPLES_MAX ((size_t)512) /* LFH subsegments */
#define SAMPLES_ENOUGH ((size_t)64)
#define PAGE_KEYS_MAX 16
#define VS_TRIALS_MAX 16
#define VS_CHUNKS_TRIED 64

struct data_search {
	struct nt_walk *nt; /* faults found during the search are discarded */
	struct segment_keys keys;
	uint64_t page_keys[PAGE_KEYS_MAX];
	size_t page_key_count;
	uint64_t heap_keys[2]; /* with and without SEGMENT_CONSTANT; the likelier key is first */
	unsigned vs_good[2], vs_trials;
	struct lfh_sample *samples;
	size_t sample_count, sample_cap;
	struct segment_heap heap;
};

/* ---------------------------------------------------------------- page segments */

static int note_page_key(void *ctx, uint64_t addr, uint64_t seg_context)
{
	struct data_search *search = ctx;
	uint64_t key;

	if (segment_page_key(&search->heap, addr, seg_context, &key))
		search->page_keys[search->page_key_count++] = key;
	return search->page_key_count == PAGE_KEYS_MAX ? SEGMENT_STOP : SEGMENT_SKIP;
}

static void page_key_choose(struct data_search *search)
{
	size_t best = 0;

	for (size_t i = 0; i < search->page_key_count; i++) {
		size_t votes = 0;

		for (size_t j = 0; j < search->page_key_count; j++)
			votes += search->page_keys[j] == search->page_keys[i];
		if (votes > best) {
			best = votes;
			search->keys.page = search->page_keys[i];
		}
	}
	search->keys.has_page = best > 0;
}

/* ---------------------------------------------------------------- the heap key */

static bool vs_verifies(struct data_search *search, uint64_t key, const struct segment_range *range)
{
	struct vs_cursor cursor;
	struct vs_chunk chunk;
	unsigned count = 0;

	if (!vs_cursor_init(&cursor, &search->heap, key, range->addr, range->bytes))
		return false;
	while (count < VS_CHUNKS_TRIED && vs_cursor_next(&cursor, &chunk))
		count++;
	return count && !cursor.broken;
}

static int try_vs(void *ctx, const struct segment_range *range)
{
	struct data_search *search = ctx;

	if (range->flags != SEGMENT_RANGE_VS)
		return 0;
	for (unsigned i = 0; i < 2; i++)
		search->vs_good[i] += vs_verifies(search, search->heap_keys[i], range);
	return ++search->vs_trials == VS_TRIALS_MAX;
}

static void heap_keys_set(struct data_search *search)
{
	uint64_t mask = search->nt->process->bits == 64 ? UINT64_MAX : UINT32_MAX;
	uint64_t with = (search->keys.page ^ SEGMENT_CONSTANT) & mask;
	bool is_new = search->nt->process->os_build >= SEGMENT_BUILD_WIDE;

	search->heap_keys[0] = is_new ? search->keys.page : with;
	search->heap_keys[1] = is_new ? with : search->keys.page;
}

/* ---------------------------------------------------------------- LFH subsegments */

static int note_lfh(struct data_search *search, uint64_t addr, uint64_t bytes)
{
	struct lfh_sample sample;

	if (!lfh_sample_read(&search->heap, addr, bytes, &sample))
		return 0;
	if (array_try_grow((void **)&search->samples, &search->sample_cap, search->sample_count,
		    sizeof(sample)))
		return -ERR_NOMEM;
	search->samples[search->sample_count++] = sample;
	return search->sample_count == SAMPLES_MAX;
}

static int note_lfh_of_vs(void *ctx, const struct segment_range *range)
{
	struct data_search *search = ctx;
	struct vs_cursor cursor;
	struct vs_chunk chunk;
	int rc = 0;

	if (range->flags != SEGMENT_RANGE_VS ||
		!vs_cursor_init(
			&cursor, &search->heap, search->keys.heap, range->addr, range->bytes))
		return 0;
	while (!rc && vs_cursor_next(&cursor, &chunk)) {
		uint64_t addr, bytes;

		if (vs_chunk_lfh(&search->heap, &chunk, &addr, &bytes))
			rc = note_lfh(search, addr, bytes);
	}
	return rc;
}

static int note_lfh_range(void *ctx, const struct segment_range *range)
{
	return range->flags == SEGMENT_RANGE_LFH ? note_lfh(ctx, range->addr, range->bytes) : 0;
}

/* ---------------------------------------------------------------- all heaps */

/* Visits all segment heaps of the process until a visitor ends the search. */
static int all_heaps(struct data_search *search, int (*segment)(void *, uint64_t, uint64_t),
	int (*range)(void *, const struct segment_range *))
{
	const struct nt_process *process = search->nt->process;
	const struct segment_visit visit = {.segment = segment, .range = range, .ctx = search};
	int rc = 0;

	for (size_t i = 0; !rc && i < process->heap_count; i++) {
		uint64_t addr = process->heaps[i];
		uint32_t signature;

		if (memory_u32(search->nt->memory, addr + NT_HEAP_SIGNATURE_AT(process->bits),
			    &signature) ||
			signature != SEGMENT_HEAP_SIGNATURE ||
			!segment_heap_open(&search->heap, search->nt, addr))
			continue;
		rc = segment_ranges_walk(&search->heap, &visit);
	}
	return rc < 0 ? rc : 0;
}

/*
 * ntdll stores the keys of segment heaps side by side (RtlpHpHeapGlobals), at an address that is
 * known only from symbols. One of the keys is known from the heaps themselves. So the search looks
 * for that key in ntdll's writable data; the other key is next to it.
 */

/* Limit for all modules with that name together; ntdll is far smaller. */
#define SCAN_BYTES_MAX ((uint64_t)16 << 20)
#define NTDLL "ntdll.dll"

/* Search of ntdll's writable data for `heap_key`. Where the key is found, the key of the LFH should
 * be next to it, so fits() is called with that value. The search ends when fits() accepts a
 * value. */
struct segment_globals {
	uint64_t heap_key;
	bool (*fits)(void *ctx, uint32_t lfh_key);
	void *ctx;
};

struct scan {
	struct nt_walk *nt;
	const struct segment_parts *parts;
	const struct segment_globals *wanted;
	uint64_t left; /* bytes that may still be searched */
};

static bool is_at(const struct scan *scan, uint64_t addr)
{
	struct memory *memory = scan->nt->memory;
	unsigned bits = scan->parts->bits;
	uint64_t heap_key, lfh_key;

	return !memory_ptr(memory, bits, addr + scan->parts->globals_heap_key, &heap_key) &&
	       heap_key == scan->wanted->heap_key &&
	       !memory_ptr(memory, bits, addr + scan->parts->globals_lfh_key, &lfh_key) &&
	       scan->wanted->fits(scan->wanted->ctx, (uint32_t)lfh_key);
}

static bool scan_section(struct scan *scan, uint64_t addr, uint64_t end)
{
	unsigned step = scan->parts->bits / 8;
	uint8_t there;

	for (; addr + step <= end && scan->left >= step; addr += step) {
		scan->left -= step;
		if (is_at(scan, addr))
			return true;
		if (addr % CLAIM_PAGE_BYTES < step && memory_u8(scan->nt->memory, addr, &there))
			addr = (addr | (CLAIM_PAGE_BYTES - 1)) + 1 -
			       step; /* continue with the next page */
	}
	return false;
}

static bool scan_data(void *ctx, uint64_t addr, const struct pe_section *section)
{
	return section->is_writable && scan_section(ctx, addr, addr + section->size_bytes);
}

static bool segment_globals_find(
	struct nt_walk *nt, const struct segment_parts *parts, const struct segment_globals *wanted)
{
	struct scan scan = {.nt = nt, .parts = parts, .wanted = wanted, .left = SCAN_BYTES_MAX};

	return nt_module_scan(nt, NTDLL, scan_data, &scan);
}

static int find_page_and_heap_key(struct data_search *search)
{
	int rc = all_heaps(search, note_page_key, NULL);

	if (rc)
		return rc;
	page_key_choose(search);
	heap_keys_set(search);
	rc = all_heaps(search, NULL, try_vs);
	search->keys.heap = search->heap_keys[search->vs_good[1] > search->vs_good[0]];
	search->keys.is_tried = true;
	return rc;
}

static bool is_lfh_key(void *ctx, uint32_t lfh_key)
{
	struct data_search *search = ctx;

	search->keys.lfh = lfh_key;
	return lfh_key_fits(&search->heap, search->samples, search->sample_count, lfh_key,
		&search->keys.is_wide);
}

/* Finds the key of the LFH next to a heap key in ntdll. If there are no VS subsegments, it is not
 * certain which of the two possible heap keys is right, so both are tried. */
static bool lfh_key_in_ntdll(struct data_search *search)
{
	struct segment_globals wanted = {
		.heap_key = search->keys.heap, .fits = is_lfh_key, .ctx = search};

	if (segment_globals_find(search->nt, search->heap.parts, &wanted))
		return true;
	wanted.heap_key = search->heap_keys[search->keys.heap == search->heap_keys[0]];
	return segment_globals_find(search->nt, search->heap.parts, &wanted);
}

static int find_lfh_key(struct data_search *search)
{
	struct segment_keys *keys = &search->keys;
	int rc;

	heap_keys_set(search);
	rc = all_heaps(search, NULL, note_lfh_range);
	/* There are many chunks, so search them only if necessary. */
	if (!rc && search->sample_count < SAMPLES_ENOUGH)
		rc = all_heaps(search, NULL, note_lfh_of_vs);
	if (!rc && search->sample_count)
		keys->is_halved = lfh_form_choose(&search->heap, search->samples,
					  search->sample_count) == LFH_HALVES;
	search->nt->segment_keys.is_halved = keys->is_halved;
	if (!rc && search->sample_count)
		keys->has_lfh = lfh_key_in_ntdll(search) ||
				lfh_key_guess(&search->heap, search->samples, search->sample_count,
					&keys->lfh, &keys->is_wide);
	keys->is_lfh_tried = true;
	return rc;
}

/* Searches with a temporary walk, whose faults are discarded. */
static int search_quietly(struct nt_walk *nt, int (*find)(struct data_search *))
{
	struct walk unheard;
	struct nt_walk quiet = *nt;
	struct data_search search = {.nt = &quiet, .keys = nt->segment_keys};
	int rc;

	walk_init(&unheard);
	quiet.walk = &unheard;
	rc = find(&search);
	if (!rc)
		nt->segment_keys = search.keys;
	free(search.samples);
	walk_release(&unheard);
	return rc;
}

int segment_keys_find(struct nt_walk *nt)
{
	return nt->segment_keys.is_tried ? 0 : search_quietly(nt, find_page_and_heap_key);
}

int segment_lfh_key_find(struct nt_walk *nt)
{
	return nt->segment_keys.is_lfh_tried ? 0 : search_quietly(nt, find_lfh_key);
}
