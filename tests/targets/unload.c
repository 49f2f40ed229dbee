/* unload PLUG OTHER: loads and unloads modules. PLUG and OTHER are copies of plug.dll under
 * different names. At step 1 PLUG is loaded and has allocated 10 blocks of 1000 bytes. Before step
 * 2 it allocates 5 more from the same place in the program. PLUG is unloaded, and OTHER is loaded
 * at its address and allocates 7 blocks of 2000 bytes. PLUG is loaded again at another address and
 * allocates 3 blocks of 500 bytes. Before step 3 both are unloaded. Before step 2 the program
 * prints "same 1" if OTHER has PLUG's old address, and "again 1" if PLUG then has another
 * address. */
#include <stdio.h>

#include "samples/step.h"

typedef void *(*keep_fn)(unsigned bytes);

static HMODULE load(const char *path)
{
	HMODULE module = LoadLibraryA(path);

	if (!module)
		ExitProcess(3);
	return module;
}

static NOINLINE void keep(HMODULE module, unsigned count, unsigned bytes)
{
	keep_fn function = (keep_fn)(void *)GetProcAddress(module, "plug_keep");

	for (volatile unsigned i = 0; i < count; i++)
		step_leak(function(bytes));
}

int main(int argc, char **argv)
{
	HMODULE plug, other, again;

	if (argc != 3)
		return 2;
	plug = load(argv[1]);
	for (volatile unsigned step = 1; step <= 2; step++) {
		keep(plug, step == 1 ? 10 : 5, 1000);
		if (step == 1 && !step_done(1))
			return 0;
	}
	FreeLibrary(plug);
	other = load(argv[2]);
	keep(other, 7, 2000);
	again = load(argv[1]);
	keep(again, 3, 500);
	printf("same %d\nagain %d\n", other == plug, again != plug);
	fflush(stdout);
	if (!step_done(2))
		return 0;
	FreeLibrary(again);
	FreeLibrary(other);
	step_done(3);
	return 0;
}
