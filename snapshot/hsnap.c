/* Entry point of hsnap: the table of commands, and the output of --help and --version. */
#include <stdio.h>
#include <string.h>

#include <zlib.h>
#include <zstd.h>

#include "core/base/os.h"
#include "core/base/text.h"
#include "core/dump/dump.h"
#include "core/dump/file_kind.h"
#include "core/io/out.h"
#include "core/record/record.h"
#include "snapshot/command/command.h"
#include "snapshot/control/control.h"
#include "snapshot/live/process.h"

static const struct command {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *summary;
} commands[] = {
	{"snapshot", command_snapshot, "take a snapshot, or a series (the default command)"},
	{"watch", command_watch, "take a snapshot each time a process has grown"},
	{"run", command_run, "start a program so that its blocks have stacks; see what it leaked"},
	{"attach", command_attach, "record stacks in a running process from now on"},
	{"detach", command_detach, "stop recording stacks in a process, and discard them"},
	{"record", command_record, "record every allocation and free of a process over time"},
	{"mark", command_mark, "name a moment in the recording of a process"},
	{"ps", command_ps, "list processes, and where their stacks come from"},
	{"schedule", command_schedule, "have Task Scheduler take snapshots"},
	{"ust", command_ust, "have Windows record the stacks of a program, from its next start on"},
	{"doctor", command_doctor, "check that hsnap reads this system's heaps correctly"},
};

#define COMMANDS (sizeof(commands) / sizeof(*commands))

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++) {
		if (!strcmp(name, commands[i].name))
			return &commands[i];
	}
	return NULL;
}

/* Returns true if the first word is not an option, a command or a file. Prints the list of commands
 * in that case. */
static bool is_no_command(char *word)
{
	if (find(word) || *word == '-' || strpbrk(word, "./\\:") || os_exists(word))
		return false;
	fprintf(stderr, "hsnap: %.100s: no such command; the commands are", text_harmless(word));
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(stderr, "%s %s", i ? "," : "", commands[i].name);
	fprintf(stderr, "; hdiff shows what leaks: hdiff a.txt b.txt\n");
	return true;
}

static void print_help(FILE *to)
{
	fprintf(to, "usage: hsnap -p PID | -pn NAME | -z FILE.dmp [-f OUT] [OPTION ...]\n"
		    "       hsnap COMMAND ...\n"
		    "\n"
		    "Write every live heap block of a process, with its stack, as text.\n"
		    "hdiff compares two such files: hdiff a.txt b.txt\n"
		    "\n");
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(to, "  %-9s %s\n", commands[i].name, commands[i].summary);
	fprintf(to,
		"\n"
		"'hsnap COMMAND -h' prints a command's options. Most used:\n"
		"\n"
		"  hsnap run --at-exit leaks.txt -- app.exe ARG ...\n"
		"  hsnap attach -pn app.exe\n"
		"  hsnap -pn app.exe -f a.txt\n"
		"  hsnap -pn app.exe -f \"dumps/{name}-{pid}-{time}.txt\" --every 30m --keep 48\n");
}

static bool is_one_of(const char *word, const char *const *words)
{
	while (*words && strcmp(word, *words) != 0)
		words++;
	return *words != NULL;
}

int main(int argc, char **argv)
{
	static const char *const help[] = {"-h", "--help", "-help", "-?", "/?", "help", NULL};
	static const char *const version[] = {"--version", "-version", "version", NULL};
	const struct command *command;

	os_start(&argc, &argv);
	out_protect(file_kind_kept);
	if (argc < 2) {
		print_help(stderr);
		return 2;
	}
	if (is_one_of(argv[1], help)) {
		print_help(stdout);
		return 0;
	}
	if (is_one_of(argv[1], version)) {
		printf("hsnap %s\nzstd %s, zlib %s%s\ndump format %d, recording format %d\n",
			HSNAP_VERSION, ZSTD_versionString(), zlibVersion(), command_parts(),
			DUMP_FORMAT, RECORD_FORMAT);
		return 0;
	}
	if (!strcmp(argv[1], GUARD_COMMAND)) /* the helper that guard_start() starts */
		return guard_main(argc, argv);
	/* another hsnap hands a child process over to this one */
	if (!strcmp(argv[1], FOLLOW_COMMAND)) {
		if (control_parse_follow(argc - 1, argv + 1) || argc <= 1 + FOLLOW_WORDS)
			return 2;
		argc -= FOLLOW_WORDS;
		argv += FOLLOW_WORDS;
	}
	if (is_no_command(argv[1]))
		return 2;
	command = find(argv[1]);
	return command ? command->main(argc - 1, argv + 1) : command_snapshot(argc, argv);
}
