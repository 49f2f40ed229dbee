#include <stdlib.h>
#include <string.h>

#include <strings.h>

#include "core/base/memory.h"
#include "core/pe/pe.h"
#include "snapshot/heap/claims.h"
#include "snapshot/heap/nt_heap.h"

/*
 * The list of page heaps has its head in verifier.dll, under a name that only symbols know. A root is
 * known by what it points to: behind it stands an ordinary heap, and it is linked from both sides or a
 * table of blocks hangs on it. Roots are looked for where the PEB's heap handles lead, along
 * their list, and from the writable parts of verifier.dll. A handle that is an ordinary heap leads
 * to none: what follows it is the heap's own, and may look like anything (the _LFH_HEAP of Windows 7
 * has a list, and a pointer to its heap as far behind it as a root has).
 */

#define ROOT_AFTER_HANDLE 0x1000u /* where a handle is a page of its own before the root */
#define SCAN_BYTES_MAX ((uint32_t)1 << 20) /* of verifier.dll's data */
#define SCAN_PIECE_BYTES 0x4000u
#define VERIFIER "verifier.dll"
#define FLAG_VERIFIER 0x100u /* FLG_APPLICATION_VERIFIER */

/* ---------------------------------------------------------------- what is a root */

static bool heap_is_there(struct nt_walk *nt, uint64_t addr)
{
	uint32_t signature;

	return addr &&
	       !memory_u32(
		       nt->memory, addr + NT_HEAP_SIGNATURE_AT(nt->process->bits), &signature) &&
	       (signature == NT_HEAP_SIGNATURE || signature == SEGMENT_HEAP_SIGNATURE);
}

/* True when both neighbours of a link point back to it; it may be alone. */
static bool link_fits(struct nt_walk *nt, uint64_t link, uint64_t next, uint64_t previous)
{
	unsigned bits = nt->process->bits;
	uint64_t back, forth;

	return next && previous && !memory_ptr(nt->memory, bits, next + bits / 8, &back) &&
	       back == link && !memory_ptr(nt->memory, bits, previous, &forth) && forth == link;
}

/* The table's first node points back to the table. */
static bool table_fits(
	struct nt_walk *nt, const struct page_layout *layout, uint64_t table, uint64_t top)
{
	uint64_t parent;

	return top && !memory_ptr(nt->memory, layout->bits, top + layout->links_parent, &parent) &&
	       parent == table;
}

/* A root that handle leads to. */
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

/* ---------------------------------------------------------------- where they are */

static int add(struct page_roots *roots, uint64_t handle, uint64_t root)
{
	if (array_try_grow((void **)&roots->list, &roots->cap, roots->count, sizeof(*roots->list)))
		return -ERR_NOMEM;
	roots->list[roots->count++] = (struct page_root){handle, root};
	return 0;
}

static int from_handles(struct nt_walk *nt, struct page_roots *roots)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < nt->process->heap_count; i++) {
		uint64_t handle = nt->process->heaps[i];

		if (is_root(nt, handle, handle))
			rc = add(roots, handle, handle);
		else if (is_root(nt, handle, handle + ROOT_AFTER_HANDLE))
			rc = add(roots, handle, handle + ROOT_AFTER_HANDLE);
	}
	return rc;
}

struct list_search {
	struct nt_walk *nt;
	struct page_roots *roots;
};

/* One link on the list is its head's. */
static int each_link(void *ctx, uint64_t link)
{
	struct list_search *search = ctx;
	uint64_t root = link - page_layout(search->nt->process->bits)->root_next;

	return is_root(search->nt, root, root) ? add(search->roots, root, root) : 0;
}

/* All roots on the list that link is on. */
static int from_list(struct nt_walk *nt, struct page_roots *roots, uint64_t link)
{
	struct list_search search = {nt, roots};
	const struct nt_list list = {.head = link, .each = each_link, .ctx = &search};

	return nt_list_walk(nt, &list);
}

/* ---------------------------------------------------------------- verifier.dll */

/* True when a list's head lies there: its next link is a root's. */
static bool is_head(struct nt_walk *nt, uint64_t addr, const unsigned char *bytes)
{
	const struct page_layout *layout = page_layout(nt->process->bits);
	uint64_t next = bytes_ptr(bytes, layout->bits);
	uint64_t previous = bytes_ptr(bytes + layout->bits / 8, layout->bits);

	return next && next != addr && next % (layout->bits / 8) == 0 &&
	       link_fits(nt, addr, next, previous) &&
	       is_root(nt, next - layout->root_next, next - layout->root_next);
}

