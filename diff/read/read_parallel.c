/* Reading a dump with several threads: the stacks and cells that the threads share, and the
 * division of a file into pieces. */
#include <stdlib.h>
#include <string.h>

#include <stdatomic.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "diff/read/count.h"
#include "diff/read/read_dump.h"

/* limit of cached texts; other stacks are parsed each time */
#define TEXTS_BYTES_MAX ((size_t)32 << 20)
#define MIX UINT64_C(0x9e3779b97f4a7c15)

void shared_stacks_init(struct shared_stacks *pool, struct dump_sums *sums)
{
	*pool = (struct shared_stacks){.sums = sums, .lock = thread_lock_new()};
	arena_init(&pool->arena);
	for (size_t i = 0; i < BLOCK_REACHES; i++)
		u64map_init(&pool->heaps[i]);
	hash_index_init(&pool->cells);
}

void shared_stacks_release(struct shared_stacks *pool)
{
	thread_lock_free(pool->lock);
	hash_index_release(&pool->cells);
	free(pool->first_cells);
	free(pool->texts);
	for (size_t i = 0; i < BLOCK_REACHES; i++)
		u64map_release(&pool->heaps[i]);
	arena_release(&pool->arena);
	*pool = (struct shared_stacks){0};
}

static uint32_t heap_number(struct shared_stacks *pool, uint64_t addr, enum block_reach reach)
{
	struct dump_sums *sums = pool->sums;
	uint32_t heap = (uint32_t)sums->heap_count;

	if (sums->heap_count >= HEAP_NONE)
		memory_out();
	if (u64map_add(&pool->heaps[reach], addr, &heap)) {
		array_grow((void **)&sums->heaps, &pool->heap_cap, sums->heap_count, sizeof(addr));
		array_grow((void **)&sums->reaches, &pool->reach_cap, sums->heap_count, 1);
		sums->reaches[sums->heap_count] = (unsigned char)reach;
		sums->heaps[sums->heap_count++] = addr;
	}
	return heap;
}

uint32_t shared_stacks_heap(struct shared_stacks *pool, uint64_t addr, enum block_reach reach)
{
	uint32_t heap;

	thread_lock_acquire(pool->lock);
	heap = heap_number(pool, addr, reach);
	thread_lock_leave(pool->lock);
	return heap;
}

static uint32_t cell_add(struct shared_stacks *pool, const struct stack_total *wanted)
{
	struct dump_sums *sums = pool->sums;

	array_grow((void **)&sums->cells, &pool->cell_cap, sums->cell_count, sizeof(*wanted));
	sums->cells[sums->cell_count] = (struct stack_total){
		.stack = wanted->stack, .heap = wanted->heap, .is_bare = wanted->is_bare};
	return (uint32_t)sums->cell_count++;
}

/* Returns true if both are the same cell, whatever their sums. */
static bool is_cell(const struct stack_total *cell, const struct stack_total *wanted)
{
	return cell->stack == wanted->stack && cell->heap == wanted->heap &&
	       cell->is_bare == wanted->is_bare;
}

/* Returns the number of a cell that is not the first cell of its stack. */
static uint32_t further_cell(struct shared_stacks *pool, const struct stack_total *wanted)
{
	uint64_t key = wanted->stack * MIX ^ ((uint64_t)wanted->heap << 1 | wanted->is_bare);
	uint32_t hash = (uint32_t)((key ^ key >> 32) * MIX >> 32), number;
	struct hash_probe probe = hash_index_probe(&pool->cells, hash);

	while ((number = hash_index_next(&pool->cells, &probe)) != INDEX_NONE) {
		if (is_cell(&pool->sums->cells[number], wanted))
			return number;
	}
	number = cell_add(pool, wanted);
	hash_index_add(&pool->cells, hash, number);
	return number;
}

