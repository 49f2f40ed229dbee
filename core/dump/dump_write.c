/*
 * Writes a snapshot as a dump: notes about the process, modules, heaps with their entries, block
 * contents, and the end mark. Entries are the bulk of the text, so they are formatted directly in
 * the output buffer.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/parse.h"
#include "core/base/text.h"
#include "core/dump/dump.h"
#include "core/dump/model.h"
#include "core/dump/stackless_note.h"

#define EOL "\r\n" /* line end of UMDH's logs */
#define LABEL_BYTES 22
#define LINE_BYTES 128 /* longer than any entry line with an id shorter than LABEL_BYTES */

static void write_quoted(struct out *out, const char *key, const char *value)
{
	struct buf text;

	if (!value)
		return;
	buf_init(&text);
	kv_quote(&text, value);
	out_printf(out, " %s=%s", key, text.data);
	buf_release(&text);
}

static void write_records(struct out *out, const struct stack_records *records)
{
	out_printf(out,
		"// hsnap: ust records=%" PRIu64 " broken-records=%" PRIu64 " cut-records=%" PRIu64,
		records->record_count, records->broken_count, records->cut_count);
	if (records->database)
		out_printf(out,
			" database=%" PRIX64 " entries=%" PRIu64 " lookups=%" PRIu64
			" failures=%" PRIu64 " indexed=%" PRIu64 " chained=%" PRIu64
			" used=%" PRIu64 " reserved=%" PRIu64,
			records->database, records->entry_count, records->lookup_count,
			records->failure_count, records->indexed_count, records->chained_count,
			records->used_bytes, records->reserved_bytes);
	out_text(out, EOL);
}

static void write_tracer(struct out *out, const struct tracer_facts *tracer)
{
	out_printf(out,
		"// hsnap: tracer version=%" PRIu32 " dropped-blocks=%" PRIu64
		" dropped-stacks=%" PRIu64 " dropped-ranges=%" PRIu64 " dropped-unloads=%" PRIu64
		" mismatches=%" PRIu64 " limit=%" PRIu64 " committed=%" PRIu64,
		tracer->version, tracer->dropped_blocks, tracer->dropped_stacks,
		tracer->dropped_ranges, tracer->dropped_unloads, tracer->mismatch_count,
		tracer->limit_bytes, tracer->committed_bytes);
	if (tracer->is_attached)
		out_text(out, " attached=1");
	if (tracer->is_attached && !tracer->sample_bytes)
		out_printf(out,
			" before-blocks=%" PRIu64 " before-requested=%" PRIu64
			" before-overhead=%" PRIu64,
			tracer->before.block_count, tracer->before.requested_bytes,
			tracer->before.overhead_bytes);
	out_text(out, EOL);
	if (tracer->sample_bytes)
		out_printf(out, "// hsnap: sample bytes=%" PRIu64 EOL, tracer->sample_bytes);
}

static void write_process(struct out *out, const struct snapshot *snapshot)
{
	char time[DATE_TEXT_BYTES];

	out_printf(out, "// hsnap: dump format=%d tool=%s", DUMP_FORMAT, HSNAP_VERSION);
	if (snapshot->time_ms)
		out_printf(out, " time=%s", date_text(snapshot->time_ms, time));
	out_printf(out, EOL "// hsnap: process id=%" PRIu32, snapshot->pid);
	if (snapshot->start_ms)
		out_printf(out, " start=%s", date_text(snapshot->start_ms, time));
	if (snapshot->clock_ms > 0)
		out_printf(out, " clock=%" PRId64, snapshot->clock_ms);
	if (snapshot->bits)
		out_printf(out, " bits=%u", snapshot->bits);
	if (snapshot->parent_pid)
		out_printf(out, " parent=%" PRIu32, snapshot->parent_pid);
	write_quoted(out, "image", snapshot->image);
	write_quoted(out, "os", snapshot->os);
	write_quoted(out, "host", snapshot->host);
	out_text(out, EOL);
	if (snapshot->stack_source)
		out_printf(out, "// hsnap: stacks source=%s" EOL, snapshot->stack_source);
	if (snapshot->is_by_stack)
		out_text(out, "// hsnap: sums by=stack" EOL);
	if (snapshot->has_reach)
		out_printf(out, "// hsnap: reach interior=%d by-parts=%" PRIu64 EOL,
			snapshot->by_middle, snapshot->part_held_count);
	if (snapshot->records.is_known)
		write_records(out, &snapshot->records);
	if (snapshot->tracer.version)
		write_tracer(out, &snapshot->tracer);
	for (size_t i = 0; i < snapshot->warning_count; i++) {
		out_text(out, "// hsnap: warning");
		write_quoted(out, "text", snapshot->warnings[i]);
		out_text(out, EOL);
	}
	if (snapshot->missing_count)
		out_printf(
			out, "// hsnap: incomplete missing=%" PRIu64 EOL, snapshot->missing_count);
	balance_write(out, &snapshot->balance);
}

