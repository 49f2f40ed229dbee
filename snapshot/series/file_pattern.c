/* Patterns for file names: their expansion for a process and a snapshot, and the matching of
 * existing names. */
#include "snapshot/series/file_pattern.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/os.h"
#include "core/base/parse.h"
#include "core/base/text.h"
#include "core/io/file.h"
#include "core/io/out.h"

#define NUMBER_DIGITS_MIN 6 /* shorter numbers are padded with zeros */
#define NUMBER_DIGITS_MAX 12 /* number of digits of PATTERN_NUMBER_MAX */
#define AGAIN_DIGITS_MAX 6

#define WORD_UNKNOWN 16u

/* Returns the file's own name. Stores its length without ".exe". */
static const char *name_of(const char *program, size_t *len)
{
	static const char exe[] = ".exe";
	const char *name = program + strlen(program);

	while (name > program && !strchr("\\/:", name[-1]))
		name--;
	*len = strlen(name);
	if (*len > strlen(exe) &&
		text_same(name + *len - strlen(exe), strlen(exe), exe, strlen(exe)))
		*len -= strlen(exe);
	return name;
}

/* Returns true if, on Windows, the name denotes a device in every folder, regardless of its
 * extension ("Naming Files, Paths, and Namespaces", Microsoft Learn). */
static bool program_name_is_device(const char *name, size_t name_len)
{
	static const char *const words[] = {"con", "prn", "aux", "nul", "conin$", "conout$"};
	static const char *const numbers[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9",
		"\xc2\xb9", "\xc2\xb2", "\xc2\xb3"};
	const char *dot = memchr(name, '.', name_len);
	size_t len = dot ? (size_t)(dot - name) : name_len;

	while (len && name[len - 1] == ' ')
		len--;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (text_same(name, len, words[i], strlen(words[i])))
			return true;
	}
	if (len < 4 || (!text_same(name, 3, "com", 3) && !text_same(name, 3, "lpt", 3)))
		return false;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		if (text_same(name + 3, len - 3, numbers[i], strlen(numbers[i])))
			return true;
	}
	return false;
}

/*
 * Replaces everything that is unfit for a file name:
 * - Characters that Windows names cannot contain, and bytes that are not text.
 * - Trailing dots and blanks: Windows drops them, and two dots are the parent folder.
 * - A leading dash: if a shell expands a pattern, a program would treat the name as an option.
 */
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

/* If `binds` is set, the result is another pattern, so braces are doubled. */
static void add_program_name(struct buf *to, const char *program, bool binds)
{
	size_t len;
	const char *name = name_of(program, &len);
	struct buf fit;

	buf_init(&fit);
	buf_add(&fit, len ? name : "_", len ? len : 1);
	replace_unfit(fit.data);
	if (program_name_is_device(fit.data, fit.len))
		buf_add_text(to, "_");
	for (const char *at = fit.data; *at; at++)
		buf_add_text(to, binds && *at == '{' ? "{{" : (const char[]){*at, '\0'});
	buf_release(&fit);
}

void packed_name_add(struct buf *name, const char *path)
{
	buf_add_text(name, path);
	if (strcmp(path, "-") != 0 && !os_is_special(path) && !out_is_packed_name(path))
		buf_add_text(name, ".gz");
}

/* Returns the length of the pattern's first piece: a word (or WORD_UNKNOWN), or one literal
 * character. *word is 0 for a character. "{{" is a literal brace. */
static size_t first_piece(const char *pattern, unsigned *word)
{
	static const struct {
		const char *text;
		unsigned word;
	} words[] = {{"{name}", PATTERN_NAME}, {"{pid}", PATTERN_PID}, {"{time}", PATTERN_TIME},
		{"{n}", PATTERN_NUMBER}};
	uint32_t code;
	size_t len = text_utf8(pattern, &code);

	*word = 0;
	if (*pattern != '{')
		return len ? len : 1;
	if (pattern[1] == '{')
		return 2;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		len = strlen(words[i].text);
		*word = words[i].word;
		if (!strncmp(pattern, words[i].text, len))
			return len;
	}
	*word = WORD_UNKNOWN;
	return strcspn(pattern, "}");
}

