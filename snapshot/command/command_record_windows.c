/* hsnap record and hsnap mark: recordings of a program, its children, or a running process; marks
 * in a recording; and ending another hsnap's recording. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <windows.h>

#include "core/base/os.h"
#include "core/base/os_windows.h"
#include "core/base/parse.h"
#include "core/base/text.h"
#include "core/io/out.h"
#include "snapshot/command/command.h"
#include "snapshot/control/control.h"
#include "snapshot/live/process_ref.h"
#include "snapshot/record/session.h"

/* The 32-bit value is lower because a 32-bit program has little address space. */
#define RINGS_DEFAULT_BYTES ((uint64_t)(sizeof(void *) == 8 ? 256 : 64) << 20)
#define RINGS_MAX_BYTES ((uint64_t)4 << 30)

enum {
	OPT_OUTPUT = 1,
	OPT_ADDRESSES,
	OPT_CHILDREN,
	OPT_DROP,
	OPT_FOR,
	OPT_FROM,
	OPT_MAX_BYTES,
	OPT_RING,
	OPT_SAMPLE,
	OPT_STOP,
	OPT_VERBOSE,
};

static const struct opt options[] = {
	{OPT_OUTPUT, "o", "output", "FILE", "write the recording to FILE"},
	PROCESS_OPTIONS("record"),
	{OPT_ADDRESSES, NULL, "addresses", NULL, "record the address of each block"},
	{OPT_CHILDREN, NULL, "children", NULL,
		"also record the processes that PROG starts, in run.PID.hrec"},
	{OPT_DROP, NULL, "drop", NULL, "drop (and count) events instead of making threads wait"},
	{OPT_FOR, NULL, "for", "T", "stop recording after T (30s, 10m); the process goes on"},
	{OPT_FROM, NULL, "from", "LOG",
		"convert the events of a process in an ETW log; repeatable"},
	{OPT_MAX_BYTES, NULL, "max-bytes", "SIZE",
		"stop recording when FILE reaches SIZE (500M, 2G); the process goes on"},
	{OPT_RING, NULL, "ring", "SIZE", "size of the buffer between the program and hsnap (256M)"},
	{OPT_SAMPLE, NULL, "sample", "SIZE", "record about one block per SIZE bytes (512K, 1M)"},
	{OPT_STOP, NULL, "stop", NULL,
		"end a recording that another hsnap is making of the process"},
	{OPT_VERBOSE, "v", "verbose", NULL, "print what was recorded"},
	OVERWRITE_OPTION,
	HELP_OPTION,
	{0},
};

static const char usage[] =
	"usage: hsnap record -o FILE -p PID | -pn NAME [--addresses] [--drop] [--for T]\n"
	"                    [--max-bytes SIZE] [--ring SIZE] [--sample SIZE] [-v] [--overwrite]\n"
	"       hsnap record -o FILE [--addresses] [--children] [--drop] [--for T]\n"
	"                    [--max-bytes SIZE] [--ring SIZE] [--sample SIZE] [-v] [--overwrite] "
	"[--]\n"
	"                    PROG [ARG ...]\n"
	"       hsnap record -p PID | -pn NAME --stop\n"
	"       hsnap record -o FILE [-p PID | -pn NAME] [--addresses] --from LOG [--overwrite]\n"
	"\n"
	"Record every allocation and free with its time, thread and stack; hdiff reads FILE.\n"
	"The recording ends with the process, after --for, at --max-bytes, with --stop, or with\n"
	"Ctrl-C; the process goes on. In FILE, {name} and {pid} stand for the program's image and\n"
	"process, {{ for a brace.\n";

/* The file of one process. `plan` must be first, because the session knows only the plan. */
struct record_file {
	struct record_session_plan plan;
	const char *pattern; /* checked by file_pattern_check() */
	unsigned words; /* words in the pattern */
	bool is_child;
	struct buf path; /* set when the recording begins */
};

struct record_request {
	struct record_file file;
	struct program_run run;
	struct process_choice process;
	int64_t until_ms; /* end of the time set by --for, as os_clock_ms() counts; 0: none */
	int word_count;
	bool is_verbose, stops;
};

