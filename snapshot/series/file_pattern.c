#include "snapshot/series/file_pattern.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/date.h"
#include "core/folder.h"
#include "snapshot/series/pattern_piece.h"
#include "snapshot/series/program_name.h"

struct pattern_piece pattern_next(const char *pattern)
{
	static const struct {
		const char *text;
		unsigned word;
	} words[] = {{"{name}", PATTERN_NAME}, {"{pid}", PATTERN_PID}, {"{time}", PATTERN_TIME},
		{"{n}", PATTERN_NUMBER}};
	size_t len = strcspn(pattern, "{");

	if (len)
		return (struct pattern_piece){
			PIECE_TEXT, .text = pattern, .text_len = len, .len = len};
	if (!*pattern)
		return (struct pattern_piece){PIECE_END};
	if (pattern[1] == '{')
		return (struct pattern_piece){PIECE_TEXT, .text = pattern, .text_len = 1, .len = 2};
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		len = strlen(words[i].text);
		if (!strncmp(pattern, words[i].text, len))
			return (struct pattern_piece){
				PIECE_WORD, .word = words[i].word, .len = len};
	}
	return (struct pattern_piece){PIECE_WRONG, .len = strcspn(pattern, "}")};
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
	struct pattern_piece piece;

	for (; (piece = pattern_next(at)).kind != PIECE_END; at += piece.len) {
		if (piece.kind == PIECE_WRONG)
			return err_set(err, ERR_USAGE, pattern,
				at[piece.len] ? "words in braces are {name}, {pid}, and in a "
						"series {time} and {n}; {{ is a brace" :
						"a brace is not closed; {{ stands for one");
		if (at < last && piece.word & (PATTERN_TIME | PATTERN_NUMBER))
			return err_set(err, ERR_USAGE, pattern,
				"{time} and {n} are for the file's name, not for a folder's");
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
static void time_text(const struct file_names *names, char text[PATTERN_WORD_BYTES])
{
	char date[DATE_TEXT_BYTES], again[16] = "";

	if (strlen(date_text(names->time_ms, date)) < strlen("2026-11-20T10:25:48.123Z"))
		date_text(0, date);
	if (names->again)
		snprintf(again, sizeof(again), "_%u", names->again);
	snprintf(text, PATTERN_WORD_BYTES, "%.4s%.2s%.5s%.2s%.2sZ%s", date, date + 5, date + 8,
		date + 14, date + 17, again);
}

void pattern_word_text(unsigned word, const struct file_names *names, char text[PATTERN_WORD_BYTES])
{
	if (word == PATTERN_TIME)
		time_text(names, text);
	else if (word == PATTERN_PID)
		snprintf(text, PATTERN_WORD_BYTES, "%" PRIu32, names->pid);
	else
		snprintf(text, PATTERN_WORD_BYTES, "%0*" PRIu64, PATTERN_DIGITS_MIN, names->number);
}

static int add_word(struct buf *path, unsigned word, const struct file_names *names)
{
	char text[PATTERN_WORD_BYTES];

	if (word == PATTERN_NAME)
		return program_name_add(path, names->program);
	pattern_word_text(word, names, text);
	return buf_add_text(path, text);
}

int file_pattern_add(struct buf *path, const char *pattern, const struct file_names *names)
{
	struct pattern_piece piece;
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
	rc = program_name_add(&name, program);
	for (const char *at = name.data; !rc && *at; at++)
		rc = *at == '{' ? buf_add_text(bound, "{{") : buf_add(bound, at, 1);
	buf_release(&name);
	return rc;
}

int file_pattern_bind(struct buf *bound, const char *pattern, const char *program, uint32_t pid)
{
	struct pattern_piece piece;
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
