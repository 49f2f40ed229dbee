#include "symbolize/lookup/name_cache_file.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/text.h"
#include "symbolize/names.h"

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
