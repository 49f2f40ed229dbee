/* Names of locations: chooses the dump that provides each name, looks up names in batches, and
 * assigns classes to named locations. */
#include "diff/match/locations.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

void names_init(struct names *names, const struct locations *locations,
	const struct symbol_options *options)
{
	*names = (struct names){.locations = locations, .options = options};
	hash_index_init(&names->index);
}

void names_release(struct names *names)
{
	if (names->symbolizer)
		symbolizer_free(names->symbolizer);
	hash_index_release(&names->index);
	free(names->list);
	*names = (struct names){0};
}

static uint32_t hash_place(const struct names *names, const struct location *place)
{
	struct hasher hasher = hasher_begin(&names->index.key);

	hasher_add(&hasher, place->unit);
	hasher_add(&hasher, place->offset);
	return hasher_end(&hasher);
}

static uint32_t find(const struct names *names, const struct location *place, uint32_t hash)
{
	struct hash_probe probe = hash_index_probe(&names->index, hash);
	uint32_t number;

	do
		number = hash_index_next(&names->index, &probe);
	while (number != INDEX_NONE && !same_place(&names->list[number].place, place));
	return number;
}

const struct named_place *names_find(const struct names *names, const struct location *place)
{
	uint32_t number = find(names, place, hash_place(names, place));

	return number == INDEX_NONE ? NULL : &names->list[number];
}

static uint64_t addr_of(const struct named_place *named)
{
	return named->module ? named->module->base + named->place.offset : named->place.offset;
}

static bool is_carried(const struct names *names, size_t dump, uint64_t addr)
{
	const struct symbol_names *carried = names->locations->dumps[dump].sums->names;

	return carried && symbol_names_find(carried, addr).count;
}

/* Takes the name of a location from the given dump instead. Returns false if that dump lacks the
 * location's module. */
static bool move_to(const struct locations *locations, struct named_place *named, size_t dump)
{
	const struct places_dump *in = &locations->dumps[dump];
	size_t rank = (size_t)named->place.unit - 1;

	if (named->module && in->first[rank] == UINT32_MAX)
		return false;
	named->dump = (uint32_t)dump;
	if (named->module)
		named->module = &in->sums->module_list.items[in->first[rank]];
	return true;
}

/* Chooses the newest dump that contains a name for the location. Without such a dump, chooses the
 * newest dump with the location's module. The choice does not depend on the dump that requested the
 * name. */
static void choose_dump(const struct names *names, struct named_place *named)
{
	const struct locations *locations = names->locations;
	struct named_place other = *named;

	for (size_t i = 0; i < locations->carrier_count; i++) {
		if (move_to(locations, &other, locations->carriers[i]) &&
			is_carried(names, other.dump, addr_of(&other))) {
			*named = other;
			return;
		}
	}
	for (size_t dump = locations->dump_count; dump--;) {
		if (move_to(locations, named, dump))
			return;
	}
}

/* Chooses the name at `aside` if it is better. This covers locations in a second copy of a file or
 * in an unloaded module, which choose_dump() ignores. Prefers the newest dump, then the lowest
 * address. */
static void choose_aside(
	const struct names *names, struct named_place *named, const struct named_place *aside)
{
	const struct places_dump *in = &names->locations->dumps[aside->dump];
	uint64_t addr = addr_of(aside);

	if (in->first[aside->place.unit - 1] == UINT32_MAX ||
		&in->sums->module_list.items[in->first[aside->place.unit - 1]] != aside->module) {
		bool is_better = named->is_aside ? aside->dump > named->dump ||
							   (aside->dump == named->dump &&
								   addr < addr_of(named)) :
						   !is_carried(names, named->dump, addr_of(named));

		if (is_better && is_carried(names, aside->dump, addr)) {
			*named = *aside;
			named->is_aside = true;
		}
	}
}

