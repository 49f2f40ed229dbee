/* A log as a whole: opens its files, scans them for processes, modules and stacks, and chooses a
 * process. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/etw/etw_parts.h"
#include "core/io/temp.h"
#include "core/io/zip.h"

#define FILES_MAX 64
#define COUNTS_MAX ((size_t)1 << 16)
#define PROCESSES_MAX ((size_t)1 << 20)
#define BIND_EVENTS ((size_t)1 << 20) /* maximum number of events that wait for their stacks */
#define BOOT_SLACK UINT64_C(100000000) /* within one boot, logged boot times may differ by 10 s */

/* ---------------------------------------------------------------- files */

static int add_file(struct etw_log *log, const char *path, const char *name, struct err *err)
{
	int rc;

	if (log->file_count == FILES_MAX)
		return err_set(err, ERR_USAGE, name, "more than %d logs", FILES_MAX);
	rc = etw_file_open(&log->files[log->file_count], path, name, err);
	if (!rc)
		log->file_count++;
	return rc;
}

static const char *name_in(struct etw_log *log, const char *archive, const char *name)
{
	struct buf both;
	const char *copy;

	buf_init(&both);
	buf_printf(&both, "%s: %s", archive, name);
	copy = arena_text(&log->texts, both.data, both.len);
	buf_release(&both);
	return copy;
}

/* Unpacks the logs in an archive into temporary files and adds those files. */
static int add_archive(struct etw_log *log, const char *path, struct err *err)
{
	const size_t before = log->file_count;
	struct zip *zip;
	int rc = zip_open(&zip, path, err);

	if (rc)
		return rc;
	for (size_t i = 0; !rc && i < zip_count(zip); i++) {
		const char *name = zip_entry(zip, i)->name, *temp;
		size_t len = strlen(name);

		if (len < 4 || !text_begins(name + len - 4, ".etl"))
			continue;
		rc = temp_path(&temp, ".etl", err);
		if (!rc)
			rc = zip_unpack(zip, i, temp, err);
		if (!rc)
			rc = add_file(log, temp, name_in(log, path, name), err);
	}
	zip_close(zip);
	if (!rc && log->file_count == before)
		rc = err_set(err, ERR_NO_ETL, path, NULL);
	return rc;
}

static int add_path(struct etw_log *log, const char *path, struct err *err)
{
	unsigned char bytes[ETW_PEEK_BYTES];
	struct os_file file;
	int rc = os_open(&file, path, err);
	bool is_zip;

	if (rc)
		return rc;
	is_zip = os_size(&file) >= sizeof(bytes) && !os_read_at(&file, 0, bytes, sizeof(bytes)) &&
		 zip_is_head(bytes, sizeof(bytes));
	os_close(&file);
	return is_zip ? add_archive(log, path, err) : add_file(log, path, path, err);
}

/* Returns true if two logs have the same clock and boot time, as all files of a session do. */
static bool have_one_clock(const struct etw_head *a, const struct etw_head *b)
{
	uint64_t apart = a->boot_time > b->boot_time ? a->boot_time - b->boot_time :
						       b->boot_time - a->boot_time;

	return a->clock == b->clock && a->frequency == b->frequency && apart < BOOT_SLACK;
}

static int check_session(const struct etw_log *log, struct err *err)
{
	for (size_t i = 1; i < log->file_count; i++) {
		if (!have_one_clock(&log->files[0].head, &log->files[i].head))
			return err_set(err, ERR_USAGE, log->files[i].path,
				"from a different session than %s", log->files[0].path);
	}
	return 0;
}

int etw_open(struct etw_log **log, const char *const *paths, size_t count, struct err *err)
{
	struct etw_log *made = xcalloc(1, sizeof(*made));
	int rc = 0;

	made->files = xcalloc(FILES_MAX, sizeof(*made->files));
	arena_init(&made->images.texts);
	arena_init(&made->texts);
	etw_stacks_init(&made->stacks);
	u64map_init(&made->process_numbers);
	u64map_init(&made->count_numbers);
	for (size_t i = 0; !rc && i < count; i++)
		rc = add_path(made, paths[i], err);
	if (!rc)
		rc = check_session(made, err);
	if (rc) {
		etw_close(made);
		return rc;
	}
	/* Put the file that starts first at the front, because its start is time 0. */
	for (size_t i = 1; i < made->file_count; i++) {
		struct etw_file first = made->files[0];

		if (made->files[i].head.start_ticks >= first.head.start_ticks)
			continue;
		made->files[0] = made->files[i];
		made->files[i] = first;
	}
	for (size_t i = 0; i < made->file_count; i++) {
		made->facts.file_bytes += made->files[i].file_bytes;
		made->facts.buffer_count += made->files[i].buffer_count;
	}
	made->facts.files = made->files;
	made->facts.file_count = made->file_count;
	*log = made;
	return 0;
}

