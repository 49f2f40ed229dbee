/*
 * What is in a folder.
 *
 * Names are UTF-8 (on POSIX: the bytes that they are), without "." and "..". A link is told as one: what
 * it leads to is never looked at. What a folder holds may change while it is read and after: an entry
 * tells what was. folder_posix.c or folder_windows.c.
 */
#ifndef CORE_FOLDER_H
#define CORE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/err.h"

/* What paths are made of here. */
struct folder_rules {
	const char *separators; /* behind each of these characters a new part of a path begins */
	const char *dropped; /* of these characters those that end a name are left out of it */
	bool has_devices; /* some names are devices in every folder, and a colon has a meaning */
};
extern const struct folder_rules folder_rules;

/* Whether two characters are one in names here, as letters in any case are on Windows. */
bool folder_same_letter(uint32_t a, uint32_t b);

struct folder_entry {
	const char *name; /* the name alone */
	bool is_file; /* a regular one; no folder, no link, no device or pipe */
	bool is_link; /* symbolic, or of the kinds that Windows has */
	uint64_t size_bytes; /* of a file */
};

enum folder_want {
	FOLDER_NAMES, /* whether an entry is a file, and its size, need not be told: that costs a call each */
	FOLDER_ENTRIES,
};

/* Hands each entry on, in no order; its name lives until entry returns. path "" is the current folder.
 * Returns 0 when there are no more; -ERR_OPEN when the folder is not there or may not be read; -ERR_READ
 * when it cannot be read to its end; -ERR_NOMEM; or what entry returned when that is not 0: then it stops, and err is as it was. */
int folder_each(const char *path, enum folder_want want,
	int (*entry)(void *ctx, const struct folder_entry *entry), void *ctx, struct err *err);

/* All of a folder, sorted by the bytes of the names. */
struct folder_list {
	struct folder_entry *entries;
	size_t count;
	size_t cap;
	struct arena names;
};

/* Fills *list, whose storage is the caller's: 0, -ERR_OPEN, -ERR_READ or -ERR_NOMEM. */
int folder_list_read(const char *path, struct folder_list *list, struct err *err);
void folder_list_release(struct folder_list *list);

/* Removes a file, of a link the link, never a folder. One that is gone already is no trouble. 0,
 * -ERR_REMOVE or -ERR_NOMEM. Under Wine, which shows links of the system below it as what they lead to,
 * such a link stays, with what it leads to: -ERR_REMOVE. */
int folder_remove(const char *path, struct err *err);

#endif
