#include <stdio.h>
#include <string.h>

#include "core/opt.h"
#include "snapshot/command/command.h"
#include "snapshot/doctor/doctor_trials_windows.h"
#include "snapshot/doctor/doctor_windows.h"

enum {
	OPT_HELP = 1,
};

static const struct opt options[] = {
	{OPT_HELP, "h", "help", NULL, "print this help"},
	{0},
};

void command_doctor_help(FILE *to)
{
	fprintf(to,
		"usage: hsnap doctor\n"
		"\n"
		"Starts a program with known blocks, reads it in every way there is and compares.\n"
		"Ends with 1 when anything is not as it should be.\n"
		"\n");
	opt_help(options, to);
}

static bool has_row(
	const struct doctor_report *report, const char *source, enum doctor_verdict verdict)
{
	for (size_t i = 0; i < report->count; i++) {
		if (!strcmp(report->rows[i].source, source) && report->rows[i].verdict == verdict)
			return true;
	}
	return false;
}

static void print(const struct doctor *doctor)
{
	size_t off = doctor_report_off(&doctor->report);

	printf("hsnap %s on %s\n\n", HSNAP_VERSION, *doctor->os ? doctor->os : "an unknown system");
	doctor_report_print(&doctor->report, stdout);
	printf("\nused:\n%s", doctor->notes.len ? doctor->notes.data : "nothing\n");
	if (has_row(&doctor->report, "ust", DOCTOR_NOT_THERE) && !doctor->is_wine)
		printf("\nTo try +ust as an administrator sets it: 'hsnap ust on hsnap.exe', "
		       "hsnap doctor once more,\nthen 'hsnap ust off hsnap.exe'.\n");
	if (off)
		printf("\n%zu row%s OFF: do not trust what hsnap says on this system.\n", off,
			off == 1 ? " is" : "s are");
	else
		printf("\nAll that is there is as it should be.\n");
}

static int run_doctor(void)
{
	struct doctor doctor;
	struct err err = {0};
	int status = 0;

	if (doctor_examine(&doctor)) {
		err_set(&err, ERR_NOMEM, "doctor", NULL);
		status = command_fail(&err);
	} else {
		print(&doctor);
		status = doctor_report_off(&doctor.report) ? 1 : 0;
	}
	doctor_release(&doctor);
	return status;
}

int command_doctor(int argc, char **argv)
{
	struct opt_state state;
	struct err err = {0};
	int id;

	if (argc > 1 && !strcmp(argv[1], DOCTOR_CHILD))
		return doctor_child_main(argc - 2, argv + 2);
	opt_init(&state, options, argc, argv);
	while ((id = opt_next(&state, &err))) {
		if (id == OPT_HELP) {
			command_doctor_help(stdout);
			return 0;
		}
		if (id == OPT_ARGUMENT)
			err_set(&err, ERR_USAGE, state.value, "doctor takes no arguments");
		return command_fail(&err);
	}
	return run_doctor();
}
