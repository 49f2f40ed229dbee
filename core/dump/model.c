/*
 * The snapshot in memory: building a snapshot, finding modules, ordering blocks, and parsing notes
 * about block contents.
 */
#include "core/dump/model.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/sorted.h"
#include "core/base/text.h"

const char *block_reach_name(enum block_reach reach)
{
	static const char *const names[] = {[BLOCK_HELD] = "held",
		[BLOCK_INTERIOR] = "interior",
		[BLOCK_LOST] = "lost",
		[BLOCK_LOST_WITH] = "lost-with"};

	return names[reach];
}

const char *container_kind_name(enum container_kind kind)
{
	static const char *const names[] = {
		[CONTAINER_SEGMENT] = "segment", [CONTAINER_VS] = "vs", [CONTAINER_LFH] = "lfh"};

	return names[kind];
}

void snapshot_init(struct snapshot *snapshot)
{
	*snapshot = (struct snapshot){0};
	arena_init(&snapshot->arena);
	stackset_init(&snapshot->stacks);
}

void snapshot_release(struct snapshot *snapshot)
{
	free(snapshot->modules);
	free(snapshot->heaps);
	free(snapshot->containers);
	free(snapshot->blocks);
	free(snapshot->sums);
	free(snapshot->reach);
	free(snapshot->lost);
	free(snapshot->stackless);
	free(snapshot->contents);
	free(snapshot->pointers);
	free(snapshot->warnings);
	stackset_release(&snapshot->stacks);
	arena_release(&snapshot->arena);
	snapshot_init(snapshot);
}

static void *item_add(void **items, size_t *cap, size_t *count, size_t item_bytes)
{
	char *item;

	array_grow(items, cap, *count, item_bytes);
	item = (char *)*items + (*count)++ * item_bytes;
	return memset(item, 0, item_bytes);
}

struct module *snapshot_add_module(struct snapshot *snapshot)
{
	return item_add((void **)&snapshot->modules, &snapshot->module_cap, &snapshot->module_count,
		sizeof(*snapshot->modules));
}

struct heap *snapshot_add_heap(struct snapshot *snapshot)
{
	return item_add((void **)&snapshot->heaps, &snapshot->heap_cap, &snapshot->heap_count,
		sizeof(*snapshot->heaps));
}

struct block *snapshot_add_block(struct snapshot *snapshot)
{
	return item_add((void **)&snapshot->blocks, &snapshot->block_cap, &snapshot->block_count,
		sizeof(*snapshot->blocks));
}

struct block_sum *snapshot_add_sum(struct snapshot *snapshot)
{
	return item_add((void **)&snapshot->sums, &snapshot->sum_cap, &snapshot->sum_count,
		sizeof(*snapshot->sums));
}

/* Name and kind of each heading, indexed by the heading's pseudo-address. */
static const char *const headings[][2] = {
	[HEAP_VIRTUAL] = {"VirtualAlloc", "virtual"},
	[HEAP_RESERVED] = {"VirtualAlloc reserved", "reserved"},
	[HEAP_MAPPED] = {"Mapped", "mapped"},
	[HEAP_STACKS] = {"Thread stacks", "stack"},
	/* in the order of enum tracer_handle_type */
	[HEAP_HANDLES_FIRST] = {"Handles: Event", "event"},
	{"Handles: File", "file"},
	{"Handles: Key", "key"},
	{"Handles: Mutant", "mutant"},
	{"Handles: Process", "process"},
	{"Handles: Section", "section"},
	{"Handles: Semaphore", "semaphore"},
	{"Handles: Thread", "thread"},
	{"Handles: Timer", "timer"},
	{"Handles: Token", "token"},
	{"Handles: other", "other"},
};

#define HEADINGS (sizeof(headings) / sizeof(*headings))

const char *heap_name(uint64_t addr)
{
	return addr < HEADINGS ? headings[addr][0] : NULL;
}

