/* Search for the blocks to which something points.
 *
 * Each block becomes a place; places are sorted by address. Page tables find the place of an
 * address. Each pointer from one block to another becomes a link. At the end, blocks that are
 * reachable from roots are marked as held. The remaining blocks are grouped by the lost block from
 * which they are reachable. */
#include "snapshot/reach/reach.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/sorted.h"
#include "snapshot/target/target.h"

#define PAGE_BITS 12
#define CHUNK_BITS 26 /* binary logarithm of the number of addresses that share a page table */
#define CHUNK_PAGES ((size_t)1 << (CHUNK_BITS - PAGE_BITS))
/* Limit for the number of tables: TABLES_MIN, plus one per TABLE_BLOCKS blocks. If blocks are too
 * scattered for this limit, no tables are used, and the search takes longer. */
#define TABLES_MIN 512
#define TABLE_BLOCKS 4096
#define LINKS_MAX (UINT32_MAX - 1)
#define WORDS 64
#define STEPS 16 /* number of steps from a guess before all places are searched */
#define NO_PLACE UINT32_MAX
#define BY_START UINT32_C(0x80000000) /* flag of a link: the pointer is to the block's beginning */
#define BY_PART UINT32_C(0x40000000) /* flag of a link: only a part of a word is the pointer */
#define LINK_PLACE (BY_PART - 1)

/* Marks of a place. */
enum { IS_HELD = 1, IS_HELD_BY_START = 2, IS_SEEN = 4, IS_TAKEN = 8 };
/* Left shift of IS_HELD and IS_HELD_BY_START if only a part of the root's word is the pointer. */
#define PART_SHIFT 4

/* Special values of `with`. Any other value is a place: the lost block from which this block is
 * reachable. */
#define WITH_HELD UINT32_MAX
#define WITH_INTERIOR (UINT32_MAX - 1)

/* A block; places are sorted by address. */
struct block_place {
	uint64_t addr, bytes;
	uint32_t number; /* number of the block, in the order of reach_add() */
	unsigned marks;
};

/* A word that may be a pointer. `owner` is the place that contains the word, or NO_PLACE. */
struct found_word {
	uint64_t word;
	uint32_t owner;
	bool is_part;
};

struct reach {
	unsigned word_bytes;
	bool by_middle;
	struct block_place *places;
	size_t count, cap;
	/* For each page of each chunk: the index of the first place that begins in or after the
	 * page, plus one final entry. NULL: the chunk contains no block. `tables` itself is NULL if
	 * there would be too many tables; all places are then searched. */
	uint32_t **tables;
	uint64_t first_chunk, chunk_count; /* range of chunks in tables */
	/* The links of place i are links[first[i]] to links[first[i + 1] - 1]. */
	uint32_t *links, *first;
	size_t link_count, link_cap;
	bool has_too_many, has_parts;
	uint64_t half_min,
		/* Range of the blocks below 4 GiB. If half_span is 0, no half of a word is treated
		 * as an address. */
		half_span;
	size_t part_count; /* number of places that are reachable only through parts of words */
	size_t at; /* place that contains the memory being shown, or the next place */
	size_t begun; /* number of places whose `first` is set */
	/* Batch of words whose places are looked up together. The processor then waits only once
	 * for the memory that the look-ups need. */
	struct found_word words[WORDS];
	size_t word_count;
	/* Indexed by block number; used as scratch memory until the result is known. */
	uint32_t *with;
	size_t block_count;
};

/* ---------------------------------------------------------------- places of addresses */

struct reach *reach_new(unsigned bits, bool by_middle, size_t count)
{
	struct reach *reach = xcalloc(1, sizeof(*reach));

	reach->word_bytes = bits / 8;
	reach->by_middle = by_middle;
	reach->places = xmalloc((count + 1) * sizeof(*reach->places));
	reach->cap = count + 1;
	return reach;
}

static void free_tables(struct reach *reach)
{
	for (size_t i = 0; reach->tables && i < reach->chunk_count; i++)
		free(reach->tables[i]);
	free(reach->tables);
	reach->tables = NULL;
}

void reach_free(struct reach *reach)
{
	if (!reach)
		return;
	free_tables(reach);
	free(reach->places);
	free(reach->links);
	free(reach->first);
	free(reach->with);
	free(reach);
}

