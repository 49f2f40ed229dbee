/*
 * Starting a process that ends together with this process until it is untied. So if this process
 * dies, no half-started process remains.
 *
 * Before Windows 10, the new process is tied to this process shortly after its creation. If this
 * process is terminated in between, the new process stays suspended. Before Windows 8, the new
 * process cannot be tied if this process is itself in a job. The new process is then started
 * untied.
 */
#ifndef SNAPSHOT_LIVE_SPAWN_WINDOWS_H
#define SNAPSHOT_LIVE_SPAWN_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>

#include <windows.h>

#include "core/base/err.h"

struct spawn {
	PROCESS_INFORMATION info; /* the caller owns both handles */
	HANDLE job; /* NULL: the process is not tied, or not any more */
};

struct spawn_request {
	const wchar_t *image; /* NULL: the command line determines the image */
	wchar_t *command;
	DWORD flags; /* flags of CreateProcess */
	STARTUPINFOW startup;
	/* environment block for CreateProcess; NULL: this process's environment */
	wchar_t *environment;
	const wchar_t *folder; /* current folder; NULL: this process's folder */
	/* Handles to inherit. If the count is 0, all inheritable handles are inherited. */
	HANDLE *handles;
	size_t handle_count;
};

/* Gives the new process the streams of this process, including closed ones. */
void spawn_pass_streams(STARTUPINFOW *startup);

/* Starts a process. If this fails, sets the last error and returns false. Nothing is open then. */
bool spawn_start(struct spawn *spawn, const struct spawn_request *request);

/* Ties a process that was not started by spawn_start(), in the same way as spawn_start() does.
 * Returns false if the process cannot be tied. */
bool spawn_tie(struct spawn *spawn);

/* Unties the process, so that it no longer ends with this one. */
void spawn_let_go(struct spawn *spawn);

/* Errors when starting a program. */

/* Missing in older MinGW headers. The value is from Microsoft's "System Error Codes". */
#ifndef ERROR_ELEVATION_REQUIRED
#define ERROR_ELEVATION_REQUIRED 740L
#endif

/* Converts the last error of CreateProcess to `*err`. `place` is the program. Returns
 * -ERR_ELEVATION if the program's manifest requires more rights than this process has; otherwise
 * -ERR_START. */
int spawn_fail(DWORD code, const char *place, struct err *err);

#endif