const char *heap_heading_kind(uint64_t addr)
{
	return addr < HEADINGS ? headings[addr][1] : NULL;
}

uint64_t heap_by_name(const char *name)
{
	for (uint64_t i = HEAP_VIRTUAL; i < HEADINGS; i++) {
		if (!headings[i][0])
			continue;
		if (!text_compare(name, headings[i][0]) || !text_compare(name, headings[i][1]))
			return i;
	}
	return 0;
}

static void add_warning(struct snapshot *snapshot, const char *format, va_list args)
{
	char text[400];
	const char **warning = item_add((void **)&snapshot->warnings, &snapshot->warning_cap,
		&snapshot->warning_count, sizeof(*warning));

	vsnprintf(text, sizeof(text), format, args);
	*warning = arena_text(&snapshot->arena, text, strlen(text));
}

static const char *copy_text(struct snapshot *snapshot, const char *text)
{
	return text ? arena_text(&snapshot->arena, text, strlen(text)) : NULL;
}

void snapshot_copy_module(struct snapshot *snapshot, const struct module *module)
{
	struct module *added = snapshot_add_module(snapshot);

	*added = *module;
	added->path = copy_text(snapshot, module->path);
	added->pdb = copy_text(snapshot, module->pdb);
	added->pdb_guid = copy_text(snapshot, module->pdb_guid);
}

void snapshot_warn(struct snapshot *snapshot, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add_warning(snapshot, format, args);
	va_end(args);
}

void snapshot_lacks(struct snapshot *snapshot, const char *format, ...)
{
	va_list args;

	snapshot->missing_count++;
	va_start(args, format);
	add_warning(snapshot, format, args);
	va_end(args);
}

struct block_totals snapshot_total(const struct snapshot *snapshot)
{
	struct block_totals total = {.block_count = snapshot->block_count};

	for (size_t i = 0; i < snapshot->block_count; i++) {
		total.requested_bytes += snapshot->blocks[i].requested_bytes;
		total.overhead_bytes += snapshot->blocks[i].overhead_bytes;
	}
	for (size_t i = 0; i < snapshot->sum_count; i++) {
		const struct block_sum *sum = &snapshot->sums[i];

		block_totals_add(&total, &(struct block_totals){sum->block_count,
						 sum->requested_bytes, sum->overhead_bytes});
	}
	for (size_t i = 0; i < snapshot->heap_count; i++)
		block_totals_add(&total, &snapshot->heaps[i].stackless);
	return total;
}

static int by_base(const void *a, const void *b)
{
	const struct module *x = a, *y = b;

	return x->base < y->base ? -1 : x->base > y->base;
}

void modules_sort(struct module *modules, size_t count)
{
	if (count)
		qsort(modules, count, sizeof(*modules), by_base);
}

const struct module *module_at(const struct module *modules, size_t count, uint64_t addr)
{
	size_t below =
		sorted_up_to(modules, count, sizeof(*modules), offsetof(struct module, base), addr);

	if (!below || addr - modules[below - 1].base >= modules[below - 1].size_bytes)
		return NULL;
	return &modules[below - 1];
}

const struct module *module_of_return(const struct module *modules, size_t count, uint64_t addr)
{
	const struct module *module = addr ? module_at(modules, count, addr - 1) : NULL;

	return module ? module : module_at(modules, count, addr);
}

/* Returns true if `path` begins with a double-byte character of an East Asian code page. Its second
 * byte may have the value of a backslash. But an accented letter of another code page, followed by
 * a real backslash, has the same two bytes. A name after a real backslash usually begins with an
 * ASCII letter, so the backslash is real unless a non-ASCII byte or '.' follows. */
static bool is_double_byte(const char *path)
{
	unsigned char first = (unsigned char)path[0], second = (unsigned char)path[1];

	if (first <= 0x80 || first == 0xff || second < 0x40 || second == 0x7f)
		return false;
	return second != '\\' || (unsigned char)path[2] >= 0x80 || path[2] == '.';
}

