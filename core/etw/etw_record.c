/* Replays the events of one process in a log and writes them as a recording. Events first wait in
 * the binder for their stacks. They then change the live blocks and ranges, which write the
 * recording. Remarks report missing data. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/etw/etw_parts.h"
#include "core/record/live.h"

#define WAITING ((size_t)1 << 18) /* maximum number of events that wait for their stacks */
/* in real logs, the user part of a stack was logged up to 0.4 s after its event */
#define WAIT_SECONDS 1
#define PAGE 4096
#define ADDR_END (UINT64_C(1) << LIVE_ADDR_BITS)
/* if the first FREES_TRIED frees have no stack, later frees do not wait for one */
#define FREES_TRIED 1000
#define KIND_CACHE 16384 /* must be a power of two */

/* Flags in virtual memory events, which are those of VirtualAlloc() and VirtualFree(). */
enum { COMMIT = 0x1000, RESERVE = 0x2000, DECOMMIT = 0x4000, RELEASE = 0x8000 };

enum what {
	BLOCK_ALLOC,
	BLOCK_FREE,
	BLOCK_RESIZE, /* resized in place */
	BLOCK_MOVE,
	HEAP_IS_GONE,
	PAGES_ALLOC, /* old_addr contains the flags */
	PAGES_FREE,
};

struct module_change {
	uint64_t ticks;
	uint32_t module; /* index into modules */
	bool is_loaded;
};

/* The number that the recorder gave to a raw stack. It is valid only for one generation of loaded
 * modules. */
struct known_stack {
	uint32_t generation, number;
};

struct kind_entry {
	uint64_t heap, bytes;
	uint32_t stack, kind;
	bool is_known;
};

/* Granules of 64 KiB that contain blocks. All pages of a granule belong to the same reservation. */
#define GRANULE_BITS 16
#define LOOKED_AT 4096 /* must be a power of two */
struct looked_at {
	uint64_t granule, changes;
};

struct etw_recording {
	struct etw_log *log;
	const struct etw_process *process;
	struct recorder *recorder;
	struct live_blocks *blocks;
	struct live_ranges *ranges;
	struct etw_binder binder;
	/* All modules, and the modules that are loaded now, sorted by address. */
	struct etw_module *modules;
	uint32_t *numbers; /* number that the recorder gave to each module */
	struct module_change *changes;
	uint32_t *loaded;
	size_t module_count, change_count, changed, loaded_count;
	uint32_t generation;
	struct known_stack *known;
	size_t known_count, known_cap;
	struct kind_entry *kinds;
	struct looked_at *looked_at;
	uint64_t page_changes;
	uint32_t thread_tid, thread_number; /* tid and number of the thread of the last event */
	bool has_ended;
	/* Counts for the remarks. */
	uint64_t frees, free_stacks, allocated, stackless, unknown_frees, replaced, moved,
		after_end, strange;
};

/* ---------------------------------------------------------------- modules and stacks */

static int by_ticks(const void *a, const void *b)
{
	const struct module_change *x = a, *y = b;

	if (x->ticks != y->ticks)
		return x->ticks < y->ticks ? -1 : 1;
	if (x->is_loaded != y->is_loaded)
		return x->is_loaded ? 1 : -1;
	return x->module < y->module ? -1 : x->module > y->module;
}

/* Returns the index in loaded[] of the module with this base, or the index where that module would
 * be inserted. */
