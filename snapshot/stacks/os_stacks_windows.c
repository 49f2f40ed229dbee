#include "snapshot/live/nt_windows.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "core/base/os_windows.h"
#include "snapshot/live/live_windows.h"
#include "snapshot/stacks/os_stacks.h"

#define FIRST_BUILD 14393 /* Windows 10 1607: the first with this class in its symbols */
#define RECORD_MAX ((size_t)4096)
#define STATUS_REFUSED ((NTSTATUS)0xc0000001)
#define STATUS_DENIED ((NTSTATUS)0xc0000022)

/* What the system's own tools have when they do this; a query may do with less. */
#define SWITCH_RIGHTS                                                                              \
	(PROCESS_QUERY_INFORMATION | PROCESS_SET_INFORMATION | PROCESS_VM_READ |                   \
		PROCESS_VM_WRITE | PROCESS_VM_OPERATION | PROCESS_CREATE_THREAD |                  \
		PROCESS_DUP_HANDLE)
#define QUERY_RIGHTS (PROCESS_QUERY_INFORMATION | PROCESS_VM_READ)

typedef NTSTATUS(NTAPI *heap_query_fn)(void *, int, void *, SIZE_T, SIZE_T *);
typedef NTSTATUS(NTAPI *heap_set_fn)(void *, int, void *, SIZE_T);

struct heap_calls {
	heap_query_fn query;
	heap_set_fn set;
};

/* False on systems that have no such class, and under Wine, whose exports of these names know none. */
static bool calls_find(struct heap_calls *calls)
{
	HMODULE ntdll = GetModuleHandleW(L"ntdll.dll");

	if (windows_build() < FIRST_BUILD)
		return false;
	calls->query = (heap_query_fn)(void *)GetProcAddress(ntdll, "RtlQueryHeapInformation");
	calls->set = (heap_set_fn)(void *)GetProcAddress(ntdll, "RtlSetHeapInformation");
	return calls->query && calls->set;
}

static int not_here(const char *place, struct err *err)
{
	return err_set(err, ERR_NO_STACKS, place,
		"os stacks need Windows 10 1607 or later, and are not Wine's");
}

static int refused(NTSTATUS status, enum err_code code, const char *place, struct err *err)
{
	if (status == STATUS_DENIED)
		return err_set(err, ERR_RIGHTS, place, NULL);
	return err_set(
		err, code, place, "the system's heap stacks: status %08lX", (unsigned long)status);
}

struct answer {
	struct os_stacks *stacks;
	int rc;
};

/* The answer that is being written; the system calls back on the thread that asked. */
static struct answer *current;

/*
 * What this is called with is in no document: a piece, its length and the context, in some order. The
 * context is known by its value; of the other two the smaller one is the length, for no memory lies
 * that low.
 */
static bool sort_arguments(
	const ULONG_PTR *arguments, const struct answer *answer, ULONG_PTR *addr, size_t *len)
{
	ULONG_PTR others[3];
	size_t count = 0;

	for (size_t i = 0; i < 3; i++) {
		if (arguments[i] != (ULONG_PTR)answer)
			others[count++] = arguments[i];
	}
	if (count != 2)
		return false;
	/* A length is a ULONG, the upper half of its register is anything. */
	if ((uint32_t)others[0] <= RECORD_MAX && others[1] > 0xffff) {
		*len = (uint32_t)others[0];
		*addr = others[1];
	} else {
		*len = (uint32_t)others[1];
		*addr = others[0];
	}
	return *len <= RECORD_MAX && *addr > 0xffff;
}

static NTSTATUS NTAPI write_piece(ULONG_PTR first, ULONG_PTR second, ULONG_PTR third)
{
	ULONG_PTR arguments[] = {first, second, third}, addr;
	struct answer *answer = current;
	unsigned char bytes[RECORD_MAX];
	SIZE_T got = 0;
	size_t len;

	if (!answer || answer->rc)
		return STATUS_REFUSED;
	/* Read as memory of a stranger: what is no pointer does no harm. */
	if (!sort_arguments(arguments, answer, &addr, &len) ||
		!ReadProcessMemory(GetCurrentProcess(), (LPCVOID)addr, bytes, len, &got) ||
		got != len)
		answer->rc = -ERR_TARGET;
	else
		answer->rc = os_stacks_put(answer->stacks, bytes, len);
	return answer->rc ? STATUS_REFUSED : 0;
}

/* The newer form first, then the older. */
static NTSTATUS ask(const struct heap_calls *calls, HANDLE process, struct answer *answer)
{
	struct nt_heap_stack_query query = {
		.version = 2, .process = process, .write = (void *)write_piece, .context = answer};
	NTSTATUS status;

	current = answer;
	status = calls->query(NULL, NT_HEAP_STACK_DATABASE, &query, sizeof(query), NULL);
	if (status < 0 && !answer->rc && !os_stacks_is_begun(answer->stacks)) {
		query.version = 1;
		status = calls->query(NULL, NT_HEAP_STACK_DATABASE, &query,
			offsetof(struct nt_heap_stack_query, level), NULL);
	}
	current = NULL;
	return status;
}

/* What to say of an answer, or 0. */
static int judge(struct answer *answer, NTSTATUS status, const char *place, struct err *err)
{
	if (answer->rc)
		return err_set(err, ERR_NO_STACKS, place,
			"the system's answer has a form that is not known");
	if (status < 0)
		return refused(status, ERR_NO_STACKS, place, err);
	if (os_stacks_end(answer->stacks) || !os_stacks_count(answer->stacks))
		return err_set(err, ERR_NO_STACKS, place,
			"the system has none; 'hsnap os on' has it record them from then on");
	return 0;
}

int os_stacks_take(struct target *target, struct os_stacks **stacks, struct err *err)
{
	struct answer answer = {0};
	struct heap_calls calls;
	HANDLE process;
	NTSTATUS status;
	int rc;

	if (target->time_ms)
		return err_set(err, ERR_NO_STACKS, target->name,
			"os stacks are the system's, not in a file");
	if (!calls_find(&calls))
		return not_here(target->name, err);
	rc = process_open(target->pid, QUERY_RIGHTS, SWITCH_RIGHTS, &process, err);
	if (rc)
		return target->ops->is_alive(target) ? rc :
						       err_set(err, ERR_GONE, target->name, NULL);
	answer.stacks = os_stacks_new(target_committed_bytes(target));
	status = ask(&calls, process, &answer);
	rc = judge(&answer, status, target->name, err);
	CloseHandle(process);
	if (rc)
		os_stacks_free(answer.stacks);
	else
		*stacks = answer.stacks;
	return rc;
}

int os_stacks_switch(uint32_t pid, bool on, struct err *err)
{
	struct nt_heap_stack_control control = {
		.version = 1, .flags = on ? NT_HEAP_STACK_ENABLE : NT_HEAP_STACK_DISABLE};
	struct heap_calls calls;
	NTSTATUS status;
	char place[40];
	int rc;

	snprintf(place, sizeof(place), "pid %" PRIu32, pid);
	if (!calls_find(&calls))
		return not_here(place, err);
	rc = process_open(pid, SWITCH_RIGHTS, 0, &control.process, err);
	if (rc)
		return rc;
	status = calls.set(NULL, NT_HEAP_STACK_DATABASE, &control, sizeof(control));
	CloseHandle(control.process);
	return status < 0 ? refused(status, ERR_SYSTEM, place, err) : 0;
}
