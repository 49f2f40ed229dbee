/* Roots of the search: memory that may point to blocks, and the registers and stacks of the
 * process's threads. Memory is shown to the search in ascending order. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/sorted.h"
#include "snapshot/reach/reach.h"

#define PIECE ((size_t)1 << 20)
#define PAGE 4096

struct taking {
	struct target *target;
	struct reach *reach;
	/* Excluded ranges, sorted, without overlaps; also contains the unused parts of stacks. */
	struct target_range *apart;
	/* apart_at: first range in apart that has not been passed */
	size_t apart_count, apart_cap, apart_at;
	size_t thread_count, unseen_count;
	unsigned char *piece;
	uint64_t unread_bytes;
	bool knows_access;
	uint64_t *own; /* addresses of the heap metadata that describes blocks; sorted */
	size_t own_count;
};

/* ---------------------------------------------------------------- threads */

static void exclude(struct taking *taking, uint64_t from, uint64_t end)
{
	array_grow((void **)&taking->apart, &taking->apart_cap, taking->apart_count,
		sizeof(*taking->apart));
	taking->apart[taking->apart_count++] = (struct target_range){from, end};
}

/* Adds a thread's registers, and excludes the unused part of its stack. In NT_TIB of winnt.h, the
 * second pointer is the stack's upper end, the third its lower end. */
static int add_thread(void *ctx, const struct target_thread *thread)
{
	struct taking *taking = ctx;
	const unsigned word = taking->target->bits / 8;
	unsigned char tib[3 * 8];
	uint64_t base, limit;

	taking->thread_count++;
	taking->unseen_count += !thread->context_bytes;
	for (size_t i = 0; i + word <= thread->context_bytes; i += word)
		reach_root(taking->reach, word == 8 ? bytes_u64(thread->context + i) :
						      bytes_u32(thread->context + i));
	if (!thread->sp || target_read(taking->target, thread->teb, tib, 3 * (size_t)word))
		return 0;
	base = word == 8 ? bytes_u64(tib + 8) : bytes_u32(tib + 4);
	limit = word == 8 ? bytes_u64(tib + 16) : bytes_u32(tib + 8);
	if (thread->sp <= limit || thread->sp > base)
		return 0;
	exclude(taking, limit, thread->sp);
	return 0;
}

