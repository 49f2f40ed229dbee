/* Functions that are defined in another file than their callers, into which they are inlined. */
#ifndef TESTS_NAMES_INLINE_H
#define TESTS_NAMES_INLINE_H

INLINE int inner_step(int value)
{
	note("inlined"); /* frame inlined 1 inner_step */
	return value + 1;
}

INLINE int outer_step(int value)
{
	int sum = inner_step(value * 3); /* frame inlined 2 outer_step */

	return sum * 5;
}

#endif
