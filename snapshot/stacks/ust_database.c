/*
 * Finds the user-mode stack trace database. ntdll contains a pointer to the database, at an address
 * that is known only from symbols. So this file searches all of ntdll's writable sections for a
 * pointer to memory that has the structure of the database. All parts of the structure that can be
 * checked must be correct.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "snapshot/stacks/ust.h"
#include "snapshot/stacks/ust_layout.h"

#define PAGE_BYTES 0x1000u
#define SCAN_BYTES_MAX ((uint64_t)16 << 20) /* limit for ntdll, which is far smaller */
#define BUCKETS_MAX ((uint32_t)1 << 20)
#define INDEX_LOOKED 16
/* Limit for the number of bucket heads that are read in all candidates together. */
#define HEADS_MAX ((uint32_t)1 << 22)

struct ust_search {
	struct memory *memory;
	const struct ust_layout *layout;
	unsigned bits;
	uint64_t scan_left, last;
	uint32_t heads_left;
	struct ust_database *found;
};

/* Head of a database, as stored; addr < lower_free <= upper_free <= index_array. */
struct head {
	uint64_t addr, lower_free, upper_free, index_array;
	uint32_t entry_count, bucket_count;
	const struct ust_layout *layout;
	unsigned bits;
};

/* Returns true if the parts of the database are in the right order. Head, buckets and records grow
 * upwards from the beginning; the index grows downwards from the end. */
static bool is_in_order(const struct head *head, const unsigned char *bytes)
{
	const struct ust_layout *layout = head->layout;
	uint64_t end = head->index_array | (PAGE_BYTES - 1);
	uint64_t base = bytes_ptr(bytes + layout->commit_base, head->bits);
	uint64_t lower = bytes_ptr(bytes + layout->lower_commit, head->bits);
	uint64_t upper = bytes_ptr(bytes + layout->upper_commit, head->bits);
	uint64_t buckets_end =
		head->addr + layout->buckets + (uint64_t)head->bucket_count * layout->bucket_bytes;

	return head->index_array < TARGET_SPACE_BYTES && base >= head->addr && base <= lower &&
	       lower <= upper && upper <= end + 1 && head->lower_free > head->addr &&
	       head->lower_free <= head->upper_free && head->upper_free <= end + 1 &&
	       head->lower_free >= buckets_end && head->bucket_count &&
	       head->bucket_count <= BUCKETS_MAX &&
	       (head->index_array - head->lower_free) / (head->bits / 8) >= head->entry_count;
}

static bool read_head(struct ust_search *search, uint64_t addr, struct head *head)
{
	const struct ust_layout *layout = search->layout;
	const unsigned char *bytes = memory_at(search->memory, addr, layout->buckets);

	if (!bytes)
		return false;
	*head = (struct head){
		.addr = addr,
		.lower_free = bytes_ptr(bytes + layout->lower_free, search->bits),
		.upper_free = bytes_ptr(bytes + layout->upper_free, search->bits),
		.index_array = bytes_ptr(bytes + layout->index_array, search->bits),
		.entry_count = bytes_u32(bytes + layout->added),
		.bucket_count = bytes_u32(bytes + layout->bucket_count),
		.layout = layout,
		.bits = search->bits,
	};
	return head->index_array > head->lower_free && is_in_order(head, bytes);
}

static bool is_record_place(const struct head *head, uint64_t addr)
{
	return addr > head->addr && addr < head->lower_free && addr % (head->bits / 8) == 0 &&
	       head->lower_free - addr >= head->layout->frames;
}

static bool are_buckets_sound(struct ust_search *search, const struct head *head)
{
	uint64_t addr = head->addr + head->layout->buckets, first;

	for (uint32_t i = 0; i < head->bucket_count; i++, addr += head->layout->bucket_bytes) {
		if (!search->heads_left)
			return false;
		search->heads_left--;
		if (memory_ptr(search->memory, head->bits, addr, &first) ||
			(first && !is_record_place(head, first)))
			return false;
	}
	return true;
}

static bool is_index_sound(struct memory *memory, const struct head *head)
{
	uint32_t looked = head->entry_count < INDEX_LOOKED ? head->entry_count : INDEX_LOOKED;
	uint32_t sound = 0;
	uint64_t record;

	for (uint32_t i = 1; i <= looked; i++) {
		uint64_t slot = head->index_array - (uint64_t)i * (head->bits / 8);

		sound += !memory_ptr(memory, head->bits, slot, &record) &&
			 is_record_place(head, record);
	}
	return sound * 2 >= looked;
}

