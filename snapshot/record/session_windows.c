/*
 * A recording in progress. begin() reads the state of the suspended process and opens the file.
 * After that, the session's thread moves events from the rings to the file. It also takes marks
 * from the mailbox, and compares the live blocks with the heaps.
 */
#include "snapshot/record/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <windows.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/base/os_windows.h"
#include "core/base/text.h"
#include "snapshot/control/tracee_windows.h"
#include "snapshot/heap/heap.h"
#include "snapshot/live/process.h"
#include "snapshot/record/replay.h"
#include "snapshot/stacks/tracer_read.h"

#define ROUND_MS 1 /* pause after a round that found fewer events than LITTLE() */
#define LITTLE(ring_events) ((ring_events) / 4)
#define FLUSH_MS 1000
#define END_TRIES 10 /* number of tries to remove the tracer */
#define LIMIT_MS 5000 /* maximum wait for the events that precede a walk of the heaps */
#define LOOK_MS 100 /* time between two checks for changed modules and names of threads */

struct record_session {
	const struct record_session_plan *plan;
	const char *path; /* set when the recording begins */
	struct recording_link link;
	struct ring_section rings;
	HANDLE thread;
	HANDLE caught_up, over; /* set by the session's thread */
	volatile LONG is_ending, wants_to_catch_up;
	struct target target; /* the session's own target, open as long as the session */
	struct recorder *recorder;
	struct replay *replay;
	struct drain *drain;
	struct stack_reader *stacks;
	struct thread_names *names;
	struct walk walk; /* blocks that existed at the beginning */
	struct tracer_copy traced; /* the tracer's tables at the beginning, if the tracer was on */
	struct mailbox *mailbox;
	int64_t begin_ms, flushed_ms, end_ms;
	uint64_t looked_ms; /* time of the last check, in ms since begin_ms */
	uint64_t area_addr;
	/* number of changes that the tracer has dropped: before the recording, and until now */
	uint64_t dropped_before, dropped;
	uint64_t unseen; /* number of blocks that were ended because a walk found them in no heap */
	bool doubted; /* the walk was not trusted, because too many blocks were found in no heap */
	bool is_uncompared; /* the heaps could not be walked for the last comparison */
	bool began_busy; /* threads were in heap functions at the beginning */
	/* the tracer is known to be on; before that, its counters may be those of an earlier
	 * session */
	bool is_on;
	unsigned end_tries; /* number of failed tries */
	struct err end_err; /* error of the last try, after which no more tries were made */
	/* the file has reached its maximum size; the file cannot be written */
	bool is_full, is_broken;
};

static int fail(const char *what, struct err *err)
{
	char text[200];

	return err_set(
		err, ERR_SYSTEM, what, "%s", windows_error(GetLastError(), text, sizeof(text)));
}

/* ---------------------------------------------------------------- existing memory */

/* Adds blocks that the tracer has not seen, or all blocks if the tracer was off. */
static void add_walked(struct record_session *session)
{
	for (size_t i = 0; i < session->walk.block_count; i++) {
		const struct block *block = &session->walk.blocks[i];

		if (!tracer_copy_find(&session->traced, block->addr))
			replay_add_block(session->replay, block->addr,
				session->walk.heaps[block->heap].addr, block->requested_bytes, 0);
	}
}

static void add_traced(struct record_session *session, const struct tracer_block *block)
{
	uint64_t heap = tracer_copy_heap(&session->traced, block);
	const struct ring_event event = {.block = *block,
		.low = (uint32_t)heap,
		.high = (uint16_t)(heap >> 32),
		.type = RING_ALLOC};

	replay_event(session->replay, &event);
}

/* Adds a range as if it had just been reserved. If it is committed, adds a commit immediately after
 * that. */
static void add_range(struct record_session *session, const struct tracer_range *range)
{
	uint64_t pages = (range->end - range->start) / TRACER_PAGE;
	bool is_used = range->kind == RANGE_COMMITTED && range->reserve_stack;
	struct ring_event event = {.block = tracer_block_make(range->start, 0,
					   is_used ? range->reserve_stack : range->stack, pages),
		.low = is_used ? RANGE_RESERVED : range->kind,
		.type = RING_RANGE_ADD};

	replay_event(session->replay, &event);
	if (!is_used)
		return;
	event.block = tracer_block_make(range->start, 0, range->stack, pages);
	event.low = RANGE_COMMITTED;
	event.type = RING_RANGE_USE;
	replay_event(session->replay, &event);
}

