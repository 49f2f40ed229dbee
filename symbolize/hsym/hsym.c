/* Main program of hsym: parses options, then handles a dump, --explain or -e. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "core/base/memory.h"
#include "core/base/opt.h"
#include "core/base/os.h"
#include "core/dump/dump.h"
#include "core/dump/dump_head.h"
#include "core/dump/file_kind.h"
#include "core/io/out.h"
#include "symbolize/hsym/hsym.h"

enum {
	OPT_OUT = 1,
	OPT_ADDRESSES,
	OPT_EXACT,
	OPT_EXPLAIN,
	OPT_FORCE,
	OPT_OVERWRITE,
	OPT_HELP,
	OPT_VERSION,
};

static const struct opt options[] = {
	{OPT_OUT, "o", "output", "OUT", "write to the file OUT instead of standard output"},
	{OPT_OUT, "f", NULL, "OUT", "same as -o"},
	{OPT_ADDRESSES, "e", "module", "MODULE",
		"print the names of addresses in this image or PDB"},
	{OPT_EXACT, NULL, "exact", NULL, "with -e: the addresses are not return addresses"},
	{OPT_EXPLAIN, NULL, "explain", NULL, "show, for each module, why names are missing"},
	SYMBOL_OPTS,
	{OPT_FORCE, NULL, "force", NULL, "accept a dump whose end is missing"},
	{OPT_OVERWRITE, NULL, "overwrite", NULL, "let OUT replace any file"},
	{OPT_HELP, "h", "help", NULL, "print this help"},
	{OPT_VERSION, NULL, "version", NULL, "print the version"},
	{OPT_HELP, "?", NULL, NULL, NULL},
	{0},
};

struct hsym_request {
	const char **arguments; /* a dump, or addresses */
	size_t count;
	const char *module, *out;
	bool explain, is_exact, force, overwrite;
	struct symbol_arguments symbols;
	struct symbol_console console;
};

static void print_help(FILE *to)
{
	fprintf(to, "usage: hsym [options] [DUMP]\n"
		    "       hsym [options] --explain DUMP\n"
		    "       hsym [options] -e MODULE [ADDR...]\n"
		    "\n"
		    "Write DUMP with names added to its addresses. Without DUMP, or with -,\nread "
		    "standard input. -e prints names of addresses.\n"
		    "\n");
	opt_help(options, to);
}

/* ---------------------------------------------------------------- a dump */

static int finish_out(struct out *out, int rc, struct err *err)
{
	if (!rc)
		return out_commit(out, err);
	out_abort(out);
	return rc;
}

/* Returns true if the output is the dump itself or an earlier copy of it with names, so replacing
 * it loses nothing. */
static bool is_copy(const struct input *input, const char *path)
{
	struct dump_head head;

	return !input->is_pipe &&
	       (os_same_file(input->path, path) ||
		       (!dump_head_read(input->path, &head, NULL) && dump_head_is_of(path, &head)));
}

static int write_dump(
	const struct addnames *work, struct input *input, const char *path, struct err *err)
{
	bool is_shown = (!path || !strcmp(path, "-")) && os_is_terminal(stdout);
	struct out out;
	int rc = input_rewind(input, err);

	if (!rc)
		rc = out_open(&out, path, err);
	if (rc)
		return rc;
	rc = addnames_copy(work, input, &out, is_shown, err);
	input_close(input); /* Windows cannot replace an open file */
	rc = finish_out(&out, rc, err);
	if (!rc)
		addnames_summary(work, stderr, "hsym");
	return rc;
}

static int write_table(const struct addnames *work, const char *path, struct err *err)
{
	const char *trouble = symbolizer_trouble(work->symbolizer);
	struct out out;
	int rc = out_open(&out, path, err);

	if (rc)
		return rc;
	explain_write(work, &out);
	rc = out_commit(&out, err);
	if (!rc && trouble)
		fprintf(stderr, "hsym: %s\n", trouble);
	if (!rc && symbol_console_stopped())
		fprintf(stderr, "hsym: stopped looking for names\n");
	return rc;
}

