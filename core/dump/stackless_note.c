/* Groups of blocks without a stack: the texts at the start of blocks, and the notes. */
#include "core/dump/stackless_note.h"

#include <string.h>

#define TEXT_MIN 4 /* fewer characters are more often a number than a text */

static bool is_text(unsigned character)
{
	return character >= 0x20 && character < 0x7f;
}

uint64_t stackless_text(const unsigned char *bytes, size_t len, unsigned step)
{
	uint64_t word = 0;
	unsigned count = 0;

	for (; count < STACKLESS_TEXT_MAX && (count + 1) * step <= len; count++) {
		unsigned character = bytes[count * step] |
				     (step == 2 ? (unsigned)bytes[count * step + 1] << 8 : 0);

		if (!character)
			break;
		if (!is_text(character))
			return 0;
		word |= (uint64_t)character << 8 * count;
	}
	return count < TEXT_MIN ? 0 : word;
}

void stackless_text_get(uint64_t word, char text[STACKLESS_TEXT_MAX + 1])
{
	for (unsigned i = 0; i <= STACKLESS_TEXT_MAX; i++)
		text[i] = (char)(word >> 8 * i);
}

/* Parses the text of a note. Returns 0 or -ERR_BAD_LINE. */
static int text_read(const char *text, uint64_t *word)
{
	const size_t len = strlen(text);

	*word = len <= STACKLESS_TEXT_MAX ? stackless_text((const unsigned char *)text, len, 1) : 0;
	return *word && *word >> 8 * (len - 1) ? 0 : -ERR_BAD_LINE;
}

int stackless_note_read(const struct kv *kv, struct stackless_group *group, uint64_t *heap)
{
	uint64_t to = 0, lost = 0, most = 0;
	const char *text = kv_get(kv, "text"), *wide = kv_get(kv, "wide-text");
	const struct kv_number numbers[] = {
		{"addr", 16, heap},
		{"bytes", 10, &group->bytes},
		{"bytes-to", 10, &most},
		{"to", 16, &to},
		{"blocks", 10, &group->totals.block_count},
		{"requested", 10, &group->totals.requested_bytes},
		{"overhead", 10, &group->totals.overhead_bytes},
		{"lost", 10, &lost},
	};
	int rc;

	*group = (struct stackless_group){0};
	*heap = 0;
	rc = kv_get_numbers(kv, numbers, sizeof(numbers) / sizeof(*numbers));
	if (rc || !group->totals.block_count || group->bytes >> 48 || most >> 49 ||
		(to != 0) + (text != NULL) + (wide != NULL) > 1)
		return -ERR_BAD_LINE;
	group->is_range = most != 0;
	group->is_lost = lost != 0;
	if (group->is_range && (to || text || wide || most + 1 != 2 * group->bytes))
		return -ERR_BAD_LINE;
	if (to) {
		group->kind = STACKLESS_ADDRESS;
		group->word = to;
	} else if (text || wide) {
		group->kind = text ? STACKLESS_TEXT : STACKLESS_WIDE;
		return text_read(text ? text : wide, &group->word);
	}
	return 0;
}
