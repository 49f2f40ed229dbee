/*
 * pprof's profile.proto, as defined in pprof's sources: protobuf in gzip.
 *
 * Texts, functions, locations and mappings are numbered and written when they are first needed. A
 * mapping is a module with its addresses in the process. To compare profiles of two processes,
 * pprof subtracts the mapping's start from each address, and identifies a module by its build. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/text.h"
#include "diff/report/balance_text.h"
#include "diff/report/clean.h"
#include "diff/query/group.h"
#include "diff/report/graph.h"
#include "diff/report/report.h"

/* Field numbers. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE,
	PROFILE_MAPPING,
	PROFILE_LOCATION,
	PROFILE_FUNCTION,
	PROFILE_STRING,
	PROFILE_TIME_NS = 9,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD,
	PROFILE_COMMENT,
	TYPE_NAME = 1,
	TYPE_UNIT,
	SAMPLE_LOCATIONS = 1,
	SAMPLE_VALUES,
	SAMPLE_LABEL,
	LABEL_KEY = 1,
	LABEL_TEXT,
	MAPPING_ID = 1,
	MAPPING_START,
	MAPPING_END,
	MAPPING_FILE = 5,
	MAPPING_BUILD,
	/* first of four flags, which state that functions, files, lines and inlined functions are
	 * known; pprof then does not look them up */
	MAPPING_HAS_FUNCTIONS,
	MAPPING_HAS_INLINED = 10,
	LOCATION_ID = 1,
	LOCATION_MAPPING,
	LOCATION_ADDR,
	LOCATION_LINE,
	LINE_FUNCTION = 1,
	LINE_NUMBER,
	FUNCTION_ID = 1,
	FUNCTION_NAME,
	FUNCTION_FILE = 4,
};

/* Kinds of numbered objects. An object's key for finding its number is its protobuf message without
 * the number. */
enum pprof_kind { STRINGS, FUNCTIONS, LOCATIONS, MAPPINGS, PPROF_KINDS };

struct pprof {
	struct out *out;
	const struct view *view;
	struct table numbers[PPROF_KINDS];
	struct table modules; /* maps the address of a struct module to its mapping */
	struct buf message, part, text, clean;
};

/* ---------------------------------------------------------------- protobuf */

static void add_varint(struct buf *buf, uint64_t value)
{
	unsigned char bytes[10];
	size_t len = 0;

	for (; value >= 0x80; value >>= 7)
		bytes[len++] = (unsigned char)(value | 0x80);
	bytes[len++] = (unsigned char)value;
	buf_add(buf, bytes, len);
}

/* Adds a number field. Leaves out 0, because readers treat a missing field as 0. */
static void add_number(struct buf *buf, unsigned field, uint64_t value)
{
	if (!value)
		return;
	add_varint(buf, field << 3);
	add_varint(buf, value);
}

/* Adds a field that contains a message, a text or packed numbers. */
static void add_bytes(struct buf *buf, unsigned field, const void *bytes, size_t len)
{
	add_varint(buf, field << 3 | 2);
	add_varint(buf, len);
	buf_add(buf, bytes, len);
}

/* Writes a field of the profile. */
static void write_bytes(struct pprof *pprof, unsigned field, const void *bytes, size_t len)
{
	struct buf head;

	buf_init(&head);
	add_varint(&head, field << 3 | 2);
	add_varint(&head, len);
	out_write(pprof->out, head.data, head.len);
	out_write(pprof->out, bytes, len);
	buf_release(&head);
}

/* ---------------------------------------------------------------- numbered objects */

/* Returns the number of a key, from 1. Sets `*is_new` if the key had no number before. */
static uint64_t find_number(
	struct pprof *pprof, enum pprof_kind kind, const struct buf *key, bool *is_new)
{
	struct table *table = &pprof->numbers[kind];
	const uint64_t *known = table_find(table, key->data, key->len);

	*is_new = !known;
	if (known)
		return *known;
	table_add(table, key->data, key->len, table->count + 1);
	return table->count;
}

static uint64_t string_number(struct pprof *pprof, const char *text)
{
	struct buf *clean = &pprof->clean;
	uint64_t number;
	bool is_new;

	buf_clear(clean);
	buf_add_text(clean, "");
	clean_text(clean, text, true);
	number = find_number(pprof, STRINGS, clean, &is_new);
	if (is_new)
		write_bytes(pprof, PROFILE_STRING, clean->data, clean->len);
	return number - 1;
}

/* Returns the number of a message. Writes the message if it is new. */
static uint64_t message_number(
	struct pprof *pprof, enum pprof_kind kind, unsigned field, const struct buf *message)
{
	struct buf whole;
	bool is_new;
	uint64_t number = find_number(pprof, kind, message, &is_new);

	if (!is_new)
		return number;
	buf_init(&whole);
	add_number(&whole, 1, number); /* the id, in every kind of message */
	buf_add(&whole, message->data, message->len);
	write_bytes(pprof, field, whole.data, whole.len);
	buf_release(&whole);
	return number;
}