/* Returns the number of a stack's cell in a heap. */
static uint32_t cell_number(struct shared_stacks *pool, const struct stack_total *wanted)
{
	size_t at = 2 * (size_t)wanted->stack + wanted->is_bare;

	if (wanted->stack == STACK_NONE)
		return further_cell(pool, wanted);
	while (at >= pool->first_count) {
		array_grow((void **)&pool->first_cells, &pool->first_cap, pool->first_count,
			sizeof(*pool->first_cells));
		pool->first_cells[pool->first_count++] = CELL_NONE;
	}
	if (pool->first_cells[at] == CELL_NONE)
		pool->first_cells[at] = cell_add(pool, wanted);
	return is_cell(&pool->sums->cells[pool->first_cells[at]], wanted) ?
		       pool->first_cells[at] :
		       further_cell(pool, wanted);
}

static void count_cell(struct shared_stacks *pool, struct stack_total cell, bool take_away)
{
	uint64_t sign = take_away ? UINT64_MAX : 1; /* UINT64_MAX is -1 modulo 2^64 */
	struct block_totals *to;
	uint32_t number;

	if (cell.heap == HEAP_NONE)
		cell.heap = heap_number(pool, 0, BLOCK_HELD);
	number = cell_number(pool, &cell);
	to = &pool->sums->cells[number].sums;
	to->block_count += sign * cell.sums.block_count;
	to->requested_bytes += sign * cell.sums.requested_bytes;
	to->overhead_bytes += sign * cell.sums.overhead_bytes;
}

void shared_stacks_count(
	struct shared_stacks *pool, const struct stack_total *more, size_t count, bool take_away)
{
	thread_lock_acquire(pool->lock);
	for (size_t i = 0; i < count; i++)
		count_cell(pool, more[i], take_away);
	thread_lock_leave(pool->lock);
}

/* Returns the text cached for a stack. Caches the first text of each stack while space remains. */
static struct pool_text known_text(
	struct shared_stacks *pool, uint32_t stack, const struct pool_text *text)
{
	struct pool_text *known;

	while (stack >= pool->text_count) {
		array_grow((void **)&pool->texts, &pool->text_cap, pool->text_count, sizeof(*text));
		pool->texts[pool->text_count++] = (struct pool_text){0};
	}
	known = &pool->texts[stack];
	if (!known->text && pool->arena.used_bytes < TEXTS_BYTES_MAX) {
		*known = *text;
		known->text = arena_text(&pool->arena, text->text, text->len);
	}
	return *known;
}

#define PREFETCH_AHEAD 8 /* entries between two steps of stackset_prefetch() */
#define PREFETCH_STEPS 3

/* Finds or adds the stacks of entries. */
static void put_stacks(struct stackset *set, struct pool_entry *entries, size_t count)
{
	for (size_t i = 0; i < count + PREFETCH_STEPS * PREFETCH_AHEAD; i++) {
		size_t at = i;

		for (unsigned step = 0; step < PREFETCH_STEPS; step++, at -= PREFETCH_AHEAD) {
			if (at < count) /* false if `at` wrapped around below 0 */
				stackset_prefetch(set, entries[at].hash, step);
		}
		if (at < count)
			entries[at].number = stackset_add_hashed(
				set, entries[at].hash, &entries[at].stack, entries[at].id_len);
	}
}

/* Prefetches the cell of an entry's stack: first the cell's number, later the cell (`is_near`).
 * Must be inline, because otherwise gcc removes the call as having no effect. */
static inline __attribute__((always_inline)) void cell_prefetch(
	const struct shared_stacks *pool, const struct pool_entry *entry, bool is_near)
{
	size_t at = 2 * (size_t)entry->number + !entry->stack.frames;

	if (at >= pool->first_count)
		return;
	if (!is_near)
		__builtin_prefetch(&pool->first_cells[at]);
	else if (pool->first_cells[at] != CELL_NONE)
		__builtin_prefetch(&pool->sums->cells[pool->first_cells[at]].sums);
}

