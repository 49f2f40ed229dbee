/* Totals and heaps of a dump that is being read. */
#include "core/base/memory.h"
#include "diff/read/read_dump.h"

int sum_reader_add(struct block_totals *total, const struct block_totals *more)
{
	struct block_totals sum = *total;

	if (more->block_count > INT64_MAX - sum.block_count ||
		more->requested_bytes > INT64_MAX - sum.requested_bytes - sum.overhead_bytes)
		return -ERR_BAD_LINE;
	sum.block_count += more->block_count;
	sum.requested_bytes += more->requested_bytes;
	if (more->overhead_bytes > INT64_MAX - sum.requested_bytes - sum.overhead_bytes)
		return -ERR_BAD_LINE;
	sum.overhead_bytes += more->overhead_bytes;
	*total = sum;
	return 0;
}

int sum_reader_total(struct sum_reader *reader, const struct block_totals *more)
{
	if (!sum_reader_add(&reader->sums->total, more))
		return 0;
	return err_set(reader->err, ERR_BAD_LINE, reader->sums->id.path, SUMS_TOO_LARGE);
}

int sum_reader_heap(struct sum_reader *reader, uint64_t addr, enum block_reach reach)
{
	uint32_t heap = shared_stacks_heap(&reader->pool, addr, reach);

	reader->heap_addr = addr;
	if (heap != reader->tally.heap)
		tally_flush(&reader->tally);
	reader->tally.heap = heap;
	return 0;
}
