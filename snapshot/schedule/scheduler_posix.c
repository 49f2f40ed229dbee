/* Systems without Task Scheduler: only the XML of a task can be created; everything that requires
 * the scheduler is refused. */
#include "snapshot/schedule/scheduler.h"

static int refuse(const char *what, struct err *err)
{
	return err_set(err, ERR_PLATFORM, what, "only --print-xml works here");
}

int scheduler_add(
	const char *name, const char *xml, bool is_system, bool may_replace, struct err *err)
{
	(void)xml;
	(void)is_system;
	(void)may_replace;
	return refuse(name, err);
}

int scheduler_remove(const char *name, struct err *err)
{
	return refuse(name, err);
}

/* Copies the path unchanged, because it belongs to another system. */
int scheduler_full_path(struct buf *full, const char *path, struct err *err)
{
	(void)err;
	buf_add_text(full, path);
	return 0;
}

int scheduler_program(struct buf *path, struct err *err)
{
	(void)path;
	return err_set(err, ERR_USAGE, "--program",
		"give the path of hsnap.exe on the machine that runs the task");
}

int scheduler_user(struct buf *user, struct err *err)
{
	(void)user;
	return err_set(err, ERR_USAGE, "--as-user",
		"use it only on the machine that runs the task, which knows the user");
}

int scheduler_places(
	const char *folder, const char *program, const char *home, bool is_system, struct err *err)
{
	(void)program;
	(void)home;
	(void)is_system;
	return refuse(folder, err);
}
