/*
 * The hooks of thread creation and thread exit. The kernel allocates and frees the stacks of threads
 * itself, without calling a hooked function, so the hooks read a stack's place out of the thread's
 * TEB. Threads that the kernel creates, such as those of worker factories, are not seen.
 *
 * The TEB of a running thread may vanish at any time. A new thread is therefore created suspended.
 *
 * Sources: for the functions, the attribute list and its attribute, their published prototypes
 * (phnt, ntpsapi.h); for the TEB, Microsoft's public symbols of ntdll.
 */
#include "snapshot/tracer/hooks.h"
#include "snapshot/tracer/tables.h"
#include "snapshot/tracer/tracer_nt.h"

/* Parameters are passed as whole registers, as in hooks_virtual.c. */
typedef ULONG_PTR any;
typedef any(WINAPI *create_fn)(PHANDLE, any access, any, HANDLE process, any, any, any flags, any,
	any, any, const void *list);
typedef any(WINAPI *terminate_fn)(HANDLE, any status);

#define TEB_STACK (sizeof(void *) == 8 ? 0x1478u : 0xe0cu) /* _TEB.DeallocationStack */
#define ATTRIBUTE_TEB 0x10004u /* PS_ATTRIBUTE_TEB_ADDRESS */

struct attribute_list { /* PS_ATTRIBUTE_LIST */
	SIZE_T bytes;
	struct {
		ULONG_PTR what;
		SIZE_T bytes;
		const void *const *value;
		PSIZE_T returned;
	} items[];
};

static bool is_success(any result)
{
	return (NTSTATUS)result >= 0;
}

/* Returns the TEB that a successful call has stored for its caller, or NULL. Kernelbase requests
 * it. */
static const char *teb_of_list(const struct attribute_list *list)
{
	size_t count;

	if (!list || !pages_can_read(list, sizeof(*list)) || list->bytes < sizeof(*list) ||
		!pages_can_read(list, list->bytes))
		return NULL;
	count = (list->bytes - sizeof(*list)) / sizeof(*list->items);
	for (size_t i = 0; i < count; i++) {
		if (list->items[i].what == ATTRIBUTE_TEB &&
			pages_can_read(list->items[i].value, sizeof(void *)))
			return *list->items[i].value;
	}
	return NULL;
}

/* Finds the stack of a suspended thread, and the lowest address in it that is committed. Returns
 * false if the TEB has no stack yet, as that of a 32-bit thread on 64-bit Windows may. */
static bool find_stack(const char *teb, struct pages *stack, uint64_t *committed)
{
	const NT_TIB *tib = (const NT_TIB *)teb;
	struct pages_kind kind;

	if (!teb || !pages_can_read(teb, TEB_STACK + sizeof(void *)) || tib->Self != tib)
		return false;
	stack->from = *(const ULONG_PTR *)(teb + TEB_STACK);
	stack->to = (ULONG_PTR)tib->StackBase;
	if (!stack->from || (stack->from | stack->to) % TRACER_PAGE)
		return false;
	for (*committed = stack->from; *committed < stack->to; *committed = kind.pages.to) {
		if (!pages_query(*committed, &kind) || kind.allocation != stack->from ||
			kind.type != MEM_PRIVATE)
			return false;
		if (kind.state == MEM_COMMIT)
			return true;
	}
	return false;
}

static void record_thread(HANDLE thread, const struct attribute_list *list, const void *caller)
{
	const char *teb = teb_of_list(list);
	struct nt_thread_info info = {0};
	struct tracer_range range = {0};
	uint64_t committed;
	struct pages pages;

	if (!teb && NtQueryInformationThread(
			    thread, NT_THREAD_BASIC_INFORMATION, &info, sizeof(info), NULL) >= 0)
		teb = info.teb;
	if (!find_stack(teb, &pages, &committed))
		return;
	range.stack = record_stack(caller);
	if (!hooks_are_on())
		return;
	range.start = range.allocation = pages.from;
	range.end = committed;
	range.kind = RANGE_RESERVED;
	if (range.start < range.end)
		ranges_add(&hsnap_tracer, &range);
	range.start = committed;
	range.end = pages.to;
	range.kind = RANGE_STACK;
	range.reserve_stack = range.stack;
	ranges_add(&hsnap_tracer, &range);
}

