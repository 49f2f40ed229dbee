#include <stdlib.h>
#include <string.h>

#include <stdatomic.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "diff/read/count.h"
#include "diff/read/read_dump.h"

#define TEXTS_BYTES_MAX ((size_t)32 << 20) /* further stacks are read anew each time */
#define MIX UINT64_C(0x9e3779b97f4a7c15)

int shared_stacks_init(struct shared_stacks *pool, struct dump_sums *sums)
{
	*pool = (struct shared_stacks){.sums = sums};
	arena_init(&pool->arena);
	table_init(&pool->heaps);
	pool->lock = thread_lock_new();
	return pool->lock ? 0 : -ERR_NOMEM;
}

void shared_stacks_release(struct shared_stacks *pool)
{
	thread_lock_free(pool->lock);
	free(pool->slots);
	free(pool->texts);
	table_release(&pool->heaps);
	arena_release(&pool->arena);
	*pool = (struct shared_stacks){0};
}

static int heap_put(struct shared_stacks *pool, uint64_t addr, uint32_t *index)
{
	struct dump_sums *sums = pool->sums;
	const uint64_t *known = table_find(&pool->heaps, &addr, sizeof(addr));

	if (known) {
		*index = (uint32_t)*known;
		return 0;
	}
	if (sums->heap_count >= INT32_MAX ||
		array_grow(
			(void **)&sums->heaps, &pool->heap_cap, sums->heap_count, sizeof(addr)) ||
		table_add(&pool->heaps, &addr, sizeof(addr), sums->heap_count))
		return -ERR_NOMEM;
	*index = (uint32_t)sums->heap_count;
	sums->heaps[sums->heap_count++] = addr;
	return 0;
}

int shared_stacks_heap(struct shared_stacks *pool, uint64_t addr, uint32_t *index)
{
	int rc;

	thread_lock_take(pool->lock);
	rc = heap_put(pool, addr, index);
	thread_lock_leave(pool->lock);
	return rc;
}

/* Where the cell is, or where it would be. */
static uint64_t *slot_of(struct shared_stacks *pool, const struct stack_total *wanted)
{
	uint64_t key = wanted->stack * MIX ^ ((uint64_t)wanted->heap << 1 | wanted->is_bare);
	size_t mask = pool->slot_count - 1, at = (size_t)((key ^ key >> 32) * MIX >> 32) & mask;

	for (; pool->slots[at]; at = (at + 1) & mask) {
		const struct stack_total *cell = &pool->sums->cells[pool->slots[at] - 1];

		if (cell->stack == wanted->stack && cell->heap == wanted->heap &&
			cell->is_bare == wanted->is_bare)
			break;
	}
	return &pool->slots[at];
}

static int slots_grow(struct shared_stacks *pool)
{
	size_t count = pool->slot_count ? 2 * pool->slot_count : 1024;
	uint64_t *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return -ERR_NOMEM;
	free(pool->slots);
	pool->slots = slots;
	pool->slot_count = count;
	for (size_t i = 0; i < pool->sums->cell_count; i++)
		*slot_of(pool, &pool->sums->cells[i]) = i + 1;
	return 0;
}

/* The cell's sums, or NULL: out of memory. */
static struct block_totals *cell_sums(struct shared_stacks *pool, const struct stack_total *wanted)
{
	struct dump_sums *sums = pool->sums;
	uint64_t *slot;

	if (2 * sums->cell_count >= pool->slot_count && slots_grow(pool))
		return NULL;
	slot = slot_of(pool, wanted);
	if (!*slot) {
		if (array_grow((void **)&sums->cells, &pool->cell_cap, sums->cell_count,
			    sizeof(*wanted)))
			return NULL;
		sums->cells[sums->cell_count] = (struct stack_total){
			.stack = wanted->stack, .heap = wanted->heap, .is_bare = wanted->is_bare};
		*slot = ++sums->cell_count;
	}
	return &sums->cells[*slot - 1].sums;
}

