#include "snapshot/ifeo/ifeo_windows.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/live/nt_windows.h"

#include "core/base/text.h"
#include "core/base/os_windows.h"

#define ROOT L"SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion\\Image File Execution Options"
#define LOCK_MS 10000
#define KEY_NAME_UNITS 256 /* of a key, with its end */
#define PATH_UNITS (sizeof(ROOT) / sizeof(wchar_t) + 1 + KEY_NAME_UNITS)

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

static LSTATUS value_name(enum ifeo_name which, wchar_t wide[64])
{
	return MultiByteToWideChar(CP_UTF8, 0, ifeo_names[which], -1, wide, 64) ?
		       ERROR_SUCCESS :
		       ERROR_INVALID_NAME;
}

/* A text that fits, as UTF-8; the registry's need not end in NUL. */
static bool take_text(wchar_t *wide, DWORD bytes, struct ifeo_value *value)
{
	char *text;
	bool fits;

	wide[bytes / sizeof(*wide)] = L'\0';
	text = utf8_from_wide(wide);
	fits = text && strlen(text) < sizeof(value->text);
	if (fits)
		strcpy(value->text, text);
	free(text);
	return fits;
}

static LSTATUS read_value(HKEY key, enum ifeo_name which, struct ifeo_value *value)
{
	wchar_t name[64], data[IFEO_TEXT_BYTES + 1];
	DWORD type = 0, bytes = IFEO_TEXT_BYTES * sizeof(*data);
	LSTATUS status = value_name(which, name);

	*value = (struct ifeo_value){.kind = IFEO_NONE};
	if (!status)
		status = RegQueryValueExW(key, name, NULL, &type, (BYTE *)data, &bytes);
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

static LSTATUS set_value(HKEY key, enum ifeo_name which, const struct ifeo_value *value)
{
	wchar_t name[64];
	LSTATUS status = value_name(which, name);

	if (status)
		return status;
	switch (value->kind) {
	case IFEO_DWORD:
		return RegSetValueExW(key, name, 0, REG_DWORD, (const BYTE *)&value->number,
			sizeof(value->number));
	case IFEO_TEXT: return set_text(key, name, value->text);
	case IFEO_NONE: return RegDeleteValueW(key, name);
	default: return ERROR_INVALID_DATA;
	}
}

static int registry_write(void *ctx, enum ifeo_view view, const char *name, enum ifeo_name which,
	const struct ifeo_value *value, struct err *err)
{
	HKEY key;
	LSTATUS status = key_open(view, name, KEY_SET_VALUE, &key);

	(void)ctx;
	if (!status) {
		status = set_value(key, which, value);
		RegCloseKey(key);
	}
	return status ? fail(status, view, name, err) : 0;
}

static int registry_make(void *ctx, enum ifeo_view view, const char *name, struct err *err)
{
	wchar_t path[PATH_UNITS];
	HKEY key;
	LSTATUS status;

	(void)ctx;
	if (!key_path(name, path))
		return err_set(err, ERR_NOMEM, name, NULL);
	status = RegCreateKeyExW(HKEY_LOCAL_MACHINE, path, 0, NULL, 0,
		KEY_SET_VALUE | view_flags[view], NULL, &key, NULL);
	if (status)
		return fail(status, view, name, err);
	RegCloseKey(key);
	return 0;
}

/* What somebody put into it this very moment stays: subkeys by the system's rule, values by a look. */
static int registry_remove(void *ctx, enum ifeo_view view, const char *name, struct err *err)
{
	struct ifeo_image image = {0};
	wchar_t path[PATH_UNITS];
	LSTATUS status;
	int rc = registry_read(ctx, view, name, &image, err);

	for (int i = 0; i < IFEO_NAMES; i++)
		image.has_others = image.has_others || image.values[i].kind != IFEO_NONE;
	if (rc || !image.exists || image.has_others)
		return rc;
	if (!key_path(name, path))
		return err_set(err, ERR_NOMEM, name, NULL);
	status = RegDeleteKeyExW(HKEY_LOCAL_MACHINE, path, view_flags[view], 0);
	return status && status != ERROR_FILE_NOT_FOUND ? fail(status, view, name, err) : 0;
}

union key_name {
	struct nt_key_name info;
	unsigned char bytes[1024];
};

/* The system's own name of a view's root; false: it cannot be known. */
static bool root_name(enum ifeo_view view, union key_name *name)
{
	ULONG needed = 0;
	HKEY key;
	bool good;

	if (RegOpenKeyExW(HKEY_LOCAL_MACHINE, ROOT, 0, KEY_READ | view_flags[view], &key))
		return false;
	good = NtQueryKey(key, NT_KEY_NAME, name, sizeof(*name), &needed) >= 0 &&
	       name->info.bytes <= sizeof(*name) - offsetof(struct nt_key_name, name);
	RegCloseKey(key);
	return good;
}

/* One view's key may be a link to the other's. */
static bool registry_is_one(void *ctx)
{
	union key_name one, other;

	(void)ctx;
	return root_name(IFEO_64, &one) && root_name(IFEO_32, &other) &&
	       one.info.bytes == other.info.bytes &&
	       !memcmp(one.info.name, other.info.name, one.info.bytes);
}

/* One for the whole machine. Who may not even ask for it, since an administrator has it, may change nothing
 * either, which the registry says better. One that died with it has left what off puts right. */
static int registry_lock(void *ctx, const char *name, void **held, struct err *err)
{
	HANDLE mutex = CreateMutexW(NULL, FALSE, L"Global\\hsnap-ust");

	(void)ctx;
	if (mutex && WaitForSingleObject(mutex, LOCK_MS) == WAIT_TIMEOUT) {
		CloseHandle(mutex);
		return err_set(err, ERR_BUSY, name, "another hsnap changes flags of images");
	}
	*held = mutex;
	return 0;
}

static void registry_unlock(void *ctx, void *held)
{
	(void)ctx;
	if (!held)
		return;
	ReleaseMutex(held);
	CloseHandle(held);
}

struct ifeo_calls ifeo_registry(void)
{
	return (struct ifeo_calls){.lock = registry_lock,
		.unlock = registry_unlock,
		.read = registry_read,
		.write = registry_write,
		.make = registry_make,
		.remove = registry_remove,
		.is_one = registry_is_one};
}

struct names {
	char **items;
	size_t count, cap;
};

void ifeo_names_free(char **names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(names[i]);
	free(names);
}

/* Keeps the name of an image that has ust on: 0 or -ERR_NOMEM. */
static int add_name(struct names *names, HKEY root, const wchar_t *wide)
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
	name = utf8_from_wide(wide);
	if (!name || array_grow((void **)&names->items, &names->cap, names->count,
			     sizeof(*names->items))) {
		free(name);
		return -ERR_NOMEM;
	}
	names->items[names->count++] = name;
	return 0;
}

