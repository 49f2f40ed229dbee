/* Paths that dumps and users speak of: where they lie on this machine, and where else files are looked for. */
#ifndef SYMBOLIZE_FILES_LOCAL_PATH_H
#define SYMBOLIZE_FILES_LOCAL_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/hash.h"
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
struct local_paths *local_paths_new(void);
void local_paths_free(struct local_paths *paths);

/* Each of these fills *here with a full path on this machine and returns what is there. After LOCAL_NONE
 * *here is of no use. */

/* A path that the user typed: any. */
enum local_kind local_typed(struct local_paths *paths, const char *path, struct buf *here);

/* A full path that a stranger wrote into a file. Those that lead to another machine, to a device or to what the
 * system makes up (/proc) are LOCAL_NONE, also where a link does: this machine must not log on to his. */
enum local_kind local_foreign(struct local_paths *paths, const char *path, struct buf *here);

/* Goes on from the folder *here to what a stranger calls rest ("" stays), which is kept as above. */
enum local_kind local_below(struct local_paths *paths, struct buf *here, const char *rest);

/* What is done with a file that may be the one that is looked for: true when it is, and no other need be. */
typedef bool local_use(void *ctx, const char *file);

/* Calls use for the files that may be the one at path, which is not there: Wine's own DLLs may be no copies
 * in the prefix. */
bool local_guess(struct local_paths *paths, const char *path, local_use *use, void *ctx);

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

/*
 * A symbol path, as Microsoft documents _NT_SYMBOL_PATH: elements parted by ";", each a folder, or
 * "srv*STORE*...*SERVER", "symsrv*DLL*STORE*...*SERVER", "cache*STORE". Here it becomes the list of
 * places on disks that are searched, in order, each once. Servers are only named. symbol_path.c.
 */

struct symbol_place {
	const char *path; /* as it was written */
	const char *root; /* the folder here; NULL: there is none, or nobody looked */
	bool is_store; /* files lie at NAME/KEY/NAME; else it is a folder with files in it */
};

struct symbol_path {
	struct symbol_place *places;
	size_t count, cap;
	const char
		*server; /* the first that is named, "srv*" for the one nobody names; NULL: none */
	const char
		*strange; /* the first element that makes no sense and was passed over; or NULL */
	struct arena arena; /* owns the texts */
	struct table known;
};

void symbol_path_init(struct symbol_path *path);
void symbol_path_release(struct symbol_path *path);

/* Takes in the text of a symbol path. */
void symbol_path_parse(struct symbol_path *path, const char *text);

/*
 * A place of the symbol path, looked through for one file.
 *
 * A folder holds NAME, symbols/EXT/NAME and EXT/NAME, EXT being how the image's name ends, or the
 * file's; a store, as symbol servers and their caches are
 * laid out, NAME/KEY/NAME or, with another tier, NA/NAME/KEY/NAME. A folder may be a store too.
 */

struct store_question {
	const char *name; /* of the file, without a path */
	const char *image; /* name or path of the image that it belongs to, or is */
	const char *key; /* of its build; NULL: not known, stores cannot be asked */
	local_use *use;
	/* The file is there in a form that is not read: said with what to do about it. */
	void (*is_packed)(void *ctx, const char *file, const char *remedy);
	void *ctx;
};

/* True when a file was taken. */
bool store_search(struct local_paths *paths, const struct symbol_place *place,
	const struct store_question *question);

#endif
