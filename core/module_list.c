#include "core/module_list.h"

#include <stdlib.h>
#include <string.h>

#include "core/buf.h"

void module_list_init(struct module_list *list, struct arena *arena)
{
	*list = (struct module_list){.arena = arena};
}

void module_list_release(struct module_list *list)
{
	free(list->items);
	free(list->notes);
	module_list_init(list, NULL);
}

/* A copy of a text, or NULL: *rc tells why. */
static const char *keep(struct module_list *list, const char *text, size_t len, int *rc)
{
	const char *copy = NULL;

	list->bytes += len;
	if (len > MODULE_TEXT_MAX || list->bytes > MODULE_LIST_MAX)
		*rc = -ERR_BAD_LINE;
	else if (!(copy = arena_text(list->arena, text, len)))
		*rc = -ERR_NOMEM;
	return copy;
}

int module_list_add(
	struct module_list *list, uint64_t base, uint64_t size_bytes, const char *path, size_t len)
{
	int rc = 0;
	const char *copy = keep(list, path, len, &rc);

	list->bytes += sizeof(*list->items);
	if (!rc)
		rc = array_grow(
			(void **)&list->items, &list->cap, list->count, sizeof(*list->items));
	if (!rc)
		list->items[list->count++] =
			(struct module){.base = base, .size_bytes = size_bytes, .path = copy};
	return rc;
}

/* The value of key, or NULL when it is not there or cannot be kept. */
static const char *keep_value(
	struct module_list *list, const struct kv *pairs, const char *key, int *rc)
{
	const char *value = kv_get(pairs, key);

	return value ? keep(list, value, strlen(value), rc) : NULL;
}

int module_list_note(struct module_list *list, const struct kv *pairs)
{
	struct module said = {.has_identity = true};
	int rc = list->bytes > MODULE_LIST_MAX ? -ERR_BAD_LINE :
						 kv_get_number(pairs, "base", 16, &said.base);

	list->bytes += sizeof(said);
	if (!rc)
		rc = kv_get_number(pairs, "at", 16, &said.unloaded_at);
	if (!rc)
		rc = kv_get_u32(pairs, "timestamp", 16, &said.timestamp);
	if (!rc)
		rc = kv_get_u32(pairs, "checksum", 16, &said.checksum);
	if (!rc)
		rc = kv_get_u32(pairs, "age", 16, &said.pdb_age);
	said.pdb = keep_value(list, pairs, "pdb", &rc);
	said.pdb_guid = keep_value(list, pairs, "guid", &rc);
	if (!rc)
		rc = array_grow((void **)&list->notes, &list->note_cap, list->note_count,
			sizeof(*list->notes));
	if (!rc)
		list->notes[list->note_count++] = said;
	return rc;
}

/* A total order: what qsort does with equal items differs from one C library to the next. */
static int entries_by_base(const void *a, const void *b)
{
	const struct module *x = a, *y = b;

	if (x->base != y->base)
		return x->base < y->base ? -1 : 1;
	if (x->size_bytes != y->size_bytes)
		return x->size_bytes < y->size_bytes ? -1 : 1;
	if (x->timestamp != y->timestamp)
		return x->timestamp < y->timestamp ? -1 : 1;
	return x->path && y->path ? strcmp(x->path, y->path) : 0;
}

void module_list_finish(struct module_list *list)
{
	size_t at = 0;

	if (list->count)
		qsort(list->items, list->count, sizeof(*list->items), entries_by_base);
	if (list->note_count)
		qsort(list->notes, list->note_count, sizeof(*list->notes), entries_by_base);
	for (size_t i = 0; i < list->count; i++) {
		struct module *module = &list->items[i];
		struct module plain = *module;

		while (at < list->note_count && list->notes[at].base < module->base)
			at++;
		if (at == list->note_count)
			break;
		if (list->notes[at].base != module->base)
			continue;
		*module = list->notes[at];
		module->size_bytes = plain.size_bytes;
		module->path = plain.path;
	}
}
