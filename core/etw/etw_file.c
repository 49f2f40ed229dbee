/*
 * Reads an ETW file: the header in the first buffer, the list of buffers, and the events in a
 * buffer. Tables in this file describe the layouts of the heads.
 */
#include "core/etw/etw_file.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"

/* The head of a buffer: WMI_BUFFER_HEADER in ntwmi.h (phnt), verified using logs of Windows Vista
 * to 11. */
enum {
	BUFFER_BYTES = 0x00,
	/* Number of bytes used, after unpacking; 0 in the first buffer on Windows 7 and older. */
	BUFFER_SAVED = 0x04,
	BUFFER_SEQUENCE = 0x18,
	BUFFER_CPU = 0x28,
	BUFFER_STATE = 0x2c, /* in the first buffer: compression of all other buffers */
	BUFFER_OFFSET = 0x30,
	BUFFER_FLAGS = 0x34,
	BUFFER_TYPE = 0x36,
};
enum { FLAG_EVENTS_LOST = 2, FLAG_BUFFER_LOST = 4, FLAG_CPU_INDEX = 0x20, FLAG_PACKED = 0x40 };
#define TYPE_HEADER 4
#define BUFFER_ALIGN 8

/* The payload of the log header: TRACE_LOGFILE_HEADER in Microsoft's documentation. The payload
 * contains two pointers, so in logs of 64-bit Windows the fields after the pointers are 8 bytes
 * later. */
enum {
	HEAD_OS = 4,
	HEAD_BUILD = 8,
	HEAD_PROCESSORS = 12,
	HEAD_END = 16,
	HEAD_MODE = 32,
	HEAD_POINTER = 44,
	HEAD_LOST = 48,
	HEAD_MHZ = 52,
	HEAD_BOOT = 240,
	HEAD_FREQUENCY = 248,
	HEAD_START = 256,
	HEAD_CLOCK = 264,
	HEAD_BUFFERS_LOST = 268,
	HEAD_NAMES = 272,
};
#define MARKER_AT 3 /* offset in the head of an event */
#define HEADER_AT 2
#define SYSTEM_HEADER 32 /* size in bytes */

bool etw_is_head(const void *bytes, size_t len)
{
	const unsigned char *head = bytes, *event = head + ETW_BUFFER_HEAD;

	return len >= ETW_BUFFER_HEAD + SYSTEM_HEADER &&
	       etw_u32(head + BUFFER_BYTES) >= ETW_BUFFER_HEAD + SYSTEM_HEADER &&
	       etw_u16(head + BUFFER_TYPE) == TYPE_HEADER &&
	       (event[HEADER_AT] == 1 || event[HEADER_AT] == 2) &&
	       (event[MARKER_AT] & 0xc0) == 0xc0 && !event[6] && !event[7];
}

/* ---------------------------------------------------------------- the header */

static int bad(struct err *err, const struct etw_file *file, uint64_t offset, const char *what)
{
	return err_set(
		err, ERR_BAD_ETW, file->path, "%s, at byte %llu", what, (unsigned long long)offset);
}

static int parse_head(
	struct etw_file *file, const unsigned char *bytes, size_t len, struct err *err)
{
	const unsigned char *event = bytes + ETW_BUFFER_HEAD, *at = event + SYSTEM_HEADER;
	struct etw_head *head = &file->head;
	size_t room = len - ETW_BUFFER_HEAD - SYSTEM_HEADER, more = event[HEADER_AT] == 2 ? 8 : 0;
	struct etw_payload names;

