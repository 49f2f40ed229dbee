#include "snapshot/tracer/unwind.h"

#include <stdbool.h>
#include <string.h>

#define FRAME_BYTES 8 /* the caller's EBP, the return address */

static uint32_t word(const struct unwind_window *window, uint32_t addr)
{
	uint32_t value;

	memcpy(&value, window->bytes + (addr - window->low), sizeof(value));
	return value;
}

static bool is_frame(const struct unwind_window *window, uint32_t ebp)
{
	return !(ebp & 3) && ebp >= window->low && ebp < window->high &&
	       window->high - ebp >= FRAME_BYTES;
}

uint32_t unwind_chain(uint64_t *frames, uint32_t max, const struct unwind_skip *skip,
	const struct unwind_window *window, uint32_t ebp)
{
	uint32_t count = 0, before = 0;

	while (count < max && is_frame(window, ebp) && ebp > before) {
		uint32_t addr = word(window, ebp + 4);

		if (!addr)
			break;
		if (count || addr < skip->from || addr >= skip->to)
			frames[count++] = addr;
		before = ebp;
		ebp = word(window, ebp);
	}
	return count;
}