void etw_close(struct etw_log *log)
{
	if (!log)
		return;
	for (size_t i = 0; i < log->file_count; i++)
		etw_file_close(&log->files[i]);
	free(log->files);
	etw_images_release(&log->images);
	etw_stacks_release(&log->stacks);
	u64map_release(&log->process_numbers);
	u64map_release(&log->count_numbers);
	arena_release(&log->texts);
	free(log->processes);
	free(log->counts);
	free(log);
}

const struct etw_facts *etw_facts(const struct etw_log *log)
{
	return &log->facts;
}

bool etw_is_one_session(const struct etw_log *a, const struct etw_log *b)
{
	const struct etw_head *x = &a->files->head, *y = &b->files->head;

	return have_one_clock(x, y) && (!x->end_time || y->start_time <= x->end_time) &&
	       (!y->end_time || x->start_time <= y->end_time);
}

/* ---------------------------------------------------------------- the scan */

static struct etw_process *process_of(struct etw_log *log, uint32_t pid)
{
	uint32_t number = (uint32_t)log->facts.process_count;

	if (log->last_process < number && log->processes[log->last_process].pid == pid)
		return &log->processes[log->last_process];
	if (number >= PROCESSES_MAX)
		return u64map_find(&log->process_numbers, pid, &number) ? &log->processes[number] :
									  NULL;
	if (u64map_add(&log->process_numbers, pid, &number)) {
		array_grow((void **)&log->processes, &log->process_cap, number,
			sizeof(*log->processes));
		log->processes[log->facts.process_count++] = (struct etw_process){.pid = pid};
	}
	log->last_process = number;
	return &log->processes[number];
}

/* Reads a process event: Process_TypeGroup1 in Microsoft's documentation, versions 2 to 5. Versions
 * 4 and 5 have flags. */
static void handle_process(struct etw_log *log, const struct etw_event *event)
{
	struct etw_payload from = etw_payload(event);
	struct etw_process *process;
	uint32_t pid, parent, flags = 0;

	if (event->type < PROCESS_START || event->type > PROCESS_RUNDOWN_END)
		return;
	if (event->version >= 2)
		etw_parse_pointer(&from);
	pid = etw_parse_u32(&from);
	parent = etw_parse_u32(&from);
	etw_pass(&from, event->version ? 8 : 0); /* skip session and exit status */
	if (event->version >= 3)
		etw_parse_pointer(&from);
	if (event->version >= 4)
		flags = etw_parse_u32(&from);
	if (from.is_short || !event->version)
		return;
	/* The user: either nothing, or two pointers and a SID. The SID's second byte determines its
	 * length. */
	if (from.end - from.at >= 4 && !etw_u32(from.at)) {
		etw_pass(&from, 4);
	} else {
		etw_pass(&from, 2 * (size_t)from.pointer_bytes);
		if (from.end - from.at >= 8)
			etw_pass(&from, 8 + 4 * (size_t)from.at[1]);
	}
	process = process_of(log, pid);
	if (!process)
		return;
	process->parent_pid = parent;
	if (flags & 2)
		process->bits = 32;
	if (event->type == PROCESS_START)
		process->start_ticks = event->time;
	if (event->type == PROCESS_END)
		process->end_ticks = event->time;
	if (from.is_short || process->image)
		return;
	process->image = etw_parse_text(&from, &log->texts);
	process->command_line = etw_parse_wide(&from, &log->texts);
}

static void count_heap(struct etw_log *log, const struct etw_event *event)
{
	struct etw_process *process;

	if (event->type < HEAP_CREATE || event->type > HEAP_FREE)
		return;
	process = event->pid == ETW_NO_ID ? NULL : process_of(log, event->pid);
	if (!process) {
		log->facts.orphan_events++;
		return;
	}
	process->heap_events++;
	if (event->type == HEAP_CREATE)
		process->has_heap_create = true;
	if (event->pointer_bytes == 4 && !process->bits)
		process->bits = 32;
}

static void count_memory(struct etw_log *log, const struct etw_event *event)
{
	struct etw_payload from = etw_payload(event);
	struct etw_process *process;

	if (event->type != MEMORY_ALLOC && event->type != MEMORY_FREE)
		return;
	etw_parse_pointer(&from);
	etw_parse_pointer(&from);
	process = process_of(log, etw_parse_u32(&from));
	if (process && !from.is_short)
		process->memory_events++;
}

