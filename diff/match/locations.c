/* Locations of addresses: finds the module that contains an address, using a cache for each dump.
 * Also searches the modules of other dumps of the process. */
#include "diff/match/locations.h"

#include <string.h>

#include "core/base/hash.h"

#define GRANULE_BITS 16 /* Windows loads modules at multiples of this size */
#define GRANULE_MASK (((uint64_t)1 << GRANULE_BITS) - 1)
#define MEMO_BITS_MIN 3
#define MEMO_BITS_MAX 11
#define MEMO_STACKS 4 /* stacks per cache entry */

/* Returns the cache size as a power of two. The size is limited because a run may read many small
 * dumps, each with its own cache. */
static unsigned memo_bits(size_t stack_count)
{
	unsigned bits = MEMO_BITS_MIN;

	while (bits < MEMO_BITS_MAX && stack_count / MEMO_STACKS > (size_t)1 << bits)
		bits++;
	return bits;
}

static void dump_make(struct locations *locations, struct places_dump *dump)
{
	const struct dump_sums *sums = dump->sums;
	size_t ranks_bytes = locations->ranks.count * sizeof(*dump->first);

	dump->bases = arena_alloc(
		&locations->arena, (sums->module_list.count + 1) * sizeof(*dump->bases));
	dump->first = arena_alloc(&locations->arena, ranks_bytes + 1);
	dump->memo_bits = memo_bits(sums->stacks.count);
	dump->memo = arena_alloc(&locations->arena, sizeof(*dump->memo) << dump->memo_bits);
	memset(dump->memo, 0xff, sizeof(*dump->memo) << dump->memo_bits);
	memset(dump->first, 0xff, ranks_bytes);
	for (size_t i = sums->module_list.count; i--;) {
		dump->bases[i] = sums->module_list.items[i].base;
		dump->first[dump->ranks[i]] = (uint32_t)i;
	}
}

/* Returns true if two dumps have equal modules at equal addresses. An address then has the same
 * location in both dumps, even if it is found only in the modules of a third dump. */
static bool is_alike(const struct places_dump *a, const struct places_dump *b)
{
	const struct module *x = a->sums->module_list.items, *y = b->sums->module_list.items;

	if (a->sums->module_list.count != b->sums->module_list.count)
		return false;
	if (x == y && a->ranks == b->ranks)
		return true;
	for (size_t i = 0; i < a->sums->module_list.count; i++) {
		if (x[i].base != y[i].base || a->ranks[i] != b->ranks[i] ||
			x[i].size_bytes != y[i].size_bytes)
			return false;
	}
	return true;
}

static uint64_t hash_modules(const struct places_dump *dump, const struct hash_key *key)
{
	struct hasher hasher = hasher_begin(key);

	for (size_t i = 0; i < dump->sums->module_list.count; i++) {
		hasher_add(&hasher, dump->sums->module_list.items[i].base);
		hasher_add(&hasher, dump->ranks[i]);
		hasher_add(&hasher, dump->sums->module_list.items[i].size_bytes);
	}
	return hasher_end(&hasher);
}

static void find_alike(struct locations *locations)
{
	struct hash_key key = hash_key();
	struct u64map known;

	u64map_init(&known);
	for (size_t i = 0; i < locations->dump_count; i++) {
		const struct places_dump *dump = &locations->dumps[i];
		uint32_t *alike = &locations->alike[i];

		*alike = (uint32_t)i;
		u64map_add(&known, hash_modules(dump, &key), alike);
		if (!is_alike(&locations->dumps[*alike], dump))
			*alike = (uint32_t)i;
	}
	u64map_release(&known);
}

/* Links each dump to the nearest dumps with different modules. A dump with equal modules would give
 * the same results. */
static void link_dumps(struct locations *locations)
{
	struct places_dump *dumps = locations->dumps;

	for (size_t i = 1; i < locations->dump_count; i++)
		dumps[i].older = locations->alike[i] == locations->alike[i - 1] ?
					 dumps[i - 1].older :
					 &dumps[i - 1];
	for (size_t i = locations->dump_count; i-- > 1;)
		dumps[i - 1].newer =
			locations->alike[i] == locations->alike[i - 1] ? dumps[i].newer : &dumps[i];
}

