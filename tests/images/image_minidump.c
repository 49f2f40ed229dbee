/* Writes the process as a minidump, in the format of minidumpapiset.h, as Microsoft publishes it.
 * The streams are first built in memory, one after another. The memory contents come last and are
 * written directly to the file. */
#include "tests/images/image_inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOST_STREAMS 10
#define PAGE_NO_ACCESS 1
#define PAGE_GUARDED 0x100

enum stream_type {
	STREAM_THREADS = 3,
	STREAM_MODULES = 4,
	STREAM_MEMORY = 5,
	STREAM_SYSTEM = 7,
	STREAM_MEMORY64 = 9,
	STREAM_HANDLES = 12,
	STREAM_MISC = 15,
	STREAM_MEMORY_INFO = 16,
	STREAM_VM_COUNTERS = 22,
};

struct dump {
	struct image *image;
	FILE *file;
	uint8_t *bytes;
	size_t count, capacity;
	unsigned stream_count;
	size_t stream_start;
	struct range *ranges;
	size_t range_count, range_capacity;
};

/* Consecutive pages in the file. */
struct range {
	uint64_t start, bytes;
	const uint8_t *data;
};

static size_t need(struct dump *dump, size_t bytes)
{
	if (dump->count + bytes > dump->capacity) {
		dump->capacity = 2 * (dump->count + bytes);
		dump->bytes = realloc(dump->bytes, dump->capacity);
		if (!dump->bytes)
			image_die("out of memory");
	}
	memset(dump->bytes + dump->count, 0, bytes);
	size_t at = dump->count;
	dump->count += bytes;
	return at;
}

static void set(struct dump *dump, size_t at, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		dump->bytes[at + i] = (uint8_t)(value >> (8 * i));
}

static void put(struct dump *dump, uint64_t value, size_t bytes)
{
	set(dump, need(dump, bytes), value, bytes);
}

static void align(struct dump *dump, size_t to)
{
	need(dump, (to - dump->count % to) % to);
}

/* The header and the directory are at the start; each stream adds its directory entry. */
static void stream_begin(struct dump *dump)
{
	align(dump, 8);
	dump->stream_start = dump->count;
}

static void stream_end(struct dump *dump, enum stream_type type, size_t bytes)
{
	size_t row = 32 + 12 * dump->stream_count++;
	set(dump, row, type, 4);
	set(dump, row + 4, bytes, 4);
	set(dump, row + 8, dump->stream_start, 4);
}

/* Writes a MINIDUMP_STRING: byte count, UTF-16, and a terminating zero that is not counted. */
static size_t write_name(struct dump *dump, const char *text)
{
	align(dump, 4);
	size_t at = dump->count;
	put(dump, 2 * strlen(text), 4);
	for (; *text; text++)
		put(dump, (unsigned char)*text, 2);
	put(dump, 0, 2);
	return at;
}

static void write_system(struct dump *dump)
{
	const struct profile *profile = dump->image->profile;
	bool is_64 = profile->bits == 64 || profile->is_wow64;
	stream_begin(dump);
	put(dump, is_64 ? 9 : 0, 2);
	put(dump, 6, 2);
	put(dump, 0x5e03, 2);
	put(dump, 2, 1);
	put(dump, 1, 1);
	put(dump, profile->os_major, 4);
	put(dump, profile->os_minor, 4);
	put(dump, profile->os_build, 4);
	put(dump, 2, 4);
	size_t service_pack = need(dump, 4);
	put(dump, 0x100, 4);
	need(dump, 24);
	stream_end(dump, STREAM_SYSTEM, dump->count - dump->stream_start);
	set(dump, service_pack, write_name(dump, profile->os_build == 7601 ? "Service Pack 1" : ""),
		4);
}

static void write_misc(struct dump *dump)
{
	stream_begin(dump);
	put(dump, 24, 4);
	put(dump, 3, 4); /* flags: has a process id, has times */
	put(dump, 4660, 4);
	put(dump, 0x5fb7a000, 4);
	put(dump, 1, 4);
	put(dump, 1, 4);
	stream_end(dump, STREAM_MISC, dump->count - dump->stream_start);
}