/* Adds the tracer's ranges, except ranges that are being freed. The tracer has already recorded the
 * free of such a range. If the free fails, the tracer records another event. */
static void add_ranges(struct record_session *session)
{
	const struct tracer_part *nodes = &session->traced.parts[PART_RANGES];
	struct tracer_range range;

	for (uint64_t at = 0; at + sizeof(range) <= nodes->bytes; at += sizeof(range)) {
		memcpy(&range, nodes->copy + at, sizeof(range));
		if (range.kind != RANGE_NONE && range.kind < RANGE_HANDLE &&
			range.start < range.end)
			add_range(session, &range);
	}
}

/* Adds the first events. They describe the state that was read while the process was suspended. */
static void add_old(struct record_session *session)
{
	struct tracer_copy *traced = &session->traced;

	tracer_copy_sort(traced);
	for (size_t i = 0; i < traced->block_count; i++)
		add_traced(session, &traced->blocks[i]);
	add_walked(session);
	add_ranges(session);
	if (!walk_is_sound(&session->walk))
		recorder_remark(session->recorder, "its heaps could not be read completely: blocks "
						   "older than the recording are missing");
	if (session->began_busy)
		recorder_remark(session->recorder, "its heaps were never idle: a few blocks older "
						   "than the recording may be wrong");
	recorder_start(session->recorder);
	walk_release(&session->walk);
	tracer_copy_release(traced);
}

/* ---------------------------------------------------------------- writing events */

static uint64_t counter(struct record_session *session, size_t offset)
{
	uint64_t value = 0;

	target_read(&session->target, session->area_addr + offset, &value, sizeof(value));
	return value;
}

/* Counts the changes for which the tracer's tables had no room. They count as lost, because they
 * have no events. After the process has exited, uses the last known number. */
static void notice_dropped(struct record_session *session)
{
	uint64_t dropped = counter(session, offsetof(struct tracer_area, dropped_blocks)) +
			   counter(session, offsetof(struct tracer_area, dropped_ranges));

	if (!session->is_on || dropped <= session->dropped)
		return;
	recorder_lost(session->recorder, dropped - session->dropped);
	session->dropped = dropped;
}

static size_t pass_events(struct record_session *session)
{
	stack_reader_begin(session->stacks);
	return drain_events(
		session->drain, ring_time(), (uint64_t)(os_clock_ms() - session->begin_ms));
}

/*
 * Ends the blocks that are in no heap. There is one exception: if there are many such blocks, and
 * this version of Windows is not known to free blocks unseen, the walk has probably missed them.
 * They then stay live.
 */
static void end_missing(struct record_session *session, const struct heap_look *look)
{
	bool is_freed;
	size_t count = replay_filter_blocks(session->replay, heap_look_has, look,
		target_may_free_unseen(&session->target), &is_freed);

	if (is_freed)
		session->unseen += count;
	else if (!session->doubted)
		recorder_remark(session->recorder,
			"many blocks were not found in any heap, perhaps because a heap's layout "
			"is unknown; they count as live");
	session->doubted |= !is_freed;
}

/*
 * Compares the blocks that are live according to their events with the heaps. Ends the blocks that
 * are in no heap. Until then, events that happened after the walk of the heaps must wait. Each
 * comparison replaces all earlier ones.
 */
static void drop_unseen(struct record_session *session)
{
	const int64_t start = os_clock_ms();
	struct heap_look look;
	bool is_compared = false;

	if (!session->target.ops->is_alive(&session->target))
		return;
	if (heap_look_capture(&look, &session->target, session->area_addr)) {
		drain_limit(session->drain, look.orders);
		while (!drain_is_at_limit(session->drain) && os_clock_ms() - start < LIMIT_MS) {
			if (!pass_events(session))
				os_sleep_ms(ROUND_MS);
		}
		is_compared = drain_is_at_limit(session->drain);
		if (is_compared)
			end_missing(session, &look);
		drain_limit(session->drain, NULL);
		heap_look_release(&look);
	}
	session->is_uncompared = !is_compared && session->target.ops->is_alive(&session->target);
}

