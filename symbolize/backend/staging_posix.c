#define _GNU_SOURCE /* memfd_create */
#include "symbolize/backend/llvm.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/*
 * Linux shows the open files of a process as /proc/PID/fd/NUMBER, and llvm-symbolizer opens them by
 * those names: a stub is a file in memory that never had another one, and the PDB lies "beside" it
 * under its number. Nothing can stay behind, for there is nothing on any disk.
 *
 * llvm-symbolizer remembers files by name, so none is closed before the end: two for each PDB.
 */

struct staging_place {
	int image, pdb; /* -1: not open */
};

struct staging {
	struct staging_place *places; /* by number of the subject */
	size_t count, cap;
	bool is_limit_raised;
};

struct staging *staging_new(void)
{
	return calloc(1, sizeof(struct staging));
}

void staging_free(struct staging *staging)
{
	if (!staging)
		return;
	for (size_t i = 0; i < staging->count; i++) {
		if (staging->places[i].image >= 0)
			close(staging->places[i].image);
		if (staging->places[i].pdb >= 0)
			close(staging->places[i].pdb);
	}
	free(staging->places);
	free(staging);
}

/* Often a process may have many more open files than it may when it starts. */
static void raise_limit(struct staging *staging)
{
	struct rlimit limit;

	if (staging->is_limit_raised || getrlimit(RLIMIT_NOFILE, &limit))
		return;
	staging->is_limit_raised = true;
	limit.rlim_cur = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* NULL: out of memory. */
static struct staging_place *place_of(struct staging *staging, uint32_t number)
{
	raise_limit(staging);
	while (staging->count <= number) {
		if (array_grow((void **)&staging->places, &staging->cap, staging->count,
			    sizeof(*staging->places)))
			return NULL;
		staging->places[staging->count++] = (struct staging_place){-1, -1};
	}
	return &staging->places[number];
}

static int say(const struct staging_place *place, struct buf *name)
{
	buf_clear(name);
	return buf_printf(name, "/proc/%ld/fd/%d", (long)getpid(), place->image);
}

int staging_file(struct staging *staging, uint32_t number, const char *path, struct buf *name)
{
	struct staging_place *place = place_of(staging, number);

	if (!place)
		return -ERR_NOMEM;
	if (place->image < 0)
		place->image = open(path, O_RDONLY | O_CLOEXEC);
	return place->image < 0 ? -ERR_CREATE : say(place, name);
}

/* The stub as a file in memory; -1: it cannot be. */
static int open_stub(const struct buf *stub)
{
	int fd = memfd_create("stub", MFD_CLOEXEC);

	if (fd < 0 || write(fd, stub->data, stub->len) == (ssize_t)stub->len)
		return fd;
	close(fd);
	return -1;
}

static int open_pdb(struct staging_place *place, const struct module_files *files)
{
	struct buf stub;
	char number[16];
	int rc;

	buf_init(&stub);
	if (place->pdb < 0)
		place->pdb = open(files->pdb, O_RDONLY | O_CLOEXEC);
	snprintf(number, sizeof(number), "%d", place->pdb);
	rc = place->pdb < 0 ? -ERR_CREATE : staging_stub(&stub, files, number);
	if (!rc)
		place->image = open_stub(&stub);
	buf_release(&stub);
	return rc || place->image >= 0 ? rc : -ERR_CREATE;
}

int staging_pdb(struct staging *staging, uint32_t number, const struct module_files *files,
	struct buf *name)
{
	struct staging_place *place = place_of(staging, number);
	int rc = place ? 0 : -ERR_NOMEM;

	if (!rc && place->image < 0)
		rc = open_pdb(place, files);
	return rc ? rc : say(place, name);
}
