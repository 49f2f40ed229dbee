/* Minidumps for tests, and a small process to put into them. A minidump is written piece by piece
 * from Microsoft's public description of the format (minidumpapiset.h), with this file's own
 * constants. */
#ifndef TESTS_UNIT_TEST_MINIDUMP_H
#define TESTS_UNIT_TEST_MINIDUMP_H

#include "tests/unit/t.h"

#include "core/base/err.h"
#include "core/dump/model.h"
#include "snapshot/live/process.h"

enum {
	DMP_THREADS = 3,
	DMP_MODULES = 4,
	DMP_MEMORY = 5,
	DMP_SYSTEM = 7,
	DMP_MEMORY64 = 9,
	DMP_HANDLES = 12,
	DMP_MISC = 15,
	DMP_INFOS = 16,
	DMP_COUNTERS = 22,
};

#define DMP_TIME 1700000000u
#define DMP_PID 4711u
#define DMP_START 1699990000u

static struct dmp {
	unsigned char bytes[1 << 17];
	size_t len;
	unsigned streams, streams_max;
} dmp; /* dump that is being written */

struct dmp_range {
	uint64_t addr;
	const unsigned char *bytes;
	size_t len;
};

struct dmp_module {
	uint64_t base;
	uint32_t size, checksum, timestamp;
	const char *path; /* ASCII text */
	const char *pdb; /* NULL: no CodeView record */
};

/* bytes of the CodeView record */

static inline void dmp_set(size_t at, uint64_t value, size_t len)
{
	assert_true(at + len <= sizeof(dmp.bytes));
	for (size_t i = 0; i < len; i++)
		dmp.bytes[at + i] = (unsigned char)(value >> 8 * i);
}

/* dmp_write() and similar functions append to the dump and return the offset of the new part. */
static inline size_t dmp_write(uint64_t value, size_t len)
{
	size_t at = dmp.len;

	dmp_set(at, value, len);
	dmp.len += len;
	return at;
}

static inline size_t dmp_write_bytes(const void *bytes, size_t len)
{
	size_t at = dmp.len;

	assert_true(at + len <= sizeof(dmp.bytes));
	memcpy(dmp.bytes + at, bytes, len);
	dmp.len += len;
	return at;
}

static inline size_t dmp_write_zeros(size_t len)
{
	size_t at = dmp.len;

	assert_true(at + len <= sizeof(dmp.bytes));
	memset(dmp.bytes + at, 0, len);
	dmp.len += len;
	return at;
}

/* MINIDUMP_STRING */
static inline size_t dmp_write_text(const char *text)
{
	size_t at = dmp_write(2 * strlen(text), 4);

	for (; *text; text++)
		dmp_write((unsigned char)*text, 2);
	dmp_write(0, 2);
	return at;
}

/* ---------------------------------------------------------------- the file */

static inline void dmp_start(unsigned streams_max, uint64_t flags)
{
	dmp = (struct dmp){.streams_max = streams_max};
	dmp_write_bytes("MDMP", 4);
	dmp_write(0x5678a793, 4);
	dmp_write(0, 4); /* number of streams */
	dmp_write(32, 4);
	dmp_write(0, 4);
	dmp_write(DMP_TIME, 4);
	dmp_write(flags, 8);
	dmp_write_zeros((size_t)12 * streams_max);
}

static inline void dmp_stream(uint32_t type, uint64_t at, uint64_t len)
{
	size_t entry = 32 + (size_t)12 * dmp.streams++;

	assert_true(dmp.streams <= dmp.streams_max);
	dmp_set(entry, type, 4);
	dmp_set(entry + 4, len, 4);
	dmp_set(entry + 8, at, 4);
	dmp_set(8, dmp.streams, 4);
}

