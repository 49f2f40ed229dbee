#include "symbolize/cache/section_file.h"

#include <stdlib.h>
#include <string.h>

#include "symbolize/cache/section_bytes.h"
#include "symbolize/cache/section_header.h"

/* The file is looked through by a window: many sections are small. */
#define WINDOW_BYTES ((size_t)16 << 10)

struct window {
	struct os_file *file;
	uint64_t size, start; /* of the file, or what counts of it; of the window in it */
	size_t len;
	unsigned char bytes[WINDOW_BYTES];
};

/* len bytes at offset, or NULL. */
static const unsigned char *window_at(struct window *window, uint64_t offset, size_t len)
{
	if (offset > window->size || window->size - offset < len)
		return NULL;
	if (offset < window->start || offset - window->start + len > window->len) {
		uint64_t rest = window->size - offset;

		window->start = offset;
		window->len = rest < WINDOW_BYTES ? (size_t)rest : WINDOW_BYTES;
		if (os_read_at(window->file, offset, window->bytes, window->len)) {
			window->len = 0;
			return NULL;
		}
	}
	return window->bytes + (offset - window->start);
}

void section_refs_init(struct section_refs *refs)
{
	*refs = (struct section_refs){0};
}

void section_refs_release(struct section_refs *refs)
{
	free(refs->list);
	section_refs_init(refs);
}

/* A file that is shorter than a header was cut while it was begun. */
static bool is_header(const unsigned char *bytes, size_t len, bool *is_whole)
{
	bool is_first, is_second;

	if (len < HEADER_BYTES) {
		*is_whole = false;
		return !memcmp(bytes, HEADER_TEXT HEADER_TEXT, len);
	}
	is_first = !memcmp(bytes, HEADER_TEXT, HEADER_TEXT_BYTES);
	is_second = !memcmp(bytes + HEADER_TEXT_BYTES, HEADER_TEXT, HEADER_TEXT_BYTES);
	*is_whole = is_first && is_second;
	return is_first || is_second;
}

static int refs_add(struct section_refs *refs, uint64_t offset, const struct section_head *head)
{
	if (array_grow((void **)&refs->list, &refs->cap, refs->count, sizeof(*refs->list)))
		return -ERR_NOMEM;
	refs->list[refs->count++] = (struct section_ref){.offset = offset, .head = *head};
	refs->has_gaps |= offset != refs->end;
	refs->end = offset + section_bytes(head);
	return 0;
}

/* The next place behind offset, which is in the window, where a section may begin. */
static uint64_t next_place(const struct window *window, uint64_t offset)
{
	size_t at = (size_t)(offset - window->start) + 1;
	const unsigned char *found =
		memchr(window->bytes + at, SECTION_MAGIC & 0xff, window->len - at);

	return window->start + (found ? (size_t)(found - window->bytes) : window->len);
}

/* Behind what is damaged the next section is looked for. More than twice as many as there should be
 * nobody has written. */
static int read_heads(struct section_refs *refs, struct window *window)
{
	uint64_t offset = refs->end;
	struct section_head head;
	const unsigned char *bytes;
	int rc = 0;

	while (!rc && refs->count < (size_t)2 * SECTIONS_MAX &&
		(bytes = window_at(window, offset, SECTION_HEAD_BYTES))) {
		if (section_head_get(bytes, &head) &&
			section_bytes(&head) <= window->size - offset) {
			rc = refs_add(refs, offset, &head);
			offset = refs->end;
		} else {
			offset = next_place(window, offset);
		}
	}
	return rc;
}

int section_refs_read(struct section_refs *refs, struct os_file *file, uint64_t limit)
{
	struct window window;
	const unsigned char *bytes;
	size_t len;

	window.file = file;
	window.size = os_size(file);
	if (window.size > limit)
		window.size = limit;
	window.start = window.len = 0;
	len = window.size < HEADER_BYTES ? (size_t)window.size : HEADER_BYTES;
	refs->end = HEADER_BYTES;
	bytes = window_at(&window, 0, len);
	if (!bytes || !is_header(bytes, len, &refs->is_header_whole))
		return -ERR_READ;
	return read_heads(refs, &window);
}

int section_read(struct os_file *file, const struct section_ref *ref, const char *key,
	struct section *section)
{
	size_t len = (size_t)(section_bytes(&ref->head) - SECTION_HEAD_BYTES);
	unsigned char *body = malloc(len + 1);

	if (!body)
		return -ERR_NOMEM;
	if (os_read_at(file, ref->offset + SECTION_HEAD_BYTES, body, len) ||
		!section_take(section, &ref->head, body, key)) {
		free(body);
		return -ERR_READ;
	}
	return 0;
}
