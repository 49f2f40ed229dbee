#include "core/source.h"

#include <stdlib.h>
#include <string.h>

#include "core/os.h"

struct source {
	struct os_file file;
	char *name;
	char *ahead; /* what was peeked at and not read: at to end */
	size_t at, end;
};

int source_open(struct source **source, const char *path, struct err *err)
{
	struct source *made = calloc(1, sizeof(*made));
	const char *name = strcmp(path, "-") ? path : "standard input";
	int rc = -ERR_NOMEM;

	if (made) {
		made->name = strdup(name);
		made->ahead = malloc(SOURCE_PEEK_BYTES);
	}
	if (!made || !made->name || !made->ahead)
		err_set(err, ERR_NOMEM, name, NULL);
	else
		rc = os_open(&made->file, path, err);
	if (rc && made) {
		free(made->name);
		free(made->ahead);
		free(made);
	} else if (!rc) {
		*source = made;
	}
	return rc;
}

void source_close(struct source *source)
{
	if (!source)
		return;
	os_close(&source->file);
	free(source->name);
	free(source->ahead);
	free(source);
}

const char *source_name(const struct source *source)
{
	return source->name;
}

int64_t source_peek(struct source *source, const char **bytes, struct err *err)
{
	memmove(source->ahead, source->ahead + source->at, source->end - source->at);
	source->end -= source->at;
	source->at = 0;
	while (source->end < SOURCE_PEEK_BYTES) {
		int64_t got = os_read(&source->file, source->ahead + source->end,
			SOURCE_PEEK_BYTES - source->end, source->name, err);

		if (got < 0)
			return got;
		if (!got)
			break;
		source->end += (size_t)got;
	}
	*bytes = source->ahead;
	return (int64_t)source->end;
}

int64_t source_read(struct source *source, void *bytes, size_t len, struct err *err)
{
	size_t ahead = source->end - source->at;

	if (!ahead)
		return os_read(&source->file, bytes, len, source->name, err);
	len = len < ahead ? len : ahead;
	memcpy(bytes, source->ahead + source->at, len);
	source->at += len;
	return (int64_t)len;
}

bool source_is_plain(const struct source *source, uint64_t *from, uint64_t *to)
{
	struct os_file file = source->file;

	*from = 0;
	*to = os_size(&file);
	return *to != 0;
}

int source_read_at(struct source *source, uint64_t offset, void *bytes, size_t len, struct err *err)
{
	int rc = os_read_at(&source->file, offset, bytes, len);

	return rc ? err_set(err, ERR_READ, source->name, NULL) : 0;
}
