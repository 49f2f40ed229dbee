/*
 * The container that PDB files are ("MSF 7.00"): a file of blocks, and in it streams, which are lists of
 * blocks. A directory, itself such a list, has the sizes and the blocks of all streams.
 *
 * Read where it is asked for: of a file of 2 GB no more than one block is in memory. Every number of the
 * file is checked; what makes no sense is -ERR_TARGET, and err's detail says what it is.
 */
#ifndef SYMBOLIZE_PDB_MSF_H
#define SYMBOLIZE_PDB_MSF_H

#include <stdint.h>

#include "core/err.h"
#include "core/os.h"

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

#endif
