/* The list of input files: expands folders and patterns, splits FILE@MOMENT, and marks files that
 * were given twice. */
#include "diff/file_list.h"
#include "diff/read/foreign.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/base/parse.h"
#include "core/base/text.h"
#include "core/io/file.h"
#include "core/record/record.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Skips a number. Returns its first significant digit. Stores the number of significant digits in
 * `*len`. */
static const char *skip_number(const char **text, size_t *len)
{
	const char *digits = *text + strspn(*text, "0");

	*len = strspn(digits, "0123456789");
	*text = digits + *len;
	return digits;
}

static int number_order(const char **a, const char **b)
{
	size_t a_len, b_len;
	const char *x = skip_number(a, &a_len), *y = skip_number(b, &b_len);

	if (a_len != b_len)
		return a_len < b_len ? -1 : 1;
	return memcmp(x, y, a_len);
}

static bool ends_in(const char *name, const char *end)
{
	size_t len = strlen(name), end_len = strlen(end);

	return len >= end_len && !strcmp(name + len - end_len, end);
}

/* Compares two texts: numbers by value, all other text byte by byte. */
static int natural_order(const char *x, const char *x_end, const char *y, const char *y_end)
{
	while (x < x_end && y < y_end) {
		if (is_digit(*x) && is_digit(*y)) {
			int order = number_order(&x, &y);

			if (order)
				return order;
		} else if (*x == *y) {
			x++;
			y++;
		} else {
			break;
		}
	}
	return (x < x_end ? (unsigned char)*x : 0) - (y < y_end ? (unsigned char)*y : 0);
}

/* Returns the end of a name's stem, which is the name without its extension. The extension may have
 * two parts (".txt.gz"). */
static const char *stem_end(const char *name)
{
	const char *end = name + strlen(name) - (ends_in(name, ".gz") ? 3 : 0);

	for (const char *at = end; at-- > name + 1;) {
		if (*at == '.')
			return is_digit(at[1]) ? end : at;
	}
	return end;
}

int file_list_name_order(const char *a, const char *b)
{
	const char *a_dot = stem_end(a), *b_dot = stem_end(b);
	int order = natural_order(a, a_dot, b, b_dot);

	if (!order)
		order = natural_order(a_dot, a + strlen(a), b_dot, b + strlen(b));
	return order ? order : strcmp(a, b);
}

/* Returns true if a name matches a pattern. Names with a leading dot match only patterns with a
 * leading dot. */
static bool is_like(const char *name, const char *pattern)
{
	return (*name != '.' || *pattern == '.') &&
	       text_glob(pattern, name, GLOB_FOLD | GLOB_QUESTION);
}

static bool is_read_once(const char *path)
{
	return !strcmp(path, "-") || os_is_special(path);
}

/* Reads more of a file to find its kind. Called if the start of the file contains only messages of
 * the symbol engine. */
static int look_further(const char *path, enum file_kind *kind, struct err *err)
{
	struct source *source;
	int rc = source_open(&source, path, err);

	if (rc)
		return rc;
	rc = file_kind_find(kind, source, err);
	source_close(source);
	return rc;
}

int input_kind(const char *path, struct source *source, enum file_kind *kind, const char **words,
	struct err *err)
{
	const char *bytes;
	int64_t len = source_peek(source, &bytes, err);

