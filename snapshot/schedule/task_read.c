#include <stdint.h>
#include <string.h>

#include "core/base/text.h"
#include "core/dump/source.h"
#include "snapshot/schedule/task.h"

#define BLANKS " \t\r\n"
/* A name ends where one of these stands. */
#define NAME_ENDS BLANKS "/>=<\"'&"

static int scan_bad(struct err *err, const char *what)
{
	return err_set(err, ERR_TASK, "its XML", "%s", what);
}

void task_scan_init(struct task_scan *scan, const char *text)
{
	*scan = (struct task_scan){.at = text};
	buf_init(&scan->text);
}

void task_scan_release(struct task_scan *scan)
{
	buf_release(&scan->text);
}

static size_t name_length(const char *at)
{
	return strcspn(at, NAME_ENDS);
}

/* Document types and CDATA begin with something else. */
static bool is_name_start(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
	       (unsigned char)c >= 0x80;
}

static void skip_blanks(struct task_scan *scan)
{
	scan->at += strspn(scan->at, BLANKS);
}

/* ---------------------------------------------------------------- text */

/* The character that "&#N;" or "&#xN;" stands for, its digits at at; 0: none that a text may have. */
static uint32_t numbered(const char *at, const char *end)
{
	uint32_t base = *at == 'x' ? 16 : 10, code = 0;

	for (at += base == 16; at < end; at++) {
		uint32_t digit = *at >= '0' && *at <= '9' ? (uint32_t)(*at - '0') :
				 *at >= 'a' && *at <= 'f' ? (uint32_t)(*at - 'a' + 10) :
				 *at >= 'A' && *at <= 'F' ? (uint32_t)(*at - 'A' + 10) :
							    16;
		if (digit >= base || code > 0x10ffff)
			return 0;
		code = code * base + digit;
	}
	return code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) ? 0 : code;
}

static int add_code(struct buf *text, uint32_t code)
{
	size_t count = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
	unsigned char bytes[4];

	for (size_t i = count; i-- > 1; code >>= 6)
		bytes[i] = (unsigned char)(0x80 | (code & 0x3f));
	bytes[0] = (unsigned char)(first[count] | code);
	return buf_add(text, bytes, count);
}

/* at is behind the '&'. */
static uint32_t entity(const char *at, size_t len)
{
	static const struct {
		const char *name;
		char code;
	} known[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};

	if (len > 1 && *at == '#')
		return numbered(at + 1, at + len);
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (strlen(known[i].name) == len && !memcmp(known[i].name, at, len))
			return (unsigned char)known[i].code;
	}
	return 0;
}

static int add_entity(struct task_scan *scan, struct err *err)
{
	size_t len = strcspn(scan->at + 1, ";<& ");
	uint32_t code = scan->at[1 + len] == ';' ? entity(scan->at + 1, len) : 0;

	if (!code)
		return scan_bad(err, "an entity that tasks do not have");
	scan->at += len + 2;
	return add_code(&scan->text, code) ? err_set(err, ERR_NOMEM, NULL, NULL) : 0;
}

/* A CR before an LF is no part of the text, as XML has it. */
static int add_plain(struct task_scan *scan, struct err *err)
{
	size_t len = strcspn(scan->at, "<&\r");

	if (buf_add(&scan->text, scan->at, len))
		return err_set(err, ERR_NOMEM, NULL, NULL);
	scan->at += len;
	if (*scan->at == '\r' && *++scan->at != '\n' && buf_add_text(&scan->text, "\n"))
		return err_set(err, ERR_NOMEM, NULL, NULL);
	return 0;
}

static int read_text(struct task_scan *scan, struct err *err)
{
	int rc = 0;

	buf_clear(&scan->text);
	while (!rc && *scan->at && *scan->at != '<')
		rc = *scan->at == '&' ? add_entity(scan, err) : add_plain(scan, err);
	for (const char *at = scan->text.data; !rc && at && *at;) {
		uint32_t code;
		size_t len = text_utf8(at, &code);

		if (!len || (text_obeyed(at) && !strchr("\t\r\n", *at)))
			rc = scan_bad(err, "a character that a task cannot have");
		at += len;
	}
	return rc ? rc : TASK_TEXT;
}