static void add(struct names *names, const struct named_place *wanted, uint32_t hash)
{
	array_grow((void **)&names->list, &names->cap, names->count, sizeof(*wanted));
	hash_index_add(&names->index, hash, (uint32_t)names->count);
	names->list[names->count] = *wanted;
	choose_dump(names, &names->list[names->count++]);
}

void names_want(struct names *names, size_t dump, uint64_t addr)
{
	struct place_module found;
	struct named_place wanted = {
		.place = location_of(names->locations, dump, addr, &found), .dump = (uint32_t)dump};
	uint32_t hash = hash_place(names, &wanted.place);
	uint32_t number = find(names, &wanted.place, hash);

	wanted.module = found.module;
	if (number == INDEX_NONE) {
		number = (uint32_t)names->count;
		add(names, &wanted, hash);
	}
	if (wanted.module && number >= names->resolved_count)
		choose_aside(names, &names->list[number], &wanted);
}

void names_resolve(struct names *names)
{
	size_t first = names->resolved_count, count = names->count - first;
	struct named_place *wanted;
	struct symbol_query *queries;

	if (!count)
		return;
	wanted = names->list + first;
	if (!names->symbolizer)
		names->symbolizer = symbolizer_new(names->options, NULL);
	if (!names->symbolizer)
		return;
	queries = xcalloc(count, sizeof(*queries));
	for (size_t i = 0; i < count; i++)
		queries[i] = (struct symbol_query){.addr = addr_of(&wanted[i]),
			.module = wanted[i].module,
			.names = names->locations->dumps[wanted[i].dump].sums->names};
	symbolizer_resolve(names->symbolizer, queries, count);
	for (size_t i = 0; i < count; i++)
		wanted[i].found = queries[i].found;
	names->resolved_count = names->count;
	free(queries);
}

const char *names_trouble(const struct names *names)
{
	return names->symbolizer ? symbolizer_trouble(names->symbolizer) : NULL;
}

/* ---------------------------------------------------------------- classes */

/* Compares by function, including the functions inlined at the location. */
static int function_order(const struct named_place *a, const struct named_place *b)
{
	const struct symbols *x = &a->found, *y = &b->found;
	int order = 0;

	for (size_t i = 0; !order && i < x->count && i < y->count; i++)
		order = strcmp(x->list[i].function, y->list[i].function);
	return order ? order : number_order(x->count, y->count);
}

/* Returns the file's name without its folder. The folder may differ between builds. */
static const char *file_of(const struct symbol *symbol)
{
	return symbol->file ? module_path_base(symbol->file) : "";
}

/* Compares by source file. Both locations must have equal functions. */
static int file_order(const struct named_place *a, const struct named_place *b)
{
	int order = 0;

	for (size_t i = 0; !order && i < a->found.count; i++)
		order = strcmp(file_of(&a->found.list[i]), file_of(&b->found.list[i]));
	return order;
}

static int line_order(const struct named_place *a, const struct named_place *b)
{
	int order = file_order(a, b);

	for (size_t i = 0; !order && i < a->found.count; i++)
		order = number_order(a->found.list[i].line, b->found.list[i].line);
	return order;
}

/* Returns the offset from the start of the outermost function, or 0 if unknown. */
static uint64_t offset_of(const struct named_place *named)
{
	return named->found.list[named->found.count - 1].offset_bytes;
}

static int offset_order(const struct named_place *a, const struct named_place *b)
{
	int order = number_order(offset_of(a), offset_of(b));

	return order ? order : file_order(a, b);
}

/* A location to classify. */
struct asked_location {
	struct named_place *named;
	uint32_t group; /* group of the module, from 1; 0: in no module */
	uint32_t build; /* rank of the module, from 1; 0: in no module */
};

static int by_function(const void *a, const void *b)
{
	const struct asked_location *x = a, *y = b;
	int order = number_order(x->group, y->group);

	return order ? order : function_order(x->named, y->named);
}

