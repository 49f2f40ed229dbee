/*
 * Profiles for pprof: profile.proto, as defined in pprof's sources.
 *
 * The tables of a profile refer to each other by number, and may be in any order. Therefore, the
 * whole profile is read into memory. The first pass collects the tables, the second pass reads the
 * samples. Each length, index and reference is checked; a profile with a wrong one is refused. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "core/dump/dump.h"
#include "diff/read/foreign.h"
#include "diff/read/read_dump.h"
#include "diff/read/text_sums.h"

#define PROFILE_BYTES_MAX ((size_t)512 << 20) /* unpacked */
#define STEP_BYTES 65536
#define NAME_BYTES_MAX 4095 /* of a function, file or module */

/* ---------------------------------------------------------------- protobuf */

/* A message, or the packed numbers of a field. */
struct proto {
	const unsigned char *at, *end;
};

struct proto_field {
	unsigned number;
	bool is_bytes; /* `bytes` is valid; otherwise `value` */
	uint64_t value;
	struct proto bytes;
};

static bool read_varint(struct proto *proto, uint64_t *value)
{
	*value = 0;
	for (unsigned shift = 0; shift < 64 && proto->at < proto->end; shift += 7) {
		unsigned char byte = *proto->at++;

		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* Reads the next field. Returns 1, 0 at the end, or -1 if the field is malformed. */
static int next_field(struct proto *proto, struct proto_field *field)
{
	uint64_t tag, len = 0;

	if (proto->at == proto->end)
		return 0;
	*field = (struct proto_field){0};
	if (!read_varint(proto, &tag) || tag >> 3 > UINT32_MAX)
		return -1;
	field->number = (unsigned)(tag >> 3);
	switch (tag & 7) {
	case 0: return read_varint(proto, &field->value) ? 1 : -1;
	case 1: len = 8; break;
	case 5: len = 4; break;
	case 2:
		field->is_bytes = true;
		if (read_varint(proto, &len))
			break;
		return -1;
	default: return -1;
	}
	if (len > (uint64_t)(proto->end - proto->at))
		return -1;
	field->bytes = (struct proto){proto->at, proto->at + len};
	proto->at += len;
	return 1;
}

/* Gets the next number of a repeated field, which may be packed. Returns 1, 0 at the end, or -1. */
static int next_number(struct proto_field *field, uint64_t *value)
{
	if (field->is_bytes) {
		if (field->bytes.at == field->bytes.end)
			return 0;
		return read_varint(&field->bytes, value) ? 1 : -1;
	}
	*value = field->value;
	field->is_bytes = true;
	field->bytes = (struct proto){0};
	return 1;
}

/* ---------------------------------------------------------------- tables */

/* Kinds of messages in a profile, which are also their field numbers. */
enum profile_part {
	PART_TYPE = 1,
	PART_SAMPLE,
	PART_MAPPING,
	PART_LOCATION,
	PART_FUNCTION,
	PART_STRING,
	PART_TIME_NS = 9,
	PART_PERIOD_TYPE = 11,
	PART_PERIOD,
	PARTS,
};

#define MEMBERS 7 /* the members of a message that are read have numbers below this */

/* A row of a table: the numbers in a message, indexed by field. */
struct profile_item {
	uint64_t members[MEMBERS];
	struct proto lines; /* of a location: the whole message */
	/* frames of a location, as a range in `frames`; the count is 0 until they are needed */
	size_t frame_at, frame_count;
};

struct profile_table {
	struct profile_item *items;
	size_t count, cap;
	struct u64map ids; /* maps an id to an index; types and facts have no ids */
};

struct profile_reader {
	struct text_sums texts;
	struct proto whole;
	struct profile_table tables[PARTS]; /* indexed by part; no samples and strings */
	const char **strings;
	size_t string_count, string_cap;
	uint64_t period, time_ns;
	size_t bytes_at, blocks_at; /* indexes of the types that are read; SIZE_MAX: no blocks */
	uint64_t *frames; /* numbers of texts, of all locations */
	size_t frame_count, frame_cap;
	struct buf text;
	size_t used_bytes; /* by tables, frames and stacks */
	const char *why; /* why the profile is refused, or NULL */
};

#define MALFORMED "damaged: a field is malformed"
#define MISSING "damaged: it refers to something that it does not contain"

static int refuse(struct profile_reader *reader, const char *why)
{
	reader->why = reader->why ? reader->why : why;
	return -1;
}

/* Counts memory that a small profile could multiply, because its items refer to each other. */
static int use_memory(struct profile_reader *reader, size_t bytes)
{
	reader->used_bytes += bytes;
	return reader->used_bytes > PROFILE_BYTES_MAX ? refuse(reader, "too large") : 0;
}

static int read_members(
	struct profile_reader *reader, struct profile_item *item, struct proto bytes)
{
	struct proto_field field;
	int rc;

	*item = (struct profile_item){.lines = bytes};
	while ((rc = next_field(&bytes, &field)) > 0) {
		if (field.number < MEMBERS && !field.is_bytes)
			item->members[field.number] = field.value;
	}
	return rc < 0 ? refuse(reader, MALFORMED) : 0;
}

#define STRING_BYTES 24 /* approximate memory for a string, besides its bytes */

/* Adds a string. A NUL ends it. */
static int add_string(struct profile_reader *reader, struct proto bytes)
{
	const size_t len = (size_t)(bytes.end - bytes.at);

	array_grow((void **)&reader->strings, &reader->string_cap, reader->string_count,
		sizeof(*reader->strings));
	reader->strings[reader->string_count++] = arena_text(&reader->texts.sums->arena,
		(const char *)bytes.at, len < NAME_BYTES_MAX ? len : NAME_BYTES_MAX);
	return use_memory(reader, STRING_BYTES + len);
}

static int add_item(struct profile_reader *reader, enum profile_part part, struct proto bytes)
{
	struct profile_table *table = &reader->tables[part];
	uint32_t number = (uint32_t)table->count;
	struct profile_item *item;

	if (part == PART_STRING)
		return add_string(reader, bytes);
	array_grow((void **)&table->items, &table->cap, table->count, sizeof(*table->items));
	item = &table->items[table->count++];
	if (use_memory(reader, sizeof(*item)) || read_members(reader, item, bytes))
		return -1;
	/* the id is member 1 of every message with an id */
	if (part != PART_TYPE && part != PART_PERIOD_TYPE &&
		!u64map_add(&table->ids, item->members[1], &number))
		return refuse(reader, "damaged: an id occurs twice");
	return 0;
}

/* First pass: collects all tables. */
static int read_tables(struct profile_reader *reader)
{
	struct proto whole = reader->whole;
	struct proto_field field;
	int rc;

	while ((rc = next_field(&whole, &field)) > 0) {
		const unsigned part = field.number;

		if (field.is_bytes && part && part != PART_SAMPLE &&
			(part <= PART_STRING || part == PART_PERIOD_TYPE))
			rc = add_item(reader, (enum profile_part)part, field.bytes);
		else if (!field.is_bytes && part == PART_PERIOD)
			reader->period = field.value;
		else if (!field.is_bytes && part == PART_TIME_NS)
			reader->time_ns = field.value;
		if (rc < 0)
			return rc;
	}
	return rc < 0 ? refuse(reader, MALFORMED) : 0;
}

/* Returns the item with an id, or NULL. */
static struct profile_item *find_item(
	struct profile_reader *reader, enum profile_part part, uint64_t id)
{
	uint32_t index;

	if (u64map_find(&reader->tables[part].ids, id, &index))
		return &reader->tables[part].items[index];
	refuse(reader, MISSING);
	return NULL;
}

static const char *string_of(struct profile_reader *reader, uint64_t index)
{
	if (index < reader->string_count)
		return reader->strings[index];
	refuse(reader, MISSING);
	return "";
}

/* ---------------------------------------------------------------- types of values */

/* Returns the index of the last type with this name, or SIZE_MAX. */
static size_t find_type(struct profile_reader *reader, const char *name)
{
	const struct profile_table *types = &reader->tables[PART_TYPE];

	for (size_t i = types->count; i; i--) {
		if (!strcmp(string_of(reader, types->items[i - 1].members[1]), name))
			return i - 1;
	}
	return SIZE_MAX;
}

/* Chooses the types that are read. Adds a warning if the choice is not obvious. */
static int choose_types(struct profile_reader *reader)
{
	const struct profile_table *types = &reader->tables[PART_TYPE];
	const struct profile_item *type;
	struct buf *objects = &reader->text;
	const char *name;
	char words[100];

	if (!types->count)
		return refuse(reader, "damaged: it has no types of values");
	reader->bytes_at = find_type(reader, "inuse_space");
	if (reader->bytes_at == SIZE_MAX)
		reader->bytes_at = find_type(reader, "alloc_space");
	if (reader->bytes_at == SIZE_MAX)
		reader->bytes_at = types->count - 1;
	type = &types->items[reader->bytes_at];
	name = string_of(reader, type->members[1]);
	if (types->count > 1 && strcmp(name, "inuse_space") != 0) {
		snprintf(words, sizeof(words), "of its %zu types of values, %.40s is read",
			types->count, name);
		sums_warn(reader->texts.sums, text_harmless(words));
	}
	reader->blocks_at = SIZE_MAX;
	if (strlen(name) >= 5 && !strcmp(name + strlen(name) - 5, "space")) {
		buf_printf(objects, "%.*sobjects", (int)strlen(name) - 5, name);
		reader->blocks_at = find_type(reader, objects->data);
	}
	reader->texts.sums->quality.lacks_blocks = reader->blocks_at == SIZE_MAX;
	return strcmp(string_of(reader, type->members[2]), "bytes") != 0 ?
		       refuse(reader, "its values are not bytes") :
		       0;
}

/* ---------------------------------------------------------------- frames */

/* Stores the module of a location in `text`, and `mark` after it. Characters that are signs in frames
 * become '_'. Returns false if the location is in no module. */
static bool add_module(
	struct profile_reader *reader, const struct profile_item *mapping, const char *mark)
{
	const char *path = mapping ? string_of(reader, mapping->members[5]) : "",
		   *name = path + strlen(path);

	while (name > path && name[-1] != '/' && name[-1] != '\\')
		name--;
	buf_clear(&reader->text);
	for (; *name; name++)
		buf_add(&reader->text, strchr(":<>\"|*!+", *name) ? "_" : name, 1);
	if (!reader->text.len)
		return false;
	buf_add_text(&reader->text, mark);
	return true;
}

/* Makes the text "MODULE!FUNCTION+0 (FILE, LINE)". The offset shows frame_parse() where the function
 * ends. In a profile that hdiff wrote, the function contains the module. */
static int make_line(struct profile_reader *reader, const struct profile_item *mapping,
	const struct profile_item *line)
{
	struct profile_item *function = find_item(reader, PART_FUNCTION, line->members[1]);
	struct buf *text = &reader->text;
	const char *name, *file;
	size_t len;

	if (!function)
		return -1;
	name = string_of(
		reader, function->members[2] ? function->members[2] : function->members[3]);
	file = string_of(reader, function->members[4]);
	len = strcspn(name, "!");
	if (add_module(reader, mapping, "!") && name[len] && len && len < text->len &&
		!memcmp(name, text->data, len) && strchr("!.", text->data[len]))
		buf_clear(text);
	buf_printf(text, "%s+0", *name ? name : "?");
	if (*file && line->members[2] && line->members[2] <= UINT32_MAX)
		buf_printf(text, " (%s, %" PRIu64 ")", file, line->members[2]);
	return 0;
}

/* Makes the text of a location without functions: "MODULE+OFFSET : ADDRESS", or "ADDRESS". */
static void make_addr(
	struct profile_reader *reader, const struct profile_item *mapping, uint64_t addr)
{
	if (add_module(reader, mapping, "+"))
		buf_printf(&reader->text, "%" PRIX64 " : ",
			addr - mapping->members[2] + mapping->members[4]);
	buf_printf(&reader->text, "%08" PRIX64, addr);
}

static int add_frame(struct profile_reader *reader, const char *mark)
{
	buf_add_text(&reader->text, mark);
	array_grow((void **)&reader->frames, &reader->frame_cap, reader->frame_count,
		sizeof(*reader->frames));
	reader->frames[reader->frame_count++] =
		text_sums_frame(&reader->texts, reader->text.data, reader->text.len);
	return use_memory(reader, reader->text.len);
}

/* Makes the frames of a location: one for each function, the innermost first. All except the last
 * one are inlined. */
static int make_frames(struct profile_reader *reader, struct profile_item *location)
{
	const struct profile_item *mapping =
		location->members[2] ? find_item(reader, PART_MAPPING, location->members[2]) : NULL;
	struct proto bytes = location->lines;
	struct proto_field field;
	struct profile_item line;
	bool has_line = false;

	location->frame_at = reader->frame_count;
	while (next_field(&bytes, &field) > 0) {
		if (field.number != 4 || !field.is_bytes)
			continue;
		if (has_line && add_frame(reader, " [inline]"))
			return -1;
		if (read_members(reader, &line, field.bytes) || make_line(reader, mapping, &line))
			return -1;
		has_line = true;
	}
	if (!has_line)
		make_addr(reader, mapping, location->members[3]);
	if (add_frame(reader, ""))
		return -1;
	location->frame_count = reader->frame_count - location->frame_at;
	return reader->why ? -1 : 0;
}

/* ---------------------------------------------------------------- samples */

struct profile_sample {
	uint64_t frames[DUMP_FRAMES_MAX];
	size_t frame_count, value_count;
	struct block_totals blocks;
};

/* Adds the frames of a location. Of a very deep stack, keeps the innermost frames. */
static int add_location(struct profile_reader *reader, struct profile_sample *sample, uint64_t id)
{
	struct profile_item *location = find_item(reader, PART_LOCATION, id);

	if (!location || (!location->frame_count && make_frames(reader, location)))
		return -1;
	for (size_t i = 0; i < location->frame_count && sample->frame_count < DUMP_FRAMES_MAX; i++)
		sample->frames[sample->frame_count++] = reader->frames[location->frame_at + i];
	return 0;
}

static int add_value(struct profile_reader *reader, struct profile_sample *sample, uint64_t value)
{
	const size_t at = sample->value_count++;

	if (at != reader->bytes_at && at != reader->blocks_at)
		return 0;
	if (value > INT64_MAX)
		return refuse(
			reader, "of a difference, with negative values; give the two profiles");
	if (at == reader->bytes_at)
		sample->blocks.requested_bytes = value;
	else
		sample->blocks.block_count = value;
	return 0;
}

static int read_sample(
	struct profile_reader *reader, struct profile_sample *sample, struct proto bytes)
{
	struct proto_field field;
	uint64_t value;
	int rc, more = 0;

	sample->frame_count = sample->value_count = 0;
	sample->blocks = (struct block_totals){0};
	while (more >= 0 && (rc = next_field(&bytes, &field)) > 0) {
		const bool is_location = field.number == 1;

		while ((is_location || field.number == 2) &&
			(more = next_number(&field, &value)) > 0) {
			if (is_location ? add_location(reader, sample, value) :
					  add_value(reader, sample, value))
				return -1;
		}
	}
	if (rc || more < 0 || sample->value_count != reader->tables[PART_TYPE].count)
		return refuse(reader, "damaged: a sample is malformed");
	if (!sample->blocks.requested_bytes && !sample->blocks.block_count)
		return 0;
	if (use_memory(reader, sample->frame_count * sizeof(*sample->frames)))
		return -1;
	return text_sums_add(
		       &reader->texts, NULL, sample->frames, sample->frame_count, &sample->blocks) ?
		       refuse(reader, "damaged: " SUMS_TOO_LARGE) :
		       0;
}

/* Second pass: reads the samples. */
static int read_samples(struct profile_reader *reader)
{
	struct profile_sample *sample = xcalloc(1, sizeof(*sample));
	struct proto whole = reader->whole;
	struct proto_field field;
	int rc = 0;

	while (!rc && next_field(&whole, &field) > 0) {
		if (field.number == PART_SAMPLE && field.is_bytes)
			rc = read_sample(reader, sample, field.bytes);
	}
	free(sample);
	return rc;
}

/* ---------------------------------------------------------------- the profile */

/* Returns true for a message with only the name and unit of a type of values. */
static bool is_type(struct proto bytes)
{
	struct proto_field field;
	int rc, count = 0;

	for (; (rc = next_field(&bytes, &field)) > 0; count++) {
		if (field.is_bytes || (field.number != 1 && field.number != 2))
			return false;
	}
	return !rc && count;
}

/* Looks for the first type of values, before which other fields may be. */
bool pprof_is(const char *bytes, size_t len)
{
	struct proto whole = {(const unsigned char *)bytes, (const unsigned char *)bytes + len};
	struct proto_field field;

	while (next_field(&whole, &field) > 0 && field.number && field.number <= 15) {
		if (field.number == PART_TYPE || field.number == PART_PERIOD_TYPE)
			return field.is_bytes && is_type(field.bytes);
	}
	return false;
}

/* Records the time, and the mean distance of samples in allocated bytes. */
static void read_facts(struct profile_reader *reader)
{
	struct dump_sums *sums = reader->texts.sums;
	const struct profile_item *type = reader->tables[PART_PERIOD_TYPE].items;

	if (reader->time_ns <= INT64_MAX)
		sums->id.time_ms = (int64_t)(reader->time_ns / 1000000);
	if (type && reader->period > 1 && reader->period <= INT64_MAX &&
		!strcmp(string_of(reader, type->members[1]), "space") &&
		!strcmp(string_of(reader, type->members[2]), "bytes"))
		sums->quality.sample_bytes = reader->period;
}

static int read_bytes(
	struct buf *bytes, struct source *source, struct profile_reader *reader, struct err *err)
{
	int64_t got;

	do {
		buf_reserve(bytes, STEP_BYTES);
		got = source_read(source, bytes->data + bytes->len, STEP_BYTES, err);
		if (got == -ERR_CUT)
			return refuse(reader, "cut short: the compressed data is truncated");
		if (got < 0)
			return (int)got;
		bytes->len += (size_t)got;
		if (bytes->len > PROFILE_BYTES_MAX)
			return refuse(reader, "larger than 512 MiB");
	} while (got);
	return 0;
}

int pprof_read(struct dump_sums *sums, const char *path, struct source *source, struct err *err)
{
	struct profile_reader reader = {0};
	struct buf bytes;
	int rc;

	buf_init(&bytes);
	for (size_t i = 0; i < PARTS; i++)
		u64map_init(&reader.tables[i].ids);
	text_sums_begin(&reader.texts, sums, path);
	rc = read_bytes(&bytes, source, &reader, err);
	reader.whole = (struct proto){
		(const unsigned char *)bytes.data, (const unsigned char *)bytes.data + bytes.len};
	if (!rc)
		rc = read_tables(&reader);
	if (!rc)
		rc = choose_types(&reader);
	if (!rc)
		rc = read_samples(&reader);
	if (!rc)
		read_facts(&reader);
	text_sums_end(&reader.texts);
	if (reader.why)
		rc = err_set(err, ERR_NOT_DUMP, path, "a profile for pprof, %s", reader.why);
	for (size_t i = 0; i < PARTS; i++) {
		free(reader.tables[i].items);
		u64map_release(&reader.tables[i].ids);
	}
	free(reader.strings);
	free(reader.frames);
	buf_release(&reader.text);
	buf_release(&bytes);
	return rc;
}
