/* A minidump file as a target: its memory, threads and modules. The file is mapped, and a fault
 * while it is read ends the program with a message. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "core/io/out.h"
#include "snapshot/live/process.h"
#include "snapshot/minidump/minidump.h"
#include "snapshot/minidump/minidump_layout.h"
#include "snapshot/target/nt_process.h"

struct minidump_file {
	struct os_map map; /* empty if the caller owns the bytes */
	struct minidump dump;
};

static struct minidump *dump_of(struct target *target)
{
	return &((struct minidump_file *)target->system)->dump;
}

static int file_read(struct target *target, uint64_t addr, void *bytes, size_t len)
{
	return minidump_copy(dump_of(target), addr, bytes, len);
}

/* Finds a region that is committed and in the file. For hsnap, no other memory exists. */
static int file_region(struct target *target, uint64_t addr, struct target_region *region)
{
	const struct minidump *dump = dump_of(target);
	size_t i = spans_find(&dump->runs, addr);
	const struct span *run, *info, *module;
	struct target_region found;

	if (i == dump->runs.count)
		return -ERR_READ;
	run = &dump->runs.list[i];
	addr = addr > run->addr ? addr : run->addr;
	found = (struct target_region){.addr = run->addr, .end = run->end, .access = TARGET_READ};
	info = spans_narrow(&dump->infos, addr, &found);
	module = spans_narrow(&dump->module_spans, addr, &found);
	if (info)
		found.access = info->access;
	else if (module)
		found.access |= TARGET_EXECUTE;
	found.is_image = module || (info && info->is_image);
	found.is_read_only_view = info && info->is_read_only_view;
	*region = found;
	return 0;
}

/* Lists the threads. If a 64-bit program wrote the file of a 32-bit process, the contexts belong to
 * the 64-bit half, which has a different stack. */
static int file_threads(struct target *target,
	int (*each)(void *ctx, const struct target_thread *thread), void *ctx, struct err *err)
{
	struct minidump *dump = dump_of(target);
	struct minidump_list threads = minidump_list(dump, MD_THREADS, MD_THREAD_BYTES);
	int rc = 0;

	(void)err;
	for (size_t i = 0; !rc && i < threads.count; i++) {
		const unsigned char *entry = threads.entries + i * MD_THREAD_BYTES;
		uint32_t bytes = bytes_u32(entry + MD_THREAD_CONTEXT),
			 rva = bytes_u32(entry + MD_THREAD_CONTEXT + 4);
		struct target_thread thread = {
			.teb = minidump_addr(dump, bytes_u64(entry + MD_THREAD_TEB))};

		if (rva <= dump->len && bytes <= dump->len - rva && bytes >= MD_CONTEXT_MIN_BYTES) {
			thread.context = dump->bytes + rva;
			thread.context_bytes = bytes;
			if (dump->bits == target->bits)
				thread.sp = target->bits == 64 ?
						    bytes_u64(thread.context + MD_CONTEXT_RSP) :
						    bytes_u32(thread.context + MD_CONTEXT_ESP);
		}
		if (dump->bits != target->bits)
			thread.teb = nt_guest_teb(target, thread.teb);
		rc = each(ctx, &thread);
	}
	return rc;
}

static int file_space(struct target *target, struct target_memory **list, size_t *count)
{
	return minidump_space(dump_of(target), list, count);
}

static int file_tebs(struct target *target, struct target_teb **list, size_t *count)
{
	return minidump_tebs(dump_of(target), target, list, count);
}

static void file_count(struct target *target, struct balance *balance, struct arena *arena)
{
	minidump_count(dump_of(target), balance, arena);
}

static const unsigned char *file_view(struct target *target, uint64_t addr, size_t *len)
{
	return minidump_view(dump_of(target), addr, len);
}

static const char *copy_text(struct snapshot *snapshot, const char *text)
{
	return text ? arena_text(&snapshot->arena, text, strlen(text)) : NULL;
}

static int file_modules(struct target *target, struct snapshot *snapshot, struct err *err)
{
	struct minidump *dump = dump_of(target);

	(void)err;
	for (size_t i = 0; i < dump->module_count; i++) {
		struct module *module = snapshot_add_module(snapshot);

		*module = dump->modules[i];
		module->path = copy_text(snapshot, module->path);
		module->pdb = copy_text(snapshot, module->pdb);
		module->pdb_guid = copy_text(snapshot, module->pdb_guid);
	}
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
	struct minidump_file *file = target->system;

	minidump_release(&file->dump);
	if (file->map.bytes)
		os_unmap(&file->map);
	free(file);
	target->system = NULL;
}

static const struct target_ops file_ops = {
	.read = file_read,
	.region = file_region,
	.threads = file_threads,
	.space = file_space,
	.tebs = file_tebs,
	.count = file_count,
	.view = file_view,
	.modules = file_modules,
	.suspend = file_suspend,
	.resume = file_resume,
	.is_alive = file_is_alive,
	.close = file_close,
};

/* Sets the name to as much of the end of the file's base name as fits. */
static void set_name(struct target *target, const char *path)
{
	const char *base = module_path_base(path);
	size_t len = strlen(base);

	if (len >= sizeof(target->name)) {
		base += len - (sizeof(target->name) - 1);
		while (((unsigned char)*base & 0xc0) == 0x80)
			base++; /* do not begin inside a character */
	}
	snprintf(target->name, sizeof(target->name), "%s", base);
	text_harmless(target->name);
}

/* Ends hsnap with a message if the file is truncated while it is mapped and read. */
static void guard(const struct os_map *map, const char *path)
{
	char text[OS_LINE_BYTES - 20], line[OS_LINE_BYTES];
	struct err err = {0};

	err_set(&err, ERR_CHANGED, path, NULL);
	snprintf(line, sizeof(line), "hsnap: %s\n", err_text(&err, text, sizeof(text)));
	os_guard_map(map, line, out_interrupted);
}

int target_open_minidump_bytes(
	struct target *target, const void *bytes, size_t len, const char *path, struct err *err)
{
	struct minidump_file *file = xcalloc(1, sizeof(*file));
	int rc = 0;

	*target = (struct target){.ops = &file_ops, .system = file, .is_file = true};
	if (!bytes) {
		rc = os_map(&file->map, path, err);
		bytes = file->map.bytes;
		len = file->map.len;
	}
	if (file->map.bytes)
		guard(&file->map, path);
	if (!rc)
		rc = minidump_read(&file->dump, bytes, len, path, err);
	if (!rc) {
		set_name(target, path);
		rc = minidump_describe(&file->dump, target);
		if (rc)
			err_set(err, ERR_NOMEM, path, NULL);
		else if (!file->dump.module_count && !target->peb && !target->host_peb)
			rc = err_set(err, ERR_NO_HEAPS, path,
				"its modules and threads are missing, too");
	}
	if (rc)
		file_close(target);
	return rc;
}

int target_open_minidump(struct target *target, const char *path, struct err *err)
{
	return target_open_minidump_bytes(target, NULL, 0, path, err);
}
