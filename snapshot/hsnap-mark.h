/*
 * Marks for hsnap, from inside a program. Copy this file into your project, or add its folder to
 * the include path; nothing has to be linked.
 *
 *	hsnap_mark("Parser.Long");
 *
 * names the current moment in the recording that "hsnap record" is making of the program. "hdiff
 * --by-mark" then shows how much memory was kept from each mark to the next. Without a recording,
 * and on other systems than Windows, the call does nothing.
 *
 * The call returns when hsnap has recorded the mark, so it lies exactly between the calling
 * thread's allocations before it and those after it. It may be called from any thread. It
 * allocates nothing, and does not change GetLastError(). A label is UTF-8, and is cut after 199
 * bytes.
 *
 * For C99, C++11, and later. Does not include windows.h, but may be used beside it, in any order.
 */
#ifndef HSNAP_MARK_H
#define HSNAP_MARK_H

#ifdef _WIN32

#ifdef __cplusplus
extern "C" {
#endif

/* The types of windows.h, under other names. */
#ifdef NO_STRICT
typedef void *hsnap_module;
#else
struct HINSTANCE__;
typedef struct HINSTANCE__ *hsnap_module;
#endif
#ifdef _WIN64
typedef long long(__stdcall *hsnap_function)(void);
#else
typedef int(__stdcall *hsnap_function)(void);
#endif

/* In kernel32.dll, which every program links. */
__declspec(dllimport) hsnap_module __stdcall GetModuleHandleA(const char *name);
__declspec(dllimport) hsnap_function
	__stdcall GetProcAddress(hsnap_module module, const char *name);
__declspec(dllimport) unsigned long __stdcall GetLastError(void);
__declspec(dllimport) void __stdcall SetLastError(unsigned long error);

#ifdef __cplusplus
}
#endif

/* Returns a function of hsnap's tracer in this process, or a null pointer. */
static inline hsnap_function hsnap_find(const char *name)
{
	const unsigned long error = GetLastError();
	const hsnap_module tracer =
		GetModuleHandleA(sizeof(void *) == 8 ? "hsnap-tracer64.dll" : "hsnap-tracer32.dll");
	const hsnap_function function = tracer ? GetProcAddress(tracer, name) : 0;

	SetLastError(error);
	return function;
}

static inline void hsnap_mark(const char *label)
{
	/* in two steps, because compilers warn of a cast to a function with arguments */
	void (*const plain)(void) = (void (*)(void))hsnap_find("tracer_mark");
	void(__cdecl *const mark)(const char *) = (void(__cdecl *)(const char *))plain;

	if (mark)
		mark(label);
}

#else

static inline void hsnap_mark(const char *label)
{
	(void)label;
}

#endif
#endif
