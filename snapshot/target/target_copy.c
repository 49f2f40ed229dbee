/* A copy of a target's memory and threads. The memory is stored in pieces, sorted by address, each
 * of which is within one region. The bytes of the pieces are allocated in large chunks. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/sorted.h"
#include "snapshot/target/target.h"

#define PIECE ((size_t)1 << 20)
#define CHUNK (16 * PIECE)
#define PAGE 4096

/* Memory that was read in one call, within one region. */
struct copied_piece {
	uint64_t addr;
	size_t len;
	unsigned char *bytes;
};

struct copied {
	struct target target; /* public part, must be first */
	struct target_region *regions;
	size_t region_count, region_cap;
	/* CHUNK bytes each; chunk_used: number of used bytes in the last chunk */
	unsigned char **chunks;
	size_t chunk_count, chunk_cap, chunk_used;
	struct copied_piece *pieces;
	size_t piece_count, piece_cap;
	struct target_thread *threads;
	size_t thread_count, thread_cap;
};

static const struct copied_piece *piece_at(const struct copied *copied, uint64_t addr)
{
	size_t below = sorted_up_to(copied->pieces, copied->piece_count, sizeof(*copied->pieces),
		offsetof(struct copied_piece, addr), addr);
	const struct copied_piece *piece = below ? &copied->pieces[below - 1] : NULL;

	return piece && addr - piece->addr < piece->len ? piece : NULL;
}

static const unsigned char *copied_view(struct target *target, uint64_t addr, size_t *len)
{
	const struct copied_piece *piece = piece_at(target->system, addr);

	if (!piece)
		return NULL;
	*len = piece->len - (size_t)(addr - piece->addr);
	return piece->bytes + (addr - piece->addr);
}

static int copied_read(struct target *target, uint64_t addr, void *bytes, size_t len)
{
	unsigned char *to = bytes;

	while (len) {
		size_t there;
		const unsigned char *from = copied_view(target, addr, &there);

		if (!from)
			return -ERR_READ;
		there = there < len ? there : len;
		memcpy(to, from, there);
		to += there;
		addr += there;
		len -= there;
	}
	return 0;
}

static int copied_region(struct target *target, uint64_t addr, struct target_region *region)
{
	const struct copied *copied = target->system;
	size_t at = sorted_up_to(copied->regions, copied->region_count, sizeof(*copied->regions),
		offsetof(struct target_region, end), addr);

	if (at == copied->region_count)
		return -ERR_READ;
	*region = copied->regions[at];
	return 0;
}

static int copied_threads(struct target *target,
	int (*each)(void *ctx, const struct target_thread *thread), void *ctx, struct err *err)
{
	const struct copied *copied = target->system;
	int rc = 0;

	(void)err;
	for (size_t i = 0; !rc && i < copied->thread_count; i++)
		rc = each(ctx, &copied->threads[i]);
	return rc;
}

static const struct target_ops copied_ops = {.read = copied_read,
	.region = copied_region,
	.view = copied_view,
	.threads = copied_threads,
	.close = target_copy_free};

void target_copy_free(struct target *copy)
{
	struct copied *copied = copy ? copy->system : NULL;

	if (!copied)
		return;
	for (size_t i = 0; i < copied->chunk_count; i++)
		free(copied->chunks[i]);
	free(copied->chunks);
	for (size_t i = 0; i < copied->thread_count; i++)
		free((void *)(uintptr_t)copied->threads[i].context);
	free(copied->pieces);
	free(copied->threads);
	free(copied->regions);
	free(copied);
}

/* ---------------------------------------------------------------- copying */

static bool is_wanted(const struct target_region *region)
{
	return region->access && !region->is_read_only_view &&
	       (!region->is_image || region->access & TARGET_WRITE);
}

/* Adds the parts of a region that are outside except[]. Returns their size in bytes. */
static uint64_t add_region(struct copied *copied, struct target_region region,
	const struct target_range *except, size_t except_count)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < except_count; i++) {
		struct target_region before = region;

		if (except[i].from >= except[i].end || except[i].from >= region.end ||
			except[i].end <= region.addr)
			continue;
		before.end = except[i].from;
		if (before.end > before.addr)
			bytes += add_region(copied, before, except + i + 1, except_count - i - 1);
		region.addr = except[i].end;
		if (region.addr >= region.end)
			return bytes;
	}
	array_grow((void **)&copied->regions, &copied->region_cap, copied->region_count,
		sizeof(*copied->regions));
	copied->regions[copied->region_count++] = region;
	return bytes + region.end - region.addr;
}