static int add_view(struct names *names, enum ifeo_view view, struct err *err)
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

/* Sorted, and a name that both views have once. */
static size_t unite(struct names *names)
{
	size_t kept = 0;

	if (names->count)
		qsort(names->items, names->count, sizeof(*names->items), compare);
	for (size_t i = 0; i < names->count; i++) {
		if (kept && !_stricmp(names->items[kept - 1], names->items[i]))
			free(names->items[i]);
		else
			names->items[kept++] = names->items[i];
	}
	return kept;
}

int ifeo_all_ust(char ***names, size_t *count, struct err *err)
{
	struct names found = {0};
	int rc = 0;

	for (int view = 0; !rc && view < IFEO_VIEWS; view++)
		rc = add_view(&found, (enum ifeo_view)view, err);
	found.count = unite(&found);
	if (rc) {
		ifeo_names_free(found.items, found.count);
		return rc;
	}
	*names = found.items;
	*count = found.count;
	return 0;
}

void ifeo_remind(void)
{
	char **names = NULL;
	size_t count = 0;

	if (ifeo_all_ust(&names, &count, NULL))
		return;
	for (size_t i = 0; i < count; i++)
		fprintf(stderr, "%s%s", i ? ", " : "hsnap: ust is on for ",
			text_harmless(names[i]));
	if (count)
		fprintf(stderr, "; 'hsnap ust off IMAGE' ends it\n");
	ifeo_names_free(names, count);
}
