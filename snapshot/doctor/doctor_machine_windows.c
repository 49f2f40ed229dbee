/*
 * Facts about the machine for machine.txt, one per line. They determine the layout of heaps and
 * whether the tracer can be loaded into programs. They come from documented functions and registry
 * values, and name neither the user nor the machine. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <windows.h>

#include "core/base/os_windows.h"
#include "core/base/text.h"
#include "snapshot/control/control_windows.h"
#include "snapshot/control/tracee_windows.h"
#include "snapshot/doctor/doctor.h"

#define CODE_BYTES 64 /* number of bytes to store per function */
#define POLICIES 32 /* more than any Windows has */
#define POLICY_MASKS 5 /* ProcessMitigationOptionsMask: mitigations that the system supports */
#define TEXT_UNITS 260
#define WINDOWS L"SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion"
#define PROCESSOR L"HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0"
#define KITS L"SOFTWARE\\Microsoft\\Windows Kits\\Installed Roots"

static void (*function_of(HMODULE library, const char *name))(void)
{
	return (void (*)(void))GetProcAddress(library, name);
}

/* Reads a value of the 64-bit registry. Returns false if the value is missing or has another
 * type. */
static bool read_value(
	const wchar_t *path, const wchar_t *name, DWORD want, void *value, DWORD bytes)
{
	LSTATUS rc;
	HKEY key;

	if (RegOpenKeyExW(HKEY_LOCAL_MACHINE, path, 0, KEY_QUERY_VALUE | KEY_WOW64_64KEY, &key))
		return false;
	rc = RegGetValueW(key, NULL, name, want, NULL, value, &bytes);
	RegCloseKey(key);
	return !rc;
}

static void add_text(struct buf *text, const char *what, const wchar_t *key, const wchar_t *name)
{
	wchar_t wide[TEXT_UNITS];
	char *value = read_value(key, name, RRF_RT_REG_SZ, wide, sizeof(wide)) ?
			      wide_to_utf8(wide) :
			      NULL;

	buf_printf(text, "%s %s\n", what, value ? value : "unknown");
	free(value);
}

static void add_build(struct buf *text)
{
	LONG(WINAPI * version)
	(OSVERSIONINFOW *) = (void *)function_of(GetModuleHandleW(L"ntdll.dll"), "RtlGetVersion");
	OSVERSIONINFOW info = {.dwOSVersionInfoSize = sizeof(info)};
	const char *wine = os_wine_version();
	DWORD revision = 0;

	if (version)
		version(&info);
	buf_printf(text, "windows %lu.%lu.%lu", info.dwMajorVersion, info.dwMinorVersion,
		info.dwBuildNumber);
	if (read_value(WINDOWS, L"UBR", RRF_RT_REG_DWORD, &revision, sizeof(revision)))
		buf_printf(text, ".%lu", revision);
	buf_printf(text, "%s%s\n", wine ? ", wine " : "", wine ? wine : "");
	add_text(text, "product", WINDOWS, L"ProductName");
	add_text(text, "edition", WINDOWS, L"InstallationType");
}

/* Adds the machine type for which Windows was built. Before Windows 10, no function detects an
 * emulator. */
static void add_processor(struct buf *text)
{
	BOOL(WINAPI * is_wow64)
	(HANDLE, USHORT *, USHORT *) =
		(void *)function_of(GetModuleHandleW(L"kernel32.dll"), "IsWow64Process2");
	USHORT process = 0, native = 0;
	SYSTEM_INFO info;

	GetNativeSystemInfo(&info);
	add_text(text, "processor", PROCESSOR, L"ProcessorNameString");
	buf_printf(text, "processors %lu, architecture %u", info.dwNumberOfProcessors,
		info.wProcessorArchitecture);
	if (is_wow64 && is_wow64(GetCurrentProcess(), &process, &native))
		buf_printf(text, ", machine %X", native);
	buf_add_text(text, "\n");
}

/* Adds a file's version (VS_FIXEDFILEINFO) as four numbers, using version.dll. */
static void add_file_version(struct buf *text, const wchar_t *path)
{
	HMODULE library = windows_library(L"version.dll");
	DWORD(WINAPI * size_of)
	(const wchar_t *, DWORD *) = (void *)function_of(library, "GetFileVersionInfoSizeW");
	BOOL(WINAPI * get)
	(const wchar_t *, DWORD, DWORD, void *) =
		(void *)function_of(library, "GetFileVersionInfoW");
	BOOL(WINAPI * query)
	(const void *, const wchar_t *, void **, UINT *) =
		(void *)function_of(library, "VerQueryValueW");
	VS_FIXEDFILEINFO *info = NULL;
	DWORD bytes = size_of && get && query ? size_of(path, &(DWORD){0}) : 0;
	void *block = xmalloc(bytes ? bytes : 1);
	UINT len = 0;

	if (bytes && get(path, 0, bytes, block) && query(block, L"\\", (void **)&info, &len) &&
		len >= sizeof(*info))
		buf_printf(text, " %u.%u.%u.%u", HIWORD(info->dwFileVersionMS),
			LOWORD(info->dwFileVersionMS), HIWORD(info->dwFileVersionLS),
			LOWORD(info->dwFileVersionLS));
	free(block);
}

