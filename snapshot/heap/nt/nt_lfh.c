/*
 * The low fragmentation heap (LFH) of an NT heap: its key, and the blocks in its containers.
 *
 * RtlpLFHKey is recovered without symbols. Each container stores the offset of its first block and
 * the distance between blocks (the stride), encoded with the key. The other operands are known,
 * from the subsegment and from addresses:
 *
 *     (first | stride << 16) ^ container ^ _LFH_HEAP ^ key          (32 bits each)
 *
 * The header of each block of a container is also encoded with the key. The shift s is 4, in 32-bit
 * processes 3:
 *
 *     heap ^ entry >> s ^ key ^ (entry - container) >> s << 16
 *
 * So every container yields the key twice. A key is accepted if it fits at least three quarters of
 * the sampled containers and is confirmed at least twice.
 */
#include <stdlib.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "snapshot/heap/nt/nt.h"

#define SAMPLES 64

/* Keys computed from a container: from the offsets, and from the header of the first block. */
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

/* Samples containers that have a description. Takes samples from the whole heap, so that their
 * block sizes differ. */
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

/* Counts the votes for a key: one for each match in the samples, and one if an earlier heap used
 * the key. Ignores a key that fits fewer than three quarters of the samples. */
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

/* Finds and verifies RtlpLFHKey without symbols. Returns false if no key fits the containers. */
static bool nt_lfh_key_find(struct nt_heap *heap, uint32_t *key)
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

/* at most one header in this number may disagree with the bitmap */
#define NT_MARKS_PER_ODD 8
#define MARK_SAMPLES 64u
#define BLOCKS_MAX 65536 /* maximum number of blocks in a container, whose count has 16 bits */
#define SPLIT_MIN 8192u /* minimum number of blocks for a second thread */

struct lfh_view {
	const struct nt_container *container;
	struct nt_offsets offsets;
	uint32_t block_count;
	bool has_bitmap;
	unsigned char busy[BLOCKS_MAX / 8];
};

/* ---------------------------------------------------------------- one container */

/* Returns true if the container's blocks fit between its header and its end. */
static bool has_room(
	const struct nt_heap *heap, const struct nt_container *container, uint32_t first)
{
	return first >= heap->layout->lfh->data_bytes &&
	       first + (uint64_t)container->block_count * container->stride <=
		       container->end - container->addr;
}

#define MARK_MISSING (-1)

/* Returns the byte of a block's header that shows whether the block is in use, or MARK_MISSING. */
static inline int mark_at(struct nt_heap *heap, uint64_t entry)
{
	const struct nt_common_layout *layout = heap->layout->common;
	const unsigned char *bytes = nt_span_at(&heap->span, entry, layout->entry_bytes);

	return bytes ? bytes[layout->entry_coded + NT_ENTRY_UNUSED / 8] : MARK_MISSING;
}

static bool is_live(int mark)
{
	return mark > (int)NT_UNUSED_LFH;
}

static const char no_memory[] = "unreadable bitmap of an LFH container";

/* Reads the bitmap of busy blocks, if the layout has one. Returns NULL or a description of the
 * fault. */
static const char *read_bitmap(struct nt_heap *heap, struct lfh_view *view)
{
	const struct nt_lfh_layout *layout = heap->layout->lfh;
	const struct nt_container *container = view->container;
	uint64_t bytes = (view->block_count + 7) / 8, at = 0;
	struct memory *memory = heap->nt->memory;
	uint32_t count = 0;

	view->has_bitmap = false;
	if (!layout->data_bitmap)
		return NULL;
	nt_span_forget(&heap->span);
	if (memory_u32(memory, container->addr + layout->data_bitmap_count, &count) ||
		memory_ptr(memory, heap->layout->bits, container->addr + layout->data_bitmap_bytes,
			&at))
		return no_memory;
	if (count < view->block_count || at < container->addr + layout->data_bytes ||
		at >= container->end || container->end - at < bytes)
		return "LFH container without its bitmap";
	if (memory_copy(memory, at, view->busy, (size_t)bytes))
		return no_memory;
	view->has_bitmap = true;
	return NULL;
}

