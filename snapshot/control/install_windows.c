/*
 * Installs the tracer in a process that has loaded it. install_tracer() reserves memory for the
 * tables, plans the patches and writes trampolines. It then holds the threads outside the bytes
 * that will change, fills in the area, and writes the jumps. A recording can also use a tracer that
 * is already on.
 */
#include "snapshot/control/threads_windows.h"
#include "snapshot/control/tracee_windows.h"

#include <stdlib.h>
#include <string.h>

#include "snapshot/control/patch_plan.h"
#include "snapshot/heap/heap.h"
#include "snapshot/stacks/tracer_read.h"

#define GRANULE ((uint64_t)0x10000)
#define SLOTS_BYTES ((uint64_t)8192)
#define LIMIT_MIN ((uint64_t)1 << 20) /* a lower limit is useless */
/* maximum number of tries to hold a process at a moment when its blocks can be listed */
#define TRIES_MAX 100
/* maximum number of such tries if the attach does not need the list of blocks */
#define REST_TRIES 20
#define MOVE_TRIES 100 /* maximum number of further tries to move a thread */
#define PAUSE_MS 1
_Static_assert(HOOK_COUNT *PATCH_SLOT_BYTES <= SLOTS_BYTES, "trampolines");

struct installing {
	struct tracee *tracee;
	const struct install_options *options;
	struct patch_plan plans[HOOK_COUNT];
	uint8_t slots[SLOTS_BYTES];
	struct threads threads;
	uint32_t state_before;
	bool is_at_rest; /* no thread is inside a heap function */
};

static int refuse(const struct installing *installing, const char *what, struct err *err)
{
	return err_set(err, ERR_INJECT, installing->tracee->target->name, "%s", what);
}

static void *at(uint64_t addr)
{
	return (void *)(ULONG_PTR)addr;
}

/* Writes a part of *tracee's area to the target. */
static bool publish(const struct tracee *tracee, const void *part, size_t len)
{
	size_t offset = (size_t)((const char *)part - (const char *)&tracee->area);

	return tracee_write(tracee, tracee->area_addr + offset, part, len);
}

/* ---------------------------------------------------------------- memory */

static uint64_t reserve_tables(struct installing *installing, uint64_t limit)
{
	uint64_t bytes = tracer_layout_bytes(limit);

	if (bytes > SIZE_MAX)
		return 0;
	return (ULONG_PTR)VirtualAllocEx(
		installing->tracee->process, NULL, (SIZE_T)bytes, MEM_RESERVE, PAGE_READWRITE);
}

/* Reserves memory for the tables, with the highest limit that the address space allows. */
static int reserve(struct installing *installing, struct err *err)
{
	struct tracee *tracee = installing->tracee;
	struct tracer_area *area = &tracee->area;
	uint64_t limit = installing->options->limit_bytes, base;

	while (!(base = reserve_tables(installing, limit)) && limit / 2 >= LIMIT_MIN)
		limit /= 2;
	if (!base)
		return refuse(installing, "no address space for its tables", err);
	tracer_layout_set(area, base, limit);
	if (!publish(tracee, &area->reserved, 2 * sizeof(area->reserved))) {
		VirtualFreeEx(tracee->process, at(base), 0, MEM_RELEASE);
		area->reserved = 0;
		return refuse(installing, "its memory cannot be written", err);
	}
	area->sample_bytes = installing->options->sample_bytes;
	area->session += area->session == UINT32_MAX ? 2 : 1;
	area->flags = installing->options->flags |
		      (installing->options->recording ? TRACER_FLAG_RECORDING : 0);
	if (installing->options->limit_found)
		*installing->options->limit_found = limit;
	return 0;
}

