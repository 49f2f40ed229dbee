#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/dump.h"
#include "core/kv.h"
#include "core/opt.h"
#include "snapshot/capture.h"
#include "snapshot/process.h"

enum {
	OPT_PID = 1,
	OPT_NAME,
	OPT_OUT,
	OPT_VERBOSE,
	OPT_AT_EXIT,
	OPT_HELP,
	OPT_VERSION,
};

static const struct opt options[] = {
	{OPT_PID, "p", "pid", "PID", "take a snapshot of this process"},
	{OPT_NAME, "pn", "name", "NAME", "take a snapshot of the process with this image name"},
	{OPT_OUT, "f", "output", "OUT", "write it to OUT instead of standard output"},
	{OPT_VERBOSE, "v", "verbose", NULL, "say on standard error what was found"},
	{OPT_HELP, "h", "help", NULL, "print this help"},
	{OPT_VERSION, NULL, "version", NULL, "print the version"},
	{OPT_HELP, "?", NULL, NULL, NULL},
	{0},
};

static const struct opt run_options[] = {
	{OPT_AT_EXIT, NULL, "at-exit", "OUT", "write a snapshot to OUT when PROG ends"},
	{OPT_VERBOSE, "v", "verbose", NULL, "say on standard error what was found"},
	{OPT_HELP, "h", "help", NULL, "print this help"},
	{0},
};

static void print_help(FILE *to)
{
	fprintf(to, "usage: hsnap -p PID | -pn NAME [-v] [-f OUT]\n"
		    "       hsnap run [-v] [--at-exit OUT] [--] PROG [ARG ...]\n"
		    "\n"
		    "Writes every live heap block of a traced process, with its stack, as text.\n"
		    "hdiff compares two such snapshots.\n"
		    "\n");
	opt_help(options, to);
	fprintf(to,
		"\nhsnap run starts PROG with the tracer in it and ends with its exit status:\n");
	opt_help(run_options, to);
}

/* The target that an interrupt has to let go; one at a time. */
static struct target *held;
static bool is_verbose;

static void on_interrupt(void)
{
	if (held)
		held->ops->resume(held);
	out_interrupted();
}

static void report(const struct snapshot *snapshot, const struct target *target,
	const struct capture_stats *stats)
{
	struct census total = snapshot_total(snapshot);
	uint64_t stackless = 0;

	for (size_t i = 0; i < snapshot->heap_count; i++)
		stackless += snapshot->heaps[i].stackless.block_count;
	fprintf(stderr,
		"hsnap: %s: %" PRIu64 " blocks, %" PRIu64 " bytes requested, %" PRIu64
		" overhead, %" PRIu64 " blocks without a stack, %zu heaps, %zu stacks\n"
		"hsnap: %s: held for %" PRId64 " ms, %u tries, %" PRIu64 " reads of %" PRIu64
		" bytes\n",
		target->name, total.block_count, total.requested_bytes, total.overhead_bytes,
		stackless, snapshot->heap_count, snapshot->stacks.count, target->name,
		stats->held_ms, stats->tries, target->reads, target->read_bytes);
}

/* Takes a snapshot of an open target and writes it to path (NULL: standard output). */
static int snapshot_to(struct target *target, const char *path, struct err *err)
{
	struct capture_stats stats = {0};
	struct snapshot snapshot;
	struct out out;
	int rc = out_open(&out, path, err);

	if (rc)
		return rc;
	snapshot_init(&snapshot);
	held = target;
	rc = capture(target, &snapshot, &stats, err);
	held = NULL;
	if (rc) {
		out_abort(&out);
	} else {
		dump_write(&out, &snapshot);
		rc = out_commit(&out, err);
	}
	for (size_t i = 0; !rc && i < snapshot.warning_count; i++)
		fprintf(stderr, "hsnap: %s: warning: %s\n", target->name, snapshot.warnings[i]);
	if (!rc && is_verbose)
		report(&snapshot, target, &stats);
	snapshot_release(&snapshot);
	return rc;
}