/* Looks for the head in a piece of data. Returns its address, or 0. */
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

static uint64_t scan_section(struct nt_walk *nt, uint64_t addr, uint32_t size_bytes)
{
	uint32_t len = size_bytes < SCAN_BYTES_MAX ? size_bytes : SCAN_BYTES_MAX;
	uint64_t head = 0;

	/* A head may lie across two pieces. */
	for (uint32_t at = 0; !head && at < len; at += SCAN_PIECE_BYTES - 16) {
		uint32_t left = len - at;

		head = scan_piece(nt, addr + at, left < SCAN_PIECE_BYTES ? left : SCAN_PIECE_BYTES);
	}
	return head;
}

static uint64_t scan_module(struct nt_walk *nt, uint64_t base)
{
	struct target_image at = {nt->memory->target, base};
	const struct pe_source source = target_image_source(&at);
	struct pe_image *image = malloc(sizeof(*image));
	uint64_t head = 0;

	if (image && !pe_read_headers(&source, image) && image->bits == nt->process->bits) {
		for (size_t i = 0; !head && i < image->section_count; i++) {
			const struct pe_section *section = &image->sections[i];

			if (!section->is_code)
				head = scan_section(nt, base + section->rva, section->size_bytes);
		}
	}
	free(image);
	return head;
}

/* The head of the list of page heaps in verifier.dll, or 0. A 32-bit process may have two of them. */
static uint64_t verifier_head(struct nt_walk *nt)
{
	struct target *target = nt->memory->target;
	struct snapshot modules;
	struct err err;
	uint64_t head = 0;

	snapshot_init(&modules);
	if (!target->ops->modules(target, &modules, &err)) {
		for (size_t i = 0; !head && i < modules.module_count; i++) {
			const struct module *module = &modules.modules[i];

			if (module->path && !strcasecmp(module_path_base(module->path), VERIFIER))
				head = scan_module(nt, module->base);
		}
	}
	snapshot_release(&modules);
	return head;
}

/* ---------------------------------------------------------------- together */

