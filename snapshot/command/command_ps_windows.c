/* hsnap ps: processes with their size, threads, handles, start time, heaps and source of stacks. */
#include <stdlib.h>
#include <string.h>

#include "core/base/opt.h"
#include "core/base/os.h"
#include "core/base/terminal.h"
#include "core/base/text.h"
#include "snapshot/capture/capture.h"
#include "snapshot/command/command.h"
#include "snapshot/heap/heap.h"
#include "snapshot/heap/wine_layout.h"
#include "snapshot/ifeo/ifeo.h"
#include "snapshot/live/process.h"
#include "snapshot/live/process_ref.h"
#include "snapshot/target/nt_process.h"

static const struct opt options[] = {
	HELP_OPTION,
	{0},
};

static const char usage[] =
	"usage: hsnap ps [PATTERN]\n"
	"\n"
	"List processes, largest first: their private bytes, threads and handles, when they\n"
	"started, and where their stacks would come from. PATTERN is a part of the name, or with * "
	"and ? the\nwhole "
	"name; case is ignored.\n";

/* Returns the number of heaps that a PEB lists, or -1 if the list cannot be read. */
static int64_t look_at_peb(
	struct target *target, struct memory *memory, uint64_t peb, unsigned bits)
{
	struct nt_process process;
	int64_t count;

	if (nt_process_read(&process, memory, peb, bits, NULL))
		return -1;
	count = target->is_wine ? wine_heap_count(target, process.heaps[0], bits) :
				  (int64_t)process.heap_count;
	nt_process_release(&process);
	return count;
}

/* Returns the number of heaps. A 32-bit process on 64-bit Windows has two sets of heaps: its own,
 * and those of its 64-bit half. */
static int64_t look_at_heaps(struct target *target)
{
	struct memory memory;
	int64_t count, host_count;

	if (memory_init(&memory, target))
		return -1;
	count = look_at_peb(target, &memory, target->peb, target->bits);
	if (target->host_peb && count >= 0) {
		host_count = look_at_peb(target, &memory, target->host_peb, 64);
		count += host_count > 0 ? host_count : 0;
	}
	memory_release(&memory);
	return count;
}

/* Returns the source of stacks that a snapshot would use, or NULL if it is not known. */
static const char *look_at_stacks(struct target *target)
{
	struct capture_source source = {0};
	struct snapshot modules;
	const char *name;
	int rc;

	snapshot_init(&modules);
	rc = target->ops->modules(target, &modules, NULL);
	if (!rc)
		capture_source_find(target, &modules, STACKS_AUTO, &source, NULL);
	snapshot_release(&modules);
	if (rc)
		return NULL;
	name = capture_source_name(&source);
	if (source.is_attached)
		return "attached";
	return source.is_detached && !strcmp(name, "none") ? "detached" : name;
}

/* Reads data that the system reports even for processes that hsnap may not open. */
static void look_from_outside(struct ps_row *row)
{
	struct process_seen *seen;
	size_t count;
	struct err err;

	if (process_ref_find_pid(row->pid, &seen, &count, &err))
		memory_out();
	if (count) {
		row->private_bytes = seen->private_bytes;
		row->start_ms = seen->start_ms;
	}
	free(seen);
}

/* Returns a figure, or -1 if it is unknown. */
static int64_t figure(const struct balance *balance, enum balance_figure of)
{
	return balance_knows(balance, of) ? (int64_t)balance->figures[of] : -1;
}

static void look_at_objects(struct ps_row *row, struct target *target)
{
	struct balance balance = {0};
	struct arena types;

	arena_init(&types);
	target->ops->count(target, &balance, &types);
	row->thread_count = figure(&balance, BALANCE_THREADS);
	row->handle_count = figure(&balance, BALANCE_HANDLES);
	row->gdi_count = figure(&balance, BALANCE_GDI);
	arena_release(&types);
}

