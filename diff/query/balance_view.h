/* The balance of a process (where its memory is, and how many threads and handles it has) in each
 * dump of a comparison, and how the balance changed. */
#ifndef DIFF_QUERY_BALANCE_VIEW_H
#define DIFF_QUERY_BALANCE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"
#include "core/dump/balance.h"
#include "diff/match/match.h"

#define BALANCE_UNKNOWN UINT64_MAX

enum balance_role {
	BALANCE_WHOLE, /* all private memory: the sum of the parts */
	BALANCE_PART,
	BALANCE_COUNTER, /* the system's counters in bytes */
	BALANCE_SHARED, /* memory that is not private */
	BALANCE_ADDRESSES, /* reserved address space */
	BALANCE_OBJECTS, /* number of threads, handles, ... */
	BALANCE_TYPE, /* number of handles of one type */
};

struct balance_row {
	enum balance_role role;
	/* The row's figure. In the row BALANCE_WHOLE: BALANCE_FIGURES. In a row BALANCE_TYPE:
	 * BALANCE_HANDLES. */
	enum balance_figure figure;
	const char *key; /* "thread-stacks", "handles:Event" */
	const char *words; /* "thread stacks", "Event" */
	bool is_count; /* a number of objects; otherwise bytes */
	uint64_t *values; /* indexed by dump; BALANCE_UNKNOWN where not recorded */
	/* True if the first and the last value are known. In a comparison of several processes,
	 * they must be known for each process. */
	bool has_change;
	uint64_t first, last; /* sums over the processes; valid with `has_change` */
	/* For a part that grew: bytes of its growth that no row of the comparison contains. */
	uint64_t missing_bytes;
	/* True in a trend if all values are known. In `trend`, the fields for bytes describe the
	 * values, even if the values are numbers of objects. */
	bool has_trend;
	struct trend trend;
};

struct balance_view {
	struct balance_row *rows; /* in the order of the figures; types of handles are last */
	size_t count;
	bool has_types; /* the first and the last dump list handles by type */
	/* Growth of private memory, and the part of this growth that rows of the comparison
	 * contain. */
	uint64_t grown_bytes, explained_bytes;
	/* true if the tracer recorded memory from VirtualAlloc, or stacks of threads, in all
	 * dumps */
	bool has_virtual, has_stacks;
};

/* Makes the balance of a comparison. The result has no rows if no dump records a balance, or if the
 * dumps are added up. Allocates from `arena`. */
void balance_view_make(
	struct balance_view *balance, const struct comparison *comparison, struct arena *arena);

/* Returns true if a row can have this key, such as "handles:Event". Ignores case. Stores in
 * `*is_count` whether the row's values are numbers of objects. */
bool balance_key_known(const char *key, size_t len, bool *is_count);

/* Returns the row of a figure, or NULL. */
const struct balance_row *balance_view_row(
	const struct balance_view *balance, enum balance_role role, enum balance_figure figure);

/* Returns the row with this key, or NULL. */
const struct balance_row *balance_view_find(
	const struct balance_view *balance, const char *key, size_t len);

static inline int64_t balance_row_change(const struct balance_row *row)
{
	return (int64_t)(row->last - row->first);
}

#endif
