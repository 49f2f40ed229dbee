/* Paths in dumps and options: their places on this machine, and the symbol path. */
#ifndef SYMBOLIZE_FILES_LOCAL_PATH_H
#define SYMBOLIZE_FILES_LOCAL_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/hash.h"
#include "core/base/memory.h"

/*
 * Translation of paths from a dump, an image or the user to this machine. Defined in
 * local_path_posix.c and local_path_windows.c.
 *
 * Paths may be Windows paths on both systems, with either slash. On POSIX, drives are those of the
 * Wine prefix, and names that do not exist as spelled are searched for without regard to case. Only
 * regular, non-empty files count as files: no pipe or device is ever opened.
 */

enum local_kind { LOCAL_NONE, LOCAL_FILE, LOCAL_FOLDER };

/* Cache of folder contents, as they were when first read. */
struct local_paths;
struct local_paths *local_paths_new(void);
void local_paths_free(struct local_paths *paths);

/* Each function sets *here to a full path on this machine and returns its kind. After LOCAL_NONE
 * *here is undefined. */

/* Finds a path that the user typed; it may lead anywhere. */
enum local_kind local_typed(struct local_paths *paths, const char *path, struct buf *here);

/* Finds a full path from an untrusted file. Returns LOCAL_NONE for paths that lead to another
 * machine, to a device or to virtual files (/proc), even through links: this machine must not log
 * on to a foreign server. */
enum local_kind local_foreign(struct local_paths *paths, const char *path, struct buf *here);

/* Continues from the folder *here along the untrusted relative path rest; "" stays. Restricted as
 * above. */
enum local_kind local_below(struct local_paths *paths, struct buf *here, const char *rest);

/* Callback for a candidate file. Returns true to accept it and end the search. */
typedef bool local_use(void *ctx, const char *file);

/* Calls use for other files that may be the missing one at path: Wine's own DLLs need not be copied
 * into the prefix. */
bool local_guess(struct local_paths *paths, const char *path, local_use *use, void *ctx);

/* Returns true if path is one of the system's own files but this is another system, so a different
 * build is normal. */
bool local_is_other_system(const char *path);

/* Returns true if path leads to another machine or to a device. */
bool local_is_remote(const char *path);

/* Returns true if path is a full path to or through /net, /proc and the like on this system. */
bool local_leads_away(const char *path);

/* Returns path without a prefix that only allows long paths ("\\?\", "\??\"). */
const char *local_plain(const char *path);

/* Returns true if symbol servers can be queried (by DbgHelp). */
bool local_asks_servers(void);

/*
 * Symbol path, like Microsoft's documented _NT_SYMBOL_PATH: elements separated by ";", each a
 * folder, or "srv*STORE*...*SERVER", "symsrv*DLL*STORE*...*SERVER", "cache*STORE". It becomes a
 * list of places on disk, in order, each once. Servers are only recorded. Defined in symbol_path.c.
 */

struct symbol_place {
	const char *path; /* as written by the user */
	const char *root; /* folder here; NULL: missing, or not checked yet */
	bool is_store; /* files are at NAME/KEY/NAME; otherwise a folder of files */
};

struct symbol_path {
	struct symbol_place *places;
	size_t count, cap;
	const char *server; /* first server, "srv*" for the default one; or NULL */
	const char *strange; /* first invalid element, which is ignored; or NULL */
	struct arena arena; /* owns the texts */
	struct table known;
};

void symbol_path_init(struct symbol_path *path);
void symbol_path_release(struct symbol_path *path);

void symbol_path_parse(struct symbol_path *path, const char *text);

/*
 * Search for one file in a place of the symbol path.
 *
 * A folder may contain NAME, symbols/EXT/NAME and EXT/NAME, where EXT is the extension of the image
 * or of the file. A store, laid out like symbol servers and their caches, has NAME/KEY/NAME or,
 * with another tier, NA/NAME/KEY/NAME. A folder may be a store too.
 */

struct store_question {
	const char *name; /* of the file, without a path */
	const char *image; /* name or path of its image */
	const char *key; /* of its build; NULL: unknown, so stores cannot be searched */
	local_use *use;
	/* Called for a file in an unreadable form, with a remedy for the user. */
	void (*is_packed)(void *ctx, const char *file, const char *remedy);
	void *ctx;
};

/* Returns true if a file was accepted. */
bool store_search(struct local_paths *paths, const struct symbol_place *place,
	const struct store_question *question);

#endif
