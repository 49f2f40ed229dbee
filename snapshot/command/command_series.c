/* The loop of snapshots over processes that run and files that are written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stdatomic.h>

#include "core/base/os.h"
#include "core/io/interrupt.h"
#include "snapshot/command/command.h"
#include "snapshot/live/process_ref.h"
#include "snapshot/series/series.h"

struct series {
	const struct series_request *request;
	uint32_t pid; /* 0: by name */
	struct take take;
	struct series_limits limits;
	struct series_log log;
};

struct member {
	struct kept kept;
	struct series_files *files; /* NULL: each file takes the place of the one before it */
};

static void say(void *ctx, const char *line)
{
	struct series *series = ctx;
	struct err err;

	fprintf(stderr, "hsnap: %s\n", line);
	fflush(stderr);
	if (series_log_add(&series->log, os_time_ms(), line, &err))
		command_fail(&err);
}

static int fail(struct series *series, const struct err *err)
{
	char text[1600];

	say(series, err_text(err, text, sizeof(text)));
	return 2;
}

/* The log's path, for an end that is no end of a series: the console is closed, or somebody is in a hurry. */
static struct in_hand ending;

static void on_end(void)
{
	struct series_log log = {.path = in_hand_take(&ending)};

	series_log_add(&log, os_time_ms(), "ended from outside: the file at hand is dropped", NULL);
	in_hand_done(&ending);
}

static atomic_bool is_taking;

/* Who is not told that it takes a while presses again. */
static void on_held(void)
{
	if (is_taking)
		fprintf(stderr, "hsnap: interrupted: the file at hand is finished first; another "
				"Ctrl-C drops it\n");
}

static int64_t clock_ms(void *ctx)
{
	(void)ctx;
	return os_clock_ms();
}

static void wait_for(void *ctx, int64_t until_ms, void *const *processes, size_t count)
{
	intptr_t handles[SERIES_WAIT_MAX];

	(void)ctx;
	for (size_t i = 0; i < count; i++)
		handles[i] = ((const struct member *)processes[i])->kept.handle;
	os_wait(until_ms, handles, count);
}

static bool is_interrupted(void *ctx)
{
	(void)ctx;
	return os_was_interrupted();
}

static int find(void *ctx, struct series_found *found, struct err *err)
{
	const struct series *series = ctx;
	struct kept_seen *seen = NULL;
	size_t count = 0;
	int rc = series->pid ? kept_find_pid(series->pid, &seen, &count, err) :
			       kept_find(series->request->process.name, &seen, &count, err);

	for (size_t i = 0; !rc && i < count; i++) {
		if (array_grow((void **)&found->items, &found->cap, found->count,
			    sizeof(*found->items)))
			rc = err_set(err, ERR_NOMEM, "the list of processes", NULL);
		else
			found->items[found->count++] = (struct series_process){
				seen[i].pid, seen[i].start_ms, seen[i].private_bytes};
	}
	free(seen);
	return rc;
}

static void close_member(void *ctx, void *process)
{
	struct member *member = process;

	(void)ctx;
	series_files_free(member->files);
	kept_close(&member->kept);
	free(member);
}

/* What the process is called, for its files. */
static const char *program_of(const struct series *series, const struct member *member)
{
	const char *name = series->request->process.name;

	return member->kept.image[0] || !name ? member->kept.image : name;
}

/* The files of a member; better known to be possible before the process is held. */
static int open_files(const struct series *series, struct member *member, struct err *err)
{
	const struct series_request *request = series->request;

	if (!series->take.is_new)
		return 0;
	member->files = series_files_new(request->out, program_of(series, member), member->kept.pid,
		member->kept.start_ms, &series->limits, request->take.is_packed, err);
	return member->files ? series_files_check(member->files, err) : -(int)err->code;
}

static int open_member(
	void *ctx, const struct series_process *found, void **process, struct err *err)
{
	const struct series *series = ctx;
	struct member *member = calloc(1, sizeof(*member));
	int rc;

	if (!member)
		return err_set(err, ERR_NOMEM, series->request->out, NULL);
	rc = kept_open(&member->kept, found->pid, found->start_ms, err);
	if (rc) {
		free(member);
		return rc;
	}
	rc = open_files(series, member, err);
	if (rc)
		close_member(ctx, member);
	else
		*process = member;
	return rc;
}