void locations_make(struct locations *locations, const struct dump_sums *dumps, size_t count,
	bool is_one_process)
{
	*locations = (struct locations){.sums = dumps, .dump_count = count};
	arena_init(&locations->arena);
	locations->dumps = arena_alloc(&locations->arena, count * sizeof(*locations->dumps));
	locations->alike = arena_alloc(&locations->arena, count * sizeof(*locations->alike));
	locations->carriers = arena_alloc(&locations->arena, count * sizeof(*locations->carriers));
	module_ids_make(dumps, count, &locations->ranks, &locations->arena);
	for (size_t i = 0; i < count; i++) {
		locations->dumps[i].sums = &dumps[i];
		locations->dumps[i].ranks = locations->ranks.by_dump[i];
	}
	for (size_t i = count; i--;) {
		if (dumps[i].names)
			locations->carriers[locations->carrier_count++] = i;
	}
	find_alike(locations);
	for (size_t i = 0; i < count; i++) {
		if (locations->alike[i] == i) {
			dump_make(locations, &locations->dumps[i]);
			continue;
		}
		locations->dumps[i] = locations->dumps[locations->alike[i]];
		locations->dumps[i].sums = &dumps[i];
	}
	if (is_one_process)
		link_dumps(locations);
}

void locations_release(struct locations *locations)
{
	arena_release(&locations->arena);
	*locations = (struct locations){0};
}

/* Returns the number of bases at or below `addr`. To be fast, uses no branch that depends on the
 * address. */
static size_t bases_below(const uint64_t *bases, size_t count, uint64_t addr)
{
	const uint64_t *low = bases;

	if (!count)
		return 0;
	for (size_t half; count > 1; count -= half) {
		half = count / 2;
		low += low[half - 1] <= addr ? half : 0;
	}
	return (size_t)(low - bases) + (*low <= addr);
}

/* Returns the result of bases_below(). Caches it for nearby addresses. */
static size_t modules_below(const struct places_dump *dump, uint64_t addr)
{
	uint64_t granule = addr >> GRANULE_BITS;
	/* The product's upper bits depend on all bits of the granule. */
	size_t slot = (size_t)(granule * UINT64_C(0x9e3779b97f4a7c15) >> (64 - dump->memo_bits));
	uint64_t memo = atomic_load_explicit(&dump->memo[slot], memory_order_relaxed);
	size_t below, count = dump->sums->module_list.count;

	if (memo >> GRANULE_BITS == granule && memo != UINT64_MAX)
		return (size_t)(memo & GRANULE_MASK);
	below = bases_below(dump->bases, count, granule << GRANULE_BITS);
	/* A module starts inside the granule, so the result cannot be cached for the whole
	 * granule. */
	if (below < count && dump->bases[below] >> GRANULE_BITS == granule)
		return bases_below(dump->bases, count, addr);
	if (below < GRANULE_MASK)
		atomic_store_explicit(
			&dump->memo[slot], granule << GRANULE_BITS | below, memory_order_relaxed);
	return below;
}

/* Finds the module of a return address, like module_of_return(). */
static const struct module *module_of(const struct places_dump *dump, uint64_t addr)
{
	size_t below = modules_below(dump, addr);
	const struct module *module;

	if (!below)
		return NULL;
	module = &dump->sums->module_list.items[below - 1];
	/* A return address at a module's start may belong to the previous module: the call is
	 * before the return address. */
	if (addr == module->base && below > 1 && addr - 1 - module[-1].base < module[-1].size_bytes)
		return module - 1;
	/* A return address at a module's end belongs to the module: the call is in its last
	 * bytes. */
	if (addr - module->base < module->size_bytes ||
		(addr != module->base && addr - module->base == module->size_bytes))
		return module;
	return NULL;
}

struct location location_of(
	const struct locations *locations, size_t dump, uint64_t addr, struct place_module *found)
{
	const struct places_dump *own = &locations->dumps[dump], *in = own;
	const struct module *module = module_of(in, addr);

	while (!module && in->older)
		module = module_of(in = in->older, addr);
	if (!module)
		in = own;
	while (!module && in->newer)
		module = module_of(in = in->newer, addr);
	if (!module)
		in = own;
	if (found)
		*found = (struct place_module){module, (size_t)(in - locations->dumps)};
	if (!module)
		return (struct location){0, addr};
	return (struct location){
		(uint64_t)in->ranks[module - in->sums->module_list.items] + 1, addr - module->base};
}

uint32_t location_depth(const struct locations *locations, size_t dump, const struct stack *stack)
{
	uint32_t depth = stack->frame_count;

	if (stack->is_named || stack->alias_count)
		return depth;
	while (depth && !location_of(locations, dump, stack_frame(stack, depth - 1), NULL).unit)
		depth--;
	return depth ? depth : stack->frame_count;
}