/* ---------------------------------------------------------------- tags */

/* name="value" pairs up to the end of a tag: 0 at '>' or "/>". */
static int skip_attributes(struct task_scan *scan, struct err *err)
{
	for (;;) {
		size_t blanks = strspn(scan->at, BLANKS), len;

		scan->at += blanks;
		if (*scan->at == '>' || (*scan->at == '/' && scan->at[1] == '>'))
			return 0;
		len = name_length(scan->at);
		scan->at += len;
		skip_blanks(scan);
		if (!blanks || !len || *scan->at++ != '=')
			return scan_bad(err, "a tag that does not end");
		skip_blanks(scan);
		if (*scan->at != '"' && *scan->at != '\'')
			return scan_bad(err, "an attribute without quotes");
		len = strcspn(scan->at + 1, *scan->at == '"' ? "\"<" : "'<");
		if (scan->at[1 + len] != *scan->at)
			return scan_bad(err, "an attribute that does not end");
		scan->at += len + 2;
	}
}

static int open_element(struct task_scan *scan, struct err *err)
{
	size_t len = name_length(scan->at);
	int rc;

	if (!len || !is_name_start(*scan->at))
		return scan_bad(err, "a tag without a name");
	if (scan->is_done)
		return scan_bad(err, "more than one document");
	if (scan->depth == TASK_DEPTH)
		return scan_bad(err, "elements that are too deep");
	scan->names[scan->depth].start = scan->at;
	scan->names[scan->depth].len = len;
	scan->at += len;
	rc = skip_attributes(scan, err);
	if (rc)
		return rc;
	scan->depth++;
	scan->is_closed_at_once = *scan->at == '/';
	scan->at += scan->is_closed_at_once ? 2 : 1;
	return TASK_OPEN;
}

static int close_element(struct task_scan *scan, struct err *err)
{
	size_t len = name_length(scan->at);

	if (!scan->depth || scan->names[scan->depth - 1].len != len ||
		memcmp(scan->names[scan->depth - 1].start, scan->at, len) != 0)
		return scan_bad(err, "an end without its beginning");
	scan->at += len;
	skip_blanks(scan);
	if (*scan->at++ != '>')
		return scan_bad(err, "a tag that does not end");
	scan->is_closing = true;
	return TASK_CLOSE;
}

/* Passes over what begins with start and ends with end; false: it does not begin so, or not end. */
static bool skip_between(struct task_scan *scan, const char *start, const char *end)
{
	const char *last;

	if (strncmp(scan->at, start, strlen(start)) != 0)
		return false;
	last = strstr(scan->at + strlen(start), end);
	if (last)
		scan->at = last + strlen(end);
	return last != NULL;
}

/* Outside all elements only blanks, comments and instructions may stand. */
static int at_end(struct task_scan *scan, struct err *err)
{
	if (scan->depth || !scan->is_done)
		return scan_bad(err, "it is cut short");
	return TASK_END;
}

int task_scan_next(struct task_scan *scan, struct err *err)
{
	if (scan->is_closing) {
		scan->depth--;
		scan->is_closing = false;
		scan->is_done = !scan->depth;
	}
	if (scan->is_closed_at_once) {
		scan->is_closed_at_once = false;
		scan->is_closing = true;
		return TASK_CLOSE;
	}
	do {
		if (!scan->depth)
			skip_blanks(scan);
	} while (skip_between(scan, "<!--", "-->") || skip_between(scan, "<?", "?>"));
	if (!*scan->at)
		return at_end(scan, err);
	if (*scan->at != '<')
		return scan->depth ? read_text(scan, err) : scan_bad(err, "text outside of it");
	scan->at++;
	if (*scan->at != '/')
		return open_element(scan, err);
	scan->at++;
	return close_element(scan, err);
}

