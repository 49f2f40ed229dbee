/*
 * list_blocks: prints every block that the walkers find in a minidump, one per line, with its
 * address. (hsnap's dumps contain addresses only of blocks with a stack.)
 *
 *   heap ADDR KIND COMMITTED RESERVED
 *   block HEAP ADDR REQUESTED OVERHEAD RECORD
 *
 * Addresses and records are hexadecimal, sizes decimal. If there are any, 'broken COUNT' (invalid
 * bytes), 'missing COUNT' (unmapped memory) and 'doubt COUNT' follow. Status 0, or 1 with one line
 * that contains the reason.
 */
#include <inttypes.h>
#include <stdio.h>

#include "core/base/os.h"
#include "snapshot/heap/heap.h"
#include "snapshot/live/process.h"

static int fail(const struct err *err)
{
	char text[sizeof(*err)];
	fprintf(stderr, "list_blocks: %s\n", err_text(err, text, sizeof(text)));
	return 1;
}

static void print(const struct walk *walk)
{
	for (size_t i = 0; i < walk->heap_count; i++) {
		const struct heap *heap = &walk->heaps[i];
		printf("heap %" PRIX64 " %s %" PRIu64 " %" PRIu64 "\n", heap->addr, heap->kind,
			heap->committed_bytes, heap->reserved_bytes);
	}
	for (size_t i = 0; i < walk->block_count; i++) {
		const struct block *block = &walk->blocks[i];
		uint64_t record = block->stack == STACK_NONE ? 0 : walk->records[block->stack].addr;
		printf("block %" PRIX64 " %" PRIX64 " %" PRIu64 " %" PRIu64 " %" PRIX64 "\n",
			walk->heaps[block->heap].addr, (uint64_t)block->addr,
			(uint64_t)block->requested_bytes, (uint64_t)block->overhead_bytes, record);
	}
	if (walk->broken_count > 0)
		printf("broken %u\n", walk->broken_count);
	if (walk->missing_count > 0)
		printf("missing %u\n", walk->missing_count);
	if (walk->doubt_count > 0)
		printf("doubt %u\n", walk->doubt_count);
}

static int list(struct target *target)
{
	struct err err = {0};
	struct memory memory;
	struct walk walk;
	int rc = memory_init(&memory, target);
	if (rc < 0) {
		fputs("list_blocks: out of memory\n", stderr);
		return 1;
	}
	walk_init(&walk);
	rc = heaps_walk(&memory, NULL, &walk, &err);
	if (rc == 0)
		print(&walk);
	walk_release(&walk);
	memory_release(&memory);
	return rc < 0 ? fail(&err) : 0;
}

int main(int argc, char **argv)
{
	struct err err = {0};
	struct target target = {0};
	os_start(&argc, &argv);
	if (argc != 2) {
		fputs("usage: list_blocks FILE.dmp\n", stderr);
		return 2;
	}
	if (target_open_minidump(&target, argv[1], &err) < 0)
		return fail(&err);
	int status = list(&target);
	target.ops->close(&target);
	return status;
}
