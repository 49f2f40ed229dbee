/*
 * The two environment blocks of a 32-bit process on a 64-bit system. A thread's 64-bit TEB begins
 * with the address of its 32-bit TEB, which contains the address of the 32-bit PEB. This is true on
 * Windows, in Wine 8 and 10, and for the first thread in Wine's new WoW64. For other threads in Wine's
 * new WoW64, the distance between the TEBs is known. The system's own reply to a query is not
 * always an address: Wine 8 returns 1. In Wine, the 32-bit PEB is one page after the 64-bit PEB;
 * both its server and its ntdll rely on this. */
#include "snapshot/target/nt_process.h"
#include "snapshot/target/peb_layout.h"

#define WINE_PEB_STEP 0x1000u
#define LOWEST_ADDR 0x10000u /* lower addresses are never mapped */

static int read_ptr(struct target *target, unsigned bits, uint64_t addr, uint64_t *value)
{
	unsigned char bytes[8];
	int rc = target_read(target, addr, bytes, bits / 8);

	if (!rc)
		*value = bytes_ptr(bytes, bits);
	return rc;
}

int nt_peb_of_teb(struct target *target, unsigned bits, uint64_t teb, uint64_t *peb)
{
	const struct peb_layout *layout = peb_layout(bits);
	uint64_t self, found;

	if (!teb || read_ptr(target, bits, teb + layout->teb_self, &self) || self != teb ||
		read_ptr(target, bits, teb + layout->teb_peb, &found) || !found)
		return -ERR_READ;
	*peb = found;
	return 0;
}

/* Returns the thread's TEB of the other bitness, by the distance that a TEB contains, or 0. */
static uint64_t other_teb(struct target *target, unsigned bits, uint64_t teb)
{
	const unsigned other = 96 - bits;
	uint64_t distance, found, self;

	if (read_ptr(target, 32, teb + peb_layout(bits)->teb_distance, &distance))
		return 0;
	found = teb + (uint64_t)(int32_t)distance;
	return !read_ptr(target, other, found + peb_layout(other)->teb_self, &self) &&
			       self == found ?
		       found :
		       0;
}

uint64_t nt_guest_teb(struct target *target, uint64_t teb)
{
	uint64_t guest;

	if (read_ptr(target, 64, teb + peb_layout(64)->teb_wow, &guest) || guest > UINT32_MAX)
		return 0;
	return guest ? guest : other_teb(target, 64, teb);
}

uint64_t nt_host_teb(struct target *target, uint64_t teb)
{
	return other_teb(target, 32, teb);
}

static bool is_guest_peb(struct target *target, uint64_t peb, uint64_t addr)
{
	uint64_t image, guest_image;

	return addr >= LOWEST_ADDR && addr <= UINT32_MAX &&
	       !read_ptr(target, 64, peb + peb_layout(64)->image_base, &image) && image &&
	       !read_ptr(target, 32, addr + peb_layout(32)->image_base, &guest_image) &&
	       guest_image == image;
}

uint64_t nt_guest_peb(struct target *target, uint64_t peb, uint64_t asked)
{
	if (is_guest_peb(target, peb, asked))
		return asked;
	if (target->is_wine && is_guest_peb(target, peb, peb + WINE_PEB_STEP))
		return peb + WINE_PEB_STEP;
	return 0;
}

uint64_t nt_host_peb(struct target *target, uint64_t peb)
{
	uint64_t loader;

	return read_ptr(target, 64, peb + peb_layout(64)->ldr, &loader) || loader ? peb : 0;
}
