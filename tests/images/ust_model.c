/* The user-mode stack trace database: facts, section 4. It is one reservation. The head with its
 * buckets comes first. Entries follow and grow upwards. The array that maps an index to its entry
 * grows downwards from the end. */
#include "tests/images/image_inside.h"

#include <string.h>

#include "tests/images/image_nt_layout.h"

#define BUCKET_COUNT 1567
#define MOST_TRACE_COUNT 0x7ff
#define DEPTH_LISTS 32

struct database {
	struct image *image;
	const struct made_nt_shape *shape;
	uint64_t base, end;
	uint64_t next; /* address of the next entry */
	uint64_t committed; /* end of the committed memory for entries */
	uint32_t index; /* index of the last entry */
	uint32_t lookups;
};

static uint64_t new_entry(struct database *database, unsigned slots)
{
	struct image *image = database->image;
	/* Freed entries are linked in an SLIST by their frames, which must be aligned on x64. */
	uint64_t align = 2 * image_ptr_bytes(image);
	uint64_t bytes = database->shape->trace_frames + (uint64_t)slots * image_ptr_bytes(image);
	uint64_t entry = (database->next + align - 1) / align * align;
	database->next = entry + bytes;
	while (database->committed < database->next) {
		image_commit(image, database->committed, GRANULE_BYTES, IMAGE_READ | IMAGE_WRITE);
		database->committed += GRANULE_BYTES;
	}
	database->index++;
	uint64_t slot = database->end - (uint64_t)database->index * image_ptr_bytes(image);
	image_commit(image, slot / PAGE_BYTES * PAGE_BYTES, PAGE_BYTES, IMAGE_READ | IMAGE_WRITE);
	image_write_ptr(image, slot, entry);
	return entry;
}

/* The sources do not define what the depth's slot contains if the depth is stored elsewhere. */
static uint32_t other_depth(struct image *image, uint32_t low)
{
	switch (image_chance(image, "other depth", 5)) {
	case 0: return 0;
	case 1: return 1;
	case 2: return 1 + (uint32_t)image_random(image, 6);
	case 3: return (uint32_t)image_random(image, 0x10000);
	default: return low > MOST_FRAMES ? low : 0xffff;
	}
}

static void write_numbers(
	struct database *database, uint64_t entry, unsigned frame_count, unsigned slots)
{
	struct image *image = database->image;
	const struct made_nt_shape *shape = database->shape;
	uint32_t index = database->index;
	/* The stack was requested often. The counter saturates. */
	uint64_t lookups = 1 + image_random(image, 1 + image_random(image, 5000));
	uint64_t count = lookups < MOST_TRACE_COUNT ? lookups : MOST_TRACE_COUNT;
	database->lookups += (uint32_t)lookups;
	/* BlockDepth has 5 bits, so it is 0 for 32 frames. */
	image_write(image, entry + shape->trace_count, count | (uint64_t)(slots & 31) << 11, 2);
	image_write(image, entry + shape->trace_index_high, index >> 16, 2);
	uint32_t low = index & 0xffff;
	if (image->options.is_depth_in_index_slot) {
		image_write(image, entry + shape->trace_index, frame_count, 2);
		image_write(image, entry + shape->trace_depth, other_depth(image, low), 2);
	} else {
		image_write(image, entry + shape->trace_index, low, 2);
		image_write(image, entry + shape->trace_depth, frame_count, 2);
	}
}

static void chain(struct database *database, uint64_t entry)
{
	struct image *image = database->image;
	uint64_t bucket = image_random(image, BUCKET_COUNT);
	uint64_t head = database->base + database->shape->db_buckets +
			bucket * database->shape->db_bucket_bytes;
	uint64_t first = image_get_ptr(image, head);
	image_write_ptr(image, entry, first);
	image_write_ptr(image, head, entry);
	if (first)
		image_mark(image, "ust.chained", entry);
}

