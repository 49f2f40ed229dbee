#include "diff/match/frame_numbers.h"

#include <stdlib.h>
#include <string.h>

/* A text in parts that are compared one by one. */
struct spelling {
	const char *name, *digits, *rest;
	size_t name_len, digits_len, rest_len;
	uint32_t *number; /* where it goes */
};

static size_t hex_len(const char *text)
{
	return strspn(text, "0123456789abcdefABCDEF");
}

/* The digits of an offset behind a plus, without leading zeros: their number, or 0: it is none. */
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

/* The last plus with digits behind it starts the offset: names may hold others. */
static struct spelling spelling_of(const char *text, bool by_function)
{
	struct spelling spelling = {.name = text, .name_len = strlen(text)};
	size_t len = spelling.name_len;

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
	/* What has no function part is its offset. */
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

static char upper(char c)
{
	return c >= 'a' && c <= 'f' ? (char)(c - 'a' + 'A') : c;
}

static int digits_order(const struct spelling *a, const struct spelling *b)
{
	if (a->digits_len != b->digits_len)
		return a->digits_len < b->digits_len ? -1 : 1;
	for (size_t i = 0; i < a->digits_len; i++) {
		if (upper(a->digits[i]) != upper(b->digits[i]))
			return upper(a->digits[i]) < upper(b->digits[i]) ? -1 : 1;
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

static void number(struct spelling *all, size_t count)
{
	uint32_t last = 0;

	if (count)
		qsort(all, count, sizeof(*all), by_spelling);
	for (size_t i = 0; i < count; i++) {
		if (!i || by_spelling(&all[i - 1], &all[i]))
			last++;
		*all[i].number = last;
	}
}

uint32_t **frame_numbers(
	const struct sums *dumps, size_t count, bool by_function, struct arena *arena)
{
	uint32_t **numbers = arena_alloc(arena, count * sizeof(*numbers) + 1);
	struct spelling *all;
	size_t total = 0, at = 0;

	for (size_t i = 0; i < count; i++)
		total += dumps[i].text_count;
	all = calloc(total + 1, sizeof(*all));
	for (size_t i = 0; numbers && all && i < count; i++) {
		numbers[i] = arena_alloc(arena, dumps[i].text_count * sizeof(**numbers) + 1);
		if (!numbers[i])
			numbers = NULL;
		for (size_t k = 0; numbers && k < dumps[i].text_count; k++) {
			all[at] = spelling_of(dumps[i].texts[k], by_function);
			all[at++].number = &numbers[i][k];
		}
	}
	if (numbers && all)
		number(all, total);
	else
		numbers = NULL;
	free(all);
	return numbers;
}
