/* Unloaded modules: their identity, which is read from mapped headers, and the tables of their
 * records and unloads. */
#include <stddef.h>

#include "snapshot/tracer/tables.h"
#include "snapshot/tracer/tracer_memory.h"

/*
 * Offsets in PE images: "PE Format", Microsoft Learn. If offsets in the optional header differ by
 * bitness, the first value is for PE32. RSDS: CV_INFO_PDB70, as described in "Matching debug
 * information" and in LLVM's include/llvm/Object/CVDebugRecord.h.
 */
#define DOS_PE_OFFSET 0x3c
#define PE_TIMESTAMP 8
#define PE_OPTIONAL 24
#define OPTIONAL_CHECKSUM 64
static const uint8_t optional_directory_count[] = {92, 108};
static const uint8_t optional_directories[] = {96, 112};
/* up to and including the 7th directory, the debug directory */
#define OPTIONAL_BYTES_READ (112 + 7 * 8)
#define PE_HEADER_BYTES (PE_OPTIONAL + OPTIONAL_BYTES_READ)
#define MAGIC_PE32 0x10b
#define MAGIC_PE32_PLUS 0x20b
#define DIRECTORY_DEBUG 6
#define DEBUG_ENTRY_BYTES 28
#define DEBUG_ENTRIES_MAX 32
#define DEBUG_TYPE 12
#define DEBUG_SIZE 16
#define DEBUG_RVA 20
#define TYPE_CODEVIEW 2
#define RSDS_GUID 4
#define RSDS_AGE 20
#define RSDS_NAME 24