static int by_from(const void *a, const void *b)
{
	const struct target_range *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

static void finish_apart(struct taking *taking)
{
	size_t count = 0;

	if (taking->apart_count)
		qsort(taking->apart, taking->apart_count, sizeof(*taking->apart), by_from);
	for (size_t i = 0; i < taking->apart_count; i++) {
		const struct target_range *apart = &taking->apart[i];
		struct target_range *last = count ? &taking->apart[count - 1] : NULL;

		if (!last || apart->from > last->end)
			taking->apart[count++] = *apart;
		else if (apart->end > last->end)
			last->end = apart->end;
	}
	taking->apart_count = count;
}

/* ---------------------------------------------------------------- memory */

/* Returns a pointer to bytes within one piece, in place if possible. *len is reduced to the number
 * of available bytes. */
static const unsigned char *bytes_at(struct taking *taking, uint64_t addr, size_t *len)
{
	struct target *target = taking->target;
	const size_t wanted = *len;
	const unsigned char *bytes;

	if (!target->ops->view)
		return target_read(target, addr, taking->piece, wanted) ? NULL : taking->piece;
	bytes = target->ops->view(target, addr, len);
	if (!bytes || *len > wanted)
		*len = wanted;
	return bytes;
}

/* Shows a range; unreadable memory is skipped page by page. */
static void show(struct taking *taking, uint64_t addr, uint64_t end, bool is_root)
{
	while (addr < end) {
		uint64_t next = (addr & ~(uint64_t)(PIECE - 1)) + PIECE;
		size_t len = (size_t)((next < end ? next : end) - addr);
		const unsigned char *bytes = bytes_at(taking, addr, &len);

		if (!bytes && len > PAGE) {
			len = PAGE - (size_t)(addr & (PAGE - 1));
			bytes = bytes_at(taking, addr, &len);
		}
		if (bytes)
			reach_show(taking->reach, addr, bytes, len, is_root);
		else
			taking->unread_bytes += len;
		addr += len;
	}
}

static void show_range(struct taking *taking, uint64_t addr, uint64_t end, bool is_root)
{
	for (; taking->apart_at < taking->apart_count; taking->apart_at++) {
		const struct target_range *apart = &taking->apart[taking->apart_at];

		if (apart->from >= end)
			break;
		if (apart->from > addr)
			show(taking, addr, apart->from, is_root);
		addr = apart->end > addr ? apart->end : addr;
		if (addr >= end)
			return; /* the region may continue in the next range */
	}
	if (addr < end)
		show(taking, addr, end, is_root);
}

/* Shows the writable sections of a module whose access is known only from its headers. */
static void show_module(struct taking *taking, const struct target_region *region)
{
	struct target_image at = {.target = taking->target, .base = region->addr};
	struct pe_source source = target_image_source(&at);
	struct pe_image *image = xmalloc(sizeof(*image));
	uint64_t shown = region->addr;
	bool is_known = !pe_read_headers(&source, image);

	for (unsigned i = 0; is_known && i < image->section_count; i++) {
		const struct pe_section *section = &image->sections[i];
		uint64_t from = region->addr + section->rva, end = from + section->size_bytes;

		if (!section->is_writable || from < shown || from >= region->end)
			continue;
		shown = end < region->end ? end : region->end;
		show_range(taking, from, shown, true);
	}
	free(image);
	if (!is_known)
		show_range(taking, region->addr, region->end, true);
}

/* Returns true if the region contains heap metadata that describes blocks. */
static bool is_own(const struct taking *taking, const struct target_region *region)
{
	size_t at =
		sorted_below(taking->own, taking->own_count, sizeof(*taking->own), 0, region->addr);

	return at < taking->own_count && taking->own[at] < region->end;
}

/*
 * Shows a region.
 *
 * Memory of heaps counts only inside live blocks, because freed memory still contains pointers. The
 * read-only parts of modules contain only code and constants; small constants look like addresses.
 * Files that are mapped for reading do not count either. A read-only view contains pointers of this
 * process only if the process writes to the same section through another view, and that view is a
 * root. */
static void show_region(struct taking *taking, const struct target_region *region)
{
	if (!region->access || region->is_read_only_view)
		return;
	if (!region->is_image)
		show_range(taking, region->addr, region->end,
			!reach_has_block(taking->reach, region->addr, region->end) &&
				!is_own(taking, region));
	else if (!taking->knows_access)
		show_module(taking, region);
	else if (region->access & TARGET_WRITE)
		show_range(taking, region->addr, region->end, true);
}

typedef int (*region_fn)(struct target *target, uint64_t addr, struct target_region *region);

static region_fn region_of_target(const struct target *target)
{
	return target->ops->region ? target->ops->region : target->ops->slow_region;
}

struct target_range reach_apart_from(struct target *target, uint64_t addr)
{
	region_fn region_of = region_of_target(target);
	struct target_region region;

	if (!addr || !region_of || region_of(target, addr, &region) || region.addr > addr)
		return (struct target_range){0};
	return (struct target_range){addr, region.end};
}

/* Finds the next region at or after *end, and advances *end to the region's end. */
static bool next_region(
	struct target *target, region_fn region_of, uint64_t *end, struct target_region *region)
{
	if (region_of(target, *end, region) || region->end <= *end)
		return false;
	if (region->addr < *end)
		region->addr = *end;
	*end = region->end;
	return true;
}

static void show_all(struct taking *taking)
{
	struct target *target = taking->target;
	region_fn region_of = region_of_target(target);
	struct target_region region;
	uint64_t end = 0;

	taking->knows_access = !target->is_file;
	while (!taking->knows_access && next_region(target, region_of, &end, &region))
		taking->knows_access = region.access & TARGET_WRITE;
	end = 0;
	while (next_region(target, region_of, &end, &region))
		show_region(taking, &region);
}

int reach_capture(struct target *target, const struct walk *walk, bool by_middle,
	const struct target_range *apart, size_t apart_count, struct reach_taken *taken,
	struct err *err)
{
	struct taking taking = {.target = target};
	int rc = 0;

	*taken = (struct reach_taken){0};
	if (!region_of_target(target))
		return err_set(err, ERR_TARGET, target->name, "its memory cannot be listed");
	taking.reach = taken->reach = reach_new(target->bits, by_middle, walk->block_count);
	for (size_t i = 0; i < walk->block_count; i++) {
		reach_add(taking.reach, walk->blocks[i].addr, walk->blocks[i].requested_bytes);
		taken->low_count += walk->blocks[i].addr < REACH_LOW;
	}
	reach_ready(taking.reach);
	for (size_t i = 0; i < apart_count; i++) {
		if (apart[i].end > apart[i].from)
			exclude(&taking, apart[i].from, apart[i].end);
	}
	if (target->ops->threads)
		rc = target->ops->threads(target, add_thread, &taking, err);
	finish_apart(&taking);
	taking.own = xmalloc((walk->own_count + 1) * sizeof(*taking.own));
	if (walk->own_count)
		memcpy(taking.own, walk->own, walk->own_count * sizeof(*taking.own));
	taking.own_count = sorted_unique(taking.own, walk->own_count);
	taking.piece = xmalloc(PIECE);
	if (!rc)
		show_all(&taking);
	taken->thread_count = taking.thread_count;
	taken->unseen_count = taking.unseen_count;
	taken->unread_bytes = taking.unread_bytes;
	free(taking.piece);
	free(taking.own);
	free(taking.apart);
	return rc;
}