	if (room < HEAD_NAMES + more)
		return bad(err, file, ETW_BUFFER_HEAD, "the header is too short");
	head->pointer_bytes = etw_u32(at + HEAD_POINTER);
	if (head->pointer_bytes != 4 && head->pointer_bytes != 8)
		head->pointer_bytes = more ? 8 : 4;
	head->os_major = at[HEAD_OS];
	head->os_minor = at[HEAD_OS + 1];
	head->os_build = etw_u32(at + HEAD_BUILD);
	head->processor_count = etw_u32(at + HEAD_PROCESSORS);
	head->end_time = etw_u64(at + HEAD_END);
	head->mode = etw_u32(at + HEAD_MODE);
	head->events_lost = etw_u32(at + HEAD_LOST);
	head->boot_time = etw_u64(at + HEAD_BOOT + more);
	head->frequency = etw_u64(at + HEAD_FREQUENCY + more);
	head->start_time = etw_u64(at + HEAD_START + more);
	head->clock = etw_u32(at + HEAD_CLOCK + more);
	head->buffers_lost = etw_u32(at + HEAD_BUFFERS_LOST + more);
	head->start_ticks = etw_u64(event + 16);
	if (head->clock == ETW_CLOCK_SYSTEM)
		head->frequency = 10000000;
	else if (head->clock == ETW_CLOCK_CYCLES)
		head->frequency = (uint64_t)etw_u32(at + HEAD_MHZ) * 1000000;
	else if (head->clock != ETW_CLOCK_QPC)
		return bad(err, file, ETW_BUFFER_HEAD, "unknown clock type");
	if (!head->frequency || head->frequency > UINT64_C(100000000000))
		return bad(err, file, ETW_BUFFER_HEAD, "the clock has no frequency");
	names = (struct etw_payload){.at = at + HEAD_NAMES + more, .end = at + room};
	head->session = etw_parse_wide(&names, &file->arena);
	return 0;
}

/* ---------------------------------------------------------------- the list of buffers */

static bool parse_buffer(struct etw_file *file, uint64_t offset, const unsigned char *head,
	struct etw_buffer *buffer)
{
	unsigned flags = etw_u16(head + BUFFER_FLAGS);
	uint32_t saved = etw_u32(head + BUFFER_SAVED);

	*buffer = (struct etw_buffer){.offset = offset,
		.sequence = etw_u64(head + BUFFER_SEQUENCE),
		.bytes = etw_u32(head + BUFFER_BYTES),
		.used = saved ? saved : etw_u32(head + BUFFER_OFFSET),
		.cpu = flags & FLAG_CPU_INDEX ? etw_u16(head + BUFFER_CPU) : head[BUFFER_CPU],
		.is_packed = flags & FLAG_PACKED};
	if (buffer->bytes < ETW_BUFFER_HEAD || buffer->bytes > ETW_BUFFER_MAX ||
		buffer->bytes > file->file_bytes - offset)
		return false;
	if (!buffer->is_packed && buffer->used > buffer->bytes)
		buffer->used = buffer->bytes;
	if (buffer->used > ETW_BUFFER_MAX)
		return false;
	file->flagged_losses += (flags & (FLAG_EVENTS_LOST | FLAG_BUFFER_LOST)) != 0;
	return true;
}

/* Lists the buffers. The first buffer is the header; it also contains an event, which is read like
 * any other. */
static int list_buffers(struct etw_file *file, struct err *err)
{
	unsigned char head[ETW_BUFFER_HEAD];
	uint64_t offset = 0;

	while (offset < file->file_bytes) {
		struct etw_buffer buffer;

		if (file->file_bytes - offset < sizeof(head) ||
			os_read_at(&file->file, offset, head, sizeof(head)) ||
			!parse_buffer(file, offset, head, &buffer)) {
			file->is_cut = true;
			file->cut_bytes = offset;
			break;
		}
		if (!offset)
			file->packing = etw_u32(head + BUFFER_STATE) & 0xffff;
		if (buffer.used > ETW_BUFFER_HEAD) {
			array_grow((void **)&file->buffers, &file->buffer_cap, file->buffer_count,
				sizeof(*file->buffers));
			file->buffers[file->buffer_count++] = buffer;
			if (buffer.used > file->used_max)
				file->used_max = buffer.used;
		}
		offset += buffer.bytes;
	}
	return file->buffer_count ? 0 : bad(err, file, 0, "no buffers");
}