static bool is_busy(const struct lfh_view *view, uint32_t block)
{
	return view->busy[block / 8] >> block % 8 & 1;
}

/* Returns true if all readable block headers have the LFH mark, and most of them agree with the
 * bitmap. Tolerates a few blocks for which header and bitmap disagree. */
static bool is_marked(struct nt_heap *heap, const struct lfh_view *view, uint32_t first)
{
	const struct nt_container *container = view->container;
	uint32_t step = view->block_count / MARK_SAMPLES + 1, samples = 0, odd = 0;

	if (!has_room(heap, container, first))
		return false;
	for (uint32_t i = 0; i < view->block_count; i += step) {
		int mark = mark_at(heap, container->addr + first + (uint64_t)i * container->stride);

		if (mark == MARK_MISSING)
			continue;
		if (!(mark & NT_UNUSED_LFH))
			return false;
		samples++;
		odd += view->has_bitmap && is_busy(view, i) != is_live(mark);
	}
	return odd <= samples / NT_MARKS_PER_ODD;
}

static int add_block(struct nt_heap *heap, const struct lfh_view *view, uint64_t entry, int mark)
{
	struct nt_block block = {
		.entry = entry,
		.size_bytes = view->offsets.stride,
		.unused = (uint32_t)mark & NT_UNUSED_NUMBER,
		.is_extended = mark & NT_UNUSED_OFFSET,
		.may_be_extended = heap->has_prefixes,
	};

	if (!(mark & NT_UNUSED_LFH))
		walk_broken(heap->nt->walk, entry, "LFH block without its mark");
	return nt_block_add(heap, &block);
}

/* Adds the blocks in use, according to the bitmap. If there is no bitmap, uses the headers. */
static int add_blocks(struct nt_heap *heap, const struct lfh_view *view)
{
	uint64_t entry = view->container->addr + view->offsets.first, odd = 0, missing = 0;
	uint32_t free_count = 0;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < view->block_count; i++, entry += view->offsets.stride) {
		int mark = mark_at(heap, entry);
		uint64_t ahead = entry + (uint64_t)MEMORY_AHEAD_BLOCKS * view->offsets.stride;
		bool is_used = view->has_bitmap ? is_busy(view, i) : is_live(mark);

		memory_fetch(&heap->span.seen, ahead, heap->layout->common->prefix_user);
		free_count += mark == (int)NT_UNUSED_LFH;
		if (mark == MARK_MISSING)
			missing = is_used || !view->has_bitmap ? entry : missing;
		else if (is_used && mark == (int)NT_UNUSED_LFH)
			/* Another thread will free the block later (DelayFreeList), or the block is
			 * damaged. */
			walk_doubt(heap->nt->walk, entry,
				"LFH block in use in its container, but not in its header");
		else if (is_used)
			rc = add_block(heap, view, entry, mark);
		else if (!view->has_bitmap && !(mark & NT_UNUSED_LFH))
			walk_broken(heap->nt->walk, entry, "LFH block without its mark");
		else if (view->has_bitmap && is_live(mark) && !odd)
			odd = entry;
	}
	if (missing)
		walk_missing(heap->nt->walk, missing, "LFH block");
	else if (heap->layout->lfh->sub_free_count && free_count != view->container->free_count)
		walk_doubt(heap->nt->walk, view->container->addr,
			"LFH container and subsegment with different numbers of free blocks");
	if (odd)
		walk_broken(heap->nt->walk, odd,
			"LFH block in use in its header, but not in its container");
	return rc;
}

static uint64_t bytes_for(const struct nt_heap *heap, const struct lfh_view *view, uint32_t count)
{
	struct nt_container container = *view->container;

	container.block_count = count;
	return nt_first_offset(heap, &container) + (uint64_t)count * view->offsets.stride +
	       heap->layout->lfh->data_slack;
}

/* Records a warning unless the container has exactly as many blocks as fit next to its bitmap.
 * Otherwise the subsegment may not describe all of the blocks. */
