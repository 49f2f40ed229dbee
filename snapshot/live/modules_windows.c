#include "snapshot/live/modules_windows.h"

#include <psapi.h>
#include <stdlib.h>
#include <string.h>

#include "core/utf_windows.h"
#include "snapshot/live/wow64_path.h"

#define MODULES_MAX 65536
#define PATH_UNITS 32768

/* Whether a module is 32-bit, as its header in memory says. */
static bool is_32_bit(struct target *target, uint64_t base)
{
	struct target_image at = {target, base};
	struct pe_source source = target_image_source(&at);
	struct pe_image *image = malloc(sizeof(*image));
	bool result =
		image && !pe_read_headers(&source, image) && image->machine == PE_MACHINE_I386;

	free(image);
	return result;
}

static char *folder(UINT(WINAPI *get)(LPWSTR, UINT))
{
	wchar_t wide[MAX_PATH];
	UINT len = get(wide, MAX_PATH);

	return len && len < MAX_PATH ? utf8_from_wide(wide) : NULL;
}

/* A 32-bit module names the folder that its process believes to be in; the file lies elsewhere. */
static const char *true_path(
	struct target *target, uint64_t base, struct snapshot *snapshot, const char *path)
{
	char *system, *wow64;
	const char *result = path;

	if (target->bits != 32 || !is_32_bit(target, base))
		return path;
	system = folder(GetSystemDirectoryW);
	wow64 = folder(GetSystemWow64DirectoryW);
	if (system && wow64)
		result = wow64_path(&snapshot->arena, path, system, wow64);
	free(system);
	free(wow64);
	return result;
}

/* The module's path: a copy in the snapshot's arena, or NULL. */
static const char *module_path(struct target *target, HANDLE process, HMODULE handle, uint64_t base,
	struct snapshot *snapshot)
{
	wchar_t *wide = malloc(PATH_UNITS * sizeof(*wide));
	const char *path = NULL;
	char *text = NULL;

	if (wide && GetModuleFileNameExW(process, handle, wide, PATH_UNITS))
		text = utf8_from_wide(wide);
	if (text)
		path = arena_text(&snapshot->arena, text, strlen(text));
	if (path)
		path = true_path(target, base, snapshot, path);
	free(text);
	free(wide);
	return path;
}

static int add(struct target *target, HANDLE process, HMODULE handle, struct snapshot *snapshot)
{
	MODULEINFO info;
	struct module *module;
	const char *path;
	uint64_t base;

	/* One that was unloaded meanwhile is not there any more. */
	if (!GetModuleInformation(process, handle, &info, sizeof(info)))
		return 0;
	base = (uint64_t)info.lpBaseOfDll;
	path = module_path(target, process, handle, base, snapshot);
	if (!path)
		return 0;
	module = snapshot_add_module(snapshot);
	if (!module)
		return -ERR_NOMEM;
	module->base = base;
	module->size_bytes = info.SizeOfImage;
	module->path = path;
	return 0;
}

static int compare(const void *a, const void *b)
{
	ULONG_PTR left = (ULONG_PTR) * (const HMODULE *)a, right = (ULONG_PTR) * (const HMODULE *)b;

	return left < right ? -1 : left > right;
}

/* All handles, by address; *count of them. The caller's to free; NULL: none, or out of memory. */
static HMODULE *list(HANDLE process, size_t *count)
{
	DWORD bytes = 4096 * sizeof(HMODULE), needed = 0;

	for (;;) {
		HMODULE *handles = malloc(bytes);

		if (!handles ||
			!EnumProcessModulesEx(process, handles, bytes, &needed, LIST_MODULES_ALL)) {
			free(handles);
			return NULL;
		}
		if (needed <= bytes || bytes >= MODULES_MAX * sizeof(HMODULE)) {
			*count = (needed < bytes ? needed : bytes) / sizeof(HMODULE);
			qsort(handles, *count, sizeof(*handles), compare);
			return handles;
		}
		free(handles);
		bytes = MODULES_MAX * sizeof(HMODULE);
	}
}

int modules_list(struct target *target, HANDLE process, struct snapshot *snapshot, struct err *err)
{
	size_t count = 0;
	HMODULE *handles = list(process, &count);
	int rc = handles ? 0 : target_err(target, target->peb, "unreadable module list", err);

	for (size_t i = 0; !rc && i < count; i++) {
		/* A 32-bit program is in the lists of both kinds. */
		if (!i || handles[i] != handles[i - 1])
			rc = add(target, process, handles[i], snapshot);
	}
	if (rc == -ERR_NOMEM)
		err_set(err, ERR_NOMEM, target->name, NULL);
	modules_sort(snapshot->modules, snapshot->module_count);
	free(handles);
	return rc;
}
