/*
 * Reader of the tracer's stacks while the target runs. It has a list of the loaded modules and a
 * copy of the tracer's list of unloads. It reports changes of both lists to the recorder. Each
 * stack is read once. Each frame is assigned to the module that was loaded at its address when the
 * stack was recorded.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/os.h"
#include "snapshot/capture/capture_parts.h"
#include "snapshot/record/replay.h"
#include "snapshot/stacks/tracer_read.h"

/* if the tracer does not count loads, code in no known module causes a listing of the modules; this
 * is the minimum time between two such listings */
#define LISTING_MS 200
#define TRIES 5
#define NO_PAGE UINT64_MAX
#define PAGE_BYTES ((uint64_t)65536) /* the tracer commits its stack area in steps of this size */

/* Last reported state of a module. The index is the module's number in the recording. */
struct module_state {
	uint32_t listing; /* number of the last listing that contained the module */
	bool is_known, is_loaded;
	/* the last listing did not contain the module, and the tracer has not reported the unload
	 * yet */
	bool is_missed;
};

struct stack_reader {
	struct recorder *recorder;
	struct target *target;
	/* addresses in the target; stacks is 0 until it is known */
	uint64_t area_addr, stacks, stacks_limit;
	struct u64map known; /* maps the tracer's id of a stack to the recording's number */
	struct snapshot listing; /* loaded modules, in ascending order of base */
	uint32_t *numbers; /* numbers of the listed modules in the recording */
	struct module_state *states;
	size_t state_count, state_cap;
	uint32_t listing_count;
	bool is_listed; /* a listing was made, so loads and unloads are now reported */
	uint32_t load_count; /* the tracer's count of loads when the last listing was made */
	/* a module was unloaded at about the time of the last listing and was removed from it, but
	 * it may have been loaded again before the listing */
	bool may_lack;
	struct tracer_copy *gone; /* unloaded modules; the copy contains no blocks and no stacks */
	/* number of unloads when `gone` was read; the listing was made after that */
	uint64_t unload_count;
	size_t gone_count; /* number of unloads that were reported */
	uint64_t look_ms; /* time of the last check, in the recording */
	int64_t listed_ms;
	/* number of the tracer's bare images that the remarks of the recording already cover */
	size_t bare_count;
	uint64_t page_at; /* offset of the last page read, in the stack area; NO_PAGE: none */
	unsigned char page[PAGE_BYTES];
};

/* ---------------------------------------------------------------- modules */

/* Return the tracer's counts of unloads and of loads. If a count cannot be read, return its last
 * known value. */
static uint64_t unloads_now(const struct stack_reader *reader)
{
	uint64_t count = reader->unload_count;

	target_read(reader->target, reader->area_addr + offsetof(struct tracer_area, unload_count),
		&count, sizeof(count));
	return count;
}

static uint32_t loads_now(const struct stack_reader *reader)
{
	uint32_t count = reader->load_count;

	target_read(reader->target, reader->area_addr + offsetof(struct tracer_area, load_count),
		&count, sizeof(count));
	return count;
}

/* Copies the identities of modules from the last listing. The identity of a module is still valid
 * unless the module has been unloaded since. */
static void copy_identities(const struct stack_reader *reader, struct snapshot *listing)
{
	const struct snapshot *last = &reader->listing;

	for (size_t i = 0, count = listing->module_count; i < count; i++) {
		const struct module *module = &listing->modules[i];
		const struct module *old =
			module_at(last->modules, last->module_count, module->base);
		uint32_t number = old ? reader->numbers[old - last->modules] : RECORD_NO_MODULE;

		if (number == RECORD_NO_MODULE || !reader->states[number].is_loaded ||
			old->base != module->base || old->size_bytes != module->size_bytes ||
			!old->path || !module->path || strcmp(old->path, module->path) != 0)
			continue;
		snapshot_copy_module(listing, old);
		listing->modules[i] = listing->modules[--listing->module_count];
	}
}

/* Reports that a module is loaded, or is no longer loaded. Modules in the first listing were loaded
 * from the beginning. */
static void record_module(struct stack_reader *reader, uint32_t number, bool is_loaded)
{
	struct module_state *state;

	if (number == RECORD_NO_MODULE)
		return;
	while (number >= reader->state_count) {
		array_grow((void **)&reader->states, &reader->state_cap, reader->state_count,
			sizeof(*reader->states));
		reader->states[reader->state_count++] = (struct module_state){0};
	}
	state = &reader->states[number];
	if ((state->is_loaded != is_loaded || !state->is_known) && reader->is_listed) {
		recorder_time(reader->recorder, reader->look_ms);
		recorder_module_is(reader->recorder, number, is_loaded);
	}
	state->listing = reader->listing_count;
	state->is_loaded = is_loaded;
	state->is_known = true;
}

