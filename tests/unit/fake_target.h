/* A struct target that consists of ranges of the test's own memory. Each range is a separate
 * allocation, so an out-of-range read is detected. A test can make any operation fail. */
#ifndef TESTS_UNIT_FAKE_TARGET_H
#define TESTS_UNIT_FAKE_TARGET_H

#include "tests/unit/t.h"

#include "core/base/err.h"
#include "core/dump/model.h"
#include "snapshot/target/target.h"

#define FAKE_RANGES_MAX 64
#define FAKE_PEB 0x7ffd0000u
#define FAKE_PEB_HEAP 0x30u
#define FAKE_PEB_HEAP_32 0x18u
#define FAKE_PEB_HEAP_COUNT 0xe8u
#define FAKE_PEB_HEAP_LIST 0xf0u

struct fake_range {
	uint64_t addr;
	size_t len;
	unsigned char *bytes;
	bool needs_hold; /* readable only while the process is held */
};

struct fake {
	struct target target;
	struct fake_range ranges[FAKE_RANGES_MAX];
	size_t range_count;
	struct module modules[8];
	size_t module_count;
	unsigned listings; /* number of times that modules were listed */
	/* The first failing read is number fail_from, or none if fail_from is 0. fail_count reads
	 * fail. */
	uint64_t fail_from, fail_count;
	/* Loose: outside a hold, although the range requires a hold. Late: after the last hold, when
	 * only the contents of blocks may be read. */
	uint64_t reads, got_bytes, loose_reads, late_reads;
	unsigned suspends, resumes;
	bool is_held, is_dead;
	bool may_look; /* reads are permitted before the first hold */
	int modules_rc, suspend_rc;
	void (*on_suspend)(void);
	void (*on_resume)(void);
	void (*on_listing)(void); /* called while the target lists its modules */
	/* Generates memory when it is read; returns false if addr is not mapped. */
	bool (*made_up)(uint64_t addr, unsigned char *bytes, size_t len);
};

static struct fake fake;

static inline uint64_t fake_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed * 0x2545f4914f6cdd1du >> 16;
}

/* ---------------------------------------------------------------- memory */

static inline struct fake_range *fake_range_at(uint64_t addr)
{
	for (size_t i = 0; i < fake.range_count; i++) {
		struct fake_range *range = &fake.ranges[i];

		if (addr >= range->addr && addr - range->addr < range->len)
			return range;
	}
	return NULL;
}

static inline struct fake_range *fake_map(uint64_t addr, size_t len)
{
	struct fake_range *range = &fake.ranges[fake.range_count++];

	assert_true(fake.range_count <= FAKE_RANGES_MAX);
	*range = (struct fake_range){.addr = addr, .len = len, .bytes = calloc(1, len)};
	assert_non_null(range->bytes);
	return range;
}

static inline void fake_unmap(uint64_t addr)
{
	struct fake_range *range = fake_range_at(addr);

	assert_non_null(range);
	free(range->bytes);
	*range = fake.ranges[--fake.range_count];
}

static inline unsigned char *fake_bytes(uint64_t addr, size_t len)
{
	struct fake_range *range = fake_range_at(addr);

	assert_non_null(range);
	assert_true(range->len - (addr - range->addr) >= len);
	return range->bytes + (addr - range->addr);
}

/* Writes the low len bytes of value, little-endian like the processes that hsnap reads. */
static inline void fake_write(uint64_t addr, uint64_t value, size_t len)
{
	unsigned char *bytes = fake_bytes(addr, len);

	for (size_t i = 0; i < len; i++)
		bytes[i] = (unsigned char)(value >> 8 * i);
}

static inline uint64_t fake_get(uint64_t addr, size_t len)
{
	const unsigned char *bytes = fake_bytes(addr, len);
	uint64_t value = 0;

	for (size_t i = 0; i < len; i++)
		value |= (uint64_t)bytes[i] << 8 * i;
	return value;
}

/* ---------------------------------------------------------------- struct target_ops */

/* Reports every range as a region. fake_init() does not install this function; a test installs
 * it. */
static inline int fake_region(struct target *target, uint64_t addr, struct target_region *region)
{
	const struct fake_range *best = NULL;

	(void)target;
	for (size_t i = 0; i < fake.range_count; i++) {
		const struct fake_range *range = &fake.ranges[i];

		if (range->addr + range->len > addr && (!best || range->addr < best->addr))
			best = range;
	}
	if (!best)
		return -ERR_READ;
	*region = (struct target_region){.addr = best->addr,
		.end = best->addr + best->len,
		.access = TARGET_READ | TARGET_WRITE};
	return 0;
}

