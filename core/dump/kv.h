/*
 * The key=value words of a "// hsnap:" line.
 *
 * A value is a run of bytes without blanks, quotes or control characters, or a string in double
 * quotes. Inside quotes, \" \\ and \xHH stand for a quote, a backslash and any byte. man/hdump.5 is
 * the specification.
 */
#ifndef CORE_DUMP_KV_H
#define CORE_DUMP_KV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"

#define KV_MAX 32 /* maximum number of pairs per line */

struct kv {
	size_t count;
	/* offsets of NUL-terminated strings in words.data */
	size_t key_at[KV_MAX], value_at[KV_MAX];
	struct buf words;
};

void kv_init(struct kv *kv);
void kv_release(struct kv *kv);

/* Parses `text` and replaces the pairs in `kv`. Returns 0 or -ERR_BAD_LINE. */
int kv_parse(struct kv *kv, const char *text, size_t len);

/* Returns the value of `key`, or NULL if `key` is absent. Valid until the next kv_parse(). */
const char *kv_get(const struct kv *kv, const char *key);

/* Parses the value of `key` as a number in base `base`. If `key` is absent, returns 0 and leaves
 * `*value` unchanged. Otherwise returns 0, or -ERR_BAD_LINE if the value is not such a number. */
int kv_get_number(const struct kv *kv, const char *key, int base, uint64_t *value);

int kv_get_u32(const struct kv *kv, const char *key, int base, uint32_t *value);

/* Reads a time: milliseconds since 1970-01-01 UTC. Returns the same values as kv_get_number(). */
int kv_get_date(const struct kv *kv, const char *key, int64_t *ms);

/* Reads the values of several keys; stops at the first invalid value. Returns the same values as
 * kv_get_number(). */
struct kv_number {
	const char *key;
	int base;
	uint64_t *value;
};
int kv_get_numbers(const struct kv *kv, const struct kv_number *numbers, size_t count);

/* Returns true if `value` needs no escapes inside quotes. This fast path exists because there may
 * be many thousands of names, and most need no escapes. */
bool kv_is_plain(const char *value, size_t len);

/* Appends a quoted `value` on one line, escaping bytes that text_unfit() finds. */
void kv_quote(struct buf *buf, const char *value);

/* Parses text that consists of one number in base `base`. Returns 0, or -ERR_BAD_LINE for other
 * text. */
int kv_number(const char *text, int base, uint64_t *value);

#endif
