/*
 * The walker of page heaps.
 *
 * The head of the list of page heaps is in verifier.dll, at an address that is known only from
 * symbols. So a root is recognized by its pointers. It points to an existing ordinary heap. It also
 * has neighbours that link back to it, or a table of blocks that points back to it. Three places
 * lead to roots: the PEB's heap handles, the list of roots itself, and the writable sections of
 * verifier.dll.
 *
 * The handle of an ordinary heap does not lead to a root, although the data at that handle may look
 * like one: the _LFH_HEAP of Windows 7 has a list, and has a pointer to its heap at the same offset
 * as a root.
 */
#include <stdlib.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/pe/pe.h"
#include "snapshot/heap/claims.h"
#include "snapshot/heap/nt_heap.h"

#define ALLOCATION_BYTES 0x10000u /* allocation granularity */
/* Distance from handle to root, if the handle is the address of a page of its own. */
#define ROOT_AFTER_HANDLE 0x1000u
#define SCAN_BYTES_MAX ((uint32_t)1 << 20) /* limit per section of verifier.dll */
#define SCAN_PIECE_BYTES 0x4000u
#define VERIFIER "verifier.dll"
#define PAGE_ROOT_BYTES_MAX 0x158
#define FLAG_VERIFIER 0x100u /* FLG_APPLICATION_VERIFIER */

/* ---------------------------------------------------------------- recognizing roots */

static bool heap_is_there(struct nt_walk *nt, uint64_t addr)
{
	uint32_t signature;

	return addr &&
	       !memory_u32(
		       nt->memory, addr + NT_HEAP_SIGNATURE_AT(nt->process->bits), &signature) &&
	       (signature == NT_HEAP_SIGNATURE || signature == SEGMENT_HEAP_SIGNATURE);
}

/* Returns true if both neighbours of a link point back to it. A link may be its own neighbour. */
static bool link_fits(struct nt_walk *nt, uint64_t link, uint64_t next, uint64_t previous)
{
	unsigned bits = nt->process->bits;
	uint64_t back, forth;

	return next && previous && !memory_ptr(nt->memory, bits, next + bits / 8, &back) &&
	       back == link && !memory_ptr(nt->memory, bits, previous, &forth) && forth == link;
}

static bool table_fits(
	struct nt_walk *nt, const struct page_layout *layout, uint64_t table, uint64_t top)
{
	uint64_t parent;

	return top && !memory_ptr(nt->memory, layout->bits, top + layout->links_parent, &parent) &&
	       parent == table;
}

static bool is_root(struct nt_walk *nt, uint64_t handle, uint64_t addr)
{
	const struct page_layout *layout = page_layout(nt->process->bits);
	unsigned char root[PAGE_ROOT_BYTES_MAX];
	const unsigned char *table = root + layout->root_busy_table;
	const unsigned char *link = root + layout->root_next;
	unsigned bits = layout->bits;
	uint64_t normal;

	if (!addr || memory_copy(nt->memory, addr, root, layout->root_bytes))
		return false;
	normal = bytes_ptr(root + layout->root_normal_heap, bits);
	return normal != handle && normal != addr && heap_is_there(nt, normal) &&
	       !heap_is_there(nt, handle) &&
	       (link_fits(nt, addr + layout->root_next, bytes_ptr(link, bits),
			bytes_ptr(link + bits / 8, bits)) ||
		       table_fits(nt, layout, addr + layout->root_busy_table,
			       bytes_ptr(table + layout->links_right, bits)));
}

/* ---------------------------------------------------------------- finding roots */

struct page_root {
	/* the program's heap handle if it is known; otherwise the same as `root` */
	uint64_t handle;
	uint64_t root; /* address of the _DPH_HEAP_ROOT */
};

struct page_roots {
	struct page_root *list; /* sorted by handle, without duplicate roots */
	size_t count, cap;
};

