/*
 * The modules of a dump while it is read: lines of the module table, and notes about builds that
 * come later. module_list_finish() joins them.
 */
#ifndef CORE_MODULE_LIST_H
#define CORE_MODULE_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/kv.h"
#include "core/model.h"

#define MODULE_TEXT_MAX 4096 /* bytes of a path, or of another text about a module */
#define MODULE_LIST_MAX ((size_t)16 << 20) /* bytes of one list, many times what a process has */

struct module_list {
	struct module *items; /* after module_list_finish(): sorted by base */
	size_t count, cap;
	struct module *notes; /* base and identity */
	size_t note_count, note_cap;
	size_t bytes; /* of all that is in it */
	struct arena *arena; /* the caller's; texts are copied into it */
};

void module_list_init(struct module_list *list, struct arena *arena);
void module_list_release(struct module_list *list);

/* A line of the module table: 0, -ERR_NOMEM, or -ERR_BAD_LINE when it is more than is kept. */
int module_list_add(
	struct module_list *list, uint64_t base, uint64_t size_bytes, const char *path, size_t len);

/* A note of kind "module": 0, -ERR_BAD_LINE or -ERR_NOMEM. */
int module_list_note(struct module_list *list, const struct kv *pairs);

/* Sorts the modules, in a total order, and gives them the identities that the notes tell. */
void module_list_finish(struct module_list *list);

#endif
