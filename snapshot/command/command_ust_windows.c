#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <windows.h>

#include "core/base/opt.h"
#include "core/base/os_windows.h"
#include "core/base/text.h"
#include "core/dump/kv.h"
#include "snapshot/command/command.h"
#include "snapshot/ifeo/ifeo.h"
#include "snapshot/live/process.h"

enum {
	OPT_DB_MB = 1,
	OPT_HELP,
};

static const struct opt options[] = {
	{OPT_DB_MB, NULL, "db-mb", "N", "with on: room for the stacks of each process, in MiB"},
	{OPT_HELP, "h", "help", NULL, "print this help"},
	{0},
};

static void ust_help(FILE *to)
{
	fprintf(to, "usage: hsnap ust on IMAGE [--db-mb N]\n"
		    "       hsnap ust off IMAGE\n"
		    "       hsnap ust show [IMAGE]\n"
		    "\n"
		    "Have Windows record the stack of every heap block in programs called IMAGE\n"
		    "(app.exe), from their next start on; stop that; or show what is set.\n"
		    "\n");
	opt_help(options, to);
}

struct ust_request {
	const char *what, *image; /* what is "" until it was given, image NULL */
	uint32_t db_mb;
};

static int take_megabytes(const char *text, uint32_t *db_mb, struct err *err)
{
	uint64_t number = 0;

	if (kv_number(text, 10, &number) || !number || number > IFEO_DB_MB_MAX)
		return err_set(err, ERR_USAGE, "--db-mb", "'%s' is no number of MiB from 1 to %d",
			text, IFEO_DB_MB_MAX);
	*db_mb = (uint32_t)number;
	return 0;
}

static int take_argument(struct ust_request *request, const char *text, struct err *err)
{
	if (!*request->what)
		request->what = text;
	else if (!request->image)
		request->image = text;
	else
		return err_set(err, ERR_USAGE, text, "one image at a time");
	return 0;
}

/* Whether the request makes sense as a whole. */
static int check(const struct ust_request *request, struct err *err)
{
	bool is_show = !strcmp(request->what, "show");
	bool is_on = !strcmp(request->what, "on");

	if (!is_show && !is_on && strcmp(request->what, "off") != 0)
		return err_set(err, ERR_USAGE, *request->what ? request->what : "ust",
			"it takes on, off or show");
	if (request->db_mb && !is_on)
		return err_set(err, ERR_USAGE, "--db-mb", "it goes with on");
	if (!request->image && !is_show)
		return err_set(err, ERR_USAGE, request->what, "of which image?");
	return request->image ? ifeo_check_name(request->image, err) : 0;
}

/* The processes of that name that run: they are as they were when they started. */
static int print_running(const char *image, const char *words, struct err *err)
{
	struct process_list list;
	unsigned count = 0;
	int rc = process_list_take(&list, err);

	for (size_t i = 0; !rc && i < list.count; i++) {
		if (process_is_called(list.items[i].name, image))
			printf("%s %" PRIu32, count++ ? "," : "running now: pid",
				list.items[i].pid);
	}
	if (count)
		printf("; %s\n", words);
	process_list_release(&list);
	return rc;
}

static int change(const struct ust_request *request, struct err *err)
{
	const struct ifeo_change wanted = {
		.on = !strcmp(request->what, "on"), .db_mb = request->db_mb};
	const struct ifeo_calls calls = ifeo_registry();
	void *lock;
	int rc = ifeo_lock(&lock, request->image, err);

	if (rc)
		return rc;
	rc = ifeo_apply(&calls, request->image, &wanted, err);
	ifeo_unlock(lock);
	if (rc)
		return rc;
	printf("ust is %s for %s: processes started from now on %s their stacks\n", request->what,
		request->image, wanted.on ? "record" : "do not record");
	if (wanted.on && os_wine_version())
		printf("Wine records none, whatever is on: use 'hsnap run' or 'hsnap attach'\n");
	return print_running(request->image,
		wanted.on ? "start it again to have its stacks" : "what runs goes on as it is",
		err);
}

static void print_view(
	const char *name, const struct ifeo_image *image, const char *views, const struct buf *text)
{
	printf("%s: ust is %s in %s of the registry: %s\n", name,
		ifeo_has_ust(image) ? "on" : "off", views, text->data);
}

static int show_image(const char *name, struct err *err)
{
	const struct ifeo_calls calls = ifeo_registry();
	struct ifeo_image images[IFEO_VIEWS];
	struct buf texts[IFEO_VIEWS];
	int rc = 0;

	for (int view = 0; view < IFEO_VIEWS; view++) {
		buf_init(&texts[view]);
		if (!rc)
			rc = calls.read(calls.ctx, (enum ifeo_view)view, name, &images[view], err);
		if (!rc && ifeo_describe(&texts[view], &images[view]))
			rc = err_set(err, ERR_NOMEM, name, NULL);
	}
	if (!rc && !strcmp(texts[IFEO_64].data, texts[IFEO_32].data)) {
		print_view(name, &images[IFEO_64], "both views", &texts[IFEO_64]);
	} else if (!rc) {
		print_view(name, &images[IFEO_64], "the 64-bit view", &texts[IFEO_64]);
		print_view(name, &images[IFEO_32], "the 32-bit view", &texts[IFEO_32]);
	}
	for (int view = 0; view < IFEO_VIEWS; view++)
		buf_release(&texts[view]);
	return rc;
}

/* Everything that has ust on, so that nothing is forgotten. */
static int show_all(struct err *err)
{
	struct buf names;
	int rc;

	buf_init(&names);
	rc = ifeo_all_ust(&names, err);
	if (!rc)
		printf("ust is on for %s\n", names.len ? text_harmless(names.data) : "no image");
	buf_release(&names);
	return rc;
}

static int show(const struct ust_request *request, struct err *err)
{
	int rc = request->image ? show_image(request->image, err) : 0;

	return rc ? rc : show_all(err);
}

int command_ust(int argc, char **argv)
{
	struct ust_request request = {.what = ""};
	struct opt_state state;
	struct err err = {0};
	int id, rc = 0;

	opt_init(&state, options, argc, argv);
	while (!rc && (id = opt_next(&state, &err))) {
		switch (id) {
		case OPT_DB_MB: rc = take_megabytes(state.value, &request.db_mb, &err); break;
		case OPT_ARGUMENT: rc = take_argument(&request, state.value, &err); break;
		case OPT_HELP: ust_help(stdout); return 0;
		default: rc = id; break;
		}
	}
	if (!rc)
		rc = check(&request, &err);
	if (!rc)
		rc = strcmp(request.what, "show") ? change(&request, &err) : show(&request, &err);
	return rc ? command_fail(&err) : 0;
}