static uint64_t function_number(struct pprof *pprof, const struct graph_frame *frame)
{
	struct buf *part = &pprof->part;

	buf_clear(part);
	add_number(part, FUNCTION_NAME, string_number(pprof, frame->name));
	if (frame->frame && frame->frame->file)
		add_number(part, FUNCTION_FILE, string_number(pprof, frame->frame->file));
	return message_number(pprof, FUNCTIONS, PROFILE_FUNCTION, part);
}

/* ---------------------------------------------------------------- mappings */

static uint64_t mapping_number(struct pprof *pprof, const struct module *module)
{
	struct buf *part = &pprof->part, *text = &pprof->text;

	buf_clear(part);
	add_number(part, MAPPING_START, module->base);
	add_number(part, MAPPING_END, module->base + module->size_bytes);
	add_number(part, MAPPING_FILE, string_number(pprof, module_path_base(module->path)));
	/* The build is written in the form that symbol stores use. This is the identity of the PDB
	 * or, if no PDB is known, the time stamp and size of the image. */
	buf_clear(text);
	if (module->pdb_guid)
		buf_printf(text, "%s%" PRIX32, module->pdb_guid, module->pdb_age);
	else if (module->has_identity)
		buf_printf(text, "%08" PRIX32 "%" PRIx64, module->timestamp, module->size_bytes);
	if (text->len)
		add_number(part, MAPPING_BUILD, string_number(pprof, text->data));
	for (unsigned field = MAPPING_HAS_FUNCTIONS; field <= MAPPING_HAS_INLINED; field++)
		add_number(part, field, 1);
	return message_number(pprof, MAPPINGS, PROFILE_MAPPING, part);
}

/* Returns the mapping of a dump's module. The result is cached. */
static uint64_t module_number(struct pprof *pprof, const struct module *module)
{
	const uint64_t *known = table_find(&pprof->modules, &module, sizeof(module));
	uint64_t number;

	if (known)
		return *known;
	number = mapping_number(pprof, module);
	table_add(&pprof->modules, &module, sizeof(module), number);
	return number;
}

/* Returns the mapping of a frame. For an address, this is the mapping of a module of the dump. For
 * a text, it is a mapping without addresses. Returns 0 if the frame is in no module. */
static uint64_t frame_mapping(struct pprof *pprof, const struct row *row, const struct frame *frame)
{
	const struct comparison *comparison = pprof->view->comparison;
	const struct dump_sums *dump = comparison->dumps ? &comparison->dumps[row->dump] : NULL;
	const struct module *module = NULL;

	if (dump && frame->has_addr)
		module = module_of_return(
			dump->module_list.items, dump->module_list.count, frame->addr);
	if (module)
		return module_number(pprof, module);
	if (!frame->module)
		return 0;
	return mapping_number(pprof, &(struct module){.path = frame->module});
}

/* Writes the mapping of the program, which must be the first one. */
static void write_image(struct pprof *pprof)
{
	const struct comparison *comparison = pprof->view->comparison;
	const struct dump_sums *dump =
		comparison->dumps ? &comparison->dumps[comparison->dump_count - 1] : NULL;
	const char *image = dump && dump->id.image ? module_path_base(dump->id.image) : NULL;

	for (size_t i = 0; image && i < dump->module_list.count; i++) {
		const char *path = module_path_base(dump->module_list.items[i].path);

		if (text_same(path, strlen(path), image, strlen(image))) {
			module_number(pprof, &dump->module_list.items[i]);
			break;
		}
	}
}

/* ---------------------------------------------------------------- samples */

static void add_line(struct pprof *pprof, struct buf *location, const struct graph_frame *frame)
{
	uint64_t function = function_number(pprof, frame);
	struct buf *part = &pprof->part;

	buf_clear(part);
	add_number(part, LINE_FUNCTION, function);
	if (frame->frame)
		add_number(part, LINE_NUMBER, frame->frame->line);
	add_bytes(location, LOCATION_LINE, part->data, part->len);
}

/* Returns the location for the frame at `*count - 1`. If the frame is inlined, the location also
 * contains the outer functions, which are in the next frames. Subtracts the number of frames in the
 * location from `*count`. */
static uint64_t location_number(
	struct pprof *pprof, const struct row *row, const struct graph_stack *stack, size_t *count)
{
	const struct frame *frame = stack->frames[*count - 1].frame;
	struct buf location;
	uint64_t number;

	buf_init(&location);
	if (frame) {
		add_number(&location, LOCATION_MAPPING, frame_mapping(pprof, row, frame));
		/* A return address may already belong to the next line or function. The call before
		 * it does not. */
		if (frame->has_addr && frame->addr)
			add_number(&location, LOCATION_ADDR, frame->addr - 1);
	}
	do {
		frame = stack->frames[--*count].frame;
		add_line(pprof, &location, &stack->frames[*count]);
	} while (*count && frame && frame->is_inline && !pprof->view->is_inverted);
	number = message_number(pprof, LOCATIONS, PROFILE_LOCATION, &location);
	buf_release(&location);
	return number;
}

