/* Facts and warnings of a snapshot: the modules and their identities, the process, the tracer, the
 * records of stacks, and the gaps of the walk. Each warning names a remedy if one exists. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/base/text.h"
#include "snapshot/capture/capture_parts.h"

/* Returns a module in the list that occupies some of the addresses of `module`, or NULL. */
static const struct module *in_place_of(
	const struct module *modules, size_t count, const struct module *module)
{
	for (size_t i = 0; i < count; i++) {
		if (modules[i].base == module->base ||
			modules[i].base - module->base < module->size_bytes ||
			module->base - modules[i].base < modules[i].size_bytes)
			return &modules[i];
	}
	return NULL;
}

static bool is_same(const struct module *a, const struct module *b)
{
	return a->base == b->base && a->size_bytes == b->size_bytes &&
	       !strcmp(module_path_base(a->path), module_path_base(b->path));
}

int describe_merge_modules(struct snapshot *snapshot, const struct module *later, size_t count)
{
	size_t known = snapshot->module_count;
	int replaced = 0;

	for (size_t i = 0; i < count; i++) {
		const struct module *other = in_place_of(snapshot->modules, known, &later[i]);

		if (other)
			replaced += !is_same(other, &later[i]);
		else
			snapshot_copy_module(snapshot, &later[i]);
	}
	modules_sort(snapshot->modules, snapshot->module_count);
	return replaced;
}

#define REMEDY "give its tables more room with --max-mb"

static void describe_tracer(struct snapshot *snapshot, const struct raw_capture *captured)
{
	const struct tracer_area *area = &captured->tracer.area;

	snapshot->tracer = (struct tracer_facts){
		.version = area->version,
		.dropped_blocks = area->dropped_blocks,
		.dropped_stacks = area->dropped_stacks,
		.dropped_ranges = area->dropped_ranges,
		.dropped_unloads = area->dropped_unloads,
		.mismatch_count = area->unwind_mismatches,
		.is_attached = area->flags & TRACER_FLAG_ATTACHED,
		.limit_bytes = area->limit_bytes,
		.committed_bytes = area->committed_bytes,
		.sample_bytes = area->sample_bytes,
	};
	if (snapshot->tracer.is_attached)
		snapshot->tracer.before = captured->older;
}

static void warn_of_drops(struct snapshot *snapshot, const struct tracer_area *area)
{
	if (area->dropped_blocks)
		snapshot_warn(snapshot,
			"the tracer had no room for %" PRIu64
			" block%s; those still live have no stack; " REMEDY,
			area->dropped_blocks, text_plural(area->dropped_blocks));
	if (area->dropped_stacks)
		snapshot_warn(snapshot,
			"the tracer had no room for the stacks of %" PRIu64 " block%s; " REMEDY,
			area->dropped_stacks, text_plural(area->dropped_stacks));
	/* If the lock is broken, changes were dropped for that reason, not for lack of room. */
	if (area->ranges.broken)
		snapshot_lacks(snapshot,
			"a thread exited while it held the lock of the tracer's table of virtual "
			"memory; ranges are listed as they were then, without %" PRIu64
			" later change%s",
			area->dropped_ranges, text_plural(area->dropped_ranges));
	else if (area->dropped_ranges)
		snapshot_lacks(snapshot,
			"the tracer had no room for %" PRIu64
			" range%s of virtual memory, which the snapshot lacks; " REMEDY,
			area->dropped_ranges, text_plural(area->dropped_ranges));
	if (area->dropped_unloads)
		snapshot_warn(snapshot,
			"the tracer had no room for %" PRIu64
			" unloaded module%s, whose frames have no name; " REMEDY,
			area->dropped_unloads, text_plural(area->dropped_unloads));
}

/* Do not warn about Windows' own modules, which have frame pointers. */
static bool is_of_system(const char *path)
{
	static const char folder[] = ":\\windows\\";
	size_t len = sizeof(folder) - 1;

	return strlen(path) > len && text_same(path + 1, len, folder, len);
}

