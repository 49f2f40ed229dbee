#include <stdio.h>
#include <string.h>

#include "core/kv.h"
#include "core/opt.h"
#include "core/os.h"
#include "snapshot/command/command.h"
#include "snapshot/live/process.h"

enum {
	OPT_PID = 1,
	OPT_NAME,
	OPT_DUMP,
	OPT_OUT,
	OPT_STACKS,
	OPT_VERBOSE,
	OPT_HELP,
	OPT_VERSION,
};

static const struct opt options[] = {
	{OPT_PID, "p", "pid", "PID", "take a snapshot of this process"},
	{OPT_NAME, "pn", "name", "NAME", "take a snapshot of the process with this image name"},
	{OPT_DUMP, "z", "dump", "FILE", "take a snapshot of the process in this minidump"},
	{OPT_OUT, "f", "output", "OUT", "write it to OUT instead of standard output"},
	{OPT_STACKS, NULL, "stacks", "SOURCE", "where stacks come from: auto ust os tracer"},
	{OPT_VERBOSE, "v", "verbose", NULL, "say on standard error what was found"},
	{OPT_HELP, "h", "help", NULL, "print this help"},
	{OPT_VERSION, NULL, "version", NULL, "print the version"},
	{OPT_HELP, "?", NULL, NULL, NULL},
	{0},
};

static const struct command {
	const char *name;
	int (*main)(int argc, char **argv);
	void (*help)(FILE *to);
} commands[] = {
	{"run", command_run, command_run_help},
	{"attach", command_attach, command_attach_help},
	{"detach", command_detach, command_detach_help},
	{"ust", command_ust, command_ust_help},
	{"os", command_os, command_os_help},
	{"ps", command_ps, command_ps_help},
	{"doctor", command_doctor, command_doctor_help},
};

#define COMMANDS (sizeof(commands) / sizeof(*commands))

static void print_help(FILE *to)
{
	fprintf(to, "usage: hsnap -p PID | -pn NAME | -z FILE [-v] [--stacks SOURCE] [-f OUT]\n"
		    "\n"
		    "Writes every live heap block of a process, with its stack, as text.\n"
		    "hdiff compares two such snapshots.\n"
		    "\n");
	opt_help(options, to);
	for (size_t i = 0; i < COMMANDS; i++) {
		fputc('\n', to);
		commands[i].help(to);
	}
}

struct request {
	const char *pid, *name, *dump, *out;
	unsigned process_count; /* how often one was named */
	struct take take;
};

static int open_live(const struct request *request, struct target *target, struct err *err)
{
	uint64_t number = 0;
	uint32_t pid = 0;

	if (request->name) {
		int rc = process_by_name(request->name, &pid, err);

		return rc ? rc : target_open_live(target, pid, err);
	}
	if (kv_number(request->pid, 10, &number) || !number || number > UINT32_MAX)
		return err_set(err, ERR_USAGE, request->pid, "a pid is a decimal number");
	return target_open_live(target, (uint32_t)number, err);
}

/* A snapshot is of one process, and must not take the place of what it is made from. */
static int check(const struct request *request, struct err *err)
{
	if (request->process_count != 1)
		return err_set(err, ERR_USAGE, request->process_count ? "-p, -pn and -z" : "hsnap",
			request->process_count ? "give one of them, once" :
						 "say which process: -p PID, -pn NAME or -z FILE");
	if (request->dump && request->out && !os_is_special(request->out) &&
		os_same_file(request->dump, request->out))
		return err_set(err, ERR_USAGE, request->out, "it is the minidump");
	return 0;
}

static int snapshot(const struct request *request, struct err *err)
{
	struct target target;
	int rc = check(request, err);

	if (rc)
		return rc;
	take_guard_interrupts();
	rc = request->dump ? target_open_minidump(&target, request->dump, err) :
			     open_live(request, &target, err);
	if (rc)
		return rc;
	rc = take(&request->take, &target, request->out, err);
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
		request.process_count += id == OPT_PID || id == OPT_NAME || id == OPT_DUMP;
		switch (id) {
		case OPT_PID: request.pid = state.value; break;
		case OPT_NAME: request.name = state.value; break;
		case OPT_DUMP: request.dump = state.value; break;
		case OPT_OUT: request.out = state.value; break;
		case OPT_STACKS:
			if (capture_stacks_parse(state.value, &request.take.options.stacks, &err))
				return command_fail(&err);
			break;
		case OPT_VERBOSE: request.take.is_verbose = true; break;
		case OPT_HELP: print_help(stdout); return 0;
		case OPT_VERSION: printf("hsnap %s\n", HSNAP_VERSION); return 0;
		case OPT_ARGUMENT:
			err_set(&err, ERR_USAGE, state.value, "there is no such command");
			return command_fail(&err);
		default: return command_fail(&err);
		}
	}
	return snapshot(&request, &err) ? command_fail(&err) : 0;
}

int main(int argc, char **argv)
{
	struct err err;

	if (os_start(&argc, &argv)) {
		err_set(&err, ERR_NOMEM, NULL, NULL);
		return command_fail(&err);
	}
	if (argc < 2) {
		print_help(stderr);
		return 2;
	}
	if (!strcmp(argv[1], GUARD_COMMAND))
		return guard_main(argc, argv);
	for (size_t i = 0; i < COMMANDS; i++) {
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].main(argc - 1, argv + 1);
	}
	return main_options(argc, argv);
}
