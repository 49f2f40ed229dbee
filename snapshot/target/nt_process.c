/* Reader of a process environment block (PEB): heaps, flags and command line. */
#include "snapshot/target/nt_process.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/text.h"
#include "snapshot/target/peb_layout.h"

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
	rc = nt_process_read_list(&found, memory, first, bytes);
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
