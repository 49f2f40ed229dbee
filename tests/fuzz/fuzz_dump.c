/* Dumps: the scanner's result does not depend on how the text is split into reads. The sums add up
 * and do not depend on the number of threads. */
#include "tests/fuzz/fuzz.h"

#include <inttypes.h>

#include "core/dump/dump.h"
#include "core/dump/dump_head.h"
#include "core/dump/model.h"
#include "core/dump/source.h"
#include "diff/read/read_dump.h"
#include "diff/read_files.h"

/* FNV-1a, by Fowler, Noll and Vo, over all reported items in order. */
static void digest_add(uint64_t *digest, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;

	for (size_t i = 0; i < len; i++)
		*digest = (*digest ^ at[i]) * UINT64_C(0x100000001b3);
}

#define DIGEST(digest, value) digest_add(digest, &(value), sizeof(value))

/* ---------------------------------------------------------------- the scanner */

struct bytes_read {
	const uint8_t *at;
	size_t left, step;
};

static int64_t read_bytes(void *ctx, void *to, size_t len, struct err *err)
{
	struct bytes_read *from = ctx;

	(void)err;
	len = len < from->step ? len : from->step;
	len = len < from->left ? len : from->left;
	memcpy(to, from->at, len);
	from->at += len;
	from->left -= len;
	return (int64_t)len;
}

struct told {
	uint64_t digest;
	struct module_list modules;
	struct block_totals seen;
	size_t skip_count;
	uint64_t last_line; /* last line of a skipped section */
};

static int print_module(void *ctx, uint64_t base, uint64_t size_bytes, const char *path, size_t len)
{
	struct told *told = ctx;

	DIGEST(&told->digest, base);
	digest_add(&told->digest, path, len);
	return module_list_add(&told->modules, base, size_bytes, path, len);
}

static int print_heap(void *ctx, uint64_t addr)
{
	struct told *told = ctx;

	DIGEST(&told->digest, addr);
	return 0;
}

static int print_entry(void *ctx, const struct dump_entry *entry)
{
	const struct stack *stack = &entry->stack;
	struct told *told = ctx;

	HOLDS(!stack->frames == !stack->frame_count);
	HOLDS(stack->frames || !stack->alias_count);
	HOLDS(!entry->names == !entry->name_count);
	HOLDS(stack->frame_count <= DUMP_FRAMES_MAX && entry->name_count <= DUMP_FRAMES_MAX);
	DIGEST(&told->digest, entry->addr);
	digest_add(&told->digest, stack->id, entry->id_len);
	if (stack->frames)
		digest_add(&told->digest, stack->frames, stack->frame_count * FRAME_WIDTH);
	for (uint32_t i = 0; i < stack->alias_count; i++) {
		HOLDS(stack->alias_at[i] >= (i ? stack->alias_at[i - 1] : 0));
		HOLDS(stack->alias_at[i] <= stack->frame_count);
	}
	for (uint32_t i = 0; i < entry->name_count; i++)
		digest_add(&told->digest, entry->names[i].text, entry->names[i].len);
	told->seen.block_count += entry->block_count;
	told->seen.requested_bytes += entry->requested_bytes;
	told->seen.overhead_bytes += entry->overhead_bytes;
	return 0;
}

static int print_note(void *ctx, const char *kind, const struct kv *pairs)
{
	struct told *told = ctx;
	struct dump_head head = {0};

	digest_add(&told->digest, kind, strlen(kind));
	digest_add(&told->digest, pairs->words.data, pairs->words.len);
	HOLDS(pairs->count <= KV_MAX);
	for (size_t i = 0; i < pairs->count; i++)
		HOLDS(pairs->key_at[i] < pairs->words.len &&
			pairs->value_at[i] <= pairs->words.len);
	if (!strcmp(kind, "module"))
		return module_list_note(&told->modules, pairs);
	return dump_head_note(&head, kind, pairs);
}

static int print_skipped(void *ctx, const struct err *why)
{
	struct told *told = ctx;

	HOLDS(why->code == ERR_BAD_LINE && why->detail[0]);
	HOLDS(++told->skip_count <= DUMP_SKIPS_MAX);
	digest_add(&told->digest, why->place, strlen(why->place));
	return 0;
}

