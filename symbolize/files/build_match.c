/* Checks whether a file is the build recorded in a dump, and whether an image contains DWARF. */
#include <stdio.h>
#include <string.h>

#include "symbolize/files/module_files.h"

/* Section names that are too long for the header are stored as "/N" ("PE Format", Microsoft Learn).
 * N is a decimal offset into the string table, which follows the symbol table. Officially only
 * object files have such names, but mingw's images have them too. */
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
	/* Read only the size of the shorter name first, because the longer size may extend beyond
	 * the end of the file. */
	if (source->read(source->ctx, table + at, name, sizeof(".debug_info")))
		return false;
	if (name[sizeof(".debug_info") - 1] &&
		source->read(source->ctx, table + at, name, sizeof(name)))
		return false;
	return !name[sizeof(name) - 1] && is_dwarf(name);
}

bool build_has_dwarf(const struct pe_source *source, const struct pe_image *image)
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

#define PAGE_BYTES 4096

bool build_guid_is_known(const char *guid, char *upper)
{
	static const char digits[] = "0123456789ABCDEFabcdef";
	bool is_zero = true;
	size_t len;

	for (len = 0; guid && guid[len] && len < 33; len++) {
		const char *digit = strchr(digits, guid[len]);

		if (!digit || len == 32)
			return false;
		upper[len] = digit - digits < 16 ? *digit : digit[-6];
		is_zero &= *digit == '0';
	}
	if (len != 32 || is_zero)
		return false;
	upper[len] = '\0';
	return true;
}

bool build_is_unknown(const struct module *module)
{
	char guid[33];

	return !module->has_identity || (!module->timestamp && !module->checksum &&
						!build_guid_is_known(module->pdb_guid, guid));
}

static uint64_t in_pages(uint64_t bytes)
{
	return bytes / PAGE_BYTES + (bytes % PAGE_BYTES != 0);
}

static bool describe_difference(char *how, const char *what, const char *ours, const char *theirs)
{
	snprintf(how, DIFFERENCE_BYTES, "%s %s in the dump, %s in the file", what, ours, theirs);
	return true;
}

static bool print_numbers(
	char *how, const char *what, int digits, unsigned long long x, unsigned long long y)
{
	char ours[20], theirs[20];

	snprintf(ours, sizeof(ours), "%0*llX", digits, x);
	snprintf(theirs, sizeof(theirs), "%0*llX", digits, y);
	return describe_difference(how, what, ours, theirs);
}

/* Returns 0 if the GUIDs are equal, 1 if they differ, -1 if the dump has no GUID. */
static int guids_differ(const struct module *module, const struct pe_image *pe, char *how)
{
	char ours[33], theirs[33], our_key[48], their_key[48];

	if (!build_guid_is_known(module->pdb_guid, ours))
		return -1;
	if (!build_guid_is_known(pe->pdb_guid, theirs))
		return describe_difference(how, "GUID", ours, "none");
	if (!strcmp(ours, theirs) && module->pdb_age == pe->pdb_age)
		return 0;
	snprintf(our_key, sizeof(our_key), "%s %lX", ours, (unsigned long)module->pdb_age);
	snprintf(their_key, sizeof(their_key), "%s %lX", theirs, (unsigned long)pe->pdb_age);
	return describe_difference(how, "GUID and age", our_key, their_key);
}

/* Compares all known values, because reproducible builds may share a time stamp. */
bool build_image_differs(const struct module *module, const struct pe_image *pe, char *how)
{
	int guids;

	if (module->has_identity && module->timestamp && module->timestamp != pe->timestamp)
		return print_numbers(how, "time stamp", 8, module->timestamp, pe->timestamp);
	guids = module->has_identity ? guids_differ(module, pe, how) : -1;
	if (guids > 0)
		return true;
	if (module->size_bytes && in_pages(module->size_bytes) != in_pages(pe->size_of_image))
		return print_numbers(how, "size", 1, module->size_bytes, pe->size_of_image);
	/* Compare the checksums only if the dump has no GUID, because signing an image after the
	 * build changes its checksum. */
	if (guids < 0 && module->has_identity && module->checksum && pe->checksum &&
		module->checksum != pe->checksum)
		return print_numbers(how, "checksum", 8, module->checksum, pe->checksum);
	return false;
}

bool build_pdb_differs(const char *guid, uint32_t age, const struct pdb_identity *pdb,
	const char *by_whom, char *how)
{
	if (!strcmp(guid, pdb->guid) && age == pdb->age)
		return false;
	snprintf(how, DIFFERENCE_BYTES, "GUID and age %s %lX in the %s, %s %lX in the file", guid,
		(unsigned long)age, by_whom, pdb->guid, (unsigned long)pdb->age);
	return true;
}
