/*
 * Staged files on Linux. The open files of a process can be opened as /proc/PID/fd/NUMBER, and
 * llvm-symbolizer opens them by these names. A stub is a file in memory. It names the PDB by its
 * file descriptor number, as if the PDB were in the same folder. No file can remain, because none
 * is on a disk.
 *
 * llvm-symbolizer caches files by name, so all files stay open until the end: two per PDB.
 */
#define _GNU_SOURCE /* for memfd_create() */
#include "symbolize/backend/llvm.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

struct staged {
	int image, pdb; /* -1: not open */
};

struct staging {
	struct staged *files; /* indexed by number of the subject */
	size_t count, cap;
};

struct staging *staging_new(void)
{
	return xcalloc(1, sizeof(struct staging));
}

void staging_free(struct staging *staging)
{
	for (size_t i = 0; i < staging->count; i++) {
		if (staging->files[i].image >= 0)
			close(staging->files[i].image);
		if (staging->files[i].pdb >= 0)
			close(staging->files[i].pdb);
	}
	free(staging->files);
	free(staging);
}

/* Creates a stub for the PDB as a file in memory. Returns its file descriptor, or -1 on failure. */
static int open_stub(const struct module_files *files, int pdb)
{
	int fd = memfd_create("stub", MFD_CLOEXEC);
	struct buf stub;
	char number[16];

	buf_init(&stub);
	snprintf(number, sizeof(number), "%d", pdb);
	staging_stub(&stub, files, number);
	if (fd >= 0 && write(fd, stub.data, stub.len) != (ssize_t)stub.len) {
		close(fd);
		fd = -1;
	}
	buf_release(&stub);
	return fd;
}

bool staging_file(struct staging *staging, uint32_t number, const struct module_files *files,
	struct buf *name)
{
	struct staged *staged;
	struct rlimit limit;

	/* Raise the limit of open files, because the initial limit is often far below the maximum
	 * allowed. */
	if (!staging->count && !getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	while (staging->count <= number) {
		array_grow((void **)&staging->files, &staging->cap, staging->count,
			sizeof(*staging->files));
		staging->files[staging->count++] = (struct staged){-1, -1};
	}
	staged = &staging->files[number];
	if (files->pdb && staged->pdb < 0)
		staged->pdb = open(files->pdb, O_RDONLY | O_CLOEXEC);
	if (staged->image < 0 && !files->pdb)
		staged->image = open(files->image, O_RDONLY | O_CLOEXEC);
	else if (staged->image < 0 && staged->pdb >= 0)
		staged->image = open_stub(files, staged->pdb);
	buf_printf(name, "/proc/%ld/fd/%d", (long)getpid(), staged->image);
	return staged->image >= 0;
}