void shared_stacks_entries(struct shared_stacks *pool, struct pool_entry *entries, size_t count,
	uint32_t heap, bool take_away)
{
	struct stackset *set = &pool->sums->stacks;

	for (size_t i = 0; i < count; i++)
		entries[i].hash = stackset_hash(set, entries[i].stack.id, entries[i].id_len);
	thread_lock_acquire(pool->lock);
	put_stacks(set, entries, count);
	for (struct pool_entry *entry = entries; entry < entries + count; entry++) {
		struct stack_total cell = {.stack = entry->number,
			.heap = heap,
			.is_bare = !entry->stack.frames,
			.sums = entry->sums};
		size_t cell_count = pool->sums->cell_count;

		if (entries + count - entry > PREFETCH_AHEAD)
			cell_prefetch(pool, entry + PREFETCH_AHEAD, true);
		if (entries + count - entry > 2 * PREFETCH_AHEAD)
			cell_prefetch(pool, entry + 2 * PREFETCH_AHEAD, false);
		count_cell(pool, cell, take_away);
		/* Cache a text only when its stack occurs again. */
		if (entry->text.text && pool->sums->cell_count > cell_count)
			entry->text = (struct pool_text){0};
		else if (entry->text.text)
			entry->text = known_text(pool, entry->number, &entry->text);
	}
	thread_lock_leave(pool->lock);
}

/*
 * Reading one file with several threads.
 *
 * The file is divided at lines that do not continue a stack. Each thread claims the next piece,
 * counts the piece's plain entries in its own tally, and stops at the first line of another kind.
 * Pieces are then completed in order. Any thread that finds the next piece counted completes it.
 * The scanner, whose state depends on the order, skips the counted entries and reads the rest of
 * the piece. Most pieces have no rest.
 *
 * If lines are too long to divide the file near the intended places, the file is read again in
 * order.
 *
 * The heap of a piece is known only when the piece is completed. A thread assumes the latest known
 * heap. If the assumption was wrong, the piece's entries are subtracted and counted again. */

/* bytes after a piece; the piece's last line must end there */
#define OVERLAP_BYTES ((size_t)64 << 10)
#define FIRST_OVERLAP_BYTES ((size_t)4 << 10) /* part of the overlap that is read with the piece */

struct piece {
	uint64_t offset, len; /* range in the file */
	uint64_t counted_bytes; /* counted bytes, from the start of the piece */
	struct dump_progress progress; /* progress over the counted bytes */
	uint32_t heap; /* heap under which they were counted */
	bool is_done;
	bool is_open; /* no place to divide the file was found near its start or end */
	int rc;
};

struct reader_threads {
	struct sum_reader *reader;
	struct source *source;
	const struct read_plan *plan;
	size_t piece_count;
	size_t limit; /* first waiting piece; all later pieces wait too */
	struct piece *pieces;
	atomic_size_t next; /* first piece that no thread has claimed */
	atomic_uint heap; /* latest known heap */
	atomic_bool stop;
	struct thread_lock *lock; /* protects the following fields and the scanner */
	size_t settled_count; /* number of completed pieces */
	int rc;
};

/* A piece in memory. */
struct text {
	char *bytes; /* plan->piece_bytes + OVERLAP_BYTES + DUMP_PAD_BYTES + 1 bytes */
	uint64_t offset; /* file offset of `bytes` */
	size_t len; /* bytes read */
	char *start;
};

static char *text_bytes(const struct reader_threads *threads)
{
	return xmalloc((size_t)threads->plan->piece_bytes + OVERLAP_BYTES + DUMP_PAD_BYTES + 1);
}

/* Reads more text, until `text` contains `len` bytes or the file's end. */
static int text_fill(const struct reader_threads *threads, struct text *text, size_t len)
{
	uint64_t left = threads->plan->to - text->offset;
	int rc = 0;

	len = len < left ? len : (size_t)left;
	if (len > text->len)
		rc = source_read_at(threads->source, text->offset + text->len,
			text->bytes + text->len, len - text->len, NULL);
	text->len = len > text->len ? len : text->len;
	memset(text->bytes + text->len, 0, DUMP_PAD_BYTES);
	return rc;
}

