/* Notes, which are the data in a dump other than blocks. Also the warnings of a series of dumps. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/text.h"
#include "diff/read/dump_sums.h"
#include "diff/read/read_dump.h"
#include "diff/read/stackless.h"

void sums_warn(struct dump_sums *sums, const char *text)
{
	if (!sums->quality.warnings) { /* most dumps have no warnings */
		sums->quality.left_out =
			arena_alloc(&sums->arena, WARNINGS_MAX * sizeof(*sums->quality.left_out));
		sums->quality.warnings =
			arena_alloc(&sums->arena, WARNINGS_MAX * sizeof(*sums->quality.warnings));
	}
	if (sums->quality.warning_count < WARNINGS_MAX)
		sums->quality.warnings[sums->quality.warning_count] =
			arena_text(&sums->arena, text, strlen(text));
	sums->quality.warning_count++;
}

static int note_warning(struct sum_reader *reader, const struct kv *kv)
{
	const char *text = kv_get(kv, "text");

	if (text)
		sums_warn(reader->sums, text);
	return 0;
}

/* Warns about a heap that was not walked. Does nothing if a warning that the dump is incomplete
 * already exists. */
static void warn_unwalked(struct dump_sums *sums, uint64_t addr)
{
	char text[80];

	if (sums->quality.is_incomplete)
		return;
	sums->quality.is_incomplete = true;
	snprintf(text, sizeof(text),
		"heap %" PRIX64 " was not walked: only its traced blocks are counted", addr);
	sums_warn(sums, text);
}

static const char *copy_text(struct dump_sums *sums, const char *text)
{
	return text ? arena_text(&sums->arena, text, strlen(text)) : NULL;
}

static int note_head(struct sum_reader *reader, const char *kind, const struct kv *kv)
{
	struct dump_sums *sums = reader->sums;
	struct dump_head *head = &reader->head;
	int rc = dump_head_note(head, kind, kv);

	if (!rc && !strcmp(kind, "process")) {
		head->image = copy_text(sums, head->image);
		head->host = copy_text(sums, head->host);
	}
	if (!rc && !strcmp(kind, "umdh") && !kv_get(kv, "id"))
		sums_warn(sums, "UMDH's banner cannot be read to its end (PID=), so the process, "
				"the machine and the time are unknown");
	if (!rc && !strcmp(kind, "umdh"))
		sums->id.banner_host = head->banner_host = copy_text(sums, head->banner_host);
	sums->id.time_ms = head->time_ms;
	sums->id.start_ms = head->start_ms;
	sums->id.clock_ms = head->clock_ms;
	sums->id.pid = head->pid;
	sums->id.parent_pid = head->parent_pid;
	sums->id.image = head->image;
	sums->id.host = head->host;
	sums->id.banner_pid = head->banner_pid;
	sums->id.banner_time_ms = head->banner_time_ms;
	return rc;
}

void sums_copy_banner(struct dump_sums *sums)
{
	if (!sums->id.time_ms && sums->id.banner_time_ms) {
		sums->id.time_ms = sums->id.banner_time_ms;
		sums->id.has_wall_time = true;
	}
	if (!sums->id.pid)
		sums->id.pid = sums->id.banner_pid;
	if (!sums->id.host)
		sums->id.host = sums->id.banner_host;
}

static int note_module(struct sum_reader *reader, const struct kv *kv)
{
	return module_list_note(&reader->modules, kv);
}

static void count_stackless(struct sum_reader *reader, uint64_t addr, enum block_reach reach,
	const struct block_totals *totals)
{
	struct stack_total cell = {.stack = STACK_NONE, .sums = *totals};

	if (reader->sums->single.sizes.is_limited ||
		(!totals->block_count && !totals->requested_bytes && !totals->overhead_bytes))
		return;
	cell.heap = shared_stacks_heap(&reader->pool, addr, reach);
	shared_stacks_count(&reader->pool, &cell, 1, false);
}

#define HEAP_BYTES_MAX ((uint64_t)1 << 56) /* bound for sums over all heaps */

static uint64_t bounded(uint64_t bytes)
{
	return bytes < HEAP_BYTES_MAX ? bytes : HEAP_BYTES_MAX;
}

