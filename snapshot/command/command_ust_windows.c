/* hsnap ust: turns Windows' own recording of stacks on or off for an image, in the registry. Also
 * shows the current setting. */
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
};

static const struct opt options[] = {
	{OPT_DB_MB, NULL, "db-mb", "N",
		"room for the stacks of each process, in MiB (only with 'ust on')"},
	HELP_OPTION,
	{0},
};

static const char usage[] =
	"usage: hsnap ust on IMAGE [--db-mb N]\n"
	"       hsnap ust off IMAGE\n"
	"       hsnap ust show [IMAGE]\n"
	"\n"
	"on: have Windows record the stack of every heap block in programs called IMAGE\n"
	"(app.exe), from their next start on. off: stop that. show: print what is set.\n";

struct ust_request {
	const char *what, *image; /* what: "" if not given; image: NULL if not given */
	uint32_t db_mb;
};

static int set_option(void *ctx, int id, const char *value, struct err *err)
{
	struct ust_request *request = ctx;
	uint64_t number = 0;

	if (id == OPT_DB_MB) {
		if (kv_number(value, 10, &number) || !number || number > IFEO_DB_MB_MAX)
			return err_set(err, ERR_USAGE, "--db-mb",
				"'%s' is not a number of MiB from 1 to %d", value, IFEO_DB_MB_MAX);
		request->db_mb = (uint32_t)number;
	} else if (id != OPT_ARGUMENT) {
		return id;
	} else if (!*request->what) {
		request->what = value;
	} else if (!request->image) {
		request->image = value;
	} else {
		return err_set(err, ERR_USAGE, value, "one image at a time");
	}
	return 0;
}

static int check(const struct ust_request *request, struct err *err)
{
	bool is_show = !strcmp(request->what, "show");
	bool is_on = !strcmp(request->what, "on");

	if (!is_show && !is_on && strcmp(request->what, "off") != 0)
		return err_set(err, ERR_USAGE, *request->what ? request->what : "ust",
			"give on, off or show");
	if (request->db_mb && !is_on)
		return err_set(err, ERR_USAGE, "--db-mb", "applies only to on");
	if (!request->image && !is_show)
		return err_set(err, ERR_USAGE, request->what, "name the image, as app.exe");
	return request->image ? ifeo_check_name(request->image, err) : 0;
}

/* Prints the running processes with that name. The setting does not affect them until they are
 * restarted. */
static int print_running(const char *image, const char *words, struct err *err)
{
	struct process_list list;
	unsigned count = 0;
	int rc = process_list_capture(&list, err);

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
	int rc = ifeo_apply(request->image, &wanted, err);

	if (rc)
		return rc;
	printf("ust is %s for %s: processes started from now on %s their stacks\n", request->what,
		request->image, wanted.on ? "record" : "do not record");
	if (wanted.on && os_wine_version())
		printf("Wine records no stacks, even with ust on: use 'hsnap run' or 'hsnap "
		       "attach'\n");
	return print_running(request->image,
		wanted.on ? "start it again to have its stacks" :
			    "running programs stay as they are",
		err);
}

static void print_view(
	const char *name, const struct ifeo_image *image, const char *views, const char *text)
{
	printf("%s: ust is %s in %s of the registry: %s\n", name,
		ifeo_has_ust(image) ? "on" : "off", views, text);
}

static int show_image(const char *name, struct err *err)
{
	struct ifeo_image in_64, in_32;
	struct buf text_64, text_32;
	int rc = ifeo_read(IFEO_64, name, &in_64, err);

	if (!rc)
		rc = ifeo_read(IFEO_32, name, &in_32, err);
	if (rc)
		return rc;
	buf_init(&text_64);
	buf_init(&text_32);
	ifeo_describe(&text_64, &in_64);
	ifeo_describe(&text_32, &in_32);
	if (!strcmp(text_64.data, text_32.data)) {
		print_view(name, &in_64, "both views", text_64.data);
	} else {
		print_view(name, &in_64, "the 64-bit view", text_64.data);
		print_view(name, &in_32, "the 32-bit view", text_32.data);
	}
	buf_release(&text_64);
	buf_release(&text_32);
	return 0;
}

/* Shows the image that the user has named, if any. Also shows all images with ust turned on, so
 * that the user does not forget to turn it off. */
static int show(const struct ust_request *request, struct err *err)
{
	struct buf names;
	int rc = request->image ? show_image(request->image, err) : 0;

	if (rc)
		return rc;
	buf_init(&names);
	rc = ifeo_all_ust(&names, err);
	if (!rc)
		printf("ust is on for %s\n", names.len ? text_harmless(names.data) : "no image");
	buf_release(&names);
	return rc;
}

int command_ust(int argc, char **argv)
{
	static const struct command_form form = {usage, options, .set = set_option};
	struct ust_request request = {.what = ""};
	struct err err = {0};
	int rc = command_read(&form, argc, argv, &request, &err);

	if (!rc)
		rc = check(&request, &err);
	if (!rc)
		rc = strcmp(request.what, "show") ? change(&request, &err) : show(&request, &err);
	return rc < 0 ? command_fail(&err) : 0;
}
