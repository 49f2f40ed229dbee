#include "snapshot/ifeo/ifeo.h"

#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "core/base/os_windows.h"
#include "core/base/text.h"

#define ROOT L"SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion\\Image File Execution Options"
#define LOCK_MS 10000
#define KEY_NAME_UNITS 256 /* of a key, with its end */
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

static bool is_empty(const struct ifeo_image *image)
{
	return !image->has_others && image->values[IFEO_FLAG].kind == IFEO_NONE &&
	       image->values[IFEO_DB].kind == IFEO_NONE;
}

/* The path of an image's key; false: out of memory, or no name. */
static bool key_path(const char *name, wchar_t path[PATH_UNITS])
{
	wchar_t *wide = wide_from_utf8(name);
	bool good = wide && wcslen(wide) < KEY_NAME_UNITS;

	if (good)
		_snwprintf(path, PATH_UNITS, L"%ls\\%ls", ROOT, wide);
	free(wide);
	return good;
}

static LSTATUS key_open(enum ifeo_view view, const char *name, REGSAM access, HKEY *key)
{
	wchar_t path[PATH_UNITS];

	if (!key_path(name, path))
		return ERROR_NOT_ENOUGH_MEMORY;
	return RegOpenKeyExW(HKEY_LOCAL_MACHINE, path, 0, access | view_flags[view], key);
}

/* A text that fits, as UTF-8; the registry's need not end in NUL. */
static bool take_text(wchar_t *wide, DWORD bytes, struct ifeo_value *value)
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
	} else if (!status && type == REG_SZ && take_text(data, bytes, value)) {
		value->kind = IFEO_TEXT;
	}
	return ERROR_SUCCESS;
}

/* All that hsnap wants to know of an open key. */
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

static int registry_read(
	void *ctx, enum ifeo_view view, const char *name, struct ifeo_image *image, struct err *err)
{
	struct ifeo_image found = {0};
	HKEY key;
	LSTATUS status = key_open(view, name, KEY_READ, &key);

	(void)ctx;
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

static LSTATUS set_text(HKEY key, const wchar_t *name, const char *text)
{
	wchar_t *wide = wide_from_utf8(text);
	LSTATUS status = ERROR_NOT_ENOUGH_MEMORY;

	if (wide)
		status = RegSetValueExW(key, name, 0, REG_SZ, (const BYTE *)wide,
			(DWORD)((wcslen(wide) + 1) * sizeof(*wide)));
	free(wide);
	return status;
}

static LSTATUS set_value(HKEY key, enum ifeo_name which, const struct ifeo_image *image)
{
	const struct ifeo_value *value = &image->values[which];
	LSTATUS status;

	switch (value->kind) {
	case IFEO_DWORD:
		return RegSetValueExW(key, value_names[which], 0, REG_DWORD,
			(const BYTE *)&value->number, sizeof(value->number));
	case IFEO_TEXT: return set_text(key, value_names[which], value->text);
	case IFEO_NONE:
		status = RegDeleteValueW(key, value_names[which]);
		return status == ERROR_FILE_NOT_FOUND ? ERROR_SUCCESS : status;
	default: return ERROR_SUCCESS; /* IFEO_OTHER, which is never changed */
	}
}

/* What somebody put into it this very moment stays: subkeys by the system's rule, values by a look. */
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
	if (!status && is_empty(&image))
		status = RegDeleteKeyExW(HKEY_LOCAL_MACHINE, path, view_flags[view], 0);
	return status;
}

/* The flag is the first to come and the last to go: where this ends half-way, off does the rest. */
static LSTATUS set_values(HKEY key, const struct ifeo_image *image)
{
	bool is_on = ifeo_has_ust(image);
	LSTATUS status = set_value(key, is_on ? IFEO_FLAG : IFEO_DB, image);

	return status ? status : set_value(key, is_on ? IFEO_DB : IFEO_FLAG, image);
}

static LSTATUS write_key(enum ifeo_view view, const wchar_t *path, const struct ifeo_image *image)
{
	const REGSAM access = KEY_SET_VALUE | view_flags[view];
	HKEY key;
	LSTATUS status = image->exists ? RegCreateKeyExW(HKEY_LOCAL_MACHINE, path, 0, NULL, 0,
						 access, NULL, &key, NULL) :
					 RegOpenKeyExW(HKEY_LOCAL_MACHINE, path, 0, access, &key);

	if (status)
		return status;
	status = set_values(key, image);
	RegCloseKey(key);
	return status || image->exists ? status : remove_empty(view, path);
}