static struct block_totals bounded_totals(const struct block_totals *totals)
{
	return (struct block_totals){bounded(totals->block_count), bounded(totals->requested_bytes),
		bounded(totals->overhead_bytes)};
}

/* Returns the name of a kind that hsnap writes, or "". The result is a literal, because a copy for
 * each of many dumps would cost memory. */
static const char *known_kind(const char *kind)
{
	static const char *const kinds[] = {"nt", "segment", "page", "wine", "unknown", "virtual",
		"reserved", "mapped", "stack"};

	for (size_t i = 0; kind && i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (!strcmp(kind, kinds[i]))
			return kinds[i];
	}
	return "";
}

/* Stores the stack that created the heap of a note. */
static void add_creator(struct dump_sums *sums, struct heap_fact *fact, const struct kv *kv)
{
	uint64_t frames[CREATOR_FRAMES_MAX];
	const uint32_t depth = sums->single.wants_creators ? creator_note_read(kv, frames) : 0;

	if (!depth)
		return;
	fact->creator = arena_alloc(&sums->arena, depth * sizeof(*frames));
	memcpy(fact->creator, frames, depth * sizeof(*frames));
	fact->creator_depth = depth;
}

static void add_heap_fact(struct dump_sums *sums, const struct kv *kv, uint64_t addr,
	uint64_t committed, uint64_t reserved, const struct heap_space *space)
{
	array_grow((void **)&sums->heap_facts, &sums->heap_fact_cap, sums->heap_fact_count,
		sizeof(*sums->heap_facts));
	sums->heap_facts[sums->heap_fact_count++] = (struct heap_fact){.addr = addr,
		.kind = known_kind(kv_get(kv, "kind")),
		.memory = {.committed_bytes = bounded(committed),
			.reserved_bytes = bounded(reserved),
			.space = {.is_known = kv_get(kv, "free-run") != NULL,
				.free_run_bytes = bounded(space->free_run_bytes),
				.lfh = bounded_totals(&space->lfh),
				.vs = bounded_totals(&space->vs)}}};
	add_creator(sums, &sums->heap_facts[sums->heap_fact_count - 1], kv);
}

static int note_heap(struct sum_reader *reader, const struct kv *kv)
{
	struct block_totals all = {0}, lost = {0};
	uint32_t number = (uint32_t)reader->ungrouped_count;
	struct heap_space space = {0};
	uint64_t addr = 0, unwalked = 0, complete = 0, rest = 0, committed = 0, reserved = 0;
	const struct kv_number numbers[] = {
		{"stackless-blocks", 10, &all.block_count},
		{"stackless-requested", 10, &all.requested_bytes},
		{"stackless-overhead", 10, &all.overhead_bytes},
		/* included in the numbers above */
		{"stackless-lost-blocks", 10, &lost.block_count},
		{"stackless-lost-requested", 10, &lost.requested_bytes},
		{"stackless-lost-overhead", 10, &lost.overhead_bytes},
		/* Overhead that is not in the heap's lines, because each line contains only whole
		 * bytes per block. It is unknown which stacks this overhead belongs to. */
		{"rest-overhead", 10, &rest},
		{"addr", 16, &addr},
		{"committed", 10, &committed},
		{"reserved", 10, &reserved},
		{"free-run", 10, &space.free_run_bytes},
		{"lfh-blocks", 10, &space.lfh.block_count},
		{"lfh-requested", 10, &space.lfh.requested_bytes},
		{"lfh-overhead", 10, &space.lfh.overhead_bytes},
		{"vs-blocks", 10, &space.vs.block_count},
		{"vs-requested", 10, &space.vs.requested_bytes},
		{"vs-overhead", 10, &space.vs.overhead_bytes},
		{"unwalked", 10, &unwalked},
		{"complete", 10, &complete},
	};
	int rc = kv_get_numbers(kv, numbers, sizeof(numbers) / sizeof(*numbers));

	if (rc || rest > UINT64_MAX - all.overhead_bytes || lost.block_count > all.block_count ||
		lost.requested_bytes > all.requested_bytes ||
		lost.overhead_bytes > all.overhead_bytes)
		return -ERR_BAD_LINE;
	all.overhead_bytes += rest;
	add_heap_fact(reader->sums, kv, addr, committed, reserved, &space);
	if (unwalked && !complete)
		warn_unwalked(reader->sums, addr);
	if (sum_reader_total(reader, &all)) {
		/* the whole dump must fail later; -ERR_BAD_LINE would only skip this line */
		reader->is_over = true;
		return 0;
	}
	all.block_count -= lost.block_count;
	all.requested_bytes -= lost.requested_bytes;
	all.overhead_bytes -= lost.overhead_bytes;
	count_stackless(reader, addr, BLOCK_HELD, &all);
	count_stackless(reader, addr, BLOCK_LOST, &lost);
	if (u64map_add(&reader->ungrouped_numbers, addr, &number)) {
		array_grow((void **)&reader->ungrouped, &reader->ungrouped_cap,
			reader->ungrouped_count, sizeof(*reader->ungrouped));
		reader->ungrouped[reader->ungrouped_count++] = (struct ungrouped){all, lost};
	}
	return 0;
}

