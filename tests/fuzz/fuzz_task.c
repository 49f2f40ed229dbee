/* Tasks. The lines of an input are the options of "hsnap schedule add". The task's XML must contain
 * only characters that XML permits. */
#include "tests/fuzz/fuzz.h"

#include "core/base/memory.h"
#include "core/base/text.h"
#include "snapshot/schedule/task.h"

enum { NAME, EVERY, FOLDER, PROGRAM, START, KEEP, MAX_BYTES, LIMIT, USER, FLAGS, LINES };

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
	struct task_plan plan = {0};
	struct err err = {0};
	int rc = task_plan_make(&plan, &request, &err);

	HOLDS(!rc || (int)err.code == -rc);
	if (!rc) {
		HOLDS(plan.every_ms > 0 && plan.limit_ms > 0);
		HOLDS(strstr(plan.arguments.data, request.name));
		HOLDS(fuzz_is_harmless(plan.arguments.data, plan.arguments.len));
		check_xml(&plan);
	}
	task_plan_release(&plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fuzz_input input = {bytes, bytes + len};
	char *lines[LINES];

	for (size_t i = 0; i < LINES; i++)
		lines[i] = fuzz_line(&input);
	check_plan(lines);
	for (size_t i = 0; i < LINES; i++)
		free(lines[i]);
	return 0;
}
