#include <string.h>

#include "core/dump/model.h"

static int digit_value(char digit)
{
	return digit >= '0' && digit <= '9' ? digit - '0' :
	       digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 :
					      -1;
}

int content_note_read(const struct kv *kv, struct content_note *note)
{
	const char *data = kv_get(kv, "data");
	uint64_t bits = 64;
	const struct kv_number numbers[] = {
		{"addr", 16, &note->content.addr},
		{"bytes", 10, &note->content.requested_bytes},
		{"bits", 10, &bits},
	};

	*note = (struct content_note){.stack = kv_get(kv, "stack")};
	if (!data || !note->stack || strlen(data) % 2 || strlen(data) > 2 * CONTENT_BYTES_MAX ||
		kv_get_numbers(kv, numbers, 3) || (bits != 32 && bits != 64))
		return -ERR_BAD_LINE;
	note->bits = (unsigned)bits;
	for (; *data; data += 2) {
		int high = digit_value(data[0]), low = digit_value(data[1]);

		if (high < 0 || low < 0)
			return -ERR_BAD_LINE;
		note->content.bytes[note->content.len++] = (unsigned char)(high << 4 | low);
	}
	return 0;
}

uint64_t content_word(const unsigned char *bytes, size_t len, unsigned bits)
{
	uint64_t value = 0;

	for (size_t i = len < bits / 8 ? len : bits / 8; i--;)
		value = value << 8 | bytes[i];
	return value;
}