/* Returns the position of the first line at or after `at` that does not continue a stack. Returns 0
 * if no such line is nearby. */
static size_t cut_near(const struct text *text, size_t at)
{
	size_t limit = at + OVERLAP_BYTES < text->len ? at + OVERLAP_BYTES : text->len;

	for (; at < limit; at++) {
		if (text->bytes[at - 1] == '\n' && text->bytes[at] != '\t')
			return at;
	}
	return 0;
}

/* Stores the result of cut_near() in `*place`, after reading more text if needed. Returns 0 or an
 * error. */
static int cut(const struct reader_threads *threads, struct text *text, size_t at, size_t *place)
{
	int rc = 0;

	*place = cut_near(text, at);
	if (!*place && text->len < at + OVERLAP_BYTES) {
		rc = text_fill(threads, text, at + OVERLAP_BYTES);
		*place = rc ? 0 : cut_near(text, at);
	}
	return rc;
}

/* Reads the piece with number `index` and stores its range. */
static int text_read(
	const struct reader_threads *threads, struct text *text, size_t index, struct piece *piece)
{
	const struct read_plan *plan = threads->plan;
	size_t before = index ? 1 : 0, nominal = before + (size_t)plan->piece_bytes;
	size_t start = 0, end;
	int rc;

	text->offset = plan->from + index * plan->piece_bytes - before;
	text->len = 0;
	rc = text_fill(threads, text, nominal + FIRST_OVERLAP_BYTES);
	if (!rc && index)
		rc = cut(threads, text, 1, &start);
	end = text->len;
	piece->is_open = index && !start;
	if (!rc && index + 1 < threads->piece_count) {
		rc = cut(threads, text, nominal, &end);
		piece->is_open = !end;
	}
	piece->offset = text->offset + start;
	piece->len = rc || piece->is_open ? 0 : end - start;
	text->start = text->bytes + start;
	return rc;
}

/* Counts the plain entries at the start of a piece. */
static int piece_count(struct reader_threads *threads, struct thread_counts *tally,
	struct text *text, size_t index)
{
	struct piece *piece = &threads->pieces[index];
	const char *behind;
	int rc = text_read(threads, text, index, piece);

	piece->heap = atomic_load(&threads->heap);
	if (rc)
		return rc;
	if (piece->heap != tally->heap) {
		tally_flush(tally);
		tally->heap = piece->heap;
	}
	behind = tally_plain(tally, text->start, text->start + piece->len, &piece->progress);
	piece->counted_bytes = (uint64_t)(behind - text->start);
	return 0;
}

static int changes(const struct reader_threads *threads)
{
	return err_set(threads->reader->err, ERR_CHANGED, source_name(threads->source), NULL);
}

static int text_read_again(const struct reader_threads *threads, struct text *text, size_t index,
	const struct piece *piece)
{
	struct piece same = {0};
	int rc = text_read(threads, text, index, &same);

	if (!rc && (same.offset != piece->offset || same.len != piece->len))
		rc = changes(threads);
	return rc;
}

/* Counts the entries of a piece under `heap`, or subtracts them. */
static int piece_count_for(struct reader_threads *threads, const struct text *text,
	const struct piece *piece, uint32_t heap, bool take_away)
{
	struct dump_progress again = {0};
	struct thread_counts tally;
	int rc = 0;

	tally_init(&tally, &threads->reader->pool);
	tally.heap = heap;
	tally.take_away = take_away;
	/* stops at the same place as before */
	tally_plain(&tally, text->start, text->start + piece->len, &again);
	if (memcmp(&again, &piece->progress, sizeof(again)) != 0)
		rc = changes(threads);
	else
		tally_flush(&tally);
	tally_release(&tally);
	return rc;
}