static uint64_t allocate_page(const struct tracee *tracee, uint64_t addr)
{
	return (ULONG_PTR)VirtualAllocEx(
		tracee->process, at(addr), SLOTS_BYTES, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

/* Allocates the page of trampolines, within reach of the whole ntdll image. */
static uint64_t near_room(const struct tracee *tracee)
{
	uint64_t center = tracee->ntdll.base & ~(GRANULE - 1), room = 0;
	uint64_t reach = PATCH_REACH - tracee->ntdll.bytes;

	if (tracee->target->bits == 32)
		return allocate_page(tracee, 0);
	if (tracee->ntdll.bytes > PATCH_REACH)
		return 0;
	for (uint64_t away = GRANULE; away < reach && !room; away += GRANULE) {
		room = allocate_page(tracee, center + away);
		if (!room && center > away)
			room = allocate_page(tracee, center - away);
	}
	return room;
}

/* ---------------------------------------------------------------- planning */

static int plan_one(struct installing *installing, enum tracer_hook_id id, struct err *err)
{
	struct tracee *tracee = installing->tracee;
	struct tracer_hook *hook = &tracee->area.hooks[id];
	struct patch_plan *plan = &installing->plans[id];
	uint64_t slot = tracee->area.trampolines + (uint64_t)id * PATCH_SLOT_BYTES;
	uint8_t code[PATCH_CODE_BYTES];
	struct patch_request request = {
		tracee->target->bits, code, sizeof(code), hook->function, slot, hook->hook};

	if (!tracee_is_in(&tracee->dll, hook->hook))
		return refuse(installing, "its tracer's hooks are not in the tracer", err);
	if (target_read(tracee->target, hook->function, code, sizeof(code)))
		return refuse(installing, "its ntdll cannot be read", err);
	if (!patch_plan(plan, &request))
		return err_set(err, ERR_INJECT, tracee->target->name,
			"ntdll's %s begins with code that cannot be moved",
			tracee_function_name(id));
	hook->original = slot + plan->original;
	hook->patch_bytes = plan->patch_bytes;
	memcpy(hook->old_bytes, plan->old_bytes, sizeof(plan->old_bytes));
	memcpy(hook->new_bytes, plan->new_bytes, sizeof(plan->new_bytes));
	memcpy(installing->slots + (size_t)id * PATCH_SLOT_BYTES, plan->slot, PATCH_SLOT_BYTES);
	return 0;
}

/* Returns true if the flags of the session require a hook. */
static bool is_wanted(int hook, uint32_t flags)
{
	if (hook >= HOOK_CLOSE)
		return flags & TRACER_FLAG_HANDLES;
	return hook != HOOK_CREATE_PROCESS || flags & (TRACER_FLAG_CHILDREN | TRACER_FLAG_HANDLES);
}

/* Plans all hooks. For a function that is not hooked, sets `original` to the function's own
 * address, which the tracer then calls. */
static int plan(struct installing *installing, struct err *err)
{
	struct tracee *tracee = installing->tracee;
	int rc = 0;

	memset(installing->slots, 0, sizeof(installing->slots));
	for (int i = 0; i < HOOK_COUNT && !rc; i++) {
		struct tracer_hook *hook = &tracee->area.hooks[i];

		hook->function = hook->original = tracee->functions[i];
		hook->patch_bytes = 0;
		if (!hook->function || !hook->hook || !is_wanted(i, tracee->area.flags))
			continue;
		rc = plan_one(installing, i, err);
	}
	return rc;
}

/* ---------------------------------------------------------------- trampolines */

/* Returns true if the existing trampolines equal the planned ones. Trampolines never change,
 * because a thread may still be inside a trampoline of an earlier session. */
static bool are_there(const struct installing *installing)
{
	const struct tracee *tracee = installing->tracee;
	MEMORY_BASIC_INFORMATION info;
	uint8_t found[SLOTS_BYTES];

	return !target_read(tracee->target, tracee->area.trampolines, found, sizeof(found)) &&
	       !memcmp(found, installing->slots, sizeof(found)) &&
	       VirtualQueryEx(tracee->process, at(tracee->area.trampolines), &info, sizeof(info)) ==
		       sizeof(info) &&
	       info.Protect == PAGE_EXECUTE_READ && info.RegionSize >= SLOTS_BYTES;
}

static int write_trampolines(struct installing *installing, struct err *err)
{
	struct tracee *tracee = installing->tracee;
	struct tracer_area *area = &tracee->area;
	DWORD old;
	int rc;

	area->trampolines = near_room(tracee);
	area->trampolines_bytes = SLOTS_BYTES;
	if (!area->trampolines)
		return refuse(installing, "no memory near its ntdll", err);
	rc = plan(installing, err);
	if (!rc && tracee_write(tracee, area->trampolines, installing->slots, SLOTS_BYTES) &&
		VirtualProtectEx(tracee->process, at(area->trampolines), SLOTS_BYTES,
			PAGE_EXECUTE_READ, &old) &&
		FlushInstructionCache(tracee->process, at(area->trampolines), SLOTS_BYTES) &&
		publish(tracee, &area->trampolines, 2 * sizeof(area->trampolines)))
		return 0;
	VirtualFreeEx(tracee->process, at(area->trampolines), 0, MEM_RELEASE);
	return rc ? rc : refuse(installing, "its memory cannot be written", err);
}

/* Uses the trampolines of the last session if they are equal; otherwise writes new ones. */
static int set_trampolines(struct installing *installing, struct err *err)
{
	const struct tracer_area *area = &installing->tracee->area;

	if (area->trampolines && area->trampolines_bytes == SLOTS_BYTES) {
		int rc = plan(installing, NULL);

		if (!rc && are_there(installing))
			return 0;
	}
	return write_trampolines(installing, err);
}

/* ---------------------------------------------------------------- hooking */

/* Checks that the functions have not changed since they were read. */
static int check_bytes(const struct installing *installing, struct err *err)
{
	for (int i = 0; i < HOOK_COUNT; i++) {
		enum tracee_jump jump = tracee_jump(installing->tracee, i);

		if (jump == JUMP_UNREADABLE)
			return refuse(installing, "its ntdll cannot be read", err);
		if (jump != JUMP_OUT)
			return err_set(err, ERR_INJECT, installing->tracee->target->name,
				"its %s is being changed by another program",
				tracee_function_name(i));
	}
	return 0;
}

/* Returns the address where a thread inside the bytes that will change must continue, or 0 if the
 * thread can stay where it is. */
static uint64_t moved_to(const struct installing *installing, uint64_t ip)
{
	const struct tracer_area *area = &installing->tracee->area;

	for (int i = 0; i < HOOK_COUNT; i++) {
		const struct patch_plan *plan = &installing->plans[i];
		uint64_t offset = ip - area->hooks[i].function;

		if (offset == 0 || offset >= area->hooks[i].patch_bytes)
			continue;
		for (uint32_t k = 0; k < plan->move_count; k++) {
			if (plan->moves[k].from == offset)
				return area->hooks[i].original - plan->original + plan->moves[k].to;
		}
	}
	return 0;
}

/*
 * Moves threads out of the bytes that will change, into the trampolines. Returns false if a thread
 * could not be moved. The trampolines have the same effect as the functions. So a moved thread can
 * continue there even if the hooks are not installed after all.
 */
static bool move_threads(struct installing *installing)
{
	for (size_t i = 0; i < installing->threads.count; i++) {
		struct held_thread *thread = &installing->threads.items[i];
		uint64_t to = moved_to(installing, thread->ip);

		if (to && !threads_move(thread, to))
			return false;
	}
	return true;
}

/* Undoes the first `count` hooks. Returns false if any part of them remains. */
static bool undo_hooks(struct installing *installing, int count)
{
	bool ok = true;

	while (count-- > 0)
		ok = tracee_patch(installing->tracee, tracee_hook_order[count], false) && ok;
	return ok && tracee_set_state(installing->tracee, installing->state_before);
}

/* Zeroes the memory that an earlier session of the tracer has used outside the tracer's area. */
static bool clear(const struct tracee *tracee)
{
	static const uint8_t zeros[4096];
	uint64_t from = tracee->area.clear, bytes = tracee->area.clear_bytes;

	if (bytes && (bytes > tracee->dll.bytes || !tracee_is_in(&tracee->dll, from) ||
			     !tracee_is_in(&tracee->dll, from + bytes - 1)))
		return false;
	for (uint64_t done = 0; done < bytes; done += sizeof(zeros)) {
		uint64_t part = bytes - done < sizeof(zeros) ? bytes - done : sizeof(zeros);

		if (!tracee_write(tracee, from + done, zeros, (size_t)part))
			return false;
	}
	return true;
}

/* Reads some counters again. The target updates them even while the tracer is off, so they may have
 * changed since the area was read. */
static bool read_counts(struct tracee *tracee)
{
	struct tracer_area *area = &tracee->area;
	const uint64_t at = tracee->area_addr;
	struct tracer_shard shards[TRACER_SHARDS];

	if (target_u32(tracee->target, at + offsetof(struct tracer_area, load_count),
		    &area->load_count) ||
		target_read(tracee->target, at + offsetof(struct tracer_area, shards), shards,
			sizeof(shards)))
		return false;
	for (unsigned i = 0; i < TRACER_SHARDS; i++)
		area->shards[i].reallocating = shards[i].reallocating;
	return true;
}

static int insert_hooks(struct installing *installing, struct err *err)
{
	struct tracee *tracee = installing->tracee;
	bool ok;

	tracee->area.state = TRACER_ON;
	ok = clear(tracee) && read_counts(tracee) &&
	     tracee_write(tracee, tracee->area_addr, &tracee->area, sizeof(tracee->area));
	for (int i = 0; ok && i < HOOK_COUNT; i++) {
		ok = tracee_patch(tracee, tracee_hook_order[i], true);
		if (!ok && !undo_hooks(installing, i))
			tracee->area.reserved = 0; /* the reservation is still in use */
	}
	return ok ? 0 : refuse(installing, "its memory cannot be written", err);
}

/* Returns true if a thread was suspended while it was changing the tracer's tables. `is_on`: the
 * tables exist. */
static bool is_changing(const struct tracee *tracee, bool is_on)
{
	struct tracer_area *area = is_on ? malloc(sizeof(*area)) : NULL;
	bool is = area && !tracer_area_read(tracee->target, tracee->area_addr, area, NULL) &&
		  area->ranges.lock && !area->ranges.broken;

	for (unsigned i = 0; area && !is && i < TRACER_SHARDS; i++)
		is = area->shards[i].lock && !area->shards[i].broken;
	free(area);
	return is;
}

/* Returns true if no thread is inside a heap function. With Windows' own heaps, only the heap locks
 * show this; the caller checks the locks. */
static bool are_at_rest(const struct tracee *tracee, const struct threads *threads)
{
	for (size_t i = 0; i < threads->count && tracee->target->is_wine; i++) {
		if (!tracee_is_at_rest(tracee, threads->items[i].ip))
			return false;
	}
	return true;
}

/*
 * Holds all threads, and tries to do so at a moment when the blocks can be listed: no thread is in
 * a heap function. Sets `*is_at_rest` to true at such a moment. After `tries_max` tries, holds the
 * threads anyway, because a thread may be stuck in a heap function, or some thread may always be in
 * one. Returns -ERR_BUSY if some thread is always changing the tracer's tables.
 */
static int hold_at_rest(const struct tracee *tracee, struct threads *threads, bool is_on,
	unsigned tries_max, bool *is_at_rest, struct err *err)
{
	for (unsigned tries = 1;; tries++) {
		int rc = threads_hold(threads, err);
		bool is_busy = !rc && is_changing(tracee, is_on);

		*is_at_rest = !rc && !is_busy && !heaps_are_busy(tracee->target) &&
			      are_at_rest(tracee, threads);
		if (rc || *is_at_rest || (!is_busy && tries >= tries_max))
			return rc;
		threads_let_go(threads);
		/* If some thread is always in a heap function, it is a matter of chance whether it
		 * is changing the tables at the last try. So allow further tries. */
		if (is_busy && tries >= tries_max + REST_TRIES)
			return err_set(err, ERR_BUSY, tracee->target->name,
				"one of its threads stays in the tracer");
		/* Wait longer each time. Otherwise a thread that wakes up slowly would always be
		 * suspended at the same place. */
		WaitForSingleObject(tracee->process, PAUSE_MS + tries / 4);
	}
}

/*
 * Returns true if listing the existing blocks is worthwhile. There are three cases in which it is
 * not:
 * - The process is read through a clone, so walks need no hold.
 * - The process is sampled, so the table has few of the blocks anyway.
 * - The process is recorded, and a recording lists the existing blocks itself.
 */
static bool wants_older(const struct installing *installing)
{
	const struct install_options *options = installing->options;
	const struct target *target = installing->tracee->target;

	return !options->sample_bytes && !options->rings && !target->is_cloned &&
	       (target->is_wine || !installing->threads.is_held);
}

/* Holds the threads. A process that is being started need not be held: its only thread is already
 * waiting for hsnap. `rest_tries` is the number of tries to find all threads at rest; 0: the usual
 * number. */
static int hold(struct installing *installing, unsigned rest_tries, struct err *err)
{
	const struct tracee *tracee = installing->tracee;
	unsigned usual_tries = installing->options->recording ? TRIES_MAX : REST_TRIES;

	installing->is_at_rest = !(installing->options->flags & TRACER_FLAG_ATTACHED) &&
				 threads_count(tracee->process) == 1;
	if (installing->is_at_rest)
		return 0;
	if (installing->options->recording || wants_older(installing))
		return hold_at_rest(tracee, &installing->threads, false,
			rest_tries ? rest_tries : usual_tries, &installing->is_at_rest, err);
	return threads_hold(&installing->threads, err);
}

/*
 * Holds the threads at a time when none of them is inside the bytes that will change. If a thread
 * cannot be moved, lets it run for a moment. Windows may refuse to move a thread to an address that
 * is not on its shadow stack.
 */
static int hold_outside(struct installing *installing, struct err *err)
{
	for (unsigned tries = 0;; tries++) {
		int rc = hold(installing, tries ? 1 : 0, err);

		if (!rc)
			rc = check_bytes(installing, err);
		if (rc || move_threads(installing))
			return rc;
		if (tries >= MOVE_TRIES)
			return refuse(installing, "one of its threads cannot be moved", err);
		threads_let_go(&installing->threads);
		WaitForSingleObject(installing->tracee->process, PAUSE_MS);
	}
}

static int begin_recording(const struct tracee *tracee, const struct install_options *options,
	enum recording_start start, struct err *err)
{
	const struct recording_link *recording = options->recording;

	return recording->begin(recording->ctx, tracee->target, tracee->area_addr, start, err);
}

static int apply(struct installing *installing, struct err *err)
{
	int rc;

	threads_init(&installing->threads, installing->tracee->process,
		installing->tracee->target->name);
	rc = hold_outside(installing, err);
	if (!rc && installing->options->recording)
		rc = begin_recording(installing->tracee, installing->options,
			installing->is_at_rest ? RECORDING_AT_REST : RECORDING_BUSY, err);
	if (!rc && installing->is_at_rest && wants_older(installing))
		rc = older_list(installing->tracee, err);
	if (!rc)
		rc = insert_hooks(installing, err);
	threads_release(&installing->threads);
	return rc;
}

static int set_up(struct installing *installing, struct err *err)
{
	/* from an install_tracer() that did not finish */
	int rc = remove_rest(installing->tracee, err);

	if (!rc)
		rc = reserve(installing, err);
	if (!rc && installing->options->rings)
		rc = ring_section_map(installing->options->rings, installing->tracee, err);
	installing->tracee->area.rings = installing->tracee->area.rings_view;
	if (!rc)
		rc = set_trampolines(installing, err);
	if (!rc)
		rc = apply(installing, err);
	if (rc)
		tracee_free_tables(installing->tracee);
	return rc;
}

/* ---------------------------------------------------------------- earlier installations */

/* Returns true if a tracer that is on has all its jumps. Another program may have overwritten one
 * of them with its own jump. */
static bool is_whole(const struct tracee *tracee)
{
	for (int i = 0; i < HOOK_COUNT; i++) {
		if (tracee->area.hooks[i].patch_bytes && tracee_jump(tracee, i) == JUMP_OUT)
			return false;
	}
	return true;
}

/* Begins a recording with a tracer that is already on. The tracer is not changed. */
static int join(struct tracee *tracee, const struct install_options *options, struct err *err)
{
	struct threads threads;
	bool is_at_rest;
	int rc = 0;

	if (ring_section_is_read(tracee))
		return err_set(err, ERR_BUSY, tracee->target->name, "another hsnap records it");
	rc = remove_rings(tracee, err); /* rings of an earlier recording that has ended */
	if (!rc)
		rc = ring_section_map(options->rings, tracee, err);
	threads_init(&threads, tracee->process, tracee->target->name);
	if (!rc)
		rc = hold_at_rest(tracee, &threads, true, TRIES_MAX, &is_at_rest, err);
	if (!rc)
		rc = begin_recording(tracee, options, RECORDING_TRACED, err);
	if (!rc)
		rc = ring_section_start(tracee, err);
	threads_release(&threads);
	if (rc)
		ring_section_unmap(tracee); /* no thread uses the section yet */
	return rc;
}

/* Cleans up an earlier, incomplete installation. After that, the tracer in `*tracee` is off. */
static int end_last(struct tracee **tracee, struct err *err)
{
	struct tracee *old = *tracee;
	int rc;

	if (old->area.state != TRACER_ON)
		return 0;
	if (is_whole(old))
		return err_set(err, ERR_TRACED, old->target->name, NULL);
	rc = remove_tracer(old->target, old->process, old->area_addr, err);
	if (!rc)
		rc = tracee_new(tracee, old->target, old->process, old->area_addr, err);
	if (!rc)
		tracee_free(old);
	return rc;
}

int install_tracer(struct target *target, void *process, uint64_t area_addr,
	const struct install_options *options, struct err *err)
{
	struct installing *installing = calloc(1, sizeof(*installing));
	struct tracee *tracee = NULL;
	int rc;

	if (!installing)
		return err_set(err, ERR_NOMEM, target->name, NULL);
	rc = tracee_new(&tracee, target, process, area_addr, err);
	if (!rc && options->recording && tracee->area.state == TRACER_ON && is_whole(tracee)) {
		rc = join(tracee, options, err);
		tracee_free(tracee);
		free(installing);
		return rc;
	}
	if (!rc)
		rc = end_last(&tracee, err);
	if (!rc) {
		installing->tracee = tracee;
		installing->options = options;
		installing->state_before = tracee->area.state;
		rc = set_up(installing, err);
	}
	tracee_free(tracee);
	free(installing);
	return rc;
}
