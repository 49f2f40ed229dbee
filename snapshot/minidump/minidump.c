/* Reader of a minidump file: the header, the directory of streams and the list of modules. */
#include "snapshot/minidump/minidump.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/pe/pe.h"
#include "snapshot/minidump/minidump_layout.h"

/* Returns true if streams of this type are read. */
static bool is_read(uint32_t type)
{
	switch (type) {
	case MD_THREADS:
	case MD_MODULES:
	case MD_MEMORY:
	case MD_SYSTEM:
	case MD_MEMORY64:
	case MD_HANDLES:
	case MD_MISC:
	case MD_INFOS:
	case MD_VM_COUNTERS: return true;
	default: return false;
	}
}

static void parse_stream(struct minidump *dump, const unsigned char *entry)
{
	uint32_t type = bytes_u32(entry + MD_STREAM_TYPE);
	size_t len = bytes_u32(entry + MD_STREAM_BYTES);
	struct minidump_stream stream = {.said_len = (uint32_t)len};

	if (!is_read(type))
		return;
	if (dump->streams[type].bytes) {
		dump->gaps.repeated++;
		return;
	}
	stream.bytes = minidump_at(dump, bytes_u32(entry + MD_STREAM_RVA), &len);
	stream.len = stream.bytes ? len : 0;
	if (stream.bytes)
		dump->streams[type] = stream;
	else
		dump->gaps.cut_entries++;
}

static void read_directory(struct minidump *dump)
{
	uint32_t rva = bytes_u32(dump->bytes + MD_DIRECTORY_RVA);
	size_t len = dump->len;
	const unsigned char *directory = minidump_at(dump, rva, &len);
	size_t count = minidump_entries(dump, bytes_u32(dump->bytes + MD_STREAM_COUNT),
		directory ? len : 0, MD_DIRECTORY_BYTES);

	for (size_t i = 0; i < count; i++)
		parse_stream(dump, directory + i * MD_DIRECTORY_BYTES);
}

static int check_header(const unsigned char *bytes, size_t len, const char *name, struct err *err)
{
	if (len >= 8 && (!memcmp(bytes, "PAGEDU64", 8) || !memcmp(bytes, "PAGEDUMP", 8)))
		return err_set(err, ERR_NOT_MINIDUMP, name, "a dump of the whole system");
	if (len < 4 || bytes_u32(bytes + MD_SIGNATURE) != MD_MAGIC)
		return err_set(err, ERR_NOT_MINIDUMP, name, "does not begin with MDMP");
	if (len < MD_HEADER_BYTES)
		return err_set(err, ERR_NOT_MINIDUMP, name, "cut short after %zu byte%s", len,
			text_plural(len));
	if (bytes_u16(bytes + MD_VERSION) != MD_MAGIC_VERSION)
		return err_set(err, ERR_NOT_MINIDUMP, name, "version %X is not known",
			bytes_u16(bytes + MD_VERSION));
	return 0;
}

/* Finds the size of pointers from the processor. If the processor is unknown, uses the program's
 * base address. */
static void find_bits(struct minidump *dump)
{
	const struct minidump_stream *system = &dump->streams[MD_SYSTEM];
	const struct minidump_stream *modules = &dump->streams[MD_MODULES];

	dump->bits = 64;
	if (system->len >= MD_SYSTEM_MIN_BYTES) {
		switch (bytes_u16(system->bytes + MD_SYSTEM_ARCHITECTURE)) {
		case MD_ARCHITECTURE_INTEL:
		case MD_ARCHITECTURE_ARM: dump->bits = 32; return;
		case MD_ARCHITECTURE_AMD64:
		case MD_ARCHITECTURE_ARM64: return;
		default: break;
		}
	}
	dump->is_bits_guessed = true;
	if (modules->len >= 4 + MD_MODULE_BYTES &&
		bytes_u64(modules->bytes + 4 + MD_MODULE_BASE) <= UINT32_MAX)
		dump->bits = 32;
}

#define NAME_UNITS_MAX 32767 /* maximum length of a path on Windows */
#define NAMELESS "?"

static const char *read_name(struct minidump *dump, uint32_t rva)
{
	const char *text = minidump_text(dump, rva, NAME_UNITS_MAX);

	if (text)
		return text;
	dump->gaps.cut_names++;
	return NAMELESS;
}

/* Formats a GUID as core/pe/pe.c does for images in memory. */
static const char *guid_text(struct minidump *dump, const unsigned char *guid)
{
	char text[33];
	int len = snprintf(text, sizeof(text), "%08lX%04X%04X", (unsigned long)bytes_u32(guid),
		bytes_u16(guid + 4), bytes_u16(guid + 6));

	for (size_t i = 8; i < 16; i++)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%02X", guid[i]);
	return arena_text(&dump->arena, text, (size_t)len);
}

static void read_codeview(struct minidump *dump, const unsigned char *where, struct module *module)
{
	/* used only for the maximum lengths of names, which are those for images in memory */
	struct pe_image bounds;
	size_t len = bytes_u32(where), name_len;
	const unsigned char *record = minidump_at(dump, bytes_u32(where + 4), &len);
	const char *name;

	if (!record || len < MD_CODEVIEW_NAME || memcmp(record, "RSDS", 4) != 0)
		return;
	name = (const char *)record + MD_CODEVIEW_NAME;
	len -= MD_CODEVIEW_NAME;
	len = len < sizeof(bounds.pdb) - 1 ? len : sizeof(bounds.pdb) - 1;
	name_len = strnlen(name, len);
	if (!minidump_has_room(dump, name_len + sizeof(bounds.pdb_guid))) {
		dump->gaps.cut_names++;
		return;
	}
	if (name_len)
		module->pdb = arena_text(&dump->arena, name, name_len);
	module->pdb_age = bytes_u32(record + MD_CODEVIEW_AGE);
	module->pdb_guid = guid_text(dump, record + MD_CODEVIEW_GUID);
}

