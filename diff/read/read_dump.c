/* Reading a dump into sums: callbacks of the scanner, and final steps that need the whole dump. */
#include "diff/read/dump_sums.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "diff/read/frame.h"
#include "diff/read/read_dump.h"

#define THREADS_MAX 8
/* small enough for a core's own cache, together with other data in use */
#define PIECE_BYTES ((uint64_t)512 << 10)
#define SETTLED_AT_ONCE 64 /* in sums */
#define PIECES_MIN 8 /* minimum number of pieces for which threads are worthwhile */

void sums_init(struct dump_sums *sums)
{
	*sums = (struct dump_sums){0};
	arena_init(&sums->arena);
	arena_init(&sums->module_list.texts);
	stackset_init(&sums->stacks);
}

void sums_release(struct dump_sums *sums)
{
	if (!sums->module_list.are_shared)
		free(sums->module_list.items);
	free(sums->shared);
	free(sums->same_id);
	free(sums->cells);
	free(sums->packed_cells);
	free(sums->heaps);
	free(sums->heap_facts);
	free(sums->reaches);
	free(sums->single.blocks);
	free(sums->single.listed);
	free(sums->single.containers);
	free(sums->single.contents);
	free(sums->single.pointers);
	free(sums->texts);
	symbol_names_free(sums->names);
	stackset_release(&sums->stacks);
	arena_release(&sums->arena);
	arena_release(&sums->module_list.texts);
	sums_init(sums);
}

/* Warns about the first name that is not UTF-8. */
static void check_name(struct sum_reader *reader, const char *name, size_t len)
{
	if (reader->has_code_page || text_is_utf8(name, len))
		return;
	reader->has_code_page = true;
	sums_warn(reader->sums, NAMES_NOT_UTF8);
}

static int read_module(void *ctx, uint64_t base, uint64_t size_bytes, const char *path, size_t len)
{
	struct sum_reader *reader = ctx;

	check_name(reader, path, len);
	return module_list_add(&reader->modules, base, size_bytes, path, len);
}

/* Returns the number of a frame's text. */
static uint64_t text_number(struct sum_reader *reader, const struct dump_name *name)
{
	struct dump_sums *sums = reader->sums;
	const uint64_t *known = table_find(&reader->texts, name->text, name->len);

	if (known)
		return *known;
	check_name(reader, name->text, name->len);
	array_grow(
		(void **)&sums->texts, &reader->text_cap, sums->text_count, sizeof(*sums->texts));
	table_add(&reader->texts, name->text, name->len, sums->text_count);
	sums->texts[sums->text_count] = arena_text(&sums->arena, name->text, name->len);
	return sums->text_count++;
}

static int read_heap(void *ctx, uint64_t addr)
{
	return sum_reader_heap(ctx, addr, BLOCK_HELD);
}

static void list_block(
	struct sum_reader *reader, const struct dump_entry *entry, uint32_t stack, bool is_bare)
{
	struct dump_sums *sums = reader->sums;

	array_grow((void **)&sums->single.listed, &reader->listed_cap, sums->single.listed_count,
		sizeof(*sums->single.listed));
	sums->single.listed[sums->single.listed_count++] = (struct listed_block){
		entry->addr, entry->requested_bytes, stack, 2 * reader->tally.heap + is_bare};
}

/* Finds the cells of listed blocks. Called when cells no longer change. */
static void listed_resolve(struct dump_sums *sums)
{
	struct u64map cells[2]; /* indexed by is_bare */

	u64map_init(&cells[0]);
	u64map_init(&cells[1]);
	for (uint32_t i = 0; i < sums->cell_count; i++) {
		const struct stack_total *cell = &sums->cells[i];
		uint32_t number = i;

		u64map_add(
			&cells[cell->is_bare], (uint64_t)cell->stack << 32 | cell->heap, &number);
	}
	for (size_t i = 0; i < sums->single.listed_count; i++) {
		struct listed_block *block = &sums->single.listed[i];
		bool is_bare =
			block->heap % 2 && sums->stacks.stacks[block->cell].same_id != STACK_NONE;
		uint64_t key = (uint64_t)block->cell << 32 | block->heap / 2;

		block->cell = CELL_NONE;
		u64map_find(&cells[is_bare], key, &block->cell);
	}
	u64map_release(&cells[0]);
	u64map_release(&cells[1]);
}

static int by_stack(const void *a, const void *b)
{
	const struct dump_content *x = a, *y = b;
	int order = strcmp(x->stack, y->stack);

	if (order)
		return order;
	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->pointer_at < y->pointer_at ? -1 : x->pointer_at > y->pointer_at;
}

