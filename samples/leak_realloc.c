/*
 * A buffer that only ever grows: each step makes it 4096 bytes longer in 16 calls of realloc().
 * There is one block before and after, so bytes grow and the count does not. A second buffer grows
 * and shrinks back within each step.
 *
 * truth: step 1->2 stack append<-write_page<-main bytes +4096 allocs +0
 * truth: step 2->3 stack append<-write_page<-main bytes +4096 allocs +0
 * truth: step 1->3 stack append<-write_page<-main bytes +8192 allocs +0
 */
#include <stdlib.h>

#include "samples/step.h"

struct buffer {
	char *data;
	size_t len;
};

static NOINLINE void open_buffer(struct buffer *buffer)
{
	buffer->len = 100;
	buffer->data = step_leak(malloc(buffer->len));
}

static NOINLINE void append(struct buffer *buffer, size_t more)
{
	buffer->data = step_leak(realloc(buffer->data, buffer->len + more));
	memset(buffer->data + buffer->len, 'x', more);
	buffer->len += more;
}

static NOINLINE void cut_back(struct buffer *buffer, size_t len)
{
	buffer->data = step_leak(realloc(buffer->data, len));
	buffer->len = len;
}

static NOINLINE void write_page(struct buffer *book, struct buffer *scratch)
{
	for (volatile int i = 0; i < 16; i++) {
		append(book, 256);
		append(scratch, 1000);
	}
	cut_back(scratch, 100);
}

int main(void)
{
	struct buffer book, scratch;
	unsigned long step = 0;

	open_buffer(&book);
	open_buffer(&scratch);
	for (;;) {
		step++;
		write_page(&book, &scratch);
		if (!step_done(step))
			return 0;
	}
}
