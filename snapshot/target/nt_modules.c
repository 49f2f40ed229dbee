/* The modules of a process, in the order of its loader's list. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/text.h"
#include "snapshot/target/nt_process.h"
#include "snapshot/target/peb_layout.h"

struct loader_list {
	struct memory *memory;
	const struct peb_layout *layout;
	struct snapshot *snapshot;
	size_t room; /* number of bytes left for paths */
};

static const char *read_path(struct loader_list *list, const unsigned char *string)
{
	const struct peb_layout *layout = list->layout;
	uint64_t buffer = bytes_ptr(string + layout->string_buffer, layout->bits);
	size_t len = bytes_u16(string), size;
	unsigned char *units = malloc(len + 1);
	char *text = NULL;

	if (units && len && len <= list->room && !memory_copy(list->memory, buffer, units, len)) {
		list->room -= len;
		size = text_from_utf16(units, len / 2, NULL, 0) + 1;
		text = arena_alloc(&list->snapshot->arena, size);
		text_from_utf16(units, len / 2, text, size);
	}
	free(units);
	return text;
}

static bool is_there(const struct snapshot *snapshot, uint64_t base)
{
	for (size_t i = 0; i < snapshot->module_count; i++) {
		if (snapshot->modules[i].base == base)
			return true;
	}
	return false;
}

static void add(struct loader_list *list, const unsigned char *entry)
{
	const struct peb_layout *layout = list->layout;
	uint64_t base = bytes_ptr(entry + layout->module_base, layout->bits);
	struct module *module;
	char nameless[32];
	int len;

	if (!base || is_there(list->snapshot, base))
		return;
	module = snapshot_add_module(list->snapshot);
	module->base = base;
	module->size_bytes = bytes_u32(entry + layout->module_size);
	module->path = read_path(list, entry + layout->module_path);
	if (!module->path) {
		len = snprintf(nameless, sizeof(nameless), "?%" PRIX64, base);
		module->path = arena_text(&list->snapshot->arena, nameless, (size_t)len);
	}
}

int nt_modules_read(struct memory *memory, uint64_t peb, unsigned bits, struct snapshot *snapshot)
{
	const struct peb_layout *layout = peb_layout(bits);
	struct loader_list list = {memory, layout, snapshot, NT_PATHS_BYTES};
	const size_t before = snapshot->module_count;
	unsigned char entry[0x60];
	uint64_t loader, head, at;
	unsigned count = 0;

	if (memory_ptr(memory, bits, peb + layout->ldr, &loader) || !loader)
		return -ERR_READ;
	head = loader + layout->load_order;
	if (memory_ptr(memory, bits, head, &at) || at == head)
		return -ERR_READ;
	for (; at != head; at = bytes_ptr(entry, bits)) {
		if (count++ == NT_MODULES_MAX ||
			memory_copy(memory, at, entry, layout->module_bytes)) {
			snapshot->module_count = before;
			return -ERR_READ;
		}
		add(&list, entry);
	}
	return 0;
}
