/* What a dump says about itself: the notes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/parse.h"
#include "diff/read/dump_sums.h"
#include "diff/read/read_dump.h"

static const char *keep(struct dump_sums *sums, const char *text)
{
	return text ? arena_text(&sums->arena, text, strlen(text)) : NULL;
}

/* Most dumps have none. */
static int make_room(struct dump_sums *sums)
{
	if (sums->warnings)
		return 0;
	sums->left_out = arena_alloc(&sums->arena, WARNINGS_MAX * sizeof(*sums->left_out));
	if (sums->left_out)
		sums->warnings = arena_alloc(&sums->arena, WARNINGS_MAX * sizeof(*sums->warnings));
	return sums->warnings ? 0 : -ERR_NOMEM;
}

int sums_warn(struct dump_sums *sums, const char *text)
{
	if (sums->warning_count < WARNINGS_MAX) {
		const char *own = keep(sums, text);

		if (!own || make_room(sums))
			return -ERR_NOMEM;
		sums->warnings[sums->warning_count] = own;
	}
	sums->warning_count++;
	return 0;
}

static int note_warning(struct sum_reader *reader, const struct kv *kv)
{
	const char *text = kv_get(kv, "text");

	return text ? sums_warn(reader->sums, text) : 0;
}

/* hsnap says in a warning of its own, before the heaps, which ones it could not walk. */
static int warn_unwalked(struct dump_sums *sums, const struct kv *kv)
{
	uint64_t addr = 0, unwalked = 0;
	int rc = kv_get_number(kv, "unwalked", 10, &unwalked);
	char text[80];

	if (!rc)
		rc = kv_get_number(kv, "addr", 16, &addr);
	if (rc || !unwalked)
		return rc;
	sums->is_incomplete = true;
	snprintf(text, sizeof(text), "heap %" PRIX64 " ", addr);
	for (size_t i = 0; i < sums->warning_count && i < WARNINGS_MAX; i++) {
		if (!strncmp(sums->warnings[i], text, strlen(text)))
			return 0;
	}
	snprintf(text, sizeof(text), "heap %" PRIX64 " was not walked: only traced blocks count",
		addr);
	return sums_warn(sums, text);
}

static int note_dump(struct sum_reader *reader, const struct kv *kv)
{
	const char *time = kv_get(kv, "time");

	return time ? date_parse(time, &reader->sums->time_ms) : 0;
}

/* What core/dump/dump_scan.c makes of UMDH's banner. The first one counts. */
static int note_umdh(struct sum_reader *reader, const struct kv *kv)
{
	struct dump_sums *sums = reader->sums;
	const char *time = kv_get(kv, "time");
	int64_t time_ms = 0;
	uint32_t pid = 0;

	if (sums->banner_pid || sums->banner_time_ms || kv_get_u32(kv, "id", 10, &pid) ||
		(time && date_parse(time, &time_ms)))
		return 0;
	sums->banner_pid = pid;
	sums->banner_time_ms = time_ms;
	return 0;
}

void sums_take_banner(struct dump_sums *sums)
{
	if (!sums->time_ms && sums->banner_time_ms) {
		sums->time_ms = sums->banner_time_ms;
		sums->has_wall_time = true;
	}
	if (!sums->pid)
		sums->pid = sums->banner_pid;
}

static int note_process(struct sum_reader *reader, const struct kv *kv)
{
	const char *start = kv_get(kv, "start");
	int64_t start_ms = 0;
	uint32_t pid = 0, parent_pid = 0;
	int rc = kv_get_u32(kv, "id", 10, &pid);

	if (!rc)
		rc = kv_get_u32(kv, "parent", 10, &parent_pid);
	if (!rc && start)
		rc = date_parse(start, &start_ms);
	if (rc)
		return rc; /* the note is passed over, all of it */
	reader->sums->pid = pid;
	reader->sums->parent_pid = parent_pid;
	reader->sums->start_ms = start_ms;
	reader->sums->image = keep(reader->sums, kv_get(kv, "image"));
	return 0;
}

static int note_module(struct sum_reader *reader, const struct kv *kv)
{
	return module_list_note(&reader->modules, kv);
}

/* What the sums of this heap lack of the overhead, for their lines have whole bytes for each block. Whose it
 * is is not known. */
static int add_rest(struct block_totals *to, const struct kv *kv)
{
	uint64_t rest = 0;
	int rc = kv_get_number(kv, "rest-overhead", 10, &rest);

	if (rc || rest > UINT64_MAX - to->overhead_bytes)
		return -ERR_BAD_LINE;
	to->overhead_bytes += rest;
	return 0;
}

static int note_heap(struct sum_reader *reader, const struct kv *kv)
{
	struct stack_total cell = {.stack = STACK_NONE};
	struct block_totals *more = &cell.sums;
	uint64_t addr = 0;
	int rc = kv_get_number(kv, "stackless-blocks", 10, &more->block_count);

	if (!rc)
		rc = kv_get_number(kv, "stackless-requested", 10, &more->requested_bytes);
	if (!rc)
		rc = kv_get_number(kv, "stackless-overhead", 10, &more->overhead_bytes);
	if (!rc)
		rc = add_rest(more, kv);
	if (!rc)
		rc = kv_get_number(kv, "addr", 16, &addr);
	if (!rc)
		rc = warn_unwalked(reader->sums, kv); /* the last that can be malformed */
	if (rc || !(more->block_count || more->requested_bytes || more->overhead_bytes))
		return rc;
	if (sum_reader_total(reader, more)) {
		reader->is_over = true; /* not just a line to be passed over */
		return 0;
	}
	rc = shared_stacks_heap(&reader->pool, addr, &cell.heap);
	return rc ? rc : shared_stacks_count(&reader->pool, &cell, 1, false);
}