static int count_cell(struct shared_stacks *pool, const struct stack_total *more, bool take_away)
{
	uint64_t sign = take_away ? UINT64_MAX : 1; /* modulo 2^64 */
	struct stack_total cell = *more;
	struct block_totals *to;

	if (cell.heap == HEAP_NONE && heap_put(pool, 0, &cell.heap))
		return -ERR_NOMEM;
	to = cell_sums(pool, &cell);
	if (!to)
		return -ERR_NOMEM;
	to->block_count += sign * cell.sums.block_count;
	to->requested_bytes += sign * cell.sums.requested_bytes;
	to->overhead_bytes += sign * cell.sums.overhead_bytes;
	return 0;
}

int shared_stacks_count(
	struct shared_stacks *pool, const struct stack_total *more, size_t count, bool take_away)
{
	int rc = 0;

	thread_lock_take(pool->lock);
	for (size_t i = 0; !rc && i < count; i++)
		rc = count_cell(pool, &more[i], take_away);
	thread_lock_leave(pool->lock);
	return rc;
}

static int count_entry(
	struct shared_stacks *pool, const struct pool_entry *entry, uint32_t heap, bool take_away)
{
	struct stack_total cell = {
		.heap = heap, .is_bare = !entry->stack.frames, .sums = entry->sums};
	int rc = stackset_put(&pool->sums->stacks, &entry->stack, entry->id_len, &cell.stack);

	return rc ? rc : count_cell(pool, &cell, take_away);
}

size_t shared_stacks_entries(struct shared_stacks *pool, const struct pool_entry *entries,
	size_t count, uint32_t heap, bool take_away)
{
	size_t done = 0;

	thread_lock_take(pool->lock);
	while (done < count && !count_entry(pool, &entries[done], heap, take_away))
		done++;
	thread_lock_leave(pool->lock);
	return done;
}

/* What is kept for a stack: the first text that came with it, as long as there is room. */
static int text_put(struct shared_stacks *pool, uint32_t stack, struct pool_text *text)
{
	struct pool_text *kept;

	while (stack >= pool->text_count) {
		if (array_grow((void **)&pool->texts, &pool->text_cap, pool->text_count,
			    sizeof(*kept)))
			return -ERR_NOMEM;
		pool->texts[pool->text_count++] = (struct pool_text){0};
	}
	kept = &pool->texts[stack];
	if (!kept->text && pool->arena.used_bytes < TEXTS_BYTES_MAX) {
		char *copy = arena_text(&pool->arena, text->text, text->len);

		if (!copy)
			return -ERR_NOMEM;
		*kept = *text;
		kept->text = copy;
	}
	*text = *kept;
	return 0;
}

int shared_stacks_add(struct shared_stacks *pool, const struct stack *wanted, size_t id_len,
	uint32_t *index, struct pool_text *text)
{
	int rc;

	thread_lock_take(pool->lock);
	rc = stackset_put(&pool->sums->stacks, wanted, id_len, index);
	if (!rc && text)
		rc = text_put(pool, *index, text);
	thread_lock_leave(pool->lock);
	return rc;
}

/*
 * Several threads read one file.
 *
 * The file is cut into pieces at lines that start no stack. Each thread takes the next piece, counts
 * its plain entries in a tally of its own, and stops at the first line of another kind. Pieces are
 * then settled in order, by whichever thread finds one whose turn it is: the scanner, which knows all
 * that depends on order, is told of the entries counted and reads the rest of the piece itself. Most
 * pieces have no rest.
 *
 * Where lines are too long to cut the file near the place wanted, one thread reads on from there by
 * itself.
 *
 * Which heap a piece belongs to is known only when it is settled. A thread takes the latest heap
 * that is known; where that was wrong its entries are counted away and counted again.
 */

#define OVERLAP_BYTES ((size_t)64 << 10) /* behind a piece, where its last line must end */
#define FIRST_OVERLAP_BYTES ((size_t)4 << 10) /* of that, what is read at once */