bool task_scan_is_in(const struct task_scan *scan, const char *path)
{
	size_t i;

	for (i = 0; i < scan->depth; i++) {
		size_t len = strcspn(path, "/");

		if (len != scan->names[i].len || memcmp(path, scan->names[i].start, len) != 0)
			return false;
		path += len + (path[len] == '/');
	}
	return i && !*path;
}

#define EXEC "Task/Actions/Exec"

static int bad(struct err *err, const char *what)
{
	return err_set(err, ERR_TASK, "its XML", "%s", what);
}

void task_read_init(struct task_read *task)
{
	*task = (struct task_read){0};
	buf_init(&task->program);
	buf_init(&task->arguments);
	buf_init(&task->folder);
}

void task_read_release(struct task_read *task)
{
	buf_release(&task->program);
	buf_release(&task->arguments);
	buf_release(&task->folder);
}

/* ---------------------------------------------------------------- what is looked for */

enum field {
	FIELD_COMMAND,
	FIELD_ARGUMENTS,
	FIELD_FOLDER,
	FIELD_EVERY,
	FIELDS,
};

static const char *const paths[FIELDS] = {
	[FIELD_COMMAND] = EXEC "/Command",
	[FIELD_ARGUMENTS] = EXEC "/Arguments",
	[FIELD_FOLDER] = EXEC "/WorkingDirectory",
	[FIELD_EVERY] = "Task/Triggers/TimeTrigger/Repetition/Interval",
};

struct reading {
	struct task_scan scan;
	struct buf fields[FIELDS];
	bool is_there[FIELDS];
	bool has_triggers; /* more than one that repeats */
	size_t depth; /* of the field we are in; 0: in none */
	enum field field;
	unsigned action_count;
};

static int on_open(struct reading *reading, struct err *err)
{
	struct task_scan *scan = &reading->scan;

	if (scan->depth == 1 && !task_scan_is_in(scan, "Task"))
		return bad(err, "it is no task");
	if (reading->depth)
		return bad(err, "an element in a text");
	if (scan->depth == 3 && scan->names[1].len == strlen("Actions") &&
		!memcmp(scan->names[1].start, "Actions", scan->names[1].len)) {
		if (!task_scan_is_in(scan, EXEC) || reading->action_count++)
			return bad(err, "it does more than run one program");
	}
	for (enum field i = 0; i < FIELDS; i++) {
		if (!task_scan_is_in(scan, paths[i]))
			continue;
		if (reading->is_there[i] && i != FIELD_EVERY)
			return bad(err, "a text that is there twice");
		reading->has_triggers |= reading->is_there[i];
		reading->is_there[i] = true;
		reading->field = i;
		reading->depth = scan->depth;
	}
	return 0;
}

/* A comment parts a text in two. */
static int on_text(struct reading *reading, struct err *err)
{
	const struct buf *text = &reading->scan.text;

	if (reading->depth && buf_add(&reading->fields[reading->field], text->data, text->len))
		return err_set(err, ERR_NOMEM, NULL, NULL);
	return 0;
}

static int read_fields(struct reading *reading, struct err *err)
{
	int rc = 0;

	while (!rc) {
		int event = task_scan_next(&reading->scan, err);

		switch (event) {
		case TASK_OPEN: rc = on_open(reading, err); break;
		case TASK_TEXT: rc = on_text(reading, err); break;
		case TASK_CLOSE:
			if (reading->depth == reading->scan.depth)
				reading->depth = 0;
			break;
		default: return event; /* the end, or an error */
		}
	}
	return rc;
}

/* ---------------------------------------------------------------- what it must be like */

