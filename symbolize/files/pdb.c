#include "symbolize/files/pdb.h"

#include <stdio.h>

#include "symbolize/files/pdb_dbi.h"

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