/* Subtracts a group from the blocks of a heap that are in no group. Returns false if the heap has
 * fewer. */
static bool subtract_group(struct block_totals *from, const struct block_totals *group)
{
	if (group->block_count > from->block_count ||
		group->requested_bytes > from->requested_bytes ||
		group->overhead_bytes > from->overhead_bytes)
		return false;
	from->block_count -= group->block_count;
	from->requested_bytes -= group->requested_bytes;
	from->overhead_bytes -= group->overhead_bytes;
	return true;
}

/* Moves a group of blocks without a stack from the heap's sum to a stack of its own. */
static int note_stackless(struct sum_reader *reader, const struct kv *kv)
{
	const struct size_limits *sizes = &reader->sums->single.sizes;
	struct stackless_group group;
	struct stack_total cell = {.stack = STACK_NONE};
	struct pool_entry entry = {.stack = {.id = STACKLESS_ID, .same_id = STACK_NONE},
		.id_len = strlen(STACKLESS_ID)};
	uint64_t frames[2], addr;
	uint32_t number;
	struct ungrouped *ungrouped;

	if (stackless_note_read(kv, &group, &addr))
		return -ERR_BAD_LINE;
	array_grow((void **)&reader->groups, &reader->group_cap, reader->group_count,
		sizeof(*reader->groups));
	reader->groups[reader->group_count++] = group;
	if (!u64map_find(&reader->ungrouped_numbers, addr, &number))
		return -ERR_BAD_LINE;
	ungrouped = &reader->ungrouped[number];
	if (!subtract_group(group.is_lost ? &ungrouped->lost : &ungrouped->held, &group.totals))
		return -ERR_BAD_LINE;
	cell.heap =
		shared_stacks_heap(&reader->pool, addr, group.is_lost ? BLOCK_LOST : BLOCK_HELD);
	cell.sums = entry.sums = group.totals;
	if (!sizes->is_limited)
		shared_stacks_count(&reader->pool, &cell, 1, true);
	else if (group.is_range || !size_limits_has(sizes, group.bytes))
		return 0;
	entry.stack.frame_count = (uint16_t)stackless_frames(&group, frames);
	entry.stack.frames = frames;
	shared_stacks_entries(&reader->pool, &entry, 1, cell.heap, false);
	reader->sums->has_stackless = true;
	return 0;
}

static int note_reach(struct sum_reader *reader, const struct kv *kv)
{
	(void)kv;
	reader->sums->has_reach = true;
	return 0;
}

/* Records how the blocks that follow can be reached. */
static int note_blocks(struct sum_reader *reader, const struct kv *kv)
{
	const char *name = kv_get(kv, "reach");

	for (int reach = 0; name && reach < BLOCK_REACHES; reach++) {
		if (!strcmp(name, block_reach_name((enum block_reach)reach)))
			return sum_reader_heap(reader, reader->heap_addr, (enum block_reach)reach);
	}
	return -ERR_BAD_LINE;
}