/* architecture: 0 is x86, 9 is x64. */
static inline void dmp_system(unsigned architecture)
{
	size_t at = dmp_write(architecture, 2);

	dmp_write(0, 2); /* processor level */
	dmp_write(0, 2); /* processor revision */
	dmp_write(0x0104, 2); /* number of processors, product type */
	dmp_write(10, 4);
	dmp_write(0, 4);
	dmp_write(19041, 4);
	dmp_write(2, 4);
	dmp_write_zeros(32);
	dmp_stream(DMP_SYSTEM, at, 56);
}

static inline void dmp_misc(void)
{
	size_t at = dmp_write(24, 4);

	dmp_write(3, 4);
	dmp_write(DMP_PID, 4);
	dmp_write(DMP_START, 4);
	dmp_write(11, 4);
	dmp_write(12, 4);
	dmp_stream(DMP_MISC, at, 24);
}

/* gap: 0 or 4 bytes between the number and the entries. */
static inline void dmp_threads(const uint64_t *tebs, size_t count, size_t gap)
{
	size_t at = dmp_write(count, 4);

	dmp_write_zeros(gap);
	for (size_t i = 0; i < count; i++) {
		dmp_write(100 + i, 4);
		dmp_write_zeros(12);
		dmp_write(tebs[i], 8);
		dmp_write_zeros(24);
	}
	dmp_stream(DMP_THREADS, at, dmp.len - at);
}

static inline size_t dmp_codeview(const struct dmp_module *module, size_t *len)
{
	size_t at = dmp.len;

	*len = 0;
	if (!module->pdb)
		return 0;
	dmp_write_bytes("RSDS", 4);
	dmp_write(0x12345678, 4);
	dmp_write(0x9abc, 2);
	dmp_write(0xdef0, 2);
	dmp_write_bytes("\x01\x23\x45\x67\x89\xab\xcd\xef", 8);
	dmp_write(3, 4);
	dmp_write_bytes(module->pdb, strlen(module->pdb) + 1);
	*len = dmp.len - at;
	return at;
}

static inline void dmp_modules(const struct dmp_module *modules, size_t count, size_t gap)
{
	size_t texts[16], records[16], lens[16], at;

	assert_true(count <= 16);
	for (size_t i = 0; i < count; i++) {
		texts[i] = dmp_write_text(modules[i].path);
		records[i] = dmp_codeview(&modules[i], &lens[i]);
	}
	at = dmp_write(count, 4);
	dmp_write_zeros(gap);
	for (size_t i = 0; i < count; i++) {
		dmp_write(modules[i].base, 8);
		dmp_write(modules[i].size, 4);
		dmp_write(modules[i].checksum, 4);
		dmp_write(modules[i].timestamp, 4);
		dmp_write(texts[i], 4);
		dmp_write_zeros(52); /* VS_FIXEDFILEINFO */
		dmp_write(lens[i], 4);
		dmp_write(records[i], 4);
		dmp_write_zeros(24);
	}
	dmp_stream(DMP_MODULES, at, dmp.len - at);
}

/* MINIDUMP_MEMORY_LIST. The bytes follow in the order of the ranges, each after a gap of 3
 * bytes. */
static inline void dmp_memory(const struct dmp_range *ranges, size_t count)
{
	size_t places[32], at;

	assert_true(count <= 32);
	for (size_t i = 0; i < count; i++) {
		dmp_write(0, 3);
		places[i] = dmp_write_bytes(ranges[i].bytes, ranges[i].len);
	}
	at = dmp_write(count, 4);
	for (size_t i = 0; i < count; i++) {
		dmp_write(ranges[i].addr, 8);
		dmp_write(ranges[i].len, 4);
		dmp_write(places[i], 4);
	}
	dmp_stream(DMP_MEMORY, at, dmp.len - at);
}

/* MINIDUMP_MEMORY64_LIST, followed by the ranges' bytes. Must be the last stream in the file. */
static inline void dmp_memory64(const struct dmp_range *ranges, size_t count)
{
	size_t at = dmp_write(count, 8);

	dmp_write(at + 16 + 16 * count, 8);
	for (size_t i = 0; i < count; i++) {
		dmp_write(ranges[i].addr, 8);
		dmp_write(ranges[i].len, 8);
	}
	dmp_stream(DMP_MEMORY64, at, dmp.len - at);
	for (size_t i = 0; i < count; i++)
		dmp_write_bytes(ranges[i].bytes, ranges[i].len);
}

