#include "diff/inputs/natural_order.h"

#include <stdbool.h>
#include <string.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Steps over a number: its digits but zeros before it, and how many these are. */
static const char *take_number(const char **text, size_t *len)
{
	const char *digits = *text + strspn(*text, "0");

	*len = strspn(digits, "0123456789");
	*text = digits + *len;
	return digits;
}

static int number_order(const char **a, const char **b)
{
	size_t a_len, b_len;
	const char *x = take_number(a, &a_len), *y = take_number(b, &b_len);

	if (a_len != b_len)
		return a_len < b_len ? -1 : 1;
	return memcmp(x, y, a_len);
}

int natural_order(const char *a, const char *b)
{
	const char *x = a, *y = b;
	int order;

	while (*x && *y) {
		if (is_digit(*x) && is_digit(*y)) {
			order = number_order(&x, &y);
			if (order)
				return order;
		} else if (*x == *y) {
			x++;
			y++;
		} else {
			break;
		}
	}
	order = (unsigned char)*x - (unsigned char)*y;
	return order ? order : strcmp(a, b);
}