/* Fills a row. Returns 0, or the reason why the process could not be opened. */
static int look(struct ps_row *row, struct arena *arena)
{
	struct target target;
	char *command_line;
	int rc;

	row->heap_count = row->thread_count = row->handle_count = row->gdi_count = -1;
	row->private_bytes = KEPT_UNKNOWN_BYTES;
	look_from_outside(row);
	rc = target_open_live(&target, row->pid, NULL);
	if (rc == -ERR_64_BITS)
		row->bits = 64;
	if (rc)
		return rc;
	row->bits = target.bits;
	row->heap_count = look_at_heaps(&target);
	row->stacks = look_at_stacks(&target);
	look_at_objects(row, &target);
	command_line = nt_command_line(&target);
	if (command_line)
		row->command_line = arena_text(arena, command_line, strlen(command_line));
	free(command_line);
	target.ops->close(&target);
	return 0;
}

/* Reminds the user of images with ust turned on: recording costs time and memory in each process of
 * such an image. */
static void remind(void)
{
	struct buf names;

	buf_init(&names);
	if (!ifeo_all_ust(&names, NULL) && names.len)
		fprintf(stderr, "hsnap: ust is on for %s; 'hsnap ust off IMAGE' ends it\n",
			text_harmless(names.data));
	buf_release(&names);
}

/* Sorts processes by size, largest first. Unknown sizes are last. */
static int by_size(const void *a, const void *b)
{
	const struct ps_row *left = a, *right = b;
	/* 0 if the size is not known */
	const uint64_t x = left->private_bytes + 1, y = right->private_bytes + 1;

	if (x != y)
		return x < y ? 1 : -1;
	return left->pid < right->pid ? -1 : left->pid > right->pid;
}

static int list_processes(const char *pattern, struct err *err)
{
	struct process_list list;
	struct arena arena; /* memory for command lines */
	struct ps_row *rows;
	size_t count = 0, closed_count = 0, other_count = 0, ended_count = 0;
	int rc = process_list_capture(&list, err);

	if (rc)
		return rc;
	arena_init(&arena);
	rows = xcalloc(list.count, sizeof(*rows));
	for (size_t i = 0; i < list.count; i++) {
		if (pattern && !command_name_is_like(list.items[i].name, pattern))
			continue;
		/* A process that is just starting may not have a name yet. */
		rows[count] = (struct ps_row){.pid = list.items[i].pid,
			.name = *list.items[i].name ? list.items[i].name : "?"};
		rc = look(&rows[count], &arena);
		if (rc == -ERR_NOMEM)
			memory_out();
		ended_count += rc == -ERR_NO_PROCESS;
		other_count += rc == -ERR_64_BITS;
		closed_count += rc && rc != -ERR_NO_PROCESS && rc != -ERR_64_BITS;
		count += rc != -ERR_NO_PROCESS;
	}
	rc = count ? 0 : err_set(err, ERR_NO_PROCESS, pattern ? pattern : "ps", NULL);
	if (!rc) {
		qsort(rows, count, sizeof(*rows), by_size);
		ps_print(stdout, rows, count,
			os_is_terminal(stdout) ? terminal_columns(stdout) - 1 : 0, os_time_ms());
		ps_print_missing(stderr, closed_count, other_count, ended_count);
		remind();
	}
	free(rows);
	arena_release(&arena);
	process_list_release(&list);
	return rc;
}

static int set_pattern(void *pattern, int id, const char *value, struct err *err)
{
	if (id != OPT_ARGUMENT)
		return id;
	if (*(const char **)pattern)
		return err_set(err, ERR_USAGE, value, "one pattern at a time");
	*(const char **)pattern = value;
	return 0;
}

int command_ps(int argc, char **argv)
{
	static const struct command_form form = {usage, options, .set = set_pattern};
	const char *pattern = NULL;
	struct err err = {0};
	int rc = command_read(&form, argc, argv, &pattern, &err);

	if (!rc)
		rc = list_processes(pattern, &err);
	return rc < 0 ? command_fail(&err) : 0;
}
