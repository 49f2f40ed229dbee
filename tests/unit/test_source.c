#include "tests/unit/scratch.h"

#include <zlib.h>

#include "core/dump/source.h"
#include "tests/unit/test_scan_log.h"

static char path[340];

/* Reads the file to its end, `step` bytes at a time; the caller releases text. */
static int read_all(struct buf *text, size_t step, struct err *err)
{
	char *part = malloc(step);
	struct source *source;
	int64_t got = source_open(&source, path, err);

	buf_init(text);
	assert_int_equal(got, 0);
	assert_non_null(part);
	while ((got = source_read(source, part, step, err)) > 0) {
		assert_true((size_t)got <= step);
		buf_add(text, part, (size_t)got);
	}
	/* After the end or an error, every read has the same result. */
	assert_int_equal(source_read(source, part, step, NULL), got);
	source_close(source);
	free(part);
	return (int)got;
}

/* Checks that the file reads as `text`, then returns rc, at any step. */
static void expect_text(const char *text, size_t len, int rc)
{
	static const size_t steps[] = {1, 7, 4095, 4096, 1 << 20};

	for (size_t i = 0; i < COUNT(steps); i++) {
		struct err err = {0};
		struct buf got;

		assert_int_equal(read_all(&got, steps[i], &err), rc);
		assert_int_equal(err.code, -rc);
		if (rc)
			assert_string_equal(err.place, path);
		assert_int_equal(got.len, len);
		if (len)
			assert_memory_equal(got.data, text, len);
		buf_release(&got);
	}
}

static void pack(struct buf *packed, const char *text, size_t len)
{
	z_stream stream = {0};
	size_t bound;

	assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	bound = deflateBound(&stream, len) + 64;
	buf_reserve(packed, bound);
	stream.next_in = (unsigned char *)(uintptr_t)text;
	stream.avail_in = (uInt)len;
	stream.next_out = (unsigned char *)packed->data + packed->len;
	stream.avail_out = (uInt)bound;
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	packed->len += stream.total_out;
	deflateEnd(&stream);
}

/* Returns numbers from a fixed seed, one per line. This text compresses moderately. */
static char *some_text(size_t len)
{
	char *text = malloc(len + 16);
	uint32_t seed = 1;

	assert_non_null(text);
	for (size_t at = 0; at < len; at += strlen(text + at)) {
		seed = seed * 1103515245 + 12345;
		snprintf(text + at, 16, "%x\n", seed >> 8);
	}
	return text;
}

static struct buf packed;

static int end(void **state)
{
	(void)state;
	buf_release(&packed);
	return 0;
}

/* Writes the compressed bytes except the last `cut` ones. */
static void write_packed(size_t cut)
{
	file_write(path, packed.data, packed.len - cut);
}

#undef TEST_AROUND
#define TEST_AROUND NULL, end

TEST(plain_bytes_come_as_they_are)
{
	static const char with_nul[] = "a\0b\xff\n";
	char *text = some_text(1000000);

	file_write(path, text, 1000000);
	expect_text(text, 1000000, 0);
	file_write(path, with_nul, sizeof(with_nul));
	expect_text(with_nul, sizeof(with_nul), 0);
	file_write(path, "\x1f", 1); /* only the first byte of gzip's mark */
	expect_text("\x1f", 1, 0);
	file_write(path, "\xff", 1);
	expect_text("\xff", 1, 0);
	file_write(path, "", 0);
	expect_text("", 0, 0);
	free(text);
}

TEST(mark_of_utf8_is_dropped)
{
	file_write(path, "\xef\xbb\xbfwords\n", 9);
	expect_text("words\n", 6, 0);
	file_write(path, "\xef\xbb\xbf", 3);
	expect_text("", 0, 0);
	file_write(path, "\xef\xbbwords", 7);
	expect_text("\xef\xbbwords", 7, 0);
}

TEST(gzip_is_unpacked)
{
	char *text = some_text(3000000);

	pack(&packed, text, 3000000);
	write_packed(0);
	expect_text(text, 3000000, 0);
	buf_clear(&packed);
	pack(&packed, "", 0);
	write_packed(0);
	expect_text("", 0, 0);
	free(text);
}