void reach_add(struct reach *reach, uint64_t addr, uint64_t bytes)
{
	array_grow((void **)&reach->places, &reach->cap, reach->count, sizeof(*reach->places));
	reach->places[reach->count] =
		(struct block_place){addr, bytes ? bytes : 1, (uint32_t)reach->count, 0};
	reach->count++;
}

static uint64_t end_of(const struct block_place *place)
{
	return place->addr + place->bytes;
}

static int by_addr(const void *a, const void *b)
{
	const struct block_place *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

/* Sorts the places. This is fast if they are mostly in order, as walkers find them. */
static void sort(struct reach *reach)
{
	size_t i = 1;

	while (i < reach->count && reach->places[i - 1].addr <= reach->places[i].addr)
		i++;
	if (i < reach->count)
		qsort(reach->places, reach->count, sizeof(*reach->places), by_addr);
}

/* Adds tables for the chunks that contain a place. Returns false if this would exceed the limit. */
static bool add_tables(struct reach *reach, size_t *left, const struct block_place *place)
{
	uint64_t last = ((end_of(place) - 1) >> CHUNK_BITS) - reach->first_chunk;

	for (uint64_t i = (place->addr >> CHUNK_BITS) - reach->first_chunk; i <= last; i++) {
		if (reach->tables[i])
			continue;
		if (!(*left)--)
			return false;
		reach->tables[i] = xcalloc(CHUNK_PAGES + 1, sizeof(**reach->tables));
	}
	return true;
}

static void make_tables(struct reach *reach)
{
	size_t left = TABLES_MIN + reach->count / TABLE_BLOCKS, place = 0;

	if (!reach->count)
		return;
	reach->first_chunk = reach->places->addr >> CHUNK_BITS;
	reach->chunk_count = ((end_of(&reach->places[reach->count - 1]) - 1) >> CHUNK_BITS) -
			     reach->first_chunk + 1;
	reach->tables = xcalloc((size_t)reach->chunk_count, sizeof(*reach->tables));
	for (size_t i = 0; i < reach->count; i++) {
		if (!add_tables(reach, &left, &reach->places[i])) {
			free_tables(reach);
			return;
		}
	}
	for (uint64_t chunk = 0; chunk < reach->chunk_count; chunk++) {
		for (uint64_t page = 0; reach->tables[chunk] && page <= CHUNK_PAGES; page++) {
			uint64_t addr =
				((reach->first_chunk + chunk) << CHUNK_BITS) + (page << PAGE_BITS);

			while (place < reach->count && reach->places[place].addr < addr)
				place++;
			reach->tables[chunk][page] = (uint32_t)place;
		}
	}
}

/* Returns the first place that begins after addr. */
static size_t place_behind(const struct reach *reach, uint64_t addr)
{
	return sorted_up_to(reach->places, reach->count, sizeof(*reach->places),
		offsetof(struct block_place, addr), addr);
}

void reach_ready(struct reach *reach)
{
	size_t count = 0;

	sort(reach);
	reach->block_count = reach->count;
	reach->with = xmalloc((reach->count + 1) * sizeof(*reach->with));
	for (size_t i = 0; i < reach->count; i++) {
		struct block_place *place = &reach->places[i];

		if (place->addr >= TARGET_SPACE_BYTES)
			continue;
		if (place->bytes > TARGET_SPACE_BYTES - place->addr)
			place->bytes = TARGET_SPACE_BYTES - place->addr;
		if (count && end_of(&reach->places[count - 1]) > place->addr)
			reach->places[count - 1].bytes =
				place->addr - reach->places[count - 1].addr;
		if (count && !reach->places[count - 1].bytes)
			count--;
		reach->places[count++] = *place;
	}
	reach->count = count;
	if (count && reach->word_bytes == 8 && reach->places->addr <= UINT32_MAX) {
		size_t behind = place_behind(reach, UINT32_MAX);
		uint64_t end = end_of(&reach->places[behind - 1]);

		reach->half_min = reach->places->addr;
		reach->half_span = (end <= UINT32_MAX ? end : UINT32_MAX) - reach->half_min;
	}
	reach->first = xcalloc(count + 1, sizeof(*reach->first));
	make_tables(reach);
}

/* Guesses which place of a page contains an address. Uses the page's table, and assumes that all
 * blocks in the page are of about the same size. */
static size_t guess(const uint32_t *table, uint64_t addr)
{
	const size_t page = addr >> PAGE_BITS & (CHUNK_PAGES - 1);
	const uint64_t offset = addr & ((1 << PAGE_BITS) - 1);

	return table[page] + (size_t)(offset * (table[page + 1] - table[page]) >> PAGE_BITS);
}

static bool is_before(const struct reach *reach, size_t place, uint64_t addr)
{
	return place < reach->count && reach->places[place].addr <= addr;
}

/* Returns the place that contains an address, or NO_PLACE. */
static uint32_t find(const struct reach *reach, uint64_t addr)
{
	const uint64_t chunk = (addr >> CHUNK_BITS) - reach->first_chunk;
	size_t behind;

	if (!reach->tables) {
		behind = place_behind(reach, addr);
	} else {
		if (chunk >= reach->chunk_count || !reach->tables[chunk])
			return NO_PLACE;
		behind = guess(reach->tables[chunk], addr);
		for (int i = 0; i < STEPS && is_before(reach, behind, addr); i++)
			behind++;
		for (int i = 0; i < STEPS && behind && !is_before(reach, behind - 1, addr); i++)
			behind--;
		if (is_before(reach, behind, addr) ||
			(behind && !is_before(reach, behind - 1, addr)))
			behind = place_behind(reach, addr);
	}
	return behind && addr < end_of(&reach->places[behind - 1]) ? (uint32_t)behind - 1 :
								     NO_PLACE;
}

bool reach_has_block(const struct reach *reach, uint64_t from, uint64_t end)
{
	size_t behind = place_behind(reach, from);

	return (behind && end_of(&reach->places[behind - 1]) > from) ||
	       (behind < reach->count && reach->places[behind].addr < end);
}

/* ---------------------------------------------------------------- pointers between blocks */

static bool may_be_half(const struct reach *reach, uint64_t half)
{
	return half - reach->half_min < reach->half_span;
}

static void handle_word(struct reach *reach, uint32_t owner, uint64_t word, bool is_part)
{
	uint32_t place = find(reach, word), link;
	bool by_start;

	if (place == NO_PLACE && word > UINT32_MAX && may_be_half(reach, (uint32_t)word)) {
		word = (uint32_t)word; /* the upper half is a separate number */
		is_part = true;
		place = find(reach, word);
	}

	while (owner != NO_PLACE && reach->begun <= owner)
		reach->first[reach->begun++] = (uint32_t)reach->link_count;
	if (place == NO_PLACE || place == owner)
		return;
	reach->has_parts |= is_part;
	by_start = reach->places[place].addr == word;
	if (!by_start && (!reach->by_middle || word < REACH_LOW))
		return;
	if (owner == NO_PLACE) {
		unsigned marks = by_start ? IS_HELD | IS_HELD_BY_START : IS_HELD;

		reach->places[place].marks |= is_part ? marks << PART_SHIFT : marks;
		return;
	}
	link = place | (by_start ? BY_START : 0) | (is_part ? BY_PART : 0);
	if (reach->link_count > reach->first[owner] && reach->links[reach->link_count - 1] == link)
		return;
	reach->has_too_many = reach->link_count >= LINKS_MAX;
	if (reach->has_too_many)
		return;
	array_grow(
		(void **)&reach->links, &reach->link_cap, reach->link_count, sizeof(*reach->links));
	reach->links[reach->link_count++] = link;
}

static void handle_words(struct reach *reach)
{
	for (size_t i = 0; reach->tables && i < reach->word_count; i++) {
		uint64_t word = reach->words[i].word;
		const uint32_t *table = reach->tables[(word >> CHUNK_BITS) - reach->first_chunk];
		const char *place;

		if (!table)
			continue;
		place = (const char *)&reach->places[guess(table, word)];
		for (int line = -1; line <= 1; line++)
			__builtin_prefetch(place + 64 * line);
	}
	for (size_t i = 0; i < reach->word_count; i++)
		handle_word(reach, reach->words[i].owner, reach->words[i].word,
			reach->words[i].is_part);
	reach->word_count = 0;
}

static void add_word(struct reach *reach, uint32_t owner, uint64_t word, bool is_part)
{
	reach->words[reach->word_count++] = (struct found_word){word, owner, is_part};
	if (reach->word_count == WORDS)
		handle_words(reach);
}

/* Adds the parts of a word that may be addresses although the whole word is not an address: the
 * word without a tag in its upper bits, and both halves. */
static void add_parts(struct reach *reach, uint32_t owner, uint64_t word)
{
	const uint64_t untagged = word & (TARGET_SPACE_BYTES - 1), min = reach->places->addr,
		       end = end_of(&reach->places[reach->count - 1]);

	if (untagged != word && untagged > UINT32_MAX && untagged >= min && untagged < end)
		add_word(reach, owner, untagged, true);
	if (may_be_half(reach, (uint32_t)word))
		add_word(reach, owner, (uint32_t)word, true);
	if (may_be_half(reach, word >> 32))
		add_word(reach, owner, word >> 32, true);
}

/* Shows memory that is either in a single block or outside all blocks. */
static void show_part(
	struct reach *reach, uint32_t owner, uint64_t addr, const unsigned char *bytes, size_t len)
{
	const uint64_t min = reach->places->addr,
		       span = end_of(&reach->places[reach->count - 1]) - min,
		       half_min = reach->half_min, half_span = reach->half_span;

	for (size_t i = -addr & (reach->word_bytes - 1); i + reach->word_bytes <= len;
		i += reach->word_bytes) {
		uint64_t word =
			reach->word_bytes == 8 ? bytes_u64(bytes + i) : bytes_u32(bytes + i);

		if (word - min < span)
			add_word(reach, owner, word, false);
		else if (word >= TARGET_SPACE_BYTES || (uint32_t)word - half_min < half_span ||
			 (word >> 32) - half_min < half_span)
			add_parts(reach, owner, word);
	}
}

void reach_show(
	struct reach *reach, uint64_t addr, const unsigned char *bytes, size_t len, bool is_root)
{
	const uint64_t end = addr + len;

	while (reach->count && addr < end) {
		const struct block_place *place;
		uint64_t stop = end;
		bool is_inside;

		while (reach->at < reach->count && end_of(&reach->places[reach->at]) <= addr)
			reach->at++;
		place = reach->at < reach->count ? &reach->places[reach->at] : NULL;
		is_inside = place && place->addr <= addr;
		if (is_inside && end_of(place) < stop)
			stop = end_of(place);
		else if (!is_inside && place && place->addr < stop)
			stop = place->addr;
		if (is_inside || is_root)
			show_part(reach, is_inside ? (uint32_t)reach->at : NO_PLACE, addr, bytes,
				(size_t)(stop - addr));
		bytes += stop - addr;
		addr = stop;
	}
}

void reach_root(struct reach *reach, uint64_t word)
{
	unsigned char bytes[8];

	for (int i = 0; i < 8; i++)
		bytes[i] = (unsigned char)(word >> 8 * i);
	if (reach->count)
		show_part(reach, NO_PLACE, 0, bytes, reach->word_bytes);
}

/* ---------------------------------------------------------------- lost blocks */

/* Marks all places that are reachable from held places. `by_parts`: parts of words also count as
 * pointers. Returns the number of held places. */
static size_t mark_held(struct reach *reach, bool by_parts)
{
	uint32_t *stack = reach->with;
	size_t depth = 0, held = 0;

	for (size_t i = 0; i < reach->count; i++) {
		struct block_place *place = &reach->places[i];

		if (by_parts)
			place->marks |= place->marks >> PART_SHIFT & (IS_HELD | IS_HELD_BY_START);
		if (place->marks & IS_HELD)
			stack[depth++] = (uint32_t)i;
	}
	held = depth;
	while (depth) {
		uint32_t place = stack[--depth];

		for (size_t i = reach->first[place]; i < reach->first[place + 1]; i++) {
			uint32_t to = reach->links[i] & LINK_PLACE;

			if (reach->links[i] & BY_PART && !by_parts)
				continue;
			if (!(reach->places[to].marks & IS_HELD)) {
				stack[depth++] = to;
				held++;
			}
			reach->places[to].marks |=
				reach->links[i] & BY_START ? IS_HELD | IS_HELD_BY_START : IS_HELD;
		}
	}
	return held;
}

/* Orders the lost places depth first: a place comes after all places that are reachable from it. In
 * a cycle without pointers from outside, the place with the lowest address comes last. `stack` and
 * `cursors` are scratch memory. */
static size_t order_lost(struct reach *reach, uint32_t *order, uint32_t *stack, uint32_t *cursors)
{
	size_t count = 0;

	for (size_t i = 0; i < reach->count; i++) {
		size_t depth = 0;

		if (reach->places[i].marks & (IS_HELD | IS_SEEN))
			continue;
		reach->places[i].marks |= IS_SEEN;
		stack[depth] = (uint32_t)i;
		cursors[depth++] = reach->first[i];
		while (depth) {
			uint32_t place = stack[depth - 1], to = NO_PLACE;
			uint32_t *cursor = &cursors[depth - 1];

			while (to == NO_PLACE && *cursor < reach->first[place + 1]) {
				to = reach->links[(*cursor)++] & LINK_PLACE;
				if (reach->places[to].marks & (IS_HELD | IS_SEEN))
					to = NO_PLACE;
			}
			if (to == NO_PLACE) {
				order[count++] = place;
				depth--;
			} else {
				reach->places[to].marks |= IS_SEEN;
				stack[depth] = to;
				cursors[depth++] = reach->first[to];
			}
		}
	}
	return count;
}

/* Assigns all lost places, beginning at the end of the order. The last unassigned place is not
 * reachable from other unassigned places, except in a cycle. */
static void assign_lost(struct reach *reach, const uint32_t *order, size_t count, uint32_t *stack)
{
	while (count--) {
		size_t depth = 0;

		if (reach->places[order[count]].marks & IS_TAKEN)
			continue;
		reach->places[order[count]].marks |= IS_TAKEN;
		stack[depth++] = order[count];
		while (depth) {
			uint32_t place = stack[--depth];

			reach->with[reach->places[place].number] = order[count];
			for (size_t i = reach->first[place]; i < reach->first[place + 1]; i++) {
				uint32_t to = reach->links[i] & LINK_PLACE;

				if (reach->places[to].marks & (IS_HELD | IS_TAKEN))
					continue;
				reach->places[to].marks |= IS_TAKEN;
				stack[depth++] = to;
			}
		}
	}
}

int reach_resolve(struct reach *reach, const char *name, struct err *err)
{
	uint32_t *order;
	size_t held, lost;

	handle_words(reach);
	while (reach->begun <= reach->count)
		reach->first[reach->begun++] = (uint32_t)reach->link_count;
	held = mark_held(reach, false);
	if (reach->has_parts)
		reach->part_count = mark_held(reach, true) - held;
	lost = reach->count - held - reach->part_count;
	/* WITH_HELD everywhere */
	memset(reach->with, 0xff, reach->block_count * sizeof(*reach->with));
	order = xmalloc((3 * lost + 1) * sizeof(*order));
	assign_lost(reach, order, order_lost(reach, order, order + lost, order + 2 * lost),
		order + lost);
	free(order);
	for (size_t i = 0; i < reach->count; i++) {
		if ((reach->places[i].marks & (IS_HELD | IS_HELD_BY_START)) == IS_HELD)
			reach->with[reach->places[i].number] = WITH_INTERIOR;
	}
	return reach->has_too_many ? err_set(err, ERR_LIMIT, name,
					     "%zu pointers to blocks; take the snapshot without -g",
					     reach->link_count) :
				     0;
}

size_t reach_part_count(const struct reach *reach)
{
	return reach->part_count;
}

struct reach_found reach_of(const struct reach *reach, size_t i)
{
	uint32_t with = reach->with[i];

	if (with == WITH_HELD || with == WITH_INTERIOR)
		return (struct reach_found){with == WITH_HELD ? BLOCK_HELD : BLOCK_INTERIOR, 0};
	if (reach->places[with].number == i)
		return (struct reach_found){BLOCK_LOST, 0};
	return (struct reach_found){BLOCK_LOST_WITH, reach->places[with].addr};
}
