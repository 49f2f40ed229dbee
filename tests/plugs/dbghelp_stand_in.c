/*
 * Replaces dbghelp.dll and returns its parameters in place of names.
 *
 * Every address is in a function named after the file from which this DLL was loaded, in line
 * STAND_IN_LINE (1) of a "file" whose name contains, separated by bars: options, search path,
 * image, size, base, and the callback's answer to the question whether to stop. The environment
 * describes a module: STAND_IN_TYPE is its kind of symbols (3, a PDB); STAND_IN_AGE is the PDB's
 * age (1), whose GUID is 00112233-4455-6677-8899AABBCCDDEEFF; STAND_IN_UNMATCHED marks the PDB as
 * unmatched.
 */
#include <windows.h>

/* This file defines the functions that the header declares as imports. */
#undef DECLSPEC_IMPORT
#define DECLSPEC_IMPORT
/* mingw declares its path parameter as bytes. */
#define SymFindFileInPathW SymFindFileInPathW_of_mingw
#include <dbghelp.h>
#undef SymFindFileInPathW

#define TEXT_UNITS 2000

BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, LPVOID reserved);

static wchar_t own_path[TEXT_UNITS], search_path[TEXT_UNITS], said[2 * TEXT_UNITS];
static DWORD options;
static PSYMBOL_REGISTERED_CALLBACK64 callback;
static ULONG64 callback_context;

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): Microsoft's names differ */

/* gcc generates calls of this function. */
void *memset(void *to, int byte, size_t len)
{
	for (volatile char *at = to; len--; at++)
		*at = (char)byte;
	return to;
}

static unsigned number_from(const wchar_t *name, unsigned otherwise)
{
	wchar_t text[20];
	unsigned number = 0;

	if (!GetEnvironmentVariableW(name, text, 20))
		return otherwise;
	for (const wchar_t *at = text; *at >= '0' && *at <= '9'; at++)
		number = number * 10 + (unsigned)(*at - '0');
	return number;
}

static void print_number(ULONG64 number)
{
	wchar_t digits[17];
	int at = 16;

	digits[16] = 0;
	do {
		digits[--at] = L"0123456789abcdef"[number % 16];
		number /= 16;
	} while (number);
	lstrcatW(said, digits + at);
}

static void copy(wchar_t *to, const wchar_t *from)
{
	lstrcpynW(to, from ? from : L"(none)", TEXT_UNITS);
}

__declspec(dllexport) DWORD WINAPI SymSetOptions(DWORD wanted)
{
	return options = wanted;
}

__declspec(dllexport) BOOL WINAPI SymInitializeW(HANDLE handle, PCWSTR path, BOOL invade)
{
	(void)handle;
	copy(search_path, path);
	return !invade;
}

__declspec(dllexport) BOOL WINAPI SymSetSearchPathW(HANDLE handle, PCWSTR path)
{
	(void)handle;
	copy(search_path, path);
	return TRUE;
}

BOOL WINAPI SymRegisterCallbackW64(
	HANDLE handle, PSYMBOL_REGISTERED_CALLBACK64 function, ULONG64 context);
__declspec(dllexport) BOOL WINAPI SymRegisterCallbackW64(
	HANDLE handle, PSYMBOL_REGISTERED_CALLBACK64 function, ULONG64 context)
{
	(void)handle;
	callback = function;
	callback_context = context;
	return TRUE;
}

BOOL WINAPI SymFindFileInPathW(HANDLE handle, PCWSTR path, PCWSTR name, PVOID id, DWORD two,
	DWORD three, DWORD flags, PWSTR found, PFINDFILEINPATHCALLBACKW asked, PVOID context);

/* Finds served.pdb with this GUID and age 1, in one symbol path only. */
__declspec(dllexport) BOOL WINAPI SymFindFileInPathW(HANDLE handle, PCWSTR path, PCWSTR name,
	PVOID id, DWORD two, DWORD three, DWORD flags, PWSTR found, PFINDFILEINPATHCALLBACKW asked,
	PVOID context)
{
	const ULONGLONG *halves = id;

	(void)handle;
	(void)context;
	if (asked || two != 1 || three || flags != SSRVOPT_GUIDPTR ||
		lstrcmpW(name, L"served.pdb") ||
		lstrcmpW(path, L"srv*C:\\cache*https://symbols.example/x") ||
		halves[0] != 0x6677445500112233 || halves[1] != 0xffeeddccbbaa9988)
		return FALSE;
	lstrcpyW(found, L"C:\\cache\\served.pdb");
	return TRUE;
}

__declspec(dllexport) DWORD64 WINAPI SymLoadModuleExW(HANDLE handle, HANDLE file, PCWSTR image,
	PCWSTR name, DWORD64 base, DWORD size, MODLOAD_DATA *data, DWORD flags)
{
	(void)file;
	(void)name;
	(void)data;
	(void)flags;
	said[0] = 0;
	print_number(options);
	lstrcatW(said, L"|");
	lstrcatW(said, search_path);
	lstrcatW(said, L"|");
	lstrcatW(said, image);
	lstrcatW(said, L"|");
	print_number(size);
	lstrcatW(said, L"|");
	print_number(base);
	lstrcatW(said, L"|stop: ");
	print_number(callback ? (ULONG64)callback(handle, CBA_DEFERRED_SYMBOL_LOAD_CANCEL, 0,
					callback_context) :
				9);
	return base;
}

__declspec(dllexport) BOOL WINAPI
	SymGetModuleInfoW64(HANDLE handle, DWORD64 addr, IMAGEHLP_MODULEW64 *info)
{
	static const GUID guid = {
		0x00112233, 0x4455, 0x6677, {0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}};

	(void)handle;
	(void)addr;
	info->SymType = (SYM_TYPE)number_from(L"STAND_IN_TYPE", SymPdb);
	lstrcpyW(info->LoadedPdbName, info->SymType == SymPdb ? L"C:\\some.pdb" : L"");
	info->PdbSig70 = guid;
	info->PdbAge = number_from(L"STAND_IN_AGE", 1);
	info->PdbUnmatched = number_from(L"STAND_IN_UNMATCHED", 0) != 0;
	return TRUE;
}

__declspec(dllexport) BOOL WINAPI
	SymFromAddrW(HANDLE handle, DWORD64 addr, DWORD64 *displacement, SYMBOL_INFOW *info)
{
	(void)handle;
	(void)addr;
	lstrcpynW(info->Name, own_path, (int)info->MaxNameLen);
	*displacement = 4;
	return TRUE;
}

__declspec(dllexport) BOOL WINAPI SymGetLineFromAddrW64(
	HANDLE handle, DWORD64 addr, DWORD *displacement, IMAGEHLP_LINEW64 *line)
{
	(void)handle;
	(void)addr;
	*displacement = 0;
	line->FileName = said;
	line->LineNumber = number_from(L"STAND_IN_LINE", 1);
	return TRUE;
}

BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, LPVOID reserved)
{
	(void)reserved;
	if (reason == DLL_PROCESS_ATTACH)
		GetModuleFileNameW(self, own_path, TEXT_UNITS);
	return TRUE;
}

/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
