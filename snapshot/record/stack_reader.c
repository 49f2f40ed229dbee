#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/os.h"
#include "snapshot/capture/capture_parts.h"
#include "snapshot/record/replay.h"
#include "snapshot/stacks/tracer_read.h"

#define LISTING_MS                                                                                 \
	200 /* frames of code that is in no module do not have modules listed all the time */

struct stack_reader {
	struct recorder *recorder;
	struct target *target;
	uint64_t area_addr, stacks, stacks_limit;
	struct u64map known; /* the tracer's id -> the recording's number */
	struct snapshot listing; /* its modules, sorted by base */
	uint32_t *numbers; /* of these, in the recording */
	uint64_t unload_count; /* when they were listed */
	int64_t listed_ms; /* 0: never */
};

int stack_reader_new(struct stack_reader **reader, struct recorder *recorder, struct target *target,
	uint64_t area_addr, struct err *err)
{
	struct tracer_area *area = xmalloc(sizeof(*area));
	int rc = tracer_area_read(target, area_addr, area, err);

	if (!rc) {
		*reader = xcalloc(1, sizeof(**reader));
		**reader = (struct stack_reader){.recorder = recorder,
			.target = target,
			.area_addr = area_addr,
			.stacks = area->stacks,
			.stacks_limit = area->stacks_limit};
		u64map_init(&(*reader)->known);
		snapshot_init(&(*reader)->listing);
	}
	free(area);
	return rc;
}

void stack_reader_free(struct stack_reader *reader)
{
	if (!reader)
		return;
	u64map_release(&reader->known);
	snapshot_release(&reader->listing);
	free(reader->numbers);
	free(reader);
}

/* ---------------------------------------------------------------- modules */

/* What was found out of a module at the last listing holds for it still. */
static void keep_identities(struct snapshot *listing, const struct snapshot *last)
{
	for (size_t i = 0, count = listing->module_count; i < count; i++) {
		const struct module *module = &listing->modules[i];
		const struct module *old =
			module_at(last->modules, last->module_count, module->base);

		if (!old || old->base != module->base || old->size_bytes != module->size_bytes ||
			!old->path || !module->path || strcmp(old->path, module->path) != 0)
			continue;
		snapshot_copy_module(listing, old);
		listing->modules[i] = listing->modules[--listing->module_count];
	}
}

static void list_modules(struct stack_reader *reader)
{
	struct snapshot listing;
	struct err err;

	reader->listed_ms = os_clock_ms();
	snapshot_init(&listing);
	if (reader->target->ops->modules(reader->target, &listing, &err)) {
		snapshot_release(&listing);
		return;
	}
	modules_sort(listing.modules, listing.module_count);
	keep_identities(&listing, &reader->listing);
	describe_process(reader->target, &listing);
	snapshot_release(&reader->listing);
	reader->listing = listing;
	reader->numbers =
		xrealloc(reader->numbers, (listing.module_count + 1) * sizeof(*reader->numbers));
	for (size_t i = 0; i < listing.module_count; i++)
		reader->numbers[i] = recorder_module(reader->recorder, &listing.modules[i]);
}

static const struct module *find(const struct stack_reader *reader, uint64_t frame)
{
	return module_of_return(reader->listing.modules, reader->listing.module_count, frame);
}

/* Lists the modules when these frames are not all in those that are known, or some went. */
static void look_at_modules(struct stack_reader *reader, const uint64_t *frames, uint32_t count)
{
	uint64_t unload_count = reader->unload_count;
	bool is_new = !reader->listed_ms;

	target_read(reader->target, reader->area_addr + offsetof(struct tracer_area, unload_count),
		&unload_count, sizeof(unload_count));
	is_new = is_new || unload_count != reader->unload_count;
	for (uint32_t i = 0; i < count && !is_new; i++)
		is_new =
			!find(reader, frames[i]) && os_clock_ms() - reader->listed_ms >= LISTING_MS;
	if (is_new)
		list_modules(reader);
	reader->unload_count = unload_count;
}

/* ---------------------------------------------------------------- stacks */

/* The frames of a record; how many, 0: it is none. */
static uint32_t read_frames(
	const struct stack_reader *reader, uint32_t id, uint64_t frames[TRACER_DEPTH_MAX])
{
	uint64_t at = (uint64_t)id * 8;
	struct tracer_stack head;

	if (at > reader->stacks_limit || reader->stacks_limit - at < sizeof(head) ||
		target_read(reader->target, reader->stacks + at, &head, sizeof(head)) ||
		!head.depth || head.depth > TRACER_DEPTH_MAX ||
		target_read(reader->target, reader->stacks + at + sizeof(head), frames,
			head.depth * sizeof(*frames)))
		return 0;
	return head.depth;
}

static uint32_t read_stack(struct stack_reader *reader, uint32_t id)
{
	struct record_frame found[TRACER_DEPTH_MAX];
	uint64_t frames[TRACER_DEPTH_MAX];
	uint32_t count = read_frames(reader, id, frames);

	if (!count)
		return RECORD_NO_STACK;
	look_at_modules(reader, frames, count);
	for (uint32_t i = 0; i < count; i++) {
		const struct module *module = find(reader, frames[i]);

		found[i] = module ? (struct record_frame){frames[i] - module->base,
					    reader->numbers[module - reader->listing.modules]} :
				    (struct record_frame){frames[i], RECORD_NO_MODULE};
	}
	return recorder_stack(reader->recorder, found, count);
}

uint32_t stack_reader_number(void *ctx, uint32_t id)
{
	struct stack_reader *reader = ctx;
	uint32_t number;

	if (!u64map_find(&reader->known, id, &number)) {
		number = read_stack(reader, id);
		u64map_put(&reader->known, id, &number);
	}
	return number;
}