TEST(several_members_are_one_text)
{
	char *text = some_text(300000);
	static const char zeros[5000];

	pack(&packed, text, 100000);
	pack(&packed, "", 0);
	for (size_t at = 100000; at < 300000; at += 1000)
		pack(&packed, text + at, 1000);
	write_packed(0);
	expect_text(text, 300000, 0);
	buf_add(&packed, zeros, sizeof(zeros)); /* like the padding on tapes */
	write_packed(0);
	expect_text(text, 300000, 0);
	buf_add(&packed, "x", 1);
	write_packed(0);
	expect_text(text, 300000, -ERR_READ);
	free(text);
}

TEST(other_bytes_behind_gzip_are_error)
{
	pack(&packed, "text", 4);
	buf_add(&packed, "text", 4);
	write_packed(0);
	expect_text("text", 4, -ERR_READ);
	packed.data[packed.len - 4] = '\x1f'; /* only the first byte of a member's mark */
	write_packed(3);
	expect_text("text", 4, -ERR_CUT);
	write_packed(0);
	expect_text("text", 4, -ERR_READ);
}

TEST(cut_gzip_gives_what_is_there)
{
	char *text = some_text(20000);
	size_t last = 0;

	pack(&packed, text, 20000);
	for (size_t cut = 2; cut < packed.len; cut += cut + 20 < packed.len ? 13 : 1) {
		struct err err = {0};
		struct buf got;

		file_write(path, packed.data, cut);
		assert_int_equal(read_all(&got, 1000, &err), -ERR_CUT);
		assert_int_equal(err.code, ERR_CUT);
		assert_true(got.len >= last && got.len <= 20000);
		if (got.len)
			assert_memory_equal(got.data, text, got.len);
		last = got.len;
		buf_release(&got);
	}
	assert_int_equal(last, 20000); /* the last cut was inside the trailer */
	free(text);
}

TEST(damaged_gzip_is_distinguished_from_cut_gzip)
{
	char *text = some_text(20000);
	struct buf got;
	struct err err = {0};

	pack(&packed, text, 20000);
	packed.data[packed.len - 6] ^= 1; /* in the checksum, after the text was returned */
	write_packed(0);
	expect_text(text, 20000, -ERR_READ);
	write_packed(4); /* and the file is cut after the checksum */
	expect_text(text, 20000, -ERR_READ);
	packed.data[packed.len - 6] ^= 1;
	packed.data[packed.len - 1] ^= 1; /* in the length */
	write_packed(0);
	expect_text(text, 20000, -ERR_READ);
	packed.data[packed.len - 1] ^= 1;
	packed.data[2] = 7; /* unknown method */
	write_packed(0);
	expect_text("", 0, -ERR_READ);
	assert_int_equal(read_all(&got, 100, &err), -ERR_READ);
	assert_non_null(strstr(err.detail, "damaged gzip data"));
	buf_release(&got);
	free(text);
}

/* If any byte is changed, reading gives either the whole text, or a part of it and an error. */
TEST(no_change_to_gzip_goes_unseen)
{
	char *text = some_text(500);

	pack(&packed, text, 500);
	for (size_t i = 2; i < packed.len; i++) {
		struct buf got;
		int rc;

		packed.data[i] ^= 0x10;
		write_packed(0);
		rc = read_all(&got, 4096, NULL);
		assert_true(rc == 0 || rc == -ERR_READ || rc == -ERR_CUT);
		if (!rc) { /* a change of the header or of unused codes has no effect */
			assert_int_equal(got.len, 500);
			assert_memory_equal(got.data, text, 500);
		}
		buf_release(&got);
		packed.data[i] ^= 0x10;
	}
	free(text);
}

/* U+0041 U+00E9 U+20AC U+1F600 U+0000 U+FFFF U+10FFFF, as in the tables of the Unicode standard. */
#define UTF16_LE "A\x00\xe9\x00\xac\x20\x3d\xd8\x00\xde\x00\x00\xff\xff\xff\xdb\xff\xdf"
#define UTF16_BE                                                                                   \
	"\x00"                                                                                     \
	"A\x00\xe9\x20\xac\xd8\x3d\xde\x00\x00\x00\xff\xff\xdb\xff\xdf\xff"
static const char utf8[] = "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\x00\xef\xbf\xbf\xf4\x8f\xbf\xbf";