/* Counts the records that are reachable through the index and contain the number of their slot. */
static uint32_t count_indexed(struct memory *memory, const struct head *head)
{
	const struct ust_layout *layout = head->layout;
	uint64_t slot = head->index_array, record;
	uint32_t count = 0;

	for (uint32_t i = 1; i && i <= head->entry_count; i++) {
		const unsigned char *bytes;

		slot -= head->bits / 8;
		if (memory_ptr(memory, head->bits, slot, &record))
			break;
		bytes = is_record_place(head, record) ? memory_at(memory, record, layout->frames) :
							NULL;
		count += bytes &&
			 (bytes_u16(bytes + layout->index) |
				 (uint32_t)bytes_u16(bytes + layout->index_high) << 16) == i;
	}
	return count;
}

/* Counts the records in the hash chains. Stops at limit + 1, because a chain may loop. */
static uint32_t count_chained(struct memory *memory, const struct head *head, uint32_t limit)
{
	uint64_t bucket = head->addr + head->layout->buckets, record;
	uint32_t count = 0;

	for (uint32_t i = 0; i < head->bucket_count; i++, bucket += head->layout->bucket_bytes) {
		uint64_t at = bucket;

		while (!memory_ptr(memory, head->bits, at, &record) &&
			is_record_place(head, record)) {
			if (count++ == limit)
				return count;
			at = record;
		}
	}
	return count;
}

/* Fills search->found if a database is at addr. Otherwise returns false. */
static bool read_database(struct ust_search *search, uint64_t addr)
{
	struct ust_database *found = search->found;
	struct memory *memory = search->memory;
	struct head head;

	if (!read_head(search, addr, &head) || !are_buckets_sound(search, &head) ||
		!is_index_sound(memory, &head))
		return false;
	memory_u32(memory, addr + head.layout->lookups, &found->lookup_count);
	memory_u32(memory, addr + head.layout->failures, &found->failure_count);
	found->addr = addr;
	found->entry_count = head.entry_count;
	found->reserved_bytes = head.index_array - addr;
	found->used_bytes = head.lower_free - addr;
	if (head.upper_free < head.index_array)
		found->used_bytes += head.index_array - head.upper_free;
	found->indexed_count = count_indexed(memory, &head);
	found->chained_count = count_chained(memory, &head, found->indexed_count);
	return true;
}

/* Follows each pointer between `addr` and `end`. Returns true if one of them points to the
 * database. */
static bool scan(struct ust_search *search, uint64_t addr, uint64_t end)
{
	unsigned bytes = search->bits / 8;
	uint64_t pointer;

	for (; addr + bytes <= end && search->scan_left >= bytes; addr += bytes) {
		search->scan_left -= bytes;
		if (memory_ptr(search->memory, search->bits, addr, &pointer)) {
			/* Continue with the next page. */
			addr = (addr | (PAGE_BYTES - 1)) + 1 - bytes;
			continue;
		}
		if (!pointer || pointer % PAGE_BYTES || pointer == search->last)
			continue;
		search->last = pointer;
		if (read_database(search, pointer))
			return true;
	}
	return false;
}

/* Reads the headers of a module. Returns false if they are unreadable or the module has another
 * bitness. */
static bool read_image(
	struct ust_search *search, const struct module *module, struct pe_image *image)
{
	struct target_image at = {.target = search->memory->target, .base = module->base};
	struct pe_source source = target_image_source(&at);

	return !pe_read_headers(&source, image) && image->bits == search->bits;
}

int ust_database_find(struct ust_database *database, struct memory *memory, unsigned bits,
	const struct module *modules, size_t module_count)
{
	struct ust_database found = {0};
	struct ust_search search = {.memory = memory,
		.layout = ust_layout(bits),
		.bits = bits,
		.scan_left = SCAN_BYTES_MAX,
		.heads_left = HEADS_MAX,
		.found = &found};
	struct pe_image *image = malloc(sizeof(*image));
	bool done = false;

	if (!image)
		return -ERR_NOMEM;
	for (size_t i = 0; !done && i < module_count; i++) {
		if (text_compare(module_path_base(modules[i].path), "ntdll.dll") ||
			!read_image(&search, &modules[i], image))
			continue;
		for (size_t k = 0; !done && k < image->section_count; k++) {
			const struct pe_section *section = &image->sections[k];
			uint64_t addr = modules[i].base + section->rva;

			if (section->is_writable)
				done = scan(&search, addr, addr + section->size_bytes);
		}
	}
	free(image);
	*database = found;
	return 0;
}