static int set_size(const char *option, const char *value, uint64_t max, const char *range,
	uint64_t *bytes, struct err *err)
{
	if (size_parse(value, strlen(value), bytes) || *bytes < ((uint64_t)1 << 20) || *bytes > max)
		return err_set(err, ERR_USAGE, option, "'%s' is not a size %s", value, range);
	return 0;
}

static int set_option(void *ctx, int id, const char *value, struct err *err)
{
	struct record_request *request = ctx;

	switch (id) {
	case OPT_ARGUMENT: request->word_count++; return 0;
	case OPT_OUTPUT:
		request->file.pattern = value;
		return !out_is_packed_name(value) ?
			       0 :
			       err_set(err, ERR_USAGE, value,
				       "recordings are compressed already: use a name without .gz");
	case OPT_ADDRESSES: request->file.plan.keeps_addresses = true; return 0;
	case OPT_CHILDREN: request->run.with_children = true; return 0;
	case OPT_DROP: request->file.plan.drops = true; return 0;
	case OPT_FOR: return series_span_parse("--for", value, &request->file.plan.for_ms, err);
	case OPT_MAX_BYTES:
		return set_size("--max-bytes", value, UINT64_MAX, "of 1M or more",
			&request->file.plan.max_bytes, err);
	case OPT_RING:
		return set_size("--ring", value, RINGS_MAX_BYTES, "from 1M to 4G",
			&request->file.plan.ring_bytes, err);
	case OPT_SAMPLE: return table_sample_parse(value, &request->file.plan.sample_bytes, err);
	case OPT_STOP: request->stops = true; return 0;
	case OPT_VERBOSE: request->is_verbose = true; return 0;
	case OPT_DUMP_OVERWRITE: out_protect(NULL); return 0;
	default: return process_option(&request->process, id, value, err);
	}
}

/* Prints the outcome of a recording. Returns 0, or 2 if the recording is incomplete. */
static int print_result(const struct record_request *request, const struct record_file *file,
	const struct record_session_result *result)
{
	const char *path = file->path.data ? file->path.data : file->pattern;
	char unseen[RECORD_UNSEEN_BYTES];

	if (result->is_full)
		fprintf(stderr,
			"hsnap: %s: --max-bytes was reached: the recording ended after %" PRIu64
			".%03u s, and the program keeps running\n",
			path, result->length_ms / 1000, (unsigned)(result->length_ms % 1000));
	if (result->lost_count)
		fprintf(stderr, "hsnap: %s: warning: %" PRIu64 " event%s lost\n", path,
			result->lost_count, text_plural(result->lost_count));
	if (result->unseen_count)
		fprintf(stderr, "hsnap: %s: warning: %s\n", path,
			record_unseen_text(result->unseen_count, unseen));
	if (result->is_uncompared)
		fprintf(stderr, "hsnap: %s: warning: " RECORD_UNCOMPARED "\n", path);
	if (result->damaged_count)
		fprintf(stderr,
			"hsnap: %s: warning: %u damaged ring%s in the process: events are "
			"missing\n",
			path, result->damaged_count, text_plural(result->damaged_count));
	if (request->is_verbose)
		fprintf(stderr,
			"hsnap: %s: %" PRIu64 " event%s in %" PRIu64
			" bytes; threads waited %" PRIu64 " time%s for room, %" PRIu64
			" ms in all\n",
			path, result->event_count, text_plural(result->event_count),
			result->file_bytes, result->wait_count, text_plural(result->wait_count),
			result->waited_ms);
	return result->lost_count || result->damaged_count ? 2 : 0;
}

/* ---------------------------------------------------------------- names of files */

/* Inserts the pid before the extension. For example, run.hrec becomes run.PID.hrec. */
static void add_pid(struct buf *path, const char *of_program, uint32_t pid)
{
	const char *name = module_path_base(of_program), *dot = strrchr(name, '.');
	size_t len = dot && dot != name ? (size_t)(dot - of_program) : strlen(of_program);

	buf_add(path, of_program, len);
	buf_printf(path, ".%" PRIu32 "%s", pid, of_program + len);
}

