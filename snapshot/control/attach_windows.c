#include <windows.h>

#include "snapshot/control/attach.h"
#include "snapshot/control/install_windows.h"
#include "snapshot/control/load_windows.h"
#include "snapshot/control/tracee_windows.h"
#include "snapshot/live/turn_windows.h"
#include "snapshot/live/open_windows.h"
#include "snapshot/live/process.h"

#define RIGHTS (LOAD_RIGHTS | PROCESS_VM_READ | PROCESS_QUERY_INFORMATION | PROCESS_SUSPEND_RESUME)
#define PATIENCE_MS 60000 /* with another hsnap */

struct attaching {
	HANDLE process;
	struct turn turn;
	struct target target;
};

static void end(struct attaching *attaching)
{
	turn_give_back(&attaching->turn);
	if (attaching->target.system)
		attaching->target.ops->close(&attaching->target);
	if (attaching->process)
		CloseHandle(attaching->process);
}

static int begin(struct attaching *attaching, uint32_t pid, struct err *err)
{
	int rc = process_open(pid, RIGHTS, 0, &attaching->process, err);

	if (!rc)
		rc = target_open_handle(&attaching->target, attaching->process, err);
	if (!rc && attaching->target.bits != 8 * sizeof(void *))
		rc = err_set(err, ERR_BITS, attaching->target.name, NULL);
	if (!rc)
		rc = turn_take(&attaching->turn, pid, PATIENCE_MS) ?
			     0 :
			     err_set(err, ERR_BUSY, attaching->target.name,
				     "another hsnap is at it");
	return rc;
}

/* The tracer that is there, or that it has loaded. */
static int find_or_load(struct attaching *attaching, uint64_t *area_addr, struct err *err)
{
	struct target *target = &attaching->target;
	int rc = tracee_find(target, area_addr, err);

	if (rc != -ERR_NOT_TRACED)
		return rc;
	rc = load_tracer(attaching->process, target->name, err);
	if (!rc)
		rc = tracee_find(target, area_addr, err);
	if (rc == -ERR_NOT_TRACED)
		rc = err_set(err, ERR_INJECT, target->name, "it does not load it");
	return rc;
}

/* Whatever failed, that the process has ended is what there is to say. */
static int blame(struct attaching *attaching, int rc, struct err *err)
{
	if (rc && attaching->target.system &&
		WaitForSingleObject(attaching->process, 0) == WAIT_OBJECT_0)
		return err_set(err, ERR_GONE, attaching->target.name, NULL);
	return rc;
}

int attach(
	uint32_t pid, const struct attach_options *options, uint64_t *limit_found, struct err *err)
{
	struct install_options install_options = {.limit_bytes = options->limit_bytes,
		.sample_bytes = options->sample_bytes,
		.flags = TRACER_FLAG_ATTACHED,
		.limit_found = limit_found};
	struct attaching attaching = {0};
	uint64_t area_addr = 0;
	int rc = begin(&attaching, pid, err);

	if (!rc)
		rc = find_or_load(&attaching, &area_addr, err);
	if (!rc)
		rc = install(
			&attaching.target, attaching.process, area_addr, &install_options, err);
	rc = blame(&attaching, rc, err);
	end(&attaching);
	return rc;
}

int detach(uint32_t pid, struct err *err)
{
	struct attaching attaching = {0};
	uint64_t area_addr = 0;
	int rc = begin(&attaching, pid, err);

	if (!rc)
		rc = tracee_find(&attaching.target, &area_addr, err);
	if (!rc)
		rc = remove_tracer(&attaching.target, attaching.process, area_addr, err);
	rc = blame(&attaching, rc, err);
	end(&attaching);
	return rc;
}
