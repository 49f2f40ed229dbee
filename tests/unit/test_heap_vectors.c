/* Values from real heaps of Windows 10 and 11, with their meanings. The tests decode them with the
 * walkers' functions. The file of values is test data (tests/unit/data.h). */
#include "tests/unit/data.h"
#include "tests/unit/fake_target.h"

#include "snapshot/heap/nt/nt.h"
#include "snapshot/heap/segment/segment.h"

#define VECTORS "heaps/real-heap-vectors.tsv"
#define FIELDS_MAX 16

struct row {
	char line[1024];
	char *fields[FIELDS_MAX];
	size_t count;
};

static uint64_t number(const struct row *row, size_t field)
{
	char *end = NULL;
	uint64_t value;

	assert_true(field < row->count);
	value = strtoull(row->fields[field], &end, 16);
	assert_true(end != row->fields[field] && !*end);
	return value;
}

static size_t write_bytes(uint64_t addr, const struct row *row, size_t field)
{
	const char *text = row->fields[field];
	size_t len = strlen(text) / 2;

	for (size_t i = 0; i < len; i++) {
		const char two[] = {text[2 * i], text[2 * i + 1], '\0'};

		fake_write(addr + i, strtoul(two, NULL, 16), 1);
	}
	return len;
}

/* Calls `each` for every row of this kind; returns the number of rows. Skips the test if the file
 * is missing. */
static size_t each_row(const char *kind, void (*each)(const struct row *row, void *ctx), void *ctx)
{
	FILE *file = fopen(data_file(VECTORS), "r");
	size_t count = 0;
	struct row row;

	assert_non_null(file);
	while (fgets(row.line, sizeof(row.line), file)) {
		row.line[strcspn(row.line, "\r\n")] = '\0';
		row.count = 0;
		for (char *at = row.line; at && row.count < FIELDS_MAX;) {
			row.fields[row.count++] = at;
			at = strchr(at, '\t');
			if (at)
				*at++ = '\0';
		}
		if (strcmp(row.fields[0], kind) != 0)
			continue;
		count++;
		each(&row, ctx);
	}
	assert_int_equal(fclose(file), 0);
	return count;
}

/* ---------------------------------------------------------------- NT heaps */

struct scene {
	struct memory memory;
	struct nt_process process;
	struct walk walk;
	struct nt_walk nt;
	struct nt_heap heap;
};

static struct scene scene;

static void scene_init(unsigned bits, uint64_t heap)
{
	scene = (struct scene){.process = {.bits = bits, .os_build = 19041}};
	fake_init();
	fake_know_regions();
	fake.target.bits = bits;
	assert_int_equal(memory_init(&scene.memory, &fake.target), 0);
	walk_init(&scene.walk);
	assert_int_equal(
		walk_add_heap(&scene.walk, &(struct heap){.addr = heap, .kind = "segment"}), 0);
	scene.nt = (struct nt_walk){
		.memory = &scene.memory, .process = &scene.process, .walk = &scene.walk};
	claims_init(&scene.nt.claims, TARGET_SPACE_BYTES);
	scene.heap =
		(struct nt_heap){.nt = &scene.nt, .addr = heap, .span = {.memory = &scene.memory}};
	for (size_t i = 0; !scene.heap.layout; i++)
		if (nt_layouts[i].bits == bits && nt_layouts[i].first_build == 17763)
			scene.heap.layout = &nt_layouts[i];
}

static void scene_release(void)
{
	nt_heap_close(&scene.heap);
	claims_release(&scene.nt.claims);
	walk_release(&scene.walk);
	memory_release(&scene.memory);
	fake_release();
}

static void decode_entry(const struct row *row, void *ctx)
{
	unsigned bits = (unsigned)strtoul(row->fields[2], NULL, 10);
	uint64_t words[2];
	struct nt_header header;

	(void)ctx;
	scene_init(bits, number(row, 3));
	fake_map(0x1000, 16);
	write_bytes(0x1000, row, 4);
	write_bytes(0x1008, row, 6);
	words[0] = fake_get(0x1000, 8);
	words[1] = fake_get(0x1008, 8);
	assert_true(nt_header_decode(words[1], words[0], &header));
	assert_int_equal(header.units * scene.heap.layout->common->unit, number(row, 7));
	assert_int_equal(header.flags, number(row, 8));
	assert_int_equal(header.previous_units * scene.heap.layout->common->unit, number(row, 9));
	assert_int_equal(header.segment, number(row, 10));
	assert_int_equal(header.unused, number(row, 11));
	assert_false(nt_header_decode(words[1] ^ 0x10, words[0], &header));
	scene_release();
}

