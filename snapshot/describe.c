#include "snapshot/describe.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/os.h"
#include "snapshot/tracer_describe.h"

#define UNWALKED_NAMED 8

#define FULL_PERCENT 95 /* of the database of stacks: more is said */

static const char *keep(struct snapshot *snapshot, const char *text)
{
	return *text ? arena_text(&snapshot->arena, text, strlen(text)) : NULL;
}

/* What identifies a module's build, if nobody said so yet; one that is gone by now has none. */
static void identify(struct target *target, struct snapshot *snapshot, struct module *module,
	struct pe_image *image)
{
	struct target_image at = {target, module->base};
	struct pe_source source = target_image_source(&at);

	if (module->has_identity || pe_read_headers(&source, image))
		return;
	module->has_identity = true;
	module->timestamp = image->timestamp;
	module->checksum = image->checksum;
	module->pdb = keep(snapshot, image->pdb);
	module->pdb_guid = keep(snapshot, image->pdb_guid);
	module->pdb_age = image->pdb_age;
}

int describe(struct target *target, struct snapshot *snapshot)
{
	struct pe_image *image = malloc(sizeof(*image));

	if (!image)
		return -ERR_NOMEM;
	for (size_t i = 0; i < snapshot->module_count; i++)
		identify(target, snapshot, &snapshot->modules[i], image);
	free(image);
	snapshot->pid = target->pid;
	snapshot->parent_pid = target->parent_pid;
	snapshot->bits = target->bits;
	snapshot->time_ms = target->time_ms ? target->time_ms : os_time_ms();
	snapshot->start_ms = target->start_ms;
	snapshot->image = keep(snapshot, target->image);
	snapshot->os = keep(snapshot, target->os);
	return 0;
}

static void record_ust(struct snapshot *snapshot, const struct ust *ust)
{
	const struct ust_database *database = ust_database(ust);

	snapshot->records = (struct stack_records){
		.is_known = true,
		.record_count = ust_record_count(ust),
		.broken_count = ust_broken_count(ust),
		.cut_count = ust_cut_count(ust),
		.database = database->addr,
		.entry_count = database->entry_count,
		.lookup_count = database->lookup_count,
		.failure_count = database->failure_count,
		.indexed_count = database->indexed_count,
		.chained_count = database->chained_count,
		.used_bytes = database->used_bytes,
		.reserved_bytes = database->reserved_bytes,
	};
}

static void warn_of_records(struct snapshot *snapshot)
{
	const struct stack_records *records = &snapshot->records;
	const char *larger = "give it more with 'hsnap ust on IMAGE --db-mb N'";

	if (!records->record_count && snapshot_total(snapshot).block_count)
		snapshot_warn(snapshot,
			"the process was started with +ust, but no block leads to a stack");
	if (records->broken_count)
		snapshot_warn(snapshot,
			"%" PRIu64 " of %" PRIu64 " records of stacks make no sense; their blocks "
			"are counted without a stack",
			records->broken_count, records->record_count);
	if (records->cut_count)
		snapshot_warn(snapshot,
			"%" PRIu64 " of %" PRIu64 " stacks are cut: their records say that they "
			"have more frames, but what stands there is none",
			records->cut_count, records->record_count);
	if (records->failure_count)
		snapshot_warn(snapshot,
			"the system's database of stacks had no room for those of %" PRIu64
			" allocations; %s",
			records->failure_count, larger);
	else if (records->used_bytes / FULL_PERCENT > records->reserved_bytes / 100)
		snapshot_warn(snapshot,
			"the system's database of stacks is all but full, at %" PRIu64
			" of %" PRIu64 " bytes; %s",
			records->used_bytes, records->reserved_bytes, larger);
}

static const char *source_of(const struct captured *captured)
{
	if (captured->os)
		return "os";
	if (captured->has_tracer)
		return "tracer";
	return captured_has_ust(captured) ? "ust" : "none";
}

/* Why no block has a stack, and what would help. */
static void warn_of_no_stacks(
	const struct target *target, struct snapshot *snapshot, const struct captured *captured)
{
	char remedy[100] = "";

	if (!target->is_file)
		snprintf(remedy, sizeof(remedy),
			"; 'hsnap attach -p %" PRIu32 "' gives later blocks stacks", target->pid);
	snapshot_warn(snapshot, "no block has a stack: the process %s%s",
		captured->is_detached ? "is detached, or its tracer was never switched on" :
					"was started neither by 'hsnap run' nor with +ust",
		remedy);
}

void describe_stacks(
	const struct target *target, struct snapshot *snapshot, const struct captured *captured)
{
	bool has_ust = captured_has_ust(captured);

	snapshot->stack_source = source_of(captured);
	if (has_ust)
		record_ust(snapshot, captured->ust);
	if (has_ust && (!captured->has_tracer || snapshot->records.record_count))
		warn_of_records(snapshot);
	if (!strcmp(snapshot->stack_source, "none") && snapshot_total(snapshot).block_count)
		warn_of_no_stacks(target, snapshot, captured);
}

/* A damaged list names very many: a few stand for all. */
static void warn_of_unwalked(struct snapshot *snapshot, const struct walk *walk, bool has_tracer)
{
	size_t count = 0;

	for (size_t i = 0; i < walk->heap_count; i++) {
		if (!walk->heaps[i].unwalked || ++count > UNWALKED_NAMED)
			continue;
		snapshot_lacks(snapshot, "heap %" PRIX64 " is of a kind that cannot be walked; %s",
			walk->heaps[i].addr,
			has_tracer ? "only traced blocks are listed, their overhead is not known" :
				     "its blocks are missing");
	}
	if (count > UNWALKED_NAMED)
		snapshot_lacks(snapshot, "%zu more heaps are of kinds that cannot be walked",
			count - UNWALKED_NAMED);
}

static void warn_of_heaps(struct snapshot *snapshot, const struct walk *walk, bool has_tracer)
{
	if (walk->broken_count)
		snapshot_lacks(snapshot,
			"%u places in the heaps made no sense; the first: %s at %" PRIX64,
			walk->broken_count, walk->broken_what, walk->broken_addr);
	if (walk->missing_count)
		snapshot_lacks(snapshot,
			"%u places in the heaps lead to memory that is not there; the first: %s at "
			"%" PRIX64,
			walk->missing_count, walk->missing_what, walk->missing_addr);
	if (walk->doubt_count)
		snapshot_warn(snapshot,
			"%u places in the heaps may be damaged; the first: %s at %" PRIX64,
			walk->doubt_count, walk->doubt_what, walk->doubt_addr);
	if (walk->busy_count)
		snapshot_warn(snapshot,
			"%u heaps had their lock held all the time; they were walked nevertheless",
			walk->busy_count);
	warn_of_unwalked(snapshot, walk, has_tracer);
}

static void warn_of_error(struct snapshot *snapshot, const char *what, const struct err *why)
{
	struct err said = *why;
	char text[300];

	said.place[0] = '\0';
	if (why->code)
		snapshot_lacks(snapshot, "%s: %s", what, err_text(&said, text, sizeof(text)));
}

void describe_gaps(struct snapshot *snapshot, const struct captured *captured)
{
	warn_of_error(snapshot, "its heaps are not listed", &captured->heaps_err);
	warn_of_error(snapshot, "its tracer was not read", &captured->tracer_err);
	warn_of_heaps(snapshot, &captured->walk, captured->has_tracer);
	describe_tracer(snapshot, captured);
	warn_of_tracer(snapshot, captured);
}