static int read_entry(void *ctx, const struct dump_entry *entry)
{
	struct sum_reader *reader = ctx;
	struct single_blocks *single = &reader->sums->single;
	uint64_t frames[DUMP_FRAMES_MAX];
	const bool is_wanted = size_limits_has(&single->sizes, entry->requested_bytes);
	struct pool_entry own = {.stack = entry->stack,
		.id_len = entry->id_len,
		.sums = {entry->block_count, entry->requested_bytes, entry->overhead_bytes}};
	int rc = sum_reader_total(reader, &own.sums);

	if (rc)
		return rc;
	if (entry->name_count) { /* the entry's frames are texts */
		for (uint32_t i = 0; i < entry->name_count; i++)
			frames[i] = text_number(reader, &entry->names[i]);
		own.stack.frames = frames;
		own.stack.frame_count = entry->name_count;
		own.stack.is_named = true;
	}
	if (!entry->addr)
		single->has_unlisted = true;
	if (!is_wanted) /* later entries may refer to its stack */
		own.sums = (struct block_totals){0};
	shared_stacks_entries(&reader->pool, &own, 1, reader->tally.heap, false);
	if (single->wants_listed && is_wanted && entry->addr)
		list_block(reader, entry, own.number, !own.stack.frames);
	return 0;
}

/* Returns true if each entry is needed, so that read_plain() cannot add up several at once. */
static bool needs_entries(const struct dump_sums *sums)
{
	return sums->single.wants_listed || sums->single.sizes.is_limited;
}

static const char *read_plain(
	void *ctx, const char *at, const char *end, struct dump_progress *progress)
{
	struct sum_reader *reader = ctx;
	struct dump_progress plain = {0};

	at = tally_plain(&reader->tally, at, end, &plain);
	progress->line_count += plain.line_count;
	block_totals_add(&progress->seen, &plain.seen);
	/* An entry has less than 2^33 bytes, so the sum of one part of the file cannot overflow.
	 * The dump's total can. */
	if (sum_reader_add(&reader->sums->total, &plain.seen))
		reader->is_over = true;
	return at;
}

void sums_add_skipped(struct dump_sums *sums, const struct err *why)
{
	const char *line = strrchr(why->place, ':'),
		   *reason = why->detail[0] ? why->detail : "malformed";
	size_t number = sums->quality.warning_count;
	char text[sizeof(why->detail) + 60];

	snprintf(text, sizeof(text), "line %.20s was left out: %s", line ? line + 1 : "?", reason);
	sums->quality.skip_count++;
	sums_warn(sums, text);
	if (number < WARNINGS_MAX)
		sums->quality.left_out[number] =
			(struct left_out){arena_text(&sums->arena, why->place, strlen(why->place)),
				sums->quality.warnings[number] + strlen(text) - strlen(reason)};
}

static int read_skipped(void *ctx, const struct err *why)
{
	struct sum_reader *reader = ctx;

	sums_add_skipped(reader->sums, why);
	return 0;
}

/* Handles bare entries, which have an id but no stack. If the id has exactly one stack in the dump,
 * adds the sums of the bare entries to that stack. */
static void bare_resolve(struct sum_reader *reader)
{
	struct dump_sums *sums = reader->sums;
	struct stack_total settled[SETTLED_AT_ONCE];
	size_t count = sums->cell_count, settled_count = 0;

	for (size_t i = 0; i < count; i++) {
		struct stack_total *cell = &sums->cells[i];

		if (cell->is_bare && sums->stacks.stacks[cell->stack].same_id == STACK_NONE) {
			settled[settled_count] = *cell;
			settled[settled_count++].is_bare = false;
			cell->sums = (struct block_totals){0};
		}
		if (settled_count == SETTLED_AT_ONCE || i + 1 == count) {
			shared_stacks_count(&reader->pool, settled, settled_count, false);
			settled_count = 0;
		}
	}
	count = sums->cell_count;
	sums->cell_count = 0;
	for (size_t i = 0; i < count; i++) {
		const struct block_totals *cell = &sums->cells[i].sums;

		if (cell->block_count || cell->requested_bytes || cell->overhead_bytes)
			sums->cells[sums->cell_count++] = sums->cells[i];
	}
}

/* Returns true if a cell exceeds the total. In that case, the file changed while it was read:
 * entries were subtracted that had never been added. */
static bool has_nonsense(const struct dump_sums *sums)
{
	for (size_t i = 0; i < sums->cell_count; i++) {
		const struct block_totals *cell = &sums->cells[i].sums;

		if (cell->block_count > sums->total.block_count ||
			cell->requested_bytes > sums->total.requested_bytes ||
			cell->overhead_bytes > sums->total.overhead_bytes)
			return true;
	}
	return false;
}

