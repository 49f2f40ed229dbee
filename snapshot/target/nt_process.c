#include "snapshot/target/nt_process.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/text.h"
#include "snapshot/target/peb_layout.h"

/* Keeps the heap at addr unless it is there. */
static void add(struct nt_process *process, struct u64map *known, uint64_t addr)
{
	uint32_t index = (uint32_t)process->heap_count;

	if (addr && u64map_put(known, addr, &index))
		process->heaps[process->heap_count++] = addr;
}

static int read_heaps(
	struct nt_process *process, struct memory *memory, uint64_t first, const unsigned char *peb)
{
	const struct peb_layout *layout = peb_layout(process->bits);
	uint64_t list = bytes_ptr(peb + layout->heap_list, process->bits);
	uint32_t count = bytes_u32(peb + layout->heap_count);
	bool is_first_seen = false;
	struct u64map known;
	uint64_t addr;
	uint32_t index;

	process->is_heap_list_cut = count > HEAPS_MAX;
	count = count < HEAPS_MAX ? count : HEAPS_MAX;
	process->heaps = calloc((size_t)count + 1, sizeof(*process->heaps));
	if (!process->heaps)
		return -ERR_NOMEM;
	u64map_init(&known);
	add(process, &known, first);
	for (uint32_t i = 0; i < count; i++) {
		if (memory_ptr(memory, process->bits, list + (uint64_t)i * (process->bits / 8),
			    &addr)) {
			process->is_heap_list_cut = true;
			break;
		}
		/* Where the count says nothing, the list ends where its unused part begins. */
		if (process->is_heap_list_cut && !addr)
			break;
		/* A heap is in the list once: where one is there again, another is lost. */
		if (addr == first ? is_first_seen : addr && u64map_find(&known, addr, &index))
			process->is_heap_twice = true;
		is_first_seen = is_first_seen || addr == first;
		add(process, &known, addr);
	}
	u64map_release(&known);
	return 0;
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
		return err_set(err, ERR_TARGET, memory->target->name, "it has no heap yet");
	found.global_flag = bytes_u32(bytes + layout->global_flag);
	found.os_major = bytes_u32(bytes + layout->os_major);
	found.os_minor = bytes_u32(bytes + layout->os_minor);
	found.os_build = bytes_u16(bytes + layout->os_build);
	rc = read_heaps(&found, memory, first, bytes);
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
