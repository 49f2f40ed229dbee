/* PDB files, as far as they are read here. */
#ifndef SYMBOLIZE_FILES_PDB_H
#define SYMBOLIZE_FILES_PDB_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/pe/pe.h"

/*
 * PDB files ("MSF 7.00"), as far as they are read here: whom they belong to, and their functions.
 *
 * Layout after LLVM's published description of the format ("The PDB File Format": MSF, PDB info
 * stream, DBI stream, symbol records). Nothing in a file is trusted: every block, offset, size and
 * count is checked, memory is bounded by the size of the file. Lines and types are for the backends.
 */

struct pdb_identity {
	char guid[33]; /* 32 upper-case digits, as pe_image.pdb_guid */
	uint32_t age; /* that of the DBI stream, which is the one that images record */
};

/* Returns 0; -ERR_OPEN, -ERR_READ with err filled; -ERR_TARGET: it is no PDB or it is damaged (cut),
 * err's detail says which; -ERR_NOMEM. */
int pdb_read_identity(const char *path, struct pdb_identity *identity, struct err *err);

/* The functions among its public symbols, by rva then name; their ordinals are 0. Names are as the
 * compiler made them, those of 32-bit images without the '_' before what the source says. Errors as
 * above, also when the image was rearranged after it was linked (OMAP): the places of its symbols are
 * those of before. The caller releases *functions after success. */
int pdb_read_functions(const char *path, struct pe_exports *functions, struct err *err);

struct pdb_parts {
	struct pe_range *list; /* by rva; the caller frees it */
	size_t count;
};

/* The functions of its object files, static ones and those that a compiler made too, as debuggers have
 * them ("private symbols"), and how far each reaches. Names are as in the source, without parameters. None in a
 * PDB that was stripped. Errors as above. The caller releases both after success. */
int pdb_read_private_functions(
	const char *path, struct pe_exports *functions, struct pdb_parts *ranges, struct err *err);

/* What it knows of the image it belongs to: machine, bits and sections, without what they are for; all
 * else is 0. Errors as above. */
int pdb_read_sections(const char *path, struct pe_image *image, struct err *err);

/* The pieces that the linker put the image together from, as far as each was compiled by itself (COMDAT):
 * of one function each. None when it does not say. Errors as above. */
int pdb_read_parts(const char *path, struct pdb_parts *parts, struct err *err);

/*
 * The container that PDB files are ("MSF 7.00"): a file of blocks, and in it streams, which are lists of
 * blocks. A directory, itself such a list, has the sizes and the blocks of all streams.
 *
 * Read where it is asked for: of a file of 2 GB no more than one block is in memory. Every number of the
 * file is checked; what makes no sense is -ERR_TARGET, and err's detail says what it is.
 */

struct msf {
	struct os_file file;
	const char *path; /* borrowed, for errors */
	uint32_t block_bytes, block_count;
	uint32_t directory_bytes, stream_count;
	unsigned char *block; /* the block of the directory that was read last */
	uint32_t block_index; /* which one of the directory's that is */
};

struct msf_stream {
	uint32_t bytes; /* 0 also when there is no such stream */
	uint32_t list_at; /* where its blocks are listed in the directory */
};

/* Returns 0, -ERR_OPEN, -ERR_READ, -ERR_TARGET or -ERR_NOMEM. */
int msf_open(struct msf *msf, const char *path, struct err *err);
void msf_close(struct msf *msf);

/* Finds a stream by number: 0, -ERR_READ or -ERR_TARGET. One that is not there has no bytes. */
int msf_find(struct msf *msf, uint32_t number, struct msf_stream *stream, struct err *err);

/* Reads exactly len bytes of a stream at an offset: 0, -ERR_READ or -ERR_TARGET (also when it has fewer). */
int msf_read(struct msf *msf, const struct msf_stream *stream, uint64_t at, void *bytes, size_t len,
	struct err *err);

/* -ERR_TARGET, and says that the file contradicts itself. */
int msf_damaged(const struct msf *msf, struct err *err);

/* What a PDB says of itself and of the image it belongs to. */

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

#endif
