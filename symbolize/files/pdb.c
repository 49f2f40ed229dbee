#include "symbolize/files/pdb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/pe/pe.h"

/* The first bytes of the file, after LLVM's "The MSF File Format". */
enum {
	MAGIC_BYTES = 32,
	SUPER_BLOCK_BYTES = 32,
	SUPER_BLOCK_COUNT = 40,
	SUPER_DIRECTORY_BYTES = 44,
	SUPER_MAP = 52, /* blocks that list the directory's blocks; nearly always one */
	SUPER_BYTES = 56,
	BLOCK_MIN = 512,
	BLOCK_MAX = 65536,
	NUMBER_BYTES = 4,
};
#define NO_STREAM UINT32_MAX /* instead of a size */
#define NO_BLOCK UINT32_MAX

static const char magic[MAGIC_BYTES] = "Microsoft C/C++ MSF 7.00\r\n\x1a"
				       "DS\0\0";

int msf_damaged(const struct msf *msf, struct err *err)
{
	return err_set(err, ERR_TARGET, msf->path, "the PDB is damaged");
}

static uint32_t blocks_of(const struct msf *msf, uint32_t bytes)
{
	return bytes / msf->block_bytes + (bytes % msf->block_bytes != 0);
}

static int read_file(struct msf *msf, uint64_t at, void *bytes, size_t len, struct err *err)
{
	if (os_read_at(&msf->file, at, bytes, len))
		return err_set(err, ERR_READ, msf->path, NULL);
	return 0;
}

/* A part of one block. Block 0 is the file's own. */
static int read_block(
	struct msf *msf, uint32_t number, uint32_t at, void *bytes, size_t len, struct err *err)
{
	if (!number || number >= msf->block_count)
		return msf_damaged(msf, err);
	return read_file(msf, (uint64_t)number * msf->block_bytes + at, bytes, len, err);
}

/* ---------------------------------------------------------------- directory */

/* Makes the index-th block of the directory the one in memory. */
static int load_directory(struct msf *msf, uint32_t index, struct err *err)
{
	uint32_t per_block = msf->block_bytes / NUMBER_BYTES;
	uint64_t map_at = SUPER_MAP + (uint64_t)(index / per_block) * NUMBER_BYTES;
	unsigned char number[NUMBER_BYTES] = {0};
	int rc;

	if (msf->block_index == index)
		return 0;
	msf->block_index = NO_BLOCK;
	if (map_at + NUMBER_BYTES > msf->block_bytes)
		return msf_damaged(msf, err);
	rc = read_file(msf, map_at, number, sizeof(number), err);
	if (!rc)
		rc = read_block(msf, pe_u32(number), index % per_block * NUMBER_BYTES, number,
			sizeof(number), err);
	if (!rc)
		rc = read_block(msf, pe_u32(number), 0, msf->block, msf->block_bytes, err);
	if (!rc)
		msf->block_index = index;
	return rc;
}

/* The number at an offset of the directory; at is a multiple of 4, and so is a block's size. */
static int read_number(struct msf *msf, uint32_t at, uint32_t *number, struct err *err)
{
	int rc;

	if (msf->directory_bytes < NUMBER_BYTES || at > msf->directory_bytes - NUMBER_BYTES)
		return msf_damaged(msf, err);
	rc = load_directory(msf, at / msf->block_bytes, err);
	if (!rc)
		*number = pe_u32(msf->block + at % msf->block_bytes);
	return rc;
}

int msf_find(struct msf *msf, uint32_t number, struct msf_stream *stream, struct err *err)
{
	uint64_t list_at = NUMBER_BYTES * ((uint64_t)msf->stream_count + 1);
	uint64_t file_bytes = (uint64_t)msf->block_count * msf->block_bytes;
	uint32_t bytes = 0;

	*stream = (struct msf_stream){0};
	if (number >= msf->stream_count)
		return 0;
	for (uint32_t i = 0; i <= number; i++) {
		int rc;

		list_at += (uint64_t)blocks_of(msf, bytes) * NUMBER_BYTES; /* of the one before */
		rc = read_number(msf, (i + 1) * NUMBER_BYTES, &bytes, err);
		if (rc)
			return rc;
		if (bytes == NO_STREAM)
			bytes = 0;
	}
	if (bytes > file_bytes ||
		list_at + (uint64_t)blocks_of(msf, bytes) * NUMBER_BYTES > msf->directory_bytes)
		return msf_damaged(msf, err);
	*stream = (struct msf_stream){.bytes = bytes, .list_at = (uint32_t)list_at};
	return 0;
}