TEST(every_entry_decodes)
{
	assert_int_equal(each_row("entry", decode_entry, NULL), 878);
}

#define SUBSEGMENT 0x50000u

/* Places a container with the row's data, which describe the container's first two blocks. Returns
 * the number of these two blocks that are in use. */
static size_t write_container(const struct row *row, unsigned bits)
{
	bool is_wide = bits == 64;
	uint64_t addr = number(row, 5),
		 room = (1u << (number(row, 11) & 0xff)) + (number(row, 11) >> 16);
	size_t busy = 0;

	fake_map(addr, room); /* the guard page after the container is unreadable */
	fake_write(addr, SUBSEGMENT, bits / 8);
	fake_write(addr + (is_wide ? 0x14 : 0xc), 0xf0e0d0c0, 4);
	fake_write(addr + (is_wide ? 0x10 : 0x8), number(row, 11), 4);
	fake_write(addr + (is_wide ? 0x18 : 0x10), number(row, 6), 4);
	fake_write(addr + (is_wide ? 0x20 : 0x14), number(row, 8), 4);
	fake_write(addr + (is_wide ? 0x28 : 0x18), addr + (is_wide ? 0x30 : 0x1c), bits / 8);
	for (unsigned i = 0; i < 2; i++) {
		uint64_t entry = addr + number(row, 9) + i * number(row, 10) + (is_wide ? 8 : 0);
		uint64_t bitmap = addr + (is_wide ? 0x30 : 0x1c);

		if (strcmp(row->fields[12 + i], "-") == 0)
			continue;
		write_bytes(entry, row, 12 + i);
		/* A large count of unused bytes lies outside the bytes that the row has. */
		if ((fake_get(entry + 7, 1) & 0x3f) == 0x3f)
			fake_write(entry - (is_wide ? 8 : 0) + number(row, 10) - bits / 8, 0x3f,
				bits / 8);
		if (fake_get(entry + 7, 1) > 0x80) {
			fake_write(bitmap, fake_get(bitmap, 1) | 1u << i, 1);
			busy++;
		}
	}
	fake_map(SUBSEGMENT, 0x40);
	fake_write(SUBSEGMENT + bits / 8, addr, bits / 8);
	fake_write(SUBSEGMENT + (is_wide ? 0x24 : 0x14), number(row, 10) / (bits / 4), 2);
	fake_write(SUBSEGMENT + (is_wide ? 0x28 : 0x18), number(row, 8), 2);
	return busy;
}

/* Checks that the container and its first two blocks determine the key, that the offsets decode to
 * the row's offsets, and that the blocks fill the container. */
static void decode_container(const struct row *row, void *ctx)
{
	unsigned bits = (unsigned)strtoul(row->fields[2], NULL, 10);
	uint64_t addr = number(row, 5),
		 room = (1u << (number(row, 11) & 0xff)) + (number(row, 11) >> 16);
	uint64_t guard_bytes = number(row, 11) & 0x100 ? 0x1000 : 0;
	bool has_first = strcmp(row->fields[12], "-") != 0;
	const struct nt_container *container;
	struct nt_offsets offsets;
	size_t busy;

	scene_init(bits, number(row, 3));
	busy = write_container(row, bits);
	/* If the first block's header is missing, only another heap's key is available. */
	scene.nt.has_lfh_key = !has_first;
	scene.nt.lfh_key = has_first ? 0 : (uint32_t)number(row, 7);
	/* The row has neither the heap's _LFH_HEAP nor its zones. */
	scene.heap.lfh.addr = number(row, 4);
	scene.heap.lfh.is_list_cut = true;
	assert_int_equal(
		walk_add_heap(&scene.walk, &(struct heap){.addr = scene.heap.addr, .kind = "nt"}),
		0);
	assert_int_equal(nt_lfh_note(&scene.heap, addr, addr + room + guard_bytes), 0);
	assert_int_equal(scene.heap.lfh.container_count, 1);
	assert_int_equal(nt_lfh_walk(&scene.heap), 0);
	assert_true(walk_is_sound(&scene.walk));
	assert_int_equal(scene.walk.doubt_count, 0);
	assert_int_equal(scene.walk.block_count, busy);
	assert_int_equal(scene.nt.lfh_key, number(row, 7));
	container = &scene.heap.lfh.containers[0];
	offsets = nt_offsets_decode(&scene.heap, container, scene.nt.lfh_key);
	assert_int_equal(offsets.first, number(row, 9));
	assert_int_equal(nt_first_offset(&scene.heap, container), number(row, 9));
	assert_int_equal(offsets.stride, number(row, 10));
	*(unsigned *)ctx += has_first;
	scene_release();
}