static const struct module *module_of(const struct snapshot *snapshot, uint64_t base)
{
	for (size_t i = 0; i < snapshot->module_count; i++) {
		const struct module *module = &snapshot->modules[i];

		if (module->base == base || module->unloaded_at == base)
			return module;
	}
	return NULL;
}

#define BARE_NAMED 8
#define BARE_NAME_BYTES 60

bool describe_bare_images(const struct snapshot *snapshot, const uint32_t *bases, size_t base_count,
	char text[BARE_TEXT_BYTES])
{
	char names[BARE_NAMED * (BARE_NAME_BYTES + 2) + 40];
	size_t count = 0, len = 0;

	for (size_t i = 0; i < base_count && bases[i]; i++) {
		const struct module *module = module_of(snapshot, bases[i]);

		if (!module || !module->path || is_of_system(module->path) || ++count > BARE_NAMED)
			continue;
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%.*s", len ? ", " : "",
			BARE_NAME_BYTES, module_path_base(module->path));
	}
	if (count > BARE_NAMED)
		snprintf(names + len, sizeof(names) - len, " and %zu more", count - BARE_NAMED);
	if (count)
		snprintf(text, BARE_TEXT_BYTES,
			"stacks of 32-bit code may lack callers: no unwind information in %s; "
			"build it with frame pointers (/Oy-, -fno-omit-frame-pointer)",
			names);
	return count != 0;
}

static void warn_of_tracer(struct snapshot *snapshot, const struct raw_capture *captured)
{
	const struct tracer_copy *tracer = &captured->tracer;
	const struct tracer_area *area = &tracer->area;
	char bare[BARE_TEXT_BYTES];

	if (area->sample_bytes)
		snapshot_warn(snapshot,
			"figures are estimates: one in %" PRIu64 " bytes was recorded",
			area->sample_bytes);
	warn_of_drops(snapshot, area);
	if (describe_bare_images(snapshot, area->bare_images, TRACER_BARE_IMAGES, bare))
		snapshot_warn(snapshot, "%s", bare);
	if (area->unwind_mismatches)
		snapshot_warn(snapshot,
			"the tracer's fast stack walk was wrong and was corrected %" PRIu64
			" time%s; earlier stacks may have one frame too many or too few",
			area->unwind_mismatches, text_plural(area->unwind_mismatches));
	if (tracer->broken_shards)
		snapshot_warn(snapshot,
			"a thread exited while it held %u of the %d locks of the tracer's table; "
			"the blocks that they protect are counted without a stack",
			tracer->broken_shards, TRACER_SHARDS);
	if (tracer->ranges.broken_count)
		snapshot_lacks(snapshot,
			"%" PRIu64
			" invalid range%s of virtual memory in the tracer's table left out",
			tracer->ranges.broken_count, text_plural(tracer->ranges.broken_count));
	if (tracer->modules.unplaced_count)
		snapshot_warn(snapshot,
			"no address space is free to list %zu unloaded module%s, whose frames have "
			"no name",
			tracer->modules.unplaced_count,
			text_plural(tracer->modules.unplaced_count));
}

#define FULL_PERCENT 95 /* a warning is printed if the stack database is this full */

static const char *copy_text(struct snapshot *snapshot, const char *text)
{
	return *text ? arena_text(&snapshot->arena, text, strlen(text)) : NULL;
}

/* Reads the identity of a module's build, unless it is already known. Unloaded modules have
 * none. */
static void identify(struct target *target, struct snapshot *snapshot, struct module *module,
	struct pe_image *image)
{
	struct target_image at = {.target = target, .base = module->base};
	struct pe_source source = target_image_source(&at);

	if (module->has_identity || pe_read_headers(&source, image))
		return;
	module->has_identity = true;
	module->timestamp = image->timestamp;
	module->checksum = image->checksum;
	module->pdb = copy_text(snapshot, image->pdb);
	module->pdb_guid = copy_text(snapshot, image->pdb_guid);
	module->pdb_age = image->pdb_age;
}

