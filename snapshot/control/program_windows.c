#include "snapshot/control/program_windows.h"

#include <stdlib.h>
#include <windows.h>

#include "core/os.h"
#include "core/pe.h"
#include "core/utf_windows.h"

#define PATH_UNITS 32768

wchar_t *program_find(const char *program)
{
	wchar_t *wide = wide_from_utf8(program), *path = malloc(PATH_UNITS * sizeof(*path));
	DWORD len = wide && path ? SearchPathW(NULL, wide, L".exe", PATH_UNITS, path, NULL) : 0;

	free(wide);
	if (len && len < PATH_UNITS)
		return wide_path_long(path);
	free(path);
	return NULL;
}

static int read_file(void *ctx, uint64_t offset, void *bytes, size_t len)
{
	return os_read_at(ctx, offset, bytes, len);
}

unsigned program_bits(const wchar_t *path)
{
	char *text = utf8_from_wide(path);
	struct pe_image *image = malloc(sizeof(*image));
	struct os_file file;
	unsigned bits = 0;

	if (text && image && !os_open(&file, text, NULL)) {
		struct pe_source source = {.read = read_file, .ctx = &file};

		if (!pe_read_headers(&source, image))
			bits = image->machine == PE_MACHINE_I386 ? 32 : 64;
		os_close(&file);
	}
	free(image);
	free(text);
	return bits;
}

/* Of path, whose file name starts at base: the same with another name. */
static wchar_t *with_name(const wchar_t *path, size_t base, const wchar_t *name)
{
	wchar_t *result = malloc((base + wcslen(name) + 1) * sizeof(*result));

	if (result) {
		wmemcpy(result, path, base);
		wcscpy(result + base, name);
	}
	return wide_path_long(result);
}

/* This program's own path and its length, or NULL. */
static wchar_t *own_path(DWORD *len)
{
	wchar_t *path = malloc(PATH_UNITS * sizeof(*path));

	*len = path ? GetModuleFileNameW(NULL, path, PATH_UNITS) : 0;
	if (*len && *len < PATH_UNITS)
		return path;
	free(path);
	return NULL;
}

bool program_is_this(const wchar_t *path)
{
	DWORD len;
	wchar_t *own = own_path(&len);
	char *this = own ? utf8_from_wide(own) : NULL, *other = utf8_from_wide(path);
	bool same = this && other && os_same_file(this, other);

	free(own);
	free(this);
	free(other);
	return same;
}

wchar_t *program_beside(const wchar_t *name)
{
	DWORD len;
	wchar_t *path = own_path(&len), *beside = NULL;

	while (path && len && path[len - 1] != L'\\' && path[len - 1] != L'/')
		len--;
	if (path && len)
		beside = with_name(path, len, name);
	free(path);
	if (beside && GetFileAttributesW(beside) != INVALID_FILE_ATTRIBUTES)
		return beside;
	free(beside);
	return NULL;
}
