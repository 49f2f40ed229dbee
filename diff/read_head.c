/* Reads the process and time of a dump from its head. The dump is scanned up to its first block. */
#include <string.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/dump/dump_head.h"
#include "diff/printed/printed.h"
#include "diff/read/dump_sums.h"
#include "diff/read/read_dump.h"
#include "diff/read_files.h"

struct head_reader {
	struct sum_reader reader;
	enum file_kind kind;
};

/* Refuses a printed comparison, which may also contain lines of a dump. */
static int look_at_line(void *ctx, const char *text, size_t len)
{
	struct head_reader *head = ctx;

	if (head->kind == FILE_UNKNOWN)
		head->kind = file_kind_of(text, len);
	return head->kind == FILE_COMPARISON ? -ERR_NOT_DUMP : 0;
}

/* Collects modules. They reveal the image if no note contains it. */
static int add_module(void *ctx, uint64_t base, uint64_t size_bytes, const char *path, size_t len)
{
	struct head_reader *head = ctx;

	return module_list_add(&head->reader.modules, base, size_bytes, path, len);
}

static int handle_note(void *ctx, const char *kind, const struct kv *pairs)
{
	struct head_reader *head = ctx;
	const struct dump_sums *sums = head->reader.sums;
	int rc = 0;

	if (!strcmp(kind, "dump") || !strcmp(kind, "process") || !strcmp(kind, "umdh"))
		rc = sum_reader_note(&head->reader, kind, pairs);
	if (!rc && sums->id.time_ms && sums->id.pid && sums->id.start_ms && sums->id.image)
		rc = DUMP_HEAD_ENOUGH;
	return rc;
}

int sums_read_head(struct dump_sums *sums, const char *path, struct source *source, struct err *err)
{
	struct err local;
	struct head_reader head = {.reader = {.sums = sums, .err = err ? err : &local}};
	const struct dump_sink sink = {
		.ctx = &head, .line = look_at_line, .module = add_module, .note = handle_note};
	int rc;

	module_list_init(&head.reader.modules, &sums->module_list.texts);
	sums->id.path = arena_text(&sums->arena, path, strlen(path));
	rc = dump_head_scan(source, &sink, err);
	module_list_finish(&head.reader.modules);
	sums->module_list.items = head.reader.modules.items;
	sums->module_list.count = head.reader.modules.count;
	head.reader.modules.items = NULL;
	module_list_release(&head.reader.modules);
	sums_copy_banner(sums);
	return rc;
}
