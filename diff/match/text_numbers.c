/* Numbers of texts: equal frames get equal numbers in all dumps, even if their offsets are written
 * differently. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/dump/frame_columns.h"
#include "diff/match/match_parts.h"

/* A text, split into parts that are compared one by one. */
struct spelling {
	const char *name, *digits, *rest;
	size_t name_len, digits_len, rest_len;
	uint32_t *number; /* where the text's number is stored */
};

static size_t hex_len(const char *text)
{
	return strspn(text, "0123456789abcdefABCDEF");
}

/* Returns the number of digits in the offset after a plus, without leading zeros. Returns 0 if no
 * offset follows the plus. */
static size_t offset_at(const char *plus, const char **digits)
{
	const char *at = plus + 1;
	size_t len, zeros;

	if (at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
		at += 2;
	len = hex_len(at);
	if (!len || (at[len] && at[len] != ' '))
		return 0;
	zeros = strspn(at, "0");
	if (zeros == len)
		zeros--;
	*digits = at + zeros;
	return len - zeros;
}

/* Splits a text. Names may contain a plus, so the offset starts at the last plus that is followed
 * by digits. Debuggers print columns before a name, which are ignored because the offset identifies
 * the frame. */
static struct spelling spelling_of(const char *text, bool by_function)
{
	size_t columns_len = frame_columns_find(text, strlen(text)).len, len;
	struct spelling spelling;

	text += columns_len;
	len = strlen(text);
	spelling = (struct spelling){.name = text, .name_len = len};
	for (const char *plus = strchr(text, '+'); plus; plus = strchr(plus + 1, '+')) {
		const char *digits;
		size_t digits_len = offset_at(plus, &digits);

		if (!digits_len)
			continue;
		spelling.name_len = (size_t)(plus - text);
		spelling.digits = digits;
		spelling.digits_len = digits_len;
		spelling.rest = digits + digits_len;
		spelling.rest_len = len - (size_t)(spelling.rest - text);
	}
	/* Keep the offset of a frame without a function: nothing else identifies the frame. */
	if (by_function && memchr(text, '!', spelling.name_len))
		spelling.digits_len = spelling.rest_len = 0;
	return spelling;
}

static int text_order(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t len = a_len < b_len ? a_len : b_len;
	int order = len ? memcmp(a, b, len) : 0;

	return order ? order : a_len < b_len ? -1 : a_len > b_len;
}

static int digits_order(const struct spelling *a, const struct spelling *b)
{
	if (a->digits_len != b->digits_len)
		return a->digits_len < b->digits_len ? -1 : 1;
	for (size_t i = 0; i < a->digits_len; i++) {
		if (text_upper(a->digits[i]) != text_upper(b->digits[i]))
			return text_upper(a->digits[i]) < text_upper(b->digits[i]) ? -1 : 1;
	}
	return 0;
}

static int by_spelling(const void *a, const void *b)
{
	const struct spelling *x = a, *y = b;
	int order = text_order(x->name, x->name_len, y->name, y->name_len);

	if (!order)
		order = digits_order(x, y);
	return order ? order : text_order(x->rest, x->rest_len, y->rest, y->rest_len);
}

uint32_t **text_numbers(
	const struct dump_sums *dumps, size_t count, bool by_function, struct arena *arena)
{
	uint32_t **numbers = arena_alloc(arena, count * sizeof(*numbers)), last = 0;
	struct spelling *all;
	size_t total = 0, at = 0;

	for (size_t i = 0; i < count; i++)
		total += dumps[i].text_count;
	all = xcalloc(total, sizeof(*all));
	for (size_t i = 0; i < count; i++) {
		numbers[i] = arena_alloc(arena, dumps[i].text_count * sizeof(**numbers));
		for (size_t k = 0; k < dumps[i].text_count; k++) {
			all[at] = spelling_of(dumps[i].texts[k], by_function);
			all[at++].number = &numbers[i][k];
		}
	}
	qsort(all, total, sizeof(*all), by_spelling);
	for (size_t i = 0; i < total; i++) {
		last += !i || by_spelling(&all[i - 1], &all[i]);
		*all[i].number = last;
	}
	free(all);
	return numbers;
}