static void write_threads(struct dump *dump)
{
	struct image *image = dump->image;
	bool is_64 = image->profile->bits == 64 || image->profile->is_wow64;
	size_t context_bytes = is_64 ? 1232 : 716;
	size_t contexts[THREADS];
	stream_begin(dump);
	put(dump, image->lies.thread_count ? image->lies.thread_count : THREADS, 4);
	for (unsigned i = 0; i < THREADS; i++) {
		put(dump, 4664 + 4 * i, 4);
		put(dump, 0, 4);
		put(dump, 0x20, 4);
		put(dump, 0, 4);
		put(dump, image->tebs[i], 8);
		need(dump, 16); /* the stack is in the memory list */
		put(dump, context_bytes, 4);
		contexts[i] = need(dump, 4);
	}
	stream_end(dump, STREAM_THREADS, dump->count - dump->stream_start);
	for (unsigned i = 0; i < THREADS; i++) {
		align(dump, 16);
		set(dump, contexts[i], dump->count, 4);
		size_t at = need(dump, context_bytes);
		set(dump, at + (is_64 ? 0x30 : 0), is_64 ? 0x10000f : 0x1003f, 4);
	}
}

/* Writes the names of the rows' types and notes their places. */
static void write_types(
	struct dump *dump, const size_t *rows, const char *const *types, size_t count)
{
	const struct dump_lies *lies = &dump->image->lies;
	/* Some writers store the name of a type once. */
	bool is_shared = dump->image->profile->os_build < 10000;
	size_t at = 0;
	for (size_t i = 0; i < count; i++) {
		if (!*types[i])
			continue;
		if (!is_shared || i == 0 || types[i] != types[i - 1])
			at = write_name(dump, types[i]);
		if (lies->type_name_bytes)
			set(dump, at, lies->type_name_bytes, 4);
		set(dump, rows[i], lies->type_name ? lies->type_name : at, 4);
	}
}

#define MOST_HANDLES 512

/* Lists the types of all handles. */
static size_t list_types(const struct image *image, const char *types[MOST_HANDLES])
{
	static char made[300][16];
	size_t count = 0;
	for (const struct made_handles *row = image_handles; row->count; row++)
		for (unsigned i = 0; i < row->count; i++)
			types[count++] = row->type;
	for (unsigned i = 0; image->lies.has_many_types && i < 300; i++) {
		snprintf(made[i], sizeof(made[i]), "Made %u", i);
		types[count++] = made[i];
	}
	return count;
}

/* MINIDUMP_HANDLE_DATA_STREAM, with MINIDUMP_HANDLE_DESCRIPTOR or, as later writers, _2. */
static void write_handles(struct dump *dump)
{
	const struct dump_lies *lies = &dump->image->lies;
	size_t entry_bytes = dump->image->profile->os_build < 9200 ? 32 : 40;
	const char *types[MOST_HANDLES];
	size_t rows[MOST_HANDLES], count = list_types(dump->image, types);
	stream_begin(dump);
	put(dump, 16, 4);
	put(dump, lies->handle_bytes ? lies->handle_bytes : entry_bytes, 4);
	put(dump, lies->handle_count ? lies->handle_count : count, 4);
	put(dump, 0, 4);
	for (size_t i = 0; i < count; i++) {
		put(dump, 4 * (i + 1), 8);
		rows[i] = need(dump, 4); /* name of the type */
		put(dump, 0, 4); /* name of the object */
		put(dump, 0, 4);
		put(dump, 0x1f0003, 4);
		put(dump, 2, 4);
		put(dump, 0x7ffe, 4);
		need(dump, entry_bytes - 32);
	}
	stream_end(dump, STREAM_HANDLES, dump->count - dump->stream_start);
	write_types(dump, rows, types, count);
}