struct root_search {
	struct nt_walk *nt;
	struct page_roots *roots;
};

/* Adds the root at `addr` if a root with this handle exists there. Returns 1 if a root was added, 0
 * if not, or -ERR_NOMEM. */
static int try_root(struct root_search *search, uint64_t handle, uint64_t addr)
{
	struct page_roots *roots = search->roots;

	if (!is_root(search->nt, handle, addr))
		return 0;
	if (array_try_grow((void **)&roots->list, &roots->cap, roots->count, sizeof(*roots->list)))
		return -ERR_NOMEM;
	roots->list[roots->count++] = (struct page_root){handle, addr};
	return 1;
}

/* Adds the root that contains a link. Does nothing for the head of the list, which is in no root.
 * If the root is one page into an allocation, its handle is the start of the allocation. This is so
 * even if the PEB's list does not contain that handle. */
static int each_link(void *ctx, uint64_t link)
{
	struct root_search *search = ctx;
	uint64_t root = link - page_layout(search->nt->process->bits)->root_next;
	uint64_t handle =
		root % ALLOCATION_BYTES == ROOT_AFTER_HANDLE ? root - ROOT_AFTER_HANDLE : root;
	int rc = try_root(search, handle, root);

	return rc < 0 ? rc : 0;
}

/* ---------------------------------------------------------------- verifier.dll */

/* Returns true if the head of the list is at `addr`: the next link belongs to a root. */
static bool is_head(struct nt_walk *nt, uint64_t addr, const unsigned char *bytes)
{
	const struct page_layout *layout = page_layout(nt->process->bits);
	uint64_t next = bytes_ptr(bytes, layout->bits);
	uint64_t previous = bytes_ptr(bytes + layout->bits / 8, layout->bits);

	return next && next != addr && next % (layout->bits / 8) == 0 &&
	       link_fits(nt, addr, next, previous) &&
	       is_root(nt, next - layout->root_next, next - layout->root_next);
}

static uint64_t scan_piece(struct nt_walk *nt, uint64_t addr, size_t len)
{
	unsigned char bytes[SCAN_PIECE_BYTES];
	size_t step = nt->process->bits / 8;

	if (memory_copy(nt->memory, addr, bytes, len))
		return 0;
	for (size_t i = 0; i + 2 * step <= len; i += step) {
		if (is_head(nt, addr + i, bytes + i))
			return addr + i;
	}
	return 0;
}

struct head_scan {
	struct nt_walk *nt;
	uint64_t head; /* 0: not found */
};

static bool scan_section(void *ctx, uint64_t addr, const struct pe_section *section)
{
	struct head_scan *scan = ctx;
	uint32_t bytes = section->size_bytes;
	uint32_t len = bytes < SCAN_BYTES_MAX ? bytes : SCAN_BYTES_MAX;

	/* Pieces overlap, because a head may lie across the boundary between two pieces. */
	for (uint32_t at = 0; !section->is_code && !scan->head && at < len;
		at += SCAN_PIECE_BYTES - 16) {
		uint32_t left = len - at;

		scan->head = scan_piece(
			scan->nt, addr + at, left < SCAN_PIECE_BYTES ? left : SCAN_PIECE_BYTES);
	}
	return scan->head != 0;
}

/* ---------------------------------------------------------------- all roots */

static int by_root(const void *a, const void *b)
{
	const struct page_root *x = a, *y = b;

	if (x->root != y->root)
		return x->root < y->root ? -1 : 1;
	/* Use the address of a root as its handle only if no other handle is known. */
	return (x->handle == x->root) - (y->handle == y->root);
}

static int by_handle(const void *a, const void *b)
{
	const struct page_root *x = a, *y = b;

	return x->handle < y->handle ? -1 : x->handle > y->handle;
}

