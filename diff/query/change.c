/* Changes of rows: sums, differences, and sort keys made from trends. */
#include <string.h>

#include "diff/query/view.h"

/* Returns a key that preserves the order of finite numbers. */
static uint64_t key_of_double(double value)
{
	uint64_t bits;

	value += 0.0; /* turns -0.0 into +0.0 */
	memcpy(&bits, &value, sizeof(bits));
	return bits & SIGN_BIT ? ~bits : bits | SIGN_BIT;
}

void trend_keys(const struct trend *trend, enum view_sort sort, uint64_t keys[TREND_KEYS])
{
	uint64_t *key = keys;

	memset(keys, 0, TREND_KEYS * sizeof(*keys));
	if (sort != SORT_VERDICT && sort != SORT_SLOPE)
		return;
	if (sort == SORT_VERDICT)
		*key++ = TREND_VERDICTS - trend->verdict;
	if (sort == SORT_VERDICT && trend->verdict != TREND_TOO_FEW)
		*key++ = key_of_double(trend->low_bytes_per_hour);
	if (sort == SORT_SLOPE || trend->verdict != TREND_TOO_FEW) {
		*key++ = key_of_double(trend->bytes_per_hour);
		*key++ = key_of_double(trend->blocks_per_hour);
	}
	*key++ = signed_key(trend->net_bytes);
	*key = signed_key(trend->net_blocks);
}

int trend_keys_order(const uint64_t a[TREND_KEYS], const uint64_t b[TREND_KEYS])
{
	for (size_t i = 0; i < TREND_KEYS; i++) {
		if (a[i] != b[i])
			return a[i] > b[i] ? -1 : 1;
	}
	return 0;
}

struct change row_change(const struct comparison *comparison, const struct row *row)
{
	return (struct change){row_old(comparison, row), row_new(comparison, row)};
}

void change_add(struct change *to, const struct change *more)
{
	block_totals_add(&to->old, &more->old);
	block_totals_add(&to->now, &more->now);
}

void change_add_row(
	struct change *change, const struct comparison *comparison, const struct row *row)
{
	struct change more = row_change(comparison, row);

	change_add(change, &more);
}

struct delta change_delta(const struct change *change)
{
	/* No overflow: dump_sums.h limits the totals, and no other sum exceeds them. */
	return (struct delta){
		(int64_t)(change->now.block_count - change->old.block_count),
		(int64_t)(change->now.requested_bytes - change->old.requested_bytes),
		(int64_t)(change->now.overhead_bytes - change->old.overhead_bytes),
	};
}