	if (len == -ERR_CUT)
		return err_set(err, ERR_EMPTY, path, "the compressed data is truncated");
	if (len < 0)
		return (int)len;
	*words = NULL;
	if (record_is_head(bytes, (size_t)len) || pprof_is(bytes, (size_t)len)) {
		*kind = record_is_head(bytes, (size_t)len) ? FILE_RECORDING : FILE_PPROF;
		return 0;
	}
	*kind = file_kind_of(bytes, (size_t)len);
	*words = printed_encoded(bytes, (size_t)len);
	if (*words)
		return err_set(err, ERR_NOT_DUMP, source_name(source), "%s", *words);
	*words = printed_refused(bytes, (size_t)len);
	if (*kind == FILE_UNKNOWN && !*words && folded_is(bytes, (size_t)len))
		*kind = FILE_FOLDED;
	if (*kind != FILE_UNKNOWN || *words)
		return 0;
	*words = "nor is it a comparison";
	if ((size_t)len < SOURCE_PEEK_BYTES)
		return 0;
	if (!is_read_once(path))
		return look_further(path, kind, err);
	*words = "nor does it start like a comparison; to search beyond the start, save it to a "
		 "file";
	return 0;
}

bool input_is_log(struct source *source)
{
	char time[DATE_TEXT_BYTES];
	const char *bytes, *blank;
	int64_t ms, len = source_peek(source, &bytes, NULL);

	blank = len > 0 ? memchr(bytes, ' ', (size_t)len) : NULL;
	if (!blank || blank - bytes >= DATE_TEXT_BYTES)
		return false;
	memcpy(time, bytes, (size_t)(blank - bytes));
	time[blank - bytes] = '\0';
	return !date_parse(time, &ms);
}

static int add(struct file_list *list, const char *path, bool is_found, struct err *err)
{
	if (list->count >= FILES_MAX)
		return err_set(err, ERR_USAGE, path, "more than %d files; use a narrower pattern",
			FILES_MAX);
	array_grow((void **)&list->items, &list->cap, list->count, sizeof(*list->items));
	list->items[list->count++] =
		(struct file_item){.path = path, .file = path, .is_found = is_found};
	return 0;
}

static bool is_slash(char c)
{
	return c == '/' || c == '\\';
}

static int stop(void *ctx, const struct folder_entry *entry)
{
	(void)ctx;
	(void)entry;
	return 1;
}

/* Returns true if a link leads to a folder or a pipe. Reading a pipe would block. */
static bool leads_to_no_file(const char *path)
{
	struct err err;

	return os_is_special(path) || folder_each(path, FOLDER_NAMES, stop, NULL, &err) >= 0;
}

/* Returns true for a log of hsnap, unless the pattern selects logs. */
static bool is_own_log(const char *path, const char *name, const char *pattern)
{
	struct source *source;
	bool is_log;

	if ((!ends_in(name, ".log") && !ends_in(name, ".log.1")) ||
		(pattern && (ends_in(pattern, ".log") || ends_in(pattern, ".log.1"))) ||
		source_open(&source, path, NULL))
		return false;
	is_log = input_is_log(source);
	source_close(source);
	return is_log;
}

/* Adds a file in a folder, or a link to a file. `folder` is "" for the current folder. */
static int add_found(struct file_list *list, const char *folder, const struct folder_entry *entry,
	const char *pattern, struct err *err)
{
	size_t len = strlen(folder);
	struct buf path;
	int rc = 0;

	buf_init(&path);
	buf_printf(
		&path, "%s%s%s", folder, len && !is_slash(folder[len - 1]) ? "/" : "", entry->name);
	if ((!entry->is_link || !leads_to_no_file(path.data)) &&
		!is_own_log(path.data, entry->name, pattern))
		rc = add(list, arena_text(&list->arena, path.data, path.len), true, err);
	buf_release(&path);
	return rc;
}

/* Returns true if a file with this name cannot be a dump. `pattern` is the user's pattern or
 * NULL. */
static bool is_no_name(const char *name, const char *pattern)
{
	if (ends_in(name, ".tmp"))
		return !pattern || !ends_in(pattern, ".tmp");
	return *name == '.' && !pattern;
}

static int by_name(const void *a, const void *b)
{
	const struct folder_entry *x = a, *y = b;

	return file_list_name_order(x->name, y->name);
}