/* Warns if fewer than a tenth of the ids have a stack, for example because lines of a log were
 * changed. In a file with only one id, the stack may be missing by chance, so there is no warning
 * unless the file has UMDH's banner. */
static void check_stacks(struct dump_sums *sums)
{
	size_t id_count = 0, bare_count = 0;
	/* lowest id without a stack; not the first, because the order of stacks is random */
	const char *least = NULL;
	char why[200];

	for (size_t i = 0; i < sums->stacks.count; i++) {
		const struct stack *stack = &sums->stacks.stacks[i];

		if (!stack->id[strspn(stack->id, "0")])
			continue; /* UMDH's id for blocks without a stack */
		id_count++;
		if (stack->frame_count)
			continue;
		bare_count++;
		if (!least || strcmp(stack->id, least) < 0)
			least = stack->id;
	}
	if (!bare_count || (id_count == 1 && !sums->id.banner_time_ms) ||
		id_count - bare_count >= (id_count + 9) / 10)
		return;
	snprintf(why, sizeof(why),
		"%zu of %zu stack%s missing from the file, such as that of BackTrace%.*s: the file "
		"may have been edited",
		bare_count, id_count, id_count == 1 ? " is" : "s are", (int)strcspn(least, " <&"),
		least);
	sums_warn(sums, why);
	sums->quality.skip_count++;
}

/* Warns about blocks whose sizes are unknown, because no stack and no group of one size has them. */
static void warn_unsized(struct sum_reader *reader)
{
	uint64_t count = 0;
	char text[120];

	for (size_t i = 0; i < reader->ungrouped_count; i++)
		count += reader->ungrouped[i].held.block_count +
			 reader->ungrouped[i].lost.block_count;
	for (size_t i = 0; i < reader->group_count; i++)
		count += reader->groups[i].is_range ? reader->groups[i].totals.block_count : 0;
	if (!count)
		return;
	snprintf(text, sizeof(text),
		"%" PRIu64 " block%s without a stack have no recorded size: --size leaves them out",
		count, text_plural(count));
	sums_warn(reader->sums, text);
}

/* Adds up the blocks of each heap that has a note. */
static void sum_heaps(struct dump_sums *sums)
{
	/* For each heap of the sums: index of its fact, or UINT32_MAX. */
	uint32_t *fact_of = xcalloc(sums->heap_count + 1, sizeof(*fact_of));
	/* maps a heap's address to the index of its fact; if a heap has two notes, the first
	 * counts */
	struct u64map facts;

	u64map_init(&facts);
	for (size_t i = 0; i < sums->heap_fact_count; i++) {
		uint32_t index = (uint32_t)i;

		u64map_add(&facts, sums->heap_facts[i].addr, &index);
	}
	for (size_t i = 0; i < sums->heap_count; i++) {
		if (!u64map_find(&facts, sums->heaps[i], &fact_of[i]))
			fact_of[i] = UINT32_MAX;
	}
	for (size_t i = 0; sums->heap_fact_count && i < sums->cell_count; i++) {
		const struct stack_total *cell = &sums->cells[i];
		const uint32_t fact = fact_of[cell->heap];

		if (fact != UINT32_MAX)
			block_totals_add(&sums->heap_facts[fact].memory.blocks, &cell->sums);
	}
	u64map_release(&facts);
	free(fact_of);
	/* A series can have thousands of dumps: return the unused part of the array. */
	sums->heap_fact_cap = sums->heap_fact_count;
	if (sums->heap_fact_count)
		sums->heap_facts = xrealloc(
			sums->heap_facts, sums->heap_fact_count * sizeof(*sums->heap_facts));
}

/* Warns about a dump without blocks. UMDH writes such a log if it has recorded nothing. hsnap's end
 * mark proves that nothing exists. */
static void check_empty(struct sum_reader *reader)
{
	struct dump_sums *sums = reader->sums;

	sums->quality.is_incomplete |= !reader->head.is_ours;
	if (!sums->heap_count)
		sums_warn(sums, "contains no heap");
	else if (!reader->head.is_ours)
		sums_warn(sums, "has no blocks: was +ust on when the process started?");
}

static void subtract(struct block_totals *from, const struct block_totals *part)
{
	from->block_count -= part->block_count;
	from->requested_bytes -= part->requested_bytes;
	from->overhead_bytes -= part->overhead_bytes;
}

