/*
 * Which blocks are recorded when not all are: one in so many bytes on the average, chosen so that
 * nothing about a program's own pattern counts. A block of s bytes is recorded with a probability of
 * exactly 1 - exp(-s / mean_bytes), whatever was recorded before; one of 0 bytes as one of 1.
 */
#ifndef SNAPSHOT_TRACER_SAMPLE_H
#define SNAPSHOT_TRACER_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A thread's word is 0 before its first block, then the bytes to the next one that is recorded + 1. A
 * distance that does not fit is gone in parts, and at the end of each but the last nothing is
 * recorded: SAMPLE_PART marks those. Since the rest of an exponential distance is distributed as a
 * fresh one, the parts need not know of each other.
 */
#define SAMPLE_PART ((uint32_t)1 << 31)

/* Decides at the end of a distance; bytes is not 0. For sample_crosses(). */
bool sample_at_end(uint32_t *word, uint64_t *random, uint64_t mean_bytes, uint64_t bytes);

/*
 * Whether to record a block that was just allocated.
 *
 * word: the thread's own, 0 before its first block. It fits into a TLS slot of either bitness.
 * random: one for all threads, begun with anything that differs between runs; used seldom.
 * mean_bytes: 1 to 2^40, always the same one for a word.
 */
static inline bool sample_crosses(
	uint32_t *word, uint64_t *random, uint64_t mean_bytes, uint64_t bytes)
{
	bytes += !bytes;
	if ((*word & ~SAMPLE_PART) <= bytes)
		return sample_at_end(word, random, mean_bytes, bytes);
	*word -= (uint32_t)bytes;
	return false;
}

/* An exponentially distributed distance from 64 random bits, rounded down to whole bytes; what it is
 * rounded from is right to 1 part in a million of the mean. */
uint64_t sample_distance(uint64_t bits, uint64_t mean_bytes);

/*
 * Which addresses may be in the table, so that the free of a block that was not recorded looks at one
 * byte. Counters that are full stay so. Any thread; an address is added before its block is put into
 * the table and removed after it was taken out.
 */
#define TRACER_FILTER_LOG2 18

struct tracer_filter {
	uint8_t counts[1u << TRACER_FILTER_LOG2];
};

void tracer_filter_add(struct tracer_filter *filter, uint64_t addr);
void tracer_filter_remove(struct tracer_filter *filter, uint64_t addr);

static inline uint8_t *tracer_filter_count(struct tracer_filter *filter, uint64_t addr)
{
	return &filter->counts[(addr >> 3) * 0x9e3779b97f4a7c15u >> (64 - TRACER_FILTER_LOG2)];
}

static inline bool tracer_filter_may_hold(struct tracer_filter *filter, uint64_t addr)
{
	return __atomic_load_n(tracer_filter_count(filter, addr), __ATOMIC_RELAXED) != 0;
}

#endif
