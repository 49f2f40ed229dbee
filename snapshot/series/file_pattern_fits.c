/* Reading a file's name back, by the pattern that it was made of. */
#include <string.h>

#include "core/date.h"
#include "core/folder.h"
#include "core/kv.h"
#include "core/text.h"
#include "snapshot/series/file_pattern.h"
#include "snapshot/series/pattern_piece.h"

/* What was read so far. A word that stands twice means the same. */
struct reading {
	struct file_names names;
	unsigned known;
};

static bool fits(const char *last, const char *name, struct reading *reading);

/* How many bytes of name are text[len]; 0: it does not start so. What is no UTF-8 is compared as bytes. */
static size_t start_len(const char *name, const char *text, size_t len)
{
	const char *at = name, *end = text + len;

	while (text < end) {
		uint32_t wanted, found;
		size_t wanted_len = text_utf8(text, &wanted), found_len = text_utf8(at, &found);

		if (wanted_len && found_len) {
			if (!folder_same_letter(wanted, found))
				return 0;
		} else if (*at != *text) {
			return 0; /* also at the end of name */
		} else {
			wanted_len = found_len = 1;
		}
		text += wanted_len;
		at += found_len;
	}
	return (size_t)(at - name);
}

/* A number in so many digits, the first of them 0 only when they are min. */
static bool take_number(const char *text, size_t digits, size_t min, uint64_t *number)
{
	char copy[PATTERN_DIGITS_MAX + 1];

	if (strspn(text, "0123456789") < digits || (digits > min && *text == '0'))
		return false;
	memcpy(copy, text, digits);
	copy[digits] = '\0';
	return !kv_number(copy, 10, number);
}

/* How much a word that is known takes of name, in bytes; 0: it is not there. */
static size_t known_len(const char *name, unsigned word, const struct file_names *names)
{
	char text[PATTERN_WORD_BYTES];

	pattern_word_text(word, names, text);
	return start_len(name, text, strlen(text));
}

/* The rest fits when the word takes len bytes. */
static bool rest_fits(const char *last, const char *name, size_t len, struct reading *reading)
{
	struct reading more = *reading;

	if (!fits(last, name + len, &more))
		return false;
	*reading = more;
	return true;
}

static bool number_fits(const char *last, const char *name, struct reading *reading)
{
	struct reading more = *reading;

	more.known |= PATTERN_NUMBER;
	for (size_t digits = PATTERN_DIGITS_MIN; digits <= PATTERN_DIGITS_MAX; digits++) {
		if (take_number(name, digits, PATTERN_DIGITS_MIN, &more.names.number) &&
			rest_fits(last, name, digits, &more)) {
			*reading = more;
			return true;
		}
	}
	return false;
}

/* "_2" behind a time may as well be what stands behind it in the pattern. */
static bool again_fits(const char *last, const char *name, struct reading *reading)
{
	struct reading more = *reading;
	uint64_t again;

	if (rest_fits(last, name, 0, reading))
		return true;
	for (size_t digits = 1; *name == '_' && digits <= PATTERN_AGAIN_DIGITS_MAX; digits++) {
		if (!take_number(name + 1, digits, 0, &again) || again < 2)
			continue;
		more.names.again = (unsigned)again;
		if (rest_fits(last, name, digits + 1, &more)) {
			*reading = more;
			return true;
		}
	}
	return false;
}

/* 20261120T102548Z */
static bool time_fits(const char *last, const char *name, struct reading *reading)
{
	char date[sizeof("2026-11-20T10:25:48Z")];
	size_t len = strlen("20261120T102548Z");

	if (strnlen(name, len) < len || name[8] != 'T' || name[15] != 'Z')
		return false;
	snprintf(date, sizeof(date), "%.4s-%.2s-%.5s:%.2s:%.2sZ", name, name + 4, name + 6,
		name + 11, name + 13);
	if (date_parse(date, &reading->names.time_ms))
		return false;
	reading->known |= PATTERN_TIME;
	return again_fits(last, name + len, reading);
}

static bool word_fits(const char *last, unsigned word, const char *name, struct reading *reading)
{
	size_t len;

	if (!(reading->known & word))
		return word == PATTERN_TIME ? time_fits(last, name, reading) :
					      number_fits(last, name, reading);
	len = known_len(name, word, &reading->names);
	return len && fits(last, name + len, reading);
}

static bool fits(const char *last, const char *name, struct reading *reading)
{
	struct pattern_piece piece;

	for (; (piece = pattern_next(last)).kind == PIECE_TEXT; last += piece.len) {
		size_t len = start_len(name, piece.text, piece.text_len);

		if (!len)
			return false;
		name += len;
	}
	if (piece.kind == PIECE_END)
		return !*name;
	return word_fits(last + piece.len, piece.word, name, reading);
}

bool file_pattern_fits(const char *last, const char *name, struct file_names *names)
{
	struct reading reading = {.known = 0};

	if (!fits(last, name, &reading))
		return false;
	*names = reading.names;
	return true;
}