static bool has_ended(void *ctx, void *process)
{
	(void)ctx;
	return kept_has_ended(&((const struct member *)process)->kept);
}

static int private_bytes(void *ctx, void *process, uint64_t *bytes, struct err *err)
{
	(void)ctx;
	return kept_private_bytes(&((const struct member *)process)->kept, bytes, err);
}

/* The one name of a process, when there is no time and no number in it. */
static int name_plain(const struct series *series, const struct member *member, struct buf *path)
{
	struct file_names names = {.program = program_of(series, member), .pid = member->kept.pid};

	return dump_name_add(path, series->request->out, &names, series->take.is_packed);
}

static int name_file(void *ctx, void *process, unsigned tries, struct buf *path, struct err *err)
{
	const struct series *series = ctx;
	struct member *member = process;
	int rc = 0;

	if (member->files)
		rc = series_files_name(member->files, os_time_ms(), tries, path, err);
	else if (name_plain(series, member, path))
		rc = err_set(err, ERR_NOMEM, series->request->out, NULL);
	if (!rc && series_is_log(series->request, path->data))
		rc = err_set(err, ERR_USAGE, path->data, SERIES_IS_LOG);
	return rc;
}

static int take_file(void *ctx, void *process, const char *path, const struct out_names *names,
	struct series_taken *out, struct err *err)
{
	const struct series *series = ctx;
	const struct member *member = process;
	struct take how = series->take;
	struct taken taken = {0};
	struct target target;
	int rc;

	rc = kept_target(&member->kept, &target, err);
	if (rc)
		return rc;
	how.names = names;
	is_taking = true;
	rc = take(&how, &target, path, &taken, err);
	is_taking = false;
	target.ops->close(&target);
	if (rc && rc != -ERR_INCOMPLETE)
		return rc;
	if (rc)
		fail(ctx, err);
	*out = (struct series_taken){
		taken.block_count, taken.requested_bytes, taken.held_ms, rc != 0};
	return 0;
}

/* What became of an older file does not make the newest one a failure. */
static void warn(void *ctx, const struct err *why)
{
	char text[1600], line[1700];

	snprintf(line, sizeof(line), "warning: %s", err_text(why, text, sizeof(text)));
	say(ctx, line);
}

static void written(void *ctx, void *process, const char *path)
{
	struct member *member = process;
	struct series_warn to = {warn, ctx};
	struct err err;

	if (member->files && series_files_written(member->files, path, &to, &err))
		warn(ctx, &err);
}

static const struct series_ops live_ops = {
	.clock_ms = clock_ms,
	.wait = wait_for,
	.is_interrupted = is_interrupted,
	.find = find,
	.open = open_member,
	.close = close_member,
	.has_ended = has_ended,
	.private_bytes = private_bytes,
	.name = name_file,
	.take = take_file,
	.written = written,
	.say = say,
};

/* A single snapshot ends at once, as any; what takes long is let finish its file. */
static void guard_interrupts(const struct series_request *request)
{
	take_guard_interrupts();
	os_on_end(on_end);
	os_on_held(on_held);
	os_hold_interrupt(request->every_ms || request->waits || request->takes_all);
}

static int run(struct series *series, struct err *err)
{
	const struct series_request *request = series->request;
	struct series_result result = {0};
	char what[40];
	struct series_plan plan = {.what = what,
		.every_ms = request->every_ms,
		.growth_bytes = request->growth_bytes,
		.file_count = request->file_count,
		.takes_all = request->takes_all,
		.waits = request->waits};
	int rc;

	snprintf(what, sizeof(what), "pid %lu", (unsigned long)series->pid);
	if (!series->pid)
		plan.what = request->process.name;
	in_hand_set(&ending, (void *)(uintptr_t)request->log);
	guard_interrupts(request);
	rc = series_loop_run(&plan, &live_ops, series, &result, err);
	in_hand_clear(&ending);
	return rc ? rc : series_exit_status(&result);
}

/* Whether files can be made, when nobody is there yet whose they would be: unless the folder is called as
 * the process is. */