TEST(utf16_becomes_utf8)
{
	static const char le[] = "\xff\xfe" UTF16_LE, be[] = "\xfe\xff" UTF16_BE;

	file_write(path, le, sizeof(le) - 1);
	expect_text(utf8, sizeof(utf8) - 1, 0);
	file_write(path, be, sizeof(be) - 1);
	expect_text(utf8, sizeof(utf8) - 1, 0);
	pack(&packed, le, sizeof(le) - 1); /* UTF-16 in gzip */
	write_packed(0);
	expect_text(utf8, sizeof(utf8) - 1, 0);
	file_write(path, "\xff\xfe", 2);
	expect_text("", 0, 0);
}

/* Returns the text as UTF-16 with a byte order mark. The buffer has room for one more byte; the
 * caller frees it. */
static char *widen(const char *text, size_t len)
{
	char *wide = malloc(2 * len + 3);

	assert_non_null(wide);
	memcpy(wide, "\xfe\xff", 2);
	for (size_t i = 0; i < len; i++) {
		wide[2 + 2 * i] = '\0';
		wide[3 + 2 * i] = text[i];
	}
	return wide;
}

TEST(long_utf16_is_read_through_window)
{
	size_t len = 400000;
	char *text = some_text(len), *wide = widen(text, len);

	file_write(path, wide, 2 * len + 2);
	expect_text(text, len, 0);
	wide[2 * len + 2] = '\0';
	file_write(path, wide, 2 * len + 3);
	expect_text(text, len, -ERR_CUT);
	free(text);
	free(wide);
}

TEST(half_pairs_become_replacements)
{
	static const char lone[] = "\xff\xfe\x3d\xd8"
				   "A\x00\x00\xde\x3d\xd8\x3d\xd8\x00\xde\x3d\xd8";
	static const char wanted[] = "\xef\xbf\xbd"
				     "A\xef\xbf\xbd\xef\xbf\xbd\xf0\x9f\x98\x80\xef\xbf\xbd";

	file_write(path, lone, sizeof(lone) - 1);
	expect_text(wanted, sizeof(wanted) - 1, 0);
	file_write(path, "\xff\xfe\x3d\xd8\x00\xff", 6); /* U+FF00 is not a low surrogate */
	expect_text("\xef\xbf\xbd\xef\xbc\x80", 6, 0);
	file_write(path, lone, sizeof(lone)); /* and half a unit at the end */
	expect_text(wanted, sizeof(wanted) - 1, -ERR_CUT);
}

/* Checks that a reader can peek at a file that contains text in some form. */
static void check_peeks(const char *text, size_t len)
{
	char *read = malloc(len);
	const char *bytes;
	struct source *source;
	size_t at = 0;
	int64_t got;

	assert_non_null(read);
	assert_int_equal(source_open(&source, path, NULL), 0);
	while ((got = source_peek(source, &bytes, NULL)) > 0) {
		size_t left = len - at;

		assert_true((size_t)got >= (left < SOURCE_PEEK_BYTES ? left : SOURCE_PEEK_BYTES));
		assert_true((size_t)got <= left);
		assert_memory_equal(bytes, text + at, (size_t)got);
		got = source_read(source, read, 100001, NULL);
		assert_true(got > 0);
		assert_memory_equal(read, text + at, (size_t)got);
		at += (size_t)got;
	}
	assert_int_equal(got, 0);
	assert_int_equal(at, len);
	source_close(source);
	free(read);
}

TEST(what_was_peeked_at_is_read_again)
{
	size_t len = 1000000;
	char *text = some_text(len), *wide = widen(text, len);

	file_write(path, text, len);
	check_peeks(text, len);
	file_write(path, wide, 2 * len + 2);
	check_peeks(text, len);
	free(text);
	free(wide);
}

static bool is_plain(const char *name, uint64_t *from, uint64_t *to)
{
	struct source *source;
	bool plain;

	assert_int_equal(source_open(&source, name, NULL), 0);
	plain = source_is_plain(source, from, to);
	source_close(source);
	return plain;
}

