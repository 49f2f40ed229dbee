#include "tests/unit/scratch.h"

#include <errno.h>

#include "core/base/memory.h"
#include "core/io/file.h"

static const char *in_folder(const char *name)
{
	static char path[400];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void write_file(const char *name, size_t len)
{
	static const char bytes[70000];

	file_write(in_folder(name), bytes, len);
}

static int empty_folder(void **state)
{
	struct folder_list list;

	(void)state;
	assert_int_equal(folder_list_read(dir, &list, NULL), 0);
	for (size_t i = 0; i < list.count; i++)
		assert_int_equal(remove(in_folder(list.entries[i].name)), 0);
	folder_list_release(&list);
	return 0;
}

static void check(const struct folder_entry *entry, const char *name, char kind, uint64_t size)
{
	assert_string_equal(entry->name, name);
	assert_int_equal(entry->is_file, kind == 'f');
	assert_int_equal(entry->is_link, kind == 'l');
	assert_int_equal(entry->size_bytes, size);
}

#undef TEST_AROUND
#define TEST_AROUND NULL, empty_folder

TEST(every_kind_is_reported_in_order_of_bytes)
{
	struct folder_list list;
	struct err err;

	write_file("b", 3);
	write_file(" b", 0);
	write_file("\xc3\xa4 \xf0\x9f\x98\x80", 70000);
	write_file("\xff not UTF-8", 1);
	write_file(".hidden", 5);
	write_file("B", 2);
	assert_int_equal(mkdir(in_folder("c"), 0700), 0);
	assert_int_equal(symlink("b", in_folder("to a file")), 0);
	assert_int_equal(symlink("c", in_folder("to a folder")), 0);
	assert_int_equal(symlink("nothing", in_folder("to nothing")), 0);
	assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
	assert_int_equal(folder_list_read(dir, &list, &err), 0);
	assert_int_equal(list.count, 11);
	check(&list.entries[0], " b", 'f', 0);
	check(&list.entries[1], ".hidden", 'f', 5);
	check(&list.entries[2], "B", 'f', 2);
	check(&list.entries[3], "b", 'f', 3);
	check(&list.entries[4], "c", 'd', 0);
	check(&list.entries[5], "pipe", 'p', 0);
	check(&list.entries[6], "to a file", 'l', 0);
	check(&list.entries[7], "to a folder", 'l', 0);
	check(&list.entries[8], "to nothing", 'l', 0);
	check(&list.entries[9], "\xc3\xa4 \xf0\x9f\x98\x80", 'f', 70000);
	check(&list.entries[10], "\xff not UTF-8", 'f', 1);
	folder_list_release(&list);
	assert_null(list.entries);
	assert_int_equal(list.count, 0);
}

TEST(nothing_is_no_trouble)
{
	struct folder_list list = {.count = 7};
	struct err err;

	assert_int_equal(folder_list_read(dir, &list, &err), 0);
	assert_int_equal(list.count, 0);
	folder_list_release(&list);
}

TEST(what_is_no_folder_is_error_that_names_it)
{
	struct folder_list list = {.count = 7};
	struct err err;

	write_file("file", 1);
	assert_int_equal(folder_list_read(in_folder("file"), &list, &err), -ERR_OPEN);
	assert_string_equal(err.place, in_folder("file"));
	assert_string_equal(err.detail, strerror(ENOTDIR));
	assert_int_equal(folder_list_read(in_folder("none"), &list, &err), -ERR_OPEN);
	assert_string_equal(err.place, in_folder("none"));
	assert_string_equal(err.detail, strerror(ENOENT));
	assert_int_equal(folder_list_read(in_folder("none"), &list, NULL), -ERR_OPEN);
	assert_int_equal(list.count, 7);
}

static int count_to_three(void *ctx, const struct folder_entry *entry)
{
	int *count = ctx;

	assert_non_null(entry->name);
	return ++*count == 3 ? 1 : 0;
}

TEST(who_looks_may_stop)
{
	int count = 0;
	struct err err = {.code = ERR_USAGE};

	for (char name[] = "a"; *name < 'h'; (*name)++)
		write_file(name, 0);
	assert_int_equal(folder_each(dir, FOLDER_NAMES, count_to_three, &count, &err), 1);
	assert_int_equal(count, 3);
	assert_int_equal(err.code, ERR_USAGE);
}

TEST(no_path_is_current_folder)
{
	struct folder_list list;
	char *here = getcwd(NULL, 0);

	write_file("only", 4);
	assert_int_equal(chdir(dir), 0);
	assert_int_equal(folder_list_read("", &list, NULL), 0);
	assert_int_equal(chdir(here), 0);
	free(here);
	assert_int_equal(list.count, 1);
	check(&list.entries[0], "only", 'f', 4);
	folder_list_release(&list);
}

TEST(only_files_are_removed)
{
	struct folder_list list;
	struct err err;

	write_file("file", 1);
	write_file("kept", 1);
	assert_int_equal(mkdir(in_folder("folder"), 0700), 0);
	assert_int_equal(symlink("kept", in_folder("link")), 0);
	assert_int_equal(folder_remove(in_folder("file"), &err), 0);
	assert_int_equal(folder_remove(in_folder("file"), &err), 0); /* already removed */
	assert_int_equal(folder_remove(in_folder("link"), &err), 0);
	assert_int_equal(folder_remove(in_folder("folder"), &err), -ERR_REMOVE);
	assert_string_equal(err.place, in_folder("folder"));
	assert_int_equal(folder_list_read(dir, &list, NULL), 0);
	assert_int_equal(list.count, 2);
	check(&list.entries[0], "folder", 'd', 0);
	check(&list.entries[1], "kept", 'f', 1);
	folder_list_release(&list);
}

GROUP(scratch_begin, scratch_end)
