/*
 * Filters that name nothing: a module or a heap that no dump has, a pattern that nothing matches.
 * Most likely they are mistyped, and a limit of growth that looks at nothing passes always.
 */
#ifndef DIFF_UNMATCHED_H
#define DIFF_UNMATCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diff/ask/filter.h"
#include "diff/naming.h"

/* Is told of a value of an option, and what is wrong with it. 0 or -ERR_NOMEM. */
typedef int unmatched_say(void *ctx, const char *option, const char *value, const char *what);

/* --module, of the comparison's dumps or, when it was read, of its frames. */
int unmatched_modules(
	const struct filter *filter, const struct naming *naming, unmatched_say *say, void *ctx);

/* --heap; nothing is said of a comparison that was read, which does not tell. */
int unmatched_heaps(const struct comparison *comparison, const uint64_t *heaps, size_t count,
	unmatched_say *say, void *ctx);

/*
 * -i, when the rows were selected. Patterns that decided on nothing are held against all rows that
 * the other filters leave, whose names are looked for; of a pattern that cannot be held against a
 * text nothing is said, nor when there are no rows. is_part: the comparison's rows are not of all
 * blocks. 0 or -ERR_NOMEM.
 */
int unmatched_patterns(
	struct filter *filter, struct naming *naming, bool is_part, unmatched_say *say, void *ctx);

#endif