TEST(only_bytes_of_file_are_plain)
{
	uint64_t from = 9, to = 9;
	struct source *source;
	char part[4] = "";

	file_write(path, "words\n", 6);
	assert_true(is_plain(path, &from, &to));
	assert_true(from == 0 && to == 6);
	file_write(path, "\xef\xbb\xbfwords\n", 9);
	assert_true(is_plain(path, &from, &to));
	assert_true(from == 3 && to == 9);
	assert_int_equal(source_open(&source, path, NULL), 0);
	assert_int_equal(source_read_at(source, 4, part, 3, NULL), 0);
	assert_string_equal(part, "ord");
	assert_int_equal(source_read_at(source, 7, part, 3, NULL), -ERR_READ);
	source_close(source);
	file_write(path, "\xff\xfe/\0", 4);
	assert_false(is_plain(path, &from, &to));
	pack(&packed, "words", 5);
	write_packed(0);
	assert_false(is_plain(path, &from, &to));
	assert_false(is_plain("/dev/zero", &from, &to));
	assert_false(is_plain("/dev/null", &from, &to));
}

/* Texts and their original forms. NULL: the text is not changed. */
static const struct {
	const char *text, *printed;
} pasted[] = {
	{"1 bytes + 2 at 3 by BackTrace4\n    401000\n    Alias\n  402000  \n\n  words 401000\n",
		"1 bytes + 2 at 3 by BackTrace4\n\t401000\n\tAlias\n\t402000\n\n  words 401000\n"},
	{"1 bytes + 2 at 3 by BackTrace4\n\n\t401000\n\n\n\t402000\n\n1 bytes + 2 at 3 by "
	 "BackTrace5\n",
		"1 bytes + 2 at 3 by BackTrace4\n\t\n\t401000\n\t\n\t\n\t402000\n\n1 bytes + 2 at "
		"3 by BackTrace5\n"},
	{"> 1 bytes + 2 at 3 by BackTrace4\r\n>\r\n>>> \t401000\r\n> end > 0\r\n",
		"1 bytes + 2 at 3 by BackTrace4\r\n\t\r\n\t401000\r\nend > 0\r\n"},
	{"1 bytes + 2 at 3 by BackTrace4\n401000\nF\n402000\n",
		/* F may be the number of a page. */
		"1 bytes + 2 at 3 by BackTrace4\n\t401000\nF\n402000\n"},
	{"//\xc2\xa0\xc2\xa0 401000\xc2\xa0 2000 C:\\a\xc2\xa0 b.exe\n// x\xc2\xa0y \n",
		"//   401000  2000 C:\\a  b.exe\n// x\xc2\xa0y\n"},
	{"*\xe2\x80\x94 Heap 10 Hogs\n  + 1 ( 2 \xe2\x88\x92 1) 1 allocs BackTrace1\n "
	 "m!f\xe2\x80\x93+1\n",
		"*- Heap 10 Hogs\n+ 1 ( 2 - 1) 1 allocs BackTrace1\n\tm!f\xe2\x80\x93+1\n"},
	{"+ 1 ( 2 - 1) 1 allocs BackTrace1\r\r\n+ 1 ( 2 - 1) BackTrace1 "
	 "allocations\r\r\n\r\r\n\tm!f\r\r\n",
		"+ 1 ( 2 - 1) 1 allocs BackTrace1\r\n+ 1 ( 2 - 1) BackTrace1 "
		"allocations\r\n\t\r\n\tm!f\r\n"},
	{"  // hsnap: warning text=\"a \xc2\xa0 > b\"\n",
		"// hsnap: warning text=\"a \xc2\xa0 > b\"\n"},
	/* Texts that are original already, or whose original form is uncertain. */
	{"1 bytes + 2 at 3 by BackTrace4\n\t401000\n\n5 bytes + 6 at 7 by BackTrace4\n", NULL},
	{"+ 1 ( 2 - 1) 1 allocs\tBackTrace1\n+ 1 ( 2 - 1)\tBackTrace1\tallocations\n\n\tm!f+1\n\n",
		NULL},
	{"DBGHELP: app - no symbols\n         C:\\a.pdb\n     STACK if not already dumped.\n",
		NULL},
	{"> words\n>\n\n   401000\n  m!f+1\n401000\n  Alias\n", NULL},
	{"1 bytes + 2 at 3 by BackTrace4\nF\n10\n\t401000\n401000\n", NULL},
	{"4 bytes in 0x2 allocations (@ 0x2) by: BackTrace5\na!b+0x1\n401000 : a!c+1\n\na!d\n",
		NULL},
	{"leak:> a\n # b\n\n  ntdll!*\n", NULL},
	{"1 bytes + 2 at 3 by BackTrace4\n  40\v1000\n", NULL},
};

