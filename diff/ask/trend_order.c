#include "diff/ask/trend_order.h"

#include <string.h>

#define SIGN_BIT (UINT64_C(1) << 63)

uint64_t key_of_signed(int64_t value)
{
	return (uint64_t)value ^ SIGN_BIT;
}

/* The same of a number with a fraction. */
static uint64_t key_of_double(double value)
{
	uint64_t bits;

	value += 0.0; /* there is but one zero */
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
	*key++ = key_of_signed(trend->net_bytes);
	*key = key_of_signed(trend->net_blocks);
}

int trend_keys_order(const uint64_t a[TREND_KEYS], const uint64_t b[TREND_KEYS])
{
	for (size_t i = 0; i < TREND_KEYS; i++) {
		if (a[i] != b[i])
			return a[i] > b[i] ? -1 : 1;
	}
	return 0;
}
