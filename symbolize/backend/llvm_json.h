/*
 * What llvm-symbolizer --output-style=JSON prints for one address: one line, one object.
 *
 * Its text comes, by way of that program, from files that nobody vouches for: it is checked byte by
 * byte, and what is not as expected gives no names.
 */
#ifndef SYMBOLIZE_LLVM_JSON_H
#define SYMBOLIZE_LLVM_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct llvm_frame {
	const char *function, *file; /* in the line that was parsed; "" when not known */
	uint64_t start; /* address where the function begins; 0: not known */
	uint32_t line; /* 0: not known */
};

/* What a line says that it is an answer to, texts in the line that was parsed. */
struct llvm_question {
	const char *module; /* as it was asked, what is no UTF-8 in it replaced */
	uint64_t addr;
	bool has_addr; /* false: it is no answer */
};

/* Takes one line apart, which is overwritten. Fills *question as far as the line is well formed, and
 * up to max frames, innermost first; of more only the outermost is kept behind the first ones.
 * Returns how many, 0 when there is no name or the line is none of these. */
size_t llvm_json_parse(char *line, size_t len, struct llvm_question *question,
	struct llvm_frame *frames, size_t max);

#endif
