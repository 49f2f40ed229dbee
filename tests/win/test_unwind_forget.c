/*
 * A DLL goes and another one comes to the same address, with other frames: what is known must be
 * forgotten. That it would be wrong otherwise is seen here too, and that a check finds it.
 *
 * The DLLs are made here: one section, one function, its unwind data. Speaks TAP.
 */
#include <string.h>

#include "snapshot/tracer/unwind.h"
#include "tests/win/unwind_truth.h"

#define BASE 0x1d0000000u
#define IMAGE_BYTES 0x2000
#define FILE_ALIGNMENT 512
#define CODE_RVA 0x1000
#define INFO_OFFSET 64 /* in the section */
#define FUNCTION_OFFSET 96
#define RETURN_OFFSET 11 /* of the code's one call */
#define FRAMES 3 /* looked at: look(), the DLL, who called it */
/* Code that is known, and not who called. */
#define WORD ((uint64_t)BASE + CODE_RVA + RETURN_OFFSET)

static const struct unwind_skip none = {0, 0};
static uint64_t ours[FRAMES_MAX], theirs[FRAMES_MAX];

/*
 * sub rsp, N; mov [rsp + N - 16], rdx; call rcx; add rsp, N; ret: taken for a frame that is smaller by
 * 16, its return address is rdx.
 */
static void put_code(uint8_t *section, uint8_t frame_bytes)
{
	const uint8_t code[] = {0x48, 0x83, 0xec, frame_bytes, 0x48, 0x89, 0x54, 0x24,
		(uint8_t)(frame_bytes - 16), 0xff, 0xd1, 0x48, 0x83, 0xc4, frame_bytes, 0xc3};
	/* version 1, a prologue of 4 bytes, 1 code: at 4, UWOP_ALLOC_SMALL, (N - 8) / 8 */
	const uint8_t info[] = {1, 4, 1, 0, 4, (uint8_t)((frame_bytes - 8) / 8 << 4 | 2), 0, 0};
	const RUNTIME_FUNCTION function = {
		CODE_RVA, CODE_RVA + sizeof(code), CODE_RVA + INFO_OFFSET};

	memcpy(section, code, sizeof(code));
	memcpy(section + INFO_OFFSET, info, sizeof(info));
	memcpy(section + FUNCTION_OFFSET, &function, sizeof(function));
}

static void put_headers(uint8_t *file)
{
	IMAGE_DOS_HEADER *dos = (IMAGE_DOS_HEADER *)file;
	IMAGE_NT_HEADERS64 *nt = (IMAGE_NT_HEADERS64 *)(file + sizeof(*dos));
	IMAGE_OPTIONAL_HEADER64 *optional = &nt->OptionalHeader;
	IMAGE_SECTION_HEADER *section;

	dos->e_magic = IMAGE_DOS_SIGNATURE;
	dos->e_lfanew = sizeof(*dos);
	nt->Signature = IMAGE_NT_SIGNATURE;
	nt->FileHeader =
		(IMAGE_FILE_HEADER){IMAGE_FILE_MACHINE_AMD64, 1, 0, 0, 0, sizeof(*optional),
			IMAGE_FILE_DLL | IMAGE_FILE_EXECUTABLE_IMAGE | IMAGE_FILE_RELOCS_STRIPPED};
	optional->Magic = IMAGE_NT_OPTIONAL_HDR64_MAGIC;
	optional->ImageBase = BASE;
	optional->SectionAlignment = CODE_RVA;
	optional->FileAlignment = FILE_ALIGNMENT;
	optional->MajorOperatingSystemVersion = optional->MajorSubsystemVersion = 6;
	optional->SizeOfImage = IMAGE_BYTES;
	optional->SizeOfHeaders = FILE_ALIGNMENT;
	optional->Subsystem = IMAGE_SUBSYSTEM_WINDOWS_GUI;
	optional->NumberOfRvaAndSizes = IMAGE_NUMBEROF_DIRECTORY_ENTRIES;
	optional->DataDirectory[IMAGE_DIRECTORY_ENTRY_EXCEPTION] =
		(IMAGE_DATA_DIRECTORY){CODE_RVA + FUNCTION_OFFSET, sizeof(RUNTIME_FUNCTION)};
	section = IMAGE_FIRST_SECTION(nt);
	memcpy(section->Name, ".text", 5);
	section->Misc.VirtualSize = section->SizeOfRawData = FILE_ALIGNMENT;
	section->VirtualAddress = CODE_RVA;
	section->PointerToRawData = FILE_ALIGNMENT;
	section->Characteristics = IMAGE_SCN_CNT_CODE | IMAGE_SCN_MEM_EXECUTE | IMAGE_SCN_MEM_READ;
}

