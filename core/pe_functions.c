#include "core/pe.h"

#include "core/err.h"

/* The table of functions of x64 images and its unwind records, after Microsoft's "x64 exception
 * handling": entries of begin, end and unwind record, sorted by begin. */
enum {
	ENTRY_BYTES = 12,
	UNWIND_BYTES = 4, /* before its codes of 2 bytes each */
	UNWIND_CHAINED = 4,
	CHAIN_MAX = 32,
};

struct function {
	uint32_t begin, end, unwind;
};

static int read_entry(const struct pe_source *source, const struct pe_image *image, uint32_t rva,
	struct function *function)
{
	unsigned char bytes[ENTRY_BYTES];
	int rc = pe_read(source, image, rva, bytes, sizeof(bytes));

	if (rc)
		return rc;
	*function = (struct function){pe_u32(bytes), pe_u32(bytes + 4), pe_u32(bytes + 8)};
	return 0;
}

/* A part of a function that was moved away from it names, in a chain, the entry it belongs to. */
static int follow_chain(
	const struct pe_source *source, const struct pe_image *image, struct function *function)
{
	int rc = 0;

	for (int i = 0; i < CHAIN_MAX; i++) {
		unsigned char unwind[UNWIND_BYTES];
		uint32_t codes;

		if (function->unwind & 1) { /* no record, another entry */
			rc = read_entry(source, image, function->unwind & ~1u, function);
			if (rc)
				return rc;
			continue;
		}
		rc = pe_read(source, image, function->unwind, unwind, sizeof(unwind));
		if (rc || !(unwind[0] >> 3 & UNWIND_CHAINED))
			return rc;
		codes = (unwind[2] + 1u) & ~1u;
		if (function->unwind > UINT32_MAX - UNWIND_BYTES - codes * 2)
			return -ERR_TARGET;
		rc = read_entry(
			source, image, function->unwind + UNWIND_BYTES + codes * 2, function);
		if (rc)
			return rc;
	}
	return -ERR_TARGET;
}

/* The last entry that begins at or below rva: 1, or 0 when there is none. */
static int find_entry(const struct pe_source *source, const struct pe_image *image, uint32_t rva,
	struct function *found)
{
	uint32_t low = 0, count = image->exceptions.size_bytes / ENTRY_BYTES;
	struct function at;
	int any = 0;

	if (image->exceptions.size_bytes > pe_left_at(image, image->exceptions.rva))
		return -ERR_TARGET;
	while (count) {
		uint32_t half = count / 2;
		int rc = read_entry(
			source, image, image->exceptions.rva + (low + half) * ENTRY_BYTES, &at);

		if (rc)
			return rc;
		if (at.begin <= rva) {
			*found = at;
			any = 1;
			low += half + 1;
			count -= half + 1;
		} else {
			count = half;
		}
	}
	return any;
}

int pe_function_start(
	const struct pe_source *source, const struct pe_image *image, uint32_t rva, uint32_t *start)
{
	struct function found = {0};
	int rc;

	if (image->machine != PE_MACHINE_AMD64 || !image->exceptions.size_bytes)
		return -ERR_SYMBOLS;
	rc = find_entry(source, image, rva, &found);
	if (rc < 0)
		return rc;
	if (!rc || rva >= found.end) {
		*start = rc ? found.end : 0;
		return 0;
	}
	rc = follow_chain(source, image, &found);
	if (rc)
		return rc;
	*start = found.begin;
	return 1;
}
