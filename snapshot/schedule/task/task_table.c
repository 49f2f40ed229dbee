#include "snapshot/schedule/task/task_table.h"

#include <inttypes.h>

#include "core/duration.h"
#include "core/text.h"
#include "snapshot/schedule/task/task_words.h"

/* "Task Scheduler Error and Success Constants", Microsoft Learn: what is no exit status. */
static const struct {
	uint32_t code;
	const char *text;
} results[] = {
	{0x00041300, "ready"}, {0x00041301, "running"}, {0x00041302, "disabled"},
	{0x00041303, "not yet"}, {0x00041306, "ended"}, /* by the user, or the time limit */
	{0x8004131f, "running"}, /* when it was due again */
};

const char *task_result_text(uint32_t result, char text[TASK_TIME_BYTES])
{
	for (size_t i = 0; i < sizeof(results) / sizeof(*results); i++) {
		if (results[i].code == result) {
			snprintf(text, TASK_TIME_BYTES, "%s", results[i].text);
			return text;
		}
	}
	/* What is no exit status of ours is an error of Windows, known by its hexadecimal form. */
	snprintf(text, TASK_TIME_BYTES, result <= 255 ? "%" PRIu32 : "0x%" PRIX32, result);
	return text;
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

static int print_names(FILE *to, const char *name, const struct task_read *task)
{
	struct buf names;
	int rc;

	buf_init(&names);
	rc = buf_printf(&names, "%s  %s", name, known(task->folder.data));
	if (!rc)
		fprintf(to, "%s\n", text_harmless(names.data));
	buf_release(&names);
	return rc;
}

int task_table_row(
	FILE *to, const char *name, const struct task_read *task, const struct task_state *state)
{
	char every[DURATION_TEXT_BYTES], result[TASK_TIME_BYTES];
	const char *line = task->arguments.data ? task->arguments.data : "";
	struct buf keep;
	int rc;

	buf_init(&keep);
	rc = task_word_after(line, "--keep", &keep);
	if (rc >= 0) {
		fprintf(to, "%-7s %-7s  %-16s  %-10s  %-16s  ",
			task->every_ms ? duration_text(task->every_ms, every) : "?",
			rc > 0 ? text_harmless(keep.data) : "?", known(state->last),
			state->has_result ? task_result_text(state->result, result) : "?",
			known(state->next));
		rc = print_names(to, name, task);
	}
	buf_release(&keep);
	return rc;
}