struct dmp_info {
	uint64_t addr, len;
	uint32_t state, protect, type;
};

/* allocation_protects: protections of the allocations of infos; NULL: all READWRITE. */
static inline void dmp_infos_of(
	const struct dmp_info *infos, const uint32_t *allocation_protects, size_t count)
{
	size_t at = dmp_write(16, 4);

	dmp_write(48, 4);
	dmp_write(count, 8);
	for (size_t i = 0; i < count; i++) {
		dmp_write(infos[i].addr, 8);
		dmp_write(infos[i].addr, 8);
		dmp_write(allocation_protects ? allocation_protects[i] : 4, 8);
		dmp_write(infos[i].len, 8);
		dmp_write(infos[i].state, 4);
		dmp_write(infos[i].protect, 4);
		dmp_write(infos[i].type, 4);
		dmp_write(0, 4);
	}
	dmp_stream(DMP_INFOS, at, dmp.len - at);
}

static inline void dmp_infos(const struct dmp_info *infos, size_t count)
{
	dmp_infos_of(infos, NULL, count);
}

/* MINIDUMP_HANDLE_DATA_STREAM. type_places: for each handle, the place of its type's name or 0.
 * `more` bytes follow the known fields of the head and of each entry. */
static inline void dmp_handles(const size_t *type_places, size_t count, size_t more)
{
	size_t at = dmp_write(16 + more, 4);

	dmp_write(32 + more, 4);
	dmp_write(count, 4);
	dmp_write_zeros(4 + more);
	for (size_t i = 0; i < count; i++) {
		dmp_write(4 + 4 * i, 8);
		dmp_write(type_places[i], 4);
		dmp_write(0, 4);
		dmp_write_zeros(16 + more);
	}
	dmp_stream(DMP_HANDLES, at, dmp.len - at);
}

struct dmp_counters {
	uint16_t revision, flags;
	uint64_t working_set, pagefile, pagefile_peak, private_bytes;
};

/* MINIDUMP_PROCESS_VM_COUNTERS_1 or, for other revisions, _2. The other fields are all ones. */
static inline void dmp_counters(const struct dmp_counters *counters)
{
	size_t at = dmp_write(counters->revision, 2);

	dmp_write(counters->flags, 2);
	for (int i = 4; i < 152; i++)
		dmp_write(0xff, 1);
	dmp_set(at + 16, counters->working_set, 8);
	dmp_set(at + 56, counters->pagefile, 8);
	dmp_set(at + 64, counters->pagefile_peak, 8);
	dmp_set(at + (counters->revision == 1 ? 72 : 88), counters->private_bytes, 8);
	if (counters->revision == 1)
		dmp.len = at + 80;
	dmp_stream(DMP_COUNTERS, at, dmp.len - at);
}

/* ---------------------------------------------------------------- a process */

#define DMP_TEB 0x7ff501000u
#define DMP_PEB 0x7ff500000u
#define DMP_TEB32 0x7ef02000u
#define DMP_PEB32 0x7ef00000u
#define DMP_PARAMETERS 0x7e0000u
#define DMP_LOADER 0x7d0000u
#define DMP_HEAP 0x1d0000u
#define DMP_EXE 0x400000u
#define DMP_DLL 0x10000u /* at a lower address than the program */
#define DMP_IMAGE "C:\\App\\program.exe"

/* The process's pages, laid out as _TEB, _PEB and _RTL_USER_PROCESS_PARAMETERS. */
struct dmp_process {
	unsigned bits;
	unsigned char teb[0x2000], peb[0x1000], teb32[0x1000], peb32[0x1000];
	unsigned char parameters[0x200], heap[0x400];
};

static inline void dmp_poke(unsigned char *page, size_t at, uint64_t value, size_t len)
{
	for (size_t i = 0; i < len; i++)
		page[at + i] = (unsigned char)(value >> 8 * i);
}

