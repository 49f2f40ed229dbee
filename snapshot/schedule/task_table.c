/* The table of hsnap schedule list: the tasks' results, times and folders. */
#include "snapshot/schedule/task.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/text.h"

#define NOT_YET 0x00041303

/* Results that are not an exit status. Sources: "Task Scheduler Error and Success Constants" and
 * "System Error Codes" (as HRESULTs of facility 7), Microsoft Learn. */
static const struct {
	uint32_t code;
	const char *text;
} results[] = {
	{0x00041300, "ready"}, {0x00041301, "running"}, {0x00041302, "disabled"},
	{NOT_YET, "not yet"}, {0x00041306, "ended"}, /* by the user or by the time limit */
	{0x8004131f, "running"}, /* the task was still running when it was due again */
	{0x80070002, "no program"}, /* ERROR_FILE_NOT_FOUND */
	{0x80070003, "no folder"}, /* ERROR_PATH_NOT_FOUND */
	{0x8007010b, "no folder"}, /* ERROR_DIRECTORY */
	{0x80070005, "no rights"}, /* ERROR_ACCESS_DENIED */
	{0x80070035, "no network"}, /* ERROR_BAD_NETPATH */
	{0x80070043, "no network"}, /* ERROR_BAD_NET_NAME */
	{0x8007052e, "no logon"}, /* ERROR_LOGON_FAILURE */
	{0x80070569, "no logon"}, /* ERROR_LOGON_TYPE_NOT_GRANTED */
	{0x800710e0, "refused"}, /* ERROR_REQUEST_REFUSED */
};

static const char *result_text(uint32_t result, char text[TASK_TIME_BYTES])
{
	for (size_t i = 0; i < sizeof(results) / sizeof(*results); i++) {
		if (results[i].code == result) {
			snprintf(text, TASK_TIME_BYTES, "%s", results[i].text);
			return text;
		}
	}
	/* All other results that are not an exit status of hsnap are Windows errors, usually
	 * written in hexadecimal. */
	snprintf(text, TASK_TIME_BYTES, result <= 255 ? "%" PRIu32 : "0x%" PRIX32, result);
	return text;
}

void task_every_text(const char *xml, char text[TASK_TIME_BYTES])
{
	static const char start[] = "<Interval>P";
	const char *at = strstr(xml, start);
	bool is_only = at && !strstr(at + 1, "<Interval>");
	size_t len = 0;

	for (at = is_only ? at + strlen(start) : ""; len + 1 < TASK_TIME_BYTES; at++) {
		if (*at >= '0' && *at <= '9')
			text[len++] = *at;
		else if (*at >= 'A' && *at <= 'Z' && *at != 'T')
			text[len++] = (char)(*at - 'A' + 'a');
		else if (*at != 'T')
			break;
	}
	text[len] = '\0';
}

void task_table_head(FILE *to)
{
	fprintf(to, "%-7s %-7s  %-16s  %-10s  %-16s  %s\n", "every", "keep", "last run", "result",
		"next run", "name, folder");
}

static const char *known(const char *text)
{
	return text && *text ? text : "?";
}

/* Returns the time of the last run, or "-" for a task that has not run, whose stored time is a date
 * long ago. */
static const char *last_run(const struct task_listed *task)
{
	return task->has_result && task->result == NOT_YET ? "-" : known(task->last);
}

static const char *next_run(const struct task_listed *task)
{
	switch (task->state) {
	case 1: return "disabled";
	case 2: return "queued";
	case 4: return "running";
	default: return known(task->next);
	}
}

/* Prints a task, whose strings are untrusted. */
void task_table_row(FILE *to, const struct task_listed *task)
{
	char result[TASK_TIME_BYTES];
	struct buf folder = {0}, keep = {0}, names = {0};
	bool is_ours = task->runs_hsnap &&
		       task_arguments_read(task->arguments, task->name, &folder, &keep);

	buf_printf(&names, "%s  %s%s", task->name,
		is_ours		 ? "" :
		task->runs_hsnap ? "other arguments: " :
				   "another program: ",
		is_ours		 ? folder.data :
		task->runs_hsnap ? task->arguments :
				   known(task->program));
	fprintf(to, "%-7s %-7s  %-16s  %-10s  %-16s  %s\n", known(task->every),
		is_ours ? text_harmless(keep.data) : "?", last_run(task),
		task->has_result ? result_text(task->result, result) : "?", next_run(task),
		text_harmless(names.data));
	buf_release(&folder);
	buf_release(&keep);
	buf_release(&names);
}