/* Adds the files in a folder that match `pattern`, or all files if it is NULL. */
static int add_entries(struct file_list *list, struct folder_list *found, const char *folder,
	const char *pattern, struct err *err)
{
	int rc = 0;

	if (found->count)
		qsort(found->entries, found->count, sizeof(*found->entries), by_name);
	for (size_t i = 0; !rc && i < found->count; i++) {
		const struct folder_entry *entry = &found->entries[i];

		if ((entry->is_file || entry->is_link) && !is_no_name(entry->name, pattern) &&
			(!pattern || is_like(entry->name, pattern)))
			rc = add_found(list, folder, entry, pattern, err);
	}
	return rc;
}

/* Returns the start of the last part of a path. On all systems, '\\' is not part of a pattern. */
static const char *last_part(const char *path)
{
	const char *last = path;

	for (; *path; path++) {
		if (is_slash(*path))
			last = path + 1;
	}
	return last;
}

static int add_pattern(struct file_list *list, const char *path, struct err *err)
{
	const char *pattern = last_part(path);
	size_t before = list->count, len = (size_t)(pattern - path);
	struct folder_list found;
	char *folder;
	int rc;

	/* Keep the slash of the root. */
	folder = arena_text(&list->arena, path, len > 1 && path[len - 2] != ':' ? len - 1 : len);
	rc = folder_list_read(folder, &found, err);
	if (rc)
		return rc;
	rc = add_entries(list, &found, folder, pattern, err);
	folder_list_release(&found);
	if (!rc && list->count == before)
		rc = err_set(err, ERR_OPEN, path, "no file matches");
	list->has_found = true;
	return rc;
}

/* Adds the files of a folder. Returns 1 if `path` is not a folder. */
static int add_folder(struct file_list *list, const char *path, struct err *err)
{
	struct folder_list found;
	size_t before = list->count;
	int rc = folder_list_read(path, &found, err);

	if (rc)
		return 1;
	rc = add_entries(list, &found, path, NULL, err);
	folder_list_release(&found);
	if (!rc && list->count == before)
		rc = err_set(err, ERR_NOT_DUMP, path,
			"the folder contains no file that looks like a dump");
	list->has_found = true;
	return rc;
}

/* Returns true for a pattern, unless a file has exactly this name. */
static bool is_pattern(const char *path)
{
	return strpbrk(last_part(path), "*?") && !os_same_file(path, path);
}

static void set_moment(struct file_item *item, const char *moment)
{
	item->part = (struct recording_part){.moment = moment, .is_asked = true};
}

/* Adds PATTERN@MOMENT. Called if no file matches the whole text. */
static int add_pattern_moment(
	struct file_list *list, const char *path, const char *at, struct err *err)
{
	const char *pattern = arena_text(&list->arena, path, (size_t)(at - path));
	size_t before = list->count;
	struct buf name;
	int rc = add_pattern(list, pattern, err);

	buf_init(&name);
	for (size_t i = before; !rc && i < list->count; i++) {
		struct file_item *item = &list->items[i];

		buf_clear(&name);
		buf_printf(&name, "%s%s", item->file, at);
		item->path = arena_text(&list->arena, name.data, name.len);
		set_moment(item, at + 1);
	}
	buf_release(&name);
	return rc;
}

/* Splits FILE@MOMENT, if FILE exists and no file has the whole name. MOMENT may also contain
 * '@'. */
static void find_moment(struct file_list *list, struct file_item *item)
{
	const char *path = item->path;

	if (os_exists(path))
		return;
	for (size_t at = strlen(path); at-- > 1;) {
		char *file;

		if (path[at] != '@')
			continue;
		file = arena_text(&list->arena, path, at);
		if (!os_exists(file) || leads_to_no_file(file))
			continue;
		item->file = file;
		set_moment(item, path + at + 1);
		return;
	}
}