static int scan(const uint8_t *bytes, size_t len, size_t step, struct told *told)
{
	struct bytes_read from = {bytes, len, step};
	struct dump_source source = {read_bytes, &from, "made"};
	struct dump_sink sink = {.ctx = told,
		.module = print_module,
		.heap = print_heap,
		.entry = print_entry,
		.note = print_note,
		.skipped = print_skipped};
	struct err err = {0};
	struct arena arena;
	int rc;

	*told = (struct told){.digest = UINT64_C(0xcbf29ce484222325)};
	arena_init(&arena);
	module_list_init(&told->modules, &arena);
	rc = dump_scan(&source, &sink, &err);
	HOLDS((int)err.code == -rc || !rc);
	module_list_finish(&told->modules);
	for (size_t i = 1; i < told->modules.count; i++)
		HOLDS(told->modules.items[i - 1].base <= told->modules.items[i].base);
	module_list_release(&told->modules);
	arena_release(&arena);
	return rc;
}

/* ---------------------------------------------------------------- its sums */

static void digest_stack(uint64_t *digest, const struct dump_sums *sums, const struct stack *stack)
{
	digest_add(digest, stack->id, strlen(stack->id));
	for (uint32_t i = 0; i < stack->frame_count; i++) {
		uint64_t frame = stack_frame(stack, i);

		if (stack->is_named)
			HOLDS(frame < sums->text_count);
		else
			DIGEST(digest, frame);
	}
}

/* Digests the parts that do not depend on the order in which threads read the dump. */
static uint64_t sums_digest(const struct dump_sums *sums)
{
	uint64_t all = sums->total.requested_bytes;
	struct block_totals sum = {0}, whole = sums->total;

	for (size_t i = 0; i < sums->cell_count; i++) {
		const struct stack_total *cell = &sums->cells[i];
		uint64_t digest = 1;

		HOLDS(cell->heap < sums->heap_count);
		HOLDS(cell->stack == STACK_NONE || cell->stack < sums->stacks.count);
		DIGEST(&digest, sums->heaps[cell->heap]);
		DIGEST(&digest, cell->sums);
		if (cell->is_bare && cell->stack != STACK_NONE)
			digest_add(&digest, sums_stack(sums, cell->stack)->id,
				strlen(sums_stack(sums, cell->stack)->id));
		else if (cell->stack != STACK_NONE)
			digest_stack(&digest, sums, sums_stack(sums, cell->stack));
		all += digest;
		block_totals_add(&sum, &cell->sums);
	}
	block_totals_add(&whole, &sums->reserved);
	block_totals_add(&whole, &sums->handles);
	HOLDS(!memcmp(&sum, &whole, sizeof(sum)));
	HOLDS(sum.requested_bytes <= INT64_MAX && sum.overhead_bytes <= INT64_MAX);
	DIGEST(&all, sums->quality.skip_count);
	DIGEST(&all, sums->module_list.count);
	DIGEST(&all, sums->quality.is_cut);
	return all;
}

static int read_sums(const char *path, unsigned threads, uint64_t *digest, uint64_t piece_bytes)
{
	struct read_plan plan = {.threads = threads, .piece_bytes = piece_bytes};
	struct dump_sums sums;
	struct source *source;
	struct err err = {0};
	bool is_plain;
	int rc;

	HOLDS(!source_open(&source, path, NULL));
	is_plain = source_is_plain(source, &plan.from, &plan.to);
	sums_init(&sums);
	sums.single.wants_listed = !threads;
	rc = sums_read_by(&sums, path, source, threads > 1 && is_plain ? &plan : NULL, &err);
	HOLDS(!rc || (int)err.code == -rc);
	*digest = !rc || rc == -ERR_CUT ? sums_digest(&sums) : 0;
	sums_release(&sums);
	source_close(source);
	return rc;
}

static void read_head(const char *path)
{
	struct dump_sums sums;
	struct dump_head head;
	struct source *source;

	if (!dump_head_read(path, &head, NULL))
		HOLDS(head.is_ours || !head.image || head.image[0]);
	HOLDS(!source_open(&source, path, NULL));
	sums_init(&sums);
	sums_read_head(&sums, path, source, NULL);
	sums_release(&sums);
	source_close(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const char *path = fuzz_file(0, bytes, len);
	uint64_t one, three, listed;
	struct told whole, parts;
	int rc = scan(bytes, len, SIZE_MAX, &whole);

	HOLDS(scan(bytes, len, len % 2 ? 1 : 7, &parts) == rc);
	HOLDS(parts.digest == whole.digest && parts.skip_count == whole.skip_count);
	rc = read_sums(path, 1, &one, 0);
	HOLDS(read_sums(path, 0, &listed, 0) == rc && listed == one);
	HOLDS(read_sums(path, 3, &three, 1 + len / 5) == rc && three == one);
	read_head(path);
	return 0;
}
