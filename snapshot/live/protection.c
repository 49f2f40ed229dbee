#include "snapshot/live/protection.h"

#include "snapshot/target/target.h"

/* PAGE_* of winnt.h, Windows SDK: one of the low eight bits, and modifiers above them. */
#define PROTECT_KIND 0xffu
#define PROTECT_GUARD 0x100u

unsigned protection_access(uint32_t protect)
{
	if (protect & PROTECT_GUARD)
		return 0;
	switch (protect & PROTECT_KIND) {
	case 0x02: return TARGET_READ; /* PAGE_READONLY */
	case 0x04: /* PAGE_READWRITE */
	case 0x08: return TARGET_READ | TARGET_WRITE; /* PAGE_WRITECOPY */
	case 0x10: return TARGET_EXECUTE; /* PAGE_EXECUTE */
	case 0x20: return TARGET_READ | TARGET_EXECUTE; /* PAGE_EXECUTE_READ */
	case 0x40: /* PAGE_EXECUTE_READWRITE */
	case 0x80: return TARGET_READ | TARGET_WRITE | TARGET_EXECUTE; /* PAGE_EXECUTE_WRITECOPY */
	default: return 0; /* PAGE_NOACCESS, and what is no protection */
	}
}