struct piece {
	uint64_t offset, len; /* in the file */
	uint64_t counted_bytes; /* from its start */
	struct dump_progress progress; /* of those */
	uint32_t heap; /* they were counted for */
	bool is_done;
	bool is_open; /* there is no place near to cut it off */
	int rc;
};

struct reader_threads {
	struct sum_reader *reader;
	struct source *source;
	const struct crew_plan *plan;
	size_t piece_count;
	size_t limit; /* pieces from here on wait */
	struct piece *pieces;
	atomic_size_t next; /* piece that nobody has taken */
	atomic_uint heap; /* the latest that is known */
	atomic_bool stop;
	struct thread_lock *lock; /* of all that follows, and of the scanner */
	size_t turn; /* piece to be settled next */
	uint64_t stream_from; /* what is left for one thread; plan->to: nothing */
	int rc;
};

/* A piece in memory. */
struct text {
	char *bytes; /* of plan->piece_bytes + OVERLAP_BYTES + DUMP_PAD_BYTES + 1 */
	uint64_t offset; /* of bytes, in the file */
	size_t len; /* that are read */
	char *start; /* of the piece */
};

static bool text_new(const struct reader_threads *crew, struct text *text)
{
	*text = (struct text){0};
	text->bytes = malloc((size_t)crew->plan->piece_bytes + OVERLAP_BYTES + DUMP_PAD_BYTES + 1);
	return text->bytes != NULL;
}

/* Reads on, up to len bytes in all. */
static int text_fill(const struct reader_threads *crew, struct text *text, size_t len)
{
	uint64_t left = crew->plan->to - text->offset;
	int rc = 0;

	len = len < left ? len : (size_t)left;
	if (len > text->len)
		rc = source_read_at(crew->source, text->offset + text->len, text->bytes + text->len,
			len - text->len, NULL);
	text->len = len > text->len ? len : text->len;
	memset(text->bytes + text->len, 0, DUMP_PAD_BYTES);
	return rc;
}

/* The first place from at on, behind a line end, where no stack goes on; 0: none is near. */
static size_t cut_near(const struct text *text, size_t at)
{
	size_t limit = at + OVERLAP_BYTES < text->len ? at + OVERLAP_BYTES : text->len;

	for (; at < limit; at++) {
		if (text->bytes[at - 1] == '\n' && text->bytes[at] != '\t')
			return at;
	}
	return 0;
}

/* The same; reads on when what is at hand is not enough. 0 or an error. */
static int cut(const struct reader_threads *crew, struct text *text, size_t at, size_t *place)
{
	int rc = 0;

	*place = cut_near(text, at);
	if (!*place && text->len < at + OVERLAP_BYTES) {
		rc = text_fill(crew, text, at + OVERLAP_BYTES);
		*place = rc ? 0 : cut_near(text, at);
	}
	return rc;
}

/* Reads piece number index and tells where it is. */
static int text_read(
	const struct reader_threads *crew, struct text *text, size_t index, struct piece *piece)
{
	const struct crew_plan *plan = crew->plan;
	size_t before = index ? 1 : 0, nominal = before + (size_t)plan->piece_bytes;
	size_t start = 0, end;
	int rc;

	text->offset = plan->from + index * plan->piece_bytes - before;
	text->len = 0;
	rc = text_fill(crew, text, nominal + FIRST_OVERLAP_BYTES);
	if (!rc && index)
		rc = cut(crew, text, 1, &start);
	end = text->len;
	piece->is_open = index && !start;
	if (!rc && index + 1 < crew->piece_count) {
		rc = cut(crew, text, nominal, &end);
		piece->is_open = !end;
	}
	piece->offset = text->offset + start;
	piece->len = rc || piece->is_open ? 0 : end - start;
	text->start = text->bytes + start;
	return rc;
}

/* Counts what is plain at the start of a piece. */
static int piece_count(
	struct reader_threads *crew, struct thread_counts *tally, struct text *text, size_t index)
{
	struct piece *piece = &crew->pieces[index];
	const char *behind;
	int rc = text_read(crew, text, index, piece);