TEST(what_was_pasted_reads_as_it_was_printed)
{
	static const char as_it_is[] = "words\n";
	uint64_t from, to;

	for (size_t i = 0; i < COUNT(pasted); i++) {
		const char *text = pasted[i].text, *wanted = pasted[i].printed;
		struct buf many_times;

		file_write(path, text, strlen(text));
		if (is_plain(path, &from, &to) != !wanted)
			fail_msg("%s", text);
		if (!wanted) {
			expect_text(text, strlen(text), 0);
			continue;
		}
		expect_text(wanted, strlen(wanted), 0);
		/* The text is read through a window, and after other lines. */
		buf_init(&many_times);
		buf_add_text(&many_times, as_it_is);
		while (many_times.len < 2 * SOURCE_PEEK_BYTES)
			buf_add_text(&many_times, text);
		file_write(path, many_times.data, many_times.len);
		buf_clear(&many_times);
		buf_add_text(&many_times, as_it_is);
		for (size_t len = strlen(as_it_is); len < 2 * SOURCE_PEEK_BYTES;
			len += strlen(text))
			buf_add_text(&many_times, wanted);
		check_peeks(many_times.data, many_times.len);
		buf_release(&many_times);
	}
}

/* Lines that are longer than a dump's lines, many empty lines, and binary bytes. */
TEST(what_cannot_be_mended_comes_as_it_is)
{
	static const char head[] = "1 bytes + 2 at 3 by BackTrace4\n  401000\n";
	static const char tail[] = "\n1 bytes + 2 at 3 by BackTrace4\n  401000";
	static const char fills[] = {'x', ' ', '\n', '>'};

	for (size_t i = 0; i < COUNT(fills); i++) {
		size_t len = 3 * DUMP_LINE_MAX;
		char *text = malloc(len + 200), *wanted = malloc(len + 200);
		size_t text_len, wanted_len;

		assert_non_null(text);
		assert_non_null(wanted);
		memcpy(text, head, strlen(head));
		memset(text + strlen(head), fills[i], len);
		strcpy(text + strlen(head) + len, tail);
		text_len = strlen(head) + len + strlen(tail);
		wanted_len = (size_t)sprintf(wanted, "1 bytes + 2 at 3 by BackTrace4\n\t401000\n");
		memset(wanted + wanted_len, fills[i], len);
		wanted_len += len;
		wanted_len += (size_t)sprintf(
			wanted + wanted_len, "\n1 bytes + 2 at 3 by BackTrace4\n\t401000");
		file_write(path, text, text_len);
		expect_text(wanted, wanted_len, 0);
		free(text);
		free(wanted);
	}
	file_write(path, "1 bytes + 2 at 3 by BackTrace4\n  401000\n\0\n", 43);
	expect_text("1 bytes + 2 at 3 by BackTrace4\n  401000\n\0\n", 43, 0);
}

static int count_entry(void *ctx, const struct dump_entry *entry)
{
	*(uint64_t *)ctx += entry->block_count;
	return 0;
}

#define ENTRIES "1 bytes + 2 at 3 by BackTrace4\n\t401000\n5 bytes + 6 at 7 by BackTrace4\n"

TEST(packed_dumps_are_scanned)
{
	static const char dump[] = ENTRIES ENTRIES;
	struct dump_sink sink = {.entry = count_entry};
	struct err err = {0};
	uint64_t blocks = 0;

	sink.ctx = &blocks;
	pack(&packed, ENTRIES, sizeof(ENTRIES) - 1);
	pack(&packed, ENTRIES, sizeof(ENTRIES) - 1);
	write_packed(0);
	assert_int_equal(dump_scan_file(path, &sink, &err), 0);
	assert_int_equal(blocks, 4);
	write_packed(1); /* only the last length is cut */
	assert_int_equal(dump_scan_file(path, &sink, &err), -ERR_CUT);
	assert_non_null(strstr(err.detail, "gzip"));
	assert_int_equal(blocks, 8);
	packed.len = 0;
	pack(&packed, dump, sizeof(dump) - 12); /* cut inside the last line */
	write_packed(1);
	assert_int_equal(dump_scan_file(path, &sink, &err), -ERR_CUT);
	assert_int_equal(blocks, 11); /* a partial line is not an entry */
}

static int begin(void **state)
{
	int rc = scratch_begin(state);

	snprintf(path, sizeof(path), "%s/dump.txt", dir);
	return rc;
}

GROUP(begin, scratch_end)