/* Adds an argument with '*' or '?', which may be in the file, in the moment, or in both. */
static int add_like(struct file_list *list, const char *path, struct err *err)
{
	const char *at = strrchr(path, '@'), *file;
	int rc = add_pattern(list, path, err);

	if (rc != -ERR_OPEN || !at || at == path)
		return rc;
	file = arena_text(&list->arena, path, (size_t)(at - path));
	if (is_pattern(file))
		return add_pattern_moment(list, path, at, err);
	if (!os_exists(file))
		return rc;
	rc = add(list, path, false, err);
	if (!rc)
		find_moment(list, &list->items[list->count - 1]);
	return rc;
}

static int add_argument(struct file_list *list, const char *path, struct err *err)
{
	int rc;

	if (!strcmp(path, "-") || os_is_special(path))
		return add(list, path, false, err);
	rc = *path ? add_folder(list, path, err) : 1;
	if (rc <= 0)
		return rc;
	if (is_pattern(path))
		return add_like(list, path, err);
	rc = add(list, path, false, err);
	if (!rc)
		find_moment(list, &list->items[list->count - 1]);
	return rc;
}

/* ---------------------------------------------------------------- doubles */

struct full_path {
	char *path;
	size_t item;
};

static int by_path(const void *a, const void *b)
{
	const struct full_path *x = a, *y = b;
	int order = strcmp(x->path, y->path);

	return order ? order : x->item < y->item ? -1 : x->item > y->item;
}

/* Marks paths that occur earlier in the list. A file that was both found and named counts as
 * named. */
static void mark_doubles(struct file_list *list)
{
	struct full_path *all = xcalloc(list->count + 1, sizeof(*all));
	size_t count = 0;

	for (size_t i = 0; i < list->count; i++) {
		char *path = NULL;

		if (strcmp(list->items[i].path, "-") != 0)
			path = os_full_path(list->items[i].path);
		if (path)
			all[count++] = (struct full_path){path, i};
	}
	qsort(all, count, sizeof(*all), by_path);
	for (size_t i = 1, first = 0; i < count; i++) {
		struct file_item *item = &list->items[all[i].item];

		if (strcmp(all[first].path, all[i].path) != 0) {
			first = i;
			continue;
		}
		item->is_double = true;
		item->twin = all[first].item;
		list->items[all[first].item].is_found &= item->is_found;
	}
	for (size_t i = 0; i < count; i++)
		free(all[i].path);
	free(all);
}

static int by_item_name(const void *a, const void *b)
{
	const struct file_item *x = a, *y = b;

	return file_list_name_order(x->path, y->path);
}

/* Sorts three or more named files like those in a folder if they are in alphabetic order, because a
 * shell expands patterns that way: "x1", "x10", "x2". */
static void sort_expanded(struct file_list *list)
{
	for (size_t i = 1; i < list->count; i++) {
		if (strcmp(list->items[i - 1].path, list->items[i].path) >= 0)
			return;
	}
	if (list->count < 3)
		return;
	qsort(list->items, list->count, sizeof(*list->items), by_item_name);
	list->is_expanded = true;
}

int file_list_make(struct file_list *list, const char *const *paths, size_t count, struct err *err)
{
	int rc = 0;

	*list = (struct file_list){0};
	arena_init(&list->arena);
	for (size_t i = 0; !rc && i < count; i++)
		rc = add_argument(list, paths[i], err);
	if (!rc && !list->has_found)
		sort_expanded(list);
	if (!rc)
		mark_doubles(list);
	return rc;
}

void file_list_filter(struct file_list *list,
	bool (*keep)(const struct file_item *item, size_t number, void *ctx), void *ctx)
{
	size_t count = 0;

	for (size_t i = 0; i < list->count; i++) {
		if (keep(&list->items[i], i, ctx))
			list->items[count++] = list->items[i];
	}
	list->count = count;
	for (size_t i = 0; i < count; i++)
		list->items[i].is_double = false;
	mark_doubles(list);
}

void file_list_release(struct file_list *list)
{
	free(list->items);
	arena_release(&list->arena);
	*list = (struct file_list){0};
}