static void add_stack(struct database *database, struct made_stack *stack)
{
	struct image *image = database->image;
	/* A reused entry may have more slots than the stack needs. */
	unsigned slots = stack->frame_count + (image_random(image, 10) == 0);
	slots = slots < MOST_FRAMES ? slots : MOST_FRAMES;
	stack->record = new_entry(database, slots);
	write_numbers(database, stack->record, stack->frame_count, slots);
	uint64_t frames = stack->record + database->shape->trace_frames;
	for (unsigned i = 0; i < stack->frame_count; i++) {
		image_write_ptr(
			image, frames + (uint64_t)i * image_ptr_bytes(image), stack->frames[i]);
	}
	chain(database, stack->record);
}

/* Adds a freed entry to the list for its depth. The link is stored in its former frames. */
static void add_freed(struct database *database)
{
	struct image *image = database->image;
	const struct made_nt_shape *shape = database->shape;
	unsigned slots = 2 + (unsigned)image_random(image, DEPTH_LISTS - 2);
	uint64_t entry = new_entry(database, slots);
	uint64_t list =
		database->base + shape->db_free_lists + (uint64_t)slots * shape->db_slist_bytes;
	uint64_t chain_at = entry + shape->trace_frames;
	unsigned depth_at = shape->bits == 64 ? 0 : 4;
	unsigned next_at = shape->bits == 64 ? 8 : 0;
	image_write(image, entry + shape->trace_count, (uint64_t)slots << 11, 2);
	image_write(image, entry + shape->trace_index, database->index & 0xffff, 2);
	image_write(image, entry + shape->trace_index_high, database->index >> 16, 2);
	/* x64 keeps a flag in the low bit of the pointer. */
	uint64_t own_bit = shape->bits == 64;
	image_write_ptr(image, chain_at, image_get_ptr(image, list + next_at) & ~own_bit);
	image_write_ptr(image, list + next_at, chain_at | own_bit);
	image_write(image, list + depth_at, image_get(image, list + depth_at, 2) + 1, 2);
}

static void write_head(struct database *database)
{
	struct image *image = database->image;
	const struct made_nt_shape *shape = database->shape;
	uint64_t base = database->base;
	struct side *side = image_at_side(image);
	uint64_t array = database->end - (uint64_t)database->index * image_ptr_bytes(image);
	uint64_t entries =
		(base + shape->db_buckets + BUCKET_COUNT * shape->db_bucket_bytes + 15) & ~15ull;
	side->database = base;
	side->database_entries = database->index;
	side->database_lookups = database->lookups;
	side->database_used = database->next - base + database->end - array;
	side->database_reserved = database->end - base;
	side->database_failures = (uint32_t)image_random(image, 9);
	image_write_ptr(image, base + shape->db_peak, 3);
	image_write_ptr(image, base + shape->db_lower_start, entries);
	image_write_ptr(image, base + shape->db_commit_base, base);
	image_write_ptr(image, base + shape->db_lower_limit, database->committed);
	image_write_ptr(image, base + shape->db_upper_limit, array / PAGE_BYTES * PAGE_BYTES);
	image_write_ptr(image, base + shape->db_next_lower, database->next);
	image_write_ptr(image, base + shape->db_next_upper, array);
	image_write(image, base + shape->db_lookups, database->lookups, 4);
	image_write(image, base + shape->db_added, database->index, 4);
	image_write_ptr(image, base + shape->db_index_array, database->end);
	image_write(image, base + shape->db_allocated, database->index, 4);
	image_write(image, base + shape->db_failures, side->database_failures, 4);
	image_write(image, base + shape->db_bucket_count, BUCKET_COUNT, 4);
	image_write_ptr(image, side->database_variable, base);
	image_mark(image, "ust.database", base);
	image_mark(image, "ust.record", side->stacks[0].record);
}

/* Returns Windows' default reservation, or a larger one as StackTraceDatabaseSizeInMb would set. */
static uint64_t database_bytes(const struct image *image, uint64_t head_bytes)
{
	uint64_t usual = image->bits == 64 ? 0x4000000 : 0x2000000;
	uint64_t ptr = image->bits / 8;
	/* One entry in 37 is a freed entry. Each entry has a head, slots, and a place in the
	 * array. */
	uint64_t most_entry = 0x20 + (MOST_FRAMES + 2) * ptr;
	uint64_t entries = image->options.stack_count + image->options.stack_count / 37u + 2;
	uint64_t wanted = head_bytes + entries * most_entry + 2 * (uint64_t)GRANULE_BYTES;
	return wanted < usual ? usual : wanted;
}