/* Lists the loaded modules and reports the changes. Modules that are missing in the new listing
 * were unloaded without a notification. */
static void list_modules(struct stack_reader *reader)
{
	struct snapshot listing;
	uint32_t *numbers;
	struct err err;
	uint32_t load_count = loads_now(reader);

	reader->listed_ms = os_clock_ms();
	snapshot_init(&listing);
	if (reader->target->ops->modules(reader->target, &listing, &err)) {
		snapshot_release(&listing);
		return;
	}
	reader->load_count = load_count;
	modules_sort(listing.modules, listing.module_count);
	copy_identities(reader, &listing);
	describe_process(reader->target, &listing);
	numbers = xcalloc(listing.module_count + 1, sizeof(*numbers));
	reader->listing_count++;
	for (size_t i = 0; i < listing.module_count; i++) {
		numbers[i] = recorder_module(reader->recorder, &listing.modules[i]);
		record_module(reader, numbers[i], true);
	}
	for (size_t i = 0; i < reader->listing.module_count; i++) {
		uint32_t number = reader->numbers[i];
		struct module_state *state =
			number == RECORD_NO_MODULE ? NULL : &reader->states[number];

		if (state && state->is_loaded && state->listing != reader->listing_count) {
			state->is_missed = true;
			record_module(reader, number, false);
		}
	}
	snapshot_release(&reader->listing);
	free(reader->numbers);
	reader->listing = listing;
	reader->numbers = numbers;
	reader->is_listed = true;
}

/* Removes an unloaded module from the listing, unless another module has taken its place. Returns
 * the module's number, or RECORD_NO_MODULE. */
static uint32_t remove_module(struct stack_reader *reader, const struct module *went)
{
	struct snapshot *listing = &reader->listing;
	const struct module *module =
		module_at(listing->modules, listing->module_count, went->base);
	size_t at = module ? (size_t)(module - listing->modules) : 0;
	uint32_t number;

	if (!module || module->base != went->base || module->size_bytes != went->size_bytes ||
		!module->path || !went->path ||
		strcmp(module_path_base(module->path), module_path_base(went->path)) != 0)
		return RECORD_NO_MODULE;
	number = reader->numbers[at];
	listing->module_count--;
	for (; at < listing->module_count; at++) {
		listing->modules[at] = listing->modules[at + 1];
		reader->numbers[at] = reader->numbers[at + 1];
	}
	return number;
}

/* Reports an unload. If the module's load was not seen, reports both its load and its unload
 * now. */
static void leave(struct stack_reader *reader, const struct module *went)
{
	uint32_t number = remove_module(reader, went);

	if (number == RECORD_NO_MODULE)
		number = recorder_module(reader->recorder, went);
	if (number < reader->state_count && reader->states[number].is_missed) {
		reader->states[number].is_missed = false;
		return;
	}
	record_module(reader, number, true);
	record_module(reader, number, false);
}

/* Reads the unloaded modules. Returns false if they cannot be read, or if some are missing. */
static bool read_unloads(struct stack_reader *reader)
{
	struct tracer_copy *copy = xmalloc(sizeof(*copy));
	bool is_all = true;
	struct module went;
	struct err err;
	int rc = -1;

	tracer_copy_init(copy);
	for (int i = 0; rc && i < TRIES; i++) /* the target is running meanwhile */
		rc = tracer_copy_read_unloads(copy, reader->target, reader->area_addr, &err);
	if (!rc) {
		struct tracer_copy *last = reader->gone;

		reader->gone = copy;
		copy = last;
		reader->unload_count = reader->gone->area.unload_count;
	}
	tracer_copy_release(copy);
	free(copy);
	for (; reader->gone_count < reader->gone->modules.extent_count; reader->gone_count++) {
		if (!tracer_modules_unload(&reader->gone->modules, reader->gone_count, &went))
			is_all = false;
		else if (reader->is_listed) /* otherwise, the unload was before the recording */
			leave(reader, &went);
	}
	return !rc && is_all && reader->gone_count == reader->unload_count;
}

/* Removes unloaded modules from the listing. Returns false if some of the unloaded modules are not
 * known. */
