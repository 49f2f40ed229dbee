#include <stdio.h>
#include <string.h>

#include "core/buf.h"
#include "core/pe.h"
#include "core/utf16.h"
#include "snapshot/minidump/minidump.h"
#include "snapshot/minidump/minidump_layout.h"

#define NAME_UNITS_MAX 32767 /* of a path, as Windows bounds it */
#define NAMELESS "?"

/* Takes bytes for a text that is kept; false when no sound file has so many. */
static bool may_keep(struct minidump *dump, size_t bytes)
{
	if (bytes > dump->text_bytes_left)
		return false;
	dump->text_bytes_left -= bytes;
	return true;
}

/* The text at rva; NAMELESS when there is none; NULL: out of memory. */
static const char *read_name(struct minidump *dump, uint32_t rva)
{
	size_t len = 4, bytes;
	const unsigned char *at = minidump_at(dump, rva, &len);
	char *text;

	if (!at || len < 4)
		goto nameless;
	len = bytes_u32(at);
	len = len < 2 * NAME_UNITS_MAX ? len : 2 * NAME_UNITS_MAX;
	at = minidump_at(dump, (uint64_t)rva + 4, &len);
	bytes = at ? utf16_text(at, len / 2, NULL, 0) : 0;
	if (!bytes || !may_keep(dump, bytes))
		goto nameless;
	text = arena_alloc(&dump->arena, bytes + 1);
	if (text)
		utf16_text(at, len / 2, text, bytes + 1);
	return text;
nameless:
	dump->gaps.cut_names++;
	return NAMELESS;
}

/* Spelled as core/pe.c does for images in memory. 0 or -ERR_NOMEM. */
static int keep_guid(struct minidump *dump, const unsigned char *guid, const char **kept)
{
	char text[33];
	int len = snprintf(text, sizeof(text), "%08lX%04X%04X", (unsigned long)bytes_u32(guid),
		bytes_u16(guid + 4), bytes_u16(guid + 6));

	for (size_t i = 8; i < 16; i++)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%02X", guid[i]);
	*kept = arena_text(&dump->arena, text, (size_t)len);
	return *kept ? 0 : -ERR_NOMEM;
}

static int read_codeview(struct minidump *dump, const unsigned char *where, struct module *module)
{
	struct pe_image bounds; /* names as long as those of images in memory */
	size_t len = bytes_u32(where), name_len;
	const unsigned char *record = minidump_at(dump, bytes_u32(where + 4), &len);
	const char *name;

	if (!record || len < MD_CODEVIEW_NAME || memcmp(record, "RSDS", 4) != 0)
		return 0;
	name = (const char *)record + MD_CODEVIEW_NAME;
	len -= MD_CODEVIEW_NAME;
	len = len < sizeof(bounds.pdb) - 1 ? len : sizeof(bounds.pdb) - 1;
	name_len = strnlen(name, len);
	if (!may_keep(dump, name_len + sizeof(bounds.pdb_guid))) {
		dump->gaps.cut_names++;
		return 0;
	}
	if (name_len) {
		module->pdb = arena_text(&dump->arena, name, name_len);
		if (!module->pdb)
			return -ERR_NOMEM;
	}
	module->pdb_age = bytes_u32(record + MD_CODEVIEW_AGE);
	return keep_guid(dump, record + MD_CODEVIEW_GUID, &module->pdb_guid);
}

static int add_module(struct minidump *dump, const unsigned char *entry)
{
	struct module module = {.base = minidump_addr(dump, bytes_u64(entry + MD_MODULE_BASE)),
		.size_bytes = bytes_u32(entry + MD_MODULE_SIZE),
		.checksum = bytes_u32(entry + MD_MODULE_CHECKSUM),
		.timestamp = bytes_u32(entry + MD_MODULE_TIMESTAMP),
		.has_identity = true};
	int rc;

	if (module.size_bytes > UINT64_MAX - module.base)
		module.size_bytes = UINT64_MAX - module.base;
	module.path = read_name(dump, bytes_u32(entry + MD_MODULE_NAME_RVA));
	if (!module.path)
		return -ERR_NOMEM;
	rc = read_codeview(dump, entry + MD_MODULE_CODEVIEW, &module);
	if (rc)
		return rc;
	if (array_grow(
		    (void **)&dump->modules, &dump->module_cap, dump->module_count, sizeof(module)))
		return -ERR_NOMEM;
	dump->modules[dump->module_count++] = module;
	return 0;
}

/* Of modules that overlap the lower one ends where the next begins; empty ones are left out. */
static void settle(struct minidump *dump)
{
	size_t kept = 0;

	modules_sort(dump->modules, dump->module_count);
	for (size_t i = 0; i < dump->module_count; i++) {
		struct module *module = &dump->modules[i];
		struct module *last = kept ? &dump->modules[kept - 1] : NULL;

		if (!module->size_bytes || (last && last->base == module->base)) {
			dump->gaps.odd_modules++;
			continue;
		}
		if (last && last->size_bytes > module->base - last->base) {
			last->size_bytes = module->base - last->base;
			dump->gaps.odd_modules++;
		}
		dump->modules[kept++] = *module;
	}
	dump->module_count = kept;
}

static int add_spans(struct minidump *dump)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < dump->module_count; i++) {
		uint64_t base = dump->modules[i].base;

		rc = spans_add(&dump->module_spans,
			&(struct span){.addr = base, .end = base + dump->modules[i].size_bytes});
	}
	return rc;
}

int minidump_read_modules(struct minidump *dump)
{
	struct minidump_list list = minidump_list(dump, MD_MODULES, MD_MODULE_BYTES);
	uint64_t first = 0;
	int rc = 0;

	for (size_t i = 0; !rc && i < list.count; i++)
		rc = add_module(dump, list.entries + i * MD_MODULE_BYTES);
	if (rc)
		return rc;
	if (dump->module_count)
		first = dump->modules[0].base;
	settle(dump);
	while (dump->first_module < dump->module_count &&
		dump->modules[dump->first_module].base != first)
		dump->first_module++;
	return add_spans(dump);
}
