#include "tests/unit/t.h"

#include "snapshot/tracer/tables.h"
#include "tests/unit/fake_memory.h"

#define IMAGE_BYTES 4096u
#define PE_AT 0x80u
#define DEBUG_AT 0x400u
#define RSDS_AT 0x600u
#define BASE ((uint64_t)0x7fff12340000)

static const char pdb[] = "C:\\build\\libr\xc3\xa4ry.pdb";
static const uint16_t path[] = {'C', ':', '\\', 'x', '.', 'd', 'l', 'l'};
static const uint8_t guid[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

/* Has exactly the image's size, so the sanitizer checks the bounds. */
static uint8_t bytes[IMAGE_BYTES];
static uint32_t present; /* number of readable bytes */
static struct module_record record;

static bool read_image(uint64_t addr, void *to, uint32_t len)
{
	assert_true(addr >= BASE && addr + len <= BASE + IMAGE_BYTES);
	if (addr + len > BASE + present)
		return false;
	memcpy(to, bytes + (addr - BASE), len);
	return true;
}

static void put(uint32_t at, uint64_t value, int len)
{
	for (int i = 0; i < len; i++)
		bytes[at + (uint32_t)i] = (uint8_t)(value >> 8 * i);
}

/* Makes headers as the published description of the PE format defines them. */
static void make(int bits)
{
	uint32_t optional = PE_AT + 24, directories = optional + (bits == 64 ? 112 : 96);

	memset(bytes, 0, IMAGE_BYTES);
	put(0, 0x5a4d, 2);
	put(0x3c, PE_AT, 4);
	put(PE_AT, 0x4550, 4); /* "PE" */
	put(PE_AT + 8, 0x5f123456, 4);
	put(optional, bits == 64 ? 0x20b : 0x10b, 2);
	put(optional + 64, 0x89abc, 4);
	put(directories - 4, 16, 4);
	put(directories + 6 * 8, DEBUG_AT, 4);
	put(directories + 6 * 8 + 4, 2 * 28, 4);
	put(DEBUG_AT + 12, 12, 4); /* the first debug data have another type */
	put(DEBUG_AT + 28 + 12, 2, 4);
	put(DEBUG_AT + 28 + 16, 24 + sizeof(pdb), 4);
	put(DEBUG_AT + 28 + 20, RSDS_AT, 4);
	put(RSDS_AT, 0x53445352, 4); /* "RSDS" */
	memcpy(bytes + RSDS_AT + 4, guid, sizeof(guid));
	put(RSDS_AT + 20, 7, 4);
	memcpy(bytes + RSDS_AT + 24, pdb, sizeof(pdb));
	present = IMAGE_BYTES;
}

static const struct tracer_module *record_it(void)
{
	struct module_image image = {BASE, IMAGE_BYTES, path, 8, read_image};

	memset(&record, 0xee, sizeof(record));
	module_record_make(&record, &image);
	assert_int_equal(record.module.image_bytes, IMAGE_BYTES);
	assert_int_equal(record.module.path_units, 8);
	assert_memory_equal(record.names, path, sizeof(path));
	assert_int_equal(record.module.record_bytes, 40 + sizeof(path) + record.module.pdb_bytes);
	return &record.module;
}

TEST(all_is_found)
{
	for (int bits = 32; bits <= 64; bits += 32) {
		const struct tracer_module *module;

		make(bits);
		module = record_it();
		assert_int_equal(module->timestamp, 0x5f123456);
		assert_int_equal(module->checksum, 0x89abc);
		assert_memory_equal(module->guid, guid, sizeof(guid));
		assert_int_equal(module->age, 7);
		assert_int_equal(module->pdb_bytes, strlen(pdb));
		assert_memory_equal(record.names + sizeof(path), pdb, strlen(pdb));
	}
}

TEST(nothing_is_there)
{
	const struct tracer_module *module;

	make(64);
	present = 0;
	module = record_it();
	assert_int_equal(module->timestamp, 0);
	assert_int_equal(module->age, 0);
	assert_int_equal(module->pdb_bytes, 0);
}

TEST(it_is_cut_anywhere)
{
	make(64);
	for (present = 0; present < IMAGE_BYTES; present++) {
		const struct tracer_module *module = record_it();
		bool has_rsds = present >= RSDS_AT + 24;

		assert_int_equal(module->age, has_rsds ? 7 : 0);
		assert_int_equal(
			module->pdb_bytes, present >= RSDS_AT + 24 + sizeof(pdb) ? strlen(pdb) : 0);
	}
}

/* Each field of the headers gets each awkward value. read_image() asserts that all reads stay
 * inside the image. */
TEST(headers_lie)
{
	static const uint32_t values[] = {0, 1, 28, IMAGE_BYTES - 28, IMAGE_BYTES - 1, IMAGE_BYTES,
		IMAGE_BYTES + 1, 0x7fffffff, 0x80000000, 0xffffffe0, 0xffffffff};

	for (uint32_t at = 0; at < DEBUG_AT + 2 * 28; at++) {
		for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
			make(64);
			put(at, values[i], 4);
			record_it();
		}
	}
}

TEST(name_without_end_is_cut)
{
	make(64);
	put(DEBUG_AT + 28 + 16, 24 + 5, 4);
	assert_int_equal(record_it()->pdb_bytes, 5);
	put(DEBUG_AT + 28 + 16, 24 + MODULE_PDB_BYTES + 1, 4);
	assert_int_equal(record_it()->pdb_bytes, 0);
	assert_int_equal(record_it()->age, 7);
}
