/* Where a module's file may be on this machine. local_path_posix.c or local_path_windows.c. */
#ifndef SYMBOLIZE_LOCAL_PATH_H
#define SYMBOLIZE_LOCAL_PATH_H

#include <stdbool.h>

struct path_user {
	/* Looks at a file; true: this is it. is_guess: it was found by name in a place that the
	 * module's path does not speak of. */
	bool (*use)(void *ctx, const char *file, bool is_guess);
	void *ctx;
};

/* Hands on, one after the other, the files that a module's path, as the dump has it, may mean here;
 * only regular files. Returns true as soon as one is used. */
bool local_files(const char *module_path, const struct path_user *user);

#endif