static int by_root(const void *a, const void *b)
{
	const struct page_root *x = a, *y = b;

	if (x->root != y->root)
		return x->root < y->root ? -1 : 1;
	/* A root's own address is a handle only when no other is known. */
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

/* Finds all _DPH_HEAP_ROOTs. Returns 0 or -ERR_NOMEM. The caller frees roots->list, in any case. */
static int page_roots_find(struct nt_walk *nt, struct page_roots *roots)
{
	const struct page_layout *layout = page_layout(nt->process->bits);
	uint64_t link;
	int rc = from_handles(nt, roots);

	if (rc)
		return rc;
	link = roots->count ? roots->list[0].root + layout->root_next : 0;
	if (!link && (nt->process->global_flag & (NT_FLAG_HPA | FLAG_VERIFIER)))
		link = verifier_head(nt);
	if (link)
		rc = from_list(nt, roots, link);
	sort_unique(roots);
	return rc;
}

/* How much of a block's memory nobody may touch, as far as is known: a page, and what is left of a unit of
 * address space (64 KiB) where blocks begin at whole ones. */
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

/* Claims what is committed of a block: not the page behind it that nobody may touch. */
static int claim(struct page_walk *page, uint64_t addr, uint64_t end)
{
	uint64_t bytes = end > addr ? end - addr : 1;

	bytes = (bytes + CLAIM_PAGE_BYTES - 1) / CLAIM_PAGE_BYTES * CLAIM_PAGE_BYTES;
	return claims_add(&page->nt->claims, addr, bytes);
}

/* A block's pages: those that may be touched, and with the one that nobody may. */
struct heap_pages {
	uint64_t addr, bytes, access_bytes, user, requested_bytes;
};

/*
 * The page that nobody may touch lies behind the program's bytes or, when the process asks for that,
 * before them; what may be touched is as much as is needed, in whole pages.
 */
static bool pages_fit(const struct page_walk *page, const struct heap_pages *pages)
{
	uint64_t space = page->layout->bits == 64 ? TARGET_SPACE_BYTES : (uint64_t)1 << 32;

	return pages->addr && pages->addr < space && pages->bytes <= space - pages->addr &&
	       pages->user >= pages->addr && pages->user - pages->addr <= pages->bytes &&
	       pages->requested_bytes <= pages->bytes - (pages->user - pages->addr) &&
	       pages->access_bytes <= pages->bytes && pages->requested_bytes <= pages->access_bytes;
}

/* The information right before the program's bytes says the same, if it is there to be read. */
static bool info_agrees(const struct page_walk *page, const struct heap_pages *pages)
{
	struct memory *memory = page->nt->memory;
	unsigned bits = page->layout->bits;
	struct page_block block;

	if (pages->user - pages->addr < page->layout->info_bytes ||
		!memory_at(
			memory, pages->user - page->layout->info_bytes, page->layout->info_bytes))
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
		return walk_broken(walk, node, "page heap block outside of its pages");
	if (pages.bytes - pages.access_bytes > GUARD_BYTES_MAX)
		walk_doubt(walk, node, "page heap block of more pages than it needs");
	if (!info_agrees(page, &pages))
		walk_doubt(walk, node, "page heap block without its information before it");
	rc = claim(page, pages.addr, pages.user + pages.requested_bytes);
	if (rc == -ERR_TARGET)
		return walk_broken(walk, node, "more blocks than memory"), 1;
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
		walk_broken(page->nt->walk, root, "page heap of another number of blocks");
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

/* Leaves of the heaps behind page heaps those that the PEB does not list, each once. */
static int drop_listed(struct nt_walk *nt)
{
	const struct nt_process *process = nt->process;
	size_t bytes = process->heap_count * sizeof(*process->heaps), kept = 0;
	uint64_t *listed = nt->behind_count && bytes ? malloc(bytes) : NULL;

	if (!nt->behind_count)
		return 0;
	if (bytes && !listed)
		return -ERR_NOMEM;
	for (size_t i = 0; listed && i < process->heap_count; i++)
		listed[i] = process->heaps[i];
	if (listed)
		qsort(listed, process->heap_count, sizeof(*listed), by_value);
	qsort(nt->behind, nt->behind_count, sizeof(*nt->behind), by_value);
	for (size_t i = 0; i < nt->behind_count; i++) {
		uint64_t addr = nt->behind[i];

		if ((!kept || nt->behind[kept - 1] != addr) &&
			!(listed && bsearch(&addr, listed, process->heap_count, sizeof(*listed),
					    by_value)))
			nt->behind[kept++] = addr;
	}
	nt->behind_count = kept;
	free(listed);
	return 0;
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
	return rc ? rc : drop_listed(nt);
}

void page_heaps_release(struct nt_walk *nt)
{
	free(nt->behind);
	nt->behind = NULL;
	nt->behind_count = nt->behind_cap = 0;
}

bool page_heap_knows(const struct nt_walk *nt, uint64_t addr)
{
	size_t low = nt->page_heap_first, high = low + nt->page_heap_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		uint64_t at = nt->walk->heaps[middle].addr;

		if (at == addr)
			return true;
		if (at < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

/* ---------------------------------------------------------------- before a block */

/* Whether both ends of the information say that a live block is there, and of which heap. */
static bool stamps_fit(const unsigned char *info, const struct page_layout *layout, bool *is_full)
{
	uint32_t start = bytes_u32(info), end = bytes_u32(info + layout->info_end);

	*is_full = start == PAGE_START_FULL;
	return *is_full ? end == PAGE_END_FULL : start == PAGE_START_LIGHT && end == PAGE_END_LIGHT;
}

bool page_block_is_damaged(struct memory *memory, unsigned bits, uint64_t user_addr)
{
	const struct page_layout *layout = page_layout(bits);
	const unsigned char *info = NULL;
	struct page_block block;

	if (user_addr >= layout->info_bytes)
		info = memory_at(memory, user_addr - layout->info_bytes, layout->info_bytes);
	if (!info || (bytes_u32(info) != PAGE_START_LIGHT &&
			     bytes_u32(info + layout->info_end) != PAGE_END_LIGHT))
		return false;
	return !page_block_parse(memory, bits, user_addr, &block) || block.is_full;
}

bool page_block_parse(
	struct memory *memory, unsigned bits, uint64_t user_addr, struct page_block *block)
{
	const struct page_layout *layout = page_layout(bits);
	const unsigned char *info;
	uint64_t requested;
	bool is_full;

	if (user_addr < layout->info_bytes)
		return false;
	info = memory_at(memory, user_addr - layout->info_bytes, layout->info_bytes);
	if (!info || !stamps_fit(info, layout, &is_full))
		return false;
	requested = bytes_ptr(info + layout->info_requested, bits);
	if (!bytes_ptr(info + layout->info_heap, bits) ||
		requested > bytes_ptr(info + layout->info_actual, bits) ||
		requested > TARGET_SPACE_BYTES)
		return false;
	*block = (struct page_block){.requested_bytes = requested,
		.record = bytes_ptr(info + layout->info_trace, bits),
		.is_full = is_full};
	return true;
}