/* Makes a DLL whose function has a frame of so many bytes, and loads it. */
static HMODULE load(uint8_t frame_bytes)
{
	static uint8_t file[2 * FILE_ALIGNMENT];
	wchar_t folder[MAX_PATH], path[MAX_PATH];
	HMODULE module;
	HANDLE out;
	DWORD put;

	memset(file, 0, sizeof(file));
	put_headers(file);
	put_code(file + FILE_ALIGNMENT, frame_bytes);
	GetTempPathW(MAX_PATH, folder);
	GetTempFileNameW(folder, L"dll", 0, path);
	out = CreateFileW(path, GENERIC_WRITE, 0, NULL, CREATE_ALWAYS, 0, NULL);
	WriteFile(out, file, sizeof(file), &put, NULL);
	CloseHandle(out);
	module = LoadLibraryExW(path, NULL, DONT_RESOLVE_DLL_REFERENCES);
	DeleteFileW(path); /* Wine takes it away at once, Windows leaves it while it is loaded */
	return module;
}

static uint32_t count, true_count;

static NOINLINE void look(void)
{
	count = unwind_stack(ours, FRAMES, &none);
	true_count = true_stack(theirs, FRAMES);
}

typedef void (*made_fn)(void (*called)(void), uint64_t word);

/* Looks from under the DLL's function: whether our frames are the true ones. */
static NOINLINE bool is_right(uint64_t word)
{
	((made_fn)(uintptr_t)(BASE + CODE_RVA))(look, word);
	KEEP_FRAME();
	return count == FRAMES && true_count == FRAMES && ours[1] == theirs[1] &&
	       ours[2] == theirs[2] && ours[1] == BASE + CODE_RVA + RETURN_OFFSET;
}

/* How many of so many looks are wrong, with the word in the DLL's frame for a return address. */
static unsigned wrong_of(unsigned looks)
{
	unsigned wrong = 0;

	for (unsigned i = 0; i < looks; i++)
		wrong += !is_right(WORD) && ours[2] == WORD;
	return wrong;
}

/* Whether all of so many looks are right. */
static bool are_right(unsigned looks)
{
	unsigned right = 0;

	for (unsigned i = 0; i < looks; i++)
		right += is_right(WORD);
	return right == looks;
}

static bool is_at_base(HMODULE module)
{
	return (uintptr_t)module == BASE;
}

/* Whether walks from here ask the system's unwinder. */
static NOINLINE bool asks(void)
{
	uint64_t frames[FRAMES_MAX];
	LONG before = unwind_calls;

	unwind_stack(frames, FRAMES_MAX, &none);
	return unwind_calls != before;
}

static bool forgets_this_alone(void)
{
	bool asked[4];

	for (volatile int i = 0; i < 4; i++) { /* not unrolled: from one place */
		if (i == 2)
			unwind_forget(BASE, BASE + IMAGE_BYTES);
		if (i == 3)
			unwind_forget((uint64_t)asks, (uint64_t)asks + 100);
		asked[i] = asks();
	}
	return asked[0] && !asked[1] && !asked[2] && asked[3];
}

int main(void)
{
	HMODULE module = load(0x28);

	ok(is_at_base(module), "a DLL is loaded where it wants to be");
	if (!is_at_base(module))
		return ok_end();
	/* So often, that no check comes soon. */
	ok(are_right(2500), "stacks through it are right");
	FreeLibrary(module);
	module = load(0x38);
	ok(is_at_base(module), "another one takes its place");
	ok(wrong_of(100) > 50, "what was learnt of the first one is wrong now");
	unwind_forget(BASE, BASE + IMAGE_BYTES);
	ok(are_right(100), "after forgetting, stacks are right");
	FreeLibrary(module);
	module = load(0x48);
	unwind_forget(BASE, BASE + CODE_RVA + RETURN_OFFSET);
	unwind_forget(BASE + CODE_RVA + RETURN_OFFSET + 1, BASE + IMAGE_BYTES);
	ok(!is_right(WORD), "forgetting all but that address does not help");
	unwind_forget(BASE + CODE_RVA + RETURN_OFFSET, BASE + CODE_RVA + RETURN_OFFSET + 1);
	ok(are_right(100), "forgetting that address does");
	FreeLibrary(module);
	count_unwind_calls();
	ok(forgets_this_alone(), "what lies elsewhere is kept");

	module = load(0x28);
	unwind_forget(BASE, BASE + IMAGE_BYTES);
	ok(are_right(100), "stacks are right again");
	FreeLibrary(module);
	module = load(0x38);
	ok(unwind_mismatches == 0 && !is_right(WORD), "without forgetting they are not");
	wrong_of(4096);
	ok(unwind_mismatches == 1, "a check finds that");
	ok(are_right(100), "and all is right again");
	FreeLibrary(module);
	return ok_end();
}
