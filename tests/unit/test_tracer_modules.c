/* Unloaded modules that the tracer reports: the frames in them, and which modules are listed. The
 * expected result comes from checking every unload for every frame. */
#include "tests/unit/t.h"

#include "core/base/err.h"
#include "snapshot/stacks/tracer_parts.h"

#define RECORDS_BYTES 65536
#define UNLOADS_MAX 400

struct scene {
	unsigned char records[RECORDS_BYTES];
	size_t record_bytes;
	struct tracer_unload unloads[UNLOADS_MAX];
	size_t unload_count;
	struct tracer_modules modules;
	struct snapshot snapshot;
};

static struct scene scene;

static int set_up(void **state)
{
	(void)state;
	memset(&scene, 0, sizeof(scene));
	tracer_modules_init(&scene.modules);
	snapshot_init(&scene.snapshot);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tracer_modules_release(&scene.modules);
	snapshot_release(&scene.snapshot);
	return 0;
}

static uint64_t randomly(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed * 0x2545f4914f6cdd1du >> 16;
}

static uint64_t write_record(const char *path, uint32_t bytes, const char *pdb)
{
	size_t units = strlen(path), pdb_bytes = strlen(pdb), at = scene.record_bytes;
	struct tracer_module head = {.image_bytes = bytes,
		.timestamp = 0x65432100,
		.checksum = 77,
		.age = pdb_bytes ? 3 : 0,
		.path_units = (uint16_t)units,
		.pdb_bytes = (uint16_t)pdb_bytes};
	size_t len = sizeof(head) + 2 * units + pdb_bytes;

	assert_true(at + len <= RECORDS_BYTES);
	head.record_bytes = (uint32_t)len;
	for (unsigned i = 0; pdb_bytes && i < 16; i++)
		head.guid[i] = (uint8_t)(0x10 + i);
	memcpy(scene.records + at, &head, sizeof(head));
	for (size_t i = 0; i < units; i++)
		scene.records[at + sizeof(head) + 2 * i] = (unsigned char)path[i];
	memcpy(scene.records + at + sizeof(head) + 2 * units, pdb, pdb_bytes);
	scene.record_bytes = (at + len + 7) & ~(size_t)7;
	return at;
}

static void write_unload(uint64_t base, uint64_t end, uint64_t record)
{
	assert_true(scene.unload_count < UNLOADS_MAX);
	scene.unloads[scene.unload_count++] = (struct tracer_unload){base, end, record};
}

static int parse(void)
{
	tracer_modules_release(&scene.modules);
	return tracer_modules_parse(&scene.modules, scene.records, scene.record_bytes,
		(const unsigned char *)scene.unloads, scene.unload_count);
}

static int place(unsigned bits)
{
	int rc = parse();

	tracer_modules_place(&scene.modules, bits, NULL, 0);
	return rc;
}

static const struct module *listed(const char *path)
{
	snapshot_release(&scene.snapshot);
	snapshot_init(&scene.snapshot);
	tracer_modules_list(&scene.modules, &scene.snapshot);
	for (size_t i = 0; i < scene.snapshot.module_count; i++) {
		if (!strcmp(scene.snapshot.modules[i].path, path))
			return &scene.snapshot.modules[i];
	}
	return NULL;
}

#undef TEST_AROUND
#define TEST_AROUND set_up, tear_down

TEST(what_was_not_unloaded_stays_where_it_is)
{
	assert_int_equal(place(64), 0);
	assert_int_equal(tracer_modules_resolve(&scene.modules, 0, 0x1234), 0x1234);
	write_unload(0x10000, 0x20000, write_record("C:\\a.dll", 0x10000, ""));
	assert_int_equal(place(64), 0);
	assert_int_equal(tracer_modules_resolve(&scene.modules, 0, 0), 0);
	assert_int_equal(tracer_modules_resolve(&scene.modules, 0, 0x10000 - 1), 0x10000 - 1);
	assert_int_equal(tracer_modules_resolve(&scene.modules, 0, 0x20002), 0x20002);
	assert_int_equal(tracer_modules_resolve(&scene.modules, 1, 0x10010), 0x10010);
	assert_int_equal(tracer_modules_resolve(&scene.modules, UINT32_MAX, 0x10010), 0x10010);
	assert_null(listed("C:\\a.dll")); /* no frame lies in it */
}

