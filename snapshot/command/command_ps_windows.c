#include <stdlib.h>
#include <string.h>

#include "core/base/opt.h"
#include "core/base/text.h"
#include "snapshot/command/command.h"
#include "snapshot/heap/heap.h"
#include "snapshot/heap/wine_layout.h"
#include "snapshot/ifeo/ifeo.h"
#include "snapshot/live/process.h"
#include "snapshot/stacks/tracer_read.h"
#include "snapshot/target/nt_process.h"

enum {
	OPT_HELP = 1,
};

static const struct opt options[] = {
	{OPT_HELP, "h", "help", NULL, "print this help"},
	{0},
};

static void ps_help(FILE *to)
{
	fprintf(to, "usage: hsnap ps [PATTERN]\n"
		    "\n"
		    "List processes, and where their stacks would come from. PATTERN is a part of\n"
		    "the name, or with * and ? the whole of it, in any case.\n"
		    "\n");
	opt_help(options, to);
}

/* Wine's heaps hang on each other; -1 when the ring does not close. */
static int64_t count_ring(struct target *target, uint64_t first)
{
	uint64_t entry = wine_layout_8_0_x64.heap_entry, at = first + entry, next;

	for (int64_t count = 1; count <= HEAPS_MAX; count++) {
		if (target_u64(target, at, &next))
			return -1;
		if (next == first + entry)
			return count;
		at = next;
	}
	return -1;
}

/* The heaps that an environment block lists, and its flags; -1 when it cannot be read. */
static int64_t look_at_peb(
	struct target *target, struct memory *memory, uint64_t peb, unsigned bits, uint32_t *flags)
{
	struct nt_process process;
	int64_t count;

	if (nt_process_read(&process, memory, peb, bits, NULL))
		return -1;
	*flags = process.global_flag;
	count = target->is_wine ? count_ring(target, process.heaps[0]) :
				  (int64_t)process.heap_count;
	nt_process_release(&process);
	return count;
}

/* Of a 32-bit process on 64-bit Windows its own heaps and those that serve it. */
static int64_t look_at_heaps(struct target *target, uint32_t *flags)
{
	struct memory memory;
	uint32_t host_flags;
	int64_t count, host_count;

	if (memory_init(&memory, target))
		return -1;
	count = look_at_peb(target, &memory, target->peb, target->bits, flags);
	if (target->host_peb && count >= 0) {
		host_count = look_at_peb(target, &memory, target->host_peb, 64, &host_flags);
		count += host_count > 0 ? host_count : 0;
	}
	memory_release(&memory);
	return count;
}

/* What a tracer in the target makes of it; NULL: there is none, or one that was never on. */
static const char *look_at_tracer(struct target *target)
{
	struct tracer_area *area = malloc(sizeof(*area));
	const char *state = NULL;
	struct snapshot modules;
	uint64_t area_addr;

	snapshot_init(&modules);
	if (area && !target->ops->modules(target, &modules, NULL) &&
		!tracer_find(target, modules.modules, modules.module_count, &area_addr, NULL) &&
		!tracer_area_read(target, area_addr, area, NULL)) {
		if (area->state == TRACER_ON)
			state = area->flags & TRACER_FLAG_ATTACHED ? "attached" : "tracer";
		else if (area->state == TRACER_OFF)
			state = "detached";
	}
	snapshot_release(&modules);
	free(area);
	return state;
}

/* Where stacks of its blocks would come from; flags are those that it was started with. */
static const char *look_at_stacks(struct target *target, uint32_t flags)
{
	const char *traced = look_at_tracer(target);
	bool is_off = traced && !strcmp(traced, "detached");

	if (traced && !is_off)
		return traced;
	return flags & NT_FLAG_UST ? "ust" : is_off ? traced : "none";
}

/* 0, or why it could not be opened. */
static int look(struct ps_row *row)
{
	struct target target;
	uint32_t flags = 0;
	int rc;

	row->heap_count = -1;
	rc = target_open_live(&target, row->pid, NULL);
	if (rc)
		return rc;
	row->bits = target.bits;
	row->heap_count = look_at_heaps(&target, &flags);
	if (row->heap_count >= 0)
		row->stacks = look_at_stacks(&target, flags);
	target.ops->close(&target);
	return 0;
}

struct seen {
	struct ps_row *rows;
	size_t count;
	size_t closed_count, ended_count; /* closed: among them; ended: not */
};

/* All processes that are like pattern (NULL: all): 0 or -ERR_NOMEM. */
static int look_at_all(const struct process_list *list, const char *pattern, struct seen *seen)
{
	for (size_t i = 0; i < list->count; i++) {
		struct ps_row *row = &seen->rows[seen->count];
		int rc;

		if (pattern && !command_name_is_like(list->items[i].name, pattern))
			continue;
		*row = (struct ps_row){.pid = list->items[i].pid, .name = list->items[i].name};
		rc = look(row);
		if (rc == -ERR_NOMEM)
			return rc;
		if (rc == -ERR_NO_PROCESS) {
			seen->ended_count++;
			continue;
		}
		seen->closed_count += rc != 0;
		seen->count++;
	}
	return 0;
}

/* Recording costs time and memory in each process of the image. */
static void remind(void)
{
	struct buf names;

	buf_init(&names);
	if (!ifeo_all_ust(&names, NULL) && names.len)
		fprintf(stderr, "hsnap: ust is on for %s; 'hsnap ust off IMAGE' ends it\n",
			text_harmless(names.data));
	buf_release(&names);
}

static int list_processes(const char *pattern, struct err *err)
{
	struct process_list list;
	struct seen seen = {0};
	int rc = process_list_take(&list, err);

	if (rc)
		goto out;
	seen.rows = calloc(list.count + 1, sizeof(*seen.rows));
	if (!seen.rows || look_at_all(&list, pattern, &seen) ||
		(seen.count && ps_print(stdout, seen.rows, seen.count)))
		rc = err_set(err, ERR_NOMEM, "ps", NULL);
	else if (!seen.count)
		rc = err_set(err, ERR_NO_PROCESS, pattern ? pattern : "ps", NULL);
	if (rc)
		goto out;
	ps_print_missing(stderr, seen.closed_count, seen.ended_count);
	remind();
out:
	free(seen.rows);
	process_list_release(&list);
	return rc;
}

int command_ps(int argc, char **argv)
{
	const char *pattern = NULL;
	struct opt_state state;
	struct err err = {0};
	int id, rc = 0;

	opt_init(&state, options, argc, argv);
	while (!rc && (id = opt_next(&state, &err))) {
		switch (id) {
		case OPT_ARGUMENT:
			if (pattern)
				rc = err_set(&err, ERR_USAGE, state.value, "one pattern at a time");
			pattern = state.value;
			break;
		case OPT_HELP: ps_help(stdout); return 0;
		default: rc = id; break;
		}
	}
	if (!rc)
		rc = list_processes(pattern, &err);
	return rc ? command_fail(&err) : 0;
}
