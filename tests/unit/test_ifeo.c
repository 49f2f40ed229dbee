#include "tests/unit/t.h"

#include "snapshot/ifeo/ifeo.h"

/* ---------------------------------------------------------------- names */

static void refuse(const char *name)
{
	struct err err = {0};

	assert_int_equal(ifeo_check_name(name, &err), -ERR_IMAGE_NAME);
	assert_int_equal(err.code, ERR_IMAGE_NAME);
}

TEST(file_name_alone_is_taken)
{
	static const char *const names[] = {"app.exe", "APP.EXE", "a.exe", "my app.exe",
		"a.b.c.exe", "tool.com", "saver.ScR", "gr\xc3\xb6\xc3\x9fX.exe", "-x.exe", "..exe"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_int_equal(ifeo_check_name(names[i], NULL), 0);
}

TEST(anything_else_is_refused)
{
	static const char *const names[] = {"", ".", "..", "exe", ".exe", "app", "app.dll",
		"app.exe.", "app.exe ", " app.exe", "C:\\app.exe", "c:app.exe", "\\app.exe",
		"/app.exe", "dir/app.exe", "..\\app.exe", "../app.exe", "*.exe", "a?p.exe",
		"a\"p.exe", "<a>.exe", "a|b.exe", "app.exe:stream", "a\np.exe", "a\x1b[m.exe",
		"a\x7f.exe", "a\xc2\x9b.exe", "\xff.exe", "a\xed\xa0\x80.exe", "app.exe\\"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		refuse(names[i]);
}

TEST(name_has_up_to_255_characters)
{
	char name[2100];

	memset(name, 'a', sizeof(name));
	strcpy(name + 251, ".exe");
	assert_int_equal(ifeo_check_name(name, NULL), 0);
	memset(name, 'a', sizeof(name));
	strcpy(name + 252, ".exe");
	refuse(name);
	/* 126 characters, each of which Windows counts as two */
	for (int i = 0; i < 126; i++)
		strcpy(name + 4 * i, "\xf0\x9f\x98\x80");
	strcpy(name + 4 * 125, ".exe");
	assert_int_equal(ifeo_check_name(name, NULL), 0);
	strcpy(name + 4 * 125, "\xf0\x9f\x98\x80.exe");
	refuse(name);
}

/* ---------------------------------------------------------------- numbers */

static struct ifeo_value dword(uint32_t number)
{
	return (struct ifeo_value){.kind = IFEO_DWORD, .number = number};
}

static struct ifeo_value text(const char *text)
{
	struct ifeo_value value = {.kind = IFEO_TEXT};

	assert_true(strlen(text) < sizeof(value.text));
	strcpy(value.text, text);
	return value;
}

static void check_number(struct ifeo_value value, bool good, uint32_t expected)
{
	const struct ifeo_image image = {.exists = true, .values = {[IFEO_FLAG] = value}};
	char number[40];
	struct buf words;

	buf_init(&words);
	ifeo_describe(&words, &image);
	snprintf(number, sizeof(number), "GlobalFlag %08X", (unsigned)expected);
	assert_int_equal(!strncmp(words.data, "GlobalFlag ", 11), good);
	assert_true(!good || !strncmp(words.data, number, strlen(number)));
	assert_int_equal(ifeo_has_ust(&image), good && expected & 0x1000);
	buf_release(&words);
}

TEST(flags_are_read_as_gflags_writes_them)
{
	check_number(dword(0x1070), true, 0x1070);
	check_number(text("0x00001000"), true, 0x1000);
	check_number(text("0X2001000"), true, 0x2001000);
	check_number(text("0xffffffff"), true, 0xffffffff);
	check_number(text("4294967296"), false, 0);
	check_number(text("0x100000000"), false, 0);
	check_number(text(""), false, 0);
	check_number(text("0x"), false, 0);
	check_number(text("ust"), false, 0);
	check_number(text("-1"), false, 0);
	check_number(text(" 1000"), false, 0);
	check_number(text("1000 "), false, 0);
	check_number((struct ifeo_value){.kind = IFEO_NONE}, false, 0);
	check_number((struct ifeo_value){.kind = IFEO_OTHER}, false, 0);
}

/* Some programs parse plain digits as hexadecimal, others as decimal. */
TEST(digits_without_0x_are_no_number)
{
	check_number(text("0"), false, 0);
	check_number(text("00001000"), false, 0);
	check_number(text("4096"), false, 0);
	check_number(text("ffffffff"), false, 0);
	check_number(text("0b1000"), false, 0);
}

TEST(flags_are_printed_by_name)
{
	struct ifeo_image image = {.exists = true};
	struct buf words;

	buf_init(&words);
	image.values[IFEO_FLAG] = dword(0x02001270);
	image.values[IFEO_DB] = dword(64);
	ifeo_describe(&words, &image);
	assert_string_equal(
		words.data, "GlobalFlag 02001270 htc hfc hpc ust hpa and 200, database of 64 MB");
	buf_clear(&words);
	image.values[IFEO_FLAG] = text("1000");
	ifeo_describe(&words, &image);
	assert_string_equal(words.data, "a GlobalFlag that is not a number, database of 64 MB");
	buf_clear(&words);
	image = (struct ifeo_image){0};
	ifeo_describe(&words, &image);
	assert_string_equal(words.data, "no GlobalFlag");
	buf_release(&words);
}

/* ---------------------------------------------------------------- changes */

/* Initial states, as one view of the registry shows them. */
static const struct ifeo_image befores[] = {
	{0},
	{.exists = true},
	{.exists = true, .has_others = true},
	{.exists = true, .values = {[IFEO_FLAG] = {.kind = IFEO_DWORD, .number = 0}}},
	{.exists = true, .values = {[IFEO_FLAG] = {.kind = IFEO_DWORD, .number = 0x70}}},
	{.exists = true, .values = {[IFEO_FLAG] = {.kind = IFEO_TEXT, .text = "0x00000070"}}},
	{.exists = true, .values = {[IFEO_FLAG] = {.kind = IFEO_TEXT, .text = "0x00000000"}}},
	{.exists = true, .values = {[IFEO_DB] = {.kind = IFEO_DWORD, .number = 32}}},
	{.exists = true,
		.has_others = true,
		.values = {[IFEO_FLAG] = {.kind = IFEO_TEXT, .text = "0x2000000"},
			[IFEO_DB] = {.kind = IFEO_TEXT, .text = "0x40"}}},
};

#define BEFORES (sizeof(befores) / sizeof(*befores))

static const uint32_t bits[BEFORES] = {0, 0, 0, 0, 0x70, 0x70, 0, 0, 0x2000000};

static int change(struct ifeo_image *image, bool on, uint32_t db_mb, struct err *err)
{
	return ifeo_plan(image, "app.exe", &(struct ifeo_change){.on = on, .db_mb = db_mb}, err);
}

TEST(on_sets_bit_and_keeps_others)
{
	for (size_t i = 0; i < BEFORES; i++) {
		struct ifeo_image image = befores[i], again;

		assert_int_equal(change(&image, true, 60, NULL), 0);
		assert_true(image.exists && ifeo_has_ust(&image));
		assert_int_equal(image.values[IFEO_FLAG].kind, IFEO_DWORD);
		assert_int_equal(image.values[IFEO_FLAG].number, bits[i] | 0x1000);
		assert_int_equal(image.values[IFEO_DB].number, 60);
		assert_false(ifeo_is_same(&image, &befores[i]));
		/* A second call must change nothing, and an omitted size must stay. */
		again = image;
		assert_int_equal(change(&again, true, 0, NULL), 0);
		assert_true(ifeo_is_same(&again, &image));
	}
}

/* Turning the flag on and off leaves a key as it was, with three exceptions: the flag becomes a
 * number, a value of 0 or "" is removed, and the size of the database is removed. */
TEST(off_clears_bit_and_leaves_no_empty_key)
{
	for (size_t i = 0; i < BEFORES * 2; i++) {
		const struct ifeo_image *before = &befores[i % BEFORES];
		uint32_t flag = bits[i % BEFORES];
		struct ifeo_image image = *before, expected = {.exists = flag || before->has_others,
							   .has_others = before->has_others};

		if (flag)
			expected.values[IFEO_FLAG] = dword(flag);
		assert_int_equal(change(&image, true, i < BEFORES ? 0 : 100, NULL), 0);
		assert_int_equal(change(&image, false, 0, NULL), 0);
		assert_true(ifeo_is_same(&image, &expected));
		assert_int_equal(image.has_others, before->has_others);
	}
}

TEST(off_changes_nothing_where_nothing_is_on)
{
	for (size_t i = 0; i < BEFORES; i++) {
		struct ifeo_image image = befores[i];

		assert_int_equal(change(&image, false, 0, NULL), 0);
		assert_true(ifeo_is_same(&image, &befores[i]));
	}
}

TEST(usual_case_is_one_value)
{
	struct ifeo_image image = {0};

	assert_int_equal(change(&image, true, 0, NULL), 0);
	assert_int_equal(image.values[IFEO_FLAG].number, 0x1000);
	assert_int_equal(image.values[IFEO_DB].kind, IFEO_NONE);
}

TEST(off_undoes_what_gflags_had_set)
{
	struct ifeo_image image = {.exists = true, .values = {[IFEO_FLAG] = text("0x00001000")}};

	assert_int_equal(change(&image, false, 0, NULL), 0);
	assert_false(image.exists);
	image = (struct ifeo_image){.exists = true,
		.values = {[IFEO_FLAG] = text("0x02001000"), [IFEO_DB] = dword(64)}};
	assert_int_equal(change(&image, false, 0, NULL), 0);
	assert_true(image.exists);
	assert_int_equal(image.values[IFEO_FLAG].kind, IFEO_DWORD);
	assert_int_equal(image.values[IFEO_FLAG].number, 0x2000000);
	assert_int_equal(image.values[IFEO_DB].kind, IFEO_NONE);
}

/* Some programs read the name 1000 as ust, others as 4096. */
TEST(what_is_no_plain_number_is_left_alone)
{
	static const char *const texts[] = {"1000", "4096", "70", "ust", "0x100000000", NULL};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct ifeo_image before = {
			.exists = true, .values = {[IFEO_FLAG] = {.kind = IFEO_OTHER}}};
		struct ifeo_image image;
		struct err err = {0};

		if (texts[i])
			before.values[IFEO_FLAG] = text(texts[i]);
		for (int on = 0; on < 2; on++) {
			image = before;
			assert_int_equal(change(&image, on, 0, &err), -ERR_NOT_CHANGED);
			assert_non_null(strstr(err.detail, texts[i] ? texts[i] : "something else"));
			assert_non_null(strstr(err.detail, "GlobalFlag"));
			assert_non_null(strstr(err.detail, "Image File Execution Options"));
			assert_non_null(strstr(err.detail, "0x"));
			assert_true(ifeo_is_same(&image, &before));
		}
	}
}

TEST(size_that_is_no_number_is_left_alone)
{
	const struct ifeo_image before = {
		.exists = true, .values = {[IFEO_DB] = {.kind = IFEO_OTHER}}};
	struct ifeo_image image = before;
	struct err err = {0};

	assert_int_equal(change(&image, true, 64, &err), -ERR_NOT_CHANGED);
	assert_non_null(strstr(err.detail, "StackTraceDatabaseSizeInMb"));
	assert_true(ifeo_is_same(&image, &before));
	assert_int_equal(change(&image, true, 0, NULL), 0);
	assert_int_equal(change(&image, false, 0, NULL), 0);
	assert_true(ifeo_is_same(&image, &before));
}
