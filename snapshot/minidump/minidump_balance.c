/*
 * The balance of a process in a minidump file: its address space, TEBs, counters, threads and
 * handles. A figure is known only if the stream that contains it is complete and consistent:
 * anything else would look like a change of the process.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/dump/balance.h"
#include "snapshot/live/process.h"
#include "snapshot/minidump/minidump.h"
#include "snapshot/minidump/minidump_layout.h"
#include "snapshot/target/nt_process.h"
#include "snapshot/target/peb_layout.h"

/* ---------------------------------------------------------------- address space */

struct entry {
	struct target_memory memory;
	bool is_free;
};

/* Sets the range and the state. Returns false if no process can have such a range. */
static bool parse_range(
	const struct minidump *dump, const unsigned char *bytes, struct entry *entry)
{
	const uint64_t addr = minidump_addr(dump, bytes_u64(bytes + MD_INFO_ADDR));
	const uint64_t size = bytes_u64(bytes + MD_INFO_SIZE);
	const uint32_t state = bytes_u32(bytes + MD_INFO_STATE);

	if (!size || size > UINT64_MAX - addr)
		return false;
	entry->memory = (struct target_memory){
		.addr = addr, .end = addr + size, .is_committed = state == MD_MEM_COMMIT};
	entry->is_free = state == MD_MEM_FREE;
	return entry->is_free || state == MD_MEM_COMMIT || state == MD_MEM_RESERVE;
}

static bool parse_type(uint32_t type, enum target_memory_type *parsed)
{
	switch (type) {
	case MD_MEM_PRIVATE: *parsed = TARGET_PRIVATE; return true;
	case MD_MEM_MAPPED: *parsed = TARGET_VIEW; return true;
	case MD_MEM_IMAGE: *parsed = TARGET_IMAGE; return true;
	default: return false;
	}
}

/* Reads an entry of the list of regions. Returns false if the entry is inconsistent. */
static bool parse_entry(
	const struct minidump *dump, const unsigned char *bytes, struct entry *entry)
{
	const uint32_t type = bytes_u32(bytes + MD_INFO_TYPE);
	struct target_memory *memory = &entry->memory;

	if (!parse_range(dump, bytes, entry))
		return false;
	if (entry->is_free)
		return true;
	memory->allocation = minidump_addr(dump, bytes_u64(bytes + MD_INFO_ALLOCATION));
	memory->is_copy = live_is_copy(type, bytes_u32(bytes + MD_INFO_PROTECT),
		bytes_u32(bytes + MD_INFO_ALLOCATION_PROTECT));
	return parse_type(type, &memory->type) && memory->allocation <= memory->addr &&
	       memory->end <= TARGET_SPACE_BYTES;
}

static const unsigned char *entry_at(const struct minidump *dump, size_t i)
{
	return dump->info_list.entries + i * dump->info_list.entry_bytes;
}

/* Returns true if the regions ascend without overlaps, and so do their allocations. */
static bool is_consistent(const struct minidump *dump)
{
	uint64_t end = 0; /* end of the entries so far */
	struct target_memory last = {0};

	for (size_t i = 0; i < dump->info_list.count; i++) {
		struct entry entry;

		if (!parse_entry(dump, entry_at(dump, i), &entry) || entry.memory.addr < end)
			return false;
		end = entry.memory.end;
		if (entry.is_free)
			continue;
		if (entry.memory.allocation != last.allocation &&
			entry.memory.allocation < last.end)
			return false;
		last = entry.memory;
	}
	return true;
}

int minidump_space(const struct minidump *dump, struct target_memory **list, size_t *count)
{
	if (!dump->has_space)
		return -ERR_TARGET;
	*list = xmalloc(dump->info_list.count * sizeof(**list));
	*count = 0;
	for (size_t i = 0; i < dump->info_list.count; i++) {
		struct entry entry;

		if (parse_entry(dump, entry_at(dump, i), &entry) && !entry.is_free)
			(*list)[(*count)++] = entry.memory;
	}
	return 0;
}

/* ---------------------------------------------------------------- threads */

static struct minidump_list threads_of(struct minidump *dump)
{
	return minidump_list(dump, MD_THREADS, MD_THREAD_BYTES);
}

static uint64_t teb_of(const struct minidump *dump, const struct minidump_list *threads, size_t i)
{
	const unsigned char *entry = threads->entries + i * MD_THREAD_BYTES;

	return minidump_addr(dump, bytes_u64(entry + MD_THREAD_TEB));
}

/* Returns true if the file contains the address of the thread's stack. */
static bool is_present(const struct minidump *dump, uint64_t teb, unsigned bits)
{
	unsigned char bytes[8];

	return !minidump_copy(dump, teb + peb_layout(bits)->teb_stack, bytes, bits / 8);
}

size_t minidump_missing_tebs(struct minidump *dump, struct target *target)
{
	const struct minidump_list threads = threads_of(dump);
	size_t missing = 0;

	for (size_t i = 0; i < threads.count; i++) {
		const uint64_t teb = teb_of(dump, &threads, i);
		const uint64_t guest =
			teb && dump->bits != target->bits ? nt_guest_teb(target, teb) : 0;

		missing += (teb && !is_present(dump, teb, dump->bits)) ||
			   (guest && !is_present(dump, guest, target->bits));
	}
	return missing;
}

int minidump_tebs(
	struct minidump *dump, struct target *target, struct target_teb **list, size_t *count)
{
	const struct minidump_list threads = threads_of(dump);

