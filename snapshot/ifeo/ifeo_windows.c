/* Access to Image File Execution Options in both views of the registry. */
#include "snapshot/ifeo/ifeo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "core/base/os_windows.h"
#include "core/base/text.h"

#define ROOT L"SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion\\Image File Execution Options"
#define LOCK_MS 10000
#define KEY_NAME_UNITS 256 /* maximum length of a key's name, including its terminator */
#define PATH_UNITS (sizeof(ROOT) / sizeof(wchar_t) + 1 + KEY_NAME_UNITS)

static const wchar_t *const value_names[IFEO_NAMES] = {
	[IFEO_FLAG] = L"GlobalFlag",
	[IFEO_DB] = L"StackTraceDatabaseSizeInMb",
};

static const REGSAM view_flags[IFEO_VIEWS] = {
	[IFEO_64] = KEY_WOW64_64KEY,
	[IFEO_32] = KEY_WOW64_32KEY,
};

static int fail(LSTATUS status, enum ifeo_view view, const char *name, struct err *err)
{
	char text[300];

	if (status == ERROR_ACCESS_DENIED)
		return err_set(err, ERR_ADMIN, name, NULL);
	return err_set(err, ERR_SYSTEM, name, "the registry's %s view: %s",
		view == IFEO_64 ? "64-bit" : "32-bit",
		windows_error((unsigned long)status, text, sizeof(text)));
}

/* Builds the path of an image's key. The name must have been checked, so the path fits. */
static void key_path(const char *name, wchar_t path[PATH_UNITS])
{
	wchar_t *wide = wide_from_utf8(name);

	if (!wide)
		memory_out();
	_snwprintf(path, PATH_UNITS, L"%ls\\%ls", ROOT, wide);
	free(wide);
}

/* Stores a string as UTF-8. Returns false if it does not fit. Strings in the registry need not end
 * with NUL. */
static bool copy_text(wchar_t *wide, DWORD bytes, struct ifeo_value *value)
{
	char *text;
	bool fits;

	wide[bytes / sizeof(*wide)] = L'\0';
	text = wide_to_utf8(wide);
	fits = text && strlen(text) < sizeof(value->text);
	if (fits)
		strcpy(value->text, text);
	free(text);
	return fits;
}

static LSTATUS read_value(HKEY key, enum ifeo_name which, struct ifeo_value *value)
{
	wchar_t data[IFEO_TEXT_BYTES + 1];
	DWORD type = 0, bytes = IFEO_TEXT_BYTES * sizeof(*data);
	LSTATUS status =
		RegQueryValueExW(key, value_names[which], NULL, &type, (BYTE *)data, &bytes);

	*value = (struct ifeo_value){.kind = IFEO_NONE};
	if (status == ERROR_FILE_NOT_FOUND)
		return ERROR_SUCCESS;
	if (status && status != ERROR_MORE_DATA)
		return status;
	value->kind = IFEO_OTHER;
	if (!status && type == REG_DWORD && bytes == sizeof(value->number)) {
		value->kind = IFEO_DWORD;
		memcpy(&value->number, data, bytes);
	} else if (!status && type == REG_SZ && copy_text(data, bytes, value)) {
		value->kind = IFEO_TEXT;
	}
	return ERROR_SUCCESS;
}

/* Reads the values that hsnap uses from an open key. */
static LSTATUS read_key(HKEY key, struct ifeo_image *image)
{
	DWORD subkeys = 0, values = 0, ours = 0;
	LSTATUS status = RegQueryInfoKeyW(
		key, NULL, NULL, NULL, &subkeys, NULL, NULL, &values, NULL, NULL, NULL, NULL);

	image->exists = true;
	for (int i = 0; !status && i < IFEO_NAMES; i++) {
		status = read_value(key, (enum ifeo_name)i, &image->values[i]);
		ours += image->values[i].kind != IFEO_NONE;
	}
	image->has_others = subkeys || values > ours;
	return status;
}