void describe_process(struct target *target, struct snapshot *snapshot)
{
	struct pe_image *image = xmalloc(sizeof(*image));

	for (size_t i = 0; i < snapshot->module_count; i++)
		identify(target, snapshot, &snapshot->modules[i], image);
	free(image);
	snapshot->pid = target->pid;
	snapshot->parent_pid = target->parent_pid;
	snapshot->bits = target->bits;
	snapshot->time_ms = target->time_ms ? target->time_ms : os_time_ms();
	snapshot->clock_ms = target->time_ms ? 0 : os_clock_ms();
	snapshot->start_ms = target->start_ms;
	snapshot->image = copy_text(snapshot, target->image);
	snapshot->os = copy_text(snapshot, target->os);
	snapshot->host = copy_text(snapshot, target->host);
}

static void record_ust(struct snapshot *snapshot, const struct ust_facts *facts)
{
	const struct ust_database *database = &facts->database;

	snapshot->records = (struct stack_records){
		.is_known = true,
		.record_count = facts->record_count,
		.broken_count = facts->broken_count,
		.cut_count = facts->cut_count,
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
	const char *larger = "give it more room with 'hsnap ust on IMAGE --db-mb N'";

	if (!records->record_count && snapshot_total(snapshot).block_count)
		snapshot_warn(snapshot,
			"the process was started with +ust, but no stack was found for any block");
	if (records->broken_count)
		snapshot_warn(snapshot,
			"invalid stack records: %" PRIu64 " of %" PRIu64
			"; their blocks are counted without a stack",
			records->broken_count, records->record_count);
	if (records->cut_count)
		snapshot_warn(snapshot,
			"stacks cut short: %" PRIu64 " of %" PRIu64
			"; their records claim more frames than are valid",
			records->cut_count, records->record_count);
	if (records->failure_count)
		snapshot_warn(snapshot,
			"the system's stack database had no room for the stacks of %" PRIu64
			" allocation%s; %s",
			records->failure_count, text_plural(records->failure_count), larger);
	else if (records->used_bytes / FULL_PERCENT > records->reserved_bytes / 100)
		snapshot_warn(snapshot,
			"the system's stack database is nearly full: %" PRIu64 " of %" PRIu64
			" bytes are in use; %s",
			records->used_bytes, records->reserved_bytes, larger);
}

static void warn_of_no_stacks(
	const struct target *target, struct snapshot *snapshot, const struct raw_capture *captured)
{
	char remedy[100] = "";

	if (!target->is_file)
		snprintf(remedy, sizeof(remedy),
			"; 'hsnap attach -p %" PRIu32 "' records the stacks of later blocks",
			target->pid);
	snapshot_warn(snapshot, "no block has a stack: the process %s%s",
		captured->source.is_loaded ? "is detached, or its tracer was never switched on" :
					     "was started neither by 'hsnap run' nor with +ust",
		remedy);
}

void describe_stacks(
	const struct target *target, struct snapshot *snapshot, const struct raw_capture *captured)
{
	struct capture_source source = captured->source;

	source.has_ust |= captured->wants_ust && ust_facts(captured->ust)->record_count;
	snapshot->stack_source = capture_source_name(&source);
	if (source.has_ust)
		record_ust(snapshot, ust_facts(captured->ust));
	if (source.has_ust && (!source.has_tracer || snapshot->records.record_count))
		warn_of_records(snapshot);
	if (!strcmp(snapshot->stack_source, "none") && !captured->tracer_err.code &&
		snapshot_total(snapshot).block_count)
		warn_of_no_stacks(target, snapshot, captured);
}

/* Adds a warning. Also marks the snapshot as incomplete, unless the tracer has all blocks. */
static void warn_or_lack(struct snapshot *snapshot, bool is_complete, const char *text)
{
	if (is_complete)
		snapshot_warn(snapshot, "%s", text);
	else
		snapshot_lacks(snapshot, "%s", text);
}

/* Describes which blocks of a heap that could not be walked are listed, and gives the remedy. */
static const char *listed_blocks(const struct raw_capture *captured, bool is_complete)
{
	if (is_complete)
		return "their blocks are listed as the tracer recorded them since the program "
		       "began; their overhead is unknown";
	if (captured->source.has_tracer)
		return "only blocks that the tracer recorded are listed; blocks older than the "
		       "tracer are missing";
	return "their blocks are missing; 'hsnap run' and 'hsnap attach' list blocks without "
	       "reading heaps";
}

static void warn_of_unwalked(struct snapshot *snapshot, const struct raw_capture *captured)
{
	const struct walk *walk = &captured->walk;
	uint64_t first = 0;
	size_t count = 0;
	bool is_complete = true;
	char layout[100] = "", why[400] = "", text[600];

	for (size_t i = 0; i < walk->heap_count; i++) {
		const struct heap *heap = &walk->heaps[i];

		if (!heap->unwalked)
			continue;
		first = count++ ? first : heap->addr;
		is_complete = is_complete && heap->is_complete;
	}
	if (!count)
		return;
	if (captured->wrong_layout)
		snprintf(layout, sizeof(layout),
			" (layout %s was tried, but does not match the tracer's blocks)",
			captured->wrong_layout);
	/* If the layout fits some heaps, it is known; the heaps that it does not fit are damaged or
	 * unreadable. */
	if (walk->unwalked_why)
		snprintf(why, sizeof(why), "%s: ", walk->unwalked_why);
	else if (captured->wrong_layout || count == walk->heap_count)
		snprintf(why, sizeof(why),
			"hsnap %s does not know the heaps of %s%s: ", HSNAP_VERSION,
			snapshot->os ? snapshot->os : "this system", layout);
	snprintf(text, sizeof(text), "%s%zu heap%s not walked, the first at %" PRIX64 "; %s", why,
		count, count == 1 ? " was" : "s were", first, listed_blocks(captured, is_complete));
	warn_or_lack(snapshot, is_complete, text);
}

/* Returns true if the tracer has all blocks of every heap whose walk found damage or missing
 * memory. */
static bool is_made_up_for(const struct walk *walk)
{
	bool has_partial = false;

	for (size_t i = 0; i < walk->heap_count; i++) {
		if (walk->heaps[i].is_partial && !walk->heaps[i].is_complete)
			return false;
		has_partial |= walk->heaps[i].is_partial;
	}
	return has_partial;
}

/* Warns about a fault in the list of heaps, after which heaps may be missing, and about heaps that
 * are not in the list. */
static void warn_of_list(struct snapshot *snapshot, const struct raw_capture *captured)
{
	const struct walk *walk = &captured->walk;
	const bool is_complete = tables_are_complete(captured);
	char text[300];

	if (walk->list_fault) {
		snprintf(text, sizeof(text),
			"the list of heaps could not be followed to its end: %s at %" PRIX64 "; %s",
			walk->list_fault, walk->list_fault_addr,
			is_complete ? "all heaps that the tracer recorded are listed" :
				      "heaps may be missing");
		warn_or_lack(snapshot, is_complete, text);
	}
	if (walk->unlisted_count)
		snapshot_warn(snapshot,
			"%zu unlisted heap%s %s found by signature, the first at %" PRIX64,
			walk->unlisted_count, text_plural(walk->unlisted_count),
			walk->unlisted_count == 1 ? "was" : "were", walk->unlisted_addr);
}

static void warn_of_heaps(struct snapshot *snapshot, const struct raw_capture *captured)
{
	const struct walk *walk = &captured->walk;
	const bool is_complete = is_made_up_for(walk);
	const char *listed =
		is_complete ? "; all blocks that the tracer recorded in those heaps are listed" :
			      "";
	char text[300];

	warn_of_list(snapshot, captured);
	if (walk->broken_count) {
		snprintf(text, sizeof(text),
			"%u place%s inconsistent; the first: %s at %" PRIX64 "%s",
			walk->broken_count,
			walk->broken_count == 1 ? " in the heaps is" : "s in the heaps are",
			walk->broken_what, walk->broken_addr, listed);
		warn_or_lack(snapshot, is_complete, text);
	}
	if (walk->missing_count) {
		snprintf(text, sizeof(text),
			"%u place%s to missing memory; the first: %s at "
			"%" PRIX64 "%s",
			walk->missing_count,
			walk->missing_count == 1 ? " in the heaps points" : "s in the heaps point",
			walk->missing_what, walk->missing_addr, listed);
		warn_or_lack(snapshot, is_complete, text);
	}
	if (walk->doubt_count)
		snapshot_warn(snapshot,
			"%u place%s in the heaps may be damaged; the first: %s at %" PRIX64,
			walk->doubt_count, text_plural(walk->doubt_count), walk->doubt_what,
			walk->doubt_addr);
	if (walk->busy_count && !captured->is_from_tables)
		snapshot_warn(snapshot, "%u heap%s locked on every try, and walked anyway",
			walk->busy_count, walk->busy_count == 1 ? " was" : "s were");
	warn_of_unwalked(snapshot, captured);
}

static void warn_of_error(struct snapshot *snapshot, const char *what, const struct err *why)
{
	struct err said = *why;
	char text[300];

	said.place[0] = '\0';
	if (why->code)
		snapshot_lacks(snapshot, "%s: %s", what, err_text(&said, text, sizeof(text)));
}

/* Warns if some memory that may point to blocks is unknown. Blocks that are reported as lost may
 * then be held. */
static void warn_of_reach(struct snapshot *snapshot, const struct raw_capture *captured)
{
	const struct reach_taken *reach = &captured->reach;

	if (captured->is_reach_refused)
		snapshot_lacks(snapshot, "no block is marked as lost or held: pointers may be in a "
					 "heap that could not be walked");
	if (reach->reach && !reach->thread_count)
		snapshot_warn(snapshot, "its threads are unknown: blocks that only their registers "
					"point to are reported as lost");
	if (reach->unseen_count)
		snapshot_warn(snapshot,
			"the registers of %zu of %zu thread%s are unknown: blocks that only these "
			"point to are reported as lost",
			reach->unseen_count, reach->thread_count, text_plural(reach->thread_count));
	if (reach->low_count)
		snapshot_warn(snapshot,
			"%zu block%s below 1 MiB, where small numbers look like pointers: only "
			"pointers to the start of such a block count, so some may be wrongly "
			"reported as lost or held",
			reach->low_count, text_plural(reach->low_count));
	if (reach->unread_bytes)
		snapshot_warn(snapshot,
			"%" PRIu64 " byte%s of its memory could not be read: blocks that only this "
			"memory points to are reported as lost",
			reach->unread_bytes, text_plural(reach->unread_bytes));
}

/* Warns about the BSTR cache. A string that the cache reuses has the stack of an earlier user. */
static void warn_of_bstr_cache(struct snapshot *snapshot, const struct tracer_area *area)
{
	if (!(area->flags & TRACER_FLAG_BSTR_CACHE))
		return;
	for (size_t i = 0; i < snapshot->module_count; i++) {
		const char *path = snapshot->modules[i].path;

		if (path && !text_compare(module_path_base(path), "oleaut32.dll")) {
			snapshot_warn(snapshot,
				"COM's string cache may have been on: a stack through "
				"oleaut32!Sys* may belong to an earlier user of the string; use "
				"hsnap run, or attach after oleaut32.dll is loaded");
			return;
		}
	}
}

void describe_gaps(struct snapshot *snapshot, const struct raw_capture *captured)
{
	warn_of_reach(snapshot, captured);
	warn_of_error(snapshot, "its heaps could not be walked", &captured->heaps_err);
	warn_of_error(snapshot, "its tracer was not read", &captured->tracer_err);
	warn_of_heaps(snapshot, captured);
	if (captured->untraced_count || captured->unfound_count)
		snapshot_warn(snapshot,
			"the heaps and the tracer's table disagree: %" PRIu64
			" block%s only in the heaps, %" PRIu64 " only in the table",
			captured->untraced_count, text_plural(captured->untraced_count),
			captured->unfound_count);
	if (captured->freed_unseen)
		snapshot_warn(snapshot,
			"%" PRIu64 " block%s freed without the tracer noticing, and %s not listed",
			captured->freed_unseen, captured->freed_unseen == 1 ? " was" : "s were",
			captured->freed_unseen == 1 ? "is" : "are");
	if (captured->source.has_tracer) {
		describe_tracer(snapshot, captured);
		warn_of_tracer(snapshot, captured);
		warn_of_bstr_cache(snapshot, &captured->tracer.area);
	}
}
