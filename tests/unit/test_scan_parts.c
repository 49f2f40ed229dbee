/* core/scan*. The result must not depend on how a dump is divided into parts, and no input may do
 * harm. */
#include "tests/unit/test_scan_log.h"

/* Sums computed by hand: 2 + 1 + 1 + 14h + 1 blocks; 16 + 10h + 20h + 5320h requested bytes; 8 + 8
 * + 8 + 160 + 8 bytes of overhead. */
static const char ours[] =
	"// hsnap: dump format=1 tool=0.1.0\r\n"
	"// hsnap: process id=12 bits=64\r\n"
	"// Loaded modules: \r\n"
	"//     Base Size Module\r\n"
	"//           140000000    24000 C:\\a b\\app.exe\r\n"
	"//\r\n"
	"// Process modules enumerated.\r\n"
	"// hsnap: heap addr=1000 stackless-blocks=2 stackless-requested=16 "
	"stackless-overhead=8\r\n"
	"*- - - - - - - - - - Heap 1000 Hogs - - - - - - - - - -\r\n"
	"\r\n"
	"10 bytes + 8 at 1010 by BackTrace2A\r\n"
	"\t7FF812345678\r\n"
	"\t140001234\r\n"
	"\t\r\n"
	"\t140001490 \r\n"
	"\r\n"
	"20 bytes + 8 at 1040 by BackTrace2A\r\n"
	"5320 bytes in 0x14 allocations (@ 0x428 + 0x8) by: BackTraceB53\r\n"
	"\t140001234\r\n"
	"\tAlias\r\n"
	"\t140001490\r\n"
	"0 bytes + 8 at 2000 by BackTrace94C4\r\n"
	"*- - - - - - - - - - End of data for heap @ 1000 - - - - - - - - - -\r\n"
	"// hsnap: end blocks=25 requested=21344 overhead=192\r\n"
	"// Memory={}\r\n";

static const char legacy[] =
	"*- - - - - - - - - - Start of data for heap @ 150000 - - - - - - - - - -\n"
	"00005320 bytes in 0x14 allocations (@ 0x00000428) by: BackTrace00B53\n"
	"ntdll!RtlAllocateHeap+0x00000808\n"
	"dbghelp!SymInit+0x12\n"
	"\tMyApp!operator new+0x0000000E\n"
	"fade+0x10\n"
	"\n"
	"00000010 bytes in 0x1 allocations (@ 0x00000010) by: BackTrace00B54\n"
	"\tKERNEL32!BaseProcessStart+0x0000003D \n"
	"00000020 bytes in 0x2 allocations (@ 0x00000010 + 0x8) by: BackTrace00B55\n"
	"00000030 bytes in 0x3 allocations (@ 0x00000010) by: BackTrace00B54\n"
	"\t401000\n"
	"\t402000\n"
	"*- - - - - - - - - - End of data for heap @ 150000 - - - - - - - - - -\n";

static const char damaged[] = "1 bytes + 2 at 3 by BackTrace4\n"
			      "\t401000\n"
			      "2 bytes + \001 at 4\n"
			      "\t402000\n"
			      "3 bytes + 4 at 5 by BackTrace6\n"
			      "\t403000\n"
			      "\tmain\n"
			      "\t404000\n"
			      "words\n"
			      "\t405000\n"
			      "\twords\n"
			      "4 bytes in 0x2 allocations (@ 0x2) by: BackTrace7\n"
			      "a!b+0x1\n"
			      "\t401000\n"
			      "a!b+0x2\n";

static const struct {
	const char *text;
	size_t len;
	int entries, skips;
} dumps[] = {
	{ours, sizeof(ours) - 1, 4, 0},
	{legacy, sizeof(legacy) - 1, 4, 0},
	{damaged, sizeof(damaged) - 1, 3, 4},
};

static int scan_source(
	const char *text, size_t len, size_t step, const struct dump_sink *sink, struct err *err)
{
	struct memory memory = {text, len, 0, step, false};
	struct dump_source source = {read_memory, &memory, "made"};

	return dump_scan(&source, sink, err);
}