static uint32_t u32(const uint8_t *bytes)
{
	return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

static bool read_at(const struct module_image *image, uint32_t rva, void *to, uint32_t len)
{
	return len <= image->bytes && rva <= image->bytes - len &&
	       image->read(image->base + rva, to, len);
}

/* Adds the name that follows an RSDS record, if the name is complete. */
static void add_pdb(
	struct module_record *record, const struct module_image *image, uint32_t rva, uint32_t len)
{
	uint8_t *name = record->names + record->module.path_units * 2;
	uint32_t count = 0;

	if (!len || len > MODULE_PDB_BYTES || !read_at(image, rva, name, len))
		return;
	while (count < len && name[count])
		count++;
	record->module.pdb_bytes = (uint16_t)count;
}

/* Reads one entry of the debug directory. Returns true if it identifies the PDB. */
static bool add_debug(
	struct module_record *record, const struct module_image *image, const uint8_t *entry)
{
	uint32_t size = u32(entry + DEBUG_SIZE), rva = u32(entry + DEBUG_RVA);
	uint8_t rsds[RSDS_NAME];

	if (u32(entry + DEBUG_TYPE) != TYPE_CODEVIEW || size < sizeof(rsds) ||
		!read_at(image, rva, rsds, sizeof(rsds)) || rsds[0] != 'R' || rsds[1] != 'S' ||
		rsds[2] != 'D' || rsds[3] != 'S')
		return false;
	for (int i = 0; i < 16; i++)
		record->module.guid[i] = rsds[RSDS_GUID + i];
	record->module.age = u32(rsds + RSDS_AGE);
	add_pdb(record, image, rva + RSDS_NAME, size - RSDS_NAME);
	return true;
}

static void add_headers(struct module_record *record, const struct module_image *image)
{
	uint8_t header[PE_HEADER_BYTES], offset[4], entry[DEBUG_ENTRY_BYTES];
	const uint8_t *optional = header + PE_OPTIONAL, *directory;
	uint32_t magic, is_plus, size;

	if (!read_at(image, DOS_PE_OFFSET, offset, sizeof(offset)) ||
		!read_at(image, u32(offset), header, sizeof(header)) ||
		u32(header) != 0x4550 /* "PE\0\0" */)
		return;
	magic = u32(optional) & 0xffff;
	if (magic != MAGIC_PE32 && magic != MAGIC_PE32_PLUS)
		return;
	is_plus = magic == MAGIC_PE32_PLUS;
	record->module.timestamp = u32(header + PE_TIMESTAMP);
	record->module.checksum = u32(optional + OPTIONAL_CHECKSUM);
	directory = optional + optional_directories[is_plus] + DIRECTORY_DEBUG * 8;
	size = u32(directory + 4);
	if (u32(optional + optional_directory_count[is_plus]) <= DIRECTORY_DEBUG)
		return;
	for (uint32_t i = 0; i < DEBUG_ENTRIES_MAX && i < size / DEBUG_ENTRY_BYTES; i++) {
		if (!read_at(image, u32(directory) + i * DEBUG_ENTRY_BYTES, entry, sizeof(entry)) ||
			add_debug(record, image, entry))
			return;
	}
}

void module_record_make(struct module_record *record, const struct module_image *image)
{
	uint16_t units =
		image->path_units < MODULE_PATH_UNITS ? image->path_units : MODULE_PATH_UNITS;

	record->module = (struct tracer_module){.image_bytes = image->bytes, .path_units = units};
	for (uint32_t i = 0; i < units * 2u; i++)
		record->names[i] = ((const uint8_t *)image->path)[i];
	add_headers(record, image);
	record->module.record_bytes = (uint32_t)offsetof(struct module_record, names) + units * 2u +
				      record->module.pdb_bytes;
}

#define STEP_BYTES ((uint64_t)16384)

static struct tracer_unload *unload_at(const struct tracer_area *area, uint64_t index)
{
	return (struct tracer_unload *)(uintptr_t)(area->unloads +
						   index * sizeof(struct tracer_unload));
}

static struct tracer_module *module_at(const struct tracer_area *area, uint64_t offset)
{
	return (struct tracer_module *)(uintptr_t)(area->modules + offset);
}

/* Makes room for `bytes` bytes at the end of a table with `used` used bytes. Derives the committed
 * size from `used`. */
static bool extend(
	struct tracer_area *area, uint64_t start, uint64_t limit, uint64_t used, uint64_t bytes)
{
	const struct tables_part part = {
		start, (limit + TRACER_PAGE - 1) & ~(TRACER_PAGE - 1), STEP_BYTES};
	uint64_t committed = (used + STEP_BYTES - 1) & ~(STEP_BYTES - 1);

	if (bytes > limit || used > limit - bytes)
		return false;
	if (committed > part.limit_bytes)
		committed = part.limit_bytes;
	return tables_extend(area, &part, &committed, used + bytes);
}

static bool is_same(const struct tracer_module *a, const struct tracer_module *b)
{
	const unsigned char *x = (const unsigned char *)a, *y = (const unsigned char *)b;
	uint32_t at = 0;

	if (a->record_bytes != b->record_bytes)
		return false;
	while (at < a->record_bytes && x[at] == y[at])
		at++;
	return at == a->record_bytes;
}

static uint64_t place_bytes(const struct tracer_module *module)
{
	return ((uint64_t)module->record_bytes + 7) & ~(uint64_t)7;
}

/* Returns the offset of a stored or new record, or TRACER_NO_MODULE. */
static uint64_t module_intern(struct tracer_area *area, const struct tracer_module *module)
{
	uint64_t top = area->modules_top, bytes = place_bytes(module);

	for (uint64_t at = 0; at < top; at += place_bytes(module_at(area, at))) {
		if (is_same(module_at(area, at), module))
			return at;
	}
	if (!extend(area, area->modules, area->modules_limit, top, bytes))
		return TRACER_NO_MODULE;
	for (uint32_t i = 0; i < module->record_bytes; i++)
		((unsigned char *)module_at(area, top))[i] = ((const unsigned char *)module)[i];
	__atomic_store_n(&area->modules_top, top + bytes, __ATOMIC_RELEASE);
	return top;
}

static bool append(
	struct tracer_area *area, uint64_t base, uint64_t end, const struct tracer_module *module)
{
	uint64_t index = __atomic_load_n(&area->unload_count, __ATOMIC_RELAXED);
	const uint64_t bytes = sizeof(struct tracer_unload);

	if (index >= area->unload_limit ||
		!extend(area, area->unloads, area->unload_limit * bytes, index * bytes, bytes))
		return false;
	*unload_at(area, index) = (struct tracer_unload){base, end, module_intern(area, module)};
	return __atomic_compare_exchange_n(
		&area->unload_count, &index, index + 1, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/*
 * Counts an unload for which there was no room. After that, the count is no longer an index of
 * unloads. However, it still increases, which shows whether a stack is older than a lost unload.
 * May be called without the lock.
 */
static void lose(struct tracer_area *area, uint64_t base, uint64_t end)
{
	uint64_t from = __atomic_load_n(&area->lost_from, __ATOMIC_RELAXED);
	uint64_t to = __atomic_load_n(&area->lost_to, __ATOMIC_RELAXED);
	uint64_t count = __atomic_load_n(&area->unload_count, __ATOMIC_RELAXED);

	while (base < from && !__atomic_compare_exchange_n(&area->lost_from, &from, base, false,
				      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	while (end > to && !__atomic_compare_exchange_n(&area->lost_to, &to, end, false,
				   __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	if (count < area->unload_limit)
		__atomic_store_n(&area->unload_limit, count, __ATOMIC_RELEASE);
	__atomic_fetch_add(&area->unload_count, 1, __ATOMIC_RELEASE);
	__atomic_fetch_add(&area->dropped_unloads, 1, __ATOMIC_RELAXED);
}

bool unloads_add(
	struct tracer_area *area, uint64_t base, uint64_t end, const struct tracer_module *module)
{
	bool is_kept = false;

	if (memory_lock(&area->unload_lock, &area->unload_broken)) {
		is_kept = append(area, base, end, module);
		if (!is_kept)
			lose(area, base, end);
		memory_unlock(&area->unload_lock);
	} else {
		lose(area, base, end);
	}
	return is_kept;
}

static bool covers(uint64_t base, uint64_t end, const uint64_t *frames, uint32_t depth)
{
	for (uint32_t i = 0; i < depth; i++) {
		if (frames[i] >= base && frames[i] < end)
			return true;
	}
	return false;
}

bool unloads_hit(
	const struct tracer_area *area, uint64_t from, const uint64_t *frames, uint32_t depth)
{
	uint64_t count = __atomic_load_n(&area->unload_count, __ATOMIC_ACQUIRE);
	uint64_t limit = __atomic_load_n(&area->unload_limit, __ATOMIC_RELAXED);
	uint64_t kept = count < limit ? count : limit;

	for (uint64_t i = from; i < kept; i++) {
		const struct tracer_unload *unload = unload_at(area, i);

		if (covers(unload->base, unload->end, frames, depth))
			return true;
	}
	return count > limit && from < count &&
	       covers(__atomic_load_n(&area->lost_from, __ATOMIC_RELAXED),
		       __atomic_load_n(&area->lost_to, __ATOMIC_RELAXED), frames, depth);
}
