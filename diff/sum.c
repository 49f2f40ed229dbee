#include "diff/sum.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/date.h"
#include "core/dump.h"
#include "core/module_list.h"
#include "core/table.h"

#define MEMO_WAYS 4 /* a cache line of them */
#define MEMO_BITS 14 /* 1 MiB: what a processor keeps close */
#define MEMO_MIX UINT64_C(0x9e3779b97f4a7c15) /* spreads ids: its upper bits depend on all */

/* What a short id stands for: saves most searches in the stack set. */
struct memo {
	uint64_t head; /* the id's first 8 bytes; 0: nothing is known */
	uint32_t tail; /* and the next 4, zeros behind the end */
	uint32_t stack; /* the first one under this id */
};

/* What only the reading needs. */
struct reader {
	struct sums *sums;
	struct err *err;
	struct memo *memo;
	struct module_list modules;
	struct table cells; /* by what cell_key() makes */
	size_t cell_cap, heap_cap;
	uint32_t heap; /* of the entries that come; STACK_NONE: no heading was seen */
};

void sums_init(struct sums *sums)
{
	*sums = (struct sums){0};
	arena_init(&sums->arena);
	stackset_init(&sums->stacks);
}

void sums_release(struct sums *sums)
{
	free(sums->modules);
	free(sums->cells);
	free(sums->heaps);
	free(sums->texts);
	symbol_names_free(sums->names);
	stackset_release(&sums->stacks);
	arena_release(&sums->arena);
	sums_init(sums);
}

static const char *keep(struct sums *sums, const char *text)
{
	return text ? arena_text(&sums->arena, text, strlen(text)) : NULL;
}

static void census_add(struct census *to, const struct census *more)
{
	to->block_count += more->block_count;
	to->requested_bytes += more->requested_bytes;
	to->overhead_bytes += more->overhead_bytes;
}

/*
 * Counts to the total first: all other sums are parts of it, so that none can overflow when it
 * does not. The limit leaves room to subtract one total from another with a sign.
 */
static int count(struct sums *sums, struct census *to, const struct census *more)
{
	struct census total = sums->total;

	if (more->block_count > INT64_MAX - total.block_count ||
		more->requested_bytes > INT64_MAX - total.requested_bytes - total.overhead_bytes)
		return -ERR_BAD_LINE;
	total.block_count += more->block_count;
	total.requested_bytes += more->requested_bytes;
	if (more->overhead_bytes > INT64_MAX - total.requested_bytes - total.overhead_bytes)
		return -ERR_BAD_LINE;
	total.overhead_bytes += more->overhead_bytes;
	sums->total = total;
	census_add(to, more);
	return 0;
}

static int read_module(void *ctx, uint64_t base, uint64_t size_bytes, const char *path, size_t len)
{
	return module_list_add(&((struct reader *)ctx)->modules, base, size_bytes, path, len);
}

static int heap_put(struct reader *reader, uint64_t addr, uint32_t *index)
{
	struct sums *sums = reader->sums;

	for (size_t i = 0; i < sums->heap_count; i++) {
		if (sums->heaps[i] == addr) {
			*index = (uint32_t)i;
			return 0;
		}
	}
	if (array_grow((void **)&sums->heaps, &reader->heap_cap, sums->heap_count, sizeof(addr)))
		return -ERR_NOMEM;
	*index = (uint32_t)sums->heap_count;
	sums->heaps[sums->heap_count++] = addr;
	return 0;
}

static int read_heap(void *ctx, uint64_t addr)
{
	struct reader *reader = ctx;

	return heap_put(reader, addr, &reader->heap);
}

/* The cell's sums, or NULL: out of memory. */
static struct census *cell_of(struct reader *reader, uint32_t stack, uint32_t heap, bool is_bare)
{
	struct sums *sums = reader->sums;
	uint32_t key[3] = {stack, heap, is_bare};
	uint64_t *known = table_find(&reader->cells, key, sizeof(key));

	if (known)
		return &sums->cells[*known].sums;
	if (array_grow((void **)&sums->cells, &reader->cell_cap, sums->cell_count,
		    sizeof(*sums->cells)) ||
		table_add(&reader->cells, key, sizeof(key), sums->cell_count))
		return NULL;
	sums->cells[sums->cell_count] =
		(struct cell){.stack = stack, .heap = heap, .is_bare = is_bare};
	return &sums->cells[sums->cell_count++].sums;
}

