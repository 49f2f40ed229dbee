/* Patterns in which '*' stands for any text, and nothing else is special. */
#ifndef DIFF_GLOB_H
#define DIFF_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* True when all of text is as the pattern says. With fold, letters of ASCII are alike in either
 * case. Takes time in proportion to the product of both lengths at worst. */
bool glob_match(const char *pattern, const char *text, bool fold);

/* Whether two texts are the same but for the case of ASCII's letters: as file names of Windows. */
bool same_name(const char *a, size_t a_len, const char *b, size_t b_len);

#endif
