/*
 * The life of a traced process. traced_*() follow a process that hsnap started, from the time its
 * first thread loads the tracer until it ends. control_attach() and control_detach() trace a
 * process that is already running.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <windows.h>

#include "core/base/text.h"
#include "snapshot/control/control.h"
#include "snapshot/control/control_windows.h"
#include "snapshot/control/inject_windows.h"
#include "snapshot/control/tracee_windows.h"
#include "snapshot/control/refusal.h"
#include "snapshot/live/live_windows.h"
#include "snapshot/live/process.h"

int traced_prepare(
	struct traced *traced, HANDLE process, HANDLE thread, const char *name, struct err *err)
{
	int rc;

	*traced = (struct traced){.process = process, .name = name};
	rc = target_open_handle(&traced->target, process, err);
	if (!rc) {
		control_facts_of_process(&traced->facts, process);
		rc = refusal_check(&traced->facts, REFUSAL_RUN, name, err);
	}
	if (!rc && traced->target.bits != OUR_BITS)
		rc = err_set(err, ERR_BITS, name, NULL);
	/* Do not wait for the lock, because its holder may be waiting for us to resume the
	 * process. */
	if (!rc && !process_lock_acquire(&traced->lock, traced->target.pid, 0))
		rc = err_set(err, ERR_TRACED, name, "by another hsnap");
	if (!rc)
		rc = injection_prepare(&traced->injection, process, thread, name, err);
	return rc;
}

/* Duplicates one of our handles into the process. Returns the value of the new handle, or 0. */
static uint64_t duplicate_handle(struct traced *traced, HANDLE ours, DWORD access)
{
	HANDLE theirs = NULL;

	if (!ours || !DuplicateHandle(
			     GetCurrentProcess(), ours, traced->process, &theirs, access, FALSE, 0))
		return 0;
	return (uintptr_t)theirs;
}

/* Creates two events for synchronizing the process with hsnap. The process sets the first event,
 * and waits for the second. Writes the process's handles for the events to `addr`. */
static bool share_events(
	struct traced *traced, HANDLE *reached, HANDLE *go_on, bool is_once, uint64_t addr)
{
	uint64_t theirs[2];

	*reached = CreateEventW(NULL, is_once, FALSE, NULL);
	*go_on = CreateEventW(NULL, is_once, FALSE, NULL);
	theirs[0] = duplicate_handle(traced, *reached, EVENT_MODIFY_STATE | SYNCHRONIZE);
	theirs[1] = duplicate_handle(traced, *go_on, SYNCHRONIZE);
	return theirs[0] && theirs[1] &&
	       WriteProcessMemory(
		       traced->process, (void *)(uintptr_t)addr, theirs, sizeof(theirs), NULL);
}

/* share_events() and traced_child() depend on this layout. */
_Static_assert(offsetof(struct tracer_area, exit_continue) ==
			       offsetof(struct tracer_area, exit_reached) + 8 &&
		       offsetof(struct tracer_area, child_taken) ==
			       offsetof(struct tracer_area, child_created) + 8 &&
		       offsetof(struct tracer_area, child_tid) ==
			       offsetof(struct tracer_area, child_pid) + 4,
	"layout");

#define FIELD(traced, name) ((traced)->area_addr + offsetof(struct tracer_area, name))

/* Stores handles in the tracer's area: those of the events, and one of hsnap's process, so that the
 * tracer notices when hsnap has exited. */
static int arrange_meetings(
	struct traced *traced, const struct traced_options *options, struct err *err)
{
	uint64_t us = duplicate_handle(traced, GetCurrentProcess(), SYNCHRONIZE);
	bool ok = us &&
		  WriteProcessMemory(traced->process,
			  (void *)(uintptr_t)FIELD(traced, hsnap_process), &us, sizeof(us), NULL);

	if (ok && options->stops_at_exit)
		ok = share_events(traced, &traced->exit_reached, &traced->exit_continue, true,
			FIELD(traced, exit_reached));
	if (ok && options->install.flags & TRACER_FLAG_CHILDREN)
		ok = share_events(traced, &traced->child_created, &traced->child_taken, false,
			FIELD(traced, child_created));
	return ok ? 0 :
		    err_set(err, ERR_INJECT, traced->name,
			    "its memory cannot be written, or handles cannot be duplicated into "
			    "it");
}

static int switch_on(struct traced *traced, const struct traced_options *options, struct err *err)
{
	struct install_options with = options->install;
	int rc = tracee_find(&traced->target, &traced->area_addr, err);

	if (rc == -ERR_NOT_TRACED)
		rc = inject_not_loaded(&traced->facts, REFUSAL_RUN, traced->name, err);
	with.limit_found = &traced->limit_bytes;
	if (!rc)
		rc = install_tracer(
			&traced->target, traced->process, traced->area_addr, &with, err);
	if (rc == -ERR_INJECT)
		rc = refusal_explain(&traced->facts, REFUSAL_RUN, REFUSAL_INSTALL, err);
	if (!rc)
		rc = arrange_meetings(traced, options, err);
	return rc;
}