/* Appends the path of a process's file, and creates missing folders if the pattern has words. A
 * child's file has the pid even if the pattern does not. */
static void add_path(
	struct buf *path, const struct record_file *file, const char *image, uint32_t pid)
{
	const struct file_names names = {.program = image ? image : "process", .pid = pid};
	struct buf name;

	buf_init(&name);
	buf_add_text(&name, "");
	file_pattern_add(&name, file->pattern, &names);
	if (file->is_child && !(file->words & PATTERN_PID))
		add_pid(path, name.data, pid);
	else
		buf_add(path, name.data, name.len);
	buf_release(&name);
	if (file->words)
		out_make_folders(path->data);
}

static const char *path_of(const struct record_session_plan *plan, const char *image, uint32_t pid)
{
	struct record_file *file = (struct record_file *)plan;

	buf_clear(&file->path);
	add_path(&file->path, file, image, pid);
	return file->path.data;
}

/* Before the program runs, checks that its file can be written, if the folder does not depend on the
 * process. */
static int check_output(const struct record_file *file, const char *program, struct err *err)
{
	const char *last = file_pattern_last(file->pattern);
	struct buf path;
	int rc;

	if (memchr(file->pattern, '{', (size_t)(last - file->pattern)))
		return 0;
	buf_init(&path);
	add_path(&path, file, program, (uint32_t)os_pid());
	rc = out_check(path.data, err);
	buf_release(&path);
	return rc;
}

static int check_pattern(struct record_file *file, struct err *err)
{
	int rc = file_pattern_check(file->pattern, &file->words, err);

	if (!rc && file->words & (PATTERN_TIME | PATTERN_NUMBER))
		rc = err_set(err, ERR_USAGE, file->pattern,
			"{time} and {n} are only for a series of snapshots");
	return rc;
}

/* ---------------------------------------------------------------- a program and its children */

struct child_recording {
	struct recording_link link; /* the part that control uses */
	struct record_file file;
	struct record_session *session;
};

static const struct recording_link *begin_child(void *ctx, struct err *err)
{
	const struct record_request *request = ctx;
	struct child_recording *child = xcalloc(1, sizeof(*child));

	child->file = request->file;
	buf_init(&child->file.path);
	child->file.is_child = true;
	if (request->until_ms) {
		int64_t left_ms = request->until_ms - os_clock_ms();

		child->file.plan.for_ms = left_ms > 0 ? left_ms : 1;
	}
	if (record_session_new(&child->session, &child->file.plan, err)) {
		buf_release(&child->file.path);
		free(child);
		return NULL;
	}
	child->link = *record_session_link(child->session);
	return &child->link;
}

static void end_child(void *ctx, const struct recording_link *link)
{
	struct child_recording *child = (struct child_recording *)link;
	struct record_session_result result;
	struct err err;

	if (record_session_end(child->session, &result, &err))
		command_fail(&err);
	else if (result.file_bytes) /* otherwise, the recording never began */
		print_result(ctx, &child->file, &result);
	buf_release(&child->file.path);
	free(child);
}

/* Records a program. session: NULL if this hsnap follows a child process that another hsnap has
 * handed over. */
static int record_program(
	struct record_request *request, struct record_session *session, struct err *err)
{
	struct record_session_result result;
	uint32_t exit_status = 0;
	struct err end_err = {0};
	int rc, end_rc;

	request->run.recording = session ? record_session_link(session) : NULL;
	request->run.child_recording = begin_child;
	request->run.child_recorded = end_child;
	request->run.ctx = request;
	if (request->file.plan.for_ms && !follow_is_wanted(&request->until_ms))
		request->until_ms = os_clock_ms() + request->file.plan.for_ms;
	request->run.until_ms = request->until_ms;
	request->run.limit_bytes = TABLES_DEFAULT_BYTES;
	request->run.sample_bytes = request->file.plan.sample_bytes;
	rc = run_program(&request->run, &exit_status, err);
	end_rc = session ? record_session_end(session, &result, &end_err) : 0;
	if (rc || end_rc) {
		command_fail(rc ? err : &end_err);
		return exit_status ? (int)exit_status : 2;
	}
	if (session)
		print_result(request, &request->file, &result);
	return (int)exit_status;
}