static void handle_stack(struct etw_log *log, const struct etw_event *event)
{
	switch (event->type) {
	case STACK_FRAMES: log->facts.stack_count++; break;
	case STACK_KEY_KERNEL:
	case STACK_KEY_USER: log->facts.key_count++; break;
	case STACK_CREATE:
	case STACK_DELETE:
	case STACK_RUNDOWN:
		log->facts.definition_count++;
		etw_stacks_define(&log->stacks, event);
		break;
	default: break;
	}
}

/* Counts an event by kind. In the group ETW_OTHER, the kind contains only the first four bytes of
 * the provider's GUID. */
static void count_event(struct etw_log *log, const struct etw_event *event)
{
	uint64_t key = (uint64_t)event->group << 8 | event->type;
	uint32_t number = (uint32_t)log->facts.count_count;
	struct etw_count *count;

	if (event->group == ETW_OTHER)
		key = (uint64_t)etw_u32(event->guid) << 16 | event->id | UINT64_C(1) << 50;
	key = key << 8 | event->version;
	if (number >= COUNTS_MAX) {
		if (!u64map_find(&log->count_numbers, key, &number))
			return;
	} else if (u64map_add(&log->count_numbers, key, &number)) {
		array_grow((void **)&log->counts, &log->count_cap, number, sizeof(*log->counts));
		log->counts[number] = (struct etw_count){.group = event->group,
			.id = event->id,
			.type = event->type,
			.version = event->version,
			.header = event->header};
		if (event->group == ETW_OTHER)
			memcpy(log->counts[number].guid, event->guid, 16);
		log->facts.count_count++;
	}
	count = &log->counts[number];
	count->count++;
}

static void scan_event(struct etw_log *log, const struct etw_event *event)
{
	struct etw_facts *facts = &log->facts;

	facts->event_count++;
	if (event->time < facts->first_ticks || !facts->first_ticks)
		facts->first_ticks = event->time;
	if (event->time > facts->last_ticks)
		facts->last_ticks = event->time;
	switch (event->group) {
	case ETW_HEAP: count_heap(log, event); break;
	case ETW_MEMORY: count_memory(log, event); break;
	case ETW_PROCESS: handle_process(log, event); break;
	case ETW_STACK: handle_stack(log, event); break;
	case ETW_IMAGE:
	case ETW_IMAGE_ID:
	case ETW_PATHS: etw_images_add(&log->images, event); break;
	case ETW_HEAP_SNAPSHOT: facts->snapshot_parts++; break;
	default: break;
	}
}

