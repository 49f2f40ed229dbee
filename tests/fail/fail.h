/* Shared file in which a test selects the call that must fail, and from which it reads how often
 * each function was called. The environment variable HSNAP_FAIL contains the file's path. Only the
 * first process that opens the file counts calls; its children do not. */
#ifndef TESTS_FAIL_H
#define TESTS_FAIL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define FAIL_FUNCTIONS 160
#define FAIL_FRAMES 16

struct fail_file {
	atomic_uint owner; /* process id; 0: no process yet */
	uint32_t number; /* number of the call that fails, from 1; 0: no call fails */
	atomic_uint has_failed;
	uint32_t frame_count;
	char function[48];
	uint64_t frames[FAIL_FRAMES]; /* callers of the failed call, as offsets in the program */
	struct {
		char name[44];
		atomic_uint calls;
	} functions[FAIL_FUNCTIONS];
};

/* Returns true if this process counts calls. */
static inline bool fail_own(struct fail_file *file, uint32_t process)
{
	unsigned none = 0;

	return atomic_compare_exchange_strong(&file->owner, &none, process);
}

/* Counts a call of a function. Returns true if this call fails. */
static inline bool fail_now(struct fail_file *file, unsigned index)
{
	return atomic_fetch_add(&file->functions[index].calls, 1) + 1 == file->number &&
	       !strcmp(file->functions[index].name, file->function) &&
	       !atomic_exchange(&file->has_failed, 1);
}

#endif
