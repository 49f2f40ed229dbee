/*
 * Which modules of several dumps are the same, so that their offsets can be compared.
 *
 * Two modules of different dumps are the same when their files have the same name (without its
 * folder, letters of either case alike) and, where both dumps tell, were made by the same build.
 * Two modules of one dump are the same only when they are the same file.
 */
#ifndef DIFF_MODULES_H
#define DIFF_MODULES_H

#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "diff/sum.h"

/*
 * For every dump an array, in the order of its modules, of the module's rank among the modules of
 * all dumps: the same modules have the same rank, ranks follow the names. Everything is in arena.
 * NULL: out of memory.
 */
uint32_t **modules_rank(const struct sums *dumps, size_t count, struct arena *arena);

#endif