static int registry_write(void *ctx, enum ifeo_view view, const char *name,
	const struct ifeo_image *image, struct err *err)
{
	wchar_t path[PATH_UNITS];
	LSTATUS status;

	(void)ctx;
	if (!key_path(name, path))
		return err_set(err, ERR_NOMEM, name, NULL);
	status = write_key(view, path, image);
	if (!image->exists && status == ERROR_FILE_NOT_FOUND)
		return 0;
	return status ? fail(status, view, name, err) : 0;
}

/* One for the whole machine. Who may not even ask for it, since an administrator has it, may change nothing
 * either, which the registry says better. */
int ifeo_lock(void **lock, const char *name, struct err *err)
{
	HANDLE mutex = CreateMutexW(NULL, FALSE, L"Global\\hsnap-ust");

	if (mutex && WaitForSingleObject(mutex, LOCK_MS) == WAIT_TIMEOUT) {
		CloseHandle(mutex);
		return err_set(err, ERR_BUSY, name, "another hsnap changes flags of images");
	}
	*lock = mutex;
	return 0;
}

void ifeo_unlock(void *lock)
{
	if (!lock)
		return;
	ReleaseMutex(lock);
	CloseHandle(lock);
}

struct ifeo_calls ifeo_registry(void)
{
	return (struct ifeo_calls){.read = registry_read, .write = registry_write};
}

struct ifeo_names {
	char **items;
	size_t count, cap;
};

/* Keeps the name of an image that has ust on: 0 or -ERR_NOMEM. */
static int add_name(struct ifeo_names *names, HKEY root, const wchar_t *wide)
{
	struct ifeo_image image = {0};
	HKEY key;
	LSTATUS status = RegOpenKeyExW(root, wide, 0, KEY_READ, &key);
	char *name;

	/* One that may not be read, or is gone, says nothing. */
	if (status)
		return 0;
	status = read_key(key, &image);
	RegCloseKey(key);
	if (status || !ifeo_has_ust(&image))
		return 0;
	name = wide_to_utf8(wide);
	if (!name || array_grow((void **)&names->items, &names->cap, names->count,
			     sizeof(*names->items))) {
		free(name);
		return -ERR_NOMEM;
	}
	names->items[names->count++] = name;
	return 0;
}

static int add_view(struct ifeo_names *names, enum ifeo_view view, struct err *err)
{
	HKEY root;
	LSTATUS status =
		RegOpenKeyExW(HKEY_LOCAL_MACHINE, ROOT, 0, KEY_READ | view_flags[view], &root);
	int rc = 0;

	if (status == ERROR_FILE_NOT_FOUND)
		return 0;
	if (status)
		return fail(status, view, "Image File Execution Options", err);
	for (DWORD i = 0; !rc; i++) {
		wchar_t name[KEY_NAME_UNITS];
		DWORD units = KEY_NAME_UNITS;

		if (RegEnumKeyExW(root, i, name, &units, NULL, NULL, NULL, NULL))
			break;
		rc = add_name(names, root, name);
	}
	RegCloseKey(root);
	return rc ? err_set(err, ERR_NOMEM, NULL, NULL) : 0;
}

static int compare(const void *a, const void *b)
{
	const char *left = *(char *const *)a, *right = *(char *const *)b;
	int order = _stricmp(left, right);

	return order ? order : strcmp(left, right);
}

/* Sorted, and each once. */
static int add_names(struct buf *text, const struct ifeo_names *names)
{
	int rc = 0;

	if (names->count)
		qsort(names->items, names->count, sizeof(*names->items), compare);
	for (size_t i = 0; !rc && i < names->count; i++) {
		if (!i || _stricmp(names->items[i - 1], names->items[i]) != 0)
			rc = buf_printf(text, "%s%s", i ? ", " : "", names->items[i]);
	}
	return rc;
}

int ifeo_all_ust(struct buf *text, struct err *err)
{
	struct ifeo_names names = {0};
	int rc = 0;

	for (int view = 0; !rc && view < IFEO_VIEWS; view++)
		rc = add_view(&names, (enum ifeo_view)view, err);
	if (!rc && add_names(text, &names))
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	for (size_t i = 0; i < names.count; i++)
		free(names.items[i]);
	free(names.items);
	return rc;
}