int etw_file_open(struct etw_file *file, const char *path, const char *name, struct err *err)
{
	unsigned char bytes[4096];
	size_t len;
	int rc;

	*file = (struct etw_file){.path = name};
	rc = os_open(&file->file, path, err);
	if (rc)
		return rc;
	arena_init(&file->arena);
	file->file_bytes = os_size(&file->file);
	len = file->file_bytes < sizeof(bytes) ? (size_t)file->file_bytes : sizeof(bytes);
	rc = os_read_at(&file->file, 0, bytes, len) ? err_set(err, ERR_READ, name, NULL) : 0;
	if (!rc && !etw_is_head(bytes, len))
		rc = err_set(err, ERR_NOT_ETW, name, "does not begin with a log header");
	if (!rc)
		rc = parse_head(file, bytes, len, err);
	if (!rc)
		rc = list_buffers(file, err);
	if (rc)
		etw_file_close(file);
	return rc;
}

void etw_file_close(struct etw_file *file)
{
	os_close(&file->file);
	free(file->buffers);
	arena_release(&file->arena);
	*file = (struct etw_file){0};
}

void etw_room_release(struct etw_room *room)
{
	free(room->bytes);
	free(room->packed);
	*room = (struct etw_room){0};
}

static unsigned char *need(unsigned char **bytes, size_t *cap, size_t len)
{
	if (*cap < len) {
		free(*bytes);
		*bytes = xmalloc(len);
		*cap = len;
	}
	return *bytes;
}

int64_t etw_file_read(struct etw_file *file, const struct etw_buffer *buffer, struct etw_room *room,
	struct err *err)
{
	unsigned char *bytes = need(&room->bytes, &room->bytes_cap, buffer->used), *from = bytes;
	uint32_t len = buffer->used;

	if (buffer->is_packed) {
		len = buffer->bytes;
		from = need(&room->packed, &room->packed_cap, len);
	}
	if (os_read_at(&file->file, buffer->offset, from, len))
		return err_set(err, ERR_READ, file->path, "at byte %llu",
			(unsigned long long)buffer->offset);
	if (buffer->is_packed) {
		memcpy(bytes, from, ETW_BUFFER_HEAD);
		if (!etw_unpack(file->packing, from + ETW_BUFFER_HEAD, len - ETW_BUFFER_HEAD,
			    bytes + ETW_BUFFER_HEAD, buffer->used - ETW_BUFFER_HEAD))
			return 0;
	}
	return buffer->used;
}

/* ---------------------------------------------------------------- events */

/* Heads of events, indexed by type, from ntwmi.h. Types that occur in real logs were verified with
 * these logs. */
struct header_layout {
	uint8_t bytes; /* 0: not supported */
	/* Offsets of fields in the head; the size field is 16 bits wide. `ids` is 0 if the head
	 * has none. */
	uint8_t size, version, time, ids;
	uint8_t guid; /* offset; 0: the head has a group and a type instead */
	uint8_t pointer_bytes;
};

static const struct header_layout layouts[] = {
	[1] = {32, 4, 0, 16, 8, 0, 4}, /* system */
	[2] = {32, 4, 0, 16, 8, 0, 8},
	[3] = {24, 4, 0, 16, 8, 0, 4}, /* compact */
	[4] = {24, 4, 0, 16, 8, 0, 8},
	[10] = {48, 0, 6, 16, 8, 24, 4}, /* full */
	[11] = {72, 0, 6, 16, 8, 24, 4}, /* instance */
	[16] = {16, 4, 0, 8, 0, 0, 4}, /* perfinfo */
	[17] = {16, 4, 0, 8, 0, 0, 8},
	[18] = {80, 0, 42, 16, 8, 24, 4}, /* manifest */
	[19] = {80, 0, 42, 16, 8, 24, 8},
	[20] = {48, 0, 6, 16, 8, 24, 8},
	[21] = {72, 0, 6, 16, 8, 24, 8},
};
enum { HEADER_ERROR = 13, HEADER_PERFINFO = 16, HEADER_MANIFEST = 18 };