/* Does one round. If marks were sent before this call, they are written after all events that
 * happened before the marks. A mark comes from another hsnap, or from the program itself. */
static size_t go_round(struct record_session *session)
{
	char label[MAILBOX_LABEL_BYTES], own_label[RING_LABEL_BYTES];
	bool is_sent = mailbox_next(session->mailbox, label);
	bool is_own = ring_letter_read(session->rings.area, own_label);
	bool is_marked = is_sent || is_own;
	bool is_over = record_session_is_over(session);
	uint64_t now_ms = (uint64_t)(os_clock_ms() - session->begin_ms);
	size_t count;

	count = pass_events(session);
	session->is_on |= count != 0;
	thread_names_add(session->names);
	if ((is_sent || now_ms - session->looked_ms >= LOOK_MS) && !is_over) {
		stack_reader_look(session->stacks, now_ms);
		stack_reader_remark(session->stacks);
		notice_dropped(session);
		thread_names_look(session->names);
		session->looked_ms = now_ms;
	}
	if (is_marked && !is_over) {
		/* A test program marks often, and a walk of large heaps takes a second. */
		if (is_sent)
			drop_unseen(session);
		/* the last event may have been long ago */
		recorder_time(session->recorder, now_ms);
		if (is_sent)
			recorder_mark(session->recorder, label);
		if (is_own)
			recorder_mark(session->recorder, own_label);
	}
	if (is_sent)
		mailbox_acknowledge(session->mailbox, is_over);
	if (is_own)
		ring_letter_answer(session->rings.area);
	return count;
}

static bool is_to_end(struct record_session *session)
{
	const struct record_session_plan *plan = session->plan;

	session->is_full = plan->max_bytes && recorder_bytes(session->recorder) >= plan->max_bytes;
	return session->is_full || session->is_broken || mailbox_is_stopped(session->mailbox) ||
	       (plan->for_ms && os_clock_ms() - session->begin_ms >= plan->for_ms);
}

/* Ends the recording if its time is over, if the file is full or cannot be written, or if another
 * hsnap has requested the end. Events that are already in the rings are still written. */
static void end_in_time(struct record_session *session)
{
	struct err err;
	int rc;

	if (record_session_is_over(session) || !is_to_end(session))
		return;
	if (!session->end_ms)
		drop_unseen(session);
	session->end_ms = os_clock_ms();
	rc = control_end_recording(session->target.pid, &err);
	if (rc == -ERR_GONE || rc == -ERR_NOT_TRACED)
		rc = 0;
	if (rc == -ERR_BUSY || (rc && ++session->end_tries < END_TRIES))
		return; /* the next round tries again */
	if (rc)
		err_set(&session->end_err, err.code, session->target.name,
			"%s%sthe tracer stays in the process until 'hsnap detach'", err.detail,
			err.detail[0] ? "; " : "");
	SetEvent(session->over);
}

const char *record_unseen_text(uint64_t count, char text[RECORD_UNSEEN_BYTES])
{
	snprintf(text, RECORD_UNSEEN_BYTES,
		"%" PRIu64 " block%s freed without the tracer noticing; the recording frees %s "
		"where hsnap noticed it, at a mark or the end",
		count, text_plural(count), count == 1 ? "it" : "them");
	return text;
}

static void remark_unseen(struct record_session *session)
{
	char text[RECORD_UNSEEN_BYTES];

	if (session->is_uncompared)
		recorder_remark(session->recorder, RECORD_UNCOMPARED);
	if (!session->unseen)
		return;
	recorder_remark(session->recorder, record_unseen_text(session->unseen, text));
}