/* Sends a request to another hsnap: a mark with this label, or, if label is NULL, the end of its
 * recording. */
static int print_recorder(uint32_t pid, const char *label)
{
	struct mailbox *mailbox = NULL;
	struct err err;
	int rc = mailbox_find(&mailbox, pid, &err);

	if (!rc)
		rc = label ? mailbox_mark(mailbox, label, &err) : mailbox_stop(mailbox, &err);
	mailbox_free(mailbox);
	return rc ? command_fail(&err) : 0;
}

/* ---------------------------------------------------------------- marks by pressing Enter */

#define LINE_UNITS (MAILBOX_LABEL_BYTES / 3) /* a UTF-16 unit takes at most 3 bytes of UTF-8 */

/* Reads a line without its line end. Truncates a long line. Returns false at the end of the
 * input. */
static bool read_line(HANDLE console, wchar_t line[LINE_UNITS])
{
	size_t len = 0;
	wchar_t unit;
	DWORD got;

	while (ReadConsoleW(console, &unit, 1, &got, NULL) && got) {
		if (unit == L'\n') {
			line[len] = L'\0';
			return true;
		}
		if (unit != L'\r' && len < LINE_UNITS - 1)
			line[len++] = unit;
	}
	return false;
}

/* Makes a mark for each typed line. The thread runs until this process ends. */
static DWORD WINAPI mark_lines(void *ctx)
{
	const uint32_t pid = (uint32_t)(uintptr_t)ctx;
	HANDLE console = GetStdHandle(STD_INPUT_HANDLE);
	wchar_t line[LINE_UNITS];
	unsigned count = 0;

	while (read_line(console, line)) {
		char number[16], *label = wide_to_utf8(line);

		snprintf(number, sizeof(number), "%u", ++count);
		print_recorder(pid, label && *label ? label : number);
		free(label);
	}
	return 0;
}

/* If standard input is a console, starts a thread that makes marks from typed lines. */
static void begin_marks(uint32_t pid)
{
	HANDLE thread = NULL;
	DWORD mode;

	if (GetConsoleMode(GetStdHandle(STD_INPUT_HANDLE), &mode))
		thread = CreateThread(NULL, 0, mark_lines, (void *)(uintptr_t)pid, 0, NULL);
	if (!thread)
		return;
	fprintf(stderr, "hsnap: pid %" PRIu32 ": recorded; Enter marks a moment, Ctrl-C ends it\n",
		pid);
	CloseHandle(thread);
}

static int record_process(struct record_request *request, struct record_session *session,
	uint32_t pid, struct err *err)
{
	const struct attach_options with = {.limit_bytes = TABLES_DEFAULT_BYTES,
		.sample_bytes = request->file.plan.sample_bytes,
		.recording = record_session_link(session)};
	struct record_session_result result;
	struct process_ref process = {0};
	uint64_t limit = 0;
	struct err end_err = {0};
	int rc = process_ref_open(&process, pid, 0, err), end_rc;

	os_on_interrupt(NULL);
	os_hold_interrupt(true);
	if (!rc)
		rc = control_attach(pid, &with, &limit, err);
	if (!rc) {
		const intptr_t handles[] = {process.handle, record_session_over_handle(session)};

		begin_marks(pid);
		while (!os_was_interrupted() && !process_ref_has_ended(&process) &&
			!record_session_is_over(session))
			os_wait(INT64_MAX, handles, 2);
		if (!process_ref_has_ended(&process) && !record_session_is_over(session)) {
			record_session_look(session);
			rc = control_end_recording(pid, err);
		}
		if (rc == -ERR_GONE || rc == -ERR_NOT_TRACED)
			rc = 0;
	}
	process_ref_close(&process);
	end_rc = record_session_end(session, &result, &end_err);
	if (rc)
		return command_fail_or_delegate(rc, pid, err);
	if (end_rc)
		return command_fail(&end_err);
	return print_result(request, &request->file, &result);
}

