/*
 * The container of an ETW log: buffers one after another, each of one processor (facts of the layout: man/hdiff-etw.7,
 * SOURCES). Nothing in it is trusted. A file is one of the logs of a session; its clock is that of the machine.
 */
#ifndef CORE_ETW_ETW_FILE_H
#define CORE_ETW_ETW_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/base/os.h"

#define ETW_BUFFER_MAX ((uint32_t)16 << 20) /* bytes, unpacked too: what Windows allows */
#define ETW_NO_ID UINT32_MAX /* of a process or thread that an event does not name */

enum etw_clock { ETW_CLOCK_QPC = 1, ETW_CLOCK_SYSTEM, ETW_CLOCK_CYCLES };

/* What a log says of itself. */
struct etw_head {
	unsigned pointer_bytes; /* of the recorder's system */
	unsigned os_major, os_minor, os_build, processor_count;
	uint64_t boot_time, start_time, end_time; /* FILETIME; end 0: not closed */
	uint64_t start_ticks; /* the clock at start_time */
	uint64_t frequency; /* of the clock, a second; not 0 */
	enum etw_clock clock;
	uint32_t mode, events_lost, buffers_lost;
	const char *session; /* its name, UTF-8 */
};

struct etw_buffer {
	uint64_t offset, sequence;
	uint32_t bytes, used; /* in the file; unpacked, with the head */
	uint32_t cpu;
	bool is_packed;
};

struct etw_file {
	const char *path; /* as it is called; of what is in an archive, both names */
	struct os_file file;
	uint64_t file_bytes;
	struct etw_head head;
	struct etw_buffer *
		buffers; /* in the order of the file, without what only says that something is missing */
	size_t buffer_count, buffer_cap;
	uint32_t used_max; /* of all buffers */
	unsigned packing;
	uint64_t flagged_losses; /* buffers that say that events or buffers before them were lost */
	bool is_cut; /* its end is missing or makes no sense: from cut_bytes on */
	uint64_t cut_bytes;
	struct arena arena;
};

/* Whether a file that begins with these bytes (at least 128, or the whole file) is an ETW log. */
#define ETW_PEEK_BYTES 128
bool etw_is_head(const void *bytes, size_t len);

/* Opens a log and lists its buffers: 0, -ERR_OPEN, -ERR_READ, -ERR_NOT_ETW, -ERR_BAD_ETW. name is
 * how it is called in messages; it must stay. */
int etw_file_open(struct etw_file *file, const char *path, const char *name, struct err *err);
void etw_file_close(struct etw_file *file);

/* What RtlCompressBuffer packed, by the published algorithms (MS-XCA): true when exactly to_bytes came out. Nothing
 * outside of both is read or written. unpack.c. */
enum { ETW_LZNT1 = 2, ETW_XPRESS = 3, ETW_XPRESS_HUFFMAN = 4 };
bool etw_unpack(unsigned format, const unsigned char *from, size_t from_bytes, unsigned char *to,
	size_t to_bytes);

/* Room for a buffer of a file, as it lies there and unpacked. */
struct etw_room {
	unsigned char *bytes, *packed;
	size_t bytes_cap, packed_cap;
};

void etw_room_release(struct etw_room *room);

/* Reads a buffer, whose events are behind ETW_BUFFER_HEAD bytes: how many bytes there are; 0: it does not unpack.
 * -ERR_READ. */
#define ETW_BUFFER_HEAD 72
int64_t etw_file_read(struct etw_file *file, const struct etw_buffer *buffer, struct etw_room *room,
	struct err *err);

/*
 * Events. Those of Windows' kernel have a group and a type in it, whether their head says so or a provider's GUID
 * does; others have the GUID and an id.
 */

enum etw_group {
	ETW_MEMORY = 0x02,
	ETW_PROCESS = 0x03,
	ETW_THREAD = 0x05,
	ETW_HEAP = 0x10,
	ETW_IMAGE = 0x14,
	ETW_STACK = 0x18,
	ETW_IMAGE_ID = 0x100, /* which PDB an image has; these three have GUIDs alone */
	ETW_PATHS, /* where volumes are */
	ETW_HEAP_SNAPSHOT, /* a heap snapshot of WPR */
	ETW_OTHER,
};

struct etw_event {
	uint64_t time;
	uint32_t pid, tid; /* or ETW_NO_ID */
	uint32_t cpu;
	unsigned group; /* enum etw_group, or another of the kernel's below 0x100 */
	uint8_t type, version, header, pointer_bytes;
	uint16_t id; /* of a manifest's event; else its type */
	const unsigned char *guid; /* 16 bytes, or NULL */
	const unsigned char *payload;
	size_t payload_bytes;
	const unsigned char *items; /* before the payload, of a manifest's event; or NULL */
	size_t items_bytes;
};

/* Events of one buffer. */
struct etw_events {
	const unsigned char *bytes;
	size_t at, used;
	uint32_t cpu;
	uint64_t skipped; /* trace messages and errors while logging, whose form nobody needs */
	bool is_bad; /* the rest of it makes no sense */
};

/* False behind the last one. */
bool etw_next(struct etw_events *events, struct etw_event *event);

/* Numbers as they lie in a log. These and the next are here because they are called for every frame. */
static inline uint16_t etw_u16(const unsigned char *at)
{
	return (uint16_t)(at[0] | at[1] << 8);
}

static inline uint32_t etw_u32(const unsigned char *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint64_t etw_u64(const unsigned char *at)
{
	return etw_u32(at) | (uint64_t)etw_u32(at + 4) << 32;
}

/* What is left of a payload: what is taken behind its end is 0, and is_short then. */
struct etw_payload {
	const unsigned char *at, *end;
	unsigned pointer_bytes;
	bool is_short;
};

static inline struct etw_payload etw_payload(const struct etw_event *event)
{
	return (struct etw_payload){.at = event->payload,
		.end = event->payload + event->payload_bytes,
		.pointer_bytes = event->pointer_bytes};
}

static inline void etw_pass(struct etw_payload *from, size_t bytes)
{
	if (bytes <= (size_t)(from->end - from->at)) {
		from->at += bytes;
	} else {
		from->is_short = true;
		from->at = from->end;
	}
}

static inline uint32_t etw_take_u32(struct etw_payload *from)
{
	const unsigned char *at = from->at;

	etw_pass(from, 4);
	return from->is_short ? 0 : etw_u32(at);
}

static inline uint64_t etw_take_u64(struct etw_payload *from)
{
	const unsigned char *at = from->at;

	etw_pass(from, 8);
	return from->is_short ? 0 : etw_u64(at);
}

static inline uint64_t etw_take_pointer(struct etw_payload *from)
{
	return from->pointer_bytes == 4 ? etw_take_u32(from) : etw_take_u64(from);
}

/* Texts up to a zero, or to the end, as UTF-8, in the arena. */
char *etw_take_text(struct etw_payload *from, struct arena *arena);
char *etw_take_wide(struct etw_payload *from, struct arena *arena);

/* 100 ns since 1601, when the clock showed that; and ms since 1970. */
uint64_t etw_time(const struct etw_head *head, uint64_t ticks);
int64_t etw_time_ms(uint64_t filetime);

#endif
