/* gen_etl OUT MIB LIVE: writes an ETW log of MIB MiB. One process allocates and frees on four
 * processors; each allocation has one of 2,000 stacks of 20 frames. LIVE blocks remain at the
 * end. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER 65536
#define CPUS 4
#define FRAMES 20

static unsigned char buffers[CPUS][BUFFER];
static uint32_t used[CPUS];
static uint64_t sequence, now = 1000000, total;
static uint64_t seed = 88172645463325252;

static uint64_t next(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

static void put(unsigned char *at, uint64_t value, unsigned bytes)
{
	while (bytes--) {
		*at++ = (unsigned char)value;
		value >>= 8;
	}
}

static void flush(FILE *to, unsigned cpu, unsigned type)
{
	unsigned char *at = buffers[cpu];

	put(at, BUFFER, 4);
	put(at + 4, used[cpu], 4);
	put(at + 0x18, ++sequence, 8);
	put(at + 0x28, cpu, 2);
	put(at + 0x30, used[cpu], 4);
	put(at + 0x34, 0x20, 2);
	put(at + 0x36, type, 2);
	fwrite(at, BUFFER, 1, to);
	memset(at, 0, BUFFER);
	used[cpu] = 72;
	total += BUFFER;
}

/* Starts an event with a system header, or a stack event; returns the address of its payload. */
static unsigned char *event(FILE *to, unsigned cpu, unsigned group, unsigned type, unsigned bytes)
{
	unsigned head = group == 0x18 ? 16 : 32, size = head + bytes;
	unsigned char *at;

	if (used[cpu] + size + 8 > BUFFER)
		flush(to, cpu, 0);
	at = buffers[cpu] + used[cpu];
	put(at, 2, 2);
	at[2] = head == 16 ? 17 : 2;
	at[3] = 0xc0;
	put(at + 4, size, 2);
	at[6] = (unsigned char)type;
	at[7] = (unsigned char)group;
	if (head == 32) {
		put(at + 8, 100 + cpu, 4);
		put(at + 12, 4321, 4);
	}
	put(at + (head == 32 ? 16 : 8), now, 8);
	used[cpu] += (size + 7) & ~7u;
	return at + head;
}

static void write_header(FILE *to)
{
	unsigned char *at = event(to, 0, 0, 0, 320);

	put(at + 4, 10, 1);
	put(at + 8, 19045, 4);
	put(at + 12, CPUS, 4);
	put(at + 44, 8, 4);
	put(at + 52, 3000, 4);
	put(at + 248, UINT64_C(132000000000000000), 8);
	put(at + 256, 10000000, 8);
	put(at + 264, UINT64_C(133000000000000000), 8);
	put(at + 272, 1, 4);
	flush(to, 0, 4);
}

static void alloc(FILE *to, uint64_t addr)
{
	unsigned cpu = (unsigned)next() % CPUS, stack = (unsigned)next() % 2000;
	unsigned char *at = event(to, cpu, 0x10, 33, 28);
	uint64_t then = now;

	put(at, 0x10000, 8);
	put(at + 8, 16 + stack % 50 * 8, 8);
	put(at + 16, addr, 8);
	now++;
	at = event(to, cpu, 0x18, 32, 16 + 8 * FRAMES);
	put(at, then, 8);
	put(at + 8, 4321, 4);
	put(at + 12, 100 + cpu, 4);
	for (unsigned i = 0; i < FRAMES; i++)
		put(at + 16 + 8 * i, UINT64_C(0x7ff700000000) + stack * 64 * (i < 5) + i * 16, 8);
	now += 3;
}

int main(int argc, char **argv)
{
	uint64_t bytes = argc == 4 ? strtoull(argv[2], NULL, 10) << 20 : 0, count = 0, freed = 0;
	uint64_t live = argc == 4 ? strtoull(argv[3], NULL, 10) : 0;
	FILE *to = bytes ? fopen(argv[1], "wb") : NULL;

	if (!to)
		return 2;
	for (unsigned i = 0; i < CPUS; i++)
		used[i] = 72;
	write_header(to);
	while (total < bytes || count < live) {
		alloc(to, 0x100000 + 32 * count++);
		while (count - freed > live) {
			unsigned char *at = event(to, (unsigned)next() % CPUS, 0x10, 36, 20);

			put(at, 0x10000, 8);
			put(at + 8, 0x100000 + 32 * freed++, 8);
			now += 2;
		}
	}
	for (unsigned i = 0; i < CPUS; i++)
		flush(to, i, 0);
	return fclose(to) ? 2 : 0;
}
