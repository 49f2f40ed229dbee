/* Merges the events of all processors by time. In each file, the buffers of one processor form a
 * stream, ordered by sequence number. A binary heap orders the streams by the time of their next
 * event. */
#include <stdlib.h>

#include "core/base/memory.h"
#include "core/etw/etw_parts.h"

#define ALL_ROOM_MAX ((uint64_t)2 << 30) /* maximum total memory for one buffer per stream */

/* The buffers of one processor in one file, in order. */
struct stream {
	struct etw_file *file;
	const struct etw_buffer **at, **end;
	struct etw_room room;
	struct etw_events events;
	struct etw_event event;
	unsigned rank; /* order among events with the same time */
};

struct etw_merge {
	const struct etw_buffer **buffers;
	struct stream *streams;
	size_t stream_count, stream_cap;
	struct stream **heap; /* a binary heap; the stream with the earliest event is first */
	size_t heap_count;
	bool is_begun;
	uint64_t done;
};

static int by_sequence(const void *a, const void *b)
{
	const struct etw_buffer *x = *(const struct etw_buffer *const *)a,
				*y = *(const struct etw_buffer *const *)b;

	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	if (x->sequence != y->sequence)
		return x->sequence < y->sequence ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Orders events with the same time. Frees come first, because the freed memory may be allocated
 * again at the same time. Stacks come last. */
static unsigned rank_of(const struct etw_event *event)
{
	if (event->group == ETW_STACK)
		return 2;
	return (event->group == ETW_HEAP && event->type == HEAP_FREE) ||
			       (event->group == ETW_MEMORY && event->type == MEMORY_FREE) ?
		       0 :
		       1;
}

/* Reads the next event of a stream. Returns 1, 0 at the end, or -ERR_READ. */
static int advance(struct etw_merge *merge, struct stream *stream, struct err *err)
{
	while (!etw_next(&stream->events, &stream->event)) {
		int64_t used;

		if (stream->at == stream->end) {
			etw_room_release(&stream->room);
			return 0;
		}
		used = etw_file_read(stream->file, *stream->at, &stream->room, err);
		if (used < 0)
			return (int)used;
		merge->done += (*stream->at)->bytes;
		stream->events = (struct etw_events){.bytes = stream->room.bytes,
			.at = ETW_BUFFER_HEAD,
			.used = (size_t)used,
			.cpu = (*stream->at)->cpu};
		stream->at++;
	}
	stream->rank = rank_of(&stream->event);
	return 1;
}

static bool is_before(const struct stream *a, const struct stream *b)
{
	if (a->event.time != b->event.time)
		return a->event.time < b->event.time;
	return a->rank != b->rank ? a->rank < b->rank : a < b;
}

static void sift(struct etw_merge *merge, size_t at)
{
	struct stream *moved = merge->heap[at];

	for (;;) {
		size_t child = 2 * at + 1;

		if (child + 1 < merge->heap_count &&
			is_before(merge->heap[child + 1], merge->heap[child]))
			child++;
		if (child >= merge->heap_count || !is_before(merge->heap[child], moved))
			break;
		merge->heap[at] = merge->heap[child];
		at = child;
	}
	merge->heap[at] = moved;
}

/* Adds a stream for each processor of a file. Stores pointers to the file's buffers in first[].
 * Returns the memory needed for one buffer per stream. */
static uint64_t add_streams(
	struct etw_merge *merge, struct etw_file *file, const struct etw_buffer **first)
{
	const struct etw_buffer **end = first + file->buffer_count;
	uint64_t room = 0;

	for (size_t i = 0; i < file->buffer_count; i++)
		first[i] = &file->buffers[i];
	qsort(first, file->buffer_count, sizeof(*first), by_sequence);
	while (first < end) {
		const struct etw_buffer **next = first;
		uint32_t most = 0;

		for (; next < end && (*next)->cpu == (*first)->cpu; next++)
			most = (*next)->used > most ? (*next)->used : most;
		array_grow((void **)&merge->streams, &merge->stream_cap, merge->stream_count,
			sizeof(*merge->streams));
		merge->streams[merge->stream_count++] =
			(struct stream){.file = file, .at = first, .end = next};
		room += most;
		first = next;
	}
	return room;
}

int etw_merge_open(struct etw_merge **merge, struct etw_log *log, struct err *err)
{
	struct etw_merge *made = xcalloc(1, sizeof(*made));
	size_t count = 0, at = 0;
	uint64_t room = 0;
	int rc = 0;

	for (size_t i = 0; i < log->file_count; i++)
		count += log->files[i].buffer_count;
	made->buffers = xcalloc(count + 1, sizeof(const struct etw_buffer *));
	for (size_t i = 0; i < log->file_count; i++) {
		room += add_streams(made, &log->files[i], made->buffers + at);
		at += log->files[i].buffer_count;
	}
	if (room > ALL_ROOM_MAX)
		rc = err_set(err, ERR_BAD_ETW, log->files->path,
			"%zu streams whose buffers take %llu MiB together", made->stream_count,
			(unsigned long long)(room >> 20));
	made->heap = xcalloc(made->stream_count + 1, sizeof(struct stream *));
	for (size_t i = 0; rc >= 0 && i < made->stream_count; i++) {
		rc = advance(made, &made->streams[i], err);
		if (rc > 0)
			made->heap[made->heap_count++] = &made->streams[i];
	}
	if (rc < 0) {
		etw_merge_close(made);
		return rc;
	}
	for (size_t i = made->heap_count / 2; i--;)
		sift(made, i);
	*merge = made;
	return 0;
}

void etw_merge_close(struct etw_merge *merge)
{
	if (!merge)
		return;
	for (size_t i = 0; i < merge->stream_count; i++)
		etw_room_release(&merge->streams[i].room);
	free(merge->streams);
	free(merge->buffers);
	free(merge->heap);
	free(merge);
}

uint64_t etw_merge_done(const struct etw_merge *merge)
{
	return merge->done;
}

int etw_merge_next(struct etw_merge *merge, const struct etw_event **event, struct err *err)
{
	if (merge->is_begun) {
		int rc = advance(merge, merge->heap[0], err);

		if (rc < 0)
			return rc;
		if (!rc)
			merge->heap[0] = merge->heap[--merge->heap_count];
		if (merge->heap_count)
			sift(merge, 0);
	}
	merge->is_begun = merge->heap_count;
	if (!merge->heap_count)
		return 0;
	*event = &merge->heap[0]->event;
	return 1;
}
