#include "snapshot/doctor/doctor_windows.h"

/* A 32-bit program has no such table. */
struct doctor_range doctor_code_of(const void *function)
{
	(void)function;
	return (struct doctor_range){0};
}