static const struct provider {
	unsigned group;
	unsigned char guid[16]; /* in the byte order used in memory */
} providers[] = {
	{ETW_MEMORY, {0xd3, 0xa8, 0x6f, 0x3d, 0x05, 0xfe, 0xd0, 0x11, 0x9d, 0xda, 0x00, 0xc0, 0x4f,
			     0xd7, 0xba, 0x7c}},
	{ETW_PROCESS, {0xd0, 0xa8, 0x6f, 0x3d, 0x05, 0xfe, 0xd0, 0x11, 0x9d, 0xda, 0x00, 0xc0, 0x4f,
			      0xd7, 0xba, 0x7c}},
	{ETW_THREAD, {0xd1, 0xa8, 0x6f, 0x3d, 0x05, 0xfe, 0xd0, 0x11, 0x9d, 0xda, 0x00, 0xc0, 0x4f,
			     0xd7, 0xba, 0x7c}},
	{ETW_HEAP, {0xab, 0x62, 0x29, 0x22, 0x80, 0x61, 0x88, 0x4b, 0xa8, 0x25, 0x34, 0x6b, 0x75,
			   0xf2, 0xa2, 0x4a}},
	{ETW_IMAGE, {0x1d, 0x5d, 0xb1, 0x2c, 0xc1, 0x5f, 0xd2, 0x11, 0xab, 0xe1, 0x00, 0xa0, 0xc9,
			    0x11, 0xf5, 0x18}},
	{ETW_STACK, {0x46, 0xfe, 0xf2, 0xde, 0xd6, 0x7b, 0x80, 0x4b, 0xbd, 0x94, 0xf5, 0x7f, 0xe2,
			    0x0d, 0x0c, 0xe3}},
	{ETW_IMAGE_ID, {0xd7, 0x75, 0xe6, 0xb3, 0x54, 0x25, 0x18, 0x4f, 0x83, 0x0b, 0x27, 0x62,
			       0x73, 0x25, 0x60, 0xde}},
	{ETW_PATHS, {0x91, 0xee, 0x79, 0x9b, 0xfd, 0xb5, 0xc0, 0x41, 0xa2, 0x43, 0x42, 0x48, 0xe2,
			    0x66, 0xe9, 0xd0}},
	{ETW_HEAP_SNAPSHOT, {0xfa, 0xd2, 0x1a, 0x90, 0xf6, 0x4f, 0xd7, 0x46, 0x8d, 0x0e, 0x53, 0x64,
				    0x5e, 0x1a, 0x47, 0xf5}},
};

static unsigned group_of(const unsigned char *guid)
{
	for (size_t i = 0; i < sizeof(providers) / sizeof(*providers); i++) {
		if (guid[0] == providers[i].guid[0] && !memcmp(guid, providers[i].guid, 16))
			return providers[i].group;
	}
	return ETW_OTHER;
}

/* Skips optional data between the head and the payload. Returns false if the data is invalid. */
static bool pass_extra(struct etw_event *event, const unsigned char *at, size_t size)
{
	size_t head = (size_t)(event->payload - at), to = head;

	if ((event->header & ~1) == HEADER_PERFINFO) { /* counters */
		unsigned word = etw_u16(at);

		to += 8 * ((word >> 8 & 7) + (word >> 15));
		event->version = (uint8_t)word;
	} else if ((event->header & ~1) == HEADER_MANIFEST && etw_u16(at + 4) & 1) { /* items */
		bool is_more = true;

		while (is_more) {
			if (size < to + 8 || etw_u16(at + to) < 8)
				return false;
			is_more = etw_u16(at + to + 4) & 1;
			to += (etw_u16(at + to) + 7u) & ~7u;
		}
		event->items = event->payload;
		event->items_bytes = to - head;
	}
	if (to > size)
		return false;
	event->payload = at + to;
	event->payload_bytes = size - to;
	return true;
}

