#include "symbolize/input.h"

#include <string.h>

#define PART_BYTES ((size_t)256 << 10)

static int keep_all(struct input *input, struct err *err)
{
	int64_t got = 1;

	input->is_kept = true;
	while (got > 0) {
		if (buf_reserve(&input->kept, PART_BYTES))
			return err_set(err, ERR_NOMEM, input->name, NULL);
		got = os_read(&input->file, input->kept.data + input->kept.len, PART_BYTES,
			input->name, err);
		input->kept.len += got > 0 ? (size_t)got : 0;
	}
	return (int)got;
}

int input_open(struct input *input, const char *path, struct err *err)
{
	bool is_stdin = !strcmp(path, "-");
	int rc;

	*input = (struct input){.path = path, .name = is_stdin ? "standard input" : path};
	rc = os_open(&input->file, path, err);
	input->is_open = !rc;
	return rc || (!is_stdin && os_size(&input->file)) ? rc : keep_all(input, err);
}

int64_t input_read(void *ctx, void *bytes, size_t len, struct err *err)
{
	struct input *input = ctx;

	if (!input->is_kept)
		return os_read(&input->file, bytes, len, input->name, err);
	if (len > input->kept.len - input->at)
		len = input->kept.len - input->at;
	if (len)
		memcpy(bytes, input->kept.data + input->at, len);
	input->at += len;
	return (int64_t)len;
}

int input_rewind(struct input *input, struct err *err)
{
	int rc;

	input->at = 0;
	if (input->is_kept)
		return 0;
	os_close(&input->file);
	rc = os_open(&input->file, input->path, err);
	input->is_open = !rc;
	return rc;
}

void input_close(struct input *input)
{
	if (input->is_open)
		os_close(&input->file);
	input->is_open = false;
	buf_release(&input->kept);
}