static void check_room(struct nt_heap *heap, const struct lfh_view *view)
{
	const struct nt_container *container = view->container;
	uint64_t room = container->room_bytes;

	if (!heap->layout->lfh->data_room)
		return;
	if (!room || room > container->end - container->addr)
		walk_doubt(heap->nt->walk, container->addr,
			"LFH container whose size differs from its block's");
	else if (room < bytes_for(heap, view, view->block_count) ||
		 room >= bytes_for(heap, view, view->block_count + 1))
		walk_doubt(heap->nt->walk, container->addr, "LFH container with a wrong capacity");
}

/*
 * Returns true if a container without a subsegment is in use. Such a container should be empty and
 * waiting for reuse. Checks the container's bitmap. In layouts without a bitmap, checks the block
 * headers instead, using the block size of the former subsegment.
 */
static bool is_in_use(struct nt_heap *heap, const struct nt_container *container)
{
	struct nt_container had = *container;
	struct lfh_view view = {0};

	/* The former subsegment no longer refers to any container. */
	if (!nt_lfh_describe(heap, &had, had.subsegment, 0) || !had.stride || !had.block_count)
		return false;
	nt_span_forget(&heap->span);
	view.container = &had;
	view.block_count = had.block_count;
	read_bitmap(heap, &view);
	for (uint32_t i = 0; view.has_bitmap && i < view.block_count; i++)
		if (is_busy(&view, i))
			return true;
	if (heap->layout->lfh->data_bitmap || had.end - had.addr < heap->layout->lfh->data_bytes)
		return false;
	for (uint32_t i = 0; i < had.block_count; i++) {
		uint64_t entry =
			had.addr + heap->layout->lfh->data_bytes + (uint64_t)i * had.stride;

		if (entry + had.stride > had.end)
			return false;
		if (is_live(mark_at(heap, entry)))
			return true;
	}
	return false;
}

/*
 * Finds the offset of the container's first block and the distance between blocks. Both values
 * follow from the subsegment. In newer builds the container also stores them. If the stored values
 * differ or cannot be decoded, checks that the block headers have the LFH mark.
 */
static bool find_offsets(struct nt_heap *heap, struct lfh_view *view, const uint32_t *key)
{
	const struct nt_lfh_layout *layout = heap->layout->lfh;
	const struct nt_container *container = view->container;
	struct nt_offsets own;

	view->offsets = (struct nt_offsets){nt_first_offset(heap, container), container->stride};
	if (!layout->data_offsets)
		return has_room(heap, container, view->offsets.first);
	if (layout->data_is_coded && !key)
		return is_marked(heap, view, view->offsets.first);
	own = nt_offsets_decode(heap, container, key ? *key : 0);
	if (own.stride == view->offsets.stride && own.first == view->offsets.first &&
		has_room(heap, container, own.first))
		return true;
	walk_broken(heap->nt->walk, container->addr, "LFH container with impossible offsets");
	if (is_marked(heap, view, view->offsets.first))
		return true;
	view->offsets.first = own.first;
	return own.stride == container->stride && is_marked(heap, view, own.first);
}

/* Walks one container. `key` is NULL if the offsets are not encoded or no key was found. */
static int walk_container(
	struct nt_heap *heap, const struct nt_container *container, const uint32_t *key)
{
	struct lfh_view view;
	const char *fault;

	if (!container->stride)
		return is_in_use(heap, container) ?
			       walk_doubt(heap->nt->walk, container->addr,
				       "LFH container in use without a subsegment") :
			       0;
	if (!container->block_count)
		return walk_broken(heap->nt->walk, container->addr, "LFH container without blocks");
	view.container = container;
	view.block_count = container->block_count;
	fault = read_bitmap(heap, &view);
	if (fault == no_memory)
		walk_missing(heap->nt->walk, container->addr, fault);
	else if (fault)
		walk_broken(heap->nt->walk, container->addr, fault);
	if (!find_offsets(heap, &view, key))
		return walk_broken(heap->nt->walk, container->addr,
			"LFH container whose blocks cannot be found");
	check_room(heap, &view);
	return add_blocks(heap, &view);
}

/* ---------------------------------------------------------------- all containers */