static DWORD WINAPI run(void *ctx)
{
	struct record_session *session = ctx;

	add_old(session);
	for (;;) {
		bool is_last = session->is_ending, catches_up = session->wants_to_catch_up;
		size_t count = go_round(session);

		if ((is_last || catches_up) && count)
			continue;
		if (catches_up)
			drop_unseen(session);
		if (is_last || catches_up) {
			stack_reader_remark(session->stacks);
			notice_dropped(session);
		}
		if (catches_up) {
			InterlockedExchange(&session->wants_to_catch_up, 0);
			SetEvent(session->caught_up);
		}
		if (is_last) {
			remark_unseen(session);
			drain_end(session->drain);
			thread_names_add(session->names);
			thread_names_look(session->names);
			return 0;
		}
		end_in_time(session);
		if (os_clock_ms() - session->flushed_ms >= FLUSH_MS) {
			ring_section_reclaim(&session->rings, session->target.pid);
			session->is_broken = recorder_flush(session->recorder, NULL) != 0;
			session->flushed_ms = os_clock_ms();
		}
		if (count < LITTLE((size_t)1 << session->rings.events_log2))
			os_sleep_ms(ROUND_MS);
	}
}

/* ---------------------------------------------------------------- start */

/* Reads the existing blocks while the process is suspended. */
static int read_old(struct record_session *session, struct target *target, uint64_t area_addr,
	bool is_traced, struct err *err)
{
	struct memory memory;
	int rc = 0;

	if (is_traced)
		rc = tracer_copy_read(&session->traced, target, area_addr, err);
	if (is_traced && !rc)
		rc = tracer_copy_parse(&session->traced, target, area_addr, err);
	if (!is_traced)
		session->traced.area.sample_bytes = session->plan->sample_bytes;
	else if (!rc && session->plan->sample_bytes &&
		 session->plan->sample_bytes != session->traced.area.sample_bytes)
		rc = err_set(err, ERR_TRACED, target->name, "with a different --sample");
	/* In a sample, only sampled blocks have a free in the recording. So do not walk the heaps
	 * for the other blocks. */
	if (rc || session->traced.area.sample_bytes)
		return rc;
	if (memory_init(&memory, target))
		return err_set(err, ERR_NOMEM, target->name, NULL);
	rc = heaps_walk(&memory, NULL, &session->walk, err);
	memory_release(&memory);
	return rc;
}

static struct drain *new_drain(struct record_session *session)
{
	const struct tracer_area *area = &session->traced.area; /* all 0 if the tracer was off */
	const struct ring_section *rings = &session->rings;
	uint32_t orders[RING_STREAMS];

	for (unsigned i = 0; i < TRACER_SHARDS; i++)
		orders[i] = area->shards[i].order;
	orders[RING_RANGES] = area->ranges.order;
	return drain_new(session->replay, session->recorder, rings->area, rings->ring_count,
		rings->events_log2, orders);
}

static int begin(void *ctx, struct target *target, uint64_t area_addr, enum recording_start start,
	struct err *err)
{
	struct record_session *session = ctx;
	struct record_facts facts = {.pid = target->pid,
		.parent_pid = target->parent_pid,
		.bits = target->bits,
		.image = target->image,
		.os = target->os,
		.start_ms = target->start_ms,
		.time_ms = os_time_ms(),
		.is_attached = session->plan->is_attached,
		.has_addresses = session->plan->keeps_addresses};
	int rc;

	rc = mailbox_new(&session->mailbox, target->pid, err);
	if (!rc)
		rc = target_open_live(&session->target, target->pid, err);
	if (!rc)
		rc = read_old(session, target, area_addr, start == RECORDING_TRACED, err);
	facts.sample_bytes = session->traced.area.sample_bytes;
	if (!rc)
		session->path = session->plan->path_of(session->plan, target->image, target->pid);
	if (!rc)
		rc = recorder_open(&session->recorder, session->path, &facts, err);
	if (rc)
		return rc;
	session->stacks = stack_reader_new(session->recorder, &session->target, area_addr);
	session->replay = replay_new(session->recorder, stack_reader_number, session->stacks);
	session->names = thread_names_new(session->recorder, target->pid);
	session->drain = new_drain(session);
	session->area_addr = area_addr;
	session->is_on = start == RECORDING_TRACED;
	session->began_busy = start == RECORDING_BUSY;
	session->dropped_before =
		session->traced.area.dropped_blocks + session->traced.area.dropped_ranges;
	session->dropped = session->dropped_before;
	session->begin_ms = session->flushed_ms = os_clock_ms();
	drain_events(session->drain, ring_time(), 0);
	session->thread = CreateThread(NULL, 0, run, session, 0, NULL);
	return session->thread ? 0 : fail("the thread of the recording", err);
}

