/* Parses arguments using a table of options, returns one option per call, and prints the table. */
#include "core/base/opt.h"

#include <string.h>

void opt_init(struct opt_state *state, const struct opt *table, int argc, char **argv)
{
	*state = (struct opt_state){.table = table, .argc = argc, .argv = argv, .at = 1};
}

static const struct opt *find_long(const struct opt *table, const char *name, size_t len)
{
	for (; table->id; table++) {
		if (table->long_name && strlen(table->long_name) == len &&
			!memcmp(table->long_name, name, len))
			return table;
	}
	return NULL;
}

/* Finds an option by its short name at the start of `text`. The name must end at the end of `text`,
 * or at a ':' before a value. If `is_glued` is set, the name must instead be one letter, directly
 * followed by its value. Sets `*rest` to the text after the name. */
static const struct opt *find_short(
	const struct opt *table, const char *text, bool is_glued, const char **rest)
{
	for (; table->id; table++) {
		size_t len = table->short_name ? strlen(table->short_name) : 0;

		if (!len || strncmp(text, table->short_name, len) != 0)
			continue;
		*rest = text + len;
		if (is_glued ? len == 1 && table->value :
			       !**rest || (table->value && **rest == ':'))
			return table;
	}
	return NULL;
}

/* Tries "-name", "-n" and "-n:VALUE" first and "-nVALUE" last, so that "-force" is not parsed as
 * "-f orce". */
static const struct opt *find_dash(const struct opt *table, const char *text, const char **rest)
{
	const struct opt *opt = find_short(table, text, false, rest);
	size_t len = strcspn(text, "=:");

	if (!opt && len > 1) {
		opt = find_long(table, text, len);
		*rest = text + len;
	}
	return opt ? opt : find_short(table, text, true, rest);
}

static bool is_option(const struct opt_state *state, const char *text)
{
	const char *rest;

	if (text[0] != '-' || !text[1])
		return false;
	if (text[1] != '-')
		return find_dash(state->table, text + 1, &rest) != NULL;
	return !text[2] || find_long(state->table, text + 2, strcspn(text + 2, "="));
}

/* Reads the value of `opt` from `rest`, or from the next argument if `rest` is empty. Returns the
 * option's id or -ERR_USAGE. */
static int parse_value(struct opt_state *state, const struct opt *opt, const char *rest,
	const char *name, struct err *err)
{
	state->value = NULL;
	if (!opt->value) {
		if (*rest)
			return err_set(err, ERR_USAGE, name, "takes no value");
		return opt->id;
	}
	if (*rest == ':' || *rest == '=')
		rest++;
	else if (!*rest && state->at < state->argc && is_option(state, state->argv[state->at]))
		return err_set(err, ERR_USAGE, name,
			"needs a value (%s), but the option %s follows", opt->value,
			state->argv[state->at]);
	else if (!*rest)
		rest = state->at < state->argc ? state->argv[state->at++] : "";
	if (!*rest)
		return err_set(err, ERR_USAGE, name, "needs a value: %s", opt->value);
	state->value = rest;
	return opt->id;
}

static int option(struct opt_state *state, const char *arg, struct err *err)
{
	const struct opt *opt;
	const char *rest = "";

	if (arg[1] == '-') {
		size_t len = strcspn(arg + 2, "=");

		opt = find_long(state->table, arg + 2, len);
		rest = arg + 2 + len;
	} else {
		opt = find_dash(state->table, arg + 1, &rest);
	}
	if (!opt)
		return err_set(err, ERR_USAGE, arg, "no such option");
	return parse_value(state, opt, rest, arg, err);
}

int opt_next(struct opt_state *state, struct err *err)
{
	const char *arg;

	if (state->at >= state->argc)
		return 0;
	arg = state->argv[state->at++];
	if (!state->ended && !strcmp(arg, "--")) {
		state->ended = true;
		return opt_next(state, err);
	}
	if (state->ended || arg[0] != '-' || !arg[1]) {
		state->ended |= state->stop_at_argument;
		state->value = arg;
		return OPT_ARGUMENT;
	}
	return option(state, arg, err);
}

void opt_help(const struct opt *table, FILE *to)
{
	for (; table->id; table++) {
		char names[80];

		if (!table->help)
			continue;
		snprintf(names, sizeof(names), "%s%s%s%s%s%s%s", table->short_name ? "-" : "    ",
			table->short_name ? table->short_name : "",
			table->short_name && table->long_name ? ", " : "",
			table->long_name ? "--" : "", table->long_name ? table->long_name : "",
			table->value ? " " : "", table->value ? table->value : "");
		fprintf(to, "  %-26s  %s\n", names, table->help);
	}
}