/* MINIDUMP_PROCESS_VM_COUNTERS_1, or, as later writers, _2. Windows 7 leaves PagefileUsage 0. */
static void write_counters(struct dump *dump)
{
	const struct dump_lies *lies = &dump->image->lies;
	struct made_counters counters = image_counters(dump->image);
	bool is_first = dump->image->profile->os_build < 10000;
	bool has_pagefile = dump->image->profile->os_build >= 9200;
	if (lies->counter)
		counters = (struct made_counters){lies->counter, lies->counter, lies->counter};
	stream_begin(dump);
	put(dump, lies->counters_revision ? lies->counters_revision : is_first ? 1 : 2, 2);
	put(dump, is_first ? 0 : 0xf, 2);
	put(dump, 22583, 4); /* page faults */
	put(dump, counters.working_set + 0x5000, 8);
	put(dump, counters.working_set, 8);
	for (unsigned i = 0; i < 4; i++)
		put(dump, 0x1111 * (i + 1), 8); /* quotas */
	put(dump, has_pagefile ? counters.private_bytes : 0, 8);
	put(dump, counters.private_peak, 8);
	if (!is_first) {
		put(dump, 0x222200000000, 8); /* peak of the size of the address space */
		put(dump, 0x222100000000, 8);
	}
	put(dump, counters.private_bytes, 8);
	if (!is_first) {
		put(dump, counters.working_set / 2, 8); /* private working set */
		need(dump, 48);
	}
	stream_end(dump, STREAM_VM_COUNTERS, dump->count - dump->stream_start);
}

static void write_codeview(struct dump *dump, size_t row, const struct made_module *module)
{
	align(dump, 4);
	set(dump, row + 76, 24 + strlen(module->pdb) + 1, 4);
	set(dump, row + 80, dump->count, 4);
	put(dump, 0x53445352, 4); /* RSDS */
	for (size_t i = 0; i < sizeof(module->guid); i++)
		put(dump, module->guid[i], 1);
	put(dump, module->age, 4);
	size_t at = need(dump, strlen(module->pdb) + 1);
	memcpy(dump->bytes + at, module->pdb, strlen(module->pdb));
}

static void write_module(struct dump *dump, size_t row, const struct made_module *module)
{
	uint64_t lie = dump->image->lies.module_bytes;
	set(dump, row, module->base, 8);
	set(dump, row + 8, lie ? lie : module->bytes, 4);
	set(dump, row + 16, module->timestamp, 4);
	set(dump, row + 20, write_name(dump, module->path), 4);
	set(dump, row + 24, 0xfeef04bd, 4); /* VS_FIXEDFILEINFO */
	set(dump, row + 28, 0x10000, 4);
	write_codeview(dump, row, module);
}

static void write_modules(struct dump *dump)
{
	struct image *image = dump->image;
	uint64_t lie = image->lies.module_count;
	stream_begin(dump);
	put(dump, lie ? lie : image->module_count, 4);
	size_t rows = need(dump, 108 * image->module_count);
	stream_end(dump, STREAM_MODULES, dump->count - dump->stream_start);
	for (size_t i = 0; i < image->module_count; i++)
		write_module(dump, rows + 108 * i, &image->modules[i]);
}

static size_t run_end(const struct region *region, size_t first, bool is_same_access)
{
	size_t end = first;
	while (end < region->bytes / PAGE_BYTES &&
		(is_same_access ? region->access[end] == region->access[first] :
				  image_is_held(region->access[end]) ==
					  image_is_held(region->access[first])))
		end++;
	return end;
}

/* A dump without full memory contains the threads' stacks, their TEBs, and the PEB. */
static bool is_kept(const struct image *image, const struct region *region)
{
	return !image->options.is_partial || (region->use != USE_HEAP && region->use != USE_MODULE);
}

static void list_ranges(struct dump *dump)
{
	struct image *image = dump->image;
	for (size_t i = 0; i < image->region_count; i++) {
		const struct region *region = &image->regions[i];
		for (size_t page = 0;
			page < region->bytes / PAGE_BYTES && is_kept(image, region);) {
			size_t end = run_end(region, page, false);
			if (image_is_held(region->access[page])) {
				dump->ranges = image_grow(dump->ranges, &dump->range_capacity,
					dump->range_count, sizeof(*dump->ranges));
				dump->ranges[dump->range_count++] = (struct range){
					region->base + page * PAGE_BYTES, (end - page) * PAGE_BYTES,
					region->data + page * PAGE_BYTES};
			}
			page = end;
		}
	}
}

