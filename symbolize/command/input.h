/*
 * A dump that is read twice, unpacked: a file is read again, what cannot be (a pipe) is kept in
 * memory, within bounds: what has no end is refused.
 */
#ifndef SYMBOLIZE_INPUT_H
#define SYMBOLIZE_INPUT_H

#include <stdbool.h>

#include "core/buf.h"
#include "core/source.h"

struct input {
	const char *path, *name; /* name is for messages */
	bool is_kept, is_over; /* is_over: all that is to be kept is */
	struct buf kept;
	size_t at;
	size_t line_bytes; /* kept behind the last line end */
	size_t max_bytes; /* so much is kept */
	struct source *source; /* NULL: closed */
};

/* Opens path, "-" is standard input: 0, -ERR_OPEN or -ERR_NOMEM. */
int input_open(struct input *input, const char *path, struct err *err);

/* Reads on; as struct dump_source asks. ctx is a struct input. Besides what the system says,
 * -ERR_READ is a pipe of over max_bytes or with a line too long for a dump. -ERR_CUT, -ERR_READ and
 * -ERR_NOMEM as source_read() says. */
int64_t input_read(void *ctx, void *bytes, size_t len, struct err *err);

/* Back to the first byte: 0, -ERR_OPEN or -ERR_NOMEM. */
int input_rewind(struct input *input, struct err *err);

/* Also after input_open() failed. */
void input_close(struct input *input);

#endif