static void write_identity(struct out *out, const struct module *module)
{
	if (!module->has_identity)
		return;
	out_printf(out, "// hsnap: module base=%" PRIX64 " timestamp=%" PRIX32 " checksum=%" PRIX32,
		module->base, module->timestamp, module->checksum);
	write_quoted(out, "pdb", module->pdb);
	if (module->pdb_guid)
		out_printf(out, " guid=%s age=%" PRIX32, module->pdb_guid, module->pdb_age);
	if (module->unloaded_at)
		out_printf(out, " unloaded=1 at=%" PRIX64, module->unloaded_at);
	out_text(out, EOL);
}

/* Writes a path as one line of text, with '?' for each byte that a line must not contain. If the
 * path is too long for readers, writes only its end, which includes the file name. */
static void write_path(struct out *out, const char *path)
{
	uint32_t code;

	path = text_tail(path, MODULE_TEXT_MAX);
	while (*path) {
		size_t unfit = text_unfit(path);
		size_t len = unfit ? unfit : text_utf8(path, &code);

		out_write(out, unfit ? "???" : path, len);
		path += len;
	}
}

static void write_modules(struct out *out, const struct snapshot *snapshot)
{
	out_text(out, "//" EOL "// Loaded modules: " EOL "//     Base Size Module" EOL);
	for (size_t i = 0; i < snapshot->module_count; i++) {
		const struct module *module = &snapshot->modules[i];

		out_printf(
			out, "//    %16" PRIX64 " %8" PRIX64 " ", module->base, module->size_bytes);
		write_path(out, module->path);
		out_text(out, EOL);
	}
	out_text(out, "//" EOL "// Process modules enumerated." EOL);
	for (size_t i = 0; i < snapshot->module_count; i++)
		write_identity(out, &snapshot->modules[i]);
}

/* Returns the part of a sum's overhead that its line does not contain. The line contains only the
 * average per block, rounded down. */
static uint64_t rest_of(const struct block_sum *sum)
{
	return sum->overhead_bytes % sum->block_count;
}

/* Like rest_of(), but for all sums of a heap, starting with sum `*at`. Sets `*at` to the first sum
 * of the next heap. */
static uint64_t rest_of_heap(const struct snapshot *snapshot, uint32_t heap, size_t *at)
{
	uint64_t rest = 0;

	for (; *at < snapshot->sum_count && snapshot->sums[*at].heap == heap; ++*at)
		rest += rest_of(&snapshot->sums[*at]);
	return rest;
}

static void write_totals(struct out *out, const char *prefix, const struct block_totals *totals)
{
	if (totals->block_count)
		out_printf(out, " %sblocks=%" PRIu64 " %srequested=%" PRIu64 " %soverhead=%" PRIu64,
			prefix, totals->block_count, prefix, totals->requested_bytes, prefix,
			totals->overhead_bytes);
}

static void write_heap_note(struct out *out, const struct heap *heap, uint64_t rest_bytes)
{
	out_printf(out, "// hsnap: heap addr=%" PRIX64 " kind=%s", heap->addr,
		heap->kind ? heap->kind : "unknown");
	if (heap->bits)
		out_printf(out, " bits=%u", heap->bits);
	write_quoted(out, "layout", heap->layout);
	out_printf(out,
		" committed=%" PRIu64 " reserved=%" PRIu64 " stackless-blocks=%" PRIu64
		" stackless-requested=%" PRIu64 " stackless-overhead=%" PRIu64,
		heap->committed_bytes, heap->reserved_bytes, heap->stackless.block_count,
		heap->stackless.requested_bytes, heap->stackless.overhead_bytes);
	write_totals(out, "stackless-lost-", &heap->stackless_lost);
	if (rest_bytes)
		out_printf(out, " rest-overhead=%" PRIu64, rest_bytes);
	if (heap->has_exact)
		out_printf(out,
			" exact-blocks=%" PRIu64 " exact-requested=%" PRIu64
			" exact-overhead=%" PRIu64,
			heap->exact.block_count, heap->exact.requested_bytes,
			heap->exact.overhead_bytes);
	if (heap->space.is_known)
		out_printf(out, " free-run=%" PRIu64, heap->space.free_run_bytes);
	write_totals(out, "lfh-", &heap->space.lfh);
	write_totals(out, "vs-", &heap->space.vs);
	for (uint32_t i = 0; i < heap->creator_depth; i++)
		out_printf(out, "%s%" PRIX64, i ? " " : " creator=\"", heap->creator[i]);
	if (heap->creator_depth)
		out_char(out, '"');
	if (heap->unwalked)
		out_text(out, " unwalked=1");
	if (heap->unwalked || heap->traced_only)
		out_printf(out, " traced-only=%" PRIu64, heap->traced_only);
	out_text(out, heap->is_complete ? " complete=1" EOL : EOL);
}

