/*
 * The file in which a test says which call is to fail, once, and finds how often each function was called. The first
 * process that is given it by the environment (HSNAP_FAIL, a path) counts there; those that it starts do not.
 */
#ifndef TESTS_FAIL_H
#define TESTS_FAIL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define FAIL_FUNCTIONS 160
#define FAIL_FRAMES 16

struct fail_file {
	atomic_uint owner; /* a process; 0: none yet */
	uint32_t number; /* of the call that fails, from 1 on; 0: none */
	atomic_uint has_failed;
	uint32_t frame_count;
	char function[48]; /* whose call */
	uint64_t frames[FAIL_FRAMES]; /* who called it, by offsets in the program */
	struct {
		char name[44];
		atomic_uint calls;
	} functions[FAIL_FUNCTIONS];
};

/* Whether this process counts. */
static inline bool fail_own(struct fail_file *file, uint32_t process)
{
	unsigned none = 0;

	return atomic_compare_exchange_strong(&file->owner, &none, process);
}

/* Counts a call of a function: whether it is the one that fails. */
static inline bool fail_now(struct fail_file *file, unsigned index)
{
	return atomic_fetch_add(&file->functions[index].calls, 1) + 1 == file->number &&
	       !strcmp(file->functions[index].name, file->function) &&
	       !atomic_exchange(&file->has_failed, 1);
}

#endif