static bool notice_unloads(struct stack_reader *reader)
{
	uint64_t count = unloads_now(reader);

	if (count == reader->unload_count)
		return true;
	reader->unload_count = count;
	return read_unloads(reader);
}

/* Returns true if a module may have been loaded since the last listing. */
static bool has_loaded(const struct stack_reader *reader)
{
	return reader->may_lack || loads_now(reader) != reader->load_count;
}

/* Lists the loaded modules. If modules were unloaded in the meantime, removes them from the list.
 * If the tracer does not know all unloads, makes a new list, until no module is unloaded during a
 * listing. */
static void find_modules(struct stack_reader *reader)
{
	for (int i = 0; i < TRIES; i++) {
		uint64_t unload_count = reader->unload_count;

		list_modules(reader);
		if (!notice_unloads(reader))
			continue;
		reader->may_lack = reader->unload_count != unload_count;
		return;
	}
}

static const struct module *find(const struct stack_reader *reader, uint64_t frame)
{
	return module_of_return(reader->listing.modules, reader->listing.module_count, frame);
}

/* Returns true if the module of a frame is known. The listing may contain a module that was just
 * being unloaded. If an unloaded module also covers the frame, the listed module counts only if no
 * module was loaded since the listing, because another module may have taken its place. */
static bool is_found(const struct stack_reader *reader, uint64_t frame, uint32_t born)
{
	const struct tracer_modules *gone = &reader->gone->modules;

	if (tracer_modules_find(gone, born, frame) != SIZE_MAX)
		return true;
	return find(reader, frame) &&
	       (tracer_modules_find(gone, 0, frame) == SIZE_MAX || !has_loaded(reader));
}

static bool are_found(
	const struct stack_reader *reader, const uint64_t *frames, uint32_t count, uint32_t born)
{
	for (uint32_t i = 0; i < count; i++) {
		if (!is_found(reader, frames[i], born))
			return false;
	}
	return true;
}

/*
 * Updates the modules before the frames of a stack are assigned. If the stack is newer than the
 * unloads read so far, or if a frame is in no known module, reads the unloads up to now. The
 * listing then contains only modules that were still loaded after the last of these unloads. A
 * frame that is still in no known module may be in a new module, which was loaded before the stack
 * was recorded. So either a new listing contains that module, or the module has been unloaded
 * since.
 */
static void look_at_modules(
	struct stack_reader *reader, const uint64_t *frames, uint32_t count, uint32_t born)
{
	bool is_known = true;

	if (born > reader->unload_count || !are_found(reader, frames, count, born))
		is_known = notice_unloads(reader);
	if (!is_known || (!are_found(reader, frames, count, born) &&
				 (has_loaded(reader) ||
					 (!reader->load_count &&
						 os_clock_ms() - reader->listed_ms >= LISTING_MS))))
		find_modules(reader);
}

void stack_reader_look(struct stack_reader *reader, uint64_t now_ms)
{
	reader->look_ms = now_ms;
	if (!notice_unloads(reader) || has_loaded(reader))
		find_modules(reader);
}

void stack_reader_remark(struct stack_reader *reader)
{
	uint32_t bases[TRACER_BARE_IMAGES];
	char text[BARE_TEXT_BYTES];
	size_t first = reader->bare_count;

	if (target_read(reader->target,
		    reader->area_addr + offsetof(struct tracer_area, bare_images), bases,
		    sizeof(bases)))
		return;
	while (reader->bare_count < TRACER_BARE_IMAGES && bases[reader->bare_count])
		reader->bare_count++;
	if (describe_bare_images(&reader->listing, bases + first, reader->bare_count - first, text))
		recorder_remark(reader->recorder, text);
}

/* ---------------------------------------------------------------- stacks */

void stack_reader_begin(struct stack_reader *reader)
{
	reader->page_at = NO_PAGE;
}

/* Reads from the stack area. Stores the page, because the next stack is probably in the same
 * page. */
static bool read_stacks(struct stack_reader *reader, uint64_t at, void *to, size_t bytes)
{
	uint64_t offset = at % PAGE_BYTES, page_at = at - offset;

	if (page_at != reader->page_at && offset + bytes <= PAGE_BYTES)
		reader->page_at = target_read(reader->target, reader->stacks + page_at,
					  reader->page, PAGE_BYTES) ?
					  NO_PAGE :
					  page_at;
	if (page_at != reader->page_at || offset + bytes > PAGE_BYTES)
		return !target_read(reader->target, reader->stacks + at, to, bytes);
	memcpy(to, reader->page + offset, bytes);
	return true;
}

