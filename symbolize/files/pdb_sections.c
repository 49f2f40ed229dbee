#include "symbolize/files/pdb.h"

#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "symbolize/files/pdb_dbi.h"

/* Numbers of the further streams that the DBI stream lists, 2 bytes each, and sections as images have
 * them. After LLVM's "The PDB DBI Stream". */
enum {
	EXTRA_OMAP_TO = 3,
	EXTRA_OMAP_FROM = 4,
	EXTRA_SECTIONS = 5,
	EXTRA_COUNT = 6, /* that are looked at */
	EXTRA_NONE = 0xffff,
	SECTION_BYTES = 40,
};

/* The parts: a number that tells which kind of entry, then those. After LLVM's "The PDB DBI Stream",
 * section contributions. */
enum {
	PARTS_VERSION_BYTES = 4,
	PART_BYTES = 28,
	PART_2_BYTES = 32,
	PART_SECTION = 0,
	PART_OFFSET = 4,
	PART_SIZE = 8,
	PART_FLAGS = 12, /* those of the section in the object file, as in PE images */
	PART_IS_COMDAT = 0x1000,
	PARTS_AT_ONCE = 1000,
	PARTS_MAX = 1 << 22,
};
#define PARTS_1 0xf12eba2du
#define PARTS_2 0xf13151e4u

static int take_sections(struct msf *msf, uint16_t number, struct pe_image *image, struct err *err)
{
	unsigned char bytes[PE_SECTIONS_MAX * SECTION_BYTES];
	struct msf_stream stream;
	int rc = msf_find(msf, number, &stream, err);

	if (!rc && (stream.bytes > sizeof(bytes) || stream.bytes % SECTION_BYTES))
		return msf_damaged(msf, err);
	if (!rc)
		rc = msf_read(msf, &stream, 0, bytes, stream.bytes, err);
	for (uint32_t at = 0; !rc && at < stream.bytes; at += SECTION_BYTES) {
		struct pe_section *section = &image->sections[image->section_count++];

		memcpy(section->name, bytes + at, 8);
		section->size_bytes = pe_u32(bytes + at + 8);
		section->rva = pe_u32(bytes + at + 12);
		if (section->size_bytes > UINT32_MAX - section->rva)
			return msf_damaged(msf, err);
	}
	return rc;
}

/* The streams that the DBI stream lists at its end; those it does not list are not there. */
static int read_extra(
	struct msf *msf, const struct pdb_dbi *dbi, uint16_t numbers[EXTRA_COUNT], struct err *err)
{
	unsigned char bytes[EXTRA_COUNT * 2];
	size_t len = dbi->extra_bytes < sizeof(bytes) ? dbi->extra_bytes : sizeof(bytes);
	int rc;

	memset(bytes, 0xff, sizeof(bytes));
	rc = msf_read(msf, &dbi->stream, dbi->extra_at, bytes, len, err);
	for (size_t i = 0; i < EXTRA_COUNT; i++)
		numbers[i] = pe_u16(bytes + i * 2);
	return rc;
}

int pdb_read_image(
	struct msf *msf, const struct pdb_dbi *dbi, struct pe_image *image, struct err *err)
{
	uint16_t numbers[EXTRA_COUNT];
	int rc = read_extra(msf, dbi, numbers, err);

	if (rc)
		return rc;
	if (numbers[EXTRA_OMAP_TO] != EXTRA_NONE || numbers[EXTRA_OMAP_FROM] != EXTRA_NONE)
		return err_set(err, ERR_TARGET, msf->path,
			"the image was rearranged after it was linked (OMAP)");
	if (numbers[EXTRA_SECTIONS] == EXTRA_NONE)
		return err_set(
			err, ERR_TARGET, msf->path, "the PDB does not say where the sections are");
	image->machine = dbi->machine;
	image->bits = dbi->machine == PE_MACHINE_I386 ? 32 : 64;
	return take_sections(msf, numbers[EXTRA_SECTIONS], image, err);
}

