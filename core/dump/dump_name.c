/* Recognizes named frames: a module, a function and an offset, as other programs print them. Text
 * that begins like a list, a table or a quotation is not a frame. */
#include <string.h>

#include "core/base/text.h"
#include "core/dump/frame_columns.h"
#include "core/dump/pasted.h"
#include "core/dump/scanner.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

bool pasted_is_marked(const char *text, size_t len)
{
	size_t digits = 0;
	char start[4] = {0};
	uint32_t code = 0;

	if (!len)
		return false;
	memcpy(start, text, len < sizeof(start) ? len : sizeof(start) - 1);
	while (digits < len && text[digits] >= '0' && text[digits] <= '9')
		digits++;
	if (digits && len - digits > 2 && (text[digits] == '.' || text[digits] == ')'))
		return is_blank(text[digits + 1]);
	/* 0x8140: a blank in CP932 */
	if (strchr("|*-#>&\\\"", *start) || !strncmp(start, "\x81\x40", 2))
		return true;
	(void)text_utf8(start, &code);
	/* punctuation, arrows, boxes and symbols */
	return (code >= 0x2000 && code < 0x2c00) || (code >= 0x3000 && code < 0x3040);
}

/* Returns the start of " : ADDRESS" at the end of a string, or `end` if there is no such suffix. */
static const char *addr_start(const char *at, const char *end)
{
	const char *digits = end;

	while (digits > at && hex_digits[(unsigned char)digits[-1]])
		digits--;
	return digits < end && digits - at > 3 && !memcmp(digits - 3, " : ", 3) ? digits - 3 : end;
}

/* Returns true for "MODULE!FUNCTION+0x12", "MODULE!FUNCTION+12" and "MODULE+0x12". "MODULE+12" is
 * accepted only if the address of the frame is known. Each form may end with " : ADDRESS". */
static bool is_place(const char *at, const char *end, bool has_addr)
{
	const char *addr = addr_start(at, end), *plus, *digits, *bang;

	has_addr |= addr < end;
	end = addr;

	for (plus = end; plus > at && plus[-1] != '+'; plus--)
		;
	if (plus < at + 2)
		return false;
	digits = plus;
	plus--;
	bang = memchr(at, '!', (size_t)(plus - at));
	if (!SCAN_MATCH(&digits, end, "0x") && !bang && !has_addr)
		return false;
	if (digits == end || bang == at || bang == plus - 1)
		return false;
	while (digits < end && hex_digits[(unsigned char)*digits])
		digits++;
	return digits == end;
}

/* maximum number of attempts; each one scans the text before the "(" again */
#define FILES_TRIED 64

bool scan_is_name(const char *at, const char *end)
{
	const char *from = at;
	unsigned tries = 0;
	size_t columns_len;
	bool has_addr;

	if (at < end && (pasted_is_marked(at, (size_t)(end - at)) ||
				frame_columns_are_strange(at, (size_t)(end - at))))
		return false;
	while (from < end && (hex_digits[(unsigned char)*from] || *from == '`'))
		from++;
	if (SCAN_MATCH(&from, end, " bytes in ") || SCAN_MATCH(&from, end, " bytes + "))
		return false;
	columns_len = frame_columns_find(at, (size_t)(end - at)).len;
	has_addr = columns_len != 0;
	at += columns_len;
	if (is_place(at, end, has_addr))
		return true;
	if (at == end || (end[-1] != ')' && end[-1] != ']'))
		return false;
	for (from = at + 1; from < end && tries < FILES_TRIED; from++) {
		if (*from != (end[-1] == ')' ? '(' : '[') || from[-1] != ' ')
			continue;
		tries++;
		if (is_place(at, from - 1, has_addr))
			return true;
	}
	return false;
}