/* Lists all regions to copy. Returns their total size in bytes. */
static uint64_t list_regions(struct copied *copied, struct target *target,
	const struct target_range *except, size_t except_count)
{
	int (*region_of)(struct target * target, uint64_t addr, struct target_region * region) =
		target->ops->region ? target->ops->region : target->ops->slow_region;
	struct target_region region;
	uint64_t end = 0, bytes = 0;

	while (region_of && !region_of(target, end, &region) && region.end > end) {
		if (region.addr < end)
			region.addr = end;
		end = region.end;
		if (is_wanted(&region))
			bytes += add_region(copied, region, except, except_count);
	}
	return bytes;
}

/* Returns room for a piece. The room is not reserved until the caller advances chunk_used. */
static unsigned char *room(struct copied *copied, size_t len)
{
	if (!copied->chunk_count || CHUNK - copied->chunk_used < len) {
		unsigned char *chunk = malloc(CHUNK);

		if (!chunk)
			return NULL;
		array_grow((void **)&copied->chunks, &copied->chunk_cap, copied->chunk_count,
			sizeof(*copied->chunks));
		copied->chunks[copied->chunk_count++] = chunk;
		copied->chunk_used = 0;
	}
	return copied->chunks[copied->chunk_count - 1] + copied->chunk_used;
}

/* Copies a piece. If it cannot be read as a whole, copies its readable pages. */
static bool copy_piece(struct copied *copied, struct target *target, uint64_t addr, size_t len)
{
	unsigned char *bytes = room(copied, len);

	if (!bytes)
		return false;
	if (!target_read(target, addr, bytes, len)) {
		array_grow((void **)&copied->pieces, &copied->piece_cap, copied->piece_count,
			sizeof(*copied->pieces));
		copied->pieces[copied->piece_count++] = (struct copied_piece){addr, len, bytes};
		copied->chunk_used += len;
		return true;
	}
	for (uint64_t at = addr; len > PAGE && at < addr + len;) {
		uint64_t next = (at & ~(uint64_t)(PAGE - 1)) + PAGE;

		next = next < addr + len ? next : addr + len;
		if (!copy_piece(copied, target, at, (size_t)(next - at)))
			return false;
		at = next;
	}
	return true;
}

static bool copy_memory(struct copied *copied, struct target *target)
{
	for (size_t i = 0; i < copied->region_count; i++) {
		const struct target_region *region = &copied->regions[i];

		for (uint64_t at = region->addr; at < region->end;) {
			uint64_t next = (at & ~(uint64_t)(PIECE - 1)) + PIECE;

			next = next < region->end ? next : region->end;
			if (!copy_piece(copied, target, at, (size_t)(next - at)))
				return false;
			at = next;
		}
	}
	return true;
}

static int copy_thread(void *ctx, const struct target_thread *thread)
{
	struct copied *copied = ctx;
	unsigned char *context = xmalloc(thread->context_bytes + 1);

	if (thread->context_bytes)
		memcpy(context, thread->context, thread->context_bytes);
	array_grow((void **)&copied->threads, &copied->thread_cap, copied->thread_count,
		sizeof(*copied->threads));
	copied->threads[copied->thread_count] = *thread;
	copied->threads[copied->thread_count++].context = context;
	return 0;
}

struct target *target_copy(struct target *target, const struct target_range *except,
	size_t except_count, uint64_t max_bytes)
{
	struct copied *copied = xcalloc(1, sizeof(*copied));
	struct err err;
	uint64_t bytes;

	copied->target = (struct target){
		.ops = &copied_ops, .system = copied, .pid = target->pid, .bits = target->bits};
	memcpy(copied->target.name, target->name, sizeof(target->name));
	bytes = list_regions(copied, target, except, except_count);
	if (bytes && bytes <= max_bytes && copy_memory(copied, target) &&
		(!target->ops->threads || !target->ops->threads(target, copy_thread, copied, &err)))
		return &copied->target;
	target_copy_free(&copied->target);
	return NULL;
}