	piece->heap = atomic_load(&crew->heap);
	if (!rc && piece->heap != tally->heap) {
		rc = tally_flush(tally);
		tally->heap = piece->heap;
	}
	if (rc)
		return rc;
	behind = tally_plain(tally, text->start, text->start + piece->len, &piece->progress);
	piece->counted_bytes = (uint64_t)(behind - text->start);
	return 0;
}

static int changes(const struct reader_threads *crew)
{
	return err_set(crew->reader->err, ERR_READ, source_name(crew->source),
		"it changes while it is read");
}

/* Reads once more a piece that was counted. */
static int text_read_again(const struct reader_threads *crew, struct text *text, size_t index,
	const struct piece *piece)
{
	struct piece same = {0};
	int rc = text_read(crew, text, index, &same);

	if (!rc && (same.offset != piece->offset || same.len != piece->len))
		rc = changes(crew);
	return rc;
}

/* Counts the entries of a piece for this heap, or counts them away. */
static int piece_count_for(struct reader_threads *crew, const struct text *text,
	const struct piece *piece, uint32_t heap, bool take_away)
{
	struct dump_progress again = {0};
	struct thread_counts tally;
	int rc;

	tally_init(&tally, &crew->reader->pool);
	tally.heap = heap;
	tally.take_away = take_away;
	tally_plain(&tally, text->start, text->start + piece->counted_bytes, &again);
	if (tally.no_memory)
		rc = -ERR_NOMEM;
	else if (memcmp(&again, &piece->progress, sizeof(again)) != 0)
		rc = changes(crew);
	else
		rc = tally_flush(&tally);
	tally_release(&tally);
	return rc;
}

/* Counts the entries of a piece for another heap than was thought. */
static int piece_move(
	struct reader_threads *crew, const struct text *text, const struct piece *piece)
{
	int rc = piece_count_for(crew, text, piece, piece->heap, true);

	return rc ? rc : piece_count_for(crew, text, piece, crew->reader->tally.heap, false);
}

/* Has the scanner read what of a piece was not counted. */
static int piece_rest(
	struct reader_threads *crew, struct text *text, const struct piece *piece, bool is_last)
{
	size_t len = (size_t)(piece->len - piece->counted_bytes);
	char *at = text->start + piece->counted_bytes;

	memset(at + len, 0, DUMP_PAD_BYTES);
	return dump_scanner_text(crew->reader->scanner, at, len, is_last);
}

static int piece_settle(struct reader_threads *crew, struct text *text, size_t index)
{
	struct piece *piece = &crew->pieces[index];
	struct sum_reader *reader = crew->reader;
	bool is_wrong = piece->counted_bytes && piece->heap != reader->tally.heap;
	bool has_rest = piece->counted_bytes < piece->len;
	int rc = piece->rc;

	if (!rc && (is_wrong || has_rest))
		rc = text_read_again(crew, text, index, piece);
	if (!rc && piece->counted_bytes)
		rc = dump_scanner_pass(reader->scanner, &piece->progress);
	if (!rc)
		rc = sum_reader_total(reader, &piece->progress.seen);
	if (!rc && is_wrong)
		rc = piece_move(crew, text, piece);
	if (!rc && has_rest)
		rc = piece_rest(crew, text, piece, index + 1 == crew->piece_count);
	if (!rc && piece->is_open)
		crew->stream_from = piece->offset;
	atomic_store(&crew->heap, reader->tally.heap);
	return rc;
}

/* Settles pieces whose turn it is. */
static void settle(struct reader_threads *crew, struct text *text)
{
	while (!crew->rc && crew->turn < crew->piece_count && crew->pieces[crew->turn].is_done &&
		crew->stream_from == crew->plan->to) {
		crew->rc = piece_settle(crew, text, crew->turn);
		crew->turn++;
	}
	if (crew->rc || crew->stream_from != crew->plan->to)
		atomic_store(&crew->stop, true);
}