static int piece_settle(struct reader_threads *threads, struct text *text, size_t index)
{
	struct piece *piece = &threads->pieces[index];
	struct sum_reader *reader = threads->reader;
	bool is_wrong = piece->counted_bytes && piece->heap != reader->tally.heap;
	bool has_rest = piece->counted_bytes < piece->len;
	int rc = piece->rc;

	if (!rc && (is_wrong || has_rest))
		rc = text_read_again(threads, text, index, piece);
	if (!rc && piece->counted_bytes)
		rc = dump_scanner_pass(reader->scanner, &piece->progress);
	if (!rc)
		rc = sum_reader_total(reader, &piece->progress.seen);
	if (!rc && is_wrong) /* counted under the wrong heap */
		rc = piece_count_for(threads, text, piece, piece->heap, true);
	if (!rc && is_wrong)
		rc = piece_count_for(threads, text, piece, reader->tally.heap, false);
	if (!rc && has_rest) {
		char *rest = text->start + piece->counted_bytes;

		memset(text->start + piece->len, 0, DUMP_PAD_BYTES);
		rc = dump_scanner_text(reader->scanner, rest,
			(size_t)(piece->len - piece->counted_bytes),
			index + 1 == threads->piece_count);
	}
	if (!rc && piece->is_open)
		rc = READ_IN_ORDER;
	atomic_store(&threads->heap, reader->tally.heap);
	return rc;
}

/* Completes the next pieces, as long as they are counted. */
static void settle(struct reader_threads *threads, struct text *text)
{
	while (!threads->rc && threads->settled_count < threads->piece_count &&
		threads->pieces[threads->settled_count].is_done)
		threads->rc = piece_settle(threads, text, threads->settled_count++);
	if (threads->rc)
		atomic_store(&threads->stop, true);
}

static void work(void *ctx, unsigned number)
{
	struct reader_threads *threads = ctx;
	struct thread_counts tally;
	struct text own = {.bytes = text_bytes(threads)}, others = {.bytes = text_bytes(threads)};
	size_t index;

	(void)number;
	tally_init(&tally, &threads->reader->pool);
	while (!atomic_load(&threads->stop) &&
		(index = atomic_fetch_add(&threads->next, 1)) < threads->limit) {
		int rc = piece_count(threads, &tally, &own, index);

		thread_lock_acquire(threads->lock);
		threads->pieces[index].rc = rc;
		threads->pieces[index].is_done = true;
		settle(threads, &others);
		thread_lock_leave(threads->lock);
	}
	tally_flush(&tally);
	tally_release(&tally);
	free(own.bytes);
	free(others.bytes);
}

int reader_threads_read(
	struct sum_reader *reader, struct source *source, const struct read_plan *plan)
{
	uint64_t count = (plan->to - plan->from + plan->piece_bytes - 1) / plan->piece_bytes;
	struct reader_threads threads = {.reader = reader,
		.source = source,
		.plan = plan,
		.piece_count = (size_t)count,
		.pieces = xcalloc((size_t)count, sizeof(*threads.pieces)),
		.lock = thread_lock_new()};

	atomic_store(&threads.heap, reader->tally.heap);
	for (threads.limit = 1; !threads.rc && !atomic_load(&threads.stop);
		threads.limit = threads.piece_count) {
		/* Read the first piece alone. In most dumps it contains the heading that the other
		 * pieces' entries belong to. */
		thread_run(threads.limit == 1 ? 1 : plan->threads, work, &threads);
		atomic_store(&threads.next, 1);
		if (threads.settled_count == threads.piece_count)
			break;
	}
	if (!threads.rc)
		threads.rc = dump_scanner_end(reader->scanner);
	if (threads.rc < 0 && !reader->err->code)
		err_set(reader->err, (enum err_code) - threads.rc, source_name(source), NULL);
	thread_lock_free(threads.lock);
	free(threads.pieces);
	return threads.rc;
}
