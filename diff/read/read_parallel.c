/* Reading a dump with several threads: the division of a file into pieces. */
#include <stdlib.h>
#include <string.h>

#include <stdatomic.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "diff/read/count.h"
#include "diff/read/read_dump.h"

/*
 * Reading one file with several threads.
 *
 * The file is divided into pieces. A piece never starts in the middle of a stack. Each thread
 * claims the next piece, and counts the plain entries at the start of the piece in the thread's own
 * tally. The thread stops at the first line of another kind. Counted pieces are then completed in
 * order, by any thread. To complete a piece, the scanner skips the counted entries and reads the
 * rest. The order matters, because the scanner's state depends on the lines before. Most pieces
 * have no rest.
 *
 * If long lines prevent dividing the file near the intended places, the file is read again in
 * order.
 *
 * The heap of a piece is known only when the piece is completed. A thread assumes the latest known
 * heap. If the assumption was wrong, the piece's entries are subtracted and counted again. */

/* maximum number of bytes to read after a piece, to find the end of its last entry */
#define OVERLAP_BYTES ((size_t)64 << 10)
/* bytes of the overlap that are read with the piece; the rest is read only if needed */
#define FIRST_OVERLAP_BYTES ((size_t)4 << 10)

struct piece {
	uint64_t offset, len; /* range in the file */
	uint64_t counted_bytes; /* counted bytes, from the start of the piece */
	struct dump_progress progress; /* progress over the counted bytes */
	uint32_t heap; /* heap under which the entries were counted */
	bool is_done;
	bool is_open; /* no place to divide the file was found near the piece's start or end */
	int rc;
};

struct reader_threads {
	struct sum_reader *reader;
	struct source *source;
	const struct read_plan *plan;
	size_t piece_count;
	size_t limit; /* threads claim only pieces before this one */
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

/* Returns the position of the first line at or after `at` that does not belong to a stack. Returns
 * 0 if no such line is nearby. */
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
	/* stops at the same place as when the piece was first counted */
	tally_plain(&tally, text->start, text->start + piece->len, &again);
	if (memcmp(&again, &piece->progress, sizeof(again)) != 0)
		rc = changes(threads);
	else
		tally_flush(&tally);
	tally_release(&tally);
	return rc;
}

static int piece_complete(struct reader_threads *threads, struct text *text, size_t index)
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

/* Completes pieces in order, up to the first piece that is not yet counted. */
static void complete_pieces(struct reader_threads *threads, struct text *text)
{
	while (!threads->rc && threads->settled_count < threads->piece_count &&
		threads->pieces[threads->settled_count].is_done)
		threads->rc = piece_complete(threads, text, threads->settled_count++);
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
		complete_pieces(threads, &others);
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
		/* Read the first piece alone. In most dumps, it contains the heading for the
		 * entries of the other pieces. */
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
