#include "diff/match/place_names.h"

#include <stdlib.h>
#include <string.h>

#include "core/buf.h"

void names_init(
	struct names *names, const struct places *places, const struct symbol_options *options)
{
	*names = (struct names){.places = places, .options = options};
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

static uint32_t hash_place(const struct names *names, const struct place *place)
{
	struct hasher hasher = hasher_begin(&names->index.key);

	hasher_add(&hasher, place->unit);
	hasher_add(&hasher, place->offset);
	return hasher_end(&hasher);
}

static uint32_t find(const struct names *names, const struct place *place, uint32_t hash)
{
	struct hash_probe probe = hash_index_probe(&names->index, hash);
	uint32_t number;

	do
		number = hash_index_next(&names->index, &probe);
	while (number != INDEX_NONE && !same_place(&names->list[number].place, place));
	return number;
}

const struct named_place *names_find(const struct names *names, const struct place *place)
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
	const struct symbol_names *carried = names->places->dumps[dump].sums->names;

	return carried && symbol_names_find(carried, addr).count;
}

/* Lets the place be that of another dump, if that has the module. */
static bool move_to(const struct places *places, struct named_place *named, size_t dump)
{
	const struct places_dump *of = &places->dumps[dump];
	size_t rank = (size_t)named->place.unit - 1;

	if (named->module && of->first[rank] == UINT32_MAX)
		return false;
	named->dump = (uint32_t)dump;
	if (named->module)
		named->module = &of->sums->modules[of->first[rank]];
	return true;
}

/* Lets the newest dump that carries a name for the place speak, else the newest that has its
 * module: whichever dump asks, the answer is the same. */
static void choose_dump(const struct names *names, struct named_place *named)
{
	const struct places *places = names->places;
	struct named_place other = *named;

	for (size_t i = 0; i < places->carrier_count; i++) {
		if (move_to(places, &other, places->carriers[i]) &&
			is_carried(names, other.dump, addr_of(&other))) {
			*named = other;
			return;
		}
	}
	for (size_t dump = places->dump_count; dump--;) {
		if (move_to(places, named, dump))
			return;
	}
}

/* A dump may carry a name where choose_dump() does not look: for a second copy of a file, or for
 * a module that it no longer has. Of several such the newest dump's, and lowest, is taken. */
static void choose_aside(
	const struct names *names, struct named_place *named, const struct named_place *aside)
{
	const struct places_dump *of = &names->places->dumps[aside->dump];
	uint64_t addr = addr_of(aside);

	if (of->first[aside->place.unit - 1] == UINT32_MAX ||
		&of->sums->modules[of->first[aside->place.unit - 1]] != aside->module) {
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

static int add(struct names *names, const struct named_place *wanted, uint32_t hash)
{
	if (names->count >= INDEX_NONE - 1 ||
		array_grow((void **)&names->list, &names->cap, names->count, sizeof(*wanted)) ||
		hash_index_add(&names->index, hash, (uint32_t)names->count))
		return -ERR_NOMEM;
	names->list[names->count] = *wanted;
	choose_dump(names, &names->list[names->count++]);
	return 0;
}

int names_want(struct names *names, size_t dump, uint64_t addr)
{
	struct place_module found;
	struct named_place wanted = {
		.place = place_of(names->places, dump, addr, &found), .dump = (uint32_t)dump};
	uint32_t hash = hash_place(names, &wanted.place);
	uint32_t number = find(names, &wanted.place, hash);

	wanted.module = found.module;
	if (number == INDEX_NONE) {
		number = (uint32_t)names->count;
		if (add(names, &wanted, hash))
			return -ERR_NOMEM;
	}
	if (wanted.module && number >= names->resolved_count)
		choose_aside(names, &names->list[number], &wanted);
	return 0;
}

int names_resolve(struct names *names, struct err *err)
{
	size_t first = names->resolved_count, count = names->count - first;
	struct named_place *wanted = names->list + first;
	struct symbol_query *queries;
	int rc;

	if (!count)
		return 0;
	if (!names->symbolizer)
		names->symbolizer = symbolizer_new(names->options, err);
	if (!names->symbolizer)
		return err ? -(int)err->code : -ERR_NOMEM;
	queries = calloc(count, sizeof(*queries));
	if (!queries)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	for (size_t i = 0; i < count; i++)
		queries[i] = (struct symbol_query){.addr = addr_of(&wanted[i]),
			.module = wanted[i].module,
			.names = names->places->dumps[wanted[i].dump].sums->names};
	rc = symbolizer_resolve(names->symbolizer, queries, count, err);
	for (size_t i = 0; !rc && i < count; i++)
		wanted[i].found = queries[i].found;
	if (!rc)
		names->resolved_count = names->count;
	free(queries);
	return rc;
}

const char *names_trouble(const struct names *names)
{
	return names->symbolizer ? symbolizer_trouble(names->symbolizer) : NULL;
}

static const char *file_of(const struct symbol *symbol)
{
	return symbol->file ? path_base(symbol->file) : "";
}

/* Of the file its name alone: another build may have been made in another folder. */
static int symbol_order(const struct symbol *a, const struct symbol *b)
{
	int order = strcmp(a->function, b->function);

	if (!order)
		order = strcmp(file_of(a), file_of(b));
	return order || a->line == b->line ? order : a->line < b->line ? -1 : 1;
}

static int by_symbols(const void *a, const void *b)
{
	const struct named_place *const *x = a, *const *y = b;
	const struct symbols *left = &(*x)->found, *right = &(*y)->found;

	for (size_t i = 0; i < left->count && i < right->count; i++) {
		int order = symbol_order(&left->list[i], &right->list[i]);

		if (order)
			return order;
	}
	return left->count < right->count ? -1 : left->count > right->count;
}

int names_classify(struct names *names)
{
	struct named_place **named = calloc(names->count + 1, sizeof(struct named_place *));
	size_t count = 0;
	uint32_t class = 0;

	if (!named)
		return -ERR_NOMEM;
	for (size_t i = 0; i < names->count; i++) {
		if (names->list[i].found.count)
			named[count++] = &names->list[i];
	}
	qsort(named, count, sizeof(*named), by_symbols);
	for (size_t i = 0; i < count; i++) {
		if (!i || by_symbols(&named[i - 1], &named[i]))
			class ++;
		named[i]->class = class;
	}
	free(named);
	return 0;
}
