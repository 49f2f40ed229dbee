/*
 * Registry values of an image under "Image File Execution Options": the image's global flags, and
 * the size of the stack database. One of the flags ("ust") makes Windows record the stack of every
 * allocation in that database.
 *
 * The registry has a view for 64-bit programs and a view for 32-bit programs; the key may be shared
 * by both. ifeo.c plans the new values, ifeo_windows.c reads and writes them. A change is planned
 * for both views before either is written.
 */
#ifndef SNAPSHOT_IFEO_IFEO_H
#define SNAPSHOT_IFEO_IFEO_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/memory.h"

#define IFEO_KEY                                                                                   \
	"HKLM\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion\\Image File Execution Options"
#define IFEO_UST 0x1000u
#define IFEO_NAME_MAX 255
#define IFEO_TEXT_BYTES 160
#define IFEO_DB_MB_MAX 4095

enum ifeo_view {
	IFEO_64,
	IFEO_32,
	IFEO_VIEWS,
};

enum ifeo_kind {
	IFEO_NONE, /* the value does not exist */
	IFEO_DWORD,
	IFEO_TEXT, /* text that is short enough to be stored */
	IFEO_OTHER, /* of another type, or too long */
};

struct ifeo_value {
	enum ifeo_kind kind;
	uint32_t number; /* value of IFEO_DWORD */
	char text[IFEO_TEXT_BYTES]; /* value of IFEO_TEXT, in UTF-8 */
};

enum ifeo_name {
	IFEO_FLAG,
	IFEO_DB,
	IFEO_NAMES,
};

/* An image's key in one view. */
struct ifeo_image {
	bool exists;
	bool has_others; /* the key has other values or subkeys */
	struct ifeo_value values[IFEO_NAMES];
};

struct ifeo_change {
	bool on;
	uint32_t db_mb; /* size of the database in MB; 0: unchanged */
};

/* Returns 0, or -ERR_IMAGE_NAME unless `name` is the plain file name of a program. */
int ifeo_check_name(const char *name, struct err *err);

bool ifeo_has_ust(const struct ifeo_image *image);

/* Plans the change of an image's key in one view. `name` is the image's name in messages. Returns
 * 0, or -ERR_NOT_CHANGED if the key contains a value that must not be changed. */
int ifeo_plan(struct ifeo_image *image, const char *name, const struct ifeo_change *change,
	struct err *err);

bool ifeo_is_same(const struct ifeo_image *a, const struct ifeo_image *b);

/* Adds a text such as "GlobalFlag 00001010 htc ust, database of 8 MB". */
void ifeo_describe(struct buf *text, const struct ifeo_image *image);

/* The following functions of ifeo_windows.c access the registry of this machine. Errors are
 * -ERR_ADMIN (no right to change the registry) and -ERR_SYSTEM. */

int ifeo_read(enum ifeo_view view, const char *name, struct ifeo_image *image, struct err *err);

/* Makes the change in both views. Also returns -ERR_BUSY if other instances of hsnap keep changing
 * flags. If an error occurs in the second view, the first view has already been changed; the error
 * reports this. */
int ifeo_apply(const char *name, const struct ifeo_change *change, struct err *err);

/* Adds a sorted list, such as "a.exe, b.exe", of all images for which ust is on in any view. Adds
 * nothing if ust is on for no image. Returns 0 or -ERR_SYSTEM. */
int ifeo_all_ust(struct buf *text, struct err *err);

#endif
