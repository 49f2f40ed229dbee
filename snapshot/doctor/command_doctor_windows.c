#include <stdio.h>
#include <string.h>

#include "core/opt.h"
#include "snapshot/command/command.h"
#include "snapshot/doctor/doctor_trials_windows.h"
#include "snapshot/doctor/doctor_windows.h"

enum {
	OPT_HELP = 1,
	OPT_VERBOSE,
};

static const struct opt options[] = {
	{OPT_VERBOSE, "v", "verbose", NULL, "print every row of the table"},
	{OPT_HELP, "h", "help", NULL, "print this help"},
	{0},
};

static void doctor_help(FILE *to)
{
	fprintf(to,
		"usage: hsnap doctor [-v]\n"
		"\n"
		"Starts a program with known blocks, reads it in every way there is and compares.\n"
		"Ends with 1 when anything is not as it should be.\n"
		"\n");
	opt_help(options, to);
}

static void print_reasons(const struct doctor_report *report)
{
	static const enum doctor_verdict verdicts[] = {DOCTOR_NOT_THERE, DOCTOR_NOTE, DOCTOR_OFF};

	for (size_t i = 0; i < sizeof(verdicts) / sizeof(*verdicts); i++)
		doctor_report_print_details(report, verdicts[i], stdout);
}

static void print_verdict(const struct doctor_report *report)
{
	size_t off = doctor_report_off(report);

	if (off)
		printf("\n%zu row%s OFF: do not trust what hsnap says on this system.\n", off,
			off == 1 ? " is" : "s are");
	else if (doctor_report_count(report, DOCTOR_NOTE))
		printf("\nNothing is off; what is noted above may well be right.\n");
	else
		printf("\nAll that is there is as it should be.\n");
}

/* What matters most is last, where a terminal shows it: what is off, and the verdict. */
static void print(const struct doctor *doctor, bool is_verbose)
{
	printf("hsnap %s on %s\n\n", HSNAP_VERSION, *doctor->os ? doctor->os : "an unknown system");
	if (is_verbose)
		doctor_report_print_rows(&doctor->report, stdout);
	else
		doctor_report_print_short(&doctor->report, stdout);
	printf("\nused:\n%s\n", doctor->notes.len ? doctor->notes.data : "nothing\n");
	if (doctor_report_has(&doctor->report, "ust", DOCTOR_NOT_THERE) && !doctor->is_wine)
		printf("To try +ust as an administrator sets it: 'hsnap ust on hsnap.exe', "
		       "hsnap doctor once more,\nthen 'hsnap ust off hsnap.exe'.\n\n");
	print_reasons(&doctor->report);
	print_verdict(&doctor->report);
}

static int run_doctor(bool is_verbose)
{
	struct doctor doctor;
	struct err err = {0};
	int status = 0;

	if (doctor_examine(&doctor)) {
		err_set(&err, ERR_NOMEM, "doctor", NULL);
		status = command_fail(&err);
	} else {
		print(&doctor, is_verbose);
		status = doctor_report_off(&doctor.report) ? 1 : 0;
	}
	doctor_release(&doctor);
	return status;
}

int command_doctor(int argc, char **argv)
{
	struct opt_state state;
	struct err err = {0};
	bool is_verbose = false;
	int id;

	if (argc > 1 && !strcmp(argv[1], DOCTOR_CHILD))
		return doctor_child_main(argc - 2, argv + 2);
	opt_init(&state, options, argc, argv);
	while ((id = opt_next(&state, &err))) {
		if (id == OPT_HELP) {
			doctor_help(stdout);
			return 0;
		}
		is_verbose = is_verbose || id == OPT_VERBOSE;
		if (id == OPT_VERBOSE)
			continue;
		if (id == OPT_ARGUMENT)
			err_set(&err, ERR_USAGE, state.value, "doctor takes no arguments");
		return command_fail(&err);
	}
	if (sizeof(void *) != 8) { /* its program knows its own functions by what x64 has */
		err_set(&err, ERR_USAGE, "doctor", "it is for the 64-bit hsnap alone");
		return command_fail(&err);
	}
	return run_doctor(is_verbose);
}
