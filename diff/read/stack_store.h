/*
 * The stacks of many dumps, each kept once, and their modules: dumps of one process have most of theirs in
 * common.
 *
 * What several dumps hold takes memory for what is different in them: for each stack its frames and
 * its id, however many dumps have it. Beside that a dump has 4 bytes for each of its stacks, some ten
 * for each of its cells (diff/read/cells.h), and the names that it carries; another 4 bytes for each stack
 * where an id of the dump stands for several. Where a dump has frames that are texts, its stacks take
 * another 40 bytes each, and these frames stay with it.
 */
#ifndef DIFF_STACK_STORE_H
#define DIFF_STACK_STORE_H

#include "diff/read/sum.h"

struct stack_store;

struct stack_store *stack_store_new(void); /* NULL: out of memory */
void stack_store_free(struct stack_store *store); /* NULL is nothing */

/* Has the store hold the stacks of sums, which was just read and must not outlive it, and gives back what
 * only reading needed. From any thread. 0 or -ERR_NOMEM, then sums can only be released. */
int stack_store_take(struct stack_store *store, struct sums *sums);

/* A text that lives as long as the store, the same one for equal texts; NULL: out of memory. From any
 * thread. */
const char *stack_store_text(struct stack_store *store, const char *text);

#endif