int pdb_read_sections(const char *path, struct pe_image *image, struct err *err)
{
	struct pe_image *fresh = calloc(1, sizeof(*fresh));
	struct pdb_dbi dbi = {0};
	struct msf msf;
	int rc;

	if (!fresh)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	rc = msf_open(&msf, path, err);
	if (!rc) {
		rc = pdb_read_dbi(&msf, &dbi, err);
		if (!rc)
			rc = pdb_read_image(&msf, &dbi, fresh, err);
		msf_close(&msf);
	}
	if (!rc)
		*image = *fresh;
	free(fresh);
	return rc;
}

/* ---------------------------------------------------------------- parts */

struct part_list {
	struct pdb_parts parts;
	size_t cap;
};

/* One that makes no sense is as none, and so is one that may hold many functions. */
static int take_part(
	const struct pe_image *image, const unsigned char *entry, struct part_list *list)
{
	struct pdb_parts *parts = &list->parts;
	uint32_t number = pe_u16(entry + PART_SECTION), offset = pe_u32(entry + PART_OFFSET);
	uint32_t size = pe_u32(entry + PART_SIZE);
	const struct pe_section *section;

	if (!number || number > image->section_count || !size ||
		!(pe_u32(entry + PART_FLAGS) & PART_IS_COMDAT))
		return 0;
	section = &image->sections[number - 1];
	if (offset >= section->size_bytes || size > section->size_bytes - offset)
		return 0;
	if (array_grow((void **)&parts->list, &list->cap, parts->count, sizeof(*parts->list)))
		return -ERR_NOMEM;
	parts->list[parts->count++] = (struct pe_range){section->rva + offset, size};
	return 0;
}

static int take_parts(struct msf *msf, const struct pdb_dbi *dbi, const struct pe_image *image,
	uint32_t entry_bytes, struct part_list *list, struct err *err)
{
	unsigned char bytes[PARTS_AT_ONCE * PART_2_BYTES];
	uint64_t at = dbi->parts_at + PARTS_VERSION_BYTES;
	uint32_t left = (dbi->parts_bytes - PARTS_VERSION_BYTES) / entry_bytes;
	int rc = 0;

	if (left > PARTS_MAX)
		return msf_damaged(msf, err);
	while (!rc && left) {
		uint32_t count = left < PARTS_AT_ONCE ? left : PARTS_AT_ONCE;

		rc = msf_read(msf, &dbi->stream, at, bytes, (size_t)count * entry_bytes, err);
		for (uint32_t i = 0; !rc && i < count; i++) {
			rc = take_part(image, bytes + (size_t)i * entry_bytes, list);
			if (rc)
				err_set(err, ERR_NOMEM, NULL, NULL);
		}
		at += (uint64_t)count * entry_bytes;
		left -= count;
	}
	return rc;
}

static int read_parts(
	struct msf *msf, struct part_list *list, struct pe_image *image, struct err *err)
{
	unsigned char version[PARTS_VERSION_BYTES] = {0};
	struct pdb_dbi dbi = {0};
	int rc = pdb_read_dbi(msf, &dbi, err);

	if (!rc)
		rc = pdb_read_image(msf, &dbi, image, err);
	if (rc || dbi.parts_bytes < sizeof(version))
		return rc;
	rc = msf_read(msf, &dbi.stream, dbi.parts_at, version, sizeof(version), err);
	if (rc)
		return rc;
	if (pe_u32(version) == PARTS_1)
		return take_parts(msf, &dbi, image, PART_BYTES, list, err);
	if (pe_u32(version) == PARTS_2)
		return take_parts(msf, &dbi, image, PART_2_BYTES, list, err);
	return 0; /* of another kind */
}

static int parts_by_rva(const void *a, const void *b)
{
	const struct pe_range *x = a, *y = b;

	return x->rva < y->rva ? -1 : x->rva > y->rva;
}

int pdb_read_parts(const char *path, struct pdb_parts *parts, struct err *err)
{
	struct pe_image *image = calloc(1, sizeof(*image));
	struct part_list list = {0};
	struct msf msf;
	int rc;

	if (!image)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	rc = msf_open(&msf, path, err);
	if (!rc) {
		rc = read_parts(&msf, &list, image, err);
		msf_close(&msf);
	}
	free(image);
	if (rc) {
		free(list.parts.list);
		return rc;
	}
	if (list.parts.count)
		qsort(list.parts.list, list.parts.count, sizeof(*list.parts.list), parts_by_rva);
	*parts = list.parts;
	return 0;
}
