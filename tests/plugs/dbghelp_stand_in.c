/*
 * Stands in for dbghelp.dll and tells, in the place of names, what was asked of it.
 *
 * Every address is in a function that is called as the file this was loaded from, in line STAND_IN_LINE
 * (1) of a "file" that says, parted by bars: options, search path, image, size, base, and what the
 * callback answered when it was asked whether to stop. What it says of a module comes from the
 * environment: STAND_IN_TYPE is its kind of symbols (3, a PDB), STAND_IN_AGE the PDB's age (1), whose
 * GUID is 00112233-4455-6677-8899AABBCCDDEEFF; STAND_IN_UNMATCHED: that it does not match.
 */
#include <windows.h>

/* What the header declares is not imported but made here. */
#undef DECLSPEC_IMPORT
#define DECLSPEC_IMPORT
#include <dbghelp.h>

#define TEXT_UNITS 2000

BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, LPVOID reserved);

static wchar_t own_path[TEXT_UNITS], search_path[TEXT_UNITS], said[2 * TEXT_UNITS];
static DWORD options;
static PSYMBOL_REGISTERED_CALLBACK64 callback;
static ULONG64 callback_context;

/* gcc makes calls of these. */
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

static void say_number(ULONG64 number)
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

__declspec(dllexport) DWORD64 WINAPI SymLoadModuleExW(HANDLE handle, HANDLE file, PCWSTR image,
	PCWSTR name, DWORD64 base, DWORD size, MODLOAD_DATA *data, DWORD flags)
{
	(void)file;
	(void)name;
	(void)data;
	(void)flags;
	said[0] = 0;
	say_number(options);
	lstrcatW(said, L"|");
	lstrcatW(said, search_path);
	lstrcatW(said, L"|");
	lstrcatW(said, image);
	lstrcatW(said, L"|");
	say_number(size);
	lstrcatW(said, L"|");
	say_number(base);
	lstrcatW(said, L"|stop: ");
	say_number(callback ? (ULONG64)callback(handle, CBA_DEFERRED_SYMBOL_LOAD_CANCEL, 0,
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
