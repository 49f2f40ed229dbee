#include "tests/unit/t.h"

#include "tests/unit/fake_heaps.h"

#include "snapshot/doctor/doctor.h"

static struct doctor_secrets secrets;
static unsigned char bytes[400];
static size_t len;

static int set_up(void **state)
{
	(void)state;
	memset(&secrets, 0, sizeof(secrets));
	snprintf(secrets.system, sizeof(secrets.system), "C:\\Windows\\System32");
	memset(bytes, 0, sizeof(bytes));
	return 0;
}

static void hide_path(const char *text)
{
	doctor_secrets_add(&secrets, text, true);
}

static void hide_name(const char *text)
{
	doctor_secrets_add(&secrets, text, false);
}

static void write_wide(const char *text)
{
	len = 2 * strlen(text);
	for (size_t i = 0; i < len; i++)
		bytes[i] = i % 2 ? 0 : (unsigned char)text[i / 2];
}

/* Blanks a text as UTF-16 and as bytes; compares both results. */
static void assert_blanked(const char *text, const char *wide, const char *narrow)
{
	char got[sizeof(bytes)];

	write_wide(text);
	assert_int_equal(doctor_blank(&secrets, bytes, len), strcmp(text, wide) != 0);
	for (size_t i = 0; i < len / 2; i++) {
		assert_int_equal(bytes[2 * i + 1], 0);
		got[i] = (char)bytes[2 * i];
	}
	got[len / 2] = 0;
	assert_string_equal(got, wide);
	len = strlen(text);
	memcpy(got, text, len + 1);
	assert_int_equal(
		doctor_blank(&secrets, (unsigned char *)got, len), strcmp(text, narrow) != 0);
	assert_string_equal(got, narrow);
}

#undef TEST_AROUND
#define TEST_AROUND set_up, NULL

TEST(paths_are_blanked_in_both_forms_and_any_case)
{
	hide_path("C:\\Users\\jane");
	assert_blanked(
		"\"C:\\Users\\jane\\x\"", "\"C:\\xxxxx\\xxxx\\x\"", "\"C:\\xxxxx\\xxxx\\x\"");
	assert_blanked("c:\\USERS\\Jane", "c:\\xxxxx\\xxxx", "c:\\xxxxx\\xxxx");
	assert_blanked("Z:/users/jane/", "Z:/xxxxx/xxxx/", "Z:/xxxxx/xxxx/");
	assert_blanked("\\Device\\HarddiskVolume3\\Users\\jane\\hsnap.exe",
		"\\Device\\HarddiskVolume3\\xxxxx\\xxxx\\hsnap.exe",
		"\\Device\\HarddiskVolume3\\xxxxx\\xxxx\\hsnap.exe");
}

TEST(longer_names_in_paths_stay)
{
	hide_path("C:\\hsnap\\");
	assert_blanked("C:\\hsnap.exe", "C:\\hsnap.exe", "C:\\hsnap.exe");
	assert_blanked("C:\\hsnap-2\\", "C:\\hsnap-2\\", "C:\\hsnap-2\\");
	assert_blanked("C:\\hsnap\\hsnap.exe", "C:\\xxxxx\\hsnap.exe", "C:\\xxxxx\\hsnap.exe");
}

/* A few single-byte characters could be any data. */
TEST(names_are_blanked_as_whole_words_of_utf16)
{
	hide_name("Jane");
	assert_blanked("jane", "xxxx", "jane");
	assert_blanked("by JANE.", "by xxxx.", "by JANE.");
	assert_blanked("janet", "janet", "janet");
	assert_blanked("djane", "djane", "djane");
}

TEST(letters_of_any_language_are_blanked)
{
	static const unsigned char wide[] = {'J', 0, 0xe4, 0, 'n', 0, 0x3d, 0xd8, 0, 0xde};

	hide_name("J\xc3\xa4n\xf0\x9f\x98\x80");
	memcpy(bytes, wide, sizeof(wide));
	assert_int_equal(doctor_blank(&secrets, bytes, sizeof(wide)), 1);
	for (size_t i = 0; i < sizeof(wide); i++)
		assert_int_equal(bytes[i], i % 2 ? 0 : 'x');
	hide_path("C:\\J\xc3\xa4n");
	memcpy(bytes, "C:\\J\xc3\xa4n\\", 8);
	assert_int_equal(doctor_blank(&secrets, bytes, 8), 1);
	assert_memory_equal(bytes, "C:\\xxxx\\", 8);
}