static int by_pid(const void *a, const void *b)
{
	const struct etw_process *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static int by_kind(const void *a, const void *b)
{
	const struct etw_count *x = a, *y = b;
	int guids = memcmp(x->guid, y->guid, sizeof(x->guid));

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (guids || x->id != y->id)
		return guids ? guids : x->id < y->id ? -1 : 1;
	return x->version < y->version ? -1 : x->version > y->version;
}

static bool is_below(const char *path, const char *part)
{

	for (; *path; path++) {
		if (text_begins(path, part))
			return true;
	}
	return false;
}

/* Finishes the scan: sorts the processes, and determines the bitness of processes for which no
 * event contains it. A process that loaded a module from SysWOW64 is 32-bit. Any other process has
 * the bitness of the recorded system. */
static void finish_scan(struct etw_log *log)
{
	struct etw_facts *facts = &log->facts;

	for (size_t i = 0; i < log->images.image_count; i++) {
		const struct etw_image *image = &log->images.images[i];
		uint32_t number;

		if (is_below(image->path, "\\syswow64\\") &&
			u64map_find(&log->process_numbers, image->pid, &number) && image->pid > 4)
			log->processes[number].bits = 32;
	}
	for (size_t i = 0; i < facts->process_count; i++) {
		if (!log->processes[i].bits)
			log->processes[i].bits = log->files->head.pointer_bytes * 8;
	}
	etw_stacks_sort(&log->stacks);
	if (facts->process_count)
		qsort(log->processes, facts->process_count, sizeof(*log->processes), by_pid);
	if (facts->count_count)
		qsort(log->counts, facts->count_count, sizeof(*log->counts), by_kind);
	facts->image_count = log->images.image_count;
	facts->identity_count = log->images.identity_count;
	facts->processes = log->processes;
	facts->counts = log->counts;
}

int etw_scan(struct etw_log *log, bool wants_counts, etw_progress_fn progress, void *ctx,
	struct err *err)
{
	struct etw_room room = {0};
	uint64_t done = 0;
	int64_t used = 0;

	for (size_t f = 0; used >= 0 && f < log->file_count; f++) {
		struct etw_file *file = &log->files[f];

		for (size_t i = 0; i < file->buffer_count; i++) {
			struct etw_events events;
			struct etw_event event;

			used = etw_file_read(file, &file->buffers[i], &room, err);
			if (used < 0)
				break;
			events = (struct etw_events){.bytes = room.bytes,
				.at = ETW_BUFFER_HEAD,
				.used = (size_t)used,
				.cpu = file->buffers[i].cpu};
			while (etw_next(&events, &event)) {
				scan_event(log, &event);
				if (wants_counts)
					count_event(log, &event);
			}
			log->facts.bad_buffers += events.is_bad || !used;
			log->facts.skipped_count += events.skipped;
			done += file->buffers[i].bytes;
			if (progress)
				progress(ctx, done, log->facts.file_bytes);
		}
	}
	etw_room_release(&room);
	if (used < 0)
		return (int)used;
	finish_scan(log);
	return 0;
}

int etw_bind(struct etw_log *log, etw_progress_fn progress, void *ctx, struct err *err)
{
	const struct etw_event *event;
	struct etw_binder binder;
	struct etw_merge *merge;
	uint64_t count = 0;
	int rc = etw_merge_open(&merge, log, err);

	if (rc)
		return rc;
	etw_binder_init(&binder, &log->stacks, BIND_EVENTS, UINT64_MAX, NULL, NULL);
	while ((rc = etw_merge_next(merge, &event, err)) > 0) {
		if (event->group != ETW_STACK)
			etw_binder_add(&binder, event);
		else if (event->type == STACK_FRAMES || event->type >= STACK_KEY_KERNEL)
			etw_binder_stack(&binder, event);
		if (progress && !(++count & 0xffff))
			progress(ctx, etw_merge_done(merge), log->facts.file_bytes);
	}
	log->facts.bound_count = binder.bound_count;
	log->facts.unbound_count = binder.unbound_count;
	log->facts.undefined_count = binder.undefined_count;
	log->facts.identified_count = etw_images_identified(&log->images);
	etw_binder_release(&binder);
	etw_merge_close(merge);
	return rc;
}

/* ---------------------------------------------------------------- the choice of a process */

/* Returns true if `wanted` is the pid of the process, or its image name with or without ".exe". */
static bool is_wanted(const struct etw_process *process, const char *wanted)
{
	char *end;
	unsigned long pid = strtoul(wanted, &end, 10);
	size_t len = strlen(wanted);

	if (!*end)
		return process->pid == pid;
	return process->image && text_begins(process->image, wanted) &&
	       (!process->image[len] || !text_compare(process->image + len, ".exe"));
}

int etw_choose(const struct etw_log *log, const char *wanted, const struct etw_process **process,
	struct err *err)
{
	const struct etw_facts *facts = &log->facts;
	const char *path = log->files->path;
	const struct etw_process *heap = NULL, *memory = NULL, *any = NULL;
	size_t heap_count = 0, memory_count = 0;
	struct buf list;
	int rc;

	buf_init(&list);
	for (size_t i = 0; i < facts->process_count; i++) {
		const struct etw_process *one = &facts->processes[i];

		if (wanted && !is_wanted(one, wanted))
			continue;
		any = one;
		memory_count += one->memory_events != 0;
		memory = one->memory_events ? one : memory;
		if (!one->heap_events)
			continue;
		heap = one;
		if (heap_count++ < 8)
			buf_printf(&list, "%s%lu %s", list.len ? ", " : "", (unsigned long)one->pid,
				one->image ? one->image : "?");
	}
	if (heap_count == 1 || (!heap_count && memory_count == 1)) {
		*process = heap ? heap : memory;
		rc = 0;
	} else if (heap_count) {
		rc = err_set(
			err, ERR_PROCESSES, path, "%s%s", list.data, heap_count > 8 ? ", ..." : "");
	} else if (memory_count) {
		rc = err_set(err, ERR_PROCESSES, path,
			"%zu with virtual-memory events, none with heap events", memory_count);
	} else if (wanted && !any) {
		rc = err_set(err, ERR_NO_PROCESS, wanted, "not in %s", path);
	} else {
		rc = err_set(err, ERR_NOT_ETW, path,
			"contains no heap or virtual-memory events%s%s", wanted ? " of " : "",
			wanted ? wanted : "");
	}
	buf_release(&list);
	return rc;
}
