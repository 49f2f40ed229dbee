/* A segment heap of one's own, where Windows makes one. */
#ifndef SNAPSHOT_DOCTOR_DOCTOR_SEGMENT_WINDOWS_H
#define SNAPSHOT_DOCTOR_DOCTOR_SEGMENT_WINDOWS_H

#include <windows.h>

/* The heap, or NULL: this system makes none on demand. */
HANDLE doctor_segment_heap(void);

#endif
