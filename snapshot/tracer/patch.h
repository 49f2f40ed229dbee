/*
 * Inline hooks: the first bytes of a function become a jump to ours, and what stood there is kept
 * behind a trampoline that calls the original.
 */
#ifndef SNAPSHOT_TRACER_PATCH_H
#define SNAPSHOT_TRACER_PATCH_H

#include <stdbool.h>
#include <stdint.h>

#define PATCH_HOOKS_MAX 16

struct patch {
	uint8_t *at; /* the function */
	uint8_t old_bytes[8];
	void *original; /* calls the function as it was */
};

struct patcher {
	uint8_t *page; /* trampolines, within 2 GiB of the functions */
	uint32_t used;
};

/* Takes one page near the functions to be patched. False when no room is near. */
bool patcher_init(struct patcher *patcher, const void *near_to);

/* Makes the trampoline page executable and no longer writable; call after the last prepare. */
bool patcher_seal(struct patcher *patcher);

/*
 * Builds the trampoline for function; nothing is changed in it yet. False when its first
 * instructions cannot be moved.
 */
bool patch_prepare(struct patcher *patcher, struct patch *patch, void *function, void *hook);

/* Turns the hook on or off with one 8-byte store. False when the page cannot be written. */
bool patch_enable(const struct patch *patch);
bool patch_disable(const struct patch *patch);

#endif
