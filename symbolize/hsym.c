/* hsym: puts names to the addresses in a heap dump. */
#include <stdbool.h>
#include <stdio.h>

#include "core/opt.h"
#include "core/os.h"
#include "core/out.h"
#include "symbolize/command/addnames.h"

enum {
	OPT_OUT = 1,
	OPT_FORCE,
	OPT_HELP,
	OPT_VERSION,
};

static const struct opt options[] = {
	{OPT_OUT, "o", "output", "OUT", "write to the file OUT instead of standard output"},
	{OPT_OUT, "f", NULL, "OUT", "the same, as the other commands spell it"},
	{OPT_FORCE, NULL, "force", NULL, "take a dump whose end is missing"},
	{OPT_HELP, "h", "help", NULL, "print this help"},
	{OPT_VERSION, NULL, "version", NULL, "print the version"},
	{OPT_HELP, "?", NULL, NULL, NULL},
	{0},
};

struct request {
	const char *dump, *out;
	bool force;
};

static void print_help(FILE *to)
{
	fprintf(to, "usage: hsym [--force] [-o OUT] DUMP\n"
		    "\n"
		    "Writes DUMP with the names of its addresses added; - is standard input.\n"
		    "\n");
	opt_help(options, to);
}

static int write_out(
	const struct addnames *work, struct input *input, const char *path, struct err *err)
{
	struct out out;
	int rc = input_rewind(input, err);

	if (!rc)
		rc = out_open(&out, path, err);
	if (rc)
		return rc;
	rc = addnames_copy(work, input, &out, err);
	input_close(input); /* Windows replaces no file that is open */
	if (rc)
		out_abort(&out);
	else
		rc = out_commit(&out, err);
	return rc;
}

static int run(const struct request *request, struct err *err)
{
	struct addnames work;
	struct input input;
	int rc = input_open(&input, request->dump, err);

	if (rc) {
		input_close(&input);
		return rc;
	}
	rc = addnames_init(&work, err);
	if (!rc)
		rc = addnames_read(&work, &input, request->force, err);
	if (!rc)
		rc = addnames_resolve(&work, err);
	if (!rc)
		rc = write_out(&work, &input, request->out, err);
	if (!rc)
		addnames_summary(&work, stderr, "hsym");
	addnames_release(&work);
	input_close(&input);
	return rc;
}

/* 1: go on; 0: all is done; or -ERR_USAGE. */
static int take_option(
	int id, const struct opt_state *state, struct request *request, struct err *err)
{
	switch (id) {
	case OPT_OUT: request->out = state->value; return 1;
	case OPT_FORCE: request->force = true; return 1;
	case OPT_HELP: print_help(stdout); return 0;
	case OPT_VERSION: printf("hsym %s\n", HSNAP_VERSION); return 0;
	case OPT_ARGUMENT:
		if (request->dump)
			return err_set(err, ERR_USAGE, state->value, "one dump at a time");
		request->dump = state->value;
		return 1;
	default: return id;
	}
}

int main(int argc, char **argv)
{
	struct request request = {0};
	struct opt_state state;
	struct err err = {0};
	int id, rc = 1;

	if (os_start(&argc, &argv)) {
		fprintf(stderr, "hsym: out of memory\n");
		return 2;
	}
	opt_init(&state, options, argc, argv);
	while (rc > 0 && (id = opt_next(&state, &err)))
		rc = take_option(id, &state, &request, &err);
	if (rc > 0 && !request.dump)
		rc = err_set(&err, ERR_USAGE, "hsym", "give it a dump");
	os_on_interrupt(out_interrupted);
	if (rc > 0)
		rc = run(&request, &err);
	if (!rc && fflush(stdout))
		rc = err_set(&err, ERR_WRITE, "standard output", NULL);
	if (!rc)
		return 0;
	err_print(stderr, "hsym", &err);
	return 2;
}
