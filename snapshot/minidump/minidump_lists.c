/* Spans of addresses, and the lists and strings in a minidump file. A list ends at the end of the
 * file at the latest, and missing entries are counted. */
#include "snapshot/minidump/minidump.h"

#include <stdlib.h>

#include "core/base/memory.h"
#include "core/base/sorted.h"
#include "core/base/text.h"
#include "snapshot/minidump/minidump_layout.h"

void spans_release(struct spans *spans)
{
	free(spans->list);
	*spans = (struct spans){0};
}

int spans_add(struct spans *spans, const struct span *span)
{
	if (span->addr >= span->end)
		return 0;
	if (array_try_grow((void **)&spans->list, &spans->cap, spans->count, sizeof(*span)))
		return -ERR_NOMEM;
	spans->list[spans->count++] = *span;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	return (x->access > y->access) - (x->access < y->access);
}

size_t spans_sort(struct spans *spans)
{
	size_t kept = 0, overlaps = 0;
	uint64_t end = 0; /* end of the addresses that are already covered */

	if (spans->count)
		qsort(spans->list, spans->count, sizeof(*spans->list), compare);
	for (size_t i = 0; i < spans->count; i++) {
		struct span span = spans->list[i];

		if (span.addr < end) {
			overlaps++;
			if (span.end <= end)
				continue;
			span.offset += end - span.addr;
			span.addr = end;
		}
		end = span.end;
		spans->list[kept++] = span;
	}
	spans->count = kept;
	return overlaps;
}

void spans_join(struct spans *spans, bool by_offset)
{
	size_t kept = 0;

	for (size_t i = 0; i < spans->count; i++) {
		const struct span *span = &spans->list[i];
		struct span *last = kept ? &spans->list[kept - 1] : NULL;

		if (last && last->end == span->addr &&
			(!by_offset || last->offset + (last->end - last->addr) == span->offset))
			last->end = span->end;
		else
			spans->list[kept++] = *span;
	}
	spans->count = kept;
}

size_t spans_find(const struct spans *spans, uint64_t addr)
{
	return sorted_up_to(
		spans->list, spans->count, sizeof(*spans->list), offsetof(struct span, end), addr);
}

static void narrow(struct target_region *region, uint64_t addr, uint64_t end)
{
	region->addr = addr > region->addr ? addr : region->addr;
	region->end = end < region->end ? end : region->end;
}

const struct span *spans_narrow(
	const struct spans *spans, uint64_t addr, struct target_region *region)
{
	size_t i = spans_find(spans, addr);
	const struct span *span = i < spans->count ? &spans->list[i] : NULL;

	if (span && span->addr <= addr) {
		narrow(region, span->addr, span->end);
		return span;
	}
	narrow(region, i && spans->list ? spans->list[i - 1].end : 0,
		span ? span->addr : UINT64_MAX);
	return NULL;
}

const unsigned char *minidump_at(const struct minidump *dump, uint64_t rva, size_t *len)
{
	if (rva >= dump->len || !*len)
		return NULL;
	*len = *len < dump->len - (size_t)rva ? *len : dump->len - (size_t)rva;
	return dump->bytes + rva;
}

size_t minidump_entries(struct minidump *dump, uint64_t count, size_t len, size_t entry_bytes)
{
	uint64_t room = len / entry_bytes;

	if (count <= room)
		return (size_t)count;
	dump->gaps.cut_entries += count - room;
	return (size_t)room;
}

static struct minidump_list make_list(struct minidump *dump, const struct minidump_stream *stream,
	size_t head, uint64_t count, size_t entry_bytes)
{
	struct minidump_list list = {.entries = stream->bytes + head, .entry_bytes = entry_bytes};

	list.count = minidump_entries(dump, count, stream->len - head, entry_bytes);
	list.is_whole = list.count == count;
	return list;
}

struct minidump_list minidump_list(
	struct minidump *dump, enum minidump_stream_type type, size_t entry_bytes)
{
	const struct minidump_stream *stream = &dump->streams[type];
	size_t head = 4;
	uint32_t count;

	if (!stream->bytes)
		return (struct minidump_list){0};
	if (stream->len < head) {
		dump->gaps.cut_entries++;
		return (struct minidump_list){0};
	}
	count = bytes_u32(stream->bytes);
	if (8 + (uint64_t)count * entry_bytes == stream->said_len && stream->len >= 8)
		head = 8;
	return make_list(dump, stream, head, count, entry_bytes);
}

struct minidump_list minidump_headed_list(struct minidump *dump, enum minidump_stream_type type,
	size_t count_bytes, size_t entry_min_bytes)
{
	const struct minidump_stream *stream = &dump->streams[type];
	size_t head, entry_bytes;
	uint64_t count;

	if (!stream->bytes)
		return (struct minidump_list){0};
	head = stream->len < MD_HEAD_MIN_BYTES ? 0 : bytes_u32(stream->bytes + MD_HEAD_BYTES);
	if (head < MD_HEAD_MIN_BYTES || head > stream->len)
		goto cut;
	entry_bytes = bytes_u32(stream->bytes + MD_HEAD_ENTRY_BYTES);
	if (entry_bytes < entry_min_bytes)
		goto cut;
	count = count_bytes == 8 ? bytes_u64(stream->bytes + MD_HEAD_COUNT) :
				   bytes_u32(stream->bytes + MD_HEAD_COUNT);
	return make_list(dump, stream, head, count, entry_bytes);
cut:
	dump->gaps.cut_entries++;
	return (struct minidump_list){0};
}

uint64_t minidump_addr(const struct minidump *dump, uint64_t addr)
{
	return dump->bits == 32 && addr >= 0xffffffff80000000u ? addr & UINT32_MAX : addr;
}

bool minidump_has_room(struct minidump *dump, size_t bytes)
{
	if (bytes > dump->text_bytes_left)
		return false;
	dump->text_bytes_left -= bytes;
	return true;
}

const char *minidump_text(struct minidump *dump, uint32_t rva, size_t units_max)
{
	size_t len = 4, bytes;
	const unsigned char *at = minidump_at(dump, rva, &len);
	char *text;

	if (!at || len < 4)
		return NULL;
	len = bytes_u32(at);
	len = len < 2 * units_max ? len : 2 * units_max;
	at = minidump_at(dump, (uint64_t)rva + 4, &len);
	bytes = at ? text_from_utf16(at, len / 2, NULL, 0) : 0;
	if (!bytes || !minidump_has_room(dump, bytes))
		return NULL;
	text = arena_alloc(&dump->arena, bytes + 1);
	text_from_utf16(at, len / 2, text, bytes + 1);
	return text;
}
