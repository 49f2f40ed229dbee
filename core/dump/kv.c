/*
 * Parses and quotes the key=value words of a note. All words of a line are copied into one buffer.
 */
#include "core/dump/kv.h"

#include <string.h>

#include "core/base/parse.h"
#include "core/base/text.h"

void kv_init(struct kv *kv)
{
	kv->count = 0;
	buf_init(&kv->words);
}

void kv_release(struct kv *kv)
{
	buf_release(&kv->words);
	kv_init(kv);
}

int kv_number(const char *text, int base, uint64_t *value)
{
	uint64_t sum = 0;

	if (!*text)
		return -ERR_BAD_LINE;
	for (; *text; text++) {
		/* value of the digit plus one; 0: not a digit */
		unsigned digit = hex_digits[(unsigned char)*text];

		if (!digit-- || digit >= (unsigned)base ||
			sum > (UINT64_MAX - digit) / (unsigned)base)
			return -ERR_BAD_LINE;
		sum = sum * (unsigned)base + digit;
	}
	*value = sum;
	return 0;
}

struct kv_cursor {
	const char *at, *end;
};

static int escape(struct kv_cursor *from, struct buf *to)
{
	const char *at = from->at;
	unsigned high, low;
	char byte;

	if (from->end - at >= 2 && (at[1] == '"' || at[1] == '\\')) {
		from->at += 2;
		buf_add(to, at + 1, 1);
		return 0;
	}
	if (from->end - at < 4 || at[1] != 'x')
		return -ERR_BAD_LINE;
	high = hex_digits[(unsigned char)at[2]];
	low = hex_digits[(unsigned char)at[3]];
	if (!high || !low || (high == 1 && low == 1)) /* a value cannot contain a NUL */
		return -ERR_BAD_LINE;
	byte = (char)((high - 1) << 4 | (low - 1));
	from->at += 4;
	buf_add(to, &byte, 1);
	return 0;
}

static int quoted(struct kv_cursor *from, struct buf *to)
{
	from->at++;
	while (from->at < from->end && *from->at != '"') {
		if (*from->at != '\\')
			buf_add(to, from->at++, 1);
		else if (escape(from, to))
			return -ERR_BAD_LINE;
	}
	if (from->at == from->end)
		return -ERR_BAD_LINE;
	from->at++;
	return from->at == from->end || *from->at == ' ' ? 0 : -ERR_BAD_LINE;
}

static int bare(struct kv_cursor *from, struct buf *to)
{
	const char *start = from->at;

	while (from->at < from->end && *from->at != ' ' && *from->at != '"')
		from->at++;
	if (from->at < from->end && *from->at == '"')
		return -ERR_BAD_LINE;
	buf_add(to, start, (size_t)(from->at - start));
	return 0;
}

static int pair(struct kv *kv, struct kv_cursor *from)
{
	size_t left = (size_t)(from->end - from->at);
	const char *equals = memchr(from->at, '=', left);
	size_t key_len = equals ? (size_t)(equals - from->at) : 0;

	if (!key_len || memchr(from->at, ' ', key_len) || kv->count == KV_MAX)
		return -ERR_BAD_LINE;
	kv->key_at[kv->count] = kv->words.len;
	buf_add(&kv->words, from->at, key_len);
	buf_add(&kv->words, "", 1);
	kv->value_at[kv->count] = kv->words.len;
	from->at = equals + 1;
	if (from->at < from->end && *from->at == '"' ? quoted(from, &kv->words) :
						       bare(from, &kv->words))
		return -ERR_BAD_LINE;
	buf_add(&kv->words, "", 1);
	kv->count++;
	return 0;
}

int kv_parse(struct kv *kv, const char *text, size_t len)
{
	struct kv_cursor from = {text, text + len};
	int rc = 0;

	kv->count = 0;
	buf_clear(&kv->words);
	while (!rc) {
		while (from.at < from.end && *from.at == ' ')
			from.at++;
		if (from.at == from.end)
			break;
		rc = pair(kv, &from);
	}
	return rc;
}

const char *kv_get(const struct kv *kv, const char *key)
{
	for (size_t i = 0; i < kv->count; i++) {
		if (!strcmp(kv->words.data + kv->key_at[i], key))
			return kv->words.data + kv->value_at[i];
	}
	return NULL;
}

int kv_get_number(const struct kv *kv, const char *key, int base, uint64_t *value)
{
	const char *text = kv_get(kv, key);

	return text ? kv_number(text, base, value) : 0;
}

int kv_get_numbers(const struct kv *kv, const struct kv_number *numbers, size_t count)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < count; i++)
		rc = kv_get_number(kv, numbers[i].key, numbers[i].base, numbers[i].value);
	return rc;
}

int kv_get_u32(const struct kv *kv, const char *key, int base, uint32_t *value)
{
	uint64_t wide = *value;

	if (kv_get_number(kv, key, base, &wide) || wide > UINT32_MAX)
		return -ERR_BAD_LINE;
	*value = (uint32_t)wide;
	return 0;
}

int kv_get_date(const struct kv *kv, const char *key, int64_t *ms)
{
	const char *text = kv_get(kv, key);

	return text ? date_parse(text, ms) : 0;
}

bool kv_is_plain(const char *value, size_t len)
{
	return text_is_plain(value, len) && !memchr(value, '"', len) && !memchr(value, '\\', len);
}

/* Returns the length of the prefix of value that needs no escapes. */
static size_t plain_len(const char *value)
{
	size_t len = 0;

	while (value[len] >= ' ' && value[len] < 0x7f && value[len] != '"' && value[len] != '\\')
		len++;
	return len;
}

void kv_quote(struct buf *buf, const char *value)
{
	buf_add(buf, "\"", 1);
	while (*value) {
		size_t plain = plain_len(value), unfit = text_unfit(value + plain), len;
		uint32_t code;

		buf_add(buf, value, plain);
		value += plain;
		for (size_t i = 0; i < unfit; i++)
			buf_printf(buf, "\\x%02X", (unsigned char)*value++);
		if (unfit || !*value)
			continue;
		if (*value == '"' || *value == '\\')
			buf_add(buf, "\\", 1);
		len = text_utf8(value, &code);
		buf_add(buf, value, len);
		value += len;
	}
	buf_add(buf, "\"", 1);
}
