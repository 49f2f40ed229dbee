/*
 * Writes a generated dump to stdout, and the totals of its entries to stderr:
 *
 *   gen_dump BLOCKS STACKS DEPTH full|first|last|sums SEED [SNAPSHOT]
 *
 * `full` prints the stack with every entry. `first` prints the stack where its id occurs first, as
 * UMDH does. `last` prints the stacks only at the end, each with one more block. `sums` prints the
 * blocks of `last` as one sum for each stack, as hsnap --by-stack writes them. Equal arguments give
 * equal bytes. Another SEED moves the modules (as ASLR does) and assigns blocks to other stacks;
 * the stacks themselves do not change. If SNAPSHOT, a number, is given, the dump has hsnap's
 * format. It is then member SNAPSHOT of a series of one process, taken every half hour, with other
 * blocks each time.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODULES 24
#define MINUTES 30 /* minutes between two snapshots */
#define MODULE_BYTES UINT64_C(0x200000)

struct gen {
	uint64_t blocks, stacks, depth, seed;
	enum layout { FULL, FIRST, LAST, SUMS } layout;
	bool is_ours; /* hsnap's format, with notes; otherwise UMDH's */
	uint64_t snapshot;
	uint64_t state; /* state of the random numbers */
	bool *given;
	uint64_t *counts; /* number of blocks of each stack */
	uint64_t requested_bytes, overhead_bytes;
};

/* splitmix64 */
static uint64_t mix(uint64_t value)
{
	value += UINT64_C(0x9e3779b97f4a7c15);
	value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
	return value ^ value >> 31;
}

static uint64_t module_base(const struct gen *gen, uint64_t module)
{
	uint64_t slide = mix(gen->seed) % 0x1000 << 24;

	return UINT64_C(0x7FF800000000) + slide + module * (MODULE_BYTES + 0x10000);
}

/* Writes the date `day` days after 1 November 2026. */
static void write_day(uint64_t day)
{
	static const unsigned days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	uint64_t month = 10, year = 2026, length;

	/* leap years are right until 2100 */
	while (day >= (length = days[month] + (month == 1 && year % 4 == 0))) {
		day -= length;
		month = (month + 1) % 12;
		year += !month;
	}
	printf("%" PRIu64 "-%02" PRIu64 "-%02" PRIu64, year, month + 1, day + 1);
}

static void write_notes(const struct gen *gen)
{
	uint64_t minutes = (gen->snapshot + 1) * MINUTES;

	printf("// hsnap: dump format=1 tool=made time=");
	write_day(minutes / 60 / 24);
	printf("T%02" PRIu64 ":%02" PRIu64 ":00.000Z\r\n", minutes / 60 % 24, minutes % 60);
	printf("// hsnap: process id=4711 start=2026-11-01T00:00:00.000Z bits=64 "
	       "image=C:\\made\\made.exe\r\n// hsnap: stacks source=tracer\r\n%s",
		gen->layout == SUMS ? "// hsnap: sums by=stack\r\n" : "");
}

static void write_head(const struct gen *gen)
{
	if (gen->is_ours)
		write_notes(gen);
	printf("// \r\n// Loaded modules: \r\n//     Base Size Module\r\n");
	for (uint64_t i = 0; i < MODULES; i++)
		printf("//    %16" PRIX64 " %8" PRIX64 " C:\\made up\\module%02" PRIu64 ".dll\r\n",
			module_base(gen, i), MODULE_BYTES, i);
	printf("//\r\n// Process modules enumerated.\r\n\r\n"
	       "*- - - - - - - - - - Start of data for heap @ 1E0000 - - - - - - - - - -\r\n\r\n"
	       "REQUESTED bytes + OVERHEAD at ADDRESS by BackTraceID\r\n"
	       "     STACK if not already dumped.\r\n\r\n"
	       "*- - - - - - - - - - Heap 1E0000 Hogs - - - - - - - - - -\r\n\r\n");
}

static void write_stack(const struct gen *gen, uint64_t stack)
{
	uint64_t least = gen->depth < 8 ? gen->depth : 8;
	uint64_t depth = least + mix(stack) % (gen->depth - least + 1);

	for (uint64_t i = 0; i < depth; i++) {
		uint64_t place = mix(stack * 1024 + i);

		printf("\t%" PRIX64 "\r\n", module_base(gen, place % MODULES) + 0x1000 +
						    (place >> 8) % (MODULE_BYTES - 0x2000));
	}
	printf("\r\n");
}

/* The third power of an even distribution gives few stacks most of the blocks. */
static uint64_t pick_stack(struct gen *gen)
{
	double spread = (double)(mix(gen->state++) >> 11) / (double)(UINT64_C(1) << 53);

	return (uint64_t)(spread * spread * spread * (double)gen->stacks);
}

static uint64_t requested_of(uint64_t stack)
{
	return 16 + mix(stack) % 4096;
}

