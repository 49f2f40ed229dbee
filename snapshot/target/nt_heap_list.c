/* The list of a process's heaps, filled from PEB.ProcessHeaps and by nt_ring.c. */
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "snapshot/target/nt_process.h"
#include "snapshot/target/peb_layout.h"

void nt_process_list_fault(struct nt_process *process, uint64_t addr, const char *fault)
{
	if (process->list_fault)
		return;
	process->list_fault = fault;
	process->list_fault_addr = addr;
}

int nt_process_add_heap(struct nt_process *process, uint64_t addr)
{
	if (process->heap_count >= HEAPS_MAX) {
		nt_process_list_fault(process, addr, "too many heaps");
		return 0;
	}
	if (array_try_grow((void **)&process->heaps, &process->heap_cap, process->heap_count,
		    sizeof(*process->heaps)))
		return -ERR_NOMEM;
	process->heaps[process->heap_count++] = addr;
	return 0;
}

int nt_process_read_list(
	struct nt_process *process, struct memory *memory, uint64_t first, const unsigned char *peb)
{
	const struct peb_layout *layout = peb_layout(process->bits);
	uint64_t list = bytes_ptr(peb + layout->heap_list, process->bits);
	uint32_t count = bytes_u32(peb + layout->heap_count), unused = 0;
	bool is_count_wrong = count > HEAPS_MAX, is_first_seen = false;
	struct u64map known;
	uint64_t addr;
	int rc = nt_process_add_heap(process, first);

	if (is_count_wrong)
		nt_process_list_fault(process, list, "list of heaps of an impossible length");
	count = is_count_wrong ? HEAPS_MAX : count;
	u64map_init(&known);
	u64map_add(&known, first, &unused);
	for (uint32_t i = 0; !rc && i < count; i++) {
		if (memory_ptr(memory, process->bits, list + (uint64_t)i * (process->bits / 8),
			    &addr)) {
			nt_process_list_fault(process, list, "unreadable list of heaps");
			break;
		}
		/* If the list's length is impossible, the list ends at its first unused entry. */
		if (is_count_wrong && !addr)
			break;
		if (addr && addr != first && u64map_add(&known, addr, &unused))
			rc = nt_process_add_heap(process, addr);
		else if (addr && (addr != first || is_first_seen))
			nt_process_list_fault(process, list, "heap that is listed twice");
		is_first_seen = is_first_seen || addr == first;
	}
	u64map_release(&known);
	return rc;
}
