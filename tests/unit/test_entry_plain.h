/* Tests of diff/read/count.h, for each way of compiling it. The expected meaning of a line comes
 * from the line's construction and from a slow parser in this file. */
#include "tests/unit/t.h"

#include <inttypes.h>

#include "diff/read/count.h"

#define PAD 128

static uint64_t seed = 88172645463325252u;

static uint64_t random_number(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* Returns a number of `count` digits without leading zeros. */
static uint64_t number_of(unsigned count)
{
	uint64_t low = count > 1 ? UINT64_C(1) << 4 * (count - 1) : 0;
	uint64_t span = count < 16 ? (UINT64_C(1) << 4 * count) - low : UINT64_MAX - low;

	return low + random_number() % span;
}

struct text {
	char bytes[300 + PAD];
	size_t len;
};

static void set(struct text *text, const char *bytes, size_t len)
{
	memset(text, 0, sizeof(*text));
	memcpy(text->bytes, bytes, len);
	text->len = len;
}

TEST(every_plain_line_is_read)
{
	static const char *const ends[] = {"\n", "\r\n"};

	for (int i = 0; i < 200000; i++) {
		uint64_t requested = number_of(1 + i % 8), overhead = number_of(1 + i / 8 % 8);
		uint64_t addr = number_of(1 + i / 64 % 16), id = number_of(1 + i / 512 % 8);
		const char *end = ends[i & 1];
		struct entry_plain entry;
		struct text text;
		char line[200];
		int len = snprintf(line, sizeof(line),
			"%" PRIX64 " bytes + %" PRIX64 " at %" PRIX64 " by BackTrace%" PRIX64
			"%s%s",
			requested, overhead, addr, id, end, i & 2 ? "\t12\n" : "");
		const char *behind;

		set(&text, line, (size_t)len);
		behind = entry_plain(&entry, text.bytes);
		if ((size_t)(strchr(line, '\n') - line) >= 64) {
			assert_null(behind);
			continue;
		}
		assert_ptr_equal(behind, strchr(text.bytes, '\n') + 1);
		assert_int_equal(entry.requested_bytes, requested);
		assert_int_equal(entry.overhead_bytes, overhead);
		assert_int_equal(entry.id, id);
	}
}

/* Skips up to `most` upper-case digits; returns how many. */
static size_t digits(const char **at, size_t most)
{
	size_t count = strspn(*at, "0123456789ABCDEF");

	*at += count;
	return count <= most ? count : 0;
}

static int literal(const char **at, const char *text)
{
	size_t len = strlen(text);
	int is = !strncmp(*at, text, len);

	*at += is ? len : 0;
	return is;
}

static int is_plain(const char *line)
{
	const char *at = line, *id;
	size_t count;

	if (!digits(&at, 8) || !literal(&at, " bytes + ") || !digits(&at, 8) ||
		!literal(&at, " at ") || !digits(&at, 16) || !literal(&at, " by BackTrace"))
		return 0;
	id = at;
	count = digits(&at, 8);
	if (!count || (*id == '0' && count > 1))
		return 0;
	(void)literal(&at, "\r");
	return *at == '\n' && at - line < 64;
}

TEST(lines_that_are_not_plain_are_left)
{
	static const char good[] = "1A bytes + 16 at 20600000040 by BackTraceEDD4EEA6\r\n";
	static const char bytes[] = "0189AFGaf@`/: \t\r\n\v+.\x01\xff\xb0\xc1 byteskrBT";
	size_t plain = 0;

	for (int i = 0; i < 300000; i++) {
		struct entry_plain entry;
		struct text text;

		set(&text, good, sizeof(good) - 1);
		for (uint64_t edits = 1 + random_number() % 3; edits--;) {
			size_t at = random_number() % (text.len + 1);

			switch (random_number() % 3) {
			case 0:
				text.bytes[at] = bytes[random_number() % (sizeof(bytes) - 1)];
				break;
			case 1:
				memmove(text.bytes + at, text.bytes + at + 1, text.len - at + 1);
				break;
			default:
				memmove(text.bytes + at + 1, text.bytes + at, text.len - at);
				text.bytes[at] = bytes[random_number() % (sizeof(bytes) - 1)];
				text.len++;
			}
		}
		plain += is_plain(text.bytes);
		assert_int_equal(entry_plain(&entry, text.bytes) != NULL, is_plain(text.bytes));
	}
	assert_in_range(plain, 1000, 299000); /* both kinds of lines occurred */
}

TEST(a_stack_ends_where_a_line_starts_without_a_tab)
{
	for (int i = 0; i < 100000; i++) {
		struct text text = {{0}, 0};
		const char *wanted = NULL, *limit;
		size_t len = 1 + random_number() % 200;

		for (size_t k = 0; k < len; k++)
			text.bytes[k] = "\n\n\t\t\tAA\r"[random_number() % 8];
		limit = text.bytes + len;
		for (const char *at = text.bytes; !wanted && at < limit; at++) {
			if (*at == '\n' && at[1] != '\t')
				wanted = at + 1;
		}
		assert_ptr_equal(entry_stack_end(text.bytes, limit), wanted ? wanted : limit);
	}
}

TEST(no_byte_behind_the_padding_is_read)
{
	static const char line[] = "1 bytes + 2 at 3 by BackTrace4\n\t5\n";
	struct entry_plain entry;

	for (size_t len = 0; len < sizeof(line); len++) {
		/* exact size: the sanitizer detects a read past the end */
		char *bytes = calloc(1, len + PAD);

		assert_non_null(bytes);
		memcpy(bytes, line, len);
		for (size_t at = 0; at < len; at++) {
			(void)entry_plain(&entry, bytes + at);
			(void)entry_stack_end(bytes + at, bytes + len);
		}
		free(bytes);
	}
}