static void write_heap_notes(struct out *out, const struct snapshot *snapshot)
{
	size_t at = 0;

	for (uint32_t heap = 0; heap < snapshot->heap_count; heap++)
		write_heap_note(out, &snapshot->heaps[heap], rest_of_heap(snapshot, heap, &at));
}

static void write_stackless(struct out *out, const struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->stackless_count; i++) {
		const struct stackless_group *group = &snapshot->stackless[i];
		char text[STACKLESS_TEXT_MAX + 1];

		out_printf(out, "// hsnap: stackless addr=%" PRIX64 " bytes=%" PRIu64,
			snapshot->heaps[group->heap].addr, group->bytes);
		if (group->is_range)
			out_printf(out, " bytes-to=%" PRIu64, 2 * group->bytes - 1);
		stackless_text_get(group->word, text);
		if (group->kind == STACKLESS_ADDRESS)
			out_printf(out, " to=%" PRIX64, group->word);
		else if (group->kind != STACKLESS_ANY)
			write_quoted(
				out, group->kind == STACKLESS_TEXT ? "text" : "wide-text", text);
		out_printf(out,
			" blocks=%" PRIu64 " requested=%" PRIu64 " overhead=%" PRIu64 "%s" EOL,
			group->totals.block_count, group->totals.requested_bytes,
			group->totals.overhead_bytes, group->is_lost ? " lost=1" : "");
	}
}

static void write_containers(struct out *out, const struct snapshot *snapshot)
{
	if (!snapshot->has_containers)
		return;
	out_printf(out, "// hsnap: containers listed=%zu left-out=%zu" EOL,
		snapshot->container_count, snapshot->container_left_count);
	for (size_t i = 0; i < snapshot->container_count; i++) {
		const struct container *container = &snapshot->containers[i];

		out_printf(out,
			"// hsnap: container addr=%" PRIX64 " heap=%" PRIX64
			" kind=%s bytes=%" PRIu64 " committed=%" PRIu64,
			container->addr, snapshot->heaps[container->heap].addr,
			container_kind_name(container->kind), container->bytes,
			container->committed_bytes);
		write_totals(out, "", &container->blocks);
		out_text(out, EOL);
	}
}

static char *write_text(char *to, const char *text, size_t len)
{
	memcpy(to, text, len);
	return to + len;
}

/* Copies a string literal, whose length the compiler knows. */
#define PUT(to, literal) write_text(to, literal, sizeof(literal) - 1)

static void write_stack(struct out *out, const struct stack *stack)
{
	uint32_t alias = 0;

	for (uint32_t i = 0; i < stack->frame_count; i++) {
		char *start, *to;

		if (alias < stack->alias_count && stack->alias_at[alias] == i) {
			out_text(out, "\tAlias" EOL);
			alias++;
		}
		start = to = out_room(out, LINE_BYTES);
		*to++ = '\t';
		to += out_hex_digits(to, stack_frame(stack, i));
		to = PUT(to, EOL);
		out->len += (size_t)(to - start);
	}
	out_text(out, EOL);
}

/* A stack's id as text, cached. */
struct label {
	char text[LABEL_BYTES];
	unsigned char len; /* length of the id; 0: not cached yet; LABEL_BYTES: too long to cache */
	bool is_shown; /* the stack's frames have been written */
};

struct entries {
	struct out *out;
	const struct snapshot *snapshot;
	struct block_span *spans;
	size_t span_count;
	struct label *labels; /* one per stack */
	size_t span_at, sum_at; /* next span of blocks; next sum */
	uint32_t reach; /* reachability written in the last note */
};

