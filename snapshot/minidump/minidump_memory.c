/* Memory in a minidump file. Three streams describe it: a list of ranges with offsets, a list of
 * consecutive ranges, and the regions with their access. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "core/io/out.h"
#include "snapshot/live/process.h"
#include "snapshot/minidump/minidump.h"
#include "snapshot/minidump/minidump_layout.h"
#include "snapshot/target/nt_process.h"

/* Counts missing memory. The total is capped if the sizes are impossible. */
static void count_cut(struct minidump *dump, uint64_t bytes)
{
	dump->gaps.cut_ranges++;
	if (bytes > UINT64_MAX - dump->gaps.cut_bytes)
		dump->gaps.cut_bytes = UINT64_MAX;
	else
		dump->gaps.cut_bytes += bytes;
}

static int add_memory(struct minidump *dump, uint64_t addr, uint64_t bytes, uint64_t offset)
{
	uint64_t room = offset < dump->len ? dump->len - offset : 0;
	uint64_t said = bytes;

	addr = minidump_addr(dump, addr);
	bytes = bytes < room ? bytes : room;
	if (bytes > UINT64_MAX - addr) /* the range ends beyond the end of the address space */
		bytes = UINT64_MAX - addr;
	if (bytes < said)
		count_cut(dump, said - bytes);
	return spans_add(
		&dump->memory, &(struct span){.addr = addr, .end = addr + bytes, .offset = offset});
}

static int read_list(struct minidump *dump)
{
	struct minidump_list list = minidump_list(dump, MD_MEMORY, MD_MEMORY_BYTES);
	int rc = 0;

	for (size_t i = 0; !rc && i < list.count; i++) {
		const unsigned char *entry = list.entries + i * MD_MEMORY_BYTES;

		rc = add_memory(dump, bytes_u64(entry + MD_MEMORY_ADDR),
			bytes_u32(entry + MD_MEMORY_SIZE), bytes_u32(entry + MD_MEMORY_RVA));
	}
	dump->range_count += list.count;
	return rc;
}

/* Reads the list of ranges whose bytes follow each other in the file. */
static int read_list64(struct minidump *dump)
{
	const struct minidump_stream *stream = &dump->streams[MD_MEMORY64];
	uint64_t offset;
	size_t count;
	int rc = 0;

	if (!stream->bytes)
		return 0;
	if (stream->len < MD_MEMORY64_HEAD_BYTES) {
		dump->gaps.cut_entries++;
		return 0;
	}
	offset = bytes_u64(stream->bytes + MD_MEMORY64_BASE_RVA);
	count = minidump_entries(dump, bytes_u64(stream->bytes + MD_MEMORY64_COUNT),
		stream->len - MD_MEMORY64_HEAD_BYTES, MD_MEMORY64_BYTES);
	for (size_t i = 0; !rc && i < count; i++) {
		const unsigned char *entry =
			stream->bytes + MD_MEMORY64_HEAD_BYTES + i * MD_MEMORY64_BYTES;
		uint64_t bytes = bytes_u64(entry + MD_MEMORY64_SIZE);

		rc = add_memory(dump, bytes_u64(entry + MD_MEMORY64_ADDR), bytes, offset);
		offset = bytes > UINT64_MAX - offset ? UINT64_MAX : offset + bytes;
	}
	dump->range_count += count;
	return rc;
}

static int add_info(struct minidump *dump, const unsigned char *entry)
{
	uint64_t bytes = bytes_u64(entry + MD_INFO_SIZE);
	uint32_t type = bytes_u32(entry + MD_INFO_TYPE);
	uint32_t protect = bytes_u32(entry + MD_INFO_PROTECT);
	struct span span = {.addr = minidump_addr(dump, bytes_u64(entry + MD_INFO_ADDR)),
		.access = live_protection_access(protect),
		.is_image = type == MD_MEM_IMAGE,
		.is_read_only_view = live_is_read_only_view(
			type, protect, bytes_u32(entry + MD_INFO_ALLOCATION_PROTECT))};

	if (bytes_u32(entry + MD_INFO_STATE) != MD_MEM_COMMIT)
		return 0;
	span.end = bytes > UINT64_MAX - span.addr ? UINT64_MAX : span.addr + bytes;
	return spans_add(&dump->infos, &span);
}

static int read_infos(struct minidump *dump)
{
	struct minidump_list list = minidump_headed_list(dump, MD_INFOS, 8, MD_INFO_BYTES);
	int rc = 0;

	for (size_t i = 0; !rc && i < list.count; i++)
		rc = add_info(dump, list.entries + i * list.entry_bytes);
	spans_sort(&dump->infos);
	dump->info_list = list;
	return rc;
}

/*
 * Leaves out memory that exceeds the file's size. In a sound file, every byte of memory has an
 * offset of its own. If ranges could share offsets, a small file could contain any amount of
 * memory. */
static void bound_memory(struct minidump *dump)
{
	uint64_t left = dump->len;
	size_t i = 0;

	for (; i < dump->memory.count; i++) {
		uint64_t bytes = dump->memory.list[i].end - dump->memory.list[i].addr;

		if (bytes > left)
			break;
		left -= bytes;
	}
	dump->gaps.shared = dump->memory.count - i;
	dump->memory.count = i;
}

int minidump_read_memory(struct minidump *dump)
{
	int rc = read_list64(dump);

	if (!rc)
		rc = read_list(dump);
	if (!rc)
		rc = read_infos(dump);
	dump->gaps.overlaps = spans_sort(&dump->memory);
	bound_memory(dump);
	spans_join(&dump->memory, true);
	for (size_t i = 0; !rc && i < dump->memory.count; i++)
		rc = spans_add(&dump->runs, &dump->memory.list[i]);
	spans_join(&dump->runs, false);
	return rc;
}

const unsigned char *minidump_view(const struct minidump *dump, uint64_t addr, size_t *len)
{
	size_t i = spans_find(&dump->memory, addr);
	const struct span *span = i < dump->memory.count ? &dump->memory.list[i] : NULL;

	if (!span || span->addr > addr)
		return NULL;
	*len = (size_t)(span->end - addr);
	return dump->bytes + span->offset + (addr - span->addr);
}

int minidump_copy(const struct minidump *dump, uint64_t addr, void *bytes, size_t len)
{
	unsigned char *to = bytes;

	while (len) {
		size_t part;
		const unsigned char *from = minidump_view(dump, addr, &part);

		if (!from)
			return -ERR_READ;
		part = part < len ? part : len;
		memcpy(to, from, part);
		addr += part;
		to += part;
		len -= part;
	}
	return 0;
}
