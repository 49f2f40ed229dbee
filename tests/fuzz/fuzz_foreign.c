/* Folded stacks and profiles for pprof: the sums of the stacks add up to the total, and the frames are texts. */
#include "tests/fuzz/fuzz.h"

#include "core/dump/dump.h"
#include "core/dump/source.h"
#include "diff/read/dump_sums.h"
#include "diff/read/foreign.h"

static void check(const struct dump_sums *sums)
{
	struct block_totals total = {0};

	for (size_t i = 0; i < sums->cell_count; i++) {
		const struct stack *stack = sums_stack(sums, sums->cells[i].stack);

		block_totals_add(&total, &sums->cells[i].sums);
		HOLDS(stack->frame_count <= DUMP_FRAMES_MAX && *stack->id);
		for (uint32_t k = 0; k < stack->frame_count; k++)
			HOLDS(stack_frame(stack, k) < sums->text_count);
	}
	HOLDS(total.requested_bytes == sums->total.requested_bytes);
	HOLDS(total.block_count == sums->total.block_count);
	HOLDS(total.requested_bytes <= INT64_MAX && total.block_count <= INT64_MAX);
	for (size_t i = 0; i < sums->text_count; i++) {
		for (const char *at = sums->texts[i]; *at; at++)
			HOLDS((unsigned char)*at >= ' ');
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const char *path = fuzz_file(0, bytes, len);
	bool is_profile = pprof_is((const char *)bytes, len);
	struct dump_sums sums;
	struct source *source;
	struct err err = {0};
	int rc;

	folded_is((const char *)bytes, len);
	HOLDS(!source_open(&source, path, NULL));
	rc = is_profile ? pprof_read(&sums, path, source, &err) :
			  folded_read(&sums, path, source, &err);
	source_close(source);
	HOLDS(!rc || (int)err.code == -rc);
	if (!rc || rc == -ERR_CUT)
		check(&sums);
	sums_release(&sums);
	return 0;
}
