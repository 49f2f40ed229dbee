/*
 * The container of an ETW log: a sequence of buffers, each filled by one processor.
 * man/hdiff-etw.7, SOURCES, lists the sources of the layout. The reader trusts nothing in a log. A
 * session consists of one or more log files, which all use the machine's clock.
 */
#ifndef CORE_ETW_ETW_FILE_H
#define CORE_ETW_ETW_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/base/os.h"

/* bytes, packed or unpacked; Windows has the same limit */
#define ETW_BUFFER_MAX ((uint32_t)16 << 20)
#define ETW_NO_ID UINT32_MAX /* the event has no process or thread id */

enum etw_clock { ETW_CLOCK_QPC = 1, ETW_CLOCK_SYSTEM, ETW_CLOCK_CYCLES };

/* The log's own header. */
struct etw_head {
	unsigned pointer_bytes; /* pointer size of the recorded system */
	unsigned os_major, os_minor, os_build, processor_count;
	uint64_t boot_time, start_time, end_time; /* FILETIME; end_time 0: the log was not closed */
	uint64_t start_ticks; /* clock value at start_time */
	uint64_t frequency; /* ticks per second; never 0 */
	enum etw_clock clock;
	uint32_t mode, events_lost, buffers_lost;
	const char *session; /* session name in UTF-8 */
};

struct etw_buffer {
	uint64_t offset, sequence;
	/* `bytes` is the size in the file; `used` is the size after unpacking, including the
	 * head */
	uint32_t bytes, used;
	uint32_t cpu;
	bool is_packed;
};

struct etw_file {
	/* name for messages; includes the name of the archive if the file is in one */
	const char *path;
	struct os_file file;
	uint64_t file_bytes;
	struct etw_head head;
	struct etw_buffer *buffers; /* in file order, without empty buffers */
	size_t buffer_count, buffer_cap;
	uint32_t used_max; /* largest `used` value of all buffers */
	unsigned packing;
	/* number of buffers whose flags report lost events or lost buffers */
	uint64_t flagged_losses;
	/* the end of the file is missing or invalid; the invalid part starts at cut_bytes */
	bool is_cut;
	uint64_t cut_bytes;
	struct arena arena;
};

/* Returns true if a file that begins with these bytes is an ETW log. Pass at least ETW_PEEK_BYTES
 * bytes, or the whole file. */
#define ETW_PEEK_BYTES 128
bool etw_is_head(const void *bytes, size_t len);

/* Opens a log and lists its buffers. `name` is used in messages and must stay valid. Returns 0,
 * -ERR_OPEN, -ERR_READ, -ERR_NOT_ETW or -ERR_BAD_ETW. */
int etw_file_open(struct etw_file *file, const char *path, const char *name, struct err *err);
void etw_file_close(struct etw_file *file);

/* Unpacks data packed by RtlCompressBuffer(), using the published algorithms (MS-XCA). Returns true
 * if the data unpacks to exactly to_bytes bytes. Never reads or writes outside the two buffers.
 * Implemented in unpack.c. */
enum { ETW_LZNT1 = 2, ETW_XPRESS = 3, ETW_XPRESS_HUFFMAN = 4 };
bool etw_unpack(unsigned format, const unsigned char *from, size_t from_bytes, unsigned char *to,
	size_t to_bytes);

/* Memory for one buffer, packed and unpacked. */
struct etw_room {
	unsigned char *bytes, *packed;
	size_t bytes_cap, packed_cap;
};

void etw_room_release(struct etw_room *room);

/* Reads a buffer. Its events start after ETW_BUFFER_HEAD bytes. Returns the number of bytes, 0 if
 * the buffer cannot be unpacked, or -ERR_READ. */
#define ETW_BUFFER_HEAD 72
int64_t etw_file_read(struct etw_file *file, const struct etw_buffer *buffer, struct etw_room *room,
	struct err *err);

/*
 * Events. Windows kernel events have a group and a type, which are stored in their head or derived
 * from the GUID of their provider. Other events have a GUID and an id.
 */

enum etw_group {
	ETW_MEMORY = 0x02,
	ETW_PROCESS = 0x03,
	ETW_THREAD = 0x05,
	ETW_HEAP = 0x10,
	ETW_IMAGE = 0x14,
	ETW_STACK = 0x18,
	/* The PDB of an image. This group and the next two are identified only by GUIDs. */
	ETW_IMAGE_ID = 0x100,
	ETW_PATHS, /* paths of volumes */
	ETW_HEAP_SNAPSHOT, /* heap snapshot of WPR */
	ETW_OTHER,
};

struct etw_event {
	uint64_t time;
	uint32_t pid, tid; /* ids, or ETW_NO_ID */
	uint32_t cpu;
	unsigned group; /* enum etw_group, or another kernel group below 0x100 */
	uint8_t type, version, header, pointer_bytes;
	uint16_t id; /* id of a manifest event; for other events, the type */
	const unsigned char *guid; /* 16 bytes, or NULL */
	const unsigned char *payload;
	size_t payload_bytes;
	/* Extended data between head and payload of a manifest event, or NULL. */
	const unsigned char *items;
	size_t items_bytes;
};

struct etw_events {
	const unsigned char *bytes;
	size_t at, used;
	uint32_t cpu;
	/* number of trace messages and logging errors, whose format is not needed */
	uint64_t skipped;
	bool is_bad; /* the remaining part of the buffer is invalid */
};

/* Reads the next event. Returns false at the end of the buffer. */
bool etw_next(struct etw_events *events, struct etw_event *event);

/* Read a number from a log. Inline, because they are called for every frame. */
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

/* The unread part of a payload. A read past the end returns 0 and sets is_short. */
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

static inline uint32_t etw_parse_u32(struct etw_payload *from)
{
	const unsigned char *at = from->at;

	etw_pass(from, 4);
	return from->is_short ? 0 : etw_u32(at);
}

static inline uint64_t etw_parse_u64(struct etw_payload *from)
{
	const unsigned char *at = from->at;

	etw_pass(from, 8);
	return from->is_short ? 0 : etw_u64(at);
}

static inline uint64_t etw_parse_pointer(struct etw_payload *from)
{
	return from->pointer_bytes == 4 ? etw_parse_u32(from) : etw_parse_u64(from);
}

/* Read a string up to a NUL or the end of the payload. Return it in UTF-8, in the arena. */
char *etw_parse_text(struct etw_payload *from, struct arena *arena);
char *etw_parse_wide(struct etw_payload *from, struct arena *arena);

/* Convert clock ticks to FILETIME (100 ns since 1601), and FILETIME to ms since 1970. */
uint64_t etw_time(const struct etw_head *head, uint64_t ticks);
int64_t etw_time_ms(uint64_t filetime);

#endif
