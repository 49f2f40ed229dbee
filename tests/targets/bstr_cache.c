/* COM strings. In each step after the first, use_string() allocates 30 strings and frees them all;
 * then leak_string() allocates 30. With an argument, oleaut32.dll is loaded after step 1, otherwise
 * before step 1. */
#include "samples/step.h"

#define STRINGS 30

typedef WCHAR *(WINAPI *alloc_fn)(const WCHAR *text);
typedef void(WINAPI *free_fn)(WCHAR *text);

static alloc_fn alloc_string;
static free_fn free_string;
static WCHAR *used[STRINGS];

static void load(void)
{
	HMODULE oleaut32 = LoadLibraryA("oleaut32.dll");

	alloc_string = (alloc_fn)(void *)GetProcAddress(oleaut32, "SysAllocString");
	free_string = (free_fn)(void *)GetProcAddress(oleaut32, "SysFreeString");
	free_string(alloc_string(L"the first one makes the cache"));
}

static NOINLINE void use_string(int i)
{
	used[i] = alloc_string(L"a string that is used for a while");
}

static NOINLINE void leak_string(void)
{
	step_leak(alloc_string(L"a string that is never freed again"));
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc < 2)
		load();
	for (unsigned long step = 1; step_done(step); step++) {
		if (!alloc_string)
			load();
		for (int i = 0; i < STRINGS; i++)
			use_string(i);
		for (int i = 0; i < STRINGS; i++)
			free_string(used[i]);
		for (int i = 0; i < STRINGS; i++)
			leak_string();
	}
	return 0;
}
