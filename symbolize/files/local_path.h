/* Paths in dumps and options: the files that they denote on this machine, and the symbol path. */
#ifndef SYMBOLIZE_FILES_LOCAL_PATH_H
#define SYMBOLIZE_FILES_LOCAL_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"

/*
 * Translates paths that come from a dump, an image or the user to paths on this machine.
 * Implemented in local_path_posix.c and local_path_windows.c.
 *
 * On both systems, a path may be a Windows path, with either kind of slash. On POSIX, drives are
 * those of the Wine prefix, and a name that does not exist as spelled is searched for ignoring
 * case. Only regular, nonempty files count as files: no pipe or device is ever opened.
 */

enum local_kind { LOCAL_NONE, LOCAL_FILE, LOCAL_FOLDER };

/* Cache of folder contents, as they were when first read. */
struct local_paths;
struct local_paths *local_paths_new(void);
void local_paths_free(struct local_paths *paths);

/* Each of these functions sets *here to a full path on this machine and returns its kind. If the
 * result is LOCAL_NONE, *here is undefined. */

/* Finds a path that the user typed. The path may lead anywhere. */
enum local_kind local_typed(struct local_paths *paths, const char *path, struct buf *here);

/* Finds a full path that comes from an untrusted file. Returns LOCAL_NONE if the path leads, even
 * through links, to another machine, a device or virtual files (/proc): this machine must not log
 * on to a foreign server. */
enum local_kind local_foreign(struct local_paths *paths, const char *path, struct buf *here);

/* Follows the relative path `rest` from the folder `*here`. `rest` is untrusted, and has the same
 * restrictions as the path of local_foreign(). If `rest` is "", `*here` does not change. */
enum local_kind local_below(struct local_paths *paths, struct buf *here, const char *rest);

/* Callback for a candidate file. Returns true to accept it and end the search. */
typedef bool local_use(void *ctx, const char *file);

/* Calls `use` for files that may replace the missing file at `path`. For example, Wine's DLLs may
 * be missing from the prefix but installed with Wine. */
bool local_guess(struct local_paths *paths, const char *path, local_use *use, void *ctx);

/* Returns true if this system is not Windows and `path` is one of Windows' own files. A different
 * build of such a file is normal. */
bool local_is_other_system(const char *path);

/* Returns true if `path` leads to another machine or to a device. */
bool local_is_remote(const char *path);

/* Returns true if `path` is a full path to or through /net, /proc and similar folders of this
 * system. */
bool local_leads_away(const char *path);

/* Returns `path` without a prefix that only allows long paths ("\\?\" or "\??\"). */
static inline const char *local_plain(const char *path)
{
	bool is_long = !strncmp(path, "\\\\?\\", 4) || !strncmp(path, "\\??\\", 4);

	return is_long && path[4] && path[5] == ':' ? path + 4 : path;
}

/* Returns true if symbol servers can be queried, which only DbgHelp can do. */
bool local_can_query_servers(void);

/*
 * The symbol path, with the syntax of Microsoft's _NT_SYMBOL_PATH: elements separated by ";". An
 * element is a folder, "srv*STORE*...*SERVER", "symsrv*DLL*STORE*...*SERVER" or "cache*STORE". The
 * path is parsed into a list of places on disk, in order and without duplicates. Servers are only
 * recorded. Implemented in symbol_path.c.
 */

struct symbol_place {
	const char *path; /* as written by the user */
	const char *root; /* the folder on this machine; NULL: missing, or not checked yet */
	bool is_store; /* contains files at NAME/KEY/NAME; otherwise a plain folder of files */
};

struct symbol_path {
	struct symbol_place *places;
	size_t count, cap;
	const char *server; /* first server ("srv*" for the default server), or NULL */
	const char *strange; /* first invalid element, or NULL; invalid elements are ignored */
	struct arena arena; /* owns the strings */
	struct table known;
};

void symbol_path_init(struct symbol_path *path);
void symbol_path_release(struct symbol_path *path);

void symbol_path_parse(struct symbol_path *path, const char *text);

/*
 * Searches for one file in a place of the symbol path.
 *
 * In a folder, the file may be at NAME, symbols/EXT/NAME or EXT/NAME, where EXT is the extension of
 * the image or of the file. In a store, which has the layout of symbol servers and their caches, it
 * may be at NAME/KEY/NAME or, with another tier, NA/NAME/KEY/NAME. A folder is also searched like a
 * store.
 */

struct store_question {
	const char *name; /* name of the file, without a path */
	const char *image; /* name or path of the file's image */
	const char *key; /* key of the file's build; NULL: unknown, so stores cannot be searched */
	local_use *use;
	/* Called for a file in a form that cannot be read, with a remedy for the user. */
	void (*is_packed)(void *ctx, const char *file, const char *remedy);
	void *ctx;
};

/* Returns true if a file was accepted. */
bool store_search(struct local_paths *paths, const struct symbol_place *place,
	const struct store_question *question);

#endif