static void sort_unique(struct page_roots *roots)
{
	size_t count = 0;

	if (!roots->count)
		return;
	qsort(roots->list, roots->count, sizeof(*roots->list), by_root);
	for (size_t i = 0; i < roots->count; i++) {
		if (!count || roots->list[count - 1].root != roots->list[i].root)
			roots->list[count++] = roots->list[i];
	}
	roots->count = count;
	qsort(roots->list, roots->count, sizeof(*roots->list), by_handle);
}

/* Finds all _DPH_HEAP_ROOTs. Returns 0 or -ERR_NOMEM. The caller must always free roots->list. */
static int page_roots_find(struct nt_walk *nt, struct page_roots *roots)
{
	struct root_search search = {nt, roots};
	struct nt_list list = {.each = each_link, .ctx = &search};
	struct head_scan scan = {.nt = nt};
	int rc = 0;

	for (size_t i = 0; rc >= 0 && i < nt->process->heap_count; i++) {
		uint64_t handle = nt->process->heaps[i];

		rc = try_root(&search, handle, handle);
		if (!rc)
			rc = try_root(&search, handle, handle + ROOT_AFTER_HANDLE);
	}
	if (rc < 0)
		return rc;
	if (roots->count)
		list.head = roots->list[0].root + page_layout(nt->process->bits)->root_next;
	else if (nt->process->global_flag & (NT_FLAG_HPA | FLAG_VERIFIER) &&
		 nt_module_scan(nt, VERIFIER, scan_section, &scan))
		list.head = scan.head;
	rc = list.head ? nt_list_walk(nt, &list) : 0;
	sort_unique(roots);
	return rc;
}

/* Largest known size of the inaccessible memory after a block: a page, and possibly padding. Some
 * versions of Windows start each block at a 64 KiB unit of address space, so padding follows the
 * page up to the next unit. */
#define GUARD_BYTES_MAX 0x11000u

struct page_walk {
	struct nt_walk *nt;
	const struct page_layout *layout;
	uint64_t block_count;
};

static uint64_t ptr_at(const struct page_walk *page, const unsigned char *bytes, uint16_t field)
{
	return bytes_ptr(bytes + field, page->layout->bits);
}

/* Claims the committed pages of a block, but not the inaccessible page that follows them. */
static int claim(struct page_walk *page, uint64_t addr, uint64_t end)
{
	uint64_t pages = end > addr ? (end - addr - 1) / CLAIM_PAGE_BYTES + 1 : 1;

	return claims_add(&page->nt->claims, addr, pages * CLAIM_PAGE_BYTES);
}

/* Pages of a block. `access_bytes` is the size of the accessible pages; `bytes` is the size of all
 * pages, including the inaccessible one. */
struct heap_pages {
	uint64_t addr, bytes, access_bytes, user, requested_bytes;
};

/*
 * Returns true if the block's numbers are consistent. The inaccessible page follows the program's
 * bytes, or precedes them if the process requests that. The number of accessible pages is the
 * smallest that contains the program's bytes. */
static bool pages_fit(const struct page_walk *page, const struct heap_pages *pages)
{
	uint64_t space = page->layout->bits == 64 ? TARGET_SPACE_BYTES : (uint64_t)1 << 32;

	return pages->addr && pages->addr < space && pages->bytes <= space - pages->addr &&
	       pages->user >= pages->addr && pages->user - pages->addr <= pages->bytes &&
	       pages->requested_bytes <= pages->bytes - (pages->user - pages->addr) &&
	       pages->access_bytes <= pages->bytes && pages->requested_bytes <= pages->access_bytes;
}

/* Returns a pointer to the block information directly before the program's bytes, or NULL if the
 * information is unreadable. */
static const unsigned char *info_at(
	struct memory *memory, const struct page_layout *layout, uint64_t user_addr)
{
	return user_addr < layout->info_bytes ?
		       NULL :
		       memory_at(memory, user_addr - layout->info_bytes, layout->info_bytes);
}

/* Returns true if the block information directly before the program's bytes matches the node or is
 * unreadable. */