/* Reads the frames of a record and its `born`. Returns the number of frames, or 0 if the record
 * does not exist. */
static uint32_t read_frames(
	struct stack_reader *reader, uint32_t id, uint64_t frames[TRACER_DEPTH_MAX], uint32_t *born)
{
	uint64_t at = (uint64_t)id * 8;
	struct tracer_stack head;

	if (at > reader->stacks_limit || reader->stacks_limit - at < sizeof(head) ||
		!read_stacks(reader, at, &head, sizeof(head)) || !head.depth ||
		head.depth > TRACER_DEPTH_MAX ||
		!read_stacks(reader, at + sizeof(head), frames, head.depth * sizeof(*frames)))
		return 0;
	*born = head.born;
	return head.depth;
}

/* Assigns a frame to a module that was unloaded since the stack was recorded. If there is no such
 * module, assigns the frame to a loaded module. */
static struct record_frame place_frame(struct stack_reader *reader, uint64_t frame, uint32_t born)
{
	const struct tracer_modules *gone = &reader->gone->modules;
	size_t unload = tracer_modules_find(gone, born, frame);
	struct record_frame found = {frame, RECORD_NO_MODULE};
	const struct module *module = find(reader, frame);
	struct module went;

	if (unload != SIZE_MAX && tracer_modules_unload(gone, unload, &went)) {
		found.module = recorder_module(reader->recorder, &went);
		if (found.module >= reader->state_count || !reader->states[found.module].is_known)
			/* the module was unloaded before the recording */
			record_module(reader, found.module, false);
		found.offset = frame - went.base;
	} else if (unload != SIZE_MAX ||
		   (frame && tracer_unload_is_lost(&reader->gone->area, born, frame - 1))) {
		found.offset = TRACER_LOST_BASE + frame;
	} else if (module) {
		found.module = reader->numbers[module - reader->listing.modules];
		found.offset = frame - module->base;
	}
	return found;
}

/* Finds the stack area. When the first stack is read, the tracer is already on. */
static bool find_stacks(struct stack_reader *reader)
{
	struct tracer_area *area = xmalloc(sizeof(*area));
	struct err err;

	if (!tracer_area_read(reader->target, reader->area_addr, area, &err)) {
		reader->stacks = area->stacks;
		reader->stacks_limit = area->stacks_limit;
	}
	free(area);
	return reader->stacks;
}

static uint32_t read_stack(struct stack_reader *reader, uint32_t id)
{
	struct record_frame found[TRACER_DEPTH_MAX];
	uint64_t frames[TRACER_DEPTH_MAX];
	uint32_t born = 0, count = 0;
	int tries = 1;

	/* the stacks of a process can no longer be read after the process has exited */
	do {
		if (reader->stacks || find_stacks(reader))
			count = read_frames(reader, id, frames, &born);
	} while (!count && tries++ < TRIES && reader->target->ops->is_alive(reader->target));
	if (!count)
		return RECORD_NO_STACK;
	look_at_modules(reader, frames, count, born);
	for (uint32_t i = 0; i < count; i++)
		found[i] = place_frame(reader, frames[i], born);
	return recorder_stack(reader->recorder, found, count);
}

uint32_t stack_reader_number(void *ctx, uint32_t id)
{
	struct stack_reader *reader = ctx;
	uint32_t number;

	if (!u64map_find(&reader->known, id, &number)) {
		number = read_stack(reader, id);
		u64map_add(&reader->known, id, &number);
	}
	return number;
}

struct stack_reader *stack_reader_new(
	struct recorder *recorder, struct target *target, uint64_t area_addr)
{
	struct stack_reader *reader = xcalloc(1, sizeof(*reader));

	*reader = (struct stack_reader){.recorder = recorder,
		.target = target,
		.area_addr = area_addr,
		.page_at = NO_PAGE,
		.gone = xmalloc(sizeof(*reader->gone))};
	tracer_copy_init(reader->gone);
	u64map_init(&reader->known);
	snapshot_init(&reader->listing);
	notice_unloads(reader);
	find_modules(reader);
	/* the first count may be that of an earlier session */
	reader->unload_count = reader->gone->area.unload_count;
	return reader;
}

void stack_reader_free(struct stack_reader *reader)
{
	if (!reader)
		return;
	u64map_release(&reader->known);
	snapshot_release(&reader->listing);
	tracer_copy_release(reader->gone);
	free(reader->gone);
	free(reader->states);
	free(reader->numbers);
	free(reader);
}