static int note_tracer(struct sum_reader *reader, const struct kv *kv)
{
	struct block_totals before = {0};
	uint64_t attached = 0;
	const struct kv_number numbers[] = {
		{"attached", 10, &attached},
		{"before-blocks", 10, &before.block_count},
		{"before-requested", 10, &before.requested_bytes},
	};
	int rc = kv_get_numbers(kv, numbers, sizeof(numbers) / sizeof(*numbers));

	if (rc)
		return rc;
	reader->sums->is_attached = attached != 0;
	reader->sums->before = before;
	return 0;
}

static int note_sample(struct sum_reader *reader, const struct kv *kv)
{
	return kv_get_number(kv, "bytes", 10, &reader->sums->quality.sample_bytes);
}

static int note_incomplete(struct sum_reader *reader, const struct kv *kv)
{
	uint64_t missing = 0;
	int rc = kv_get_number(kv, "missing", 10, &missing);

	reader->sums->quality.is_incomplete |= missing != 0;
	return rc;
}

static int note_content(struct sum_reader *reader, const struct kv *kv)
{
	struct dump_sums *sums = reader->sums;
	struct content_note note;
	const struct block_content *content = &note.content;
	struct dump_content *to;
	int rc = content_note_read(kv, &note);

	if (rc)
		return rc;
	array_grow((void **)&sums->single.contents, &reader->content_cap,
		sums->single.content_count, sizeof(*sums->single.contents));
	to = &sums->single.contents[sums->single.content_count++];
	*to = (struct dump_content){
		.stack = arena_text(&sums->arena, note.stack, strlen(note.stack)),
		.addr = content->addr,
		.requested_bytes = content->requested_bytes,
		.bits = note.bits,
		.len = content->len,
		.bytes = (const unsigned char *)arena_text(
			&sums->arena, (const char *)content->bytes, content->len),
		.pointer_at = sums->single.pointer_count};
	if (!strcmp(note.stack, STACKLESS_ID) && content->group < reader->group_count)
		to->frame_count = stackless_frames(&reader->groups[content->group], to->frames);
	return 0;
}

/* Reads a note about a pointer. The pointer is in the block that the last content note
 * describes. */
static int note_pointer(struct sum_reader *reader, const struct kv *kv)
{
	struct dump_sums *sums = reader->sums;
	struct dump_content *content =
		sums->single.content_count ?
			&sums->single.contents[sums->single.content_count - 1] :
			NULL;
	const char *stack = kv_get(kv, "stack");
	struct dump_pointer pointer = {0};
	uint64_t addr = 0;
	const struct kv_number numbers[] = {
		{"addr", 16, &addr},
		{"offset", 16, &pointer.offset},
		{"to", 16, &pointer.to},
		{"bytes", 10, &pointer.requested_bytes},
	};

	if (kv_get_numbers(kv, numbers, 4) || !stack || !content || content->addr != addr)
		return -ERR_BAD_LINE;
	pointer.stack = arena_text(&sums->arena, stack, strlen(stack));
	array_grow((void **)&sums->single.pointers, &reader->pointer_cap,
		sums->single.pointer_count, sizeof(*sums->single.pointers));
	sums->single.pointers[sums->single.pointer_count++] = pointer;
	content->pointer_count++;
	return 0;
}

static int note_containers(struct sum_reader *reader, const struct kv *kv)
{
	struct single_blocks *single = &reader->sums->single;

	single->has_containers = true;
	return kv_get_number(kv, "left-out", 10, &single->container_left_count);
}

static int note_container(struct sum_reader *reader, const struct kv *kv)
{
	struct single_blocks *single = &reader->sums->single;
	struct dump_container container = {0};
	uint64_t bytes = 0;
	const struct kv_number numbers[] = {
		{"addr", 16, &container.addr},
		{"bytes", 10, &bytes},
		{"committed", 10, &container.committed_bytes},
		{"blocks", 10, &container.blocks.block_count},
		{"requested", 10, &container.blocks.requested_bytes},
		{"overhead", 10, &container.blocks.overhead_bytes},
	};
	int rc = kv_get_numbers(kv, numbers, sizeof(numbers) / sizeof(*numbers));

	if (rc)
		return rc;
	container.end = container.addr + bytes;
	if (!bytes || container.end < container.addr || bytes > HEAP_BYTES_MAX ||
		container.committed_bytes > bytes || container.blocks.block_count > INT32_MAX ||
		container.blocks.requested_bytes > container.committed_bytes ||
		container.blocks.overhead_bytes > container.committed_bytes)
		return -ERR_BAD_LINE;
	if (!single->wants_listed)
		return 0;
	array_grow((void **)&single->containers, &reader->container_cap, single->container_count,
		sizeof(*single->containers));
	single->containers[single->container_count++] = container;
	return 0;
}

