#include "core/folder.h"

#include <stdlib.h>
#include <string.h>

#include "core/buf.h"

static int keep(void *ctx, const struct folder_entry *entry)
{
	struct folder_list *list = ctx;
	struct folder_entry *kept;

	if (array_grow((void **)&list->entries, &list->cap, list->count, sizeof(*list->entries)))
		return -ERR_NOMEM;
	kept = &list->entries[list->count];
	*kept = *entry;
	kept->name = arena_text(&list->names, entry->name, strlen(entry->name));
	if (!kept->name)
		return -ERR_NOMEM;
	list->count++;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct folder_entry *x = a, *y = b;

	return strcmp(x->name, y->name);
}

int folder_list_read(const char *path, struct folder_list *list, struct err *err)
{
	struct folder_list made = {0};
	int rc;

	arena_init(&made.names);
	rc = folder_each(path, FOLDER_ENTRIES, keep, &made, err);
	if (rc) {
		folder_list_release(&made);
		return rc == -ERR_NOMEM ? err_set(err, ERR_NOMEM, path, NULL) : rc;
	}
	if (made.count)
		qsort(made.entries, made.count, sizeof(*made.entries), compare);
	*list = made;
	return 0;
}

void folder_list_release(struct folder_list *list)
{
	free(list->entries);
	arena_release(&list->names);
	*list = (struct folder_list){0};
}