static void parse_kind(
	struct etw_event *event, const struct header_layout *layout, const unsigned char *at)
{
	if (!layout->guid) {
		event->type = at[6];
		event->group = at[7];
		event->id = event->type;
	} else {
		event->guid = at + layout->guid;
		event->group = group_of(event->guid);
		event->type = at[4];
		event->id = event->type;
		if ((event->header & ~1) == HEADER_MANIFEST) {
			event->id = etw_u16(at + 40);
			event->type = at[45];
		}
	}
	/* Loads of images are logged in the group of processes. */
	if (event->group == ETW_PROCESS && event->type == 10)
		event->group = ETW_IMAGE;
}

bool etw_next(struct etw_events *events, struct etw_event *event)
{
	while (events->at + 8 <= events->used) {
		const unsigned char *at = events->bytes + events->at;
		const unsigned header = at[HEADER_AT], marker = at[MARKER_AT];
		const struct header_layout *layout;
		const bool is_message = (marker & 0xc0) != 0xc0 && (marker & 0x90) == 0x90;
		size_t size = etw_u16(at), left = events->used - events->at;

		/* The events end here. Zeros should follow; otherwise the buffer is damaged. */
		if ((marker & 0xc0) != 0xc0 && !is_message) {
			events->is_bad = etw_u32(at) != 0;
			return false;
		}
		layout = &layouts[header < sizeof(layouts) / sizeof(*layouts) ? header : 0];
		if (!is_message && layout->bytes)
			size = etw_u16(at + layout->size);
		if (is_message || header == HEADER_ERROR || !layout->bytes) {
			if (size < 8 || size > left || (!is_message && header != HEADER_ERROR)) {
				events->is_bad = true;
				return false;
			}
			events->skipped++;
			events->at += (size + BUFFER_ALIGN - 1) & ~(size_t)(BUFFER_ALIGN - 1);
			continue;
		}
		if (size < layout->bytes || size > left) {
			events->is_bad = true;
			return false;
		}
		events->at += (size + BUFFER_ALIGN - 1) & ~(size_t)(BUFFER_ALIGN - 1);
		*event = (struct etw_event){.time = etw_u64(at + layout->time),
			.tid = layout->ids ? etw_u32(at + layout->ids) : ETW_NO_ID,
			.pid = layout->ids ? etw_u32(at + layout->ids + 4) : ETW_NO_ID,
			.cpu = events->cpu,
			.version = at[layout->version],
			.header = (uint8_t)header,
			.pointer_bytes = layout->pointer_bytes,
			.payload = at + layout->bytes};
		parse_kind(event, layout, at);
		if (!pass_extra(event, at, size)) {
			events->is_bad = true;
			return false;
		}
		return true;
	}
	return false;
}

/* ---------------------------------------------------------------- payloads */

char *etw_parse_text(struct etw_payload *from, struct arena *arena)
{
	size_t room = (size_t)(from->end - from->at), len = 0;
	char *text;

	while (len < room && from->at[len])
		len++;
	text = arena_text(arena, (const char *)from->at, len);
	etw_pass(from, len < room ? len + 1 : len);
	return text;
}

char *etw_parse_wide(struct etw_payload *from, struct arena *arena)
{
	size_t room = (size_t)(from->end - from->at) / 2, len = 0;
	char *text;

	while (len < room && etw_u16(from->at + 2 * len))
		len++;
	text = arena_alloc(arena, 3 * len + 1);
	text_from_utf16(from->at, len, text, 3 * len + 1);
	etw_pass(from, 2 * (len < room ? len + 1 : len));
	return text;
}

/* ---------------------------------------------------------------- times */

uint64_t etw_time(const struct etw_head *head, uint64_t ticks)
{
	uint64_t since = ticks > head->start_ticks ? ticks - head->start_ticks : 0;

	if (head->clock == ETW_CLOCK_SYSTEM)
		return ticks;
	return head->start_time + since / head->frequency * 10000000 +
	       since % head->frequency * 10000000 / head->frequency;
}

int64_t etw_time_ms(uint64_t filetime)
{
	return (int64_t)(filetime / 10000) - INT64_C(11644473600000);
}