/* The memo of an id, for the caller to fill in when it is not known; NULL: the id is too long. */
static struct memo *memo_at(struct reader *reader, const char *id, size_t len, bool *is_known)
{
	struct memo wanted = {0}, *memo;
	size_t way = 0;

	*is_known = false;
	if (len > sizeof(wanted.head) + sizeof(wanted.tail))
		return NULL;
	memcpy(&wanted.head, id, len < 8 ? len : 8);
	memcpy(&wanted.tail, id + 8, len < 8 ? 0 : len - 8);
	memo = reader->memo +
	       MEMO_WAYS * ((wanted.head ^ wanted.tail) * MEMO_MIX >> (64 - MEMO_BITS));
	for (; way < MEMO_WAYS && memo[way].head; way++) {
		if (memo[way].head == wanted.head && memo[way].tail == wanted.tail) {
			*is_known = true;
			return &memo[way];
		}
	}
	memo += way < MEMO_WAYS ? way : wanted.head % MEMO_WAYS;
	*memo = wanted;
	return memo;
}

static bool same_stack(const struct stack *known, const struct stack *stack)
{
	return known->frames && !known->alias_count && !stack->alias_count &&
	       known->frame_count == stack->frame_count &&
	       !memcmp(known->frames, stack->frames, stack->frame_count * sizeof(*stack->frames));
}

/* As stackset_put(). */
static int find_stack(struct reader *reader, const struct dump_entry *entry, uint32_t *index)
{
	struct stackset *stacks = &reader->sums->stacks;
	struct stack bare = {.id = entry->stack.id, .same_id = STACK_NONE};
	bool is_known;
	struct memo *memo = memo_at(reader, entry->stack.id, entry->id_len, &is_known);
	int rc;

	if (is_known &&
		(!entry->stack.frames || same_stack(&stacks->stacks[memo->stack], &entry->stack))) {
		*index = memo->stack;
		return 0;
	}
	rc = stackset_put(stacks, &entry->stack, entry->id_len, index);
	if (!rc && memo && !is_known)
		rc = stackset_put(stacks, &bare, entry->id_len, &memo->stack);
	return rc;
}

static int read_entry(void *ctx, const struct dump_entry *entry)
{
	struct reader *reader = ctx;
	struct sums *sums = reader->sums;
	struct census more = {entry->block_count, entry->requested_bytes, entry->overhead_bytes};
	struct census *to;
	uint32_t index;

	if (find_stack(reader, entry, &index))
		return -ERR_NOMEM;
	if (reader->heap == STACK_NONE && heap_put(reader, 0, &reader->heap))
		return -ERR_NOMEM;
	to = cell_of(reader, index, reader->heap, !entry->stack.frames);
	if (!to)
		return -ERR_NOMEM;
	if (count(sums, to, &more))
		return err_set(reader->err, ERR_BAD_LINE, sums->path,
			"its blocks add up to more than 8 EiB");
	return 0;
}

/* Entries without a stack belong to the one stack of their id; this is known only at the end. */
static int bare_settle(struct reader *reader)
{
	struct sums *sums = reader->sums;
	size_t count = sums->cell_count, kept = 0;

	for (size_t i = 0; i < count; i++) {
		struct cell *cell = &sums->cells[i];
		struct census more = cell->sums, *to;

		if (!cell->is_bare || sums->stacks.stacks[cell->stack].same_id != STACK_NONE)
			continue;
		cell->sums = (struct census){0};
		to = cell_of(reader, cell->stack, cell->heap, false);
		if (!to)
			return -ERR_NOMEM;
		census_add(to, &more);
	}
	for (size_t i = 0; i < sums->cell_count; i++) {
		if (sums->cells[i].sums.block_count)
			sums->cells[kept++] = sums->cells[i];
	}
	sums->cell_count = kept;
	return 0;
}

static int warn(struct sums *sums, const char *text)
{
	if (sums->warning_count < WARNINGS_MAX) {
		const char *own = keep(sums, text);

		if (!own)
			return -ERR_NOMEM;
		sums->warnings[sums->warning_count] = own;
	}
	sums->warning_count++;
	return 0;
}

static int note_warning(struct reader *reader, const struct kv *kv)
{
	const char *text = kv_get(kv, "text");

	return text ? warn(reader->sums, text) : 0;
}