static inline bool fake_read_fails(void)
{
	return fake.fail_from && fake.reads >= fake.fail_from &&
	       fake.reads - fake.fail_from < fake.fail_count;
}

/* Reads memory. A failed read overwrites the buffer, as a system may. */
static inline int fake_read(struct target *target, uint64_t addr, void *bytes, size_t len)
{
	unsigned char *to = bytes;

	(void)target;
	memset(bytes, 0xa5, len);
	fake.reads++;
	if (fake_read_fails())
		return -ERR_READ;
	if (fake.made_up && fake.made_up(addr, to, len))
		return 0;
	while (len) {
		const struct fake_range *range = fake_range_at(addr);
		size_t part;

		if (!range)
			return -ERR_READ;
		if (range->needs_hold && !fake.is_held && fake.suspends)
			fake.late_reads++;
		else if (range->needs_hold && !fake.is_held && !fake.may_look)
			fake.loose_reads++;
		part = range->len - (size_t)(addr - range->addr);
		part = part < len ? part : len;
		memcpy(to, range->bytes + (addr - range->addr), part);
		fake.got_bytes += part;
		addr += part;
		to += part;
		len -= part;
	}
	return 0;
}

static inline int fake_modules(struct target *target, struct snapshot *snapshot, struct err *err)
{
	fake.listings++;
	if (fake.on_listing)
		fake.on_listing();
	if (fake.modules_rc)
		return err_set(err, (enum err_code) - fake.modules_rc, target->name, NULL);
	for (size_t i = 0; i < fake.module_count; i++) {
		struct module *module = snapshot_add_module(snapshot);

		assert_non_null(module);
		*module = fake.modules[i];
	}
	return 0;
}

static inline int fake_suspend(struct target *target, struct err *err)
{
	assert_false(fake.is_held);
	if (fake.suspend_rc)
		return err_set(err, (enum err_code) - fake.suspend_rc, target->name, NULL);
	fake.is_held = true;
	fake.suspends++;
	fake.loose_reads += fake.late_reads;
	fake.late_reads = 0;
	if (fake.on_suspend)
		fake.on_suspend();
	return 0;
}

static inline void fake_resume(struct target *target)
{
	(void)target;
	if (fake.is_held && fake.on_resume)
		fake.on_resume();
	fake.resumes += fake.is_held;
	fake.is_held = false;
}

static inline bool fake_is_alive(struct target *target)
{
	(void)target;
	return !fake.is_dead;
}

static inline void fake_init(void)
{
	static const struct target_ops ops = {
		.read = fake_read,
		.modules = fake_modules,
		.suspend = fake_suspend,
		.resume = fake_resume,
		.is_alive = fake_is_alive,
	};

	fake = (struct fake){.target = {.ops = &ops, .name = "pid 12", .pid = 12, .bits = 64}};
	fake.target.system = &fake;
	fake.target.peb = FAKE_PEB;
	fake_map(FAKE_PEB, 0x1000)->needs_hold = true;
}

static inline void fake_know_regions(void)
{
	static struct target_ops ops;

	ops = *fake.target.ops;
	ops.region = fake_region;
	fake.target.ops = &ops;
}

/* Adds a loaded module of `bytes` bytes, with code from 1000h on and data_bytes of writable data
 * from 2000h on. Offsets of Microsoft's "PE Format". */
static inline void fake_write_module(
	uint64_t base, unsigned bits, uint32_t bytes, uint32_t data_bytes, const char *path)
{
	uint64_t pe = base + 0x80, opt = pe + 24, opt_bytes = bits == 64 ? 240 : 224;

	fake_write(base, 0x5a4d, 2);
	fake_write(base + 60, 0x80, 4);
	fake_write(pe, 0x4550, 4);
	fake_write(pe + 4, bits == 64 ? 0x8664 : 0x14c, 2);
	fake_write(pe + 6, 2, 2);
	fake_write(pe + 20, opt_bytes, 2);
	fake_write(opt, bits == 64 ? 0x20b : 0x10b, 2);
	fake_write(opt + 56, bytes, 4);
	fake_write(opt + 60, 0x1000, 4);
	for (unsigned i = 0; i < 2; i++) {
		uint64_t section = opt + opt_bytes + 40ull * i;

		fake_write(section + 8, i ? data_bytes : 0x1000, 4);
		fake_write(section + 12, 0x1000 + 0x1000 * i, 4);
		fake_write(section + 36, i ? 0xc0000040 : 0x60000020, 4);
	}
	fake.modules[fake.module_count++] =
		(struct module){.base = base, .size_bytes = bytes, .path = path};
}

static inline void fake_release(void)
{
	while (fake.range_count)
		free(fake.ranges[--fake.range_count].bytes);
}

#endif
