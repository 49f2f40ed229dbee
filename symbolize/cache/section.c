#include "symbolize/cache/section.h"

#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "symbolize/cache/section_bytes.h"
#include "symbolize/keep.h"

uint32_t section_key_hash(const char *key)
{
	return (uint32_t)(check_of((const unsigned char *)key, strlen(key)) >> 16);
}

bool section_head_get(const unsigned char *bytes, struct section_head *head)
{
	if (le32(bytes) != SECTION_MAGIC ||
		le64(bytes + HEAD_CHECKED_BYTES) != check_of(bytes, HEAD_CHECKED_BYTES))
		return false;
	*head = (struct section_head){.key_bytes = le32(bytes + 4),
		.answer_count = le32(bytes + 8),
		.symbol_count = le32(bytes + 12),
		.text_bytes = le32(bytes + 16),
		.key_hash = le32(bytes + 20),
		.body_check = le64(bytes + 24)};
	return head->key_bytes <= SECTION_KEY_MAX;
}

static uint64_t body_bytes(const struct section_head *head)
{
	return (uint64_t)head->key_bytes + (uint64_t)head->answer_count * 8 +
	       (uint64_t)head->symbol_count * SYMBOL_BYTES + head->text_bytes;
}

uint64_t section_bytes(const struct section_head *head)
{
	return SECTION_HEAD_BYTES + body_bytes(head);
}

bool section_is_whole(const struct section_head *head, const unsigned char *body)
{
	return check_of(body, (size_t)body_bytes(head)) == head->body_check;
}

/* Makes the texts harmless; false when there is none, one is too long, or the last one has no end. */
static bool take_texts(const struct section *section)
{
	char *text = section->texts, *end = text + section->text_bytes;

	if (!section->text_bytes || end[-1])
		return false;
	while (text < end) {
		size_t len = strlen(text);

		if (len > SYMBOL_TEXT_MAX)
			return false;
		if (!text_is_plain(text, len))
			text_harmless(text);
		text += len + 1;
	}
	return true;
}

/* A place among the texts may lie within one: it is a text too. */
static bool are_symbols_sound(const struct section *section)
{
	for (uint32_t i = 0; i < section->symbol_count; i++) {
		const unsigned char *symbol = section->symbols + (size_t)i * SYMBOL_BYTES;
		uint32_t function = le32(symbol), file = le32(symbol + 4);

		if (function >= section->text_bytes || !section->texts[function] ||
			(file != NO_TEXT && file >= section->text_bytes))
			return false;
	}
	return true;
}

static uint32_t first_symbol(const struct section *section, uint32_t answer)
{
	return answer < section->answer_count ? le32(section->firsts + (size_t)answer * 4) :
						section->symbol_count;
}

static bool are_answers_sound(const struct section *section)
{
	if (!section->answer_count || first_symbol(section, 0))
		return false;
	for (uint32_t i = 0; i < section->answer_count; i++) {
		uint32_t first = first_symbol(section, i), next = first_symbol(section, i + 1);

		if (next <= first || next - first > SYMBOL_CHAIN_MAX ||
			next > section->symbol_count)
			return false;
		if (i && section_rva(section, i) <= section_rva(section, i - 1))
			return false;
	}
	return true;
}

bool section_take(struct section *section, const struct section_head *head, unsigned char *body,
	const char *key)
{
	struct section taken = {.body = body,
		.answer_count = head->answer_count,
		.symbol_count = head->symbol_count,
		.text_bytes = head->text_bytes};

	if (strlen(key) != head->key_bytes || !section_is_whole(head, body) ||
		memcmp(body, key, head->key_bytes) != 0)
		return false;
	taken.rvas = body + head->key_bytes;
	taken.firsts = taken.rvas + (size_t)head->answer_count * 4;
	taken.symbols = taken.firsts + (size_t)head->answer_count * 4;
	taken.texts =
		(char *)body + (taken.symbols - body) + (size_t)head->symbol_count * SYMBOL_BYTES;
	if (!take_texts(&taken) || !are_symbols_sound(&taken) || !are_answers_sound(&taken))
		return false;
	*section = taken;
	return true;
}

void section_release(struct section *section)
{
	free(section->body);
	*section = (struct section){0};
}

uint32_t section_rva(const struct section *section, uint32_t index)
{
	return le32(section->rvas + (size_t)index * 4);
}

uint32_t section_find(const struct section *section, uint32_t rva)
{
	uint32_t low = 0, high = section->answer_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		uint32_t found = section_rva(section, middle);

		if (found == rva)
			return middle;
		if (found < rva)
			low = middle + 1;
		else
			high = middle;
	}
	return section->answer_count;
}

static const char *texts_in(struct section *section, struct arena *arena)
{
	if (section->arena != arena) {
		section->kept = arena_text(arena, section->texts, section->text_bytes);
		section->arena = section->kept ? arena : NULL;
	}
	return section->kept;
}

int section_answer(
	struct section *section, uint32_t index, struct arena *arena, struct symbols *found)
{
	uint32_t first = first_symbol(section, index);
	size_t count = first_symbol(section, index + 1) - first;
	const char *texts = texts_in(section, arena);
	struct symbol *list = texts ? arena_alloc(arena, count * sizeof(*list)) : NULL;

	if (!list)
		return -ERR_NOMEM;
	for (size_t i = 0; i < count; i++) {
		const unsigned char *symbol = section->symbols + (first + i) * SYMBOL_BYTES;
		uint32_t file = le32(symbol + 4);

		list[i] = (struct symbol){.function = texts + le32(symbol),
			.file = file == NO_TEXT ? NULL : texts + file,
			.line = le32(symbol + 8),
			.offset_bytes = le64(symbol + 12)};
	}
	*found = (struct symbols){.list = list, .count = count};
	return 0;
}