static void label_fill(struct label *label, const char *id)
{
	size_t len = strlen(id);

	label->len = len < LABEL_BYTES ? (unsigned char)len : LABEL_BYTES;
	if (len < LABEL_BYTES)
		memcpy(label->text, id, len);
}

/* Writes "REQUESTED bytes + OVERHEAD at ADDRESS by BackTraceID". */
static void write_line(
	struct out *out, const struct block *block, const struct label *label, const char *id)
{
	char *start = out_room(out, LINE_BYTES), *to = start;

	to += out_hex_digits(to, block->requested_bytes);
	to = PUT(to, " bytes + ");
	to += out_hex_digits(to, block->overhead_bytes);
	to = PUT(to, " at ");
	to += out_hex_digits(to, block->addr);
	to = PUT(to, " by BackTrace");
	if (label->len < LABEL_BYTES) {
		/* copies too much: the next write overwrites the surplus */
		memcpy(to, label->text, LABEL_BYTES);
		to = PUT(to + label->len, EOL);
		out->len += (size_t)(to - start);
		return;
	}
	out->len += (size_t)(to - start);
	out_text(out, id);
	out_text(out, EOL);
}

/* Writes "REQUESTED bytes in 0xCOUNT allocations (@ 0xREQUESTED + 0xOVERHEAD) by: BackTraceID". The
 * numbers in parentheses are averages per block, rounded down. */
static void write_sum_line(struct out *out, const struct block_sum *sum, const char *id)
{
	out_printf(out,
		"%" PRIX64 " bytes in 0x%" PRIX64 " allocations (@ 0x%" PRIX64 " + 0x%" PRIX64
		") by: BackTrace",
		sum->requested_bytes, sum->block_count, sum->requested_bytes / sum->block_count,
		sum->overhead_bytes / sum->block_count);
	out_text(out, id);
	out_text(out, EOL);
}

/* Begins an entry. Writes an empty line first if a stack will follow the entry. */
static struct label *begin_entry(
	struct entries *entries, const struct stack *stack, uint32_t number)
{
	struct label *label = &entries->labels[number];

	if (!label->len)
		label_fill(label, stack->id);
	if (!label->is_shown && stack->frame_count)
		out_text(entries->out, EOL);
	return label;
}

/* Ends an entry. Writes the stack's frames if this is the first entry with that stack. */
static void end_entry(struct entries *entries, const struct stack *stack, struct label *label)
{
	if (!label->is_shown && stack->frame_count)
		write_stack(entries->out, stack);
	label->is_shown = true;
}

static void write_block(struct entries *entries, const struct block *block)
{
	const struct stack *stack = &entries->snapshot->stacks.stacks[block->stack];
	struct label *label = begin_entry(entries, stack, block->stack);

	write_line(entries->out, block, label, stack->id);
	end_entry(entries, stack, label);
}

static void write_sum(struct entries *entries, const struct block_sum *sum)
{
	const struct stack *stack = &entries->snapshot->stacks.stacks[sum->stack];
	struct label *label = begin_entry(entries, stack, sum->stack);

	write_sum_line(entries->out, sum, stack->id);
	end_entry(entries, stack, label);
}

/* Writes a note if `reach` differs from that of the previous entry. */
static void write_reach(struct entries *entries, uint32_t reach)
{
	const struct snapshot *snapshot = entries->snapshot;

	if (reach == entries->reach)
		return;
	entries->reach = reach;
	out_printf(entries->out, EOL "// hsnap: blocks reach=%s",
		block_reach_name(
			reach < BLOCK_LOST_WITH ? (enum block_reach)reach : BLOCK_LOST_WITH));
	if (reach >= BLOCK_LOST_WITH && !snapshot->is_by_stack)
		out_printf(entries->out, " root=%" PRIX64, snapshot->lost[reach - BLOCK_LOST_WITH]);
	out_text(entries->out, EOL);
}

/* Writes the blocks of a span that have this `reach`. All values from BLOCK_LOST_WITH upwards count
 * as BLOCK_LOST_WITH. */
static void write_blocks(
	struct entries *entries, const struct block_span *span, enum block_reach reach)
{
	for (size_t i = span->first; i < span->end; i++) {
		uint32_t found = snapshot_reach(entries->snapshot, i);

		if (found == reach || (reach == BLOCK_LOST_WITH && found > reach)) {
			write_reach(entries, found);
			write_block(entries, &entries->snapshot->blocks[i]);
		}
	}
}

