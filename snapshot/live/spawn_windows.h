/*
 * Starting a process that does not outlive this one before it is let go: whenever this process dies
 * on the way, nothing half started is left behind. Before Windows 10 a process is tied to this one a
 * moment after it was made: ended just there, this one leaves it suspended. Before Windows 8 it cannot
 * be tied at all when this one is in a job itself; it is started all the same.
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
	wchar_t *environment; /* block of CreateProcess; NULL: as this process's */
	const wchar_t *folder; /* current folder; NULL: as this process's */
	/* What the process inherits: these handles, or with a count of 0 all inheritable ones. */
	HANDLE *handles;
	size_t handle_count;
};

/* The process gets the streams of this one, whatever they are, closed ones too. */
void spawn_pass_streams(STARTUPINFOW *startup);

/* False with the last error set; then nothing is open. */
bool spawn_start(struct spawn *spawn, const struct spawn_request *request);

/* Ties a process that was started otherwise: what spawn_start() does where it has to. False: it cannot
 * be. */
bool spawn_tie(struct spawn *spawn);

/* From now on the process lives on its own. */
void spawn_let_go(struct spawn *spawn);

/* Why the system does not start a program, in words. */

/* Missing in older headers of MinGW; the number is that of Microsoft's "System Error Codes". */
#ifndef ERROR_ELEVATION_REQUIRED
#define ERROR_ELEVATION_REQUIRED 740L
#endif

/* Sets err for the last error of CreateProcess, of which place is the program, and returns its code:
 * -ERR_ELEVATION when the program's manifest asks for more rights than this process has, else -ERR_START. */
int spawn_fail(DWORD code, const char *place, struct err *err);

#endif