static bool info_agrees(const struct page_walk *page, const struct heap_pages *pages)
{
	struct memory *memory = page->nt->memory;
	unsigned bits = page->layout->bits;
	struct page_block block;

	if (pages->user - pages->addr < page->layout->info_bytes ||
		!info_at(memory, page->layout, pages->user))
		return true;
	return page_block_parse(memory, bits, pages->user, &block) && block.is_full &&
	       block.requested_bytes == pages->requested_bytes;
}

static int each_block(void *ctx, uint64_t node)
{
	struct page_walk *page = ctx;
	const struct page_layout *layout = page->layout;
	struct walk *walk = page->nt->walk;
	const unsigned char *bytes = memory_at(page->nt->memory, node, layout->block_bytes);
	struct heap_pages pages;
	uint64_t trace;
	int rc;

	if (!bytes)
		return walk_missing(walk, node, "unreadable page heap block");
	pages.user = ptr_at(page, bytes, layout->block_user);
	pages.addr = ptr_at(page, bytes, layout->block_virtual);
	pages.bytes = ptr_at(page, bytes, layout->block_virtual_bytes);
	pages.access_bytes = ptr_at(page, bytes, layout->block_access_bytes);
	pages.requested_bytes = ptr_at(page, bytes, layout->block_requested);
	trace = ptr_at(page, bytes, layout->block_trace);
	page->block_count++;
	if (!pages_fit(page, &pages))
		return walk_broken(walk, node, "page heap block outside its pages");
	if (pages.bytes - pages.access_bytes > GUARD_BYTES_MAX)
		walk_doubt(walk, node, "page heap block with more pages than it needs");
	if (!info_agrees(page, &pages))
		walk_doubt(walk, node, "page heap block without its information before it");
	rc = claim(page, pages.addr, pages.user + pages.requested_bytes);
	if (rc == -ERR_TARGET)
		return walk_broken(walk, node, "more blocks than the memory can hold"), 1;
	rc = rc ? rc : walk_add_own(walk, node);
	return rc ? rc :
		    walk_add_block(walk, pages.user, pages.requested_bytes,
			    pages.bytes - pages.requested_bytes, trace);
}

static int blocks(struct page_walk *page, uint64_t root)
{
	const struct page_layout *layout = page->layout;
	uint64_t table = root + layout->root_busy_table;
	struct nt_tree tree = {.left = layout->links_left,
		.right = layout->links_right,
		.parent = layout->links_parent,
		.each = each_block,
		.ctx = page};
	unsigned missing_count = page->nt->walk->missing_count;
	uint32_t count;
	int rc;

	if (memory_ptr(page->nt->memory, layout->bits, table + layout->links_right, &tree.root) ||
		memory_u32(page->nt->memory, table + layout->table_count, &count))
		return walk_missing(page->nt->walk, root, "unreadable page heap");
	rc = nt_tree_walk(page->nt, &tree);
	if (!rc && page->block_count != count && page->nt->walk->missing_count == missing_count)
		walk_broken(page->nt->walk, root, "page heap with a wrong number of blocks");
	return rc;
}

