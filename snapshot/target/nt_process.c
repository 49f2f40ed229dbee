/* Reader of a process environment block (PEB): heaps, flags and command line. */
#include "snapshot/target/nt_process.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/text.h"
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

/* Adds the heaps of PEB.ProcessHeaps. The process heap always becomes the first, wherever it is in
 * the list. */
static int read_list(
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

int nt_process_read(struct nt_process *process, struct memory *memory, uint64_t peb, unsigned bits,
	struct err *err)
{
	const struct peb_layout *layout = peb_layout(bits);
	struct nt_process found = {.bits = bits, .peb = peb};
	unsigned char bytes[0x200];
	uint64_t first;
	int rc;

	if (memory_copy(memory, peb, bytes, layout->bytes))
		return target_err(memory->target, peb, "unreadable PEB", err);
	first = bytes_ptr(bytes + layout->process_heap, bits);
	if (!first)
		return err_set(err, ERR_TARGET, memory->target->name, "no heap yet");
	found.global_flag = bytes_u32(bytes + layout->global_flag);
	found.os_major = bytes_u32(bytes + layout->os_major);
	found.os_minor = bytes_u32(bytes + layout->os_minor);
	found.os_build = bytes_u16(bytes + layout->os_build);
	rc = read_list(&found, memory, first, bytes);
	if (!rc)
		rc = nt_ring_read(&found, memory);
	if (rc) {
		nt_process_release(&found);
		return err_set(err, (enum err_code) - rc, memory->target->name, NULL);
	}
	*process = found;
	return 0;
}

void nt_process_release(struct nt_process *process)
{
	free(process->heaps);
	*process = (struct nt_process){0};
}

uint32_t nt_global_flag(struct target *target)
{
	uint32_t flag = 0, host_flag = 0;

	target_u32(target, target->peb + peb_layout(target->bits)->global_flag, &flag);
	if (target->host_peb)
		target_u32(target, target->host_peb + peb_layout(64)->global_flag, &host_flag);
	return flag | host_flag;
}

static int read_ptr(struct target *target, uint64_t addr, uint64_t *value)
{
	unsigned char bytes[8];
	int rc = target_read(target, addr, bytes, target->bits / 8);

	if (!rc)
		*value = bytes_ptr(bytes, target->bits);
	return rc;
}

char *nt_command_line(struct target *target)
{
	const struct peb_layout *layout = peb_layout(target->bits);
	unsigned char len_bytes[2], *units;
	uint64_t parameters, buffer;
	char *text = NULL;
	size_t len, size;

	if (read_ptr(target, target->peb + layout->parameters, &parameters) ||
		target_read(
			target, parameters + layout->command_line, len_bytes, sizeof(len_bytes)) ||
		read_ptr(
			target, parameters + layout->command_line + layout->string_buffer, &buffer))
		return NULL;
	len = bytes_u16(len_bytes);
	units = malloc(len + 1);
	if (units && (!len || !target_read(target, buffer, units, len))) {
		size = text_from_utf16(units, len / 2, NULL, 0) + 1;
		text = malloc(size);
		if (text)
			text_from_utf16(units, len / 2, text, size);
	}
	free(units);
	return text;
}
