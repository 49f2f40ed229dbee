#include "core/dump/kv.h"

#include <string.h>

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

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 99;
}

int kv_number(const char *text, int base, uint64_t *value)
{
	uint64_t sum = 0;

	if (!*text)
		return -ERR_BAD_LINE;
	for (; *text; text++) {
		unsigned d = (unsigned)digit(*text);

		if (d >= (unsigned)base || sum > (UINT64_MAX - d) / (unsigned)base)
			return -ERR_BAD_LINE;
		sum = sum * (unsigned)base + d;
	}
	*value = sum;
	return 0;
}

struct kv_cursor {
	const char *at, *end;
};

/* One \-escape at from->at; adds the byte it stands for. */
static int escape(struct kv_cursor *from, struct buf *to)
{
	const char *at = from->at;
	char byte;

	if (from->end - at >= 2 && (at[1] == '"' || at[1] == '\\')) {
		from->at += 2;
		return buf_add(to, at + 1, 1);
	}
	if (from->end - at < 4 || at[1] != 'x' || digit(at[2]) > 15 || digit(at[3]) > 15)
		return -ERR_BAD_LINE;
	byte = (char)(digit(at[2]) << 4 | digit(at[3]));
	from->at += 4;
	return byte ? buf_add(to, &byte, 1) : -ERR_BAD_LINE;
}

static int quoted(struct kv_cursor *from, struct buf *to)
{
	int rc = 0;

	from->at++;
	while (!rc && from->at < from->end && *from->at != '"')
		rc = *from->at == '\\' ? escape(from, to) : buf_add(to, from->at++, 1);
	if (rc)
		return rc;
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
	return buf_add(to, start, (size_t)(from->at - start));
}

static int pair(struct kv *kv, struct kv_cursor *from)
{
	size_t left = from->at < from->end ? (size_t)(from->end - from->at) : 0;
	const char *equals = left <= PTRDIFF_MAX ? memchr(from->at, '=', left) : NULL;
	size_t key_len = equals ? (size_t)(equals - from->at) : 0;
	int rc;

	if (!key_len || memchr(from->at, ' ', key_len) || kv->count == KV_MAX)
		return -ERR_BAD_LINE;
	kv->key_at[kv->count] = kv->words.len;
	rc = buf_add(&kv->words, from->at, key_len);
	if (!rc)
		rc = buf_add(&kv->words, "", 1);
	if (rc)
		return rc;
	kv->value_at[kv->count] = kv->words.len;
	from->at = equals + 1;
	if (from->at < from->end && *from->at == '"')
		rc = quoted(from, &kv->words);
	else
		rc = bare(from, &kv->words);
	if (!rc)
		rc = buf_add(&kv->words, "", 1);
	kv->count += !rc;
	return rc;
}

int kv_parse(struct kv *kv, const char *text, size_t len)
{
	struct kv_cursor from = {text, text + len};
	int rc = 0;

	kv->count = 0;
	buf_clear(&kv->words);
	for (;;) {
		while (from.at < from.end && *from.at == ' ')
			from.at++;
		if (rc || from.at == from.end)
			return rc;
		rc = pair(kv, &from);
	}
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

int kv_get_u32(const struct kv *kv, const char *key, int base, uint32_t *value)
{
	uint64_t wide = *value;
	int rc = kv_get_number(kv, key, base, &wide);

	if (!rc && wide > UINT32_MAX)
		rc = -ERR_BAD_LINE;
	if (!rc)
		*value = (uint32_t)wide;
	return rc;
}

/* One character of UTF-8, and goes on behind it. */
static int add_fit(struct buf *buf, const char **text)
{
	uint32_t code;
	size_t len = text_utf8(*text, &code);
	int rc = 0;

	if (code == '"' || code == '\\')
		rc = buf_add(buf, "\\", 1);
	if (!rc)
		rc = buf_add(buf, *text, len);
	*text += len;
	return rc;
}

/* ASCII from the blank on, but for what is quoted. */
static const bool is_plain[256] = {
#define X4(n) [n] = 1, 1, 1, 1
#define X8(n) X4(n), 1, 1, 1, 1
	[' '] = 1,
	['!'] = 1,
	[0x23] = 1,
	X4(0x24),
	X8(0x28),
	X8(0x30),
	X8(0x38),
	X8(0x40),
	X8(0x48),
	X8(0x50),
	X4(0x58),
	[0x5d] = 1,
	1,
	1,
	X8(0x60),
	X8(0x68),
	X8(0x70),
	X4(0x78),
	[0x7c] = 1,
	1,
	1,
#undef X8
#undef X4
};

size_t kv_plain_len(const char *value)
{
	size_t len = 0;

	while (is_plain[(unsigned char)value[len]])
		len++;
	return len;
}

int kv_quote(struct buf *buf, const char *value)
{
	int rc = buf_add(buf, "\"", 1);

	while (*value && !rc) {
		size_t plain = kv_plain_len(value), unfit;

		rc = buf_add(buf, value, plain);
		value += plain;
		if (!*value || rc)
			break;
		unfit = text_unfit(value);
		for (size_t i = 0; i < unfit && !rc; i++)
			rc = buf_printf(buf, "\\x%02X", (unsigned char)value[i]);
		value += unfit;
		if (!unfit)
			rc = add_fit(buf, &value);
	}
	return rc ? rc : buf_add(buf, "\"", 1);
}
