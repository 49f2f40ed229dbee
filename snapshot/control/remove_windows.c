#include <stdlib.h>

#include "core/os.h"
#include "snapshot/control/inside_windows.h"
#include "snapshot/control/install_windows.h"

#define PATIENCE_MS 5000
#define PAUSE_MS 20 /* between two holds */
#define AGAIN 1

/* Each function is as it was, or as the tracer has made it. */
static int check_jumps(const struct tracee *tracee, struct err *err)
{
	for (int i = 0; i < HOOK_COUNT; i++) {
		enum tracee_jump jump = tracee_jump(tracee, i);

		if (jump == JUMP_UNREADABLE)
			return target_err(tracee->target, tracee->area.hooks[i].function,
				tracee_function_name(i), err);
		if (jump == JUMP_FOREIGN)
			return err_set(err, ERR_BUSY, tracee->target->name,
				"another program has changed %s since", tracee_function_name(i));
	}
	return 0;
}

static bool is_anybody_inside(const struct tracee *tracee, const struct threads *threads)
{
	for (size_t i = 0; i < threads->count; i++) {
		if (inside_tracer(tracee, &threads->items[i]))
			return true;
	}
	return false;
}

/* Those that put blocks into the tables first: so none is there for long that is not live. */
static const enum tracer_hook_id order[] = {HOOK_ALLOCATE, HOOK_REALLOCATE, HOOK_CREATE_HEAP,
	HOOK_VIRTUAL_ALLOCATE, HOOK_VIRTUAL_ALLOCATE_EX, HOOK_MAP, HOOK_MAP_EX, HOOK_FREE,
	HOOK_DESTROY_HEAP, HOOK_VIRTUAL_FREE, HOOK_UNMAP, HOOK_UNMAP_EX, HOOK_TERMINATE,
	HOOK_CREATE_PROCESS};
_Static_assert(sizeof(order) / sizeof(*order) == HOOK_COUNT, "every hook");

/* With all threads held and none inside. */
static int take_out(struct tracee *tracee, struct err *err)
{
	for (int i = 0; i < HOOK_COUNT; i++) {
		if (tracee_jump(tracee, order[i]) == JUMP_IN &&
			!tracee_patch(tracee, order[i], false))
			return err_set(err, ERR_SYSTEM, tracee->target->name,
				"%s cannot be written", tracee_function_name(order[i]));
	}
	if (!tracee_set_state(tracee, TRACER_OFF))
		return err_set(err, ERR_SYSTEM, tracee->target->name, "it cannot be written");
	return 0;
}

/* One hold. AGAIN: a thread is inside. */
static int try_once(struct tracee *tracee, struct threads *threads, struct err *err)
{
	int rc = threads_hold(threads, err);

	if (rc)
		return rc;
	rc = check_jumps(tracee, err);
	if (!rc && is_anybody_inside(tracee, threads))
		rc = AGAIN;
	if (!rc)
		rc = take_out(tracee, err);
	threads_let_go(threads);
	return rc;
}

static int try_for_long(struct tracee *tracee, struct err *err)
{
	int64_t until = os_time_ms() + PATIENCE_MS;
	struct threads threads;
	int rc;

	threads_init(&threads, tracee->process, tracee->target->name);
	while ((rc = try_once(tracee, &threads, err)) == AGAIN && os_time_ms() < until)
		WaitForSingleObject(tracee->process, PAUSE_MS);
	threads_release(&threads);
	if (rc == AGAIN)
		rc = err_set(err, ERR_BUSY, tracee->target->name, "a thread is in a hook");
	return rc;
}

int remove_tracer(struct target *target, void *process, uint64_t area_addr, struct err *err)
{
	struct tracee *tracee = NULL;
	int rc = tracee_new(&tracee, target, process, area_addr, err);

	if (rc)
		return rc;
	if (tracee->area.state == TRACER_ON)
		rc = try_for_long(tracee, err);
	else
		rc = err_set(err, ERR_NOT_TRACED, target->name,
			tracee->area.state == TRACER_OFF ? "it was detached before" : NULL);
	if (!rc)
		tracee_free_tables(tracee);
	tracee_free(tracee);
	return rc;
}