const char *module_path_base(const char *path)
{
	const char *base = path;
	bool is_utf8 = text_is_utf8(path, strlen(path));

	for (; *path; path++) {
		if (!is_utf8 && is_double_byte(path))
			path++;
		else if (*path == '/' || *path == '\\')
			base = path + 1;
	}
	return base;
}

void module_list_init(struct module_list *list, struct arena *arena)
{
	*list = (struct module_list){.arena = arena};
}

void module_list_release(struct module_list *list)
{
	free(list->items);
	free(list->notes);
	module_list_init(list, NULL);
}

/* Copies a string into the list's arena. Returns NULL if a limit is exceeded. */
static const char *list_text(struct module_list *list, const char *text, size_t len)
{
	list->bytes += len;
	if (len > MODULE_TEXT_MAX || list->bytes > MODULE_LIST_MAX)
		return NULL;
	return arena_text(list->arena, text, len);
}

int module_list_add(
	struct module_list *list, uint64_t base, uint64_t size_bytes, const char *path, size_t len)
{
	const char *copy = list_text(list, path, len);

	list->bytes += sizeof(*list->items);
	if (!copy)
		return -ERR_BAD_LINE;
	array_grow((void **)&list->items, &list->cap, list->count, sizeof(*list->items));
	list->items[list->count++] =
		(struct module){.base = base, .size_bytes = size_bytes, .path = copy};
	return 0;
}

/* Copies the value of `key` to `*copy`, or sets `*copy` to NULL if `key` is absent. Returns 0 or
 * -ERR_BAD_LINE. */
static int copy_value(
	struct module_list *list, const struct kv *pairs, const char *key, const char **copy)
{
	const char *value = kv_get(pairs, key);

	*copy = value ? list_text(list, value, strlen(value)) : NULL;
	return value && !*copy ? -ERR_BAD_LINE : 0;
}

int module_list_note(struct module_list *list, const struct kv *pairs)
{
	struct module said = {.has_identity = true};
	int rc = list->bytes > MODULE_LIST_MAX ? -ERR_BAD_LINE :
						 kv_get_number(pairs, "base", 16, &said.base);

	list->bytes += sizeof(said);
	if (!rc)
		rc = kv_get_number(pairs, "at", 16, &said.unloaded_at);
	if (!rc)
		rc = kv_get_u32(pairs, "timestamp", 16, &said.timestamp);
	if (!rc)
		rc = kv_get_u32(pairs, "checksum", 16, &said.checksum);
	if (!rc)
		rc = kv_get_u32(pairs, "age", 16, &said.pdb_age);
	if (!rc)
		rc = copy_value(list, pairs, "pdb", &said.pdb);
	if (!rc)
		rc = copy_value(list, pairs, "guid", &said.pdb_guid);
	if (rc)
		return rc;
	array_grow((void **)&list->notes, &list->note_cap, list->note_count, sizeof(*list->notes));
	list->notes[list->note_count++] = said;
	return 0;
}

/* Orders by several fields, because qsort() orders equal items differently in different C
 * libraries. */
static int entries_by_base(const void *a, const void *b)
{
	const struct module *x = a, *y = b;

	if (x->base != y->base)
		return x->base < y->base ? -1 : 1;
	if (x->size_bytes != y->size_bytes)
		return x->size_bytes < y->size_bytes ? -1 : 1;
	if (x->timestamp != y->timestamp)
		return x->timestamp < y->timestamp ? -1 : 1;
	return x->path && y->path ? strcmp(x->path, y->path) : 0;
}

void module_list_finish(struct module_list *list)
{
	size_t at = 0;

	if (list->count)
		qsort(list->items, list->count, sizeof(*list->items), entries_by_base);
	if (list->note_count)
		qsort(list->notes, list->note_count, sizeof(*list->notes), entries_by_base);
	for (size_t i = 0; i < list->count; i++) {
		struct module *module = &list->items[i];
		struct module plain = *module;

		while (at < list->note_count && list->notes[at].base < module->base)
			at++;
		if (at == list->note_count)
			break;
		if (list->notes[at].base != module->base)
			continue;
		*module = list->notes[at];
		module->size_bytes = plain.size_bytes;
		module->path = plain.path;
	}
}