static inline void dmp_fill_parameters(unsigned char *page, bool is_64)
{
	const char *image = DMP_IMAGE;
	size_t at = is_64 ? 0x60 : 0x38;

	dmp_poke(page, at, 2 * strlen(image), 2);
	dmp_poke(page, at + 2, 2 * strlen(image) + 2, 2);
	dmp_poke(page, at + (is_64 ? 8 : 4), DMP_PARAMETERS + 0x100, is_64 ? 8 : 4);
	for (size_t i = 0; image[i]; i++)
		dmp_poke(page, 0x100 + 2 * i, (unsigned char)image[i], 2);
}

static inline void dmp_fill_32(struct dmp_process *process, uint64_t teb, uint64_t peb)
{
	dmp_poke(process->teb32, 0x18, teb, 4);
	dmp_poke(process->teb32, 0x30, peb, 4);
	dmp_poke(process->peb32, 0x10, DMP_PARAMETERS, 4);
	dmp_poke(process->peb32, 0x18, DMP_HEAP, 4);
}

/* Make the ranges of a 64-bit process, of a 32-bit process, or of a 32-bit process in 64-bit
 * Windows. */
static inline size_t dmp_ranges_64(struct dmp_process *process, struct dmp_range ranges[4])
{
	*process = (struct dmp_process){.bits = 64};
	dmp_poke(process->teb, 0x30, DMP_TEB, 8);
	dmp_poke(process->teb, 0x60, DMP_PEB, 8);
	dmp_poke(process->peb, 0x20, DMP_PARAMETERS, 8);
	dmp_poke(process->peb, 0x30, DMP_HEAP, 8);
	dmp_fill_parameters(process->parameters, true);
	ranges[0] = (struct dmp_range){DMP_HEAP, process->heap, sizeof(process->heap)};
	ranges[1] = (struct dmp_range){
		DMP_PARAMETERS, process->parameters, sizeof(process->parameters)};
	ranges[2] = (struct dmp_range){DMP_PEB, process->peb, sizeof(process->peb)};
	ranges[3] = (struct dmp_range){DMP_TEB, process->teb, sizeof(process->teb)};
	return 4;
}

static inline size_t dmp_ranges_wow64(struct dmp_process *process, struct dmp_range ranges[6])
{
	size_t count = dmp_ranges_64(process, ranges);

	dmp_fill_32(process, DMP_TEB32, DMP_PEB32);
	memset(process->parameters, 0, sizeof(process->parameters));
	dmp_fill_parameters(process->parameters, false);
	dmp_poke(process->teb, 0, DMP_TEB32, 8);
	dmp_poke(process->peb, 0x18, DMP_LOADER, 8); /* the 64-bit half is initialized */
	ranges[count++] = (struct dmp_range){DMP_PEB32, process->peb32, sizeof(process->peb32)};
	ranges[count++] = (struct dmp_range){DMP_TEB32, process->teb32, sizeof(process->teb32)};
	return count;
}

static const struct dmp_module dmp_program[] = {
	{DMP_EXE, 0x5000, 0xabcd, 0x5f000001, DMP_IMAGE, "program.pdb"},
	{DMP_DLL, 0x3000, 0x1234, 0x5f000002, "C:\\App\\low.dll", NULL},
};

/* Makes a valid dump of the 64-bit process with all streams. */
static inline void dmp_make_full(void)
{
	static const uint64_t tebs[] = {DMP_TEB};
	static const struct dmp_info infos[] = {
		{DMP_HEAP, 0x1000, 0x1000, 0x04, 0x20000},
		{DMP_PARAMETERS, 0x1000, 0x1000, 0x04, 0x20000},
		{DMP_PEB, 0x3000, 0x1000, 0x04, 0x20000},
	};
	static const struct dmp_counters counters = {2, 15, 7000, 8000, 9000, 8000};
	struct dmp_process process;
	struct dmp_range ranges[6];
	size_t count = dmp_ranges_64(&process, ranges), types[3] = {0};

	dmp_start(8, 2);
	dmp_system(9);
	dmp_misc();
	dmp_threads(tebs, 1, 0);
	dmp_modules(dmp_program, 2, 0);
	dmp_infos(infos, 3);
	types[0] = dmp_write_text("Event");
	types[1] = dmp_write_text("File");
	dmp_handles(types, 3, 0);
	dmp_counters(&counters);
	dmp_memory64(ranges, count);
}

