/* hsym: dumps that are packed, damaged or of an old kind go through as well. */
#include "tests/unit/t.h"

#include <unistd.h>

#include <zlib.h>

#include "tests/unit/test_addnames.h"

#define NAMES NAME_10 NAME_20
#define DAMAGE "\n10 bytes + 8 at 20040 by BackTrace2\n\t400020\n\twords\n5 bytes + x\n"
#define END_2 "// hsnap: end blocks=2 requested=32 overhead=16\n"

TEST(bad_lines_are_copied_as_they_are)
{
	expect(OURS DAMAGE END_2, OURS DAMAGE NAMES END_2);
}

TEST(bad_lines_are_counted_in_the_summary)
{
	static const char dump[] = OURS DAMAGE END_2;
	struct addnames work;
	struct input input;
	struct err err;
	char text[2000] = "";
	FILE *to = tmpfile();

	assert_non_null(to);
	write_in(dump, sizeof(dump) - 1);
	assert_int_equal(input_open(&input, in_path, &err), 0);
	assert_int_equal(addnames_init(&work, &no_cache, &err), 0);
	assert_int_equal(addnames_read(&work, &input, false, &err), 0);
	addnames_resolve(&work);
	addnames_summary(&work, to, "hsym");
	assert_int_equal(fseek(to, 0, SEEK_SET), 0);
	assert_true(fread(text, 1, sizeof(text) - 1, to) > 0);
	assert_non_null(strstr(text, "; 2 bad lines passed over, the first is "));
	assert_non_null(strstr(text, "/in:16 (bad stack line)\n"));
	(void)fclose(to);
	addnames_release(&work);
	input_close(&input);
}

/* The addresses of a sum get names; what has names in the log needs none. */
TEST(sums_and_names_are_copied_as_they_are)
{
	static const char sums[] =
		MODULES "20 bytes in 0x2 allocations (@ 0x10 + 0x8) by: BackTrace1\n"
			"\t400010\n\t400020\n"
			"00000010 bytes in 0x1 allocations (@ 0x00000010) by: BackTrace00B53\n"
			"a!main+0x00000012\n";
	char wanted[sizeof(sums) + sizeof(NAMES)];

	snprintf(wanted, sizeof(wanted), "%s%s", sums, NAMES);
	expect(sums, wanted);
}

TEST(utf16_becomes_utf8)
{
	static const char dump[] = OURS END;
	char wide[2 * sizeof(dump)] = "\xff\xfe";

	for (size_t i = 0; i < sizeof(dump) - 1; i++)
		wide[2 + 2 * i] = dump[i];
	write_in(wide, sizeof(wide));
	assert_int_equal(add_names(false), 0);
	expect_bytes(OURS NAMES END, strlen(OURS NAMES END));
}

/* Packs text into the file that goes in; returns how many bytes that makes. */
static long pack_in(const char *text)
{
	gzFile packed = gzopen(in_path, "wb");
	FILE *file;
	long len;

	assert_non_null(packed);
	assert_int_equal(gzwrite(packed, text, (unsigned)strlen(text)), strlen(text));
	assert_int_equal(gzclose(packed), Z_OK);
	file = fopen(in_path, "rb");
	assert_non_null(file);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	len = ftell(file);
	(void)fclose(file);
	return len;
}

TEST(gzip_becomes_plain)
{
	pack_in(OURS END);
	assert_int_equal(add_names(false), 0);
	expect_bytes(OURS NAMES END, strlen(OURS NAMES END));
}

/* Of the file only what is behind the text is missing: by force all of that is taken. */
TEST(cut_gzip_is_taken_by_force_alone)
{
	assert_int_equal(truncate(in_path, pack_in(OURS END) - 1), 0);
	assert_int_equal(add_names(false), -ERR_CUT);
	assert_int_equal(add_names(true), 0);
	expect_bytes(OURS NAMES END, strlen(OURS NAMES END));
}

GROUP(make_dir, remove_dir)
