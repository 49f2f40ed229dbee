/*
 * let_go DLL: loads a library and lets it go, three times, and compares what the tracer in this process
 * notes of it with what its headers said while it was there. Exit status 0 when all is right; else a
 * line says what is not. "no tracer" and status 3 without one.
 */
#include <stdio.h>
#include <string.h>

#include "tests/targets/own_table.h"

#define TIMES 3

struct library {
	HMODULE base;
	wchar_t path[MAX_PATH];
	DWORD path_units, image_bytes, timestamp, checksum;
	BYTE guid[16];
	DWORD age;
	char pdb[300];
};

static int wrong(const char *what)
{
	printf("wrong: %s\n", what);
	return 9;
}

/* CV_INFO_PDB70, as debuggers look for it. */
static void read_rsds(struct library *library, const BYTE *base, const IMAGE_NT_HEADERS *nt)
{
	const IMAGE_DATA_DIRECTORY *at =
		&nt->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_DEBUG];
	const IMAGE_DEBUG_DIRECTORY *entry = (const void *)(base + at->VirtualAddress);

	if (!at->Size || entry->Type != IMAGE_DEBUG_TYPE_CODEVIEW)
		return;
	memcpy(library->guid, base + entry->AddressOfRawData + 4, sizeof(library->guid));
	memcpy(&library->age, base + entry->AddressOfRawData + 20, sizeof(library->age));
	strncpy(library->pdb, (const char *)base + entry->AddressOfRawData + 24,
		sizeof(library->pdb) - 1);
}

static bool load(struct library *library, const char *name)
{
	const IMAGE_DOS_HEADER *dos;
	const IMAGE_NT_HEADERS *nt;

	memset(library, 0, sizeof(*library));
	library->base = LoadLibraryA(name);
	if (!library->base)
		return false;
	dos = (const IMAGE_DOS_HEADER *)library->base;
	nt = (const void *)((const BYTE *)dos + dos->e_lfanew);
	library->path_units = GetModuleFileNameW(library->base, library->path, MAX_PATH);
	library->image_bytes = nt->OptionalHeader.SizeOfImage;
	library->timestamp = nt->FileHeader.TimeDateStamp;
	library->checksum = nt->OptionalHeader.CheckSum;
	read_rsds(library, (const BYTE *)dos, nt);
	return true;
}

static int compare(const struct tracer_area *area, const struct library *library,
	const struct tracer_unload *unload)
{
	const struct tracer_module *module =
		(const void *)(uintptr_t)(area->modules + unload->module);
	const wchar_t *path = (const void *)(module + 1);

	if (unload->base != (uintptr_t)library->base ||
		unload->end != unload->base + library->image_bytes)
		return wrong("where it was");
	if (unload->module == TRACER_NO_MODULE)
		return wrong("there is no record");
	if (module->path_units != library->path_units ||
		_wcsnicmp(path, library->path, library->path_units) != 0)
		return wrong("its path");
	if (module->image_bytes != library->image_bytes ||
		module->timestamp != library->timestamp || module->checksum != library->checksum)
		return wrong("its headers");
	if (module->age != library->age || memcmp(module->guid, library->guid, 16) != 0 ||
		module->pdb_bytes != strlen(library->pdb) ||
		memcmp(path + module->path_units, library->pdb, module->pdb_bytes) != 0)
		return wrong("its debug record");
	return 0;
}

/* The unload of this library from the before-th on, when there is one and no other one; or NULL. What
 * it had loaded may have gone with it. */
static const struct tracer_unload *find(
	const struct tracer_area *area, uint64_t before, const struct library *library)
{
	const struct tracer_unload *unloads = (const void *)(uintptr_t)area->unloads;
	const struct tracer_unload *found = NULL;

	for (uint64_t i = before; i < area->unload_count; i++) {
		if (unloads[i].base != (uintptr_t)library->base)
			continue;
		if (found)
			return NULL;
		found = &unloads[i];
	}
	return found;
}

/* Loads it and lets it go; what is noted of it, or NULL after a line that says what is wrong. */
static const struct tracer_unload *once(
	const struct tracer_area *area, struct library *library, const char *name)
{
	uint64_t before = area->unload_count;
	const struct tracer_unload *unload = NULL;

	if (GetModuleHandleA(name) || !load(library, name))
		wrong("it cannot be loaded, or is there already");
	else if (area->unload_count != before)
		wrong("loading it is no unload");
	else if (!FreeLibrary(library->base) || GetModuleHandleA(name))
		wrong("it stays");
	else
		unload = find(area, before, library);
	return unload && !compare(area, library, unload) ? unload : NULL;
}

int main(int argc, char **argv)
{
	const struct tracer_area *area = own_table();
	const struct tracer_unload *first = NULL, *unload = NULL;
	struct library library = {0};

	if (!area) {
		puts("no tracer");
		return 3;
	}
	for (int i = 0; i < TIMES && argc > 1; i++) {
		unload = once(area, &library, argv[1]);
		if (!unload)
			return wrong("its unload");
		if (!first)
			first = unload;
		if (first->module != unload->module)
			return wrong("it is not kept once");
	}
	printf("timestamp %lx, checksum %lx, age %lu, pdb %zu bytes\n", library.timestamp,
		library.checksum, library.age, strlen(library.pdb));
	return unload ? 0 : 9;
}