TEST(frame_belongs_to_first_unload_after_it_that_covers_it)
{
	uint64_t a = write_record("C:\\a.dll", 0x10000, "a.pdb"),
		 b = write_record("C:\\b.dll", 0x20000, "");
	uint64_t in_a, in_b, again;
	const struct module *module;

	write_unload(0x50000, 0x60000, a);
	write_unload(0x50000, 0x70000, b);
	write_unload(0x90000, 0xa0000, a);
	assert_int_equal(place(64), 0);
	in_a = tracer_modules_resolve(&scene.modules, 0, 0x50123);
	in_b = tracer_modules_resolve(&scene.modules, 1, 0x50123);
	again = tracer_modules_resolve(&scene.modules, 0, 0x90123);
	assert_int_equal(tracer_modules_resolve(&scene.modules, 2, 0x50123), 0x50123);
	module = listed("C:\\a.dll");
	assert_non_null(module);
	assert_int_equal(in_a - module->base, 0x123);
	assert_int_equal(again, in_a); /* one module, although it had several addresses */
	assert_int_equal(module->size_bytes, 0x10000);
	assert_int_equal(module->unloaded_at, 0x90000);
	assert_true(module->has_identity);
	assert_int_equal(module->timestamp, 0x65432100);
	assert_int_equal(module->checksum, 77);
	assert_string_equal(module->pdb, "a.pdb");
	assert_string_equal(module->pdb_guid, "131211101514171618191A1B1C1D1E1F");
	assert_int_equal(module->pdb_age, 3);
	module = listed("C:\\b.dll");
	assert_int_equal(in_b - module->base, 0x123);
	assert_null(module->pdb);
	assert_null(module->pdb_guid);
}

TEST(return_address_right_behind_module_is_its)
{
	uint64_t found;

	write_unload(0x50000, 0x60000, write_record("C:\\a.dll", 0x10000, ""));
	write_unload(0x60000, 0x70000, write_record("C:\\b.dll", 0x10000, ""));
	assert_int_equal(place(64), 0);
	found = tracer_modules_resolve(&scene.modules, 0, 0x60000);
	assert_int_equal(found - listed("C:\\a.dll")->base, 0x10000);
	assert_null(module_at(scene.snapshot.modules, scene.snapshot.module_count, found));
	assert_ptr_equal(
		module_of_return(scene.snapshot.modules, scene.snapshot.module_count, found),
		&scene.snapshot.modules[0]);
	assert_int_equal(tracer_modules_resolve(&scene.modules, 0, 0x50000) + 0x10000, found);
}

TEST(bases_stay_when_more_modules_go)
{
	for (unsigned bits = 32; bits <= 64; bits += 32) {
		uint64_t found[20] = {0}, last = 0;

		scene.record_bytes = scene.unload_count = 0;
		for (unsigned i = 0; i < 20; i++) {
			char path[40];
			uint64_t record;

			snprintf(path, sizeof(path), "C:\\plug%u.dll", i);
			record = write_record(path, 0x1000 * (1 + i * 7), "");
			write_unload(0x100000, 0x100000 + 0x1000 * (1 + i * 7), record);
			assert_int_equal(place(bits), 0);
			for (unsigned k = 0; k <= i; k++) {
				uint64_t at = tracer_modules_resolve(&scene.modules, k, 0x100010);

				assert_true(k == i || at == found[k]);
				found[k] = at;
			}
			assert_true(found[i] > last);
			last = found[i];
			assert_true(bits == 64 || found[i] < UINT32_MAX);
		}
		assert_int_equal(scene.modules.unplaced_count, 0);
	}
}

TEST(unload_gives_size_of_module_without_headers)
{
	uint64_t found;

	write_unload(0x50000, 0x60000, write_record("C:\\a.dll", 0, ""));
	assert_int_equal(place(64), 0);
	found = tracer_modules_resolve(&scene.modules, 0, 0x5fff0);
	assert_int_equal(found - listed("C:\\a.dll")->base, 0xfff0);
	assert_int_equal(scene.snapshot.modules[0].size_bytes, 0x10000);
}

TEST(equal_records_are_one_module)
{
	write_unload(0x50000, 0x60000, write_record("C:\\a.dll", 0x10000, "a.pdb"));
	write_unload(0x80000, 0x90000, write_record("C:\\a.dll", 0x10000, "a.pdb"));
	write_unload(0xa0000, 0xb0000, write_record("C:\\a.dll", 0x10000, "b.pdb"));
	assert_int_equal(place(64), 0);
	assert_int_equal(scene.modules.count, 2);
	assert_int_equal(tracer_modules_resolve(&scene.modules, 0, 0x50001),
		tracer_modules_resolve(&scene.modules, 0, 0x80001));
	assert_int_not_equal(tracer_modules_resolve(&scene.modules, 0, 0x50001),
		tracer_modules_resolve(&scene.modules, 0, 0xa0001));
}

TEST(in_32_bits_they_keep_clear_of_what_is_loaded)
{
	const struct module live[] = {{.base = 0x400000, .size_bytes = 0x10000},
		{.base = 0x80000000, .size_bytes = 0x123456},
		{.base = 0x80200000, .size_bytes = 0x1000}};
	uint64_t found;

	write_unload(0x50000, 0x60000, write_record("C:\\a.dll", 0x100000, ""));
	write_unload(0x50000, 0x60000, write_record("C:\\huge.dll", 0xffffffff, ""));
	assert_int_equal(parse(), 0);
	tracer_modules_place(&scene.modules, 32, live, 3);
	found = tracer_modules_resolve(&scene.modules, 0, 0x50010);
	assert_true(found >= 0x80201000 && found + 0x100000 < UINT32_MAX);
	assert_int_equal(scene.modules.unplaced_count, 1);
	assert_int_equal(
		tracer_modules_resolve(&scene.modules, 1, 0x50010), TRACER_LOST_BASE + 0x50010);
}

