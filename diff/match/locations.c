#include "diff/match/locations.h"

#include <string.h>

#include "core/base/err.h"
#include "core/base/hash.h"

#define GRANULE_BITS 16 /* Windows loads modules at multiples of this */
#define MEMO_BITS_MIN 3
#define MEMO_BITS_MAX 11
#define MEMO_STACKS 4 /* for each of them one */

static bool is_same_process(const struct dump_sums *a, const struct dump_sums *b)
{
	return a->pid && a->start_ms && a->pid == b->pid && a->start_ms == b->start_ms;
}

/* Of many small dumps, that must not be most of what they take. */
static unsigned memo_bits(size_t stack_count)
{
	unsigned bits = MEMO_BITS_MIN;

	while (bits < MEMO_BITS_MAX && stack_count / MEMO_STACKS > (size_t)1 << bits)
		bits++;
	return bits;
}

static int dump_make(struct locations *places, struct places_dump *dump)
{
	const struct dump_sums *sums = dump->sums;
	size_t ranks_bytes = places->ranks.count * sizeof(*dump->first);

	dump->bases = arena_alloc(&places->arena, (sums->module_count + 1) * sizeof(*dump->bases));
	dump->first = arena_alloc(&places->arena, ranks_bytes + 1);
	dump->memo_bits = memo_bits(sums->stacks.count);
	dump->memo = arena_alloc(&places->arena, sizeof(*dump->memo) << dump->memo_bits);
	if (!dump->bases || !dump->first || !dump->memo)
		return -ERR_NOMEM;
	memset(dump->memo, 0xff, sizeof(*dump->memo) << dump->memo_bits);
	memset(dump->first, 0xff, ranks_bytes);
	for (size_t i = sums->module_count; i--;) {
		dump->bases[i] = sums->modules[i].base;
		dump->first[dump->ranks[i]] = (uint32_t)i;
	}
	return 0;
}

/* Dumps with the same modules at the same places: what only others of one process have is then the same
 * for both, too. */
static bool is_alike(const struct places_dump *a, const struct places_dump *b)
{
	const struct module *x = a->sums->modules, *y = b->sums->modules;

	if (a->sums->module_count != b->sums->module_count)
		return false;
	if (x == y && a->ranks == b->ranks)
		return true;
	for (size_t i = 0; i < a->sums->module_count; i++) {
		if (x[i].base != y[i].base || a->ranks[i] != b->ranks[i] ||
			x[i].size_bytes != y[i].size_bytes)
			return false;
	}
	return true;
}

static uint64_t hash_modules(const struct places_dump *dump, const struct hash_key *key)
{
	struct hasher hasher = hasher_begin(key);

	for (size_t i = 0; i < dump->sums->module_count; i++) {
		hasher_add(&hasher, dump->sums->modules[i].base);
		hasher_add(&hasher, dump->ranks[i]);
		hasher_add(&hasher, dump->sums->modules[i].size_bytes);
	}
	return hasher_end(&hasher);
}

static int find_alike(struct locations *places)
{
	struct hash_key key = hash_key();
	struct u64map known;
	int rc = 0;

	u64map_init(&known);
	for (size_t i = 0; rc >= 0 && i < places->dump_count; i++) {
		const struct places_dump *dump = &places->dumps[i];
		uint32_t *alike = &places->alike[i];

		*alike = (uint32_t)i;
		rc = u64map_put(&known, hash_modules(dump, &key), alike);
		if (rc >= 0 && !is_alike(&places->dumps[*alike], dump))
			*alike = (uint32_t)i;
	}
	u64map_release(&known);
	return rc < 0 ? rc : 0;
}

/* What is alike has its tables in common. */
static int tables_make(struct locations *places)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < places->dump_count; i++) {
		struct places_dump *dump = &places->dumps[i];

		if (places->alike[i] == i) {
			rc = dump_make(places, dump);
			continue;
		}
		*dump = places->dumps[places->alike[i]];
		dump->sums = &places->sums[i];
	}
	return rc;
}

/* What one dump does not know, another that is alike does not either. */
static void link_dumps(struct locations *places)
{
	struct places_dump *dumps = places->dumps;

	for (size_t i = 1; i < places->dump_count; i++)
		dumps[i].older = places->alike[i] == places->alike[i - 1] ? dumps[i - 1].older :
									    &dumps[i - 1];
	for (size_t i = places->dump_count; i-- > 1;)
		dumps[i - 1].newer =
			places->alike[i] == places->alike[i - 1] ? dumps[i].newer : &dumps[i];
}