/*
 * A merge sort of spans, which are runs of blocks that are already in order. Walkers find blocks in
 * ascending order of address, but one type of block at a time. So there are few spans, and merging
 * splits them into few pieces. The sort costs little more than one pass over the blocks, and needs
 * almost no memory.
 */

struct block_spans {
	const struct block *blocks;
	struct block_span *list;
	size_t count, cap;
};

static bool is_before(const struct block *a, const struct block *b)
{
	return a->heap != b->heap ? a->heap < b->heap : a->addr < b->addr;
}

static int add_span(struct block_spans *spans, size_t first, size_t end)
{
	if (array_try_grow((void **)&spans->list, &spans->cap, spans->count, sizeof(*spans->list)))
		return -ERR_NOMEM;
	spans->list[spans->count++] = (struct block_span){first, end};
	return 0;
}

/* Returns true if `block` comes before `limit`. If `equal` is set, also returns true if both have
 * the same place in the order. */
static bool is_part(const struct block *block, const struct block *limit, bool equal)
{
	return equal ? !is_before(limit, block) : is_before(block, limit);
}

/* Returns the end of the leading part of a span for which is_part() is true; the part has at least
 * one block. Doubles the search step each time, because most parts are short. */
static size_t part_end(const struct block *blocks, const struct block_span *span,
	const struct block *limit, bool equal)
{
	size_t low = span->first, high, step = 1;

	for (; step < span->end - low && is_part(&blocks[low + step], limit, equal); step *= 2)
		low += step;
	high = step < span->end - low ? low + step : span->end;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (is_part(&blocks[middle], limit, equal))
			low = middle;
		else
			high = middle;
	}
	return high;
}

/* Merges the spans in [left, right) with those in [right, end), and appends the result. The input
 * spans are consumed. */
static int merge(struct block_spans *to, struct block_span *left, struct block_span *right,
	struct block_span *end)
{
	const struct block *blocks = to->blocks;
	const struct block_span *left_end = right;
	int rc = 0;

	while (!rc && left < left_end && right < end) {
		bool is_right = is_before(&blocks[right->first], &blocks[left->first]);
		struct block_span **from = is_right ? &right : &left;
		size_t limit = is_right ? left->first : right->first;
		size_t until = part_end(blocks, *from, &blocks[limit], !is_right);

		rc = add_span(to, (*from)->first, until);
		(*from)->first = until;
		*from += until == (*from)->end;
	}
	for (; !rc && left < left_end; left++)
		rc = add_span(to, left->first, left->end);
	for (; !rc && right < end; right++)
		rc = add_span(to, right->first, right->end);
	return rc;
}

/* Returns the end of the run of ordered spans that starts at index `at`. */
static size_t ordered_end(const struct block_spans *spans, size_t at)
{
	while (++at < spans->count) {
		size_t first = spans->list[at].first, last = spans->list[at - 1].end - 1;

		if (is_before(&spans->blocks[first], &spans->blocks[last]))
			break;
	}
	return at;
}

/* Merges each ordered run of spans with the run after it. The result is in *from. */
static int merge_pairs(struct block_spans *from, struct block_spans *to)
{
	struct block_spans merged = *to;
	int rc = 0;

	merged.count = 0;
	for (size_t at = 0, middle, end; !rc && at < from->count; at = end) {
		middle = ordered_end(from, at);
		end = middle < from->count ? ordered_end(from, middle) : middle;
		rc = merge(&merged, from->list + at, from->list + middle, from->list + end);
	}
	*to = *from;
	*from = merged;
	return rc;
}

