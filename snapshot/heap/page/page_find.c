#include "snapshot/heap/page/page_heap.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/buf.h"
#include "core/pe.h"

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
	if (array_grow((void **)&roots->list, &roots->cap, roots->count, sizeof(*roots->list)))
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

			if (module->path && !strcasecmp(path_base(module->path), VERIFIER))
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

int page_roots_find(struct nt_walk *nt, struct page_roots *roots)
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