static int find_carriers(struct locations *places)
{
	places->carriers =
		arena_alloc(&places->arena, places->dump_count * sizeof(*places->carriers) + 1);
	for (size_t i = places->dump_count; places->carriers && i--;) {
		if (places->sums[i].names)
			places->carriers[places->carrier_count++] = i;
	}
	return places->carriers ? 0 : -ERR_NOMEM;
}

int locations_make(struct locations *places, const struct dump_sums *dumps, size_t count)
{
	int rc;

	*places = (struct locations){.sums = dumps, .dump_count = count, .is_one_process = true};
	arena_init(&places->arena);
	places->dumps = arena_alloc(&places->arena, count * sizeof(*places->dumps) + 1);
	places->alike = arena_alloc(&places->arena, count * sizeof(*places->alike) + 1);
	rc = places->dumps && places->alike ?
		     module_ids_make(dumps, count, &places->ranks, &places->arena) :
		     -ERR_NOMEM;
	for (size_t i = 0; !rc && i < count; i++) {
		places->dumps[i].sums = &dumps[i];
		places->dumps[i].ranks = places->ranks.of[i];
		places->is_one_process &= is_same_process(&dumps[0], &dumps[i]);
	}
	if (!rc)
		rc = find_carriers(places);
	if (!rc)
		rc = find_alike(places);
	if (!rc)
		rc = tables_make(places);
	if (!rc && places->is_one_process)
		link_dumps(places);
	return rc;
}

void locations_release(struct locations *places)
{
	arena_release(&places->arena);
	*places = (struct locations){0};
}

/* How many bases are not above addr. The loop has no branch that depends on the address. */
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

/* As bases_below(), which most often says the same for addresses that are close. */
static size_t modules_below(const struct places_dump *dump, uint64_t addr)
{
	uint64_t granule = addr >> GRANULE_BITS;
	/* Upper bits spread what differs in any. */
	size_t slot = (size_t)(granule * UINT64_C(0x9e3779b97f4a7c15) >> (64 - dump->memo_bits));
	struct places_memo *memo = &dump->memo[slot];
	size_t below, count = dump->sums->module_count;

	if (memo->granule == granule)
		return memo->below;
	below = bases_below(dump->bases, count, granule << GRANULE_BITS);
	if (below < count && dump->bases[below] >> GRANULE_BITS == granule)
		return bases_below(dump->bases, count, addr); /* a module starts among them */
	*memo = (struct places_memo){granule, below};
	return below;
}

/* As module_of_return(). */
static const struct module *module_of(const struct places_dump *dump, uint64_t addr)
{
	size_t below = modules_below(dump, addr);
	const struct module *module;

	if (!below)
		return NULL;
	module = &dump->sums->modules[below - 1];
	/* The call before the return address is what counts. */
	if (addr == module->base && below > 1 && addr - 1 - module[-1].base < module[-1].size_bytes)
		return module - 1;
	/* Behind the module's last byte is still its. */
	if (addr - module->base < module->size_bytes ||
		(addr != module->base && addr - module->base == module->size_bytes))
		return module;
	return NULL;
}

struct location location_of(
	const struct locations *places, size_t dump, uint64_t addr, struct place_module *found)
{
	const struct places_dump *own = &places->dumps[dump], *of = own;
	const struct module *module = module_of(of, addr);

	while (!module && of->older)
		module = module_of(of = of->older, addr);
	if (!module)
		of = own;
	while (!module && of->newer)
		module = module_of(of = of->newer, addr);
	if (!module)
		of = own;
	if (found)
		*found = (struct place_module){module, (size_t)(of - places->dumps)};
	if (!module)
		return (struct location){0, addr};
	return (struct location){
		(uint64_t)of->ranks[module - of->sums->modules] + 1, addr - module->base};
}

uint32_t location_depth(const struct locations *places, size_t dump, const struct stack *stack)
{
	uint32_t depth = stack->frame_count;

	if (stack->is_named || stack->alias_count)
		return depth;
	while (depth && !location_of(places, dump, stack->frames[depth - 1], NULL).unit)
		depth--;
	return depth ? depth : stack->frame_count;
}