TEST(every_container_shows_its_key_and_its_offsets)
{
	unsigned keys = 0;

	assert_int_equal(each_row("container", decode_container, &keys), 188);
	assert_int_equal(keys, 186); /* the dumps lack the first block of two containers */
}

/* ---------------------------------------------------------------- a segment heap */

#define HEAP 0xffffc08bdd010000u
#define HEAP_KEY 0x620e994736767ee6u
#define LFH_KEY 0x6dd5f924u

static struct {
	struct segment_heap heap;
	size_t count;
} it;

static void write_heap(const struct row *row, void *ctx)
{
	(void)ctx;
	write_bytes(HEAP + number(row, 1), row, 2);
}

static void segment_scene_init(void)
{
	(void)data_file(VECTORS); /* skip here, before the scene allocates memory */
	memset(&it, 0, sizeof(it));
	scene_init(64, HEAP);
	fake_map(HEAP, 0x800);
	each_row("segmentheap", write_heap, NULL);
	assert_true(segment_heap_open(&it.heap, &scene.nt, HEAP));
	scene.nt.segment_keys = (struct segment_keys){.is_tried = true,
		.is_lfh_tried = true,
		.has_page = true,
		.has_lfh = true,
		.page = HEAP_KEY ^ SEGMENT_CONSTANT,
		.heap = HEAP_KEY,
		.lfh = LFH_KEY};
}

/* The row lacks the second context's pointers. */
TEST(real_segment_heap_is_known)
{
	segment_scene_init();
	assert_string_equal(it.heap.layout->name, "segment 10.0.17763-19041 x64");
	scene_release();
}

static void decode_page_segment(const struct row *row, void *ctx)
{
	(void)ctx;
	uint64_t addr = number(row, 1), key = 0;

	fake_map(addr, 0x2000);
	fake_write(addr, number(row, 2), 8);
	fake_write(addr + 8, number(row, 3), 8);
	fake_write(addr + 0x10, number(row, 4), 8);
	assert_true(segment_page_key(&it.heap, addr, HEAP + 0x100, &key));
	assert_int_equal(key ^ SEGMENT_CONSTANT, HEAP_KEY);
}

static void write_range(const struct row *row, void *ctx)
{
	(void)ctx;
	write_bytes(number(row, 1) + number(row, 2) * 0x20, row, 3);
}

static int count_range(void *ctx, const struct segment_range *range)
{
	(void)ctx;

	/* Two of the six ranges are used: 3 at 2, of 39h units, and 0Bh at 2, of 41h units. */
	it.count++;
	if (range->flags == SEGMENT_RANGE_USER) {
		assert_int_equal(range->addr, 0xffffc08bdce02000);
		assert_int_equal(range->bytes, 0x39000);
		assert_int_equal(range->unused_bytes, 0);
	} else {
		assert_int_equal(range->flags, SEGMENT_RANGE_LFH);
		assert_int_equal(range->addr, 0xffffc08be5302000);
		assert_int_equal(range->bytes, 0x41000);
		assert_int_equal(range->unused_bytes, 0x1000);
	}
	return 0;
}

