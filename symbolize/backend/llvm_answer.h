/*
 * What llvm-symbolizer --output-style=LLVM --addresses --verbose prints for one address: the address,
 * for each function its name and lines that begin with two blanks, and an empty line. (Its JSON says
 * the same, at half as much time again.)
 *
 * Its text comes, by way of that program, from files that nobody vouches for: a name may have line
 * breaks in it and look like anything. So an answer is looked for only where it is expected, and
 * what is not as expected gives no names.
 */
#ifndef SYMBOLIZE_LLVM_ANSWER_H
#define SYMBOLIZE_LLVM_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct llvm_frame {
	const char *function, *file; /* in the text that was parsed; "" when not known */
	uint64_t start; /* address where the function begins; 0: not known */
	uint32_t line; /* 0: not known */
};

/* Whether a line, without its end, is the address that an answer begins with. */
bool llvm_answer_address(const char *line, size_t len, uint64_t *addr);

/* Whether a line can only be the rest of an answer. */
bool llvm_answer_continues(const char *line, size_t len);

/* The length of what follows that line, with the empty line at its end; 0: it is not whole yet. No
 * function's name at all is an empty line, too: the text that follows tells. *searched is how far it
 * was looked at before, 0 the first time. */
size_t llvm_answer_length(const char *text, size_t len, size_t *searched);

/* Takes it apart, without the line of its address; text is overwritten. Fills up to max frames, innermost
 * first; of more only the outermost is kept behind the first ones. Returns how many, 0 when it is
 * not well formed. */
size_t llvm_answer_parse(char *text, size_t len, struct llvm_frame *frames, size_t max);

#endif
