#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/date.h"
#include "core/dump.h"

#define EOL "\r\n" /* as UMDH ends its lines */

static void write_quoted(struct out *out, const char *key, const char *value)
{
	struct buf text;

	if (!value)
		return;
	buf_init(&text);
	if (kv_quote(&text, value))
		err_set(&out->err, ERR_NOMEM, out->path, NULL);
	else
		out_printf(out, " %s=%s", key, text.data);
	buf_release(&text);
}

static void write_records(struct out *out, const struct stack_records *records)
{
	out_printf(out, "// hsnap: ust records=%" PRIu64 " broken-records=%" PRIu64,
		records->record_count, records->broken_count);
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

static void write_process(struct out *out, const struct snapshot *snapshot)
{
	char time[DATE_TEXT_BYTES];

	out_printf(out, "// hsnap: dump format=%d tool=%s", DUMP_FORMAT, HSNAP_VERSION);
	if (snapshot->time_ms)
		out_printf(out, " time=%s", date_text(snapshot->time_ms, time));
	out_printf(out, EOL "// hsnap: process id=%" PRIu32, snapshot->pid);
	if (snapshot->start_ms)
		out_printf(out, " start=%s", date_text(snapshot->start_ms, time));
	if (snapshot->bits)
		out_printf(out, " bits=%u", snapshot->bits);
	write_quoted(out, "image", snapshot->image);
	write_quoted(out, "os", snapshot->os);
	out_text(out, EOL);
	if (snapshot->stack_source)
		out_printf(out, "// hsnap: stacks source=%s" EOL, snapshot->stack_source);
	if (snapshot->records.is_known)
		write_records(out, &snapshot->records);
	for (size_t i = 0; i < snapshot->warning_count; i++) {
		out_text(out, "// hsnap: warning");
		write_quoted(out, "text", snapshot->warnings[i]);
		out_text(out, EOL);
	}
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
	out_text(out, EOL);
}

/* A path as one line of text: a name may hold anything, a line may not. */
static void write_path(struct out *out, const char *path)
{
	for (; *path; path++) {
		char c = (unsigned char)*path < ' ' ? '?' : *path;

		out_write(out, &c, 1);
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

static void write_heap_note(struct out *out, const struct heap *heap)
{
	out_printf(out, "// hsnap: heap addr=%" PRIX64 " kind=%s", heap->addr,
		heap->kind ? heap->kind : "unknown");
	if (heap->bits)
		out_printf(out, " bits=%u", heap->bits);
	write_quoted(out, "layout", heap->layout);
	out_printf(out,
		" committed=%" PRIu64 " reserved=%" PRIu64 " stackless-blocks=%" PRIu64
		" stackless-requested=%" PRIu64 " stackless-overhead=%" PRIu64 "%s" EOL,
		heap->committed_bytes, heap->reserved_bytes, heap->stackless.block_count,
		heap->stackless.requested_bytes, heap->stackless.overhead_bytes,
		heap->unwalked ? " unwalked=1" : "");
}

static void write_stack(struct out *out, const struct stack *stack)
{
	uint32_t alias = 0;

	for (uint32_t i = 0; i < stack->frame_count; i++) {
		if (alias < stack->alias_count && stack->alias_at[alias] == i) {
			out_text(out, "\tAlias" EOL);
			alias++;
		}
		out_text(out, "\t");
		out_hex(out, stack->frames[i]);
		out_text(out, EOL);
	}
	out_text(out, EOL);
}

static void write_block(
	struct out *out, const struct snapshot *snapshot, const struct block *block, bool *known)
{
	const struct stack *stack = &snapshot->stacks.stacks[block->stack];
	bool first = !known[block->stack] && stack->frame_count;

	if (first)
		out_text(out, EOL);
	out_hex(out, block->requested_bytes);
	out_text(out, " bytes + ");
	out_hex(out, block->overhead_bytes);
	out_text(out, " at ");
	out_hex(out, block->addr);
	out_text(out, " by BackTrace");
	out_text(out, stack->id);
	out_text(out, EOL);
	if (first)
		write_stack(out, stack);
	known[block->stack] = true;
}

static int by_heap_and_addr(const void *a, const void *b)
{
	const struct block *x = *(const struct block *const *)a;
	const struct block *y = *(const struct block *const *)b;

	if (x->heap != y->heap)
		return x->heap < y->heap ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static void write_heap(struct out *out, const struct snapshot *snapshot, uint32_t heap,
	const struct block **blocks, size_t count, bool *known)
{
	uint64_t addr = snapshot->heaps[heap].addr;

	out_printf(out,
		EOL "*- - - - - - - - - - Start of data for heap @ %" PRIX64
		    " - - - - - - - - - -" EOL EOL
		    "REQUESTED bytes + OVERHEAD at ADDRESS by BackTraceID" EOL
		    "     STACK if not already dumped." EOL EOL "*- - - - - - - - - - Heap %" PRIX64
		    " Hogs - - - - - - - - - -" EOL EOL,
		addr, addr);
	for (size_t i = 0; i < count; i++)
		write_block(out, snapshot, blocks[i], known);
	out_printf(out,
		EOL "*- - - - - - - - - - End of data for heap @ %" PRIX64
		    " - - - - - - - - - -" EOL,
		addr);
}

void dump_write(struct out *out, const struct snapshot *snapshot)
{
	size_t count = snapshot->block_count, at = 0;
	const struct block **order = malloc((count + 1) * sizeof(*order));
	bool *known = calloc(snapshot->stacks.count + 1, sizeof(*known));
	struct census total = snapshot_total(snapshot);

	if (!order || !known) {
		err_set(&out->err, ERR_NOMEM, out->path, NULL);
		goto out;
	}
	for (size_t i = 0; i < count; i++)
		order[i] = &snapshot->blocks[i];
	qsort(order, count, sizeof(*order), by_heap_and_addr);
	write_process(out, snapshot);
	write_modules(out, snapshot);
	for (size_t i = 0; i < snapshot->heap_count; i++)
		write_heap_note(out, &snapshot->heaps[i]);
	for (uint32_t heap = 0; heap < snapshot->heap_count; heap++) {
		size_t from = at;

		while (at < count && order[at]->heap == heap)
			at++;
		write_heap(out, snapshot, heap, order + from, at - from, known);
	}
	out_printf(out,
		EOL "// hsnap: end blocks=%" PRIu64 " requested=%" PRIu64 " overhead=%" PRIu64 EOL,
		total.block_count, total.requested_bytes, total.overhead_bytes);
out:
	free(order);
	free(known);
}
