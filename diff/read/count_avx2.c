/* The hot loop of a tally, compiled for AVX2; see tally_init(). clang does not know the pragma. */
#if defined(__x86_64__) && !defined(__clang__)
#pragma GCC target("avx2,bmi,bmi2")
#endif

#include "diff/read/count_fast.h"

const char *tally_frames_avx2(uint64_t *frames, const char *at, const char *end, uint32_t *count)
{
	return frames_parse(frames, at, end, count);
}

const char *tally_plain_avx2(struct thread_counts *tally, const char *at, const char *end,
	struct dump_progress *progress)
{
	return plain(tally, at, end, progress);
}