static int note_tracer(struct sum_reader *reader, const struct kv *kv)
{
	struct block_totals before = {0};
	uint64_t attached = 0;
	int rc = kv_get_number(kv, "attached", 10, &attached);

	if (!rc)
		rc = kv_get_number(kv, "before-blocks", 10, &before.block_count);
	if (!rc)
		rc = kv_get_number(kv, "before-requested", 10, &before.requested_bytes);
	if (rc)
		return rc;
	reader->sums->is_attached = attached != 0;
	reader->sums->before = before;
	return 0;
}

static int note_sample(struct sum_reader *reader, const struct kv *kv)
{
	return kv_get_number(kv, "bytes", 10, &reader->sums->sample_bytes);
}

static int note_incomplete(struct sum_reader *reader, const struct kv *kv)
{
	uint64_t missing = 0;
	int rc = kv_get_number(kv, "missing", 10, &missing);

	reader->sums->is_incomplete |= missing != 0;
	return rc;
}

static int note_name(struct sum_reader *reader, const struct kv *kv)
{
	if (!reader->sums->names)
		reader->sums->names = symbol_names_new();
	return reader->sums->names ? symbol_names_note(reader->sums->names, kv) : -ERR_NOMEM;
}

int sum_reader_note(void *ctx, const char *kind, const struct kv *kv)
{
	static const struct {
		const char *kind;
		int (*read)(struct sum_reader *reader, const struct kv *kv);
	} notes[] = {
		{"dump", note_dump},
		{"umdh", note_umdh},
		{"process", note_process},
		{"warning", note_warning},
		{"module", note_module},
		{"heap", note_heap},
		{"name", note_name},
		{"tracer", note_tracer},
		{"sample", note_sample},
		{"incomplete", note_incomplete},
	};

	for (size_t i = 0; i < sizeof(notes) / sizeof(*notes); i++) {
		if (!strcmp(kind, notes[i].kind))
			return notes[i].read(ctx, kv);
	}
	return 0;
}

static int add(struct dump_warnings *warnings, const struct dump_sums *first, size_t number)
{
	if (array_grow((void **)&warnings->items, &warnings->cap, warnings->count,
		    sizeof(*warnings->items)))
		return -ERR_NOMEM;
	warnings->items[warnings->count++] =
		(struct dump_warning){.first = first, .number = number, .dump_count = 1};
	return 0;
}

/* last[n]: the last dump that has warning number n. */
static int gather_one(struct dump_warnings *warnings, struct table *numbers,
	const struct dump_sums **last, const struct dump_sums *dump, size_t number)
{
	const char *text = dump->warnings[number];
	const uint64_t *known = table_find(numbers, text, strlen(text));

	if (!known) {
		last[warnings->count] = dump;
		if (table_add(numbers, text, strlen(text), warnings->count))
			return -ERR_NOMEM;
		return add(warnings, dump, number);
	}
	warnings->items[*known].dump_count += last[*known] != dump;
	last[*known] = dump;
	return 0;
}

/* How many there are that are counted only. */
static int gather_rest(struct dump_warnings *warnings, const struct dump_sums *dumps, size_t count)
{
	struct dump_warning *rest = NULL;

	for (size_t i = 0; i < count; i++) {
		if (dumps[i].warning_count <= WARNINGS_MAX)
			continue;
		if (rest)
			rest->dump_count++;
		else if (add(warnings, &dumps[i], WARNINGS_MAX))
			return -ERR_NOMEM;
		rest = &warnings->items[warnings->count - 1];
		rest->more += dumps[i].warning_count - WARNINGS_MAX;
	}
	return 0;
}

int dump_warnings_gather(
	struct dump_warnings *warnings, const struct dump_sums *dumps, size_t count)
{
	const struct dump_sums **last =
		calloc(count * WARNINGS_MAX + 1, sizeof(const struct dump_sums *));
	struct table numbers; /* of warnings, by text */
	int rc = last ? 0 : -ERR_NOMEM;

	*warnings = (struct dump_warnings){0};
	table_init(&numbers);
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; !rc && k < dumps[i].warning_count && k < WARNINGS_MAX; k++)
			rc = gather_one(warnings, &numbers, last, &dumps[i], k);
	}
	if (!rc)
		rc = gather_rest(warnings, dumps, count);
	table_release(&numbers);
	free(last);
	return rc;
}

void dump_warnings_release(struct dump_warnings *warnings)
{
	free(warnings->items);
	*warnings = (struct dump_warnings){0};
}

int dump_warning_words(struct buf *words, const struct dump_warning *warning)
{
	int rc = warning->number < WARNINGS_MAX ?
			 buf_add_text(words, warning->first->warnings[warning->number]) :
			 buf_printf(words, "and %zu more", warning->more);

	return rc || warning->dump_count < 2 ?
		       rc :
		       buf_printf(words, " (%zu dumps, of which this is the first)",
			       warning->dump_count);
}
