/*
 * One dump as hdiff sees it: what each of its stacks adds up to.
 *
 * Sums are made while the file streams by; blocks are never kept. struct sums owns all it points
 * to and sums_release() frees it at once.
 */
#ifndef DIFF_SUM_H
#define DIFF_SUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/err.h"
#include "core/model.h"
#include "core/stackset.h"
#include "symbolize/symbolize.h"

#define WARNINGS_MAX 20 /* that are kept */

/* Sums of stacks, by index. */
struct census_list {
	struct census *items;
	size_t count, cap;
};

struct sums {
	struct arena arena;
	const char *path; /* as it was given */
	struct stackset stacks;
	struct census_list by_stack; /* as many as stacks.count, same order */
	/* Entries that name an id and give no stack, where the id has several: by the first stack
	 * under that id. There may be fewer than stacks.count. */
	struct census_list bare;
	struct census stackless; /* blocks no stack is known for; they are in no stack's sums */
	struct census total; /* of all blocks; requested + overhead fit into an int64_t */
	struct module *modules; /* sorted by base */
	size_t module_count;
	struct symbol_names *names; /* that the dump carries */
	uint32_t pid; /* 0 when not recorded, as the next three */
	int64_t time_ms, start_ms;
	const char *image;
	const char
		*warnings[WARNINGS_MAX]; /* the first ones: what the dump lacks, a sentence each */
	size_t warning_count; /* of all */
	bool is_cut; /* the end of the file is missing */
};

void sums_init(struct sums *sums);
void sums_release(struct sums *sums);

/*
 * Reads the dump at path ("-": standard input) into sums, which was just initialised; the caller
 * releases it in any case. Returns 0 or an error of dump_scan_file(); -ERR_BAD_LINE also when the
 * blocks add up to more than any address space holds. After -ERR_CUT sums holds what is there and
 * can be used.
 */
int sums_read(struct sums *sums, const char *path, struct err *err);

#endif