/* Completes the sums at the end of a dump, even if the dump is cut short. */
static int finish(struct sum_reader *reader, int rc)
{
	struct dump_sums *sums = reader->sums;

	sums->quality.is_cut = rc == -ERR_CUT;
	module_list_finish(&reader->modules);
	sums->module_list.items = reader->modules.items;
	sums->module_list.count = reader->modules.count;
	reader->modules.items = NULL;
	if (rc && !sums->quality.is_cut)
		return rc;
	if (reader->balance.known || reader->balance.handle_count) {
		sums->balance = arena_alloc(&sums->arena, sizeof(*sums->balance));
		*sums->balance = reader->balance;
	}
	tally_flush(&reader->tally);
	stackset_close(&sums->stacks, false);
	bare_resolve(reader);
	if (sums->single.sizes.is_limited)
		warn_unsized(reader);
	check_stacks(reader->sums);
	if (sums->single.listed_count)
		listed_resolve(sums);
	if (sums->single.content_count)
		qsort(sums->single.contents, sums->single.content_count,
			sizeof(*sums->single.contents), by_stack);
	if (has_nonsense(sums))
		return err_set(reader->err, ERR_CHANGED, sums->id.path, NULL);
	sum_heaps(sums);
	for (size_t i = 0; i < sums->heap_count; i++) {
		sums->has_virtual |= sums->heaps[i] == HEAP_VIRTUAL;
		sums->has_stacks |= sums->heaps[i] == HEAP_STACKS;
	}
	/* Remove reserved address space and handles from the total. They use no memory, and
	 * reserving must not look like a leak. */
	for (size_t i = 0; i < sums->cell_count; i++) {
		if (sums->heaps[sums->cells[i].heap] == HEAP_VIRTUAL)
			sums->virtual_bytes += sums->cells[i].sums.requested_bytes;
		if (sums->heaps[sums->cells[i].heap] == HEAP_STACKS)
			block_totals_add(&sums->thread_stacks, &sums->cells[i].sums);
		if (sums->heaps[sums->cells[i].heap] == HEAP_RESERVED)
			block_totals_add(&sums->reserved, &sums->cells[i].sums);
		if (heap_is_handles(sums->heaps[sums->cells[i].heap]))
			block_totals_add(&sums->handles, &sums->cells[i].sums);
	}
	subtract(&sums->total, &sums->reserved);
	subtract(&sums->total, &sums->handles);
	if (!sums->cell_count)
		check_empty(reader);
	if (reader->is_over)
		return err_set(reader->err, ERR_BAD_LINE, sums->id.path, SUMS_TOO_LARGE);
	return rc;
}

int sums_read_by(struct dump_sums *sums, const char *path, struct source *source,
	const struct read_plan *plan, struct err *err)
{
	struct err local;
	struct sum_reader reader = {.sums = sums, .err = err ? err : &local};
	struct dump_sink sink = {.ctx = &reader,
		.module = read_module,
		.heap = read_heap,
		.entry = read_entry,
		.note = sum_reader_note,
		.skipped = read_skipped,
		.plain = needs_entries(sums) ? NULL : read_plain};
	struct dump_source stream = source_stream(source);
	int rc;

	shared_stacks_init(&reader.pool, sums);
	tally_init(&reader.tally, &reader.pool);
	table_init(&reader.texts);
	u64map_init(&reader.ungrouped_numbers);
	module_list_init(&reader.modules, &sums->module_list.texts);
	sums->id.path = arena_text(&sums->arena, path, strlen(path));
	reader.scanner = dump_scanner_new(source_name(source), &sink, reader.err);
	rc = plan ? reader_threads_read(&reader, source, plan) :
		    dump_scanner_read(reader.scanner, &stream, reader.err);
	if (rc != READ_IN_ORDER)
		rc = finish(&reader, rc);
	dump_scanner_free(reader.scanner);
	module_list_release(&reader.modules);
	table_release(&reader.texts);
	u64map_release(&reader.ungrouped_numbers);
	free(reader.ungrouped);
	free(reader.groups);
	tally_release(&reader.tally);
	shared_stacks_release(&reader.pool);
	if (rc != READ_IN_ORDER)
		return rc;
	sums_release(sums);
	return sums_read_by(sums, path, source, NULL, err);
}

int sums_read_with(struct dump_sums *sums, const char *path, struct source *source,
	unsigned threads, struct err *err)
{
	struct read_plan plan = {
		.threads = threads ? threads : thread_cores(), .piece_bytes = PIECE_BYTES};
	bool is_large = !needs_entries(sums) && source_is_plain(source, &plan.from, &plan.to) &&
			plan.to - plan.from >= PIECES_MIN * PIECE_BYTES;

	if (plan.threads > THREADS_MAX)
		plan.threads = THREADS_MAX;
	return sums_read_by(sums, path, source, is_large ? &plan : NULL, err);
}

int sums_read(struct dump_sums *sums, const char *path, struct source *source, struct err *err)
{
	return sums_read_with(sums, path, source, 0, err);
}
