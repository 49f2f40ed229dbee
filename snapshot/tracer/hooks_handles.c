/*
 * Hooks of the functions that open and close handles.
 *
 * A handle is a range of one page at a place that no address of a process can have. The table of
 * ranges does the rest. If another process closes the handle, nothing is recorded, and the range
 * stays until the system uses the number again.
 */
#include "snapshot/tracer/guard.h"
#include "snapshot/tracer/hooks.h"
#include "snapshot/tracer/tables.h"
#include "snapshot/tracer/tracer_nt.h"

/* Parameters are passed as whole registers, because some callers may use the upper bits. */
typedef ULONG_PTR any;
typedef any(WINAPI *close_fn)(HANDLE handle);
typedef any(WINAPI *duplicate_fn)(HANDLE from_process, HANDLE handle, HANDLE to_process,
	PHANDLE copy, any access, any attributes, any options);

static bool are_recorded(void)
{
	return hooks_are_on() && hsnap_tracer.flags & TRACER_FLAG_HANDLES &&
	       guard_now() == GUARD_NONE;
}

/* Sets `*at` to the place of a handle. Returns false for pseudo-handles and invalid handles. */
static bool place_of(HANDLE handle, uint64_t *at)
{
	const uint64_t number = (uintptr_t)handle;

	*at = TRACER_HANDLES + number / TRACER_HANDLE_STEP * TRACER_PAGE;
	return number && number < TRACER_HANDLE_MAX;
}

void handles_add(void *const *handle, enum tracer_handle_type type, const void *caller)
{
	struct tracer_range range = {.kind = RANGE_HANDLE + (uint32_t)type};

	if (!are_recorded() || !handle || !place_of(*handle, &range.start))
		return;
	range.end = range.start + TRACER_PAGE;
	range.allocation = range.start;
	range.stack = record_stack(caller);
	if (hooks_are_on())
		ranges_add(&hsnap_tracer, &range);
}

/* Removes a handle before the system closes it: afterwards another thread may get the same number.
 * Returns false if the handle is not recorded. */
static bool before_close(HANDLE handle, struct ranges_taken *taken)
{
	uint64_t at;

	return hooks_are_on() && hsnap_tracer.flags & TRACER_FLAG_HANDLES &&
	       place_of(handle, &at) &&
	       ranges_detach(&hsnap_tracer, at, at + TRACER_PAGE, 0, taken);
}

static void after_close(any result, const struct ranges_taken *taken)
{
	if (!hooks_are_on() || taken->session != hsnap_tracer.session)
		return;
	if ((NTSTATUS)result >= 0)
		ranges_drop(&hsnap_tracer, taken);
	else
		ranges_restore(&hsnap_tracer, taken);
}

static any WINAPI hook_close(HANDLE handle)
{
	close_fn original = (close_fn)hook_original(HOOK_CLOSE);
	struct ranges_taken taken;
	any result;

	if (!before_close(handle, &taken))
		return original(handle);
	result = original(handle);
	after_close(result, &taken);
	return result;
}

static const WCHAR *const type_names[HANDLE_OTHER] = {
	[HANDLE_EVENT] = L"Event",
	[HANDLE_FILE] = L"File",
	[HANDLE_KEY] = L"Key",
	[HANDLE_MUTANT] = L"Mutant",
	[HANDLE_PROCESS] = L"Process",
	[HANDLE_SECTION] = L"Section",
	[HANDLE_SEMAPHORE] = L"Semaphore",
	[HANDLE_THREAD] = L"Thread",
	[HANDLE_TIMER] = L"Timer",
	[HANDLE_TOKEN] = L"Token",
};

static bool is_name(const UNICODE_STRING *name, const WCHAR *expected)
{
	size_t i = 0;

	while (i < name->Length / sizeof(WCHAR) && expected[i] && name->Buffer[i] == expected[i])
		i++;
	return i == name->Length / sizeof(WCHAR) && !expected[i];
}

