#include "symbolize/files/dwarf_sections.h"

#include <string.h>

/* After Microsoft's "PE Format": a name too long for the section header stands there as "/N", N being
 * a decimal offset into the table of strings, which follows the symbol table. Images are not meant to
 * have these; mingw's have. */
#define SYMBOL_BYTES 18

static bool is_dwarf(const char *name)
{
	return !strcmp(name, ".debug_info") || !strcmp(name, ".zdebug_info");
}

static bool has_long_name(const struct pe_source *source, const struct pe_image *image,
	const struct pe_section *section)
{
	char name[sizeof(".zdebug_info")] = "";
	uint64_t table = image->coff_offset + (uint64_t)image->coff_symbols * SYMBOL_BYTES, at = 0;

	for (const char *digit = section->name + 1; *digit; digit++) {
		if (*digit < '0' || *digit > '9')
			return false;
		at = at * 10 + (uint64_t)(*digit - '0');
	}
	/* The shorter name with its end first: the longer may reach past the end of the file. */
	if (source->read(source->ctx, table + at, name, sizeof(".debug_info")))
		return false;
	if (name[sizeof(".debug_info") - 1] &&
		source->read(source->ctx, table + at, name, sizeof(name)))
		return false;
	return !name[sizeof(name) - 1] && is_dwarf(name);
}

bool image_has_dwarf(const struct pe_source *source, const struct pe_image *image)
{
	for (size_t i = 0; i < image->section_count; i++) {
		const struct pe_section *section = &image->sections[i];

		if (section->name[0] == '/' && image->coff_offset ?
				has_long_name(source, image, section) :
				is_dwarf(section->name))
			return true;
	}
	return false;
}