void ust_model_make(struct image *image)
{
	const struct made_nt_shape *shape = made_nt_shape(image->bits);
	struct side *side = image_at_side(image);
	uint64_t head_bytes = shape->db_buckets + BUCKET_COUNT * (uint64_t)shape->db_bucket_bytes;
	uint64_t bytes = database_bytes(image, head_bytes);
	uint64_t base = image_reserve(image, bytes, 0);
	struct database database = {.image = image,
		.shape = shape,
		.base = base,
		.end = base + bytes,
		.next = base + head_bytes,
		.committed = base + GRANULE_BYTES};
	image_commit(image, base, GRANULE_BYTES, IMAGE_READ | IMAGE_WRITE);
	for (unsigned i = 0; i < image->options.stack_count; i++) {
		add_stack(&database, &side->stacks[i]);
		if (i % 37 == 5)
			add_freed(&database);
	}
	write_head(&database);
}

/* ---- damage */

static uint64_t database_field(struct image *image, uint16_t offset)
{
	uint64_t base = image_marked(image, "ust.database", 0);
	return base ? base + offset : 0;
}

static void write_field(struct image *image, uint16_t offset, uint64_t value, bool is_ptr)
{
	uint64_t at = database_field(image, offset);
	if (at && is_ptr)
		image_write_ptr(image, at, value);
	else if (at)
		image_write(image, at, value, 4);
}

static void cycle_buckets(struct image *image)
{
	for (size_t i = 0; image_marked(image, "ust.chained", i); i++) {
		uint64_t entry = image_marked(image, "ust.chained", i);
		image_write_ptr(image, image_get_ptr(image, entry), entry);
	}
}

static void depth_ffff(struct image *image)
{
	uint64_t record = image_marked(image, "ust.record", 0);
	const struct made_nt_shape *shape = made_nt_shape(image->bits);
	if (record) {
		image_write(image, record + shape->trace_depth, 0xffff, 2);
		image_write(image, record + shape->trace_index, 0xffff, 2);
	}
}

BREAK(index_array_wild,
	write_field(image, made_nt_shape(image->bits)->db_index_array, 0xfffffff0, true))
BREAK(bucket_count,
	write_field(image, made_nt_shape(image->bits)->db_bucket_count, UINT32_MAX, false))

static void entry_count(struct image *image)
{
	write_field(image, made_nt_shape(image->bits)->db_added, UINT32_MAX, false);
	write_field(image, made_nt_shape(image->bits)->db_allocated, UINT32_MAX, false);
}

static void frames_wild(struct image *image)
{
	const struct side *side = image_at_side(image);
	uint64_t second = made_nt_shape(image->bits)->trace_frames + image_ptr_bytes(image);
	unsigned count = 0;
	for (unsigned i = 0; side->database && i < image->options.stack_count; i++) {
		const struct made_stack *stack = &side->stacks[i];
		if (stack->is_used && stack->frame_count > 3 && count < 5) {
			image_write_ptr(image, stack->record + second, 0x7ffe1231);
			count++;
		}
	}
	if (count == 0)
		image_die("nothing to damage: stacks");
}

const struct image_break ust_breaks[] = {
	{"cycle-buckets", "the stack database's chains are circles", cycle_buckets},
	{"depth-ffff", "the first stack says to have FFFFh frames", depth_ffff},
	{"frames-wild", "some stacks have a frame that is in no code", frames_wild},
	{"index-array-wild", "EntryIndexArray points at nothing", index_array_wild},
	{"count-buckets-ffffffff", "the stack database counts 2^32-1 buckets", bucket_count},
	{"count-entries-ffffffff", "the stack database counts 2^32-1 entries", entry_count},
	{0},
};
