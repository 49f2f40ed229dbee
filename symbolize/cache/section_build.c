#include <stdlib.h>
#include <string.h>

#include "core/u64map.h"
#include "symbolize/cache/section.h"
#include "symbolize/cache/section_bytes.h"
#include "symbolize/keep.h"

static bool fits_text(const char *text)
{
	return memchr(text, '\0', SYMBOL_TEXT_MAX + 1) != NULL;
}

static bool can_be_held(const struct symbols *symbols)
{
	if (!symbols->count || symbols->count > SYMBOL_CHAIN_MAX)
		return false;
	for (size_t i = 0; i < symbols->count; i++) {
		const struct symbol *symbol = &symbols->list[i];

		if (!symbol->function || !*symbol->function || !fits_text(symbol->function) ||
			(symbol->file && !fits_text(symbol->file)))
			return false;
	}
	return true;
}

static int by_rva_and_age(const void *a, const void *b)
{
	const struct section_answer *x = a, *y = b;

	if (x->rva != y->rva)
		return x->rva < y->rva ? -1 : 1;
	return x->age > y->age ? -1 : x->age < y->age;
}

size_t section_sort(struct section_answer *answers, size_t count)
{
	bool is_sorted = true; /* as it mostly is */
	size_t held = 0, kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (!can_be_held(&answers[i].symbols))
			continue;
		answers[held++] = answers[i];
		is_sorted &= held < 2 || by_rva_and_age(&answers[held - 2], &answers[held - 1]) < 0;
	}
	if (!is_sorted)
		qsort(answers, held, sizeof(*answers), by_rva_and_age);
	for (size_t i = 0; i < held; i++) {
		if (!kept || answers[kept - 1].rva != answers[i].rva)
			answers[kept++] = answers[i];
	}
	return kept;
}

/* A section in the making. */
struct making {
	struct buf symbols, texts;
	struct u64map places; /* hash of a text -> place of the first text that has it */
	size_t answer_count;
};

static void making_init(struct making *making)
{
	*making = (struct making){0};
	u64map_init(&making->places);
}

static void making_release(struct making *making)
{
	buf_release(&making->symbols);
	buf_release(&making->texts);
	u64map_release(&making->places);
}

static size_t making_bytes(const struct making *making)
{
	return making->answer_count * 8 + making->symbols.len + making->texts.len;
}

/* Of texts that have one hash only the first is shared. */
static int put_text(struct making *making, const char *text, uint32_t *place)
{
	size_t len = strlen(text);
	uint32_t known = (uint32_t)making->texts.len;
	int rc = u64map_put(&making->places, check_of((const unsigned char *)text, len), &known);

	if (rc < 0)
		return rc;
	*place = (uint32_t)making->texts.len;
	if (rc == 0 && !strcmp(making->texts.data + known, text)) {
		*place = known;
		return 0;
	}
	return buf_add(&making->texts, text, len + 1);
}

static int put_answer(struct making *making, const struct symbols *symbols)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < symbols->count; i++) {
		const struct symbol *symbol = &symbols->list[i];
		unsigned char bytes[SYMBOL_BYTES];
		uint32_t function, file = NO_TEXT;

		rc = put_text(making, symbol->function, &function);
		if (!rc && symbol->file)
			rc = put_text(making, symbol->file, &file);
		if (rc)
			break;
		put_le32(bytes, function);
		put_le32(bytes + 4, file);
		put_le32(bytes + 8, symbol->line);
		put_le64(bytes + 12, symbol->offset_bytes);
		rc = buf_add(&making->symbols, bytes, sizeof(bytes));
	}
	making->answer_count++;
	return rc;
}

static void put_head(unsigned char *head, const char *key, const struct making *making)
{
	size_t key_len = strlen(key);

	put_le32(head, SECTION_MAGIC);
	put_le32(head + 4, (uint32_t)key_len);
	put_le32(head + 8, (uint32_t)making->answer_count);
	put_le32(head + 12, (uint32_t)(making->symbols.len / SYMBOL_BYTES));
	put_le32(head + 16, (uint32_t)making->texts.len);
	put_le32(head + 20, section_key_hash(key));
	put_le64(head + 24, check_of(head + SECTION_HEAD_BYTES, key_len + making_bytes(making)));
	put_le64(head + HEAD_CHECKED_BYTES, check_of(head, HEAD_CHECKED_BYTES));
}

static int put_section(struct buf *bytes, const char *key, const struct section_answer *answers,
	const struct making *making)
{
	size_t key_len = strlen(key), count = making->answer_count;
	unsigned char *head, *rvas;
	uint32_t first = 0;

	if (buf_reserve(bytes, SECTION_HEAD_BYTES + key_len + making_bytes(making)))
		return -ERR_NOMEM;
	head = (unsigned char *)bytes->data + bytes->len;
	rvas = head + SECTION_HEAD_BYTES + key_len;
	memcpy(head + SECTION_HEAD_BYTES, key, key_len); /* NOLINT: its length is told apart */
	for (size_t i = 0; i < count; i++) {
		put_le32(rvas + i * 4, answers[i].rva);
		put_le32(rvas + (count + i) * 4, first);
		first += (uint32_t)answers[i].symbols.count;
	}
	memcpy(rvas + count * 8, making->symbols.data, making->symbols.len);
	memcpy(rvas + count * 8 + making->symbols.len, making->texts.data, making->texts.len);
	put_head(head, key, making);
	bytes->len += SECTION_HEAD_BYTES + key_len + making_bytes(making);
	return 0;
}

int section_build(struct buf *bytes, const char *key, const struct section_answer *answers,
	size_t count, size_t limit, size_t *taken)
{
	struct making making;
	size_t i = 0;
	int rc = 0;

	making_init(&making);
	while (!rc && i < count && (!i || making_bytes(&making) < limit))
		rc = put_answer(&making, &answers[i++].symbols);
	if (!rc && i)
		rc = put_section(bytes, key, answers, &making);
	making_release(&making);
	if (!rc)
		*taken = i;
	return rc;
}