/* Returns the length of the first character in `name` if `pattern` begins with the same character;
 * otherwise 0. Invalid UTF-8 is compared byte by byte. */
static size_t same_len(const char *pattern, const char *name)
{
	uint32_t wanted, found;
	size_t wanted_len = text_utf8(pattern, &wanted), len = text_utf8(name, &found);

	if (wanted_len && len)
		return folder_same_letter(wanted, found) ? len : 0;
	return !wanted_len && !len && *pattern == *name;
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

/* Matches a time such as 20261120T102548Z, possibly followed by "_2". The "_2" may also match the
 * rest of the pattern. */
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
	size_t len, same;
	unsigned word;

	for (*number = 0; *last; last += len, name += same) {
		len = first_piece(last, &word);
		if (word == PATTERN_TIME)
			return time_fits(last + len, name, number);
		if (word)
			return number_fits(last + len, name, number);
		same = *name ? same_len(last, name) : 0;
		if (!same)
			return false;
	}
	return !*name;
}

const char *file_pattern_last(const char *pattern)
{
	const char *last = pattern + strlen(pattern);

	while (last > pattern && !strchr(folder_separators, last[-1]))
		last--;
	return last;
}

int file_pattern_check(const char *pattern, unsigned *words, struct err *err)
{
	const char *last = file_pattern_last(pattern), *at = pattern;
	const unsigned once = PATTERN_TIME | PATTERN_NUMBER;
	unsigned found = 0, word;

	while (*at) {
		size_t len = first_piece(at, &word);

		if (word == WORD_UNKNOWN)
			return err_set(err, ERR_USAGE, pattern,
				at[len] ? "words in braces are {name}, {pid}, and in a "
					  "series {time} and {n}; {{ is a brace" :
					  "a brace is not closed; {{ stands for one");
		if (at < last && word & once)
			return err_set(err, ERR_USAGE, pattern,
				"{time} and {n} are for the file's name, not for a folder's");
		if (found & word & once)
			return err_set(
				err, ERR_USAGE, pattern, "{time} and {n} may each occur once");
		found |= word;
		at += len;
	}
	*words = found;
	return 0;
}

/* Adds the time. A year that does not have four digits is replaced by 1970-01-01. */
static void add_time(struct buf *path, const struct file_names *names)
{
	char date[DATE_TEXT_BYTES];

	if (strlen(date_text(names->time_ms, date)) < strlen("2026-11-20T10:25:48.123Z"))
		date_text(0, date);
	buf_printf(path, "%.4s%.2s%.5s%.2s%.2sZ", date, date + 5, date + 8, date + 14, date + 17);
	if (names->again)
		buf_printf(path, "_%u", names->again);
}

/* If `binds` is set, the result is another pattern, in which {time}, {n} and "{{" are not
 * expanded. */
static void expand(struct buf *to, const char *pattern, const struct file_names *names, bool binds)
{
	unsigned word;

	for (size_t len; *pattern; pattern += len) {
		len = first_piece(pattern, &word);
		if (word == PATTERN_NAME)
			add_program_name(to, names->program, binds);
		else if (word == PATTERN_PID)
			buf_printf(to, "%" PRIu32, names->pid);
		else if (binds)
			buf_add(to, pattern, len);
		else if (word == PATTERN_TIME)
			add_time(to, names);
		else if (word)
			buf_printf(to, "%0*" PRIu64, NUMBER_DIGITS_MIN, names->number);
		else
			buf_add(to, pattern, *pattern == '{' ? 1 : len);
	}
}

void file_pattern_add(struct buf *path, const char *pattern, const struct file_names *names)
{
	expand(path, pattern, names, false);
}

void file_pattern_bind(struct buf *bound, const char *pattern, const char *program, uint32_t pid)
{
	expand(bound, pattern, &(struct file_names){.program = program, .pid = pid}, true);
}
