/* The balance of a process in each dump of a comparison, and how it changed. */
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
	/* Figure of this row; BALANCE_FIGURES for the whole; BALANCE_HANDLES for a type. */
	enum balance_figure figure;
	const char *key; /* "thread-stacks", "handles:Event" */
	const char *words; /* "thread stacks", "Event" */
	bool is_count; /* a number of objects; otherwise bytes */
	uint64_t *values; /* indexed by dump; BALANCE_UNKNOWN where not recorded */
	/* The first and the last value are known. In a comparison of several processes, those of
	 * each process. */
	bool has_change;
	uint64_t first, last; /* sums over the processes; valid with `has_change` */
	/* In a trend in which all values are known; the value is in requested_bytes. */
	bool has_trend;
	struct trend trend;
};

struct balance_view {
	struct balance_row *rows; /* in the order of the figures; types of handles are last */
	size_t count;
	bool has_types; /* the first and the last dump list handles by type */
	/* Growth of private memory, and its part that is in rows of the comparison: heap blocks
	 * with their overhead, and memory from VirtualAlloc that the tracer recorded. */
	uint64_t grown_bytes, explained_bytes;
	/* true if the tracer recorded memory from VirtualAlloc in all dumps */
	bool has_virtual;
};

/* Makes the balance of a comparison. It has no rows if no dump records a balance, and for sums of
 * dumps. Allocates from `arena`. */
void balance_view_make(
	struct balance_view *balance, const struct comparison *comparison, struct arena *arena);

/* Returns true if a row can have this key ("handles:Event"; case is ignored), and whether it is a
 * number of objects. */
bool balance_key_known(const char *key, size_t len, bool *is_count);

/* Returns the row with this key, or NULL. */
const struct balance_row *balance_view_find(
	const struct balance_view *balance, const char *key, size_t len);

static inline int64_t balance_row_change(const struct balance_row *row)
{
	return (int64_t)(row->last - row->first);
}

#endif