/* Adds a DLL and its version. `folder` ends with a separator. */
static void add_library(struct buf *text, const wchar_t *folder, const wchar_t *name)
{
	wchar_t path[2 * TEXT_UNITS];
	char *shown;

	_snwprintf(path, 2 * TEXT_UNITS - 1, L"%ls%ls", folder, name);
	path[2 * TEXT_UNITS - 1] = 0;
	shown = wide_to_utf8(path);
	buf_printf(text, "%s", shown ? shown : "unknown");
	if (GetFileAttributesW(path) == INVALID_FILE_ATTRIBUTES)
		buf_add_text(text, " none");
	else
		add_file_version(text, path);
	buf_add_text(text, "\n");
	free(shown);
}

static void add_libraries(struct buf *text, const wchar_t *folder)
{
	add_library(text, folder, L"dbghelp.dll");
	add_library(text, folder, L"symsrv.dll");
}

/* Adds the copies of DbgHelp for which hsym and hdiff search: that of the system and that of the
 * Debugging Tools. */
static void add_debuggers(struct buf *text)
{
	wchar_t root[TEXT_UNITS], folder[TEXT_UNITS + 40];
	UINT len = GetSystemDirectoryW(folder, TEXT_UNITS);

	wcscpy(folder + (len < TEXT_UNITS ? len : 0), L"\\");
	add_libraries(text, folder);
	if (!read_value(KITS, L"KitsRoot10", RRF_RT_REG_SZ, root, sizeof(root))) {
		buf_add_text(text, "debugging tools none\n");
		return;
	}
	_snwprintf(folder, TEXT_UNITS + 39, L"%lsDebuggers\\%ls\\", root,
		OUR_BITS == 64 ? L"x64" : L"x86");
	folder[TEXT_UNITS + 39] = 0;
	add_libraries(text, folder);
}

void doctor_machine_system(struct buf *text)
{
	buf_printf(text, "hsnap %s, %u bits\n", HSNAP_VERSION, OUR_BITS);
	add_build(text);
	add_processor(text);
	add_debuggers(text);
}

/* Adds the mitigation policies whose flags are not 0: their numbers in PROCESS_MITIGATION_POLICY,
 * and their flags. */
static void add_policies(struct buf *text, unsigned bits, HANDLE process)
{
	BOOL(WINAPI * get)
	(HANDLE, int, void *, SIZE_T) = (void *)function_of(
		GetModuleHandleW(L"kernel32.dll"), "GetProcessMitigationPolicy");
	unsigned known = 0;

	buf_printf(text, "policies-%u", bits);
	for (int i = 0; get && i < POLICIES; i++) {
		DWORD flags[2] = {0};
		bool is_known = i != POLICY_MASKS && (get(process, i, flags, sizeof(*flags)) ||
							     get(process, i, flags, sizeof(flags)));

		known += is_known;
		if (is_known && *flags)
			buf_printf(text, " %d=%lX", i, *flags);
	}
	buf_printf(text, ", %u known\n", known);
}

static uint64_t find_ntdll(struct target *target, struct pe_image *image)
{
	struct snapshot modules;
	struct err err;
	uint64_t base = 0;

	snapshot_init(&modules);
	if (target->ops->modules(target, &modules, &err))
		modules.module_count = 0;
	for (size_t i = 0; !base && i < modules.module_count; i++) {
		struct target_image at = {.target = target, .base = modules.modules[i].base};
		struct pe_source source = target_image_source(&at);

		if (!text_compare(module_path_base(modules.modules[i].path), "ntdll.dll") &&
			!pe_read_headers(&source, image) && image->bits == target->bits)
			base = at.base;
	}
	snapshot_release(&modules);
	return base;
}

static void add_code(struct buf *text, struct target *target, const char *name, uint64_t addr)
{
	unsigned char code[CODE_BYTES];

	buf_printf(text, "code-%u %s", target->bits, name);
	if (target_read(target, addr, code, sizeof(code))) {
		buf_add_text(text, " unreadable\n");
		return;
	}
	for (size_t i = 0; i < sizeof(code); i++)
		buf_printf(text, " %02x", code[i]);
	buf_add_text(text, "\n");
}

static void add_functions(struct buf *text, struct target *target)
{
	struct pe_image *image = xcalloc(1, sizeof(*image));
	struct target_image at = {.target = target, .base = find_ntdll(target, image)};
	struct pe_source source = target_image_source(&at);
	const char *names[HOOK_COUNT];
	uint32_t rvas[HOOK_COUNT] = {0};

	for (int i = 0; i < HOOK_COUNT; i++)
		names[i] = tracee_function_name(i);
	if (at.base)
		pe_find_exports(&source, image, names, HOOK_COUNT, rvas);
	for (int i = 0; i < HOOK_COUNT; i++) {
		if (rvas[i])
			add_code(text, target, names[i], at.base + rvas[i]);
		else
			buf_printf(text, "code-%u %s none\n", target->bits, names[i]);
	}
	free(image);
}

void doctor_machine_child(struct buf *text, struct target *target, void *process)
{
	add_policies(text, target->bits, process);
	add_functions(text, target);
}