/* ---------------------------------------------------------------- streams */

int msf_read(struct msf *msf, const struct msf_stream *stream, uint64_t at, void *bytes, size_t len,
	struct err *err)
{
	unsigned char *to = bytes;

	if (at > stream->bytes || len > stream->bytes - at)
		return msf_damaged(msf, err);
	while (len) {
		uint32_t from = (uint32_t)(at % msf->block_bytes), number = 0;
		uint32_t index = (uint32_t)(at / msf->block_bytes);
		size_t part = msf->block_bytes - from;
		int rc = read_number(msf, stream->list_at + index * NUMBER_BYTES, &number, err);

		part = part < len ? part : len;
		if (!rc)
			rc = read_block(msf, number, from, to, part, err);
		if (rc)
			return rc;
		to += part;
		at += part;
		len -= part;
	}
	return 0;
}

/* ---------------------------------------------------------------- opening */

static int take_super(struct msf *msf, const unsigned char *super, uint64_t size, struct err *err)
{
	uint32_t block_bytes = pe_u32(super + SUPER_BLOCK_BYTES);

	if (memcmp(super, magic, MAGIC_BYTES) != 0)
		return err_set(err, ERR_TARGET, msf->path, "it is not a PDB file");
	if (block_bytes < BLOCK_MIN || block_bytes > BLOCK_MAX || (block_bytes & (block_bytes - 1)))
		return msf_damaged(msf, err);
	msf->block_bytes = block_bytes;
	msf->block_count = pe_u32(super + SUPER_BLOCK_COUNT);
	msf->directory_bytes = pe_u32(super + SUPER_DIRECTORY_BYTES);
	if ((uint64_t)msf->block_count * block_bytes > size)
		return err_set(err, ERR_TARGET, msf->path, "the PDB is cut short");
	if (msf->directory_bytes > size)
		return msf_damaged(msf, err);
	return 0;
}

static int read_super(struct msf *msf, struct err *err)
{
	unsigned char super[SUPER_BYTES] = {0};
	uint64_t size = os_size(&msf->file);
	int rc;

	if (size < MAGIC_BYTES)
		return err_set(err, ERR_TARGET, msf->path, "it is not a PDB file");
	rc = read_file(msf, 0, super, size < sizeof(super) ? (size_t)size : sizeof(super), err);
	if (!rc && size < sizeof(super) && !memcmp(super, magic, MAGIC_BYTES))
		return err_set(err, ERR_TARGET, msf->path, "the PDB is cut short");
	return rc ? rc : take_super(msf, super, size, err);
}

static int read_stream_count(struct msf *msf, struct err *err)
{
	uint32_t count = 0;
	int rc = read_number(msf, 0, &count, err);

	if (!rc && count > msf->directory_bytes / NUMBER_BYTES - 1)
		return msf_damaged(msf, err);
	msf->stream_count = count;
	return rc;
}

int msf_open(struct msf *msf, const char *path, struct err *err)
{
	int rc;

	*msf = (struct msf){.path = path, .block_index = NO_BLOCK};
	rc = os_open(&msf->file, path, err);
	if (rc)
		return rc;
	rc = read_super(msf, err);
	if (!rc) {
		msf->block = calloc(1, msf->block_bytes);
		rc = msf->block ? 0 : -ERR_NOMEM;
		if (rc)
			err_set(err, ERR_NOMEM, NULL, NULL);
	}
	if (!rc)
		rc = read_stream_count(msf, err);
	if (rc)
		msf_close(msf);
	return rc;
}

void msf_close(struct msf *msf)
{
	free(msf->block);
	msf->block = NULL;
	os_close(&msf->file);
}

