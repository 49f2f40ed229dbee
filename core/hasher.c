#include "core/hasher.h"

#include <string.h>

#include "core/os.h"

struct hash_key hash_key(void)
{
	static char here; /* somewhere else in each process */
	static struct hash_key key;

	if (!key.words[1])
		key = (struct hash_key){{(uint64_t)os_time_ms() * UINT64_C(0x9e3779b97f4a7c15),
			((uint64_t)(uintptr_t)&here ^ (uint64_t)os_pid() << 40) | 1}};
	return key;
}

struct hasher hasher_begin(const struct hash_key *key)
{
	/* The four are part of SipHash. */
	return (struct hasher){key->words[0] ^ UINT64_C(0x736f6d6570736575),
		key->words[1] ^ UINT64_C(0x646f72616e646f6d),
		key->words[0] ^ UINT64_C(0x6c7967656e657261),
		key->words[1] ^ UINT64_C(0x7465646279746573)};
}

void hasher_add_bytes(struct hasher *hasher, const void *bytes, size_t len)
{
	const char *at = bytes;

	hasher_add(hasher, len);
	while (len) {
		size_t part = len < 8 ? len : 8;
		uint64_t word = 0;

		memcpy(&word, at, part);
		hasher_add(hasher, word);
		at += part;
		len -= part;
	}
}

uint32_t hasher_end(struct hasher *hasher)
{
	hasher->c ^= 0xff;
	hasher_mix(hasher);
	hasher_mix(hasher);
	hasher_mix(hasher);
	return (uint32_t)((hasher->a ^ hasher->b ^ hasher->c ^ hasher->d) >> 32);
}