static void write_entries(struct entries *entries, uint32_t heap)
{
	const struct snapshot *snapshot = entries->snapshot;
	const size_t first = entries->span_at;

	while (entries->span_at < entries->span_count &&
		snapshot->blocks[entries->spans[entries->span_at].first].heap == heap)
		entries->span_at++;
	entries->reach = BLOCK_HELD;
	for (int reach = BLOCK_HELD; reach <= (snapshot->has_reach ? BLOCK_LOST_WITH : BLOCK_HELD);
		reach++) {
		for (size_t i = first; i < entries->span_at; i++)
			write_blocks(entries, &entries->spans[i], (enum block_reach)reach);
	}
	for (; entries->sum_at < snapshot->sum_count; entries->sum_at++) {
		const struct block_sum *sum = &snapshot->sums[entries->sum_at];

		if (sum->heap != heap)
			break;
		write_reach(entries, sum->reach);
		write_sum(entries, sum);
	}
}

static void write_heap(struct entries *entries, uint32_t heap)
{
	uint64_t addr = entries->snapshot->heaps[heap].addr;
	const char *name = heap_name(addr);

	out_printf(entries->out,
		EOL "*- - - - - - - - - - Start of data for heap @ %" PRIX64
		    " - - - - - - - - - -" EOL EOL
		    "REQUESTED bytes + OVERHEAD at ADDRESS by BackTraceID" EOL
		    "     STACK if not already dumped." EOL EOL "*- - - - - - - - - - Heap %" PRIX64
		    " Hogs%s%s - - - - - - - - - -" EOL EOL,
		addr, addr, name ? ": " : "", name ? name : "");
	write_entries(entries, heap);
	out_printf(entries->out,
		EOL "*- - - - - - - - - - End of data for heap @ %" PRIX64
		    " - - - - - - - - - -" EOL,
		addr);
}

static void write_contents(struct out *out, const struct snapshot *snapshot)
{
	size_t at = 0;

	for (size_t i = 0; i < snapshot->content_count; i++) {
		const struct block_content *content = &snapshot->contents[i];

		out_printf(out,
			"// hsnap: content addr=%" PRIX64 " bytes=%" PRIu64 " bits=%u data=",
			content->addr, content->requested_bytes, snapshot->bits);
		for (uint32_t k = 0; k < content->len; k++)
			out_printf(out, "%02X", content->bytes[k]);
		if (content->stack == STACK_NONE)
			out_printf(out, " stack=0 group=%" PRIu32, content->group);
		else
			write_quoted(out, "stack", snapshot->stacks.stacks[content->stack].id);
		out_text(out, EOL);
		for (; at < snapshot->pointer_count && snapshot->pointers[at].content == i; at++) {
			const struct content_pointer *pointer = &snapshot->pointers[at];

			out_printf(out,
				"// hsnap: pointer addr=%" PRIX64 " offset=%" PRIX32 " to=%" PRIX64
				" bytes=%" PRIu64,
				content->addr, pointer->offset, pointer->to,
				pointer->requested_bytes);
			write_quoted(out, "stack", snapshot->stacks.stacks[pointer->stack].id);
			out_text(out, EOL);
		}
	}
}

void dump_write(struct out *out, const struct snapshot *snapshot)
{
	struct entries entries = {.out = out, .snapshot = snapshot};
	struct block_totals total = snapshot_total(snapshot);

	entries.labels = calloc(snapshot->stacks.count + 1, sizeof(*entries.labels));
	if (!entries.labels || block_order(snapshot, &entries.spans, &entries.span_count)) {
		err_set(&out->err, ERR_NOMEM, out->path, NULL);
		goto out;
	}
	write_process(out, snapshot);
	write_modules(out, snapshot);
	write_heap_notes(out, snapshot);
	write_stackless(out, snapshot);
	write_containers(out, snapshot);
	for (uint32_t heap = 0; heap < snapshot->heap_count; heap++)
		write_heap(&entries, heap);
	write_contents(out, snapshot);
	out_printf(out,
		EOL "// hsnap: end blocks=%" PRIu64 " requested=%" PRIu64 " overhead=%" PRIu64 EOL,
		total.block_count, total.requested_bytes, total.overhead_bytes);
out:
	free(entries.spans);
	free(entries.labels);
}
