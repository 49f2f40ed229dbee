#include "symbolize/command/input.h"

#include <string.h>

#include "core/os.h"

#define PART_BYTES ((size_t)256 << 10)
#define LINE_MAX_BYTES ((size_t)16 << 20)
#define MAX_BYTES ((size_t)1 << 30)

int input_open(struct input *input, const char *path, struct err *err)
{
	bool is_stdin = !strcmp(path, "-");
	int rc;

	*input = (struct input){
		.path = path, .name = is_stdin ? "standard input" : path, .max_bytes = MAX_BYTES};
	rc = source_open(&input->source, path, err);
	input->is_kept = !rc && (is_stdin || os_is_special(path));
	return rc;
}

static int check_bounds(struct input *input, const char *part, size_t len, struct err *err)
{
	size_t tail = 0;

	while (tail < len && part[len - 1 - tail] != '\n')
		tail++;
	input->line_bytes = tail < len ? tail : input->line_bytes + len;
	if (input->line_bytes > LINE_MAX_BYTES)
		return err_set(err, ERR_READ, input->name, "a line is too long");
	if (input->kept.len > input->max_bytes)
		return err_set(err, ERR_READ, input->name,
			"it is no file and over %zu MB; save it to one first",
			input->max_bytes >> 20);
	return 0;
}

static int keep_more(struct input *input, struct err *err)
{
	char *part;
	int64_t got;

	if (buf_reserve(&input->kept, PART_BYTES))
		return err_set(err, ERR_NOMEM, input->name, NULL);
	part = input->kept.data + input->kept.len;
	got = source_read(input->source, part, PART_BYTES, err);
	if (got < 0)
		return (int)got;
	input->is_over = !got;
	input->kept.len += (size_t)got;
	return check_bounds(input, part, (size_t)got, err);
}

int64_t input_read(void *ctx, void *bytes, size_t len, struct err *err)
{
	struct input *input = ctx;

	if (!input->is_kept)
		return source_read(input->source, bytes, len, err);
	if (input->at == input->kept.len && !input->is_over) {
		int rc = keep_more(input, err);

		if (rc)
			return rc;
	}
	if (len > input->kept.len - input->at)
		len = input->kept.len - input->at;
	if (len)
		memcpy(bytes, input->kept.data + input->at, len);
	input->at += len;
	return (int64_t)len;
}

int input_rewind(struct input *input, struct err *err)
{
	input->at = 0;
	if (input->is_kept)
		return 0;
	source_close(input->source);
	input->source = NULL;
	return source_open(&input->source, input->path, err);
}

void input_close(struct input *input)
{
	source_close(input->source);
	input->source = NULL;
	buf_release(&input->kept);
}