static uint64_t overhead_of(uint64_t stack)
{
	return 16 + (16 - requested_of(stack) % 16) % 16;
}

static void write_block(struct gen *gen, uint64_t index, uint64_t stack, bool with_stack)
{
	uint64_t requested = requested_of(stack), overhead = overhead_of(stack);

	printf("%s%" PRIX64 " bytes + %" PRIX64 " at %" PRIX64 " by BackTrace%" PRIX32 "\r\n",
		with_stack ? "\r\n" : "", requested, overhead,
		UINT64_C(0x20600000000) + index * 0x40, (uint32_t)(mix(stack) | 7));
	if (with_stack)
		write_stack(gen, stack);
	gen->requested_bytes += requested;
	gen->overhead_bytes += overhead;
}

static void write_blocks(struct gen *gen)
{
	for (uint64_t i = 0; i < gen->blocks; i++) {
		uint64_t stack = pick_stack(gen);

		write_block(gen, i, stack,
			gen->layout == FULL || (gen->layout == FIRST && !gen->given[stack]));
		gen->given[stack] = true;
	}
	for (uint64_t i = 0; gen->layout == LAST && i < gen->stacks; i++)
		write_block(gen, gen->blocks + i, i, true);
}

static void write_sum(struct gen *gen, uint64_t stack)
{
	uint64_t requested = requested_of(stack), overhead = overhead_of(stack);
	uint64_t count = gen->counts[stack];

	printf("\r\n%" PRIX64 " bytes in 0x%" PRIX64 " allocations (@ 0x%" PRIX64 " + 0x%" PRIX64
	       ") by: BackTrace%" PRIX32 "\r\n",
		count * requested, count, requested, overhead, (uint32_t)(mix(stack) | 7));
	write_stack(gen, stack);
	gen->requested_bytes += count * requested;
	gen->overhead_bytes += count * overhead;
}

static void write_sums(struct gen *gen)
{
	for (uint64_t i = 0; i < gen->stacks; i++)
		gen->counts[i] = 1;
	for (uint64_t i = 0; i < gen->blocks; i++)
		gen->counts[pick_stack(gen)]++;
	for (uint64_t i = 0; i < gen->stacks; i++)
		write_sum(gen, i);
}

static enum layout layout_of(const char *name)
{
	static const char *const names[] = {
		[FULL] = "full", [FIRST] = "first", [LAST] = "last", [SUMS] = "sums"};
	enum layout layout = FIRST;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!strcmp(name, names[i]))
			layout = (enum layout)i;
	}
	return layout;
}

static bool begin(struct gen *gen, int argc, char **argv)
{
	if (argc != 6 && argc != 7)
		return false;
	gen->blocks = strtoull(argv[1], NULL, 10);
	gen->stacks = strtoull(argv[2], NULL, 10);
	gen->depth = strtoull(argv[3], NULL, 10);
	gen->layout = layout_of(argv[4]);
	gen->seed = strtoull(argv[5], NULL, 10);
	gen->is_ours = argc == 7;
	gen->snapshot = gen->is_ours ? strtoull(argv[6], NULL, 10) : 0;
	gen->state = mix(gen->seed + (gen->snapshot << 32));
	gen->given = calloc(gen->stacks + 1, sizeof(*gen->given));
	gen->counts = calloc(gen->stacks + 1, sizeof(*gen->counts));
	return gen->stacks && gen->depth && gen->given && gen->counts;
}

static void finish(struct gen *gen)
{
	bool has_more = gen->layout == LAST || gen->layout == SUMS;
	uint64_t blocks = gen->blocks + (has_more ? gen->stacks : 0);

	printf("\r\n*- - - - - - - - - - End of data for heap @ 1E0000 - - - - - - - - - -\r\n");
	if (gen->is_ours)
		printf("\r\n// hsnap: end blocks=%" PRIu64 " requested=%" PRIu64
		       " overhead=%" PRIu64 "\r\n",
			blocks, gen->requested_bytes, gen->overhead_bytes);
	fprintf(stderr, "blocks=%" PRIu64 " requested=%" PRIu64 " overhead=%" PRIu64 "\n", blocks,
		gen->requested_bytes, gen->overhead_bytes);
}

int main(int argc, char **argv)
{
	struct gen gen = {0};
	bool is_good = begin(&gen, argc, argv);

	if (is_good) {
		write_head(&gen);
		if (gen.layout == SUMS)
			write_sums(&gen);
		else
			write_blocks(&gen);
		finish(&gen);
	} else {
		fprintf(stderr, "usage: gen_dump BLOCKS STACKS DEPTH full|first|last|sums SEED "
				"[SNAPSHOT]\n");
	}
	free(gen.given);
	free(gen.counts);
	return !is_good || fflush(stdout) || ferror(stdout) ? 2 : 0;
}