static int add_behind(struct nt_walk *nt, uint64_t normal_heap)
{
	if (array_try_grow(
		    (void **)&nt->behind, &nt->behind_cap, nt->behind_count, sizeof(*nt->behind)))
		return -ERR_NOMEM;
	nt->behind[nt->behind_count++] = normal_heap;
	return 0;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Removes duplicates, and heaps that are in the PEB's list, from nt->behind. */
static void drop_listed(struct nt_walk *nt)
{
	const struct nt_process *process = nt->process;
	struct u64map known;
	size_t count = 0;
	uint32_t ignored = 0;

	if (!nt->behind_count)
		return;
	u64map_init(&known);
	for (size_t i = 0; i < process->heap_count; i++)
		u64map_add(&known, process->heaps[i], &ignored);
	qsort(nt->behind, nt->behind_count, sizeof(*nt->behind), by_value);
	for (size_t i = 0; i < nt->behind_count; i++) {
		if (u64map_add(&known, nt->behind[i], &ignored))
			nt->behind[count++] = nt->behind[i];
	}
	nt->behind_count = count;
	u64map_release(&known);
}

static int walk_root(struct nt_walk *nt, const struct page_root *root)
{
	struct page_walk page = {.nt = nt, .layout = page_layout(nt->process->bits)};
	const struct page_layout *layout = page.layout;
	const unsigned char *bytes = memory_at(nt->memory, root->root, layout->root_bytes);
	struct heap heap = {
		.addr = root->handle, .bits = layout->bits, .kind = "page", .layout = layout->name};
	int rc = 0;

	if (bytes) {
		rc = add_behind(nt, ptr_at(&page, bytes, layout->root_normal_heap));
		heap.reserved_bytes = ptr_at(&page, bytes, layout->root_storage_bytes);
		heap.committed_bytes = ptr_at(&page, bytes, layout->root_busy_committed) +
				       ptr_at(&page, bytes, layout->root_free_committed);
	}
	if (!rc)
		rc = walk_add_heap(nt->walk, &heap);
	return rc ? rc : blocks(&page, root->root);
}

int page_heaps_walk(struct nt_walk *nt)
{
	struct page_roots roots = {0};
	int rc = page_roots_find(nt, &roots);

	nt->page_heap_first = nt->walk->heap_count;
	for (size_t i = 0; !rc && i < roots.count; i++)
		rc = walk_root(nt, &roots.list[i]);
	nt->page_heap_count = nt->walk->heap_count - nt->page_heap_first;
	free(roots.list);
	drop_listed(nt);
	return rc;
}

static int heap_by_addr(const void *a, const void *b)
{
	const struct heap *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

bool page_heap_knows(const struct nt_walk *nt, uint64_t addr)
{
	const struct heap wanted = {.addr = addr};

	return nt->page_heap_count && bsearch(&wanted, &nt->walk->heaps[nt->page_heap_first],
					      nt->page_heap_count, sizeof(wanted), heap_by_addr);
}

/* ---------------------------------------------------------------- information before a block */

bool page_block_is_damaged(struct memory *memory, unsigned bits, uint64_t user_addr)
{
	const struct page_layout *layout = page_layout(bits);
	const unsigned char *info = info_at(memory, layout, user_addr);
	struct page_block block;

	if (!info || (bytes_u32(info) != PAGE_START_LIGHT &&
			     bytes_u32(info + layout->info_end) != PAGE_END_LIGHT))
		return false;
	return !page_block_parse(memory, bits, user_addr, &block) || block.is_full;
}

bool page_block_parse(
	struct memory *memory, unsigned bits, uint64_t user_addr, struct page_block *block)
{
	const struct page_layout *layout = page_layout(bits);
	const unsigned char *info = info_at(memory, layout, user_addr);
	uint32_t start, end;
	uint64_t requested;

	if (!info)
		return false;
	start = bytes_u32(info);
	end = bytes_u32(info + layout->info_end);
	requested = bytes_ptr(info + layout->info_requested, bits);
	/* Both stamps must be those of a live block in the same kind of page heap. */
	if (!(start == PAGE_START_FULL && end == PAGE_END_FULL) &&
		!(start == PAGE_START_LIGHT && end == PAGE_END_LIGHT))
		return false;
	if (!bytes_ptr(info + layout->info_heap, bits) ||
		requested > bytes_ptr(info + layout->info_actual, bits) ||
		requested > TARGET_SPACE_BYTES)
		return false;
	*block = (struct page_block){.requested_bytes = requested,
		.record = bytes_ptr(info + layout->info_trace, bits),
		.is_full = start == PAGE_START_FULL};
	return true;
}