static size_t place_of(const struct etw_recording *run, uint64_t base)
{
	size_t low = 0, high = run->loaded_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (run->modules[run->loaded[middle]].module.base < base)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void change_modules(struct etw_recording *run, const struct module_change *change)
{
	size_t at = place_of(run, run->modules[change->module].module.base);
	uint32_t *place = run->loaded + at;

	if (change->is_loaded) {
		memmove(place + 1, place, (run->loaded_count++ - at) * sizeof(*place));
		*place = change->module;
		return;
	}
	while (at < run->loaded_count && *place != change->module &&
		run->modules[*place].module.base == run->modules[change->module].module.base) {
		at++;
		place++;
	}
	if (at < run->loaded_count && *place == change->module)
		memmove(place, place + 1, (--run->loaded_count - at) * sizeof(*place));
}

static uint64_t time_ms(const struct etw_recording *run, uint64_t ticks)
{
	const struct etw_head *head = &run->log->files->head;

	return (etw_time(head, ticks) - head->start_time) / 10000;
}

static void copy_modules(struct etw_recording *run)
{
	struct etw_module *modules =
		etw_images_modules(&run->log->images, run->process->pid, &run->module_count);
	size_t count = run->module_count;

	run->modules = modules;
	run->numbers = xcalloc(count + 1, sizeof(*run->numbers));
	run->loaded = xcalloc(count + 1, sizeof(*run->loaded));
	run->changes = xcalloc(2 * count + 1, sizeof(*run->changes));
	for (uint32_t i = 0; i < count; i++) {
		const struct etw_module *module = &modules[i];

		run->numbers[i] = recorder_module(run->recorder, &module->module);
		if (module->from)
			run->changes[run->change_count++] =
				(struct module_change){module->from, i, true};
		else
			change_modules(run, &(struct module_change){0, i, true});
		if (module->to != UINT64_MAX)
			run->changes[run->change_count++] =
				(struct module_change){module->to, i, false};
	}
	qsort(run->changes, run->change_count, sizeof(*run->changes), by_ticks);
	run->generation = 1;
}

static void pass_changes(struct etw_recording *run, uint64_t ticks)
{
	while (run->changed < run->change_count && run->changes[run->changed].ticks <= ticks) {
		const struct module_change *change = &run->changes[run->changed++];

		recorder_time(run->recorder, time_ms(run, change->ticks));
		recorder_module_is(run->recorder, run->numbers[change->module], change->is_loaded);
		change_modules(run, change);
		run->generation++;
	}
}

static struct record_frame frame_of(const struct etw_recording *run, uint64_t addr)
{
	size_t at = place_of(run, addr + 1);

	if (at) {
		uint32_t number = run->loaded[at - 1];
		const struct module *module = &run->modules[number].module;

		if (addr - module->base < module->size_bytes)
			return (struct record_frame){addr - module->base, run->numbers[number]};
	}
	return (struct record_frame){addr, RECORD_NO_MODULE};
}

static uint32_t stack_of(struct etw_recording *run, uint32_t raw)
{
	const struct etw_stacks *stacks = &run->log->stacks;
	struct record_frame frames[RECORD_FRAMES_MAX];
	const struct etw_raw_stack *stack;
	struct known_stack *known;

	if (raw == ETW_NO_STACK)
		return RECORD_NO_STACK;
	while (raw >= run->known_count) {
		array_grow((void **)&run->known, &run->known_cap, run->known_count,
			sizeof(*run->known));
		run->known[run->known_count++].generation = 0;
	}
	known = &run->known[raw];
	if (known->generation == run->generation)
		return known->number;
	stack = &stacks->stacks[raw];
	for (uint32_t i = 0; i < stack->count; i++)
		frames[i] = frame_of(run, stacks->frames[stack->first + i]);
	*known = (struct known_stack){
		run->generation, recorder_stack(run->recorder, frames, stack->count)};
	return known->number;
}

/* ---------------------------------------------------------------- blocks and pages */

static uint32_t kind_of(struct etw_recording *run, uint64_t heap, uint64_t bytes, uint32_t stack)
{
	uint64_t mixed =
		(bytes + ((uint64_t)stack << 20) + heap * 31) * UINT64_C(0x9e3779b97f4a7c15);
	struct kind_entry *entry = &run->kinds[mixed >> 50 & (KIND_CACHE - 1)];

	if (!entry->is_known || entry->heap != heap || entry->bytes != bytes ||
		entry->stack != stack) {
		const struct record_kind kind = {.bytes = bytes,
			.stack = stack,
			.heap = recorder_heap(run->recorder, heap),
			.memory = RECORD_HEAP};

		*entry = (struct kind_entry){
			heap, bytes, stack, recorder_kind(run->recorder, &kind), true};
	}
	return entry->kind;
}

/* Removes the pages around a block from the recording. The heap got these pages from
 * VirtualAlloc(), but its blocks are counted instead. Most calls return early, because the block's
 * granule was already checked after the last change to pages. */
static void hide_pages(struct etw_recording *run, uint64_t addr)
{
	const uint64_t granule = (addr >> GRANULE_BITS) + 1;
	struct looked_at *place = &run->looked_at[granule & (LOOKED_AT - 1)];

	if (!run->process->memory_events ||
		(place->granule == granule && place->changes == run->page_changes))
		return;
	*place = (struct looked_at){granule, run->page_changes};
	live_ranges_hide(run->ranges, addr);
}

static void begin(struct etw_recording *run, const struct etw_waiting *block)
{
	uint32_t stack = stack_of(run, block->stack);

	if (!block->addr)
		return;
	if (block->addr >= ADDR_END || block->bytes >= ADDR_END) {
		run->strange++;
		return;
	}
	hide_pages(run, block->addr);
	run->allocated++;
	run->stackless += stack == RECORD_NO_STACK;
	run->replaced += live_block_begin(run->blocks, block->addr, 0, block->heap,
		kind_of(run, block->heap, block->bytes, stack));
}

static void end(struct etw_recording *run, uint64_t addr, uint32_t raw)
{
	if (addr && (addr >= ADDR_END || !live_block_end(run->blocks, addr, stack_of(run, raw))))
		run->unknown_frees++;
}

/* Handles a moved block. Separate events usually free the old block and allocate the new one. If
 * those events are missing, this event does both. */
static void move(struct etw_recording *run, const struct etw_waiting *block)
{
	if (!block->old_addr || block->old_addr >= ADDR_END || block->addr >= ADDR_END ||
		live_block_exists(run->blocks, block->addr) ||
		!live_block_exists(run->blocks, block->old_addr))
		return;
	run->moved++;
	end(run, block->old_addr, block->stack);
	begin(run, block);
}

static void change_pages(struct etw_recording *run, const struct etw_waiting *pages)
{
	uint64_t flags = pages->old_addr, from = pages->addr & ~(uint64_t)(PAGE - 1), to;
	uint32_t stack = stack_of(run, pages->stack);

	if (from >= ADDR_END || pages->bytes > ADDR_END - pages->addr) {
		run->strange++;
		return;
	}
	to = (pages->addr + pages->bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	/* Size 0 releases the whole reservation. */
	if (to == from && pages->what == PAGES_FREE && flags & RELEASE)
		to = live_ranges_end(run->ranges, from);
	if (to <= from)
		return;
	run->page_changes++;
	if (pages->what == PAGES_FREE && flags & RELEASE) {
		live_ranges_change(run->ranges, LIVE_TAKE, from, to, RECORD_COMMITTED, stack);
	} else if (pages->what == PAGES_FREE && flags & DECOMMIT) {
		live_ranges_change(run->ranges, LIVE_GIVE_UP, from, to, RECORD_COMMITTED, stack);
	} else if (flags & RESERVE) {
		enum record_memory memory = flags & COMMIT ? RECORD_COMMITTED : RECORD_RESERVED;

		live_ranges_change(
			run->ranges, LIVE_TAKE, from, to, RECORD_COMMITTED, RECORD_NO_STACK);
		live_ranges_change(run->ranges, LIVE_FILL, from, to, memory, stack);
	} else if (flags & COMMIT) { /* the pages may have been reserved before the log */
		live_ranges_change(run->ranges, LIVE_USE, from, to, RECORD_COMMITTED, stack);
		live_ranges_change(run->ranges, LIVE_FILL, from, to, RECORD_COMMITTED, stack);
	}
}

/* Replays an event whose stack was read or is no longer expected. An event without a process id
 * belongs to the process if its stack does, or if it frees a block of the process. */
static void replay_event(void *ctx, const struct etw_waiting *event)
{
	struct etw_recording *run = ctx;
	bool is_ours = event->is_ours || event->pid == run->process->pid;

	if (!is_ours && event->what == BLOCK_FREE && event->pid == ETW_NO_ID)
		is_ours = event->addr < ADDR_END && live_block_exists(run->blocks, event->addr);
	if (!is_ours)
		return;
	pass_changes(run, event->ticks);
	recorder_time(run->recorder, time_ms(run, event->ticks));
	if (event->tid != run->thread_tid) {
		run->thread_tid = event->tid;
		run->thread_number =
			recorder_thread(run->recorder, event->tid == ETW_NO_ID ? 0 : event->tid);
		recorder_thread_is(run->recorder, run->thread_number);
	}
	switch (event->what) {
	case BLOCK_ALLOC: begin(run, event); break;
	case BLOCK_FREE:
		run->frees++;
		run->free_stacks += event->stack != ETW_NO_STACK;
		end(run, event->addr, event->stack);
		break;
	case BLOCK_RESIZE:
		end(run, event->addr, event->stack);
		begin(run, event);
		break;
	case BLOCK_MOVE: move(run, event); break;
	case HEAP_IS_GONE: live_heap_end(run->blocks, event->heap); break;
	default: change_pages(run, event); break;
	}
}

/* ---------------------------------------------------------------- events */

static void add(
	struct etw_recording *run, const struct etw_event *event, const struct etw_waiting *facts)
{
	struct etw_waiting *waiting = etw_binder_add(&run->binder, event);

	waiting->what = facts->what;
	waiting->heap = facts->heap;
	waiting->addr = facts->addr;
	waiting->bytes = facts->bytes;
	waiting->old_addr = facts->old_addr;
	waiting->is_ours = facts->is_ours;
	if (facts->what == BLOCK_FREE)
		waiting->waits = run->free_stacks || run->frees < FREES_TRIED;
	if (facts->addr < ADDR_END)
		live_block_expect(run->blocks, facts->addr);
}

static void handle_heap_event(struct etw_recording *run, const struct etw_event *event)
{
	struct etw_payload from = etw_payload(event);
	struct etw_waiting facts = {.heap = etw_parse_pointer(&from)};

	if (event->pid != run->process->pid && event->pid != ETW_NO_ID)
		return;
	switch (event->type) {
	case HEAP_ALLOC:
		facts.what = BLOCK_ALLOC;
		facts.bytes = etw_parse_pointer(&from);
		facts.addr = etw_parse_pointer(&from);
		break;
	case HEAP_REALLOC:
		facts.addr = etw_parse_pointer(&from);
		facts.old_addr = etw_parse_pointer(&from);
		facts.bytes = etw_parse_pointer(&from);
		facts.what = facts.addr == facts.old_addr ? BLOCK_RESIZE : BLOCK_MOVE;
		break;
	case HEAP_FREE:
		facts.what = BLOCK_FREE;
		facts.addr = etw_parse_pointer(&from);
		break;
	case HEAP_DESTROY: facts.what = HEAP_IS_GONE; break;
	default: return;
	}
	if (from.is_short)
		run->strange++;
	else
		add(run, event, &facts);
}

static void handle_memory_event(struct etw_recording *run, const struct etw_event *event)
{
	struct etw_payload from = etw_payload(event);
	struct etw_waiting facts = {.is_ours = true};
	uint32_t pid;

	if (event->type != MEMORY_ALLOC && event->type != MEMORY_FREE)
		return;
	facts.what = event->type == MEMORY_ALLOC ? PAGES_ALLOC : PAGES_FREE;
	facts.addr = etw_parse_pointer(&from);
	facts.bytes = etw_parse_pointer(&from);
	pid = etw_parse_u32(&from);
	facts.old_addr = etw_parse_u32(&from);
	if (pid != run->process->pid)
		return;
	if (from.is_short)
		run->strange++;
	else
		add(run, event, &facts);
}

/* Handles the end of the process. Later events with its pid belong to another process. */
static void handle_process_event(struct etw_recording *run, const struct etw_event *event)
{
	struct etw_payload from = etw_payload(event);

	if (event->type != PROCESS_END || event->version < 2)
		return;
	etw_parse_pointer(&from);
	if (etw_parse_u32(&from) == run->process->pid && !from.is_short)
		run->has_ended = run->allocated || run->binder.tail;
}

static int read_events(
	struct etw_recording *run, etw_progress_fn progress, void *ctx, struct err *err)
{
	const struct etw_event *event;
	struct etw_merge *merge;
	uint64_t count = 0;
	int rc = etw_merge_open(&merge, run->log, err);

	if (rc)
		return rc;
	while ((rc = etw_merge_next(merge, &event, err)) > 0) {
		if (progress && !(++count & 0xffff))
			progress(ctx, etw_merge_done(merge), run->log->facts.file_bytes);
		if (run->has_ended && event->group != ETW_STACK) {
			run->after_end +=
				event->group == ETW_HEAP && event->pid == run->process->pid;
			continue;
		}
		switch (event->group) {
		case ETW_HEAP: handle_heap_event(run, event); break;
		case ETW_MEMORY: handle_memory_event(run, event); break;
		case ETW_PROCESS: handle_process_event(run, event); break;
		case ETW_STACK:
			if (event->type == STACK_FRAMES || event->type >= STACK_KEY_KERNEL)
				etw_binder_stack(&run->binder, event);
			break;
		default: break;
		}
	}
	if (!rc) {
		etw_binder_end(&run->binder);
		pass_changes(run, run->log->facts.last_ticks);
		recorder_time(run->recorder, time_ms(run, run->log->facts.last_ticks));
	}
	etw_merge_close(merge);
	return rc;
}

/* ---------------------------------------------------------------- remarks */

static void remark(struct etw_recording *run, const char *format, ...) PRINTF_LIKE(2, 3);
static void remark(struct etw_recording *run, const char *format, ...)
{
	char text[300];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	recorder_remark(run->recorder, text);
}

static void remark_losses(struct etw_recording *run)
{
	const struct etw_facts *facts = &run->log->facts;
	uint64_t events = 0, buffers = 0, flagged = 0, lost;
	for (size_t i = 0; i < facts->file_count; i++) {
		const struct etw_file *file = &facts->files[i];

		events += file->head.events_lost;
		buffers += file->head.buffers_lost;
		flagged += file->flagged_losses;
		if (file->is_cut)
			remark(run,
				"the log is damaged or cut short at byte %" PRIu64
				": events may be missing",
				file->cut_bytes);
	}
	lost = buffers ? buffers : flagged;
	if (buffers || (flagged && !events))
		remark(run, "Windows lost at least %" PRIu64 " buffer%s of events", lost,
			text_plural(lost));
	if (facts->bad_buffers)
		remark(run, "%" PRIu64 " damaged buffer%s in the log: events are missing",
			facts->bad_buffers, text_plural(facts->bad_buffers));
	recorder_lost(
		run->recorder, events + (events ? 0 : buffers + flagged) + facts->bad_buffers);
}

static void remark_all(struct etw_recording *run)
{
	const struct etw_process *process = run->process;

	if (process->heap_events)
		remark(run, "heap events are read as the published format describes them, which "
			    "was tested only on generated logs");
	remark_losses(run);
	if (!process->start_ticks && !process->has_heap_create)
		remark(run, "the process was already running when the log began: memory that it "
			    "allocated earlier is unknown");
	if (run->unknown_frees)
		remark(run,
			"%" PRIu64 " free%s of blocks that were allocated before the log began, or "
			"whose allocation was lost",
			run->unknown_frees, text_plural(run->unknown_frees));
	if (run->replaced)
		remark(run,
			"%" PRIu64
			" block%s allocated at the address of a block whose free was lost",
			run->replaced, text_plural(run->replaced));
	if (run->moved)
		remark(run,
			"%" PRIu64 " block%s moved by a realloc without events for the allocation "
			"and the free; the realloc counts as both",
			run->moved, text_plural(run->moved));
	if (run->stackless)
		remark(run, "%" PRIu64 " of %" PRIu64 " allocation%s ha%s no stack%s",
			run->stackless, run->allocated, text_plural(run->allocated),
			run->stackless == 1 ? "s" : "ve",
			run->stackless == run->allocated ?
				": record with -stackwalk HeapAlloc+HeapRealloc" :
				"");
	if (run->log->images.dropped_count)
		remark(run,
			"%" PRIu64 " module event%s left out, because the log has too many: some "
			"frames may have no module",
			run->log->images.dropped_count,
			text_plural(run->log->images.dropped_count));
	if (run->log->stacks.dropped_count)
		remark(run, "%" PRIu64 " stack%s left out, because the log has too many",
			run->log->stacks.dropped_count,
			text_plural(run->log->stacks.dropped_count));
	if (run->after_end)
		remark(run, "%" PRIu64 " heap event%s left out: a later process had the same pid",
			run->after_end, text_plural(run->after_end));
	if (run->strange)
		remark(run, "%" PRIu64 " invalid event%s left out", run->strange,
			text_plural(run->strange));
}

/* ---------------------------------------------------------------- the whole recording */

/* Returns the path of the main module, which is more useful than the name of the process. */
static const char *image_of(struct etw_log *log, const struct etw_process *process)
{
	for (size_t i = 0; process->image && i < log->images.image_count; i++) {
		const struct etw_image *image = &log->images.images[i];
		size_t len = strlen(image->path), name = strlen(process->image);

		if (image->pid == process->pid && len > name &&
			image->path[len - name - 1] == '\\' &&
			!text_compare(image->path + len - name, process->image))
			return etw_images_path(&log->images, image->path);
	}
	return process->image;
}

static struct record_facts facts_of(struct etw_log *log, const struct etw_process *process,
	const struct etw_record_options *options, char *os, size_t os_bytes)
{
	const struct etw_head *head = &log->files->head;

	snprintf(os, os_bytes, "Windows %u.%u.%u", head->os_major, head->os_minor, head->os_build);
	return (struct record_facts){.pid = process->pid,
		.parent_pid = process->parent_pid,
		.bits = process->bits,
		.image = image_of(log, process),
		.os = os,
		.source = "etw",
		.start_ms = process->start_ticks ?
				    etw_time_ms(etw_time(head, process->start_ticks)) :
				    0,
		.time_ms = etw_time_ms(head->start_time),
		.has_addresses = options->keeps_addresses,
		.is_temporary = options->is_temporary};
}

int etw_record(struct etw_log *log, const struct etw_process *process,
	const struct etw_record_options *options, etw_progress_fn progress, void *ctx,
	struct err *err)
{
	struct etw_recording run = {.log = log, .process = process};
	const struct etw_facts *facts = &log->facts;
	char os[64];
	const struct record_facts about = facts_of(log, process, options, os, sizeof(os));
	bool has_stacks = facts->stack_count || facts->key_count;
	int rc = recorder_open(&run.recorder, options->path, &about, err), end_rc;

	if (rc)
		return rc;
	run.blocks = live_blocks_new(run.recorder);
	run.ranges = live_ranges_new(run.recorder);
	run.kinds = xcalloc(KIND_CACHE, sizeof(*run.kinds));
	run.looked_at = xcalloc(LOOKED_AT, sizeof(*run.looked_at));
	etw_binder_init(&run.binder, &log->stacks, WAITING,
		has_stacks ? WAIT_SECONDS * log->files->head.frequency : 0, replay_event, &run);
	copy_modules(&run);
	rc = read_events(&run, progress, ctx, err);
	remark_all(&run);
	end_rc = recorder_end(run.recorder, rc ? NULL : err);
	etw_binder_release(&run.binder);
	live_blocks_free(run.blocks);
	live_ranges_free(run.ranges);
	free(run.kinds);
	free(run.looked_at);
	free(run.known);
	free(run.modules);
	free(run.numbers);
	free(run.changes);
	free(run.loaded);
	return rc ? rc : end_rc;
}