/* hsnap says in a warning of its own, before the heaps, which ones it could not walk. */
static int warn_unwalked(struct sums *sums, const struct kv *kv)
{
	uint64_t addr = 0, unwalked = 0;
	int rc = kv_get_number(kv, "unwalked", 10, &unwalked);
	char text[80];

	if (!rc)
		rc = kv_get_number(kv, "addr", 16, &addr);
	if (rc || !unwalked)
		return rc;
	snprintf(text, sizeof(text), "heap %" PRIX64 " ", addr);
	for (size_t i = 0; i < sums->warning_count && i < WARNINGS_MAX; i++) {
		if (!strncmp(sums->warnings[i], text, strlen(text)))
			return 0;
	}
	snprintf(text, sizeof(text), "heap %" PRIX64 " was not walked: only traced blocks count",
		addr);
	return warn(sums, text);
}

static int note_dump(struct reader *reader, const struct kv *kv)
{
	const char *time = kv_get(kv, "time");

	return time ? date_parse(time, &reader->sums->time_ms) : 0;
}

static int note_process(struct reader *reader, const struct kv *kv)
{
	const char *start = kv_get(kv, "start");
	int rc = kv_get_u32(kv, "id", 10, &reader->sums->pid);

	if (!rc && start)
		rc = date_parse(start, &reader->sums->start_ms);
	reader->sums->image = keep(reader->sums, kv_get(kv, "image"));
	return rc;
}

static int note_module(struct reader *reader, const struct kv *kv)
{
	return module_list_note(&reader->modules, kv);
}

static int note_heap(struct reader *reader, const struct kv *kv)
{
	struct census more = {0}, *to;
	uint64_t addr = 0;
	uint32_t heap;
	int rc = kv_get_number(kv, "stackless-blocks", 10, &more.block_count);

	if (!rc)
		rc = kv_get_number(kv, "stackless-requested", 10, &more.requested_bytes);
	if (!rc)
		rc = kv_get_number(kv, "stackless-overhead", 10, &more.overhead_bytes);
	if (!rc)
		rc = kv_get_number(kv, "addr", 16, &addr);
	if (!rc)
		rc = heap_put(reader, addr, &heap);
	if (!rc && more.block_count) {
		to = cell_of(reader, STACK_NONE, heap, false);
		rc = to ? count(reader->sums, to, &more) : -ERR_NOMEM;
	}
	return rc ? rc : warn_unwalked(reader->sums, kv);
}

static int note_name(struct reader *reader, const struct kv *kv)
{
	return symbol_names_note(reader->sums->names, kv);
}

static int read_note(void *ctx, const char *kind, const struct kv *kv)
{
	static const struct {
		const char *kind;
		int (*read)(struct reader *reader, const struct kv *kv);
	} notes[] = {
		{"dump", note_dump},
		{"process", note_process},
		{"warning", note_warning},
		{"module", note_module},
		{"heap", note_heap},
		{"name", note_name},
	};

	for (size_t i = 0; i < sizeof(notes) / sizeof(*notes); i++) {
		if (!strcmp(kind, notes[i].kind))
			return notes[i].read(ctx, kv);
	}
	return 0;
}

int sums_read(struct sums *sums, const char *path, struct err *err)
{
	struct reader reader = {.sums = sums, .err = err, .heap = STACK_NONE};
	struct dump_sink sink = {.ctx = &reader,
		.module = read_module,
		.heap = read_heap,
		.entry = read_entry,
		.note = read_note};
	int rc;

	sums->path = keep(sums, path);
	sums->names = symbol_names_new();
	reader.memo = calloc((size_t)MEMO_WAYS << MEMO_BITS, sizeof(*reader.memo));
	if (!sums->path || !sums->names || !reader.memo) {
		free(reader.memo);
		return err_set(err, ERR_NOMEM, path, NULL);
	}
	module_list_init(&reader.modules, &sums->arena);
	table_init(&reader.cells);
	rc = dump_scan_file(path, &sink, err);
	sums->is_cut = rc == -ERR_CUT;
	module_list_finish(&reader.modules);
	sums->modules = reader.modules.items;
	sums->module_count = reader.modules.count;
	reader.modules.items = NULL;
	module_list_release(&reader.modules);
	free(reader.memo);
	if ((!rc || sums->is_cut) && bare_settle(&reader))
		rc = err_set(err, ERR_NOMEM, path, NULL);
	table_release(&reader.cells);
	return rc;
}
