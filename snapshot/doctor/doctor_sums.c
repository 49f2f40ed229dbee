#include "snapshot/doctor/doctor_judge.h"
#include "snapshot/doctor/doctor_tally.h"

struct sums {
	uint64_t blocks, bytes;
};

/* What the child has in a heap of its own. */
static struct sums true_sums(const struct doctor_truth *truth, enum doctor_heap heap)
{
	struct sums sums = {0};

	for (uint32_t i = 0; i < truth->block_count; i++) {
		const struct doctor_block *block = &truth->blocks[i];

		if (block->heap != heap || block->is_freed)
			continue;
		sums.blocks++;
		sums.bytes += block->requested_bytes;
	}
	return sums;
}

/* What a walk listed there that is no live block of the truth's. */
static void add_walked(struct sums *sums, const struct doctor_truth *truth, enum doctor_heap heap,
	const struct doctor_found *walked)
{
	for (size_t i = 0; walked && i < walked->block_count; i++) {
		const struct doctor_found_block *at = &walked->blocks[i];
		const struct doctor_block *block = doctor_truth_find(truth, at->addr);

		if (at->heap != truth->heaps[heap] ||
			(block && block->heap == heap && !block->is_freed))
			continue;
		sums->blocks++;
		sums->bytes += at->requested_bytes;
	}
}

static struct sums found_sums(const struct doctor_found *found, uint64_t addr)
{
	const struct heap *heap = doctor_found_heap(found, addr);
	struct sums sums = {0};

	if (heap)
		sums = (struct sums){heap->stackless.block_count, heap->stackless.requested_bytes};
	for (size_t i = 0; i < found->block_count; i++) {
		if (found->blocks[i].heap != addr)
			continue;
		sums.blocks++;
		sums.bytes += found->blocks[i].requested_bytes;
	}
	return sums;
}

static int judge_sums_of(struct doctor_report *report, const char *source, enum doctor_heap heap,
	const struct sums *expected, const struct sums *found)
{
	const struct doctor_subject of_blocks = {source, heap, "number of blocks", "blocks"},
				    of_bytes = {source, heap, "bytes in them", "bytes"};
	struct doctor_tally blocks = {.expected = expected->blocks, .found = found->blocks},
			    bytes = {.expected = expected->bytes, .found = found->bytes};
	int rc = doctor_tally_add(report, &of_blocks, &blocks);

	return rc ? rc : doctor_tally_add(report, &of_bytes, &bytes);
}

int doctor_judge_sums(struct doctor_report *report, const struct doctor_truth *truth,
	const struct doctor_found *found, const struct doctor_found *walked)
{
	int rc = 0;

	for (int i = DOCTOR_PROCESS_HEAP + 1; !rc && i < DOCTOR_HEAPS; i++) {
		const struct heap *heap = doctor_found_heap(found, truth->heaps[i]);
		enum doctor_heap id = (enum doctor_heap)i;
		struct sums expected = true_sums(truth, id), sums;

		/* Of a heap that was not walked there are no sums; doctor_judge() says what that is. */
		if (!truth->heaps[i] || (heap && heap->unwalked))
			continue;
		add_walked(&expected, truth, id, walked);
		sums = found_sums(found, truth->heaps[i]);
		rc = judge_sums_of(report, found->source, id, &expected, &sums);
	}
	return rc;
}
