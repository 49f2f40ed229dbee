/* Paths that dumps and users speak of, and where they lie on this machine. */
#ifndef SYMBOLIZE_FILES_LOCAL_PATH_H
#define SYMBOLIZE_FILES_LOCAL_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/memory.h"

/*
 * Where a path that a dump, an image or the user speaks of lies on this machine. local_path_posix.c or
 * local_path_windows.c.
 *
 * Paths may be Windows' on either side, with either slash. Elsewhere than on Windows drives are those
 * of the Wine prefix, and what is not there as it is spelled is looked for without regard to case.
 * Only regular files with something in them are files here: no pipe or device is ever opened.
 */

enum local_kind { LOCAL_NONE, LOCAL_FILE, LOCAL_FOLDER };

/* Remembers what it learned of folders, as they were when it looked. */
struct local_paths;
struct local_paths *local_paths_new(void); /* NULL: out of memory */
void local_paths_free(struct local_paths *paths);

/*
 * Each of these fills *here with a full path on this machine and returns what is there, an enum
 * local_kind, or -ERR_NOMEM. After LOCAL_NONE *here is of no use.
 */

/* A path that the user typed: any. */
int local_typed(struct local_paths *paths, const char *path, struct buf *here);

/* A full path that a stranger wrote into a file. Those that lead to another machine, to a device or to what the
 * system makes up (/proc) are LOCAL_NONE, also where a link does: this machine must not log on to his. */
int local_foreign(struct local_paths *paths, const char *path, struct buf *here);

/* Goes on from the folder *here to what a stranger calls rest ("" stays), which is kept as above. */
int local_below(struct local_paths *paths, struct buf *here, const char *rest);

/* A file that may be the one at path, which is not there: Wine's own DLLs may be no copies in the
 * prefix. *next is 0 the first time; LOCAL_NONE: there are no more. */
int local_guess(struct local_paths *paths, const char *path, size_t *next, struct buf *here);

/* True when path is one of the system's own files, and the system here is another: that those differ
 * is nothing to wonder about. */
bool local_is_other_system(const char *path);

/* True for a path that leads to another machine or to a device. */
bool local_is_remote(const char *path);

/* What of that the system here knows: true for a full path to or through /net, /proc and the like. */
bool local_leads_away(const char *path);

/* Behind the prefix that says nothing but that a path may be long ("\\?\", "\??\"). */
const char *local_plain(const char *path);

/* True when there is someone who asks symbol servers (DbgHelp). */
bool local_asks_servers(void);

/* What folders hold, to find names without regard to the case of ASCII letters. A folder is read when
 * first asked about. */

/* So many names are kept in all, for about 100 bytes each. What did not fit is not found. */
#define FOLDER_NAMES_MAX 1000000

struct folder_names;
struct folder_names *folder_names_new(size_t names_max); /* NULL: out of memory */
void folder_names_free(struct folder_names *names);

/* Returns 1 and *spelling: what name is called in the folder, of several the first in order of bytes;
 * 0: there is none; or -ERR_NOMEM. spelling lives as long as names. */
int folder_names_find(
	struct folder_names *names, const char *folder, const char *name, const char **spelling);

/* True when folder was read before, wholly, and holds no such name in any case. Nothing is read. */
bool folder_names_lack(struct folder_names *names, const char *folder, const char *name);

#endif
