#include <stdlib.h>
#include <string.h>

#include "symbolize/cache/section_file.h"
#include "symbolize/cache/section_header.h"

/* When the oldest go, so many go that the next ones find room. */
#define ROOM_PARTS 4

/* One who writes, while it has the lock. */
struct writing {
	const struct section_job *job;
	struct os_file file;
	struct section_refs refs;
	struct arena arena; /* names of sections that are made one */
	struct buf added; /* sections */
	bool is_moving; /* sections go, or may have to */
};

/* ---------------------------------------------------------------- making one of many */

/* One of a key's sections that are worth being made one. */
static bool is_small(
	const struct writing *writing, const struct section_ref *ref, uint32_t key_hash)
{
	return ref->head.key_hash == key_hash &&
	       section_bytes(&ref->head) <= writing->job->limit / 64;
}

static int take_answers(struct writing *writing, struct section *section,
	struct section_answer **answers, size_t *count, size_t *cap)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < section->answer_count; i++) {
		rc = array_grow((void **)answers, cap, *count, sizeof(**answers));
		if (rc)
			break;
		(*answers)[*count] = (struct section_answer){
			.rva = section_rva(section, i), .age = (uint32_t)*count};
		rc = section_answer(section, i, &writing->arena, &(*answers)[*count].symbols);
		*count += !rc;
	}
	return rc;
}

/* All answers of a key's small sections and the new ones, in an array that the caller frees; those
 * sections go. */
static int merge(struct writing *writing, const struct section_additions *additions,
	struct section_answer **answers, size_t *count)
{
	const uint32_t key_hash = section_key_hash(additions->key);
	size_t cap = 0;
	int rc = 0;

	for (size_t i = 0; !rc && i < writing->refs.count; i++) {
		struct section_ref *ref = &writing->refs.list[i];
		struct section section;

		if (!is_small(writing, ref, key_hash))
			continue;
		rc = section_read(&writing->file, ref, additions->key, &section);
		if (!rc) {
			rc = take_answers(writing, &section, answers, count, &cap);
			section_release(&section);
			ref->is_dropped = true;
		} else if (rc == -ERR_READ) { /* another key's, or damaged */
			rc = 0;
		}
	}
	for (size_t i = 0; !rc && i < additions->count; i++) {
		rc = array_grow((void **)answers, &cap, *count, sizeof(**answers));
		if (!rc) {
			(*answers)[*count] = additions->answers[i];
			(*answers)[*count].age = (uint32_t)*count;
			++*count;
		}
	}
	writing->is_moving = true;
	return rc;
}

/* Whether what is to be added is as much as may be, that not all others go for it. */
static bool is_full(const struct writing *writing)
{
	return writing->added.len >= writing->job->limit / 2;
}

static int build(
	struct writing *writing, const char *key, struct section_answer *answers, size_t count)
{
	size_t taken = 0;
	int rc = 0;

	count = section_sort(answers, count);
	for (size_t i = 0; !rc && i < count && !is_full(writing); i += taken)
		rc = section_build(&writing->added, key, answers + i, count - i,
			(size_t)(writing->job->limit / 8), &taken);
	return rc;
}

static int add_key(struct writing *writing, const struct section_additions *additions)
{
	const uint32_t key_hash = section_key_hash(additions->key);
	struct section_answer *merged = NULL;
	size_t small_count = 0, count = 0;
	int rc;

	for (size_t i = 0; i < writing->refs.count; i++)
		small_count += is_small(writing, &writing->refs.list[i], key_hash);
	if (small_count < SECTIONS_OF_KEY_MAX)
		return build(writing, additions->key, additions->answers, additions->count);
	rc = merge(writing, additions, &merged, &count);
	if (!rc)
		rc = build(writing, additions->key, merged, count);
	free(merged);
	return rc;
}

/* ---------------------------------------------------------------- what has to go */