int command_record(int argc, char **argv)
{
	static const struct command_form form = {
		usage, options, .stops_at_argument = true, .set = set_option};
	struct record_request request = {
		.file.plan = {.path_of = path_of, .ring_bytes = RINGS_DEFAULT_BYTES}};
	struct record_session *session = NULL;
	uint32_t pid = 0;
	struct err err = {0};
	int64_t unused;
	int rc;

	if (command_is_of_log(argc, argv))
		return command_record_log(argc, argv);
	buf_init(&request.file.path);
	rc = command_read(&form, argc, argv, &request, &err);
	if (!rc && request.stops && (request.file.pattern || request.word_count))
		rc = err_set(
			&err, ERR_USAGE, "--stop", "takes a process, but no file and no program");
	if (!rc && !request.file.pattern && !request.stops)
		rc = err_set(&err, ERR_USAGE, "record", "needs -o FILE");
	if (!rc && !request.word_count)
		rc = process_choice_check(&request.process, "record", &err);
	else if (!rc && request.process.count)
		rc = err_set(&err, ERR_USAGE, "record", "takes a process or a program, not both");
	if (!rc && request.run.with_children && !request.word_count)
		rc = err_set(&err, ERR_USAGE, "--children",
			"applies only to a program that hsnap starts");
	if (!rc && !request.word_count)
		rc = process_choose(&request.process, false, &pid, &err);
	if (!rc && request.stops)
		return print_recorder(pid, NULL);
	request.run.argv = (const char *const *)argv + argc - request.word_count;
	request.file.plan.is_attached = !request.word_count;
	if (!rc)
		rc = check_pattern(&request.file, &err);
	if (!rc)
		rc = check_output(&request.file,
			request.word_count ? request.run.argv[0] : request.process.name, &err);
	if (!rc && !follow_is_wanted(&unused))
		rc = record_session_new(&session, &request.file.plan, &err);
	if (rc)
		return rc < 0 ? command_fail(&err) : 0;
	rc = request.word_count ? record_program(&request, session, &err) :
				  record_process(&request, session, pid, &err);
	buf_release(&request.file.path);
	return rc;
}

/* ---------------------------------------------------------------- hsnap mark */

static const struct opt mark_options[] = {
	PROCESS_OPTIONS("mark"),
	HELP_OPTION,
	{0},
};

static const char mark_usage[] =
	"usage: hsnap mark -p PID | -pn NAME [LABEL]\n"
	"\n"
	"Name this moment in a recording that another hsnap is making of the process: hdiff\n"
	"reads it as FILE@LABEL.\n";

struct mark_request {
	struct process_choice process;
	const char *label;
};

/* Returns true for a label that hdiff would read as a moment: "end", "5s", "40%". */
static bool is_moment(const char *label)
{
	static const char *const words[] = {"start", "end", "peak"};
	static const char *const units[] = {"ms", "s", "m", "h", "d", "%"};
	size_t digits = strspn(label, "0123456789.");

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (!strcmp(label, words[i]))
			return true;
	}
	for (size_t i = 0; digits && i < sizeof(units) / sizeof(*units); i++) {
		if (!strcmp(label + digits, units[i]))
			return true;
	}
	return false;
}

static int set_mark_option(void *ctx, int id, const char *value, struct err *err)
{
	struct mark_request *request = ctx;

	if (id != OPT_ARGUMENT)
		return process_option(&request->process, id, value, err);
	if (request->label)
		return err_set(err, ERR_USAGE, value,
			"mark takes one label; put a label with spaces in quotes");
	if (is_moment(value))
		return err_set(err, ERR_USAGE, value,
			"hdiff would read such a label as a moment; use another one");
	request->label = value;
	return 0;
}

int command_mark(int argc, char **argv)
{
	static const struct command_form form = {mark_usage, mark_options, .set = set_mark_option};
	struct mark_request request = {0};
	struct err err = {0};
	uint32_t pid = 0;
	int rc = command_read(&form, argc, argv, &request, &err);

	if (!rc)
		rc = process_choice_check(&request.process, "mark", &err);
	if (!rc)
		rc = process_choose(&request.process, false, &pid, &err);
	if (rc)
		return rc < 0 ? command_fail(&err) : 0;
	return print_recorder(pid, request.label ? request.label : "mark");
}
