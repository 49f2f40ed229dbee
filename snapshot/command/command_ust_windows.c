#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <windows.h>

#include "core/dump/kv.h"
#include "core/base/opt.h"
#include "core/base/text.h"
#include "snapshot/command/command.h"
#include "snapshot/ifeo/ifeo_windows.h"
#include "snapshot/live/process.h"

enum {
	OPT_DB_MB = 1,
	OPT_HELP,
};

static const struct opt options[] = {
	{OPT_DB_MB, NULL, "db-mb", "N", "room for stacks in a process of the image, in MiB"},
	{OPT_HELP, "h", "help", NULL, "print this help"},
	{0},
};

static void ust_help(FILE *to)
{
	fprintf(to, "usage: hsnap ust on IMAGE [--db-mb N]\n"
		    "       hsnap ust off IMAGE\n"
		    "       hsnap ust show [IMAGE]\n"
		    "\n"
		    "Has Windows record a stack for every heap block of programs called IMAGE\n"
		    "(app.exe), from their next start on; 'off' puts back what was there.\n"
		    "\n");
	opt_help(options, to);
}

struct request {
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

static int take_argument(struct request *request, const char *text, struct err *err)
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
static int check(const struct request *request, struct err *err)
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

static int change(const struct request *request, struct err *err)
{
	const struct ifeo_change wanted = {
		.on = !strcmp(request->what, "on"), .db_mb = request->db_mb};
	const struct ifeo_calls calls = ifeo_registry();
	int rc = ifeo_apply(&calls, request->image, &wanted, err);

	if (rc)
		return rc;
	printf("ust is %s for %s: processes started from now on %s their stacks\n", request->what,
		request->image, wanted.on ? "record" : "do not record");
	if (wanted.on && GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "wine_get_version"))
		printf("Wine records none, whatever is on: use 'hsnap run' or 'hsnap attach'\n");
	return print_running(request->image,
		wanted.on ? "start it again to have its stacks" : "what runs goes on as it is",
		err);
}

static int show_view(const struct ifeo_calls *calls, enum ifeo_view view, const char *words,
	const char *name, struct err *err)
{
	struct ifeo_image image;
	struct buf text;
	int rc = calls->read(calls->ctx, view, name, &image, err);

	if (rc)
		return rc;
	buf_init(&text);
	rc = ifeo_describe(&text, &image);
	if (rc)
		err_set(err, ERR_NOMEM, name, NULL);
	else
		printf("%s: ust is %s in %s: %s\n", name, ifeo_has_ust(&image) ? "on" : "off",
			words, text.data);
	buf_release(&text);
	return rc;
}

static int show_image(const char *name, struct err *err)
{
	const struct ifeo_calls calls = ifeo_registry();
	int rc;

	if (calls.is_one(calls.ctx))
		return show_view(&calls, IFEO_64, "both views of the registry", name, err);
	rc = show_view(&calls, IFEO_64, "the 64-bit view of the registry", name, err);
	return rc ? rc : show_view(&calls, IFEO_32, "the 32-bit view of the registry", name, err);
}

/* Everything that has ust on, so that nothing is forgotten. */
static int show_all(struct err *err)
{
	char **names = NULL;
	size_t count = 0;
	int rc = ifeo_all_ust(&names, &count, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < count; i++)
		printf("%s%s", i ? ", " : "ust is on for ", text_harmless(names[i]));
	printf(count ? "\n" : "ust is on for no image\n");
	ifeo_names_free(names, count);
	return 0;
}

static int show(const struct request *request, struct err *err)
{
	int rc = request->image ? show_image(request->image, err) : 0;

	return rc ? rc : show_all(err);
}

int command_ust(int argc, char **argv)
{
	struct request request = {.what = ""};
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