TEST(every_place_is_blanked_at_any_offset)
{
	hide_name("jane");
	write_wide(" jane jane ");
	memmove(bytes + 1, bytes, len);
	assert_int_equal(doctor_blank(&secrets, bytes, len + 1), 2);
}

TEST(texts_at_ends_are_blanked)
{
	hide_name("jane");
	write_wide("jane jan");
	assert_int_equal(doctor_blank(&secrets, bytes, len), 1);
	write_wide("x jane");
	assert_int_equal(doctor_blank(&secrets, bytes, len), 1);
	assert_int_equal(doctor_blank(&secrets, bytes, 0), 0);
}

TEST(short_names_and_parts_of_system_folder_stay)
{
	hide_name("");
	hide_name("PC");
	hide_name("windows");
	hide_path("C:\\");
	hide_path("C:\\Windows");
	hide_path("C:\\Windows\\System32\\");
	assert_int_equal(secrets.count, 0);
	hide_path("C:\\Windows\\Temp");
	assert_int_equal(secrets.count, 2);
}

TEST(long_texts_are_cut_and_many_are_bounded)
{
	unsigned char text[2000];

	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = 0;
	for (int i = 0; i < 2 * DOCTOR_SECRETS; i++)
		hide_path((const char *)text);
	assert_int_equal(secrets.count, DOCTOR_SECRETS);
	assert_true(doctor_blank(&secrets, text, sizeof(text) - 1) > 0);
	assert_int_equal(text[0], 'x');
	assert_int_equal(text[DOCTOR_SECRET_UNITS - 2], 'x');
}

TEST(truth_is_text)
{
	static const struct doctor_block blocks[] = {
		{.addr = 0x1000, .requested_bytes = 40, .heap = DOCTOR_GROWABLE, .site = 2},
		{.addr = 0x2000, .heap = DOCTOR_GROWABLE, .is_freed = true},
		{.addr = 0x3000, .requested_bytes = 7, .was_bytes = 9, .site = 1},
	};
	struct doctor_truth *child = xcalloc(1, sizeof(*child));
	struct buf text = {0};

	image_begin();
	heap_place(HEAP_A, 0x2000, 0x10000);
	fake.target.is_wine = true;
	fake.target.pid = 12;
	fake.target.os_build = 7601;
	child->heaps[DOCTOR_PROCESS_HEAP] = HEAP_A;
	child->heaps[DOCTOR_GROWABLE] = HEAP_B;
	child->listed[0] = HEAP_A;
	child->listed[1] = 0x7fff0000; /* not in the process */
	child->listed_count = 2;
	child->image = (struct doctor_range){0x140000000, 0x140010000};
	child->outer = (struct doctor_range){1, 2};
	child->sites[0] = (struct doctor_range){0xa, 0xb};
	for (size_t i = 0; i < sizeof(blocks) / sizeof(*blocks); i++)
		assert_true(doctor_truth_add(child, &blocks[i]));
	doctor_truth_text(&text, child, &fake.target, 0x1000);
	assert_string_equal(text.data,
		"process pid=12 bits=64 build=7601 flags=1000\n"
		"image 140000000 140010000\n"
		"outer 1 2\n"
		"site 0 A B\nsite 1 0 0\nsite 2 0 0\nsite 3 0 0\nsite 4 0 0\n"
		"heap 110000 wine\n"
		"heap 7FFF0000 unknown\n"
		"block 210000 1000 40 - - 2\n"
		"freed 210000 2000\n"
		"block 110000 3000 7 - - 1|4\n"
		"total 2 47 -\n");
	buf_release(&text);
	free(child);
	image_free();
}

TEST(heaps_of_windows_are_named_by_their_signatures)
{
	struct doctor_truth *child = xcalloc(1, sizeof(*child));
	struct buf text = {0};

	image_begin();
	heap_place(HEAP_A, 0x2000, 0x10000);
	heap_place(HEAP_B, 0x2000, 0x10000);
	fake_write(HEAP_B + HEAP_SIGNATURE, 0xddeeddee, 4);
	child->listed[0] = HEAP_A;
	child->listed[1] = HEAP_B;
	child->listed_count = 2;
	doctor_truth_text(&text, child, &fake.target, 0);
	assert_non_null(strstr(text.data, "heap 110000 nt\nheap 210000 segment\n"));
	buf_release(&text);
	free(child);
	image_free();
}

TEST(reason_is_one_line)
{
	struct doctor_keep keep = {.folder = "f"};

	doctor_keep_reason(&keep, "ust", 64, "no such stacks");
	assert_string_equal(keep.machine.data, "ust-64 is not kept: no such stacks\n");
	buf_release(&keep.machine);
}