static uint64_t bytes_kept(const struct section_refs *refs, size_t *count)
{
	uint64_t bytes = HEADER_BYTES;

	*count = 0;
	for (size_t i = 0; i < refs->count; i++) {
		if (!refs->list[i].is_dropped) {
			bytes += section_bytes(&refs->list[i].head);
			++*count;
		}
	}
	return bytes;
}

static void drop_oldest(struct writing *writing)
{
	const uint64_t limit = writing->job->limit, added = writing->added.len;
	size_t count;
	uint64_t bytes = bytes_kept(&writing->refs, &count);

	if (bytes + added <= limit && count < SECTIONS_MAX)
		return;
	writing->is_moving = true;
	for (size_t i = 0; i < writing->refs.count; i++) {
		struct section_ref *ref = &writing->refs.list[i];

		if (bytes + added <= limit - limit / ROOM_PARTS &&
			count <= SECTIONS_MAX - SECTIONS_MAX / ROOM_PARTS)
			break;
		if (ref->is_dropped)
			continue;
		ref->is_dropped = true;
		bytes -= section_bytes(&ref->head);
		count--;
	}
}

/* ---------------------------------------------------------------- writing */

/* Moves one section to where *to is, unless it lies there, and *to behind it. One that is damaged goes. */
static int move(struct writing *writing, const struct section_ref *ref, uint64_t *to)
{
	size_t len = (size_t)section_bytes(&ref->head);
	unsigned char *bytes;
	int rc = 0;

	if (ref->offset == *to && !writing->job->is_damaged) {
		*to += len;
		return 0;
	}
	bytes = malloc(len);
	if (!bytes)
		return -ERR_NOMEM;
	if (!os_read_at(&writing->file, ref->offset, bytes, len) &&
		section_is_whole(&ref->head, bytes + SECTION_HEAD_BYTES)) {
		if (ref->offset != *to)
			rc = own_file_write(&writing->file, *to, bytes, len);
		if (!rc)
			*to += len;
	}
	free(bytes);
	return rc;
}

static int move_all(struct writing *writing, uint64_t *end)
{
	int rc = 0;

	*end = HEADER_BYTES;
	for (size_t i = 0; !rc && i < writing->refs.count; i++) {
		if (!writing->refs.list[i].is_dropped)
			rc = move(writing, &writing->refs.list[i], end);
	}
	return rc;
}

/* Whatever happens the file ends with a whole section. */
static void write_all(struct writing *writing)
{
	uint64_t end = writing->refs.end;
	int rc = 0;

	if (!writing->refs.is_header_whole)
		rc = own_file_write(&writing->file, 0, HEADER_TEXT HEADER_TEXT, HEADER_BYTES);
	if (!rc && (writing->is_moving || writing->job->is_damaged || writing->refs.has_gaps))
		rc = move_all(writing, &end);
	if (os_size(&writing->file) > end && own_file_cut(&writing->file, end))
		return;
	if (!rc && end + writing->added.len <= writing->job->limit &&
		own_file_write(&writing->file, end, writing->added.data, writing->added.len))
		own_file_cut(&writing->file, end);
}

static int prepare(struct writing *writing)
{
	const struct section_job *job = writing->job;
	int rc = section_refs_read(&writing->refs, &writing->file, job->limit);

	if (rc == -ERR_READ && job->is_own_place)
		rc = 0;
	for (size_t i = 0; !rc && i < job->count && !is_full(writing); i++)
		rc = add_key(writing, &job->additions[i]);
	if (!rc)
		drop_oldest(writing);
	return rc;
}

void section_file_add(const struct section_job *job)
{
	struct writing writing = {.job = job};

	if (own_file_lock(&writing.file, job->path))
		return;
	section_refs_init(&writing.refs);
	arena_init(&writing.arena);
	buf_init(&writing.added);
	if (!prepare(&writing))
		write_all(&writing);
	buf_release(&writing.added);
	arena_release(&writing.arena);
	section_refs_release(&writing.refs);
	os_close(&writing.file);
}