static int check_folder(const struct series *series, struct err *err)
{
	const struct series_request *request = series->request;
	const char *last = file_pattern_last(request->out);
	struct series_files *files;
	int rc;

	if (!series->take.is_new || memchr(request->out, '{', (size_t)(last - request->out)))
		return 0;
	files = series_files_new(
		request->out, "program", 1, 0, &series->limits, request->take.is_packed, err);
	rc = files ? series_files_check(files, err) : -(int)err->code;
	series_files_free(files);
	return rc;
}

int series_main(const struct series_request *request)
{
	struct series series = {.request = request,
		.take = request->take,
		.limits = {request->keep_count, request->keep_bytes}};
	struct err err = {0};
	unsigned words = 0;
	int rc = series_check(request, &words, &err);

	if (!rc && request->process.pid)
		rc = process_pid_parse(request->process.pid, &series.pid, &err);
	if (!rc)
		rc = series_log_start(&series.log, request->log, &err);
	if (rc)
		return command_fail(&err);
	series.take.is_new = words & (PATTERN_TIME | PATTERN_NUMBER);
	series.take.warn = say;
	series.take.warn_ctx = &series;
	rc = check_folder(&series, &err);
	if (!rc)
		rc = run(&series, &err);
	return rc < 0 ? fail(&series, &err) : rc;
}

/* hsnap watch: a snapshot each time a process has grown. */

#define POLL_MS 1000 /* without --poll */
#define OUT "{name}-{pid}-{time}.txt" /* without -f */

enum {
	OPT_OUT = 1,
	OPT_GROWTH,
	OPT_POLL,
	OPT_HELP,
};

static const struct opt options[] = {
	PROCESS_OPTIONS("watch"),
	{OPT_GROWTH, NULL, "growth", "SIZE",
		"take a snapshot when SIZE was added since the last one (50M, 1G)"},
	{OPT_OUT, "f", "output", "OUT", "write them to files of such names; else " OUT},
	{OPT_POLL, NULL, "poll", "T", "look how large it is each time T has passed; else 1s"},
	SERIES_OPTIONS,
	STACKS_OPTION,
	DUMP_OPTIONS,
	{OPT_HELP, "h", "help", NULL, "print this help"},
	{0},
};

static void watch_help(FILE *to)
{
	fprintf(to,
		"usage: hsnap watch -p PID | -pn NAME --growth SIZE [-f OUT] [--poll T] [--count "
		"N]\n"
		"                   [--keep N] [--max-bytes SIZE] [--on-exit stop | wait] [--all]\n"
		"                   [--log FILE] [--stacks SOURCE] [--by-stack] [--gzip] [--force] "
		"[-v]\n"
		"\n"
		"Takes a snapshot of a process, and then one each time its private bytes have\n"
		"grown by SIZE since the last one.\n"
		"\n");
	opt_help(options, to);
}

/* Takes one option: 0, or an error. */
static int set_option(struct series_request *request, int id, const char *value, struct err *err)
{
	switch (id) {
	case OPT_OUT: request->out = value; return 0;
	case OPT_GROWTH: return series_growth_parse(value, &request->growth_bytes, err);
	case OPT_POLL: return series_span_parse("--poll", value, &request->every_ms, err);
	case OPT_ARGUMENT: return err_set(err, ERR_USAGE, value, "watch takes options only");
	default: return series_option(request, id, value, err);
	}
}

static int check(const struct series_request *request, struct err *err)
{
	int rc = process_choice_check(&request->process, "watch", err);

	if (!rc && !request->growth_bytes)
		rc = err_set(err, ERR_USAGE, "watch", "say how much is growth: --growth SIZE");
	return rc;
}

int command_watch(int argc, char **argv)
{
	struct series_request request = SERIES_REQUEST_INIT;
	struct opt_state state;
	struct err err = {0};
	int id, rc = 0;

	request.out = OUT;
	request.every_ms = POLL_MS;
	request.given = "watch";
	opt_init(&state, options, argc, argv);
	while (!rc && (id = opt_next(&state, &err))) {
		if (id == OPT_HELP) {
			watch_help(stdout);
			return 0;
		}
		rc = set_option(&request, id, state.value, &err);
	}
	if (!rc)
		rc = check(&request, &err);
	return rc ? command_fail(&err) : series_main(&request);
}