static void add_label(struct pprof *pprof, struct buf *sample, const char *key, const char *text)
{
	struct buf *part = &pprof->part;

	buf_clear(part);
	add_number(part, LABEL_KEY, string_number(pprof, key));
	add_number(part, LABEL_TEXT, string_number(pprof, text));
	add_bytes(sample, SAMPLE_LABEL, part->data, part->len);
}

static void write_sample(
	struct pprof *pprof, const struct row *row, const struct graph_stack *stack)
{
	const struct change *change = &stack->change;
	struct buf *sample = &pprof->message, numbers;
	char text[20];

	buf_init(&numbers);
	buf_clear(sample);
	for (size_t count = stack->count; count;)
		add_varint(&numbers, location_number(pprof, row, stack, &count));
	add_bytes(sample, SAMPLE_LOCATIONS, numbers.data, numbers.len);
	buf_clear(&numbers);
	if (!pprof->view->comparison->lacks_blocks)
		add_varint(&numbers, change->now.block_count - change->old.block_count);
	add_varint(&numbers, change->now.requested_bytes - change->old.requested_bytes);
	add_bytes(sample, SAMPLE_VALUES, numbers.data, numbers.len);
	if (row->heap && group_is_by_heap(pprof->view->group)) {
		snprintf(text, sizeof(text), "%" PRIX64, row->heap);
		add_label(
			pprof, sample, "heap", heap_name(row->heap) ? heap_name(row->heap) : text);
	}
	write_bytes(pprof, PROFILE_SAMPLE, sample->data, sample->len);
	buf_release(&numbers);
}

/* ---------------------------------------------------------------- the report */

static void write_type(struct pprof *pprof, unsigned field, const char *name, const char *unit)
{
	struct buf *message = &pprof->message;

	buf_clear(message);
	add_number(message, TYPE_NAME, string_number(pprof, name));
	add_number(message, TYPE_UNIT, string_number(pprof, unit));
	write_bytes(pprof, field, message->data, message->len);
}

/* Writes the sample types. pprof shows the last one by default. */
static void write_types(struct pprof *pprof)
{
	const char *what = graph_is_growth(pprof->view) ? "growth" : graph_what(pprof->view);
	char name[40];

	snprintf(name, sizeof(name), "%s_objects", what);
	if (!pprof->view->comparison->lacks_blocks)
		write_type(pprof, PROFILE_SAMPLE_TYPE, name, "count");
	snprintf(name, sizeof(name), "%s_space", what);
	write_type(pprof, PROFILE_SAMPLE_TYPE, name, "bytes");
	write_type(pprof, PROFILE_PERIOD_TYPE, "space", "bytes");
}

/* Writes the time, the period and the comments. */
static void write_facts(struct pprof *pprof)
{
	const struct comparison *comparison = pprof->view->comparison;
	const struct dump_sums *last =
		comparison->dumps ? &comparison->dumps[comparison->dump_count - 1] : NULL;
	struct buf *message = &pprof->message;
	struct buf words;

	buf_init(&words);
	graph_inputs(pprof->view, &words);
	buf_clear(message);
	if (last && last->id.time_ms > 0 && !last->id.has_wall_time)
		add_number(message, PROFILE_TIME_NS, (uint64_t)last->id.time_ms * 1000000);
	add_number(message, PROFILE_PERIOD,
		last && last->quality.sample_bytes ? last->quality.sample_bytes : 1);
	add_number(message, PROFILE_COMMENT, string_number(pprof, "hdiff " HSNAP_VERSION));
	add_number(message, PROFILE_COMMENT, string_number(pprof, words.data));
	buf_clear(&words);
	balance_text(&words, pprof->view);
	for (char *line = words.data, *end; line && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		add_number(message, PROFILE_COMMENT, string_number(pprof, line));
	}
	out_write(pprof->out, message->data, message->len);
	buf_release(&words);
}

void report_pprof(struct out *out, const struct report *report)
{
	struct pprof pprof = {.out = out, .view = report->views};
	const struct view *view = report->views;
	struct graph_stack stack;

	for (size_t i = 0; i < PPROF_KINDS; i++)
		table_init(&pprof.numbers[i]);
	table_init(&pprof.modules);
	graph_stack_init(&stack);
	string_number(&pprof, ""); /* must be the first string */
	write_types(&pprof);
	write_facts(&pprof);
	write_image(&pprof);
	for (size_t i = 0; i < graph_row_count(view) && !out->err.code; i++) {
		if (graph_stack_read(&stack, view, view->rows[i]))
			write_sample(&pprof, &view->comparison->rows[view->rows[i]], &stack);
	}
	graph_stack_release(&stack);
	for (size_t i = 0; i < PPROF_KINDS; i++)
		table_release(&pprof.numbers[i]);
	table_release(&pprof.modules);
	buf_release(&pprof.message);
	buf_release(&pprof.part);
	buf_release(&pprof.text);
	buf_release(&pprof.clean);
}
