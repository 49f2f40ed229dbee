/* Tasks. The first lines of an input are the options of "hsnap schedule add", and the rest is the
 * scheduler's description of a task. hsnap must recognize a planned task by its arguments. The
 * task's XML must contain only characters that XML permits. */
#include "tests/fuzz/fuzz.h"

#include "core/base/memory.h"
#include "core/base/text.h"
#include "snapshot/schedule/task.h"

enum { NAME, EVERY, FOLDER, PROGRAM, START, KEEP, MAX_BYTES, LIMIT, USER, FLAGS, ARGUMENTS, LINES };

static const char *some(const char *text)
{
	return *text ? text : NULL;
}

static void check_xml(const struct task_plan *plan)
{
	struct buf xml = {0}, wide = {0};
	uint32_t code;

	if (!task_xml_add(&xml, plan, NULL)) {
		for (const char *at = xml.data; *at;) {
			size_t len = text_utf8(at, &code);

			HOLDS(len && (code >= 0x20 || code == '\n') && code != 0xfffe &&
				code != 0xffff);
			at += len;
		}
		HOLDS(strlen(xml.data) == xml.len);
		task_xml_utf16(&wide, xml.data);
		HOLDS(wide.len % 2 == 0 && wide.len >= 2 * xml.len / 3);
	}
	buf_release(&xml);
	buf_release(&wide);
}

/* Compares folders. A folder that was read back has no separator at its end. */
static bool is_folder(const char *read, const char *planned)
{
	size_t len = strlen(read);

	return !strncmp(planned, read, len) && (!planned[len] || !strcmp(planned + len, "\\"));
}

static void check_plan(char *const lines[LINES])
{
	struct task_request request = {.name = lines[NAME],
		.every = lines[EVERY],
		.keep = some(lines[KEEP]),
		.max_bytes = some(lines[MAX_BYTES]),
		.folder = lines[FOLDER],
		.program = lines[PROGRAM],
		.limit = some(lines[LIMIT]),
		.start = lines[START],
		.user = some(lines[USER]),
		.at_boot = strchr(lines[FLAGS], 'b'),
		.is_full = strchr(lines[FLAGS], 'f'),
		.is_packed = strchr(lines[FLAGS], 'p')};
	struct buf folder = {0}, keep = {0};
	struct task_plan plan = {0};
	struct err err = {0};
	int rc = task_plan_make(&plan, &request, &err);

	HOLDS(!rc || (int)err.code == -rc);
	if (!rc) {
		HOLDS(plan.every_ms > 0 && plan.limit_ms > 0);
		HOLDS(task_arguments_read(plan.arguments.data, request.name, &folder, &keep));
		HOLDS(is_folder(folder.data, plan.folder.data) && !strcmp(keep.data, plan.keep));
		check_xml(&plan);
	}
	buf_release(&folder);
	buf_release(&keep);
	task_plan_release(&plan);
}

static void check_listed(char *const lines[LINES], const char *xml)
{
	struct task_listed task = {.name = lines[NAME],
		.program = some(lines[PROGRAM]),
		.arguments = lines[ARGUMENTS],
		.runs_hsnap = !strchr(lines[FLAGS], 'x'),
		.state = (unsigned)strlen(lines[EVERY])};
	char *text = NULL;
	size_t len;
	FILE *to;

	task_every_text(xml, task.every);
	HOLDS(strlen(task.every) < TASK_TIME_BYTES);
	to = open_memstream(&text, &len);
	HOLDS(to);
	task_table_row(to, &task);
	(void)fclose(to);
	HOLDS(len && text[len - 1] == '\n' && !memchr(text, '\n', len - 1));
	HOLDS(fuzz_is_harmless(text, len));
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fuzz_input input = {bytes, bytes + len};
	char *lines[LINES], *xml;

	for (size_t i = 0; i < LINES; i++)
		lines[i] = fuzz_line(&input);
	xml = xcalloc(1, fuzz_left(&input) + 1);
	memcpy(xml, input.at, fuzz_left(&input));
	check_plan(lines);
	check_listed(lines, xml);
	free(xml);
	for (size_t i = 0; i < LINES; i++)
		free(lines[i]);
	return 0;
}