int block_order(const struct snapshot *snapshot, struct block_span **spans, size_t *count)
{
	const struct block *blocks = snapshot->blocks;
	struct block_spans from = {.blocks = blocks}, to = {.blocks = blocks};
	int rc = 0;

	for (size_t i = 0, end; !rc && i < snapshot->block_count; i = end) {
		for (end = i + 1; end < snapshot->block_count; end++) {
			if (blocks[end].heap != blocks[i].heap ||
				blocks[end].addr < blocks[end - 1].addr)
				break;
		}
		rc = add_span(&from, i, end);
	}
	while (!rc && from.count && ordered_end(&from, 0) < from.count)
		rc = merge_pairs(&from, &to);
	free(to.list);
	if (rc)
		free(from.list);
	*spans = rc ? NULL : from.list;
	*count = rc ? 0 : from.count;
	return rc;
}

/* Returns 1 - exp(-x) for x >= 0, accurate to a few units in the last place. Let e(x) = exp(-x) -
 * 1. For small x, sums the series of e(x). For larger x, uses e(2x) = e(x) * (e(x) + 2)
 * repeatedly. */
static double chance(double x)
{
	double sum = 0, term;
	unsigned halvings = 0;

	if (x > 64)
		return 1;
	while (x > 0.25) {
		x /= 2;
		halvings++;
	}
	term = -x;
	for (int i = 2; i < 20; i++) {
		sum += term;
		term *= -x / i;
	}
	while (halvings--)
		sum *= sum + 2;
	return -sum;
}

double block_sample_weight(uint64_t requested_bytes, uint64_t sample_bytes)
{
	/* A block of 0 bytes is sampled as if it had 1 byte. */
	double bytes = requested_bytes ? (double)requested_bytes : 1;

	return 1 / chance(bytes / (double)sample_bytes);
}

/* ---------------------------------------------------------------- contents of blocks */

static int digit_value(char digit)
{
	return digit >= '0' && digit <= '9' ? digit - '0' :
	       digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 :
					      -1;
}

int content_note_read(const struct kv *kv, struct content_note *note)
{
	const char *data = kv_get(kv, "data");
	uint64_t bits = 64, group = 0;
	const struct kv_number numbers[] = {
		{"addr", 16, &note->content.addr},
		{"bytes", 10, &note->content.requested_bytes},
		{"bits", 10, &bits},
		{"group", 10, &group},
	};

	*note = (struct content_note){.stack = kv_get(kv, "stack")};
	if (!data || !note->stack || strlen(data) % 2 || strlen(data) > 2 * CONTENT_BYTES_MAX ||
		kv_get_numbers(kv, numbers, 4) || (bits != 32 && bits != 64) || group > UINT32_MAX)
		return -ERR_BAD_LINE;
	note->content.group = (uint32_t)group;
	note->bits = (unsigned)bits;
	for (; *data; data += 2) {
		int high = digit_value(data[0]), low = digit_value(data[1]);

		if (high < 0 || low < 0)
			return -ERR_BAD_LINE;
		note->content.bytes[note->content.len++] = (unsigned char)(high << 4 | low);
	}
	return 0;
}

uint32_t creator_note_read(const struct kv *kv, uint64_t frames[CREATOR_FRAMES_MAX])
{
	const char *text = kv_get(kv, "creator");
	uint32_t count = 0;

	while (text && *text) {
		const char *start = text;
		uint64_t addr = 0;

		for (; digit_value(*text) >= 0; text++)
			addr = addr << 4 | (uint64_t)digit_value(*text);
		if (text == start || text - start > 16 || (*text && *text != ' ') ||
			count == CREATOR_FRAMES_MAX)
			return 0;
		frames[count++] = addr;
		text += *text == ' ';
	}
	return count;
}

uint64_t content_word(const unsigned char *bytes, size_t len, unsigned bits)
{
	uint64_t value = 0;

	for (size_t i = len < bits / 8 ? len : bits / 8; i--;)
		value = value << 8 | bytes[i];
	return value;
}
