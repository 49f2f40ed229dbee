/* Listings of structures from public symbols, to compare with the layout tables. A listing has the
 * offsets of fields in the structures of one build. The files are test data (tests/unit/data.h). A
 * listing has one of two forms: "struct NAME size=0x.." followed by "+0xOFFSET field type", or "==
 * ntdll!NAME" followed by "+0xOFFSET field : type". Offsets are hexadecimal. */
#ifndef TESTS_UNIT_LAYOUT_LISTING_H
#define TESTS_UNIT_LAYOUT_LISTING_H

#include "tests/unit/data.h"

#define LISTING_NONE (-1L)

/* Opens one build's listing. name has no ".txt". */
static inline FILE *listing_open(const char *name)
{
	char file[100];

	snprintf(file, sizeof(file), "layouts/%s.txt", name);
	return fopen(data_file(file), "r");
}

static inline void listings_or_skip(void)
{
	(void)data_file("layouts/vol_win7_sp1_x64.txt");
}

/* Returns true if the line begins a structure. Sets *is_it to true if that structure is `wanted`,
 * and *size to the listed size or LISTING_NONE. */
static inline bool listing_is_head(const char *line, const char *wanted, bool *is_it, long *size)
{
	char name[128], bytes[20];

	*size = LISTING_NONE;
	if (sscanf(line, "struct %127s size=%19s", name, bytes) == 2)
		*size = strtol(bytes, NULL, 16);
	else if (sscanf(line, "== ntdll!%127s", name) != 1)
		return false;
	*is_it = strcmp(name, wanted) == 0;
	return true;
}

/* Returns a field's offset, or the structure's size if field is NULL, or LISTING_NONE if it is not
 * listed. */
static inline long listing_find(const char *listing, const char *structure, const char *field)
{
	FILE *file = listing_open(listing);
	char line[512], name[128], at[20];
	long found = LISTING_NONE, size;
	bool is_it = false;

	if (!file)
		fail_msg("no listing %s", listing);
	while (found == LISTING_NONE && fgets(line, sizeof(line), file)) {
		if (listing_is_head(line, structure, &is_it, &size))
			found = is_it && !field ? size : LISTING_NONE;
		else if (is_it && field && sscanf(line, " +%19s %127s", at, name) == 2 &&
			 strcmp(name, field) == 0)
			found = strtol(at, NULL, 16);
	}
	(void)fclose(file);
	return found;
}

/* Fails the test unless the listing has the field at this offset. */
static inline void assert_listed(
	const char *listing, const char *structure, const char *field, long offset)
{
	long found = listing_find(listing, structure, field);

	if (found != offset)
		fail_msg("%s: %s.%s is at %ld (%#lx) there, at %ld (%#lx) in our table", listing,
			structure, field ? field : "(size)", found, (unsigned long)found, offset,
			(unsigned long)offset);
}

#endif
