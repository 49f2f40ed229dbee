#include "diff/match/totals.h"

#include "diff/match/series_ends.h"

void totals_add(struct census *to, const struct census *more)
{
	census_add(to, more);
	to->block_count = to->block_count > INT64_MAX ? INT64_MAX : to->block_count;
	to->requested_bytes = to->requested_bytes > INT64_MAX ? INT64_MAX : to->requested_bytes;
	to->overhead_bytes = to->overhead_bytes > INT64_MAX ? INT64_MAX : to->overhead_bytes;
}

/* What the dumps add up to that count as old, or as new: of all, and of address space alone. */
static void count_ends(
	const struct comparison *comparison, struct change *total, struct change *reserved)
{
	const struct trend_axis *axis = comparison->axis;

	for (size_t i = 0; i < comparison->dump_count; i++) {
		const struct sums *dump = &comparison->dumps[i];

		if (axis ? axis_begins(axis, i) : !i && comparison_columns(comparison) > 1) {
			totals_add(&total->old, &dump->total);
			totals_add(&reserved->old, &dump->reserved);
		}
		if (axis ? axis_ends(axis, i) :
			   comparison->is_sum || i + 1 == comparison->dump_count) {
			totals_add(&total->new, &dump->total);
			totals_add(&reserved->new, &dump->reserved);
		}
	}
}

/* Of a trend, what any snapshot has. */
static void find_reserved(struct comparison *comparison)
{
	for (size_t i = 0; comparison->axis && i < comparison->dump_count; i++) {
		const struct census *reserved = &comparison->dumps[i].reserved;

		comparison->hides_reserved |= reserved->block_count != 0;
		if (reserved->requested_bytes > comparison->reserved_most)
			comparison->reserved_most = reserved->requested_bytes;
	}
}

void totals_count(struct comparison *comparison, const struct match_request *request)
{
	struct change total = {0}, reserved = {0};
	bool is_asked = false;

	count_ends(comparison, &total, &reserved);
	for (size_t i = 0; i < request->heap_count; i++)
		is_asked |= request->heaps[i] == HEAP_RESERVED;
	if (is_asked) {
		totals_add(&total.old, &reserved.old);
		totals_add(&total.new, &reserved.new);
	} else {
		comparison->reserved = reserved;
		comparison->hides_reserved = reserved.new.block_count || reserved.old.block_count;
		find_reserved(comparison);
	}
	comparison->old_total = total.old;
	comparison->new_total = total.new;
}