static int by_line(const void *a, const void *b)
{
	const struct asked_location *x = a, *y = b;
	int order = line_order(x->named, y->named);

	return order ? order : number_order(x->build, y->build);
}

static int by_offset(const void *a, const void *b)
{
	const struct asked_location *x = a, *y = b;
	int order = offset_order(x->named, y->named);

	return order ? order : number_order(x->build, y->build);
}

struct classes {
	uint32_t last; /* last class assigned */
	size_t *line_counts; /* scratch, indexed by build; all 0 between uses */
};

static void class_all(struct classes *classes, struct asked_location *members, size_t count)
{
	classes->last += count != 0;
	for (size_t i = 0; i < count; i++)
		members[i].named->row_class = classes->last;
}

static void class_lines(struct classes *classes, struct asked_location *members, size_t count)
{
	qsort(members, count, sizeof(*members), by_line);
	for (size_t i = 0; i < count; i++) {
		if (!i || line_order(members[i - 1].named, members[i].named))
			classes->last++;
		members[i].named->row_class = classes->last;
	}
}

/* Assigns one class to all locations at the same offset if at least two builds have that offset.
 * Moves the other locations to the front and returns their number. */
static size_t class_offsets(struct classes *classes, struct asked_location *members, size_t count)
{
	size_t left = 0;

	qsort(members, count, sizeof(*members), by_offset);
	for (size_t from = 0, to; from < count; from = to) {
		struct asked_location *first = &members[from];

		for (to = from + 1; to < count && !offset_order(first->named, members[to].named);)
			to++;
		if (offset_of(first->named) && first->build != members[to - 1].build)
			class_all(classes, first, to - from);
		else
			for (size_t i = from; i < to; i++)
				members[left++] = members[i];
	}
	return left;
}

/* Returns true if one build has all the lines that occur in any build. Otherwise, lines may have
 * moved. */
static bool has_all_lines(struct classes *classes, struct asked_location *members, size_t count)
{
	size_t all = 0, most = 0;

	qsort(members, count, sizeof(*members), by_line);
	for (size_t i = 0; i < count; i++) {
		bool is_new = !i || line_order(members[i - 1].named, members[i].named);
		size_t *own = &classes->line_counts[members[i].build];

		all += is_new;
		*own += is_new || members[i].build != members[i - 1].build;
		most = *own > most ? *own : most;
	}
	for (size_t i = 0; i < count; i++)
		classes->line_counts[members[i].build] = 0;
	return all == most;
}

static void class_code(struct classes *classes, struct asked_location *members, size_t count)
{
	count = class_offsets(classes, members, count);
	if (has_all_lines(classes, members, count))
		class_lines(classes, members, count);
	else
		class_all(classes, members, count);
}

void names_classify(struct names *names, enum name_class by)
{
	static void (*const give[])(struct classes *, struct asked_location *, size_t) = {
		[CLASS_FUNCTION] = class_all,
		[CLASS_LINE] = class_lines,
		[CLASS_CODE] = class_code,
	};
	const struct module_ids *ranks = &names->locations->ranks;
	struct asked_location *members = xcalloc(names->count + 1, sizeof(*members));
	struct classes classes = {
		.line_counts = xcalloc(ranks->count + 1, sizeof(*classes.line_counts))};
	size_t count = 0;
	uint32_t function = 0;

	for (size_t i = 0; i < names->count; i++) {
		uint32_t build = (uint32_t)names->list[i].place.unit;

		if (names->list[i].found.count)
			members[count++] = (struct asked_location){
				&names->list[i], build ? ranks->group[build - 1] + 1 : 0, build};
	}
	qsort(members, count, sizeof(*members), by_function);
	for (size_t from = 0, to; from < count; from = to) {
		for (to = from + 1; to < count && !by_function(&members[from], &members[to]);)
			to++;
		function++;
		for (size_t i = from; i < to; i++)
			members[i].named->function = function;
		give[by](&classes, &members[from], to - from);
	}
	free(members);
	free(classes.line_counts);
}
