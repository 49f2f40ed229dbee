/*
 * key=value words of a "// hsnap:" line.
 *
 * A value is a run of bytes without blanks, quotes and control characters, or such in double
 * quotes, where \" \\ and \xHH stand for a quote, a backslash and any byte. man/hdump.5 is the law.
 */
#ifndef CORE_DUMP_KV_H
#define CORE_DUMP_KV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"

#define KV_MAX 32 /* pairs on one line */

struct kv {
	size_t count;
	size_t key_at[KV_MAX], value_at[KV_MAX]; /* into words.data, NUL-terminated */
	struct buf words;
};

void kv_init(struct kv *kv);
void kv_release(struct kv *kv);

/* Takes text apart; what kv held before is gone. 0 or -ERR_BAD_LINE. */
int kv_parse(struct kv *kv, const char *text, size_t len);

/* The value of key, or NULL; valid until the next kv_parse(). */
const char *kv_get(const struct kv *kv, const char *key);

/* As kv_get() for a number in base: 0, leaving *value alone when key is not there;
 * -ERR_BAD_LINE when it is no such number. */
int kv_get_number(const struct kv *kv, const char *key, int base, uint64_t *value);

int kv_get_u32(const struct kv *kv, const char *key, int base, uint32_t *value);

/* The same of a time: milliseconds since 1970-01-01 UTC. */
int kv_get_date(const struct kv *kv, const char *key, int64_t *ms);

/* The same of several numbers; the first that is none ends it. */
struct kv_number {
	const char *key;
	int base;
	uint64_t *value;
};
int kv_get_numbers(const struct kv *kv, const struct kv_number *numbers, size_t count);

/* Whether all of value stands in quotes as it is. Most names do, and there may be many thousands. */
bool kv_is_plain(const char *value, size_t len);

/* A value in quotes, safe on one line: what text_unfit() finds is escaped. */
void kv_quote(struct buf *buf, const char *value);

/* 0, or -ERR_BAD_LINE unless text is one whole number in base that fits. */
int kv_number(const char *text, int base, uint64_t *value);

#endif