/* Parses digits, whose number is known to fit, and the word after them. */
static bool take_number(const char **at, uint64_t *number, const char *word)
{
	size_t digits = strspn(*at, "0123456789abcdefABCDEF");

	if (!digits || digits > 8 || strncmp(*at + digits, word, strlen(word)) != 0)
		return false;
	*number = strtoull(*at, NULL, 16);
	*at += digits + strlen(word);
	return true;
}

/* Parses the entries that a sink could parse itself. They have one block, no stack, and an id of
 * one word. Logs them like log_entry(). */
static const char *take_entries(
	void *ctx, const char *at, const char *end, struct dump_progress *progress)
{
	static const char letters[] = "0123456789ABCDEF";

	for (;;) {
		struct dump_entry entry = {.block_count = 1};
		const char *now = at;

		if (!take_number(&now, &entry.requested_bytes, " bytes + ") ||
			!take_number(&now, &entry.overhead_bytes, " at ") ||
			!take_number(&now, &entry.addr, " by BackTrace"))
			return at;
		entry.stack.id = now;
		entry.id_len = strspn(now, letters);
		now += entry.id_len;
		if (!entry.id_len || entry.id_len > 63 || *now != '\n' || now + 1 >= end ||
			now[1] == '\t')
			return at;
		log_entry(ctx, &entry);
		progress->line_count++;
		progress->seen.block_count++;
		progress->seen.requested_bytes += entry.requested_bytes;
		progress->seen.overhead_bytes += entry.overhead_bytes;
		at = now + 1;
	}
}

enum way { IN_PARTS, WITH_PLAIN, BY_SOURCE };

/* Reads the text in another way, and compares the log with that of reading the whole text at
 * once. */
static void expect_same(const struct scan_log *whole, int rc, const struct err *err,
	const char *text, size_t len, size_t want, enum way way)
{
	struct scan_log log;
	struct dump_sink sink = log_sink(&log);
	struct err other = {0};
	int again;

	if (way == WITH_PLAIN)
		sink.plain = take_entries;
	again = way == BY_SOURCE ? scan_source(text, len, want, &sink, &other) :
				   scan_in_parts(text, len, want, &sink, &other);

	assert_int_equal(again, rc);
	assert_string_equal(other.place, err->place);
	assert_string_equal(other.detail, err->detail);
	assert_int_equal(log.text.len, whole->text.len);
	if (log.text.len)
		assert_string_equal(log.text.data, whole->text.data);
	buf_release(&log.text);
}

static int same_in_every_way(const char *text, size_t len, bool all_ways)
{
	static const size_t wants[] = {1, 7, 100, 4096};
	struct scan_log log;
	struct dump_sink sink = log_sink(&log);
	struct err err = {0};
	int rc = scan_in_parts(text, len, len ? len : 1, &sink, &err);

	for (size_t i = 0; i < COUNT(wants) && !(i && wants[i] > len); i++)
		expect_same(&log, rc, &err, text, len, wants[i], IN_PARTS);
	expect_same(&log, rc, &err, text, len, len ? len : 1, WITH_PLAIN);
	if (all_ways) {
		expect_same(&log, rc, &err, text, len, 1, WITH_PLAIN);
		expect_same(&log, rc, &err, text, len, 1, BY_SOURCE);
		expect_same(&log, rc, &err, text, len, 4096, BY_SOURCE);
	}
	buf_release(&log.text);
	return rc;
}

TEST(whole_dumps_are_read_in_any_parts)
{
	for (size_t i = 0; i < COUNT(dumps); i++) {
		struct scan_log log;
		struct dump_sink sink = log_sink(&log);

		assert_int_equal(same_in_every_way(dumps[i].text, dumps[i].len, true), 0);
		assert_int_equal(scan_source(dumps[i].text, dumps[i].len, 1, &sink, NULL), 0);
		assert_int_equal(log.entries, dumps[i].entries);
		assert_int_equal(log.skips, dumps[i].skips);
		buf_release(&log.text);
	}
}

TEST(every_prefix_is_read_in_any_parts)
{
	for (size_t i = 0; i < COUNT(dumps); i++) {
		for (size_t len = 0; len < dumps[i].len; len++) {
			int rc = same_in_every_way(dumps[i].text, len, len % 16 == 0);

			if (rc && rc != -ERR_CUT && rc != -ERR_EMPTY && rc != -ERR_NOT_DUMP)
				fail_msg("dump %zu cut at %zu: %d", i, len, rc);
		}
	}
}

