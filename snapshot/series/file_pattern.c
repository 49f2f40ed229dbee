#include "snapshot/series/file_pattern.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/os.h"
#include "core/base/parse.h"
#include "core/base/text.h"
#include "core/io/file.h"

#define NUMBER_DIGITS_MIN 6 /* zeros fill them up */
#define NUMBER_DIGITS_MAX 12 /* of PATTERN_NUMBER_MAX */
#define AGAIN_DIGITS_MAX 6
#define WORD_BYTES 64

enum piece_kind {
	PIECE_END,
	PIECE_TEXT,
	PIECE_WORD,
	PIECE_WRONG,
};

struct piece {
	enum piece_kind kind;
	unsigned word;
	const char *text; /* what stands for itself */
	size_t text_len;
	size_t len; /* of the piece in the pattern */
};

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* text[len] is word, in any case of letters. */
static bool is_word(const char *text, size_t len, const char *word)
{
	size_t same = 0;

	while (same < len && word[same] && lower(text[same]) == word[same])
		same++;
	return same == len && !word[same];
}

/* The file's name alone, and its length without ".exe". */
static const char *name_of(const char *program, size_t *len)
{
	static const char exe[] = ".exe";
	const char *name = program + strlen(program);

	while (name > program && !strchr("\\/:", name[-1]))
		name--;
	*len = strlen(name);
	if (*len > strlen(exe) && is_word(name + *len - strlen(exe), strlen(exe), exe))
		*len -= strlen(exe);
	return name;
}

bool program_name_is_device(const char *name, size_t name_len)
{
	static const char *const words[] = {"con", "prn", "aux", "nul", "conin$", "conout$"};
	static const char *const numbers[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9",
		"\xc2\xb9", "\xc2\xb2", "\xc2\xb3"};
	const char *dot = memchr(name, '.', name_len);
	size_t len = dot ? (size_t)(dot - name) : name_len;

	while (len && name[len - 1] == ' ')
		len--;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (is_word(name, len, words[i]))
			return true;
	}
	if (len < 4 || (!is_word(name, 3, "com") && !is_word(name, 3, "lpt")))
		return false;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		if (is_word(name + 3, len - 3, numbers[i]))
			return true;
	}
	return false;
}

/* What no name may hold on Windows, and what is no text; dots and blanks at the end, which Windows drops (and
 * two dots are another folder); and a dash at the beginning, which would be an option where a shell puts the
 * name in the place of a pattern. */
static void replace_unfit(char *name)
{
	for (char *at = name; *at;) {
		uint32_t code;
		size_t unfit = text_unfit(at);
		size_t len = unfit ? unfit : text_utf8(at, &code);

		if (unfit || strchr("<>:\"/\\|?*", *at))
			memset(at, '_', len);
		at += len;
	}
	for (size_t len = strlen(name); len && strchr(". ", name[len - 1]); len--)
		name[len - 1] = '_';
	if (*name == '-')
		*name = '_';
}

static int add_program_name(struct buf *to, const char *program)
{
	size_t len;
	const char *name = name_of(program, &len);
	struct buf fit;
	int rc;

	buf_init(&fit);
	rc = len ? buf_add(&fit, name, len) : buf_add_text(&fit, "_");
	if (!rc) {
		replace_unfit(fit.data);
		rc = buf_printf(
			to, "%s%s", program_name_is_device(fit.data, fit.len) ? "_" : "", fit.data);
	}
	buf_release(&fit);
	return rc;
}

static bool is_packed_name(const char *path)
{
	size_t len = strlen(path);
	const char *end = path + len;

	return len > 3 && end[-3] == '.' && (end[-2] | 0x20) == 'g' && (end[-1] | 0x20) == 'z';
}

int packed_name_add(struct buf *name, const char *path)
{
	bool is_kept = !strcmp(path, "-") || os_is_special(path) || is_packed_name(path);
	int rc = buf_add_text(name, path);

	return rc || is_kept ? rc : buf_add_text(name, ".gz");
}

static struct piece pattern_next(const char *pattern)
{
	static const struct {
		const char *text;
		unsigned word;
	} words[] = {{"{name}", PATTERN_NAME}, {"{pid}", PATTERN_PID}, {"{time}", PATTERN_TIME},
		{"{n}", PATTERN_NUMBER}};
	size_t len = strcspn(pattern, "{");