static any WINAPI hook_create_thread(PHANDLE thread, any access, any attributes, HANDLE process,
	any start, any argument, any flags, any zero_bits, any commit, any reserve,
	const void *list)
{
	bool is_seen = hooks_record(process);
	any suspend = 0, result;

	if (is_seen && access & (THREAD_SUSPEND_RESUME | GENERIC_ALL))
		suspend = NT_CREATE_THREAD_SUSPENDED & ~flags;
	result = ((create_fn)hook_original(HOOK_CREATE_THREAD))(thread, access, attributes, process,
		start, argument, flags | suspend, zero_bits, commit, reserve, list);
	if (!is_success(result))
		return result;
	if (is_seen && (flags | suspend) & NT_CREATE_THREAD_SUSPENDED && hooks_are_on())
		record_thread(*thread, list, __builtin_return_address(0));
	handles_add(thread, HANDLE_THREAD, __builtin_return_address(0));
	if (suspend)
		NtResumeThread(*thread, NULL);
	return result;
}

/* Reads the start of a thread's stack. Returns false if the thread belongs to another process. The
 * rights of the handle do not matter. Another thread may be exiting, so its TEB is read by the
 * system. */
static bool read_stack(HANDLE thread, ULONG_PTR *stack, bool *is_self)
{
	struct nt_thread_info info = {0};
	HANDLE same;
	bool is_ours;

	*is_self = true;
	*stack = *(const ULONG_PTR *)((const char *)NtCurrentTeb() + TEB_STACK);
	if (!thread || thread == THIS_THREAD)
		return true;
	if (NtDuplicateObject(THIS_PROCESS, thread, THIS_PROCESS, &same,
		    THREAD_QUERY_LIMITED_INFORMATION, 0, 0) < 0)
		return false;
	is_ours = NtQueryInformationThread(
			  same, NT_THREAD_BASIC_INFORMATION, &info, sizeof(info), NULL) >= 0 &&
		  info.process_id == GetCurrentProcessId();
	NtClose(same);
	*is_self = is_ours && info.thread_id == GetCurrentThreadId();
	return is_ours &&
	       (*is_self || NtReadVirtualMemory(THIS_PROCESS, (const char *)info.teb + TEB_STACK,
				    stack, sizeof(*stack), NULL) >= 0);
}

/* Removes a thread's stack before the thread ends, because the system may then use the memory
 * again. The call does not return if the thread ends itself. Returns true if `taken` must be
 * dropped or restored after the call. */
static bool remove_stack(HANDLE thread, struct ranges_taken *taken)
{
	struct ranges_extent extent;
	ULONG_PTR stack;
	bool is_self;

	if (!hooks_are_on() || !read_stack(thread, &stack, &is_self) ||
		!ranges_find(&hsnap_tracer, stack, &extent) || extent.base != stack)
		return false;
	if (!is_self)
		return ranges_detach(&hsnap_tracer, extent.base, extent.end, 0, taken);
	ranges_forget(&hsnap_tracer, extent.base, extent.end);
	return false;
}

static any WINAPI hook_terminate_thread(HANDLE thread, any status)
{
	struct ranges_taken taken;
	bool is_taken = remove_stack(thread, &taken);
	any result = ((terminate_fn)hook_original(HOOK_TERMINATE_THREAD))(thread, status);

	if (!is_taken || !hooks_are_on() || taken.session != hsnap_tracer.session)
		return result;
	if (is_success(result))
		ranges_drop(&hsnap_tracer, &taken);
	else
		ranges_restore(&hsnap_tracer, &taken);
	return result;
}

void hooks_thread_init(void)
{
	hsnap_tracer.hooks[HOOK_CREATE_THREAD].hook = (uintptr_t)hook_create_thread;
	hsnap_tracer.hooks[HOOK_TERMINATE_THREAD].hook = (uintptr_t)hook_terminate_thread;
}
