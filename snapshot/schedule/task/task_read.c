#include "snapshot/schedule/task/task_read.h"

#include <string.h>

#include "core/utf16.h"
#include "snapshot/schedule/task/iso_duration.h"
#include "snapshot/schedule/task/task_paths.h"
#include "snapshot/schedule/task/task_scan.h"
#include "snapshot/schedule/task/task_xml.h"

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