	if (len)
		return (struct piece){PIECE_TEXT, .text = pattern, .text_len = len, .len = len};
	if (!*pattern)
		return (struct piece){PIECE_END};
	if (pattern[1] == '{')
		return (struct piece){PIECE_TEXT, .text = pattern, .text_len = 1, .len = 2};
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		len = strlen(words[i].text);
		if (!strncmp(pattern, words[i].text, len))
			return (struct piece){PIECE_WORD, .word = words[i].word, .len = len};
	}
	return (struct piece){PIECE_WRONG, .len = strcspn(pattern, "}")};
}

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

static bool has_digits(const char *text, size_t count)
{
	return strspn(text, "0123456789") >= count;
}

static bool number_fits(const char *last, const char *name, uint64_t *number)
{
	uint64_t none;

	for (size_t digits = NUMBER_DIGITS_MIN; digits <= NUMBER_DIGITS_MAX; digits++) {
		char copy[NUMBER_DIGITS_MAX + 1];

		if (!has_digits(name, digits) || (digits > NUMBER_DIGITS_MIN && *name == '0'))
			return false;
		if (!file_pattern_fits(last, name + digits, &none))
			continue;
		memcpy(copy, name, digits);
		copy[digits] = '\0';
		*number = strtoull(copy, NULL, 10);
		return true;
	}
	return false;
}

/* 20261120T102548Z, and perhaps "_2", which may as well be what stands behind it in the pattern. */
static bool time_fits(const char *last, const char *name, uint64_t *number)
{
	if (!has_digits(name, 8) || name[8] != 'T' || !has_digits(name + 9, 6) || name[15] != 'Z')
		return false;
	name += strlen("20261120T102548Z");
	if (file_pattern_fits(last, name, number))
		return true;
	if (name[0] != '_' || name[1] == '0')
		return false;
	for (size_t digits = 1; digits <= AGAIN_DIGITS_MAX && has_digits(name + 1, digits);
		digits++) {
		if (file_pattern_fits(last, name + 1 + digits, number))
			return true;
	}
	return false;
}

bool file_pattern_fits(const char *last, const char *name, uint64_t *number)
{
	struct piece piece;

	for (; (piece = pattern_next(last)).kind == PIECE_TEXT; last += piece.len) {
		size_t len = start_len(name, piece.text, piece.text_len);

		if (!len)
			return false;
		name += len;
	}
	*number = 0;
	if (piece.kind == PIECE_END)
		return !*name;
	last += piece.len;
	return piece.word == PATTERN_TIME ? time_fits(last, name, number) :
					    number_fits(last, name, number);
}

const char *file_pattern_last(const char *pattern)
{
	const char *last = pattern + strlen(pattern);

	while (last > pattern && !strchr(folder_rules.separators, last[-1]))
		last--;
	return last;
}

/* The system would give the file another name, and none of its series would be known again. */
static bool is_changed(const char *last)
{
	return *last && strchr(folder_rules.dropped, last[strlen(last) - 1]);
}

/* Behind a drive's letter alone a colon is that of a path; any other begins the name of a stream in a file. */
static bool has_stream(const char *pattern)
{
	const bool is_full = !strncmp(pattern, "\\\\?\\", 4) || !strncmp(pattern, "\\\\.\\", 4);
	const char *drive = is_full ? pattern + 4 : pattern;
	const char letter = (char)(*drive | 0x20);
	const bool has_drive = letter >= 'a' && letter <= 'z' && drive[1] == ':';

	return strchr(has_drive ? drive + 2 : drive, ':');
}

/* Words stand for what no device is called. */
static bool is_device(const char *last)
{
	const struct file_names any = {.program = "program", .pid = 12};
	struct buf name;
	bool is;

	buf_init(&name);
	is = !file_pattern_add(&name, last, &any) && name.data &&
	     program_name_is_device(name.data, name.len);
	buf_release(&name);
	return is;
}