/* ---------------------------------------------------------------- opened dumps */

/* An open dump. Its file is a separate allocation, so a read past the file's end is detected. */
struct opened {
	struct target target;
	struct snapshot snapshot;
	unsigned char *bytes;
	struct err err;
	bool is_open;
};

static struct opened opened;

static inline int dmp_close(void **state)
{
	(void)state;
	if (opened.is_open) {
		opened.target.ops->close(&opened.target);
		snapshot_release(&opened.snapshot);
	}
	free(opened.bytes);
	opened = (struct opened){0};
	return 0;
}

/* Closes the current dump, then opens a file that consists of these bytes. Returns 0 or the
 * error. */
static inline int dmp_open_bytes(const unsigned char *bytes, size_t len)
{
	int rc;

	dmp_close(NULL);
	opened.bytes = malloc(len ? len : 1);
	assert_non_null(opened.bytes);
	memcpy(opened.bytes, bytes, len);
	rc = target_open_minidump_bytes(
		&opened.target, opened.bytes, len, "dir/made.dmp", &opened.err);
	if (rc)
		return rc;
	opened.is_open = true;
	snapshot_init(&opened.snapshot);
	assert_int_equal(
		opened.target.ops->modules(&opened.target, &opened.snapshot, &opened.err), 0);
	return 0;
}

static inline void dmp_open(void)
{
	assert_int_equal(dmp_open_bytes(dmp.bytes, dmp.len), 0);
}

/* Each test's dump is closed after the test. */
#undef TEST_AROUND
#define TEST_AROUND NULL, dmp_close

/* Starts a dump with a 64-bit system and the program's modules. The caller adds `more` streams. */
static inline void dmp_begin(unsigned more, uint64_t flags)
{
	dmp_start(2 + more, flags);
	dmp_system(9);
	dmp_modules(dmp_program, 2, 0);
}

static inline size_t dmp_warnings(const char *words)
{
	size_t count = 0;

	for (size_t i = 0; i < opened.snapshot.warning_count; i++)
		count += strstr(opened.snapshot.warnings[i], words) != NULL;
	return count;
}

/* Reads everything that the dump offers and checks what must be true for every dump. Returns a sum
 * of all bytes. */
static inline unsigned dmp_survey(size_t file_len)
{
	struct target *target = &opened.target;
	struct target_region region = {0};
	uint64_t last = 0, total = 0;
	unsigned sum = 0;

	/* The file lists a module, and the loader may list it again in memory. */
	assert_true(opened.snapshot.module_count <= file_len / 108 * 2);
	while (!target->ops->region(target, region.end, &region)) {
		assert_true(region.addr < region.end && region.addr >= last);
		last = region.end;
		total += region.end - region.addr;
		assert_true(total <= file_len);
		for (uint64_t addr = region.addr; addr < region.end;) {
			size_t len;
			const unsigned char *bytes = target->ops->view(target, addr, &len);

			assert_non_null(bytes);
			assert_true(len > 0 && len <= file_len);
			len = len < region.end - addr ? len : (size_t)(region.end - addr);
			sum += bytes[0] + bytes[len - 1];
			addr += len;
		}
	}
	for (size_t i = 0; i < opened.snapshot.module_count; i++) {
		const struct module *module = &opened.snapshot.modules[i];

		sum += (unsigned)strlen(module->path);
		assert_true(i == 0 || module[-1].base + module[-1].size_bytes <= module->base);
	}
	return sum;
}

#endif
