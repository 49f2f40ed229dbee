#include "diff/read/comparison_base.h"

static void see(struct base_signs *signs, const struct number *number)
{
	if (!number->fits[AS_DECIMAL])
		signs->has_letters = true;
	else if (number->value[AS_HEX] != number->value[AS_DECIMAL])
		signs->is_unsure = true;
}

static void see_growth(struct base_signs *signs, const struct growth_text *growth)
{
	see(signs, &growth->growth);
	see(signs, &growth->new);
	see(signs, &growth->old);
	for (int i = 0; i < READINGS; i++)
		signs->padded[i] += growth->is_padded[i];
}

/* Whether it is worth to look further: letters in what cannot be hexadecimal are damage. */
static bool weigh(struct base_signs *signs, bool as_hex, bool as_decimal)
{
	signs->holds[AS_HEX] += as_hex && !as_decimal;
	signs->holds[AS_DECIMAL] += as_decimal && !as_hex;
	return as_hex;
}

void base_see_row(struct base_signs *signs, const struct read_row *row)
{
	if (!weigh(signs, read_row_holds(row, AS_HEX), read_row_holds(row, AS_DECIMAL)))
		return;
	see_growth(signs, &row->bytes);
	see(signs, &row->count);
	if (row->has_counts)
		see_growth(signs, &row->counts);
}

void base_see_total(struct base_signs *signs, const struct total_text *total)
{
	if (!weigh(signs, total_holds(total, AS_HEX), total_holds(total, AS_DECIMAL)))
		return;
	for (int i = 0; i < (total->has_overhead ? 3 : 1); i++)
		see(signs, &total->part[i]);
}

bool base_adds_up(const struct read_rows *rows, const struct total_text *total, int reading)
{
	return total && total_holds(total, reading) &&
	       read_rows_growth(rows, reading) == (uint64_t)total_part(total, 0, reading);
}

int base_choose(const struct base_signs *signs, const struct read_rows *rows,
	const struct total_text *total, bool *is_guess)
{
	size_t hex = signs->holds[AS_HEX], decimal = signs->holds[AS_DECIMAL];

	*is_guess = false;
	if (signs->is_said[AS_HEX] != signs->is_said[AS_DECIMAL])
		return signs->is_said[AS_HEX] ? AS_HEX : AS_DECIMAL;
	if (signs->has_letters && hex >= decimal) /* else they are damage */
		return AS_HEX;
	if (hex == decimal) {
		hex += base_adds_up(rows, total, AS_HEX);
		decimal += base_adds_up(rows, total, AS_DECIMAL);
	}
	if (hex == decimal) {
		hex += signs->padded[AS_HEX];
		decimal += signs->padded[AS_DECIMAL];
	}
	*is_guess = hex == decimal && signs->is_unsure;
	return decimal > hex ? AS_DECIMAL : AS_HEX;
}