TEST(every_page_range_agrees_with_its_descriptor)
{
	const struct segment_visit visit = {.range = count_range};
	uint64_t head = HEAP + 0x148, other = HEAP + 0x1c0 + 0x48;
	static const uint64_t segments[] = {0xffffc08bdce00000, 0xffffc08be5300000};

	segment_scene_init();
	assert_int_equal(each_row("pagesegment", decode_page_segment, NULL), 2);
	assert_int_equal(each_row("range", write_range, NULL), 6);
	/* The file lacks the segments between these two, and the second context's list. Close the
	 * gap and make the list empty. */
	fake_write(segments[0], segments[1], 8);
	fake_write(segments[1] + 8, segments[0], 8);
	assert_int_equal(fake_get(head, 8), segments[0]);
	assert_int_equal(fake_get(head + 8, 8), segments[1]);
	fake_write(other, other, 8);
	fake_write(other + 8, other, 8);
	fake_write(other - 0x48 + 8, 0x10, 1);
	fake_write(other - 0x48 + 0xa, 2, 1);
	memory_clear(&scene.memory); /* discard the old bytes that were cached */
	assert_int_equal(segment_ranges_walk(&it.heap, &visit), 0);
	assert_int_equal(it.count, 2);
	assert_true(walk_is_sound(&scene.walk));
	scene_release();
}

static void decode_chunk(const struct row *row, void *ctx)
{
	struct vs_cursor cursor;
	struct vs_chunk chunk;
	uint64_t addr = number(row, 1);

	(void)ctx;
	segment_scene_init();
	fake_map(addr, 16);
	fake_write(addr, strtoull(row->fields[2], NULL, 16), 8);
	fake_write(addr + 8, strtoull(row->fields[3], NULL, 16), 8);
	cursor = (struct vs_cursor){.heap = &it.heap,
		.key = HEAP_KEY,
		.next = addr,
		.end = addr + 0x10000,
		.limit = addr + 0x10000,
		.previous_units = number(row, 5) / 16};
	assert_true(vs_cursor_next(&cursor, &chunk));
	assert_null(cursor.broken); /* this proves that the previous block's size is correct */
	assert_int_equal(chunk.bytes, number(row, 4));
	assert_int_equal(chunk.is_allocated, number(row, 6));
	scene_release();
}

TEST(every_vs_chunk_decodes)
{
	assert_int_equal(each_row("vs", decode_chunk, NULL), 9);
}

/* The row has only the first 56 bytes. Count the blocks in the missing part. */
static void decode_subsegment(const struct row *row, void *ctx)
{
	uint64_t addr = number(row, 1), first = number(row, 5), bytes = number(row, 4), end;
	struct lfh_sample sample;
	struct lfh_offsets offsets;

	(void)ctx;
	segment_scene_init();
	fake_map(addr, 56);
	assert_int_equal(write_bytes(addr, row, 2), 56);
	if (!fake_range_at(fake_get(addr + 0x10, 8)))
		fake_map(fake_get(addr + 0x10, 8), 16);
	fake_write(fake_get(addr + 0x10, 8) + 1, number(row, 3), 1);
	end = (first + bytes * fake_get(addr + 0x22, 2) + 0xfff) / 0x1000 * 0x1000;
	assert_true(lfh_sample_read(&it.heap, addr, end, &sample));
	offsets = lfh_decode(&sample, LFH_KEY, false);
	assert_int_equal(offsets.block_bytes, bytes);
	assert_int_equal(offsets.first, first);
	assert_true(lfh_offsets_fit(it.heap.parts, &sample, &offsets));
	assert_int_equal(lfh_bucket_bytes(it.heap.parts, sample.bucket), bytes);
	if (sample.block_count <= 32) { /* the row contains the whole bitmap */
		assert_int_equal(segment_lfh_walk(&it.heap, addr, end), 0);
		/* Some rows are from the kernel, with addresses outside user space. */
		assert_int_equal(scene.walk.broken_count + scene.walk.block_count,
			sample.block_count - sample.free_count);
		assert_true(addr >> 48 || !scene.walk.broken_count);
	}
	scene_release();
}

TEST(every_lfh_subsegment_decodes)
{
	assert_int_equal(each_row("lfh", decode_subsegment, NULL), 4);
}
