/* Notifications of the loader. Each load is counted. An unload is recorded with the name and the
 * identity of its module, because stacks may still contain addresses in the module. The unwinder
 * forgets the steps that it has cached for the module's code. */
#include "snapshot/tracer/hooks.h"
#include "snapshot/tracer/tables.h"
#include "snapshot/tracer/tracer_memory.h"
#include "snapshot/tracer/tracer_nt.h"
#include "snapshot/tracer/unwind.h"

/* LdrRegisterDllNotification and its callback: Microsoft Learn. */
#define NOTE_LOADED 1
#define NOTE_UNLOADED 2

struct note {
	ULONG flags;
	const UNICODE_STRING *path, *name;
	PVOID base;
	ULONG bytes;
};

typedef VOID(CALLBACK *note_fn)(ULONG reason, const struct note *note, PVOID context);
typedef NTSTATUS(NTAPI *register_fn)(ULONG flags, note_fn function, PVOID context, PVOID *cookie);

/* Reads memory that may not be mapped. The system copies the memory, or returns an error. */
static bool read_own(uint64_t addr, void *to, uint32_t len)
{
	SIZE_T got = 0;

	return NtReadVirtualMemory(THIS_PROCESS, (LPCVOID)(ULONG_PTR)addr, to, len, &got) >= 0 &&
	       got == len;
}

static bool read_nothing(uint64_t addr, void *to, uint32_t len)
{
	(void)addr;
	(void)to;
	(void)len;
	return false;
}

/* Returns true if the module's own image is still mapped at its address. */
static bool is_mapped(const struct note *note)
{
	struct pages_kind kind;

	return pages_query((ULONG_PTR)note->base, &kind) && kind.state == MEM_COMMIT &&
	       kind.type == MEM_IMAGE && kind.allocation == (ULONG_PTR)note->base;
}

/* Adds an unload. The loader serializes its notifications. If they overlap anyway and the record is
 * in use, the unload is recorded without a name. */
static void add(const struct note *note)
{
	/* static, because the stacks of the program's threads may be too small */
	static struct module_record record;
	static uint32_t lock;
	struct module_image image = {
		.base = (ULONG_PTR)note->base,
		.bytes = note->bytes,
		.path = note->path ? note->path->Buffer : NULL,
		.read = is_mapped(note) ? read_own : read_nothing,
	};
	const struct tracer_module nameless = {
		.record_bytes = sizeof(nameless), .image_bytes = note->bytes};
	struct memory_patience patience = {0};

	if (image.path)
		image.path_units = note->path->Length / 2;
	while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) {
		if (!memory_wait(&patience)) {
			unloads_add(&hsnap_tracer, image.base, image.base + image.bytes, &nameless);
			return;
		}
	}
	module_record_make(&record, &image);
	unloads_add(&hsnap_tracer, image.base, image.base + image.bytes, &record.module);
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

static VOID CALLBACK on_note(ULONG reason, const struct note *note, PVOID context)
{
	(void)context;
	if (reason == NOTE_LOADED)
		__atomic_fetch_add(&hsnap_tracer.load_count, 1, __ATOMIC_RELEASE);
	if (reason != NOTE_UNLOADED || !note)
		return;
	if (hooks_are_on())
		add(note);
	unwind_forget((ULONG_PTR)note->base, (ULONG_PTR)note->base + note->bytes);
}

void loader_notes_init(void)
{
	HMODULE ntdll = GetModuleHandleW(L"ntdll.dll");
	register_fn ask = (register_fn)(void *)GetProcAddress(ntdll, "LdrRegisterDllNotification");
	PVOID cookie;

	if (ask && ask(0, on_note, NULL, &cookie) >= 0)
		__atomic_fetch_add(&hsnap_tracer.load_count, 1, __ATOMIC_RELEASE);
}
