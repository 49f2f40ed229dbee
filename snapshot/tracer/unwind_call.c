/* Recognizes call instructions, given the address after them. Both unwinders use this to reject
 * stack words that are not return addresses. */
#include "snapshot/tracer/unwind.h"

uint32_t unwind_frees;

#define CALL_BYTES_MAX 7

/* Returns the length of the near call that begins at `code`, or 0. "CALL", Intel's manual, volume
 * 2. */
static unsigned call_bytes(const uint8_t *code)
{
	unsigned mode = code[1] >> 6, rm = code[1] & 7;
	bool has_sib = mode != 3 && rm == 4;
	bool has_no_base = !mode && (has_sib ? (code[2] & 7) == 5 : rm == 5);

	if (*code == 0xe8)
		return 5;
	if (*code != 0xff || (code[1] & 0x38) != 0x10)
		return 0;
	return 2 + has_sib + (mode == 1 ? 1 : mode == 2 || has_no_base ? 4 : 0);
}

bool unwind_is_after_call(const uint8_t *code, uint64_t room)
{
	for (unsigned bytes = 2; bytes <= CALL_BYTES_MAX && bytes <= room; bytes++) {
		if (call_bytes(code - bytes) == bytes)
			return true;
	}
	return false;
}