static int add_module(struct minidump *dump, const unsigned char *entry)
{
	struct module module = {.base = minidump_addr(dump, bytes_u64(entry + MD_MODULE_BASE)),
		.size_bytes = bytes_u32(entry + MD_MODULE_SIZE),
		.checksum = bytes_u32(entry + MD_MODULE_CHECKSUM),
		.timestamp = bytes_u32(entry + MD_MODULE_TIMESTAMP),
		.has_identity = true};

	if (module.size_bytes > UINT64_MAX - module.base)
		module.size_bytes = UINT64_MAX - module.base;
	module.path = read_name(dump, bytes_u32(entry + MD_MODULE_NAME_RVA));
	read_codeview(dump, entry + MD_MODULE_CODEVIEW, &module);
	if (array_try_grow(
		    (void **)&dump->modules, &dump->module_cap, dump->module_count, sizeof(module)))
		return -ERR_NOMEM;
	dump->modules[dump->module_count++] = module;
	return 0;
}

/* Sorts the modules. If two modules overlap, the lower one is cut where the other begins. Empty
 * modules are removed. */
static void sort_modules(struct minidump *dump)
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

/* Sorts the modules, finds the program, whose base is `first`, and lists the modules' spans. */
static int finish_all(struct minidump *dump, uint64_t first)
{
	int rc = 0;

	sort_modules(dump);
	dump->first_module = 0;
	while (dump->first_module < dump->module_count &&
		dump->modules[dump->first_module].base != first)
		dump->first_module++;
	dump->module_spans.count = 0;
	for (size_t i = 0; !rc && i < dump->module_count; i++) {
		uint64_t base = dump->modules[i].base;

		rc = spans_add(&dump->module_spans,
			&(struct span){.addr = base, .end = base + dump->modules[i].size_bytes});
	}
	return rc;
}

static int read_modules(struct minidump *dump)
{
	struct minidump_list list = minidump_list(dump, MD_MODULES, MD_MODULE_BYTES);
	int rc = 0;

	for (size_t i = 0; !rc && i < list.count; i++)
		rc = add_module(dump, list.entries + i * MD_MODULE_BYTES);
	return rc ? rc : finish_all(dump, dump->module_count ? dump->modules[0].base : 0);
}

int minidump_read(
	struct minidump *dump, const void *bytes, size_t len, const char *name, struct err *err)
{
	int rc = check_header(bytes, len, name, err);

	if (rc)
		return rc;
	*dump = (struct minidump){.bytes = bytes, .len = len};
	/* In a sound file, each string is stored once, in UTF-16, and grows by at most a half in
	 * UTF-8. */
	dump->text_bytes_left = (uint64_t)len * 2;
	arena_init(&dump->arena);
	dump->time_ms = (int64_t)bytes_u32(dump->bytes + MD_TIME) * 1000;
	dump->flags = bytes_u64(dump->bytes + MD_FLAGS);
	read_directory(dump);
	find_bits(dump);
	rc = minidump_read_memory(dump);
	if (!rc)
		rc = read_modules(dump);
	if (rc) {
		minidump_release(dump);
		return err_set(err, ERR_NOMEM, name, NULL);
	}
	minidump_read_balance(dump);
	return 0;
}

void minidump_release(struct minidump *dump)
{
	spans_release(&dump->memory);
	spans_release(&dump->runs);
	spans_release(&dump->infos);
	spans_release(&dump->module_spans);
	free(dump->modules);
	arena_release(&dump->arena);
	*dump = (struct minidump){0};
}

/* Returns true if the module overlaps one of the first `count` modules. A module with the same base
 * counts as identical. */
static bool is_taken(struct minidump *dump, size_t count, const struct module *module)
{
	for (size_t i = 0; i < count; i++) {
		const struct module *other = &dump->modules[i];

		if (other->base == module->base)
			return true;
		if (other->base - module->base < module->size_bytes ||
			module->base - other->base < other->size_bytes) {
			dump->gaps.odd_modules++;
			return true;
		}
	}
	return false;
}

int minidump_add_modules(struct minidump *dump, const struct module *modules, size_t count)
{
	const size_t known = dump->module_count;
	const uint64_t first =
		dump->first_module < known ? dump->modules[dump->first_module].base : 0;

	/* The list must not be longer than a list in the file could be. */
	count = count < dump->len / MD_MODULE_BYTES ? count : dump->len / MD_MODULE_BYTES;
	for (size_t i = 0; i < count; i++) {
		struct module module = modules[i];
		size_t len = strlen(module.path);

		if (is_taken(dump, known, &module))
			continue;
		if (array_try_grow((void **)&dump->modules, &dump->module_cap, dump->module_count,
			    sizeof(module)))
			return -ERR_NOMEM;
		if (minidump_has_room(dump, len)) {
			module.path = arena_text(&dump->arena, module.path, len);
		} else {
			dump->gaps.cut_names++;
			module.path = NAMELESS;
		}
		dump->modules[dump->module_count++] = module;
	}
	return finish_all(dump, first);
}