int traced_bring_up(
	struct traced *traced, HANDLE parent, const struct traced_options *options, struct err *err)
{
	int rc = 0;

	switch (injection_wait(&traced->injection, parent, options->until_ms)) {
	case INJECTION_LOADED: rc = switch_on(traced, options, err); break;
	case INJECTION_ENDED:
	case INJECTION_LATE: break;
	case INJECTION_ORPHANED:
		rc = err_set(err, ERR_INJECT, traced->name,
			"its parent has ended and left it suspended");
		break;
	}
	/* Release the lock before the process continues, because a snapshot may be taken as soon as
	 * the process prints its first output. */
	process_lock_release(&traced->lock);
	if (!rc)
		injection_release(&traced->injection);
	return rc;
}

enum traced_event traced_wait(struct traced *traced, int64_t until_ms)
{
	enum traced_event events[3];
	HANDLE handles[3];
	DWORD count = 0, got;

	/* The order matters: a process's events are reported before its end. */
	if (traced->child_created) {
		events[count] = TRACED_CHILD;
		handles[count++] = traced->child_created;
	}
	if (traced->exit_reached &&
		WaitForSingleObject(traced->exit_continue, 0) != WAIT_OBJECT_0) {
		events[count] = TRACED_AT_EXIT;
		handles[count++] = traced->exit_reached;
	}
	events[count] = TRACED_ENDED;
	handles[count++] = traced->process;
	got = inject_wait_any(count, handles, until_ms);
	if (got == WAIT_TIMEOUT)
		return TRACED_LATE;
	got -= WAIT_OBJECT_0;
	return got < count ? events[got] : TRACED_ENDED;
}

bool traced_child(struct traced *traced, struct traced_child *child)
{
	uint32_t ids[2];

	if (target_read(&traced->target, FIELD(traced, child_pid), ids, sizeof(ids)))
		return false;
	*child = (struct traced_child){ids[0], ids[1]};
	return true;
}

void traced_release(struct traced *traced)
{
	HANDLE events[] = {traced->exit_reached, traced->exit_continue, traced->child_created,
		traced->child_taken};

	injection_release(&traced->injection);
	process_lock_release(&traced->lock);
	for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++) {
		if (events[i])
			CloseHandle(events[i]);
	}
	if (traced->target.system)
		traced->target.ops->close(&traced->target);
	*traced = (struct traced){0};
}

#define RIGHTS                                                                                     \
	(LOAD_RIGHTS | PROCESS_VM_READ | PROCESS_QUERY_INFORMATION | PROCESS_SUSPEND_RESUME |      \
		PROCESS_DUP_HANDLE)
#define PATIENCE_MS 60000 /* maximum wait for another hsnap */

struct attaching {
	HANDLE process;
	struct control_facts facts;
	struct process_lock lock;
	struct target target;
};

static void end(struct attaching *attaching)
{
	process_lock_release(&attaching->lock);
	if (attaching->target.system)
		attaching->target.ops->close(&attaching->target);
	if (attaching->process)
		CloseHandle(attaching->process);
}

/* Adds the rule that explains why a process could not be opened. Most facts can be read with fewer
 * access rights than opening requires. */
static int explain_denial(uint32_t pid, struct err *err)
{
	HANDLE process = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, pid);
	struct control_facts facts;

	if (!process)
		return -(int)err->code;
	control_facts_of_process(&facts, process);
	CloseHandle(process);
	return refusal_explain(&facts, REFUSAL_ATTACH, REFUSAL_OPEN, err);
}

static int begin(struct attaching *attaching, uint32_t pid, struct err *err)
{
	int rc = process_open(pid, RIGHTS, 0, &attaching->process, err);

	if (rc == -ERR_RIGHTS)
		rc = explain_denial(pid, err);
	if (!rc)
		rc = target_open_handle(&attaching->target, attaching->process, err);
	if (!rc && attaching->target.bits != 8 * sizeof(void *))
		rc = err_set(err, ERR_BITS, attaching->target.name, NULL);
	if (!rc)
		rc = process_lock_acquire(&attaching->lock, pid, PATIENCE_MS) ?
			     0 :
			     err_set(err, ERR_BUSY, attaching->target.name,
				     "another hsnap is working on it");
	return rc;
}

/* Finds the tracer, or makes the process load it. Checks the rules before anything is written into
 * the process. */
static int find_or_load(struct attaching *attaching, uint64_t *area_addr, struct err *err)
{
	struct target *target = &attaching->target;
	int rc = tracee_find(target, area_addr, err);

	control_facts_of_process(&attaching->facts, attaching->process);
	if (rc != -ERR_NOT_TRACED)
		return rc;
	rc = refusal_check(&attaching->facts, REFUSAL_ATTACH, target->name, err);
	if (!rc)
		rc = inject_load_tracer(attaching->process, target->name, &attaching->facts, err);
	if (!rc)
		rc = tracee_find(target, area_addr, err);
	if (rc == -ERR_NOT_TRACED)
		rc = inject_not_loaded(&attaching->facts, REFUSAL_ATTACH, target->name, err);
	return rc;
}