TEST(of_unknown_module_frame_is_in_none)
{
	write_unload(0x50000, 0x60000, TRACER_NO_MODULE);
	assert_int_equal(place(64), 0);
	assert_int_equal(
		tracer_modules_resolve(&scene.modules, 0, 0x50010), TRACER_LOST_BASE + 0x50010);
	assert_int_equal(tracer_modules_resolve(&scene.modules, 1, 0x50010), 0x50010);
}

/* ---------------------------------------------------------------- at random */

/* Computes the expected result by checking all unloads. */
static uint64_t slowly(uint32_t born, uint64_t addr)
{
	for (size_t i = born; i < scene.unload_count; i++) {
		if (addr >= scene.unloads[i].base && addr < scene.unloads[i].end)
			return i;
	}
	return scene.unload_count;
}

TEST(any_frame_of_any_age_is_found)
{
	uint64_t seed = 4711, records[30];

	for (unsigned i = 0; i < 30; i++) {
		char path[40];

		snprintf(path, sizeof(path), "C:\\r%u.dll", i);
		records[i] = write_record(path, 0x100000, "");
	}
	for (unsigned i = 0; i < UNLOADS_MAX; i++) {
		uint64_t base = 0x10000 * (1 + randomly(&seed) % 40);

		write_unload(base, base + 0x1000 * (1 + randomly(&seed) % 200),
			records[randomly(&seed) % 30]);
	}
	assert_int_equal(place(64), 0);
	for (unsigned i = 0; i < 20000; i++) {
		uint32_t born = (uint32_t)(randomly(&seed) % (UNLOADS_MAX + 3));
		uint64_t addr = 0x8000 + randomly(&seed) % 0x400000, found;
		uint64_t number = slowly(born, addr - 1);

		if (number == scene.unload_count)
			number = slowly(born, addr);
		found = tracer_modules_resolve(&scene.modules, born, addr);
		if (number == scene.unload_count) {
			assert_int_equal(found, addr);
			continue;
		}
		/* The modules were placed in the order of their records, at equal intervals. */
		assert_int_equal((found - ((uint64_t)1 << 47)) % 0x110000,
			addr - scene.unloads[number].base);
		for (unsigned k = 0; k < 30; k++) {
			if (records[k] == scene.unloads[number].module)
				assert_int_equal((found - ((uint64_t)1 << 47)) / 0x110000, k);
		}
	}
}

TEST(records_that_cannot_be_are_error)
{
	uint64_t a = write_record("C:\\a.dll", 0x10000, "a.pdb");
	uint64_t b = write_record("C:\\b.dll", 0x10000, "");
	const uint32_t lengths[] = {0, 4, 39, 41, 48, 0x10000, UINT32_MAX - 8, UINT32_MAX};
	uint32_t good;

	write_unload(0x10000, 0x20000, b);
	assert_int_equal(parse(), 0);
	memcpy(&good, scene.records + a, 4);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		memcpy(scene.records + a, &lengths[i], 4);
		assert_int_equal(parse(), -ERR_TARGET);
	}
	memcpy(scene.records + a, &good, 4);
	scene.unloads[0].module = b + 8;
	assert_int_equal(parse(), -ERR_TARGET);
	scene.unloads[0].module = scene.record_bytes;
	assert_int_equal(parse(), -ERR_TARGET);
	scene.unloads[0] = (struct tracer_unload){0x20000, 0x20000, b};
	assert_int_equal(parse(), -ERR_TARGET);
	scene.unloads[0] = (struct tracer_unload){0x20000, 0x10000, b};
	assert_int_equal(parse(), -ERR_TARGET);
	scene.record_bytes -= 8;
	assert_int_equal(parse(), -ERR_TARGET);
}

TEST(damaged_records_harm_nobody)
{
	uint64_t seed = 99;
	unsigned sound = 0;

	for (unsigned round = 0; round < 3000; round++) {
		memset(scene.records, 0, sizeof(scene.records));
		scene.record_bytes = scene.unload_count = 0;
		for (unsigned i = 0; i < 6; i++) {
			uint64_t base = randomly(&seed) % 0x100000;

			write_unload(base, base + 1 + randomly(&seed) % 0x40000,
				write_record("C:\\some\\module.dll", 0x1000 << i, "m.pdb"));
		}
		for (unsigned i = 0; i < 1 + round % 4; i++)
			scene.records[randomly(&seed) % scene.record_bytes] =
				(unsigned char)randomly(&seed);
		if (round % 3 == 0)
			((unsigned char *)scene.unloads)[randomly(&seed) % (6 * 24)] =
				(unsigned char)randomly(&seed);
		if (place(round & 1 ? 32 : 64))
			continue;
		sound++;
		for (uint32_t i = 0; i < 200; i++)
			tracer_modules_resolve(&scene.modules, i % 8, randomly(&seed) % 0x200000);
		listed("");
	}
	assert_true(sound > 100 && sound < 3000);
}