/* Returns the type of a handle. The system knows it for each handle, also for one that is older than
 * the tracer or comes from another process. */
static enum tracer_handle_type type_of(HANDLE handle)
{
	union {
		PUBLIC_OBJECT_TYPE_INFORMATION info;
		unsigned char bytes[512]; /* with room for the name */
	} answer;

	if (NtQueryObject(handle, ObjectTypeInformation, &answer, sizeof(answer), NULL) < 0)
		return HANDLE_OTHER;
	for (int type = 0; type < HANDLE_OTHER; type++) {
		if (is_name(&answer.info.TypeName, type_names[type]))
			return (enum tracer_handle_type)type;
	}
	return HANDLE_OTHER;
}

/* A handle may be copied into this process or out of it. With DUPLICATE_CLOSE_SOURCE, the call
 * closes the source even if it fails. */
static any WINAPI hook_duplicate(HANDLE from_process, HANDLE handle, HANDLE to_process,
	PHANDLE copy, any access, any attributes, any options)
{
	duplicate_fn original = (duplicate_fn)hook_original(HOOK_DUPLICATE);
	bool is_recorded = are_recorded();
	bool is_to_here = is_recorded && copy && hooks_is_this_process(to_process);
	struct ranges_taken taken;
	bool is_closed = is_recorded && options & DUPLICATE_CLOSE_SOURCE &&
			 hooks_is_this_process(from_process) && before_close(handle, &taken);
	any result = original(from_process, handle, to_process, copy, access, attributes, options);

	if (is_closed)
		after_close(0, &taken);
	if (is_to_here && (NTSTATUS)result >= 0)
		handles_add(copy, type_of(*copy), __builtin_return_address(0));
	return result;
}

/* Parameters and arguments of functions, by their number. */
#define PARAMETERS_3 any a1, any a2, any a3
#define PARAMETERS_4 PARAMETERS_3, any a4
#define PARAMETERS_5 PARAMETERS_4, any a5
#define PARAMETERS_6 PARAMETERS_5, any a6
#define PARAMETERS_7 PARAMETERS_6, any a7
#define PARAMETERS_9 PARAMETERS_7, any a8, any a9
#define PARAMETERS_11 PARAMETERS_9, any a10, any a11
#define PARAMETERS_14 PARAMETERS_11, any a12, any a13, any a14
#define ARGUMENTS_3 a1, a2, a3
#define ARGUMENTS_4 ARGUMENTS_3, a4
#define ARGUMENTS_5 ARGUMENTS_4, a5
#define ARGUMENTS_6 ARGUMENTS_5, a6
#define ARGUMENTS_7 ARGUMENTS_6, a7
#define ARGUMENTS_9 ARGUMENTS_7, a8, a9
#define ARGUMENTS_11 ARGUMENTS_9, a10, a11
#define ARGUMENTS_14 ARGUMENTS_11, a12, a13, a14

#define DEFINE_HOOK(id, name, count, at, type)                                                     \
	static any WINAPI hook_##id(PARAMETERS_##count)                                            \
	{                                                                                          \
		any result = ((any(WINAPI *)(PARAMETERS_##count))hook_original(HOOK_##id))(        \
			ARGUMENTS_##count);                                                        \
                                                                                                   \
		if ((NTSTATUS)result >= 0)                                                         \
			handles_add((void *const *)a##at, type, __builtin_return_address(0));      \
		return result;                                                                     \
	}
TRACER_HANDLE_CALLS(DEFINE_HOOK)

void hooks_handles_init(void)
{
	struct tracer_hook *hooks = hsnap_tracer.hooks;

	hooks[HOOK_CLOSE].hook = (uintptr_t)hook_close;
	hooks[HOOK_DUPLICATE].hook = (uintptr_t)hook_duplicate;
#define SET_HOOK(id, name, count, at, type) hooks[HOOK_##id].hook = (uintptr_t)hook_##id;
	TRACER_HANDLE_CALLS(SET_HOOK)
}
