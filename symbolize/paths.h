/* Where a module's file may be on this machine. paths_posix.c or paths_windows.c. */
#ifndef SYMBOLIZE_PATHS_H
#define SYMBOLIZE_PATHS_H

#include <stdbool.h>

struct path_user {
	/* Looks at a file; true: this is it. is_guess: it was found by name in a place that the
	 * module's path does not speak of. */
	bool (*use)(void *ctx, const char *file, bool is_guess);
	void *ctx;
};

/* Hands on, one after the other, the files that a module's path, as the dump has it, may mean here;
 * only regular files. Returns true as soon as one is used. */
bool module_files(const char *module_path, const struct path_user *user);

#endif