static void write_memory64(struct dump *dump)
{
	const struct dump_lies *lies = &dump->image->lies;
	stream_begin(dump);
	put(dump, lies->range_count ? lies->range_count : dump->range_count, 8);
	size_t base = need(dump, 8);
	for (size_t i = 0; i < dump->range_count; i++) {
		bool is_lie = i == dump->range_count / 2;
		put(dump, is_lie && lies->range_start ? lies->range_start : dump->ranges[i].start,
			8);
		put(dump, is_lie && lies->range_bytes ? lies->range_bytes : dump->ranges[i].bytes,
			8);
	}
	stream_end(dump, STREAM_MEMORY64, dump->count - dump->stream_start);
	align(dump, 8);
	set(dump, base, lies->base_rva ? lies->base_rva : dump->count, 8);
}

/* Writes the MemoryList, whose ranges contain file offsets. */
static void put_memory(struct dump *dump)
{
	stream_begin(dump);
	put(dump, dump->range_count, 4);
	size_t rows = need(dump, 16 * dump->range_count);
	stream_end(dump, STREAM_MEMORY, dump->count - dump->stream_start);
	uint64_t rva = dump->count;
	for (size_t i = 0; i < dump->range_count; i++) {
		set(dump, rows + 16 * i, dump->ranges[i].start, 8);
		set(dump, rows + 16 * i + 8, dump->ranges[i].bytes, 4);
		set(dump, rows + 16 * i + 12, rva, 4);
		rva += dump->ranges[i].bytes;
	}
}

enum memory_state {
	STATE_COMMIT = 0x1000,
	STATE_RESERVE = 0x2000,
	STATE_FREE = 0x10000,
};

static unsigned protection(enum memory_state state, unsigned access, const struct region *region)
{
	static const uint8_t protections[8] = {0, 2, 4, 4, 0x10, 0x20, 0x40, 0x40};
	if (state == STATE_FREE)
		return PAGE_NO_ACCESS;
	if (access == IMAGE_GUARD)
		return region->use == USE_STACK ? PAGE_GUARDED | 4 : PAGE_NO_ACCESS;
	return protections[access & 7] * (access & IMAGE_COPIED ? 2 : 1);
}

static void write_info(struct dump *dump, uint64_t base, uint64_t bytes, enum memory_state state,
	unsigned access, const struct region *region)
{
	put(dump, base, 8);
	put(dump, region ? region->base : 0, 8);
	put(dump, region ? region->protect : 0, 4);
	put(dump, 0, 4);
	put(dump, bytes, 8);
	put(dump, state, 4);
	put(dump, protection(state, access, region), 4);
	put(dump,
		!region			  ? 0 :
		region->use == USE_MODULE ? 0x1000000 :
		region->use == USE_VIEW	  ? 0x40000 :
					    0x20000,
		4);
	put(dump, 0, 4);
}

static size_t write_region_infos(struct dump *dump, const struct region *region)
{
	size_t count = 0;
	for (size_t page = 0; page < region->bytes / PAGE_BYTES; count++) {
		size_t end = run_end(region, page, true);
		unsigned access = region->access[page];
		write_info(dump, region->base + page * PAGE_BYTES, (end - page) * PAGE_BYTES,
			access ? STATE_COMMIT : STATE_RESERVE, access, region);
		page = end;
	}
	return count;
}

static void lie_about(struct dump *dump, size_t at, uint64_t lie, size_t bytes)
{
	if (lie)
		set(dump, at, lie, bytes);
}