	if (!threads.is_whole || !threads.count || minidump_missing_tebs(dump, target))
		return -ERR_TARGET;
	*list = xmalloc(2 * threads.count * sizeof(**list));
	*count = 0;
	for (size_t i = 0; i < threads.count; i++) {
		const uint64_t teb = teb_of(dump, &threads, i);
		const uint64_t guest =
			teb && dump->bits != target->bits ? nt_guest_teb(target, teb) : 0;

		if (teb)
			(*list)[(*count)++] = (struct target_teb){teb, dump->bits};
		if (guest)
			(*list)[(*count)++] = (struct target_teb){guest, target->bits};
	}
	if (*count)
		return 0;
	free(*list);
	*list = NULL;
	return -ERR_TARGET;
}

/* ---------------------------------------------------------------- handles */

#define TYPE_UNITS_MAX 64 /* maximum length of the name of a type; Windows' own have up to 30 */

static int compare_u32(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Adds handles whose type's name is at `rva`. `known` maps names to indexes. */
static void add_type(struct minidump *dump, struct table *known, uint32_t rva, uint64_t count)
{
	const char *name = minidump_text(dump, rva, TYPE_UNITS_MAX);
	const uint64_t *index = name ? table_find(known, name, strlen(name)) : NULL;

	if (index) {
		dump->handle_types[*index].count += count;
	} else if (!name || dump->handle_type_count == BALANCE_HANDLES_MAX) {
		dump->gaps.cut_types += count;
	} else {
		table_add(known, name, strlen(name), dump->handle_type_count);
		dump->handle_types[dump->handle_type_count++] =
			(struct balance_handles){name, count};
	}
}

/* Counts handles by type. Writers may store a type's name once, or once for each handle. `rvas`:
 * sorted places of the names. */
static void count_types(struct minidump *dump, const uint32_t *rvas, size_t count)
{
	struct table known;

	table_init(&known);
	dump->handle_types =
		arena_alloc(&dump->arena, BALANCE_HANDLES_MAX * sizeof(*dump->handle_types));
	for (size_t i = 0, next; i < count; i = next) {
		next = i + 1;
		while (next < count && rvas[next] == rvas[i])
			next++;
		if (rvas[i])
			add_type(dump, &known, rvas[i], next - i);
	}
	table_release(&known);
}

static void read_handles(struct minidump *dump)
{
	const struct minidump_list list =
		minidump_headed_list(dump, MD_HANDLES, 4, MD_HANDLE_BYTES);
	uint32_t *rvas;

	if (!list.is_whole || !list.count)
		return;
	dump->handle_count = list.count;
	rvas = xmalloc(list.count * sizeof(*rvas));
	for (size_t i = 0; i < list.count; i++)
		rvas[i] = bytes_u32(list.entries + i * list.entry_bytes + MD_HANDLE_TYPE_RVA);
	qsort(rvas, list.count, sizeof(*rvas), compare_u32);
	count_types(dump, rvas, list.count);
	free(rvas);
}

void minidump_read_balance(struct minidump *dump)
{
	if (dump->info_list.is_whole && dump->info_list.count) {
		dump->has_space = is_consistent(dump);
		dump->gaps.has_odd_space = !dump->has_space;
	}
	read_handles(dump);
}

/* ---------------------------------------------------------------- counters */

/* Sets a counter from the file, unless it exceeds the address space. */
static void set_bytes(struct balance *balance, enum balance_figure figure, uint64_t bytes)
{
	if (bytes <= TARGET_SPACE_BYTES)
		balance_set(balance, figure, bytes);
}

/* Returns the number of private bytes. PagefileUsage has the same value, except in Windows 7, where
 * it is 0. */
static uint64_t private_bytes(const struct minidump_stream *vm)
{
	const unsigned revision = bytes_u16(vm->bytes + MD_VM_REVISION);
	const unsigned at = revision == 1 ? MD_VM_PRIVATE_1 : MD_VM_PRIVATE_2;
	const bool has_private =
		revision == 1 || bytes_u16(vm->bytes + MD_VM_FLAGS) & MD_VM_HAS_PRIVATE;
	const uint64_t bytes = has_private && vm->len >= at + 8 ? bytes_u64(vm->bytes + at) : 0;

	return bytes ? bytes : bytes_u64(vm->bytes + MD_VM_PAGEFILE);
}

static void count_memory(const struct minidump_stream *vm, struct balance *balance)
{
	uint64_t bytes, peak;

	if (vm->len < MD_VM_MIN_BYTES || !bytes_u16(vm->bytes + MD_VM_REVISION) ||
		bytes_u16(vm->bytes + MD_VM_REVISION) > 2)
		return;
	bytes = private_bytes(vm);
	peak = bytes_u64(vm->bytes + MD_VM_PAGEFILE_PEAK);
	if (bytes)
		set_bytes(balance, BALANCE_PRIVATE, bytes);
	set_bytes(balance, BALANCE_WORKING_SET, bytes_u64(vm->bytes + MD_VM_WORKING_SET));
	if (peak)
		set_bytes(balance, BALANCE_COMMIT_PEAK, peak);
}

void minidump_count(struct minidump *dump, struct balance *balance, struct arena *arena)
{
	const struct minidump_list threads = threads_of(dump);

	count_memory(&dump->streams[MD_VM_COUNTERS], balance);
	if (threads.is_whole && threads.count)
		balance_set(balance, BALANCE_THREADS, threads.count);
	if (!dump->handle_count)
		return;
	balance_set(balance, BALANCE_HANDLES, dump->handle_count);
	balance->handles = arena_alloc(arena, dump->handle_type_count * sizeof(*balance->handles));
	for (size_t i = 0; i < dump->handle_type_count; i++) {
		const struct balance_handles *type = &dump->handle_types[i];

		balance->handles[balance->handle_count++] = (struct balance_handles){
			arena_text(arena, type->type, strlen(type->type)), type->count};
	}
}