/* Takes the quotes off, if there are any, and looks whether what is left names one file for sure. */
static int check_program(struct buf *command, struct err *err)
{
	char *text = command->data;
	size_t len = command->len;

	if (!len)
		return bad(err, "no command in it");
	if (len >= 2 && text[0] == '"' && text[len - 1] == '"') {
		memmove(text, text + 1, len - 2);
		text[len - 2] = '\0';
		command->len = len - 2;
	}
	return task_path_check(text, NULL) ? bad(err, "its command is no full path") : 0;
}

static int check_fields(struct reading *reading, struct err *err)
{
	const struct buf *folder = &reading->fields[FIELD_FOLDER];
	int rc = check_program(&reading->fields[FIELD_COMMAND], err);

	if (!rc && folder->len && task_path_check(folder->data, NULL))
		rc = bad(err, "its folder is no full path");
	return rc;
}

/* What is no span of days, hours, minutes and seconds is the scheduler's business. */
static int64_t interval(const struct reading *reading)
{
	const struct buf *every = &reading->fields[FIELD_EVERY];
	int64_t ms;

	return !reading->has_triggers && every->len && !iso_duration_parse(every->data, &ms) ? ms :
											       0;
}

static int read_document(struct task_read *task, const char *text, struct err *err)
{
	struct reading reading = {0};
	int rc;

	task_scan_init(&reading.scan, text);
	rc = read_fields(&reading, err);
	if (!rc)
		rc = check_fields(&reading, err);
	if (!rc) {
		struct buf *to[] = {[FIELD_COMMAND] = &task->program,
			[FIELD_ARGUMENTS] = &task->arguments,
			[FIELD_FOLDER] = &task->folder};

		task->every_ms = interval(&reading);
		for (size_t i = 0; i < sizeof(to) / sizeof(*to); i++) {
			buf_release(to[i]);
			*to[i] = reading.fields[i];
			buf_init(&reading.fields[i]);
		}
	}
	for (size_t i = 0; i < FIELDS; i++)
		buf_release(&reading.fields[i]);
	task_scan_release(&reading.scan);
	return rc;
}

/* ---------------------------------------------------------------- bytes to text */

/* utf16_text() ends at a NUL, behind which anything could hide: then that is kept. */
static int add_utf16(struct buf *text, const unsigned char *bytes, size_t len)
{
	size_t units = 0, needed;

	while (units < len / 2 && (bytes[2 * units] || bytes[2 * units + 1]))
		units++;
	needed = utf16_text(bytes, units, NULL, 0);
	if (buf_reserve(text, needed + 1))
		return -ERR_NOMEM;
	utf16_text(bytes, units, text->data, needed + 1);
	text->len = needed;
	return units * 2 < len ? buf_add(text, "\0", 1) : 0;
}

static int add_document(struct buf *text, const unsigned char *bytes, size_t len, struct err *err)
{
	int rc;

	if (len > 2 * TASK_XML_MAX_BYTES + 2) /* UTF-16, and its mark */
		return bad(err, "it is too long");
	if (len >= 2 && bytes[0] == 0xff && bytes[1] == 0xfe) {
		rc = add_utf16(text, bytes + 2, len - 2);
	} else {
		size_t mark = len >= 3 && !memcmp(bytes, "\xef\xbb\xbf", 3) ? 3 : 0;

		rc = buf_add(text, bytes + mark, len - mark);
	}
	if (rc)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	if (text->len > TASK_XML_MAX_BYTES)
		return bad(err, "it is too long");
	return strlen(text->data) < text->len ? bad(err, "it has a NUL in it") : 0;
}

int task_read(
	struct task_read *task, const void *bytes, size_t len, const char *place, struct err *err)
{
	struct buf text;
	int rc;

	buf_init(&text);
	rc = add_document(&text, bytes, len, err);
	if (!rc)
		rc = read_document(task, text.data, err);
	buf_release(&text);
	if (rc && err)
		snprintf(err->place, sizeof(err->place), "%s", place);
	return rc;
}