static void work(void *ctx, unsigned number)
{
	struct reader_threads *crew = ctx;
	struct thread_counts tally;
	struct text own, others;
	bool is_ready = text_new(crew, &own);
	size_t index;
	int rc;

	(void)number;
	is_ready = text_new(crew, &others) && is_ready;
	tally_init(&tally, &crew->reader->pool);
	while (!atomic_load(&crew->stop) &&
		(index = atomic_fetch_add(&crew->next, 1)) < crew->limit) {
		rc = is_ready ? piece_count(crew, &tally, &own, index) : -ERR_NOMEM;
		thread_lock_take(crew->lock);
		crew->pieces[index].rc = rc;
		crew->pieces[index].is_done = true;
		settle(crew, &others);
		thread_lock_leave(crew->lock);
	}
	rc = tally_flush(&tally);
	thread_lock_take(crew->lock);
	crew->rc = crew->rc ? crew->rc : rc;
	thread_lock_leave(crew->lock);
	tally_release(&tally);
	free(own.bytes);
	free(others.bytes);
}

/* What one thread reads by itself: a file with lines that are too long to cut it well. */
struct stream {
	struct reader_threads *crew;
	uint64_t at;
};

static int64_t stream_read(void *ctx, void *bytes, size_t len, struct err *err)
{
	struct stream *stream = ctx;
	uint64_t left = stream->crew->plan->to - stream->at;
	int rc;

	len = len < left ? len : (size_t)left;
	rc = source_read_at(stream->crew->source, stream->at, bytes, len, err);
	stream->at += len;
	return rc ? rc : (int64_t)len;
}

/* Counts away what threads have counted behind the place where one of them goes on alone. */
static int take_back(struct reader_threads *crew)
{
	struct text text;
	int rc = text_new(crew, &text) ? 0 : -ERR_NOMEM;

	for (size_t i = crew->turn; !rc && i < crew->piece_count; i++) {
		const struct piece *piece = &crew->pieces[i];

		if (!piece->is_done || !piece->counted_bytes)
			continue;
		rc = text_read_again(crew, &text, i, piece);
		if (!rc)
			rc = piece_count_for(crew, &text, piece, piece->heap, true);
	}
	free(text.bytes);
	return rc;
}

static int read_left(struct reader_threads *crew)
{
	struct sum_reader *reader = crew->reader;
	struct stream stream = {.crew = crew, .at = crew->stream_from};
	struct dump_source source = {
		.read = stream_read, .ctx = &stream, .name = source_name(crew->source)};
	int rc = take_back(crew);

	return rc ? rc : dump_scanner_read(reader->scanner, &source, reader->err);
}

int reader_threads_read(
	struct sum_reader *reader, struct source *source, const struct crew_plan *plan)
{
	uint64_t count = (plan->to - plan->from + plan->piece_bytes - 1) / plan->piece_bytes;
	struct reader_threads crew = {.reader = reader,
		.source = source,
		.plan = plan,
		.piece_count = (size_t)count,
		.stream_from = plan->to};

	crew.pieces = calloc(crew.piece_count + 1, sizeof(*crew.pieces));
	crew.lock = thread_lock_new();
	atomic_store(&crew.heap, reader->tally.heap);
	if (!crew.pieces || !crew.lock)
		crew.rc = -ERR_NOMEM;
	for (crew.limit = 1; !crew.rc && !atomic_load(&crew.stop); crew.limit = crew.piece_count) {
		/* The first piece alone: most dumps tell in it what heap the others belong to. */
		thread_run(crew.limit == 1 ? 1 : plan->threads, work, &crew);
		atomic_store(&crew.next, 1);
		if (crew.turn == crew.piece_count)
			break;
	}
	if (!crew.rc && crew.stream_from != plan->to)
		crew.rc = read_left(&crew);
	else if (!crew.rc)
		crew.rc = dump_scanner_end(reader->scanner);
	if (crew.rc && !reader->err->code)
		err_set(reader->err, (enum err_code) - crew.rc, source_name(source), NULL);
	thread_lock_free(crew.lock);
	free(crew.pieces);
	return crew.rc;
}
