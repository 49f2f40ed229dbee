/*
 * Starting a process that does not outlive this one until it is let go: if this process dies
 * meanwhile, nothing half started is left. Before Windows 10 a process is tied to this one a moment
 * after its creation: if this process is terminated at that moment, the new one stays suspended.
 * Before Windows 8 it cannot be tied at all if this process is in a job itself; it is started
 * nevertheless.
 */
#ifndef SNAPSHOT_LIVE_SPAWN_WINDOWS_H
#define SNAPSHOT_LIVE_SPAWN_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>

#include <windows.h>

#include "core/base/err.h"

struct spawn {
	PROCESS_INFORMATION info; /* both handles are the caller's */
	HANDLE job; /* NULL: let go */
};

struct spawn_request {
	const wchar_t *image; /* or NULL: found by the command line */
	wchar_t *command;
	DWORD flags; /* of CreateProcess */
	STARTUPINFOW startup;
	wchar_t *environment; /* block of CreateProcess; NULL: this process's */
	const wchar_t *folder; /* current folder; NULL: this process's */
	/* Inherited handles; with a count of 0, all inheritable handles. */
	HANDLE *handles;
	size_t handle_count;
};

/* Gives the process the streams of this one, even closed ones. */
void spawn_pass_streams(STARTUPINFOW *startup);

/* Starts a process. Returns false with the last error set; then nothing is open. */
bool spawn_start(struct spawn *spawn, const struct spawn_request *request);

/* Ties a process that was started otherwise, as spawn_start() does where necessary. Returns false
 * if it cannot be tied. */
bool spawn_tie(struct spawn *spawn);

/* Unties the process, which then lives on its own. */
void spawn_let_go(struct spawn *spawn);

/* Errors of starting a program. */

/* Missing in older headers of MinGW; the number is that of Microsoft's "System Error Codes". */
#ifndef ERROR_ELEVATION_REQUIRED
#define ERROR_ELEVATION_REQUIRED 740L
#endif

/* Sets err for the last error of CreateProcess; place is the program. Returns -ERR_ELEVATION if the
 * program's manifest requires more rights than this process has, otherwise -ERR_START. */
int spawn_fail(DWORD code, const char *place, struct err *err);

#endif
