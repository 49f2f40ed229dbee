#include <windows.h>

#include "snapshot/doctor/doctor_windows.h"

/* The code of a function of this program, by the table that x64 programs have for unwinding. */
struct doctor_range doctor_code_of(const void *function)
{
	DWORD64 base = 0;
	const RUNTIME_FUNCTION *entry =
		RtlLookupFunctionEntry((DWORD64)(ULONG_PTR)function, &base, NULL);

	if (!entry)
		return (struct doctor_range){0};
	return (struct doctor_range){base + entry->BeginAddress, base + entry->EndAddress};
}