static int note_name(struct sum_reader *reader, const struct kv *kv)
{
	if (!reader->sums->names)
		reader->sums->names = symbol_names_new();
	return symbol_names_note(reader->sums->names, kv);
}

int sum_reader_note(void *ctx, const char *kind, const struct kv *kv)
{
	static const struct {
		const char *kind;
		int (*read)(struct sum_reader *reader, const struct kv *kv);
	} notes[] = {
		{"warning", note_warning},
		{"module", note_module},
		{"heap", note_heap},
		{"stackless", note_stackless},
		{"reach", note_reach},
		{"blocks", note_blocks},
		{"name", note_name},
		{"content", note_content},
		{"pointer", note_pointer},
		{"containers", note_containers},
		{"container", note_container},
		{"tracer", note_tracer},
		{"sample", note_sample},
		{"incomplete", note_incomplete},
	};

	struct sum_reader *reader = ctx;
	int rc;

	for (size_t i = 0; i < sizeof(notes) / sizeof(*notes); i++) {
		if (!strcmp(kind, notes[i].kind))
			return notes[i].read(reader, kv);
	}
	rc = balance_note(&reader->balance, &reader->sums->arena, kind, kv);
	return rc == 1 ? note_head(reader, kind, kv) : rc;
}

static void add(struct dump_warnings *warnings, const struct dump_sums *first, size_t number)
{
	array_grow((void **)&warnings->items, &warnings->cap, warnings->count,
		sizeof(*warnings->items));
	warnings->items[warnings->count++] =
		(struct dump_warning){.first = first, .number = number, .dump_count = 1};
}

void dump_warnings_gather(
	struct dump_warnings *warnings, const struct dump_sums *dumps, size_t count)
{
	const struct dump_sums **last =
		xcalloc(count * WARNINGS_MAX, sizeof(*last)); /* last dump with the warning */
	struct dump_warning *rest = NULL; /* warnings that are only counted */
	struct table numbers; /* maps a warning's text to its number */

	*warnings = (struct dump_warnings){0};
	table_init(&numbers);
	for (const struct dump_sums *dump = dumps; dump < dumps + count; dump++) {
		for (size_t i = 0; i < dump->quality.warning_count && i < WARNINGS_MAX; i++) {
			const char *text = dump->quality.warnings[i];
			const uint64_t *known = table_find(&numbers, text, strlen(text));
			size_t number = known ? (size_t)*known : warnings->count;

			if (known) {
				warnings->items[number].dump_count += last[number] != dump;
			} else {
				table_add(&numbers, text, strlen(text), number);
				add(warnings, dump, i);
			}
			last[number] = dump;
		}
	}
	for (const struct dump_sums *dump = dumps; dump < dumps + count; dump++) {
		if (dump->quality.warning_count <= WARNINGS_MAX)
			continue;
		if (rest)
			rest->dump_count++;
		else
			add(warnings, dump, WARNINGS_MAX);
		rest = &warnings->items[warnings->count - 1];
		rest->more += dump->quality.warning_count - WARNINGS_MAX;
	}
	table_release(&numbers);
	free(last);
}

void dump_warnings_release(struct dump_warnings *warnings)
{
	free(warnings->items);
	*warnings = (struct dump_warnings){0};
}

void dump_warning_words(struct buf *words, const struct dump_warning *warning)
{
	if (warning->number < WARNINGS_MAX)
		buf_add_text(words, warning->first->quality.warnings[warning->number]);
	else
		buf_printf(words, "%zu more warning%s not shown", warning->more,
			text_plural(warning->more));
	if (warning->dump_count > 1)
		buf_printf(words, " (in %zu dumps; this is the first)", warning->dump_count);
}
