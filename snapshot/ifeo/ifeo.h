/*
 * What the registry holds for an image under "Image File Execution Options": its global flags, of
 * which one has Windows record the stack of every allocation ("ust"), and the size of the database
 * for these stacks.
 *
 * The registry has a view for 64-bit programs and one for 32-bit ones, which may be one and the same.
 * This is what is decided; ifeo_windows.c reads and writes. A change is made in all views or, where
 * one fails, taken back in those made before.
 */
#ifndef SNAPSHOT_IFEO_IFEO_H
#define SNAPSHOT_IFEO_IFEO_H

#include <stdbool.h>
#include <stdint.h>

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
	IFEO_NONE, /* there is no such value */
	IFEO_DWORD,
	IFEO_TEXT, /* short enough to be kept */
	IFEO_OTHER, /* of another type, or too long */
};

struct ifeo_value {
	enum ifeo_kind kind;
	uint32_t number; /* IFEO_DWORD */
	char text[IFEO_TEXT_BYTES]; /* IFEO_TEXT, UTF-8 */
};

enum ifeo_name {
	IFEO_FLAG,
	IFEO_DB,
	IFEO_MARK, /* how to put back what cannot be seen from the others */
	IFEO_NAMES,
};

/* As the registry calls them. */
extern const char *const ifeo_names[IFEO_NAMES];

/* An image's key in one view. */
struct ifeo_image {
	bool exists;
	bool has_others; /* further values, or subkeys */
	struct ifeo_value values[IFEO_NAMES];
};

struct ifeo_calls {
	/* Keeps other hsnaps from changing anything until unlock(held): 0 or an error. */
	int (*lock)(void *ctx, const char *name, void **held, struct err *err);
	void (*unlock)(void *ctx, void *held);
	/* Each returns 0 or an error. */
	int (*read)(void *ctx, enum ifeo_view view, const char *name, struct ifeo_image *image,
		struct err *err);
	/* Makes the key; IFEO_NONE deletes the value. */
	int (*write)(void *ctx, enum ifeo_view view, const char *name, enum ifeo_name which,
		const struct ifeo_value *value, struct err *err);
	int (*make)(void *ctx, enum ifeo_view view, const char *name, struct err *err);
	/* Deletes the key when nothing is in it. */
	int (*remove)(void *ctx, enum ifeo_view view, const char *name, struct err *err);
	/* What both views show is one key. */
	bool (*is_one)(void *ctx);
	void *ctx;
};

struct ifeo_change {
	bool on;
	uint32_t db_mb; /* 0: left as it is */
};

/* 0, or -ERR_IMAGE_NAME unless name is a file name alone of a program. */
int ifeo_check_name(const char *name, struct err *err);

/* The number that a flag value stands for: text is hexadecimal with 0x, as gflags writes it; without,
 * it stands for a number only if it is the same one in hexadecimal and decimal. False: it stands for
 * none. */
bool ifeo_number(const struct ifeo_value *value, uint32_t *number);

/* Whether value stands for no number, but has ust in one of the ways to read it. */
bool ifeo_may_have_ust(const struct ifeo_value *value);

bool ifeo_has_ust(const struct ifeo_image *image);

/* What a key is to become. 0, or -ERR_SYSTEM: it holds something that is better left alone, or it may
 * have what is to go. */
int ifeo_plan(const struct ifeo_image *before, const struct ifeo_change *change,
	struct ifeo_image *after, const char *name, struct err *err);

/* Makes the change in all views, under the lock. On an error all are as before, or the error says which one is not. */
int ifeo_apply(const struct ifeo_calls *calls, const char *name, const struct ifeo_change *change,
	struct err *err);

/* "ust htc (00001010)", and "+ 8 MB" of a database. 0 or -ERR_NOMEM. */
int ifeo_describe(struct buf *text, const struct ifeo_image *image);

#endif
