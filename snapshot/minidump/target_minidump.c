#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/out.h"
#include "core/text.h"
#include "snapshot/minidump/minidump_process.h"
#include "snapshot/live/process.h"

struct file {
	struct os_map map; /* of no bytes when they are the caller's */
	struct minidump dump;
};

static struct minidump *dump_of(struct target *target)
{
	return &((struct file *)target->system)->dump;
}

static int file_read(struct target *target, uint64_t addr, void *bytes, size_t len)
{
	return minidump_copy(dump_of(target), addr, bytes, len);
}

static int file_region(struct target *target, uint64_t addr, struct target_region *region)
{
	return minidump_region(dump_of(target), addr, region);
}

static const unsigned char *file_view(struct target *target, uint64_t addr, size_t *len)
{
	return minidump_view(dump_of(target), addr, len);
}

/* A copy in the snapshot's arena; *rc tells when memory is out. */
static const char *keep(struct snapshot *snapshot, const char *text, int *rc)
{
	const char *copy = text ? arena_text(&snapshot->arena, text, strlen(text)) : NULL;

	if (text && !copy)
		*rc = -ERR_NOMEM;
	return copy;
}

static int file_modules(struct target *target, struct snapshot *snapshot, struct err *err)
{
	const struct minidump *dump = dump_of(target);
	int rc = 0;

	for (size_t i = 0; !rc && i < dump->module_count; i++) {
		struct module *module = snapshot_add_module(snapshot);

		if (!module) {
			rc = -ERR_NOMEM;
			break;
		}
		*module = dump->modules[i];
		module->path = keep(snapshot, module->path, &rc);
		module->pdb = keep(snapshot, module->pdb, &rc);
		module->pdb_guid = keep(snapshot, module->pdb_guid, &rc);
	}
	if (rc)
		return err_set(err, ERR_NOMEM, target->name, NULL);
	minidump_warn(dump, target, snapshot);
	return 0;
}

static int file_suspend(struct target *target, struct err *err)
{
	(void)target;
	(void)err;
	return 0;
}

static void file_resume(struct target *target)
{
	(void)target;
}

static bool file_is_alive(struct target *target)
{
	(void)target;
	return true;
}

static void file_close(struct target *target)
{
	struct file *file = target->system;

	minidump_release(&file->dump);
	if (file->map.bytes)
		os_unmap(&file->map);
	free(file);
	target->system = NULL;
}

static const struct target_ops file_ops = {
	.read = file_read,
	.region = file_region,
	.view = file_view,
	.modules = file_modules,
	.suspend = file_suspend,
	.resume = file_resume,
	.is_alive = file_is_alive,
	.close = file_close,
};

/* The file's name without its folders, as much of its end as fits. */
static void set_name(struct target *target, const char *path)
{
	const char *base = path_base(path);
	size_t len = strlen(base);

	if (len >= sizeof(target->name)) {
		base += len - (sizeof(target->name) - 1);
		while (((unsigned char)*base & 0xc0) == 0x80)
			base++; /* not inside a character */
	}
	snprintf(target->name, sizeof(target->name), "%s", base);
	text_harmless(target->name);
}

static int open_bytes(struct target *target, struct file *file, const void *bytes, size_t len,
	const char *path, struct err *err)
{
	int rc = minidump_read(&file->dump, bytes, len, path, err);

	if (rc)
		return rc;
	*target = (struct target){.ops = &file_ops, .system = file, .is_file = true};
	set_name(target, path);
	minidump_describe(&file->dump, target);
	if (!file->dump.module_count && !target->peb && !target->host_peb) {
		minidump_release(&file->dump);
		return err_set(err, ERR_NO_HEAPS, path, "nor are its modules or threads");
	}
	return 0;
}

int target_open_minidump_bytes(
	struct target *target, const void *bytes, size_t len, const char *name, struct err *err)
{
	struct file *file = calloc(1, sizeof(*file));
	int rc;

	if (!file)
		return err_set(err, ERR_NOMEM, name, NULL);
	rc = open_bytes(target, file, bytes, len, name, err);
	if (rc)
		free(file);
	return rc;
}

/* The memory of a file that somebody cuts short ends wherever it is read. */
static void guard(const struct os_map *map, const char *path)
{
	char text[OS_LINE_BYTES - 20], line[OS_LINE_BYTES];
	struct err err = {0};

	err_set(&err, ERR_READ, path, "it was changed while it was read");
	snprintf(line, sizeof(line), "hsnap: %s\n", err_text(&err, text, sizeof(text)));
	os_guard_map(map, line, out_interrupted);
}

int target_open_minidump(struct target *target, const char *path, struct err *err)
{
	struct file *file = calloc(1, sizeof(*file));
	int rc;

	if (!file)
		return err_set(err, ERR_NOMEM, path, NULL);
	rc = os_map(&file->map, path, err);
	if (!rc) {
		guard(&file->map, path);
		rc = open_bytes(target, file, file->map.bytes, file->map.len, path, err);
	}
	if (!rc)
		return 0;
	if (file->map.bytes)
		os_unmap(&file->map);
	free(file);
	return rc;
}