/* Whether a file can be written to path: better known before the program runs than after. */
static int check_output(const char *path, struct err *err)
{
	struct out out;
	int rc = out_open(&out, path, err);

	if (!rc)
		out_abort(&out);
	return rc;
}

static int fail(const struct err *err)
{
	err_print(stderr, "hsnap", err);
	return 2;
}

static int main_run(int argc, char **argv)
{
	struct opt_state state;
	struct run request = {.snapshot = snapshot_to};
	struct err err = {0};
	uint32_t exit_status = 2;
	int id;

	opt_init(&state, run_options, argc, argv);
	state.stop_at_argument = true;
	while ((id = opt_next(&state, &err)) && id != OPT_ARGUMENT) {
		if (id < 0)
			return fail(&err);
		if (id == OPT_HELP) {
			print_help(stdout);
			return 0;
		}
		if (id == OPT_VERBOSE)
			is_verbose = true;
		else
			request.at_exit = state.value;
	}
	if (!id) {
		err_set(&err, ERR_USAGE, "run", "it needs a program to start");
		return fail(&err);
	}
	if (request.at_exit && check_output(request.at_exit, &err))
		return fail(&err);
	request.argv = argv + state.at - 1;
	if (run(&request, &exit_status, &err)) {
		fail(&err);
		/* A program that ran has a status of its own; one that failed keeps it. */
		return exit_status ? (int)exit_status : 2;
	}
	return (int)exit_status;
}

struct request {
	const char *pid, *name, *out;
};

static int main_snapshot(const struct request *request, struct err *err)
{
	struct target target;
	uint64_t number = 0;
	uint32_t pid = 0;
	int rc;

	if (!request->pid == !request->name)
		return err_set(err, ERR_USAGE, request->pid ? "-p and -pn" : "hsnap",
			request->pid ? "give one of them" :
				       "say which process: -p PID or -pn NAME");
	if (request->name) {
		rc = process_by_name(request->name, &pid, err);
		if (rc)
			return rc;
	} else if (kv_number(request->pid, 10, &number) || !number || number > UINT32_MAX) {
		return err_set(err, ERR_USAGE, request->pid, "a pid is a decimal number");
	}
	os_on_interrupt(on_interrupt);
	rc = target_open_live(&target, request->pid ? (uint32_t)number : pid, err);
	if (rc)
		return rc;
	rc = snapshot_to(&target, request->out, err);
	target.ops->close(&target);
	return rc;
}

static int main_options(int argc, char **argv)
{
	struct request request = {0};
	struct opt_state state;
	struct err err = {0};
	int id;

	opt_init(&state, options, argc, argv);
	while ((id = opt_next(&state, &err))) {
		switch (id) {
		case OPT_PID: request.pid = state.value; break;
		case OPT_NAME: request.name = state.value; break;
		case OPT_OUT: request.out = state.value; break;
		case OPT_VERBOSE: is_verbose = true; break;
		case OPT_HELP: print_help(stdout); return 0;
		case OPT_VERSION: printf("hsnap %s\n", HSNAP_VERSION); return 0;
		case OPT_ARGUMENT:
			err_set(&err, ERR_USAGE, state.value, "there is no such command");
			return fail(&err);
		default: return fail(&err);
		}
	}
	return main_snapshot(&request, &err) ? fail(&err) : 0;
}

int main(int argc, char **argv)
{
	struct err err;

	if (os_start(&argc, &argv)) {
		err_set(&err, ERR_NOMEM, NULL, NULL);
		return fail(&err);
	}
	if (argc < 2) {
		print_help(stderr);
		return 2;
	}
	if (!strcmp(argv[1], GUARD_COMMAND))
		return guard_main(argc, argv);
	if (!strcmp(argv[1], "run"))
		return main_run(argc - 1, argv + 1);
	return main_options(argc, argv);
}