/* After LLVM's "The PDB Info Stream" and "The PDB DBI Stream". */
enum {
	STREAM_INFO = 1,
	STREAM_DBI = 3,
	INFO_VERSION = 0,
	INFO_GUID = 12,
	INFO_BYTES = 28,
	INFO_VERSION_70 = 20000404, /* the first with a GUID */
	DBI_SIGNATURE = 0,
	DBI_AGE = 8,
	DBI_SYMBOLS = 20,
	DBI_SIZES = 24, /* of the parts behind the header, but for the number among them */
	DBI_PARTS_BYTES = 28, /* of the second part */
	DBI_SIZES_END = 44,
	DBI_EXTRA_BYTES = 48,
	DBI_EC_BYTES = 52, /* of the part before the extra one */
	DBI_MACHINE = 58,
	DBI_BYTES = 64,
};
#define DBI_SIGNATURE_NEW UINT32_MAX

static void take_guid(const unsigned char *guid, char *text, size_t size)
{
	int len = snprintf(text, size, "%08lX%04X%04X", (unsigned long)pe_u32(guid),
		pe_u16(guid + 4), pe_u16(guid + 6));

	for (size_t i = 8; i < 16; i++)
		len += snprintf(text + len, size - (size_t)len, "%02X", guid[i]);
}

static int read_info(struct msf *msf, struct pdb_identity *identity, struct err *err)
{
	unsigned char info[INFO_BYTES] = {0};
	struct msf_stream stream;
	int rc = msf_find(msf, STREAM_INFO, &stream, err);

	if (!rc)
		rc = msf_read(msf, &stream, 0, info, sizeof(info), err);
	if (!rc && pe_u32(info + INFO_VERSION) < INFO_VERSION_70)
		return err_set(err, ERR_TARGET, msf->path, "the PDB is of a kind without a GUID");
	if (!rc)
		take_guid(info + INFO_GUID, identity->guid, sizeof(identity->guid));
	return rc;
}

int pdb_read_dbi(struct msf *msf, struct pdb_dbi *dbi, struct err *err)
{
	unsigned char header[DBI_BYTES] = {0};
	struct pdb_dbi fresh = {.extra_at = DBI_BYTES};
	int rc = msf_find(msf, STREAM_DBI, &fresh.stream, err);

	if (!rc && !fresh.stream.bytes)
		return err_set(err, ERR_TARGET, msf->path, "the PDB belongs to no image");
	if (!rc)
		rc = msf_read(msf, &fresh.stream, 0, header, sizeof(header), err);
	if (rc)
		return rc;
	if (pe_u32(header + DBI_SIGNATURE) != DBI_SIGNATURE_NEW)
		return err_set(err, ERR_TARGET, msf->path, "the PDB is of an old kind");
	fresh.age = pe_u32(header + DBI_AGE);
	fresh.machine = pe_u16(header + DBI_MACHINE);
	fresh.symbols = pe_u16(header + DBI_SYMBOLS);
	for (int at = DBI_SIZES; at < DBI_SIZES_END; at += 4)
		fresh.extra_at += pe_u32(header + at);
	fresh.extra_at += pe_u32(header + DBI_EC_BYTES);
	fresh.objects_at = DBI_BYTES;
	fresh.objects_bytes = pe_u32(header + DBI_SIZES);
	fresh.parts_at = DBI_BYTES + (uint64_t)pe_u32(header + DBI_SIZES);
	fresh.parts_bytes = pe_u32(header + DBI_PARTS_BYTES);
	fresh.extra_bytes = pe_u32(header + DBI_EXTRA_BYTES);
	*dbi = fresh;
	return 0;
}

int pdb_read_identity(const char *path, struct pdb_identity *identity, struct err *err)
{
	struct pdb_identity fresh = {0};
	struct pdb_dbi dbi = {0};
	struct msf msf;
	int rc = msf_open(&msf, path, err);

	if (rc)
		return rc;
	rc = read_info(&msf, &fresh, err);
	if (!rc)
		rc = pdb_read_dbi(&msf, &dbi, err);
	if (!rc) {
		fresh.age = dbi.age;
		*identity = fresh;
	}
	msf_close(&msf);
	return rc;
}