#define SET_OA_NO_CACHE 327 /* ordinal in oleaut32.dll, documented by Microsoft */

/* Returns the address of oleaut32's SetOaNoCache() in the process, or 0. */
static uint64_t find_set_no_cache(struct target *target, const struct module *module)
{
	struct target_image at = {.target = target, .base = module->base};
	struct pe_source source = target_image_source(&at);
	struct pe_image *image = malloc(sizeof(*image));
	struct pe_exports exports;
	uint64_t addr = 0;

	if (image && !pe_read_headers(&source, image) && image->bits == target->bits &&
		!pe_exports_read(&source, image, &exports)) {
		for (size_t i = 0; i < exports.count; i++) {
			if (exports.list[i].ordinal == SET_OA_NO_CACHE)
				addr = module->base + exports.list[i].rva;
		}
		pe_exports_release(&exports);
	}
	free(image);
	return addr;
}

/* Turns off COM's cache of freed strings. A string reused from the cache has the stack of an
 * earlier user. Returns true if the cache was turned off. */
static bool avoid_bstr_cache(struct attaching *attaching)
{
	struct target *target = &attaching->target;
	struct snapshot modules;
	uint64_t function = 0;
	struct err err;

	snapshot_init(&modules);
	if (!target->ops->modules(target, &modules, &err)) {
		for (size_t i = 0; !function && i < modules.module_count; i++) {
			if (!text_compare(
				    module_path_base(modules.modules[i].path), "oleaut32.dll"))
				function = find_set_no_cache(target, &modules.modules[i]);
		}
	}
	snapshot_release(&modules);
	return function && inject_call(attaching->process, function);
}

/* Returns ERR_GONE if the process has exited, no matter which step failed. */
static int blame(struct attaching *attaching, int rc, struct err *err)
{
	if (rc && attaching->target.system &&
		WaitForSingleObject(attaching->process, 0) == WAIT_OBJECT_0)
		return err_set(err, ERR_GONE, attaching->target.name, NULL);
	return rc;
}

int control_attach(
	uint32_t pid, const struct attach_options *options, uint64_t *limit_found, struct err *err)
{
	struct install_options install_options = {.limit_bytes = options->limit_bytes,
		.sample_bytes = options->sample_bytes,
		.flags = TRACER_FLAG_ATTACHED | (options->with_handles ? TRACER_FLAG_HANDLES : 0),
		.rings = options->recording ? options->recording->rings : NULL,
		.recording = options->recording,
		.limit_found = limit_found};
	struct attaching attaching = {0};
	uint64_t area_addr = 0;
	int rc = begin(&attaching, pid, err);

	if (!rc)
		rc = find_or_load(&attaching, &area_addr, err);
	if (!rc && (options->keep_bstr_cache || !avoid_bstr_cache(&attaching)))
		install_options.flags |= TRACER_FLAG_BSTR_CACHE;
	if (!rc) {
		rc = install_tracer(
			&attaching.target, attaching.process, area_addr, &install_options, err);
		if (rc == -ERR_INJECT)
			rc = refusal_explain(
				&attaching.facts, REFUSAL_ATTACH, REFUSAL_INSTALL, err);
	}
	rc = blame(&attaching, rc, err);
	end(&attaching);
	return rc;
}

/* Ends the recording, or turns the tracer off completely. */
static int turn_off(struct attaching *attaching, bool is_recording_only, struct err *err)
{
	struct tracee *tracee = NULL;
	uint64_t area_addr = 0;
	int rc = tracee_find(&attaching->target, &area_addr, err);

	if (!rc && is_recording_only)
		rc = tracee_new(&tracee, &attaching->target, attaching->process, area_addr, err);
	if (rc || !tracee || tracee->area.flags & TRACER_FLAG_RECORDING) {
		rc = rc ? rc :
			  remove_tracer(&attaching->target, attaching->process, area_addr, err);
	} else {
		rc = remove_rings(tracee, err);
		rc = rc == -ERR_BUSY ?
			     0 :
			     rc; /* no more events arrive; the next recording removes the rings */
	}
	tracee_free(tracee);
	return rc;
}

static int detach(uint32_t pid, bool is_recording_only, struct err *err)
{
	struct attaching attaching = {0};
	int rc = begin(&attaching, pid, err);

	if (!rc)
		rc = turn_off(&attaching, is_recording_only, err);
	rc = blame(&attaching, rc, err);
	end(&attaching);
	return rc;
}

int control_detach(uint32_t pid, struct err *err)
{
	return detach(pid, false, err);
}

void control_warn_of_limit(const char *name, uint64_t limit_bytes, uint64_t wanted_bytes)
{
	if (limit_bytes < wanted_bytes)
		fprintf(stderr,
			"hsnap: %s: warning: only %" PRIu64
			" MiB of address space for tables, not %" PRIu64 " MiB\n",
			name, limit_bytes >> 20, wanted_bytes >> 20);
}

int control_end_recording(uint32_t pid, struct err *err)
{
	return detach(pid, true, err);
}