int ifeo_read(enum ifeo_view view, const char *name, struct ifeo_image *image, struct err *err)
{
	struct ifeo_image found = {0};
	wchar_t path[PATH_UNITS];
	LSTATUS status;
	HKEY key;

	key_path(name, path);
	status = RegOpenKeyExW(HKEY_LOCAL_MACHINE, path, 0, KEY_READ | view_flags[view], &key);
	if (!status) {
		status = read_key(key, &found);
		RegCloseKey(key);
	} else if (status == ERROR_FILE_NOT_FOUND) {
		status = ERROR_SUCCESS;
	}
	if (status)
		return fail(status, view, name, err);
	*image = found;
	return 0;
}

/* Writes or deletes a value. Leaves a value of another kind alone. */
static LSTATUS set_value(HKEY key, enum ifeo_name which, const struct ifeo_image *image)
{
	const struct ifeo_value *value = &image->values[which];
	LSTATUS status = ERROR_SUCCESS;

	if (value->kind == IFEO_DWORD)
		status = RegSetValueExW(key, value_names[which], 0, REG_DWORD,
			(const BYTE *)&value->number, sizeof(value->number));
	else if (value->kind == IFEO_NONE)
		status = RegDeleteValueW(key, value_names[which]);
	return status == ERROR_FILE_NOT_FOUND ? ERROR_SUCCESS : status;
}

/* Removes a key unless another program has just added something to it. The system refuses to remove
 * keys with subkeys; values are checked here. */
static LSTATUS remove_empty(enum ifeo_view view, const wchar_t *path)
{
	struct ifeo_image image = {0};
	HKEY key;
	LSTATUS status =
		RegOpenKeyExW(HKEY_LOCAL_MACHINE, path, 0, KEY_READ | view_flags[view], &key);

	if (status)
		return status;
	status = read_key(key, &image);
	RegCloseKey(key);
	if (!status && !image.has_others && image.values[IFEO_FLAG].kind == IFEO_NONE &&
		image.values[IFEO_DB].kind == IFEO_NONE)
		status = RegDeleteKeyExW(HKEY_LOCAL_MACHINE, path, view_flags[view], 0);
	return status;
}

static LSTATUS write_key(enum ifeo_view view, const wchar_t *path, const struct ifeo_image *image)
{
	const REGSAM access = KEY_SET_VALUE | view_flags[view];
	const bool is_on = ifeo_has_ust(image);
	HKEY key;
	LSTATUS status = image->exists ? RegCreateKeyExW(HKEY_LOCAL_MACHINE, path, 0, NULL, 0,
						 access, NULL, &key, NULL) :
					 RegOpenKeyExW(HKEY_LOCAL_MACHINE, path, 0, access, &key);

	if (status)
		return status;
	/* Write the flag first and remove it last. If hsnap is interrupted, `hsnap ust off`
	 * completes the removal. */
	status = set_value(key, is_on ? IFEO_FLAG : IFEO_DB, image);
	if (!status)
		status = set_value(key, is_on ? IFEO_DB : IFEO_FLAG, image);
	RegCloseKey(key);
	return status || image->exists ? status : remove_empty(view, path);
}

static int write_image(
	enum ifeo_view view, const char *name, const struct ifeo_image *image, struct err *err)
{
	wchar_t path[PATH_UNITS];
	LSTATUS status;

	key_path(name, path);
	status = write_key(view, path, image);
	if (!status || (!image->exists && status == ERROR_FILE_NOT_FOUND))
		return 0;
	return fail(status, view, name, err);
}