/* What the system makes of the names of a series, where it has such rules. */
static int check_rules(const char *pattern, struct err *err)
{
	const char *last = file_pattern_last(pattern);

	if (!folder_rules.has_devices)
		return 0;
	if (has_stream(pattern))
		return err_set(err, ERR_USAGE, pattern,
			"it has a colon, which names a part of a file but for that behind a "
			"drive's letter");
	if (is_device(last))
		return err_set(err, ERR_USAGE, pattern,
			"Windows takes it for a device, whatever stands behind the dot");
	return 0;
}

int file_pattern_check(const char *pattern, unsigned *words, struct err *err)
{
	const char *last = file_pattern_last(pattern), *at = pattern;
	unsigned found = 0;
	struct piece piece;

	for (; (piece = pattern_next(at)).kind != PIECE_END; at += piece.len) {
		if (piece.kind == PIECE_WRONG)
			return err_set(err, ERR_USAGE, pattern,
				at[piece.len] ? "words in braces are {name}, {pid}, and in a "
						"series {time} and {n}; {{ is a brace" :
						"a brace is not closed; {{ stands for one");
		if (at < last && piece.word & (PATTERN_TIME | PATTERN_NUMBER))
			return err_set(err, ERR_USAGE, pattern,
				"{time} and {n} are for the file's name, not for a folder's");
		if (found & piece.word & (PATTERN_TIME | PATTERN_NUMBER))
			return err_set(
				err, ERR_USAGE, pattern, "{time} and {n} may each be there once");
		found |= piece.word;
	}
	if (found & (PATTERN_TIME | PATTERN_NUMBER) && is_changed(last))
		return err_set(err, ERR_USAGE, pattern,
			"it ends in a dot or a blank, which Windows leaves out of names");
	if (found && check_rules(pattern, err))
		return -ERR_USAGE;
	*words = found;
	return 0;
}

/* Out of the years that have four digits it is the beginning of all time. */
static void time_text(const struct file_names *names, char text[WORD_BYTES])
{
	char date[DATE_TEXT_BYTES], again[16] = "";

	if (strlen(date_text(names->time_ms, date)) < strlen("2026-11-20T10:25:48.123Z"))
		date_text(0, date);
	if (names->again)
		snprintf(again, sizeof(again), "_%u", names->again);
	snprintf(text, WORD_BYTES, "%.4s%.2s%.5s%.2s%.2sZ%s", date, date + 5, date + 8, date + 14,
		date + 17, again);
}

static void word_text(unsigned word, const struct file_names *names, char text[WORD_BYTES])
{
	if (word == PATTERN_TIME)
		time_text(names, text);
	else if (word == PATTERN_PID)
		snprintf(text, WORD_BYTES, "%" PRIu32, names->pid);
	else
		snprintf(text, WORD_BYTES, "%0*" PRIu64, NUMBER_DIGITS_MIN, names->number);
}

static int add_word(struct buf *path, unsigned word, const struct file_names *names)
{
	char text[WORD_BYTES];

	if (word == PATTERN_NAME)
		return add_program_name(path, names->program);
	word_text(word, names, text);
	return buf_add_text(path, text);
}

int file_pattern_add(struct buf *path, const char *pattern, const struct file_names *names)
{
	struct piece piece;
	int rc = 0;

	for (; !rc && (piece = pattern_next(pattern)).kind != PIECE_END; pattern += piece.len)
		rc = piece.kind == PIECE_WORD ? add_word(path, piece.word, names) :
						buf_add(path, piece.text, piece.text_len);
	return rc;
}

/* What a program is called may hold braces. */
static int bind_name(struct buf *bound, const char *program)
{
	struct buf name;
	int rc;

	buf_init(&name);
	rc = add_program_name(&name, program);
	for (const char *at = name.data; !rc && *at; at++)
		rc = *at == '{' ? buf_add_text(bound, "{{") : buf_add(bound, at, 1);
	buf_release(&name);
	return rc;
}

int file_pattern_bind(struct buf *bound, const char *pattern, const char *program, uint32_t pid)
{
	struct piece piece;
	int rc = 0;

	for (; !rc && (piece = pattern_next(pattern)).kind != PIECE_END; pattern += piece.len) {
		if (piece.word == PATTERN_NAME)
			rc = bind_name(bound, program);
		else if (piece.word == PATTERN_PID)
			rc = buf_printf(bound, "%" PRIu32, pid);
		else
			rc = buf_add(bound, pattern, piece.len);
	}
	return rc;
}