/* Damages the entry at `row`, which is not free, and the next one. */
static void damage_info(struct dump *dump, size_t row)
{
	const struct dump_lies *lies = &dump->image->lies;
	uint8_t copy[48], *at = dump->bytes + row;
	lie_about(dump, row, lies->info_start, 8);
	lie_about(dump, row + 8, lies->info_allocation, 8);
	lie_about(dump, row + 24, lies->info_bytes, 8);
	lie_about(dump, row + 32, lies->info_state, 4);
	lie_about(dump, row + 40, lies->info_type, 4);
	memcpy(copy, at, 48);
	if (lies->is_info_twice || lies->is_info_swapped)
		memcpy(lies->is_info_twice ? at + 48 : at, lies->is_info_twice ? at : at + 48, 48);
	if (lies->is_info_swapped)
		memcpy(at + 48, copy, 48);
}

/* Covers every address once, including free memory. */
static void write_memory_info(struct dump *dump)
{
	const struct image *image = dump->image;
	bool is_64 = image->profile->bits == 64 || image->profile->is_wow64;
	uint64_t end = is_64 ? 0x7ffffffe0000 : 0x7fff0000;
	stream_begin(dump);
	put(dump, 16, 4);
	put(dump, 48, 4);
	size_t count_at = need(dump, 8);
	size_t count = 0;
	uint64_t next = 0;
	size_t middle = 0;
	for (size_t i = 0; i < image->region_count; i++) {
		const struct region *region = &image->regions[i];
		if (region->base > next) {
			write_info(dump, next, region->base - next, STATE_FREE, 0, NULL);
			count++;
		}
		if (i == image->region_count / 2)
			middle = dump->count;
		count += write_region_infos(dump, region);
		next = region->base + region->bytes;
	}
	write_info(dump, next, end - next, STATE_FREE, 0, NULL);
	damage_info(dump, middle);
	set(dump, count_at, image->lies.info_count ? image->lies.info_count : count + 1, 8);
	stream_end(dump, STREAM_MEMORY_INFO, dump->count - dump->stream_start);
}

static void write_header(struct dump *dump)
{
	need(dump, 32 + 12 * MOST_STREAMS);
	set(dump, 0, 0x504d444d, 4); /* MDMP */
	set(dump, 4, 0xa793, 4);
	set(dump, 12, 32, 4);
	set(dump, 20, 0x5fb7a001, 4);
	/* MiniDumpWithFullMemory and WithFullMemoryInfo */
	set(dump, 24, dump->image->options.is_partial ? 0 : 0x802, 8);
}

static void write_streams(struct dump *dump)
{
	write_header(dump);
	write_system(dump);
	write_misc(dump);
	write_threads(dump);
	write_modules(dump);
	write_handles(dump);
	write_counters(dump);
	const struct image_options *options = &dump->image->options;
	if (!options->is_partial && !options->has_no_infos)
		write_memory_info(dump);
	if (!options->is_partial && !options->is_memory_list)
		write_memory64(dump);
	else
		put_memory(dump);
	set(dump, 8, dump->stream_count, 4);
}

/* Skips pages of zeros: holes in the file read as zeros. */
static void write_memory(struct dump *dump)
{
	static const uint8_t zeros[PAGE_BYTES];
	long hole = 0;
	for (size_t i = 0; i < dump->range_count; i++) {
		for (uint64_t at = 0; at < dump->ranges[i].bytes; at += PAGE_BYTES) {
			const uint8_t *page = dump->ranges[i].data + at;
			if (!memcmp(page, zeros, PAGE_BYTES)) {
				hole += PAGE_BYTES;
				continue;
			}
			if (hole)
				(void)fseek(dump->file, hole, SEEK_CUR);
			hole = 0;
			fwrite(page, 1, PAGE_BYTES, dump->file);
		}
	}
	if (hole) {
		(void)fseek(dump->file, hole - 1, SEEK_CUR);
		fputc(0, dump->file);
	}
}

void image_write_minidump(struct image *image, const char *path)
{
	struct dump dump = {.image = image, .file = fopen(path, "wb")};
	if (!dump.file)
		image_die("%s: %s", path, strerror(errno));
	list_ranges(&dump);
	write_streams(&dump);
	fwrite(dump.bytes, 1, dump.count, dump.file);
	write_memory(&dump);
	if (ferror(dump.file) | fclose(dump.file))
		image_die("%s: cannot be written", path);
	free(dump.ranges);
	free(dump.bytes);
}