static int change_views(const char *name, const struct ifeo_change *change, struct err *err)
{
	struct ifeo_image before[IFEO_VIEWS], after[IFEO_VIEWS];
	bool is_changed = false;
	int rc = 0;

	for (int view = 0; !rc && view < IFEO_VIEWS; view++) {
		rc = ifeo_read((enum ifeo_view)view, name, &before[view], err);
		if (rc)
			return rc;
		after[view] = before[view];
		rc = ifeo_plan(&after[view], name, change, err);
	}
	for (int view = 0; !rc && view < IFEO_VIEWS; view++) {
		size_t len;

		if (ifeo_is_same(&before[view], &after[view]))
			continue;
		rc = write_image((enum ifeo_view)view, name, &after[view], err);
		len = strlen(err->detail);
		if (rc && is_changed)
			snprintf(err->detail + len, sizeof(err->detail) - len,
				"%sthe 64-bit view has already been changed", len ? "; " : "");
		is_changed = true;
	}
	return rc;
}

/* Uses one lock for the whole machine. If an administrator holds the lock, another user may not
 * even be allowed to open it. In this case, the attempt to change the registry also fails, with a
 * better error. */
int ifeo_apply(const char *name, const struct ifeo_change *change, struct err *err)
{
	HANDLE mutex = CreateMutexW(NULL, FALSE, L"Global\\hsnap-ust");
	bool is_busy = mutex && WaitForSingleObject(mutex, LOCK_MS) == WAIT_TIMEOUT;
	int rc = is_busy ?
			 err_set(err, ERR_BUSY, name, "another hsnap is changing flags of images") :
			 change_views(name, change, err);

	if (mutex && !is_busy)
		ReleaseMutex(mutex);
	if (mutex)
		CloseHandle(mutex);
	return rc;
}

struct ifeo_names {
	char **items;
	size_t count, cap;
};

/* Adds an image's name if ust is on. Skips keys that are unreadable or have been removed. */
static void add_name(struct ifeo_names *names, HKEY root, const wchar_t *wide)
{
	struct ifeo_image image = {0};
	HKEY key;

	if (RegOpenKeyExW(root, wide, 0, KEY_READ, &key))
		return;
	if (!read_key(key, &image) && ifeo_has_ust(&image)) {
		array_grow(
			(void **)&names->items, &names->cap, names->count, sizeof(*names->items));
		names->items[names->count] = wide_to_utf8(wide);
		if (!names->items[names->count++])
			memory_out();
	}
	RegCloseKey(key);
}

static int add_view(struct ifeo_names *names, enum ifeo_view view, struct err *err)
{
	HKEY root;
	LSTATUS status =
		RegOpenKeyExW(HKEY_LOCAL_MACHINE, ROOT, 0, KEY_READ | view_flags[view], &root);
	wchar_t name[KEY_NAME_UNITS];
	DWORD units = KEY_NAME_UNITS;

	if (status == ERROR_FILE_NOT_FOUND)
		return 0;
	if (status)
		return fail(status, view, "Image File Execution Options", err);
	for (DWORD i = 0; !RegEnumKeyExW(root, i, name, &units, NULL, NULL, NULL, NULL); i++) {
		add_name(names, root, name);
		units = KEY_NAME_UNITS;
	}
	RegCloseKey(root);
	return 0;
}

static int compare(const void *a, const void *b)
{
	const char *left = *(char *const *)a, *right = *(char *const *)b;
	int order = _stricmp(left, right);

	return order ? order : strcmp(left, right);
}

/* Sorts the names and prints each name once. */
int ifeo_all_ust(struct buf *text, struct err *err)
{
	struct ifeo_names names = {0};
	int rc = 0;

	for (int view = 0; !rc && view < IFEO_VIEWS; view++)
		rc = add_view(&names, (enum ifeo_view)view, err);
	if (names.count)
		qsort(names.items, names.count, sizeof(*names.items), compare);
	for (size_t i = 0; !rc && i < names.count; i++) {
		if (!i || _stricmp(names.items[i - 1], names.items[i]) != 0)
			buf_printf(text, "%s%s", i ? ", " : "", names.items[i]);
	}
	for (size_t i = 0; i < names.count; i++)
		free(names.items[i]);
	free(names.items);
	return rc;
}
