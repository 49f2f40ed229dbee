/* What a PDB says of itself and of the image it belongs to. */
#ifndef SYMBOLIZE_PDB_DBI_H
#define SYMBOLIZE_PDB_DBI_H

#include "symbolize/files/pdb.h"
#include "symbolize/files/pdb_msf.h"

struct pdb_dbi {
	uint32_t age;
	uint16_t machine; /* as in images */
	uint16_t symbols; /* number of the stream of symbol records */
	uint64_t extra_at; /* in the stream: a list of further streams' numbers */
	uint32_t extra_bytes;
	uint64_t objects_at; /* in the stream: the object files */
	uint32_t objects_bytes;
	uint64_t parts_at; /* in the stream: where what object files brought went */
	uint32_t parts_bytes;
	struct msf_stream stream;
};

/* Returns 0, -ERR_READ or -ERR_TARGET. */
int pdb_read_dbi(struct msf *msf, struct pdb_dbi *dbi, struct err *err);

/* Machine, bits and sections of a zeroed image. Returns 0, -ERR_READ or -ERR_TARGET. */
int pdb_read_image(
	struct msf *msf, const struct pdb_dbi *dbi, struct pe_image *image, struct err *err);

#endif