static uint32_t pick(uint32_t *seed, size_t limit)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed % (uint32_t)limit;
}

static size_t edit(char *text, size_t len, uint32_t *seed)
{
	static const char *const words[] = {"\t", "\n", "\r\n", "\n\n", "\n\t", "//", "*- Heap ",
		"0x", "!", "+0x1", "\tAlias\n", " bytes in ", " bytes + ", "FFFFFFFFFFFFFFFFFF",
		"// hsnap: ", "// hsnap: end", "// Loaded modules",
		"\n1 bytes + 1 at 1 by BackTrace1\n",
		"\n1 bytes in 1 allocations (@ 1) by: BackTrace1\n", "a!b+0x1\n"};
	size_t at = pick(seed, len), gone = pick(seed, 12), word_len;
	const char *word = words[pick(seed, COUNT(words))];

	if (pick(seed, 2)) {
		text[at] = (char)pick(seed, 256);
		return len;
	}
	word_len = strlen(word);
	gone = at + gone > len ? len - at : gone;
	memmove(text + at + word_len, text + at + gone, len - at - gone);
	for (size_t i = 0; i < word_len; i++)
		text[at + i] = word[i];
	return len + word_len - gone;
}

TEST(edited_dumps_are_read_in_any_parts)
{
	uint32_t seed = 20261120;
	char text[4096];

	for (int round = 0; round < 6000; round++) {
		size_t i = (size_t)round % COUNT(dumps), len = dumps[i].len;

		assert_true(len + 8 * 64 < sizeof(text));
		memcpy(text, dumps[i].text, len);
		for (uint32_t edits = 1 + pick(&seed, 8); edits; edits--)
			len = edit(text, len, &seed);
		same_in_every_way(text, len, round % 32 == 0);
	}
}

/* Returns at least len bytes of entries with stacks. Long items follow the 8th entry, and again
 * every 50000 entries. */
static char *long_dump(size_t len, size_t *used, int *entries)
{
	struct buf text;
	unsigned i = 0;

	buf_init(&text);
	while (text.len < len) {
		buf_printf(&text, "%X bytes + 8 at %X by BackTrace%X\n", i, i, i);
		for (unsigned k = 0; k < i % 40; k++)
			buf_printf(&text, "\t%X%s\n", i + k, k % 7 ? "" : " ");
		/* A stack, a comment and words, each of which fills windows. */
		if (i++ % 50000 == 7) {
			for (unsigned k = 0; k < 1000000; k++)
				buf_add_text(&text, "\t\n");
			buf_add_text(&text, "\t401000\n//");
			for (unsigned k = 0; k < 400000; k++)
				buf_add_text(&text, "words ");
			buf_add_text(&text, "\nx");
			for (unsigned k = 0; k < 400000; k++)
				buf_add_text(&text, "words ");
			buf_add_text(&text, "\n");
		}
	}
	*used = text.len;
	*entries = (int)i;
	return text.data;
}

/* The text includes stacks and lines that are larger than the window of dump_scan(). */
TEST(long_dumps_are_read_through_window)
{
	int entries;
	size_t len;
	char *text = long_dump((size_t)20 << 20, &len, &entries);
	struct scan_log log;
	struct dump_sink sink = log_sink(&log);
	struct err err = {0};
	int rc = scan_in_parts(text, len, len, &sink, &err);

	assert_int_equal(rc, 0);
	assert_int_equal(log.entries, entries);
	/* The skipped lines are the long words. */
	assert_int_equal(log.skips, 1 + (entries - 8) / 50000);
	expect_same(&log, rc, &err, text, len, SIZE_MAX, BY_SOURCE);
	expect_same(&log, rc, &err, text, len, 65537, BY_SOURCE);
	expect_same(&log, rc, &err, text, len, 100000, IN_PARTS);
	expect_same(&log, rc, &err, text, len, 100000, WITH_PLAIN);
	buf_release(&log.text);
	free(text);
}
