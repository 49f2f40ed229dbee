#include "snapshot/minidump/minidump.h"

#include <stdlib.h>
#include <string.h>

#include "snapshot/minidump/minidump_layout.h"

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
	return (struct minidump_list){stream->bytes + head,
		minidump_entries(dump, count, stream->len - head, entry_bytes)};
}

uint64_t minidump_addr(const struct minidump *dump, uint64_t addr)
{
	return dump->bits == 32 && addr >= 0xffffffff80000000u ? addr & UINT32_MAX : addr;
}

static void take_stream(struct minidump *dump, const unsigned char *entry)
{
	uint32_t type = bytes_u32(entry + MD_STREAM_TYPE);
	size_t len = bytes_u32(entry + MD_STREAM_BYTES);
	struct minidump_stream stream = {.said_len = (uint32_t)len};

	if (type >= MD_STREAM_TYPES || !type)
		return;
	if (dump->streams[type].bytes) {
		dump->gaps.repeated++;
		return;
	}
	stream.bytes = minidump_at(dump, bytes_u32(entry + MD_STREAM_RVA), &len);
	stream.len = stream.bytes ? len : 0;
	if (stream.bytes)
		dump->streams[type] = stream;
	else
		dump->gaps.cut_entries++;
}

static void read_directory(struct minidump *dump)
{
	uint32_t rva = bytes_u32(dump->bytes + MD_DIRECTORY_RVA);
	size_t len = dump->len;
	const unsigned char *directory = minidump_at(dump, rva, &len);
	size_t count = minidump_entries(dump, bytes_u32(dump->bytes + MD_STREAM_COUNT),
		directory ? len : 0, MD_DIRECTORY_BYTES);

	for (size_t i = 0; i < count; i++)
		take_stream(dump, directory + i * MD_DIRECTORY_BYTES);
}

static int check_header(const unsigned char *bytes, size_t len, const char *name, struct err *err)
{
	if (len >= 8 && (!memcmp(bytes, "PAGEDU64", 8) || !memcmp(bytes, "PAGEDUMP", 8)))
		return err_set(err, ERR_NOT_MINIDUMP, name, "it is a dump of the whole system");
	if (len < 4 || bytes_u32(bytes + MD_SIGNATURE) != MD_MAGIC)
		return err_set(err, ERR_NOT_MINIDUMP, name, "it does not begin with MDMP");
	if (len < MD_HEADER_BYTES)
		return err_set(err, ERR_NOT_MINIDUMP, name, "it is cut short after %zu bytes", len);
	if (bytes_u16(bytes + MD_VERSION) != MD_MAGIC_VERSION)
		return err_set(err, ERR_NOT_MINIDUMP, name, "version %X is not known",
			bytes_u16(bytes + MD_VERSION));
	return 0;
}

/* Pointers' size by the processor; where that is not told, by where memory lies. */
static void find_bits(struct minidump *dump)
{
	const struct minidump_stream *system = &dump->streams[MD_SYSTEM];
	const struct minidump_stream *modules = &dump->streams[MD_MODULES];

	dump->bits = 64;
	if (system->len >= MD_SYSTEM_MIN_BYTES) {
		switch (bytes_u16(system->bytes + MD_SYSTEM_ARCHITECTURE)) {
		case MD_ARCHITECTURE_INTEL:
		case MD_ARCHITECTURE_ARM: dump->bits = 32; return;
		case MD_ARCHITECTURE_AMD64:
		case MD_ARCHITECTURE_ARM64: return;
		default: break;
		}
	}
	dump->is_bits_guessed = true;
	if (modules->len >= 4 + MD_MODULE_BYTES &&
		bytes_u64(modules->bytes + 4 + MD_MODULE_BASE) <= UINT32_MAX)
		dump->bits = 32;
}

int minidump_read(
	struct minidump *dump, const void *bytes, size_t len, const char *name, struct err *err)
{
	int rc = check_header(bytes, len, name, err);

	if (rc)
		return rc;
	*dump = (struct minidump){.bytes = bytes, .len = len};
	/* Texts of a sound file lie side by side in it, as UTF-16, and grow by half at most. */
	dump->text_bytes_left = (uint64_t)len * 2;
	arena_init(&dump->arena);
	dump->time_ms = (int64_t)bytes_u32(dump->bytes + MD_TIME) * 1000;
	dump->flags = bytes_u64(dump->bytes + MD_FLAGS);
	read_directory(dump);
	find_bits(dump);
	rc = minidump_read_memory(dump);
	if (!rc)
		rc = minidump_read_modules(dump);
	if (rc) {
		minidump_release(dump);
		return err_set(err, ERR_NOMEM, name, NULL);
	}
	return 0;
}

void minidump_release(struct minidump *dump)
{
	spans_release(&dump->memory);
	spans_release(&dump->runs);
	spans_release(&dump->infos);
	spans_release(&dump->module_spans);
	free(dump->modules);
	arena_release(&dump->arena);
	*dump = (struct minidump){0};
}