static int run_dump(const struct hsym_request *request, const char *dump, struct err *err)
{
	struct addnames work;
	struct input input;
	int rc = input_open(&input, dump, err);

	if (!rc && request->out && !request->explain && is_copy(&input, request->out))
		out_protect(NULL);
	if (!rc)
		rc = out_check(request->out, err); /* check this before the long look-up */
	if (!rc) {
		rc = addnames_init(&work, &request->symbols.options, err);
		if (!rc)
			rc = addnames_read(&work, &input, request->force, err);
		if (!rc) {
			addnames_resolve(&work);
			rc = request->explain ? write_table(&work, request->out, err) :
						write_dump(&work, &input, request->out, err);
		}
		addnames_release(&work);
	}
	input_close(&input);
	return rc;
}

/* ---------------------------------------------------------------- addresses */

static int run_addresses(const struct hsym_request *request, struct err *err)
{
	struct address_request asked = {.file = request->module,
		.texts = request->arguments,
		.count = request->count,
		.is_exact = request->is_exact,
		.options = &request->symbols.options};
	struct out out;
	int rc = out_open(&out, request->out, err);

	return rc ? rc : finish_out(&out, addr2name_print(&asked, &out, err), err);
}

/* ---------------------------------------------------------------- options */

/* Handles an option. Returns 1 to continue, 0 to exit successfully, or -ERR_USAGE. */
static int handle_option(
	int id, const struct opt_state *state, struct hsym_request *request, struct err *err)
{
	switch (id) {
	case OPT_OUT: request->out = state->value; return 1;
	case OPT_ADDRESSES: request->module = state->value; return 1;
	case OPT_EXACT: request->is_exact = true; return 1;
	case OPT_EXPLAIN: request->explain = true; return 1;
	case OPT_FORCE: request->force = true; return 1;
	case OPT_OVERWRITE: request->overwrite = true; return 1;
	case OPT_HELP: print_help(stdout); return 0;
	case OPT_VERSION:
		printf("hsym %s\nzlib %s\ndump format %d\n", HSNAP_VERSION, zlibVersion(),
			DUMP_FORMAT);
		return 0;
	case OPT_ARGUMENT: request->arguments[request->count++] = state->value; return 1;
	default:
		return id < 0 ? id :
				symbol_arguments_handle(&request->symbols, id, state->value, err);
	}
}

static int check(const struct hsym_request *request, struct err *err)
{
	if (request->module && request->explain)
		return err_set(err, ERR_USAGE, "--explain", "applies to a dump, not to -e");
	if (request->module)
		return 0;
	if (request->is_exact)
		return err_set(err, ERR_USAGE, "--exact", "applies only to -e");
	if (request->count > 1)
		return err_set(err, ERR_USAGE, request->arguments[1], "one dump at a time");
	if (!request->count && os_is_terminal(stdin))
		return err_set(err, ERR_USAGE, "hsym", "no dump specified");
	return 0;
}

int main(int argc, char **argv)
{
	struct hsym_request request = {0};
	struct opt_state state;
	struct err err = {0};
	int id, rc = 1;

	memory_program = "hsym";
	os_start(&argc, &argv);
	os_on_interrupt(out_interrupted);
	request.arguments = xcalloc((size_t)argc + 1, sizeof(*request.arguments));
	opt_init(&state, options, argc, argv);
	while (rc > 0 && (id = opt_next(&state, &err)))
		rc = handle_option(id, &state, &request, &err);
	request.symbols.options.listener =
		symbol_console_listener(&request.console, "hsym", stderr);
	out_protect(request.overwrite ? NULL : file_kind_kept);
	if (rc > 0) {
		rc = check(&request, &err);
		if (!rc)
			symbol_options_warn(&request.symbols.options);
		if (!rc)
			rc = request.module ?
				     run_addresses(&request, &err) :
				     run_dump(&request, request.count ? request.arguments[0] : "-",
					     &err);
	}
	if (!rc && fflush(stdout))
		rc = err_set(&err, ERR_WRITE, "standard output", NULL);
	if (rc)
		err_print(stderr, "hsym", &err);
	free(request.arguments);
	symbol_arguments_release(&request.symbols);
	return rc ? 2 : 0;
}