/* Returns true if at least one container has blocks. Containers without blocks wait for reuse. */
static bool has_blocks(const struct nt_lfh *lfh)
{
	for (size_t i = 0; i < lfh->container_count; i++)
		if (lfh->containers[i].stride && lfh->containers[i].block_count)
			return true;
	return false;
}

/* Returns the largest number of blocks that a container can add. */
static size_t most_of(const struct nt_container *container)
{
	uint64_t bytes = (uint64_t)container->block_count * container->stride;

	return bytes && bytes <= container->end - container->addr ? container->block_count : 0;
}

struct containers {
	struct nt_heap *heap;
	const uint32_t *key; /* argument of walk_container() */
	size_t first, end;
	size_t most; /* largest number of blocks that these containers can add */
	int rc;
};

static void walk_containers(void *ctx, unsigned number)
{
	struct containers *part = &((struct containers *)ctx)[number];

	part->rc = 0;
	for (size_t i = part->first; !part->rc && i < part->end; i++)
		part->rc = walk_container(part->heap, &part->heap->lfh.containers[i], part->key);
}

/* Walks the two parts in parallel. Returns the number of parts that were walked; it may be less
 * than 2. */
static unsigned walk_at_once(struct containers parts[2])
{
	struct nt_heap *heap = parts[0].heap, other = *heap;
	struct nt_walk nt = *heap->nt;
	struct memory memory;
	struct walk walk;
	unsigned done = 0;

	if (memory_init(&memory, nt.memory->target))
		return 0;
	other.nt = &nt;
	other.span = (struct nt_span){.memory = &memory};
	nt.memory = &memory;
	nt.walk = &walk;
	parts[1].heap = &other;
	parts[1].rc = -ERR_SYSTEM; /* returned if the second thread cannot be started */
	if (walk_split(heap->nt->walk, parts[0].most, &walk, parts[1].most)) {
		thread_run(2, walk_containers, parts);
		done = 1 + walk_join(heap->nt->walk, &walk, !parts[1].rc);
	}
	parts[1].heap = heap;
	memory_release(&memory);
	return done;
}

/* Walks all containers. A second thread walks half of the blocks if there are many and the target's
 * memory can be accessed directly. */
static int walk_all(struct nt_heap *heap, const uint32_t *key)
{
	const struct nt_lfh *lfh = &heap->lfh;
	struct containers parts[2] = {{.heap = heap, .key = key},
		{.heap = heap, .key = key, .end = lfh->container_count}};
	bool is_split;
	unsigned done;

	for (size_t i = 0; i < lfh->container_count; i++)
		parts[1].most += most_of(&lfh->containers[i]);
	is_split = parts[1].most >= SPLIT_MIN && heap->nt->memory->target->ops->view &&
		   thread_cores() > 1;
	while (is_split && parts[0].most < parts[1].most) {
		size_t most = most_of(&lfh->containers[parts[1].first++]);

		parts[0].most += most;
		parts[1].most -= most;
	}
	parts[0].end = parts[1].first;
	for (done = is_split ? walk_at_once(parts) : 0; !parts[0].rc && done < 2; done++)
		walk_containers(parts, done);
	return parts[0].rc ? parts[0].rc : parts[1].rc;
}

int nt_lfh_walk(struct nt_heap *heap)
{
	struct nt_lfh *lfh = &heap->lfh;
	uint32_t key = 0;
	bool has_key = false;
	int rc = nt_lfh_match(heap);

	if (!rc && has_blocks(lfh) && heap->layout->lfh->data_is_coded) {
		has_key = nt_lfh_key_find(heap, &key);
		if (!has_key && lfh->addr && !lfh->is_list_cut)
			walk_broken(heap->nt->walk, lfh->containers[0].addr,
				"LFH key that does not verify");
	}
	for (size_t i = 0; !rc && i < lfh->container_count; i++) {
		const struct nt_container *container = &lfh->containers[i];

		if (container->stride)
			rc = walk_add_container(heap->nt->walk, container->addr,
				container->end - container->addr, CONTAINER_LFH);
	}
	return rc ? rc : walk_all(heap, has_key ? &key : NULL);
}