void record_session_look(struct record_session *session)
{
	HANDLE either[] = {session->caught_up, session->thread};

	InterlockedExchange(&session->wants_to_catch_up, 1);
	WaitForMultipleObjects(2, either, FALSE, INFINITE);
}

/* Writes the remaining events at the exit of the process. A thread of the process is waiting and
 * holds locks. */
static void catch_up(void *ctx)
{
	struct record_session *session = ctx;

	target_u32(&session->target, session->area_addr + offsetof(struct tracer_area, exit_thread),
		&session->target.exit_thread);
	record_session_look(session);
}

int record_session_new(
	struct record_session **made, const struct record_session_plan *plan, struct err *err)
{
	struct record_session *session = xcalloc(1, sizeof(*session));
	int rc;

	*session = (struct record_session){.plan = plan};
	walk_init(&session->walk);
	tracer_copy_init(&session->traced);
	rc = ring_section_init(&session->rings, plan->ring_bytes, plan->drops ? RING_DROP : 0, err);
	session->caught_up = CreateEventW(NULL, FALSE, FALSE, NULL);
	session->over = CreateEventW(NULL, TRUE, FALSE, NULL);
	session->link = (struct recording_link){&session->rings, begin, catch_up, session};
	if (!rc && (!session->caught_up || !session->over))
		rc = fail("a recording", err);
	if (rc)
		record_session_end(session, NULL, NULL);
	*made = rc ? NULL : session;
	return rc;
}

intptr_t record_session_over_handle(const struct record_session *session)
{
	return (intptr_t)session->over;
}

bool record_session_is_over(const struct record_session *session)
{
	return WaitForSingleObject(session->over, 0) == WAIT_OBJECT_0;
}

const struct recording_link *record_session_link(struct record_session *session)
{
	return &session->link;
}

static void copy_result(const struct record_session *session, struct record_session_result *result)
{
	uint64_t waited = 0, units = 0;
	uint64_t from = ring_time();

	*result = (struct record_session_result){.event_count = recorder_events(session->recorder),
		.lost_count =
			drain_lost(session->drain) + session->dropped - session->dropped_before,
		.length_ms = (uint64_t)(session->end_ms - session->begin_ms),
		.is_full = session->is_full,
		.unseen_count = session->unseen,
		.is_uncompared = session->is_uncompared,
		.damaged_count = drain_damaged(session->drain)};
	for (uint32_t i = 0; i < session->rings.ring_count; i++) {
		result->wait_count += session->rings.area->rings[i].waits;
		waited += session->rings.area->rings[i].waited;
	}
	/* sleep for a known time, to measure how long a unit of ring_time() is */
	os_sleep_ms(waited ? 20 : 0);
	units = ring_time() - from;
	result->waited_ms = waited && units ? waited * 20 / units : 0;
}

int record_session_end(
	struct record_session *session, struct record_session_result *result, struct err *err)
{
	HANDLE handles[] = {session->thread, session->caught_up, session->over};
	struct os_file file;
	int rc = 0;

	if (session->thread) {
		InterlockedExchange(&session->is_ending, 1);
		WaitForSingleObject(session->thread, INFINITE);
	}
	if (result)
		*result = (struct record_session_result){0};
	if (session->drain && result)
		copy_result(session, result);
	if (session->recorder)
		rc = recorder_end(session->recorder, err);
	if (!rc && session->end_err.code) {
		rc = -(int)session->end_err.code;
		if (err)
			*err = session->end_err;
	}
	if (result && session->recorder && !os_open(&file, session->path, NULL)) {
		result->file_bytes = os_size(&file);
		os_close(&file);
	}
	mailbox_free(session->mailbox);
	walk_release(&session->walk);
	tracer_copy_release(&session->traced);
	thread_names_free(session->names);
	drain_free(session->drain);
	replay_free(session->replay);
	stack_reader_free(session->stacks);
	if (session->target.system)
		session->target.ops->close(&session->target);
	ring_section_release(&session->rings);
	for (size_t i = 0; i < sizeof(handles) / sizeof(*handles); i++) {
		if (handles[i])
			CloseHandle(handles[i]);
	}
	free(session);
	return rc;
}
