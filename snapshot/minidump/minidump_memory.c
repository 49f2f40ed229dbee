#include <string.h>

#include "snapshot/minidump/minidump.h"
#include "snapshot/minidump/minidump_layout.h"

/* More than a file can lack: of sizes that make no sense. */
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
	if (bytes > UINT64_MAX - addr) /* round the end of the address space */
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

/* All bytes of all ranges follow each other. */
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

static unsigned access_of(uint32_t protect)
{
	unsigned access = 0;

	if (protect & MD_PAGE_GUARD)
		return 0;
	if (protect &
		(MD_PAGE_READONLY | MD_PAGE_READWRITE | MD_PAGE_WRITECOPY | MD_PAGE_EXECUTE_READ |
			MD_PAGE_EXECUTE_READWRITE | MD_PAGE_EXECUTE_WRITECOPY))
		access |= TARGET_READ;
	if (protect & (MD_PAGE_READWRITE | MD_PAGE_WRITECOPY | MD_PAGE_EXECUTE_READWRITE |
			      MD_PAGE_EXECUTE_WRITECOPY))
		access |= TARGET_WRITE;
	if (protect & (MD_PAGE_EXECUTE | MD_PAGE_EXECUTE_READ | MD_PAGE_EXECUTE_READWRITE |
			      MD_PAGE_EXECUTE_WRITECOPY))
		access |= TARGET_EXECUTE;
	return access;
}

static int add_info(struct minidump *dump, const unsigned char *entry)
{
	uint64_t bytes = bytes_u64(entry + MD_INFO_SIZE);
	struct span span = {.addr = minidump_addr(dump, bytes_u64(entry + MD_INFO_ADDR)),
		.access = access_of(bytes_u32(entry + MD_INFO_PROTECT)),
		.is_image = bytes_u32(entry + MD_INFO_TYPE) == MD_MEM_IMAGE};

	if (bytes_u32(entry + MD_INFO_STATE) != MD_MEM_COMMIT)
		return 0;
	span.end = bytes > UINT64_MAX - span.addr ? UINT64_MAX : span.addr + bytes;
	return spans_add(&dump->infos, &span);
}

static int read_infos(struct minidump *dump)
{
	const struct minidump_stream *stream = &dump->streams[MD_INFOS];
	size_t head, entry_bytes, count;
	int rc = 0;

	if (!stream->bytes)
		return 0;
	if (stream->len < MD_INFOS_MIN_BYTES) {
		dump->gaps.cut_entries++;
		return 0;
	}
	head = bytes_u32(stream->bytes + MD_INFOS_HEAD_BYTES);
	entry_bytes = bytes_u32(stream->bytes + MD_INFOS_ENTRY_BYTES);
	if (head < MD_INFOS_MIN_BYTES || head > stream->len || entry_bytes < MD_INFO_BYTES) {
		dump->gaps.cut_entries++;
		return 0;
	}
	count = minidump_entries(
		dump, bytes_u64(stream->bytes + MD_INFOS_COUNT), stream->len - head, entry_bytes);
	for (size_t i = 0; !rc && i < count; i++)
		rc = add_info(dump, stream->bytes + head + i * entry_bytes);
	spans_settle(&dump->infos);
	return rc;
}

/*
 * In a sound file every byte of memory has a place of its own. Where ranges share places, a small file
 * could hold any amount of memory: what is more than the file is left out.
 */
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
	dump->gaps.overlaps = spans_settle(&dump->memory);
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

/* What is committed and in the file; a process has no more than that for us. */
int minidump_region(const struct minidump *dump, uint64_t addr, struct target_region *region)
{
	size_t i = spans_find(&dump->runs, addr);
	const struct span *run = &dump->runs.list[i], *info, *module;
	struct target_region found;

	if (i == dump->runs.count)
		return -ERR_READ;
	addr = addr > run->addr ? addr : run->addr;
	found = (struct target_region){.addr = run->addr, .end = run->end, .access = TARGET_READ};
	info = spans_narrow(&dump->infos, addr, &found);
	module = spans_narrow(&dump->module_spans, addr, &found);
	if (info)
		found.access = info->access;
	else if (module)
		found.access |= TARGET_EXECUTE;
	found.is_image = module || (info && info->is_image);
	*region = found;
	return 0;
}
