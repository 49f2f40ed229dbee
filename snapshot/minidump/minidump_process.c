/* The process in a minidump file: its PEBs, its system and path, the modules of a 32-bit half, and
 * warnings about missing data. */
#include "snapshot/minidump/minidump.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/text.h"
#include "snapshot/live/process.h"
#include "snapshot/minidump/minidump_layout.h"
#include "snapshot/target/nt_process.h"
#include "snapshot/target/peb_layout.h"
#include "snapshot/target/target_memory.h"

#define HOST_MODULE "wow64.dll" /* occurs only in the 64-bit half of 32-bit processes */

static int read_ptr(const struct minidump *dump, unsigned bits, uint64_t addr, uint64_t *value)
{
	unsigned char bytes[8] = {0};
	int rc = minidump_copy(dump, addr, bytes, bits / 8);

	if (!rc)
		*value = bits == 64 ? bytes_u64(bytes) : bytes_u32(bytes);
	return rc;
}

static bool is_there(const struct minidump *dump, uint64_t addr, uint64_t bytes)
{
	size_t i = spans_find(&dump->runs, addr);

	return i < dump->runs.count && dump->runs.list[i].addr <= addr &&
	       dump->runs.list[i].end - addr >= bytes;
}

/* ---------------------------------------------------------------- PEB */

static bool has_module(const struct minidump *dump, const char *name)
{
	for (size_t i = 0; i < dump->module_count; i++) {
		const char *base = module_path_base(dump->modules[i].path);
		size_t k = 0;

		while (name[k] && (base[k] == name[k] || base[k] == name[k] - ('a' - 'A')))
			k++;
		if (!name[k] && !base[k])
			return true;
	}
	return false;
}

/*
 * Finds the 32-bit PEB from a thread's 64-bit TEB. In a 32-bit process, the TEB's first pointer
 * leads to the 32-bit TEB; in other processes, it is 0 or unrelated. The file may lack the 32-bit
 * TEB. In that case, the pointer is trusted only if the process has the 64-bit half of a 32-bit
 * process (`has_host`).
 */
static bool find_guest(uint64_t teb, bool has_host, struct target *target)
{
	uint64_t guest = nt_guest_teb(target, teb), peb;

	if (!guest)
		return false;
	if (!nt_peb_of_teb(target, 32, guest, &peb)) {
		target->bits = 32;
		target->peb = peb;
		return true;
	}
	if (has_host) {
		target->bits = 32;
		target->peb = 0;
	}
	return false;
}

/* Finds both PEBs from the first thread that leads to both. If there is no such thread, uses any
 * threads. */
static void find_pebs(struct minidump *dump, struct target *target)
{
	struct minidump_list threads = minidump_list(dump, MD_THREADS, MD_THREAD_BYTES);
	bool has_host = dump->bits == 64 && has_module(dump, HOST_MODULE);
	uint64_t peb = 0;

	target->bits = dump->bits;
	for (size_t i = 0; i < threads.count; i++) {
		const unsigned char *entry = threads.entries + i * MD_THREAD_BYTES;
		uint64_t teb = minidump_addr(dump, bytes_u64(entry + MD_THREAD_TEB)), found;

		if (nt_peb_of_teb(target, dump->bits, teb, &found))
			continue;
		if (!peb)
			peb = found;
		if (dump->bits == 32 || find_guest(teb, has_host, target))
			break;
	}
	if (target->bits == dump->bits)
		target->peb = peb;
	else
		target->host_peb = peb ? nt_host_peb(target, peb) : 0;
}

/* ---------------------------------------------------------------- description */

static void cut_text(char *to, size_t size, const char *from)
{
	size_t len = strlen(from);

	if (len >= size) {
		len = size - 1;
		while (len && ((unsigned char)from[len] & 0xc0) == 0x80)
			len--; /* do not end inside a character */
	}
	memcpy(to, from, len);
	to[len] = '\0';
}

/* Reads the program's path from its PEB. Returns 0 or -ERR_READ. */
static int image_of_peb(const struct minidump *dump, struct target *target)
{
	const struct peb_layout *layout = peb_layout(target->bits);
	unsigned char name[2], units[2048];
	uint64_t parameters, text;
	size_t len;

	if (read_ptr(dump, target->bits, target->peb + layout->parameters, &parameters) ||
		minidump_copy(dump, parameters + layout->image_path, name, sizeof(name)) ||
		read_ptr(dump, target->bits,
			parameters + layout->image_path + layout->string_buffer, &text))
		return -ERR_READ;
	len = bytes_u16(name);
	len = len < sizeof(units) ? len : sizeof(units);
	if (len < 2 || minidump_copy(dump, text, units, len))
		return -ERR_READ;
	text_from_utf16(units, len / 2, target->image, sizeof(target->image));
	return 0;
}

static void describe_system(const struct minidump *dump, struct target *target)
{
	const struct minidump_stream *system = &dump->streams[MD_SYSTEM];
	uint32_t platform;

	if (system->len < MD_SYSTEM_MIN_BYTES)
		return;
	platform = bytes_u32(system->bytes + MD_SYSTEM_PLATFORM);
	if (platform != MD_PLATFORM_NT) {
		snprintf(target->os, sizeof(target->os), "platform %" PRIX32, platform);
		return;
	}
	target->os_build = bytes_u32(system->bytes + MD_SYSTEM_BUILD);
	snprintf(target->os, sizeof(target->os), "Windows %" PRIu32 ".%" PRIu32 ".%" PRIu32,
		bytes_u32(system->bytes + MD_SYSTEM_MAJOR),
		bytes_u32(system->bytes + MD_SYSTEM_MINOR), target->os_build);
}

static void describe_process(const struct minidump *dump, struct target *target)
{
	const struct minidump_stream *misc = &dump->streams[MD_MISC];
	uint32_t flags;

	if (misc->len < MD_MISC_MIN_BYTES)
		return;
	flags = bytes_u32(misc->bytes + MD_MISC_FLAGS);
	if (flags & MD_MISC_HAS_PID)
		target->pid = bytes_u32(misc->bytes + MD_MISC_PID);
	if (flags & MD_MISC_HAS_TIMES)
		target->start_ms = (int64_t)bytes_u32(misc->bytes + MD_MISC_START) * 1000;
}

/* Folder of the 32-bit system DLLs: the name that the process sees, and the real name. */
struct folders {
	char *system, *wow64; /* NULL: unknown, or both names are equal */
};

static struct folders find_folders(struct snapshot *found)
{
	static const char system[] = "\\system32", wow64[] = "SysWOW64";
	struct folders folders = {0};
	size_t len;

	for (size_t i = 0; i < found->module_count; i++) {
		const char *path = found->modules[i].path, *base = module_path_base(path);

		if (base - path >= (ptrdiff_t)sizeof(system) && !text_compare(base, "ntdll.dll")) {
			len = (size_t)(base - path) - 1;
			folders.system = arena_text(&found->arena, path, len);
			if (text_compare(folders.system + len - (sizeof(system) - 1), system) != 0)
				break;
			folders.wow64 = arena_text(&found->arena, path, len);
			memcpy(folders.wow64 + len - (sizeof(wow64) - 1), wow64, sizeof(wow64) - 1);
			return folders;
		}
	}
	return (struct folders){0};
}

static bool has_base(const struct snapshot *found, uint64_t base)
{
	for (size_t i = 0; i < found->module_count; i++) {
		if (found->modules[i].base == base)
			return true;
	}
	return false;
}

/* Replaces the paths of the 32-bit modules with their real paths. */
static void correct_paths(struct minidump *dump, struct snapshot *found)
{
	const struct folders folders = find_folders(found);

	for (size_t i = 0; folders.wow64 && i < dump->module_count; i++) {
		struct module *module = &dump->modules[i];

		if (has_base(found, module->base))
			module->path = live_wow64_path(
				&dump->arena, module->path, folders.system, folders.wow64);
	}
}

/* Adds the 32-bit modules of a process whose file was written by a 64-bit program. DbgHelp of Wine
 * 10 lists only the program or the 64-bit half. The list in the process's memory is complete. */
static int add_guest_modules(struct minidump *dump, struct target *target)
{
	struct snapshot found;
	struct memory memory;
	int rc;

	if (target->bits == dump->bits || !target->peb)
		return 0;
	if (memory_init(&memory, target))
		return -ERR_NOMEM;
	snapshot_init(&found);
	rc = nt_modules_read(&memory, target->peb, target->bits, &found);
	if (!rc)
		rc = minidump_add_modules(dump, found.modules, found.module_count);
	if (!rc)
		correct_paths(dump, &found);
	snapshot_release(&found);
	memory_release(&memory);
	return rc == -ERR_NOMEM ? rc : 0;
}

int minidump_describe(struct minidump *dump, struct target *target)
{
	int rc;

	target->time_ms = dump->time_ms;
	describe_system(dump, target);
	describe_process(dump, target);
	find_pebs(dump, target);
	rc = add_guest_modules(dump, target);
	if (image_of_peb(dump, target) && dump->first_module < dump->module_count)
		cut_text(target->image, sizeof(target->image),
			dump->modules[dump->first_module].path);
	return rc;
}

/* ---------------------------------------------------------------- warnings */

static void warn_gaps(const struct minidump *dump, struct snapshot *snapshot)
{
	const struct minidump_gaps *gaps = &dump->gaps;

	if (gaps->cut_ranges && gaps->cut_bytes >> 47)
		snapshot_lacks(snapshot,
			"the file is cut short: more memory than a process can have is missing, in "
			"%" PRIu64 " range%s",
			gaps->cut_ranges, text_plural(gaps->cut_ranges));
	else if (gaps->cut_ranges)
		snapshot_lacks(snapshot,
			"the file is cut short: memory is missing, %" PRIu64 " byte%s in %" PRIu64
			" range%s",
			gaps->cut_bytes, text_plural(gaps->cut_bytes), gaps->cut_ranges,
			text_plural(gaps->cut_ranges));
	if (gaps->cut_entries)
		snapshot_lacks(snapshot,
			"the file is cut short: its lists lack %" PRIu64 " of their entries",
			gaps->cut_entries);
	if (gaps->overlaps)
		snapshot_warn(snapshot,
			"%zu range%s of memory overlap with another; the one with the lower "
			"address is used",
			gaps->overlaps, text_plural(gaps->overlaps));
	if (gaps->shared)
		snapshot_lacks(snapshot,
			"%zu range%s of memory left out: the file is too small to contain them",
			gaps->shared, text_plural(gaps->shared));
	if (gaps->odd_modules)
		snapshot_warn(snapshot,
			"%zu module%s without a size, or overlapping another module",
			gaps->odd_modules, text_plural(gaps->odd_modules));
	if (gaps->cut_names)
		snapshot_warn(snapshot, "the file lacks the names of %zu module%s", gaps->cut_names,
			text_plural(gaps->cut_names));
	if (gaps->cut_types)
		snapshot_warn(snapshot, "the file lacks the types of %" PRIu64 " handle%s",
			gaps->cut_types, text_plural(gaps->cut_types));
	if (gaps->has_odd_space)
		snapshot_warn(snapshot,
			"the list of the process's memory is inconsistent, so the use of its "
			"memory is unknown");
	if (gaps->repeated)
		snapshot_warn(snapshot, "the file has %zu list%s twice; the first one is used",
			gaps->repeated, text_plural(gaps->repeated));
}

static void warn_streams(const struct minidump *dump, struct snapshot *snapshot)
{
	static const struct {
		const char *words;
		enum minidump_stream_type type;
		bool leads_to_heaps;
	} wanted[] = {
		{"the dump has no list of modules", MD_MODULES, false},
		{"the dump has no list of threads, which lead to the heaps", MD_THREADS, true},
		{"the dump does not record its version of Windows", MD_SYSTEM, false},
		{"the dump does not record the process's pid and start time", MD_MISC, false},
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		if (dump->streams[wanted[i].type].bytes)
			continue;
		if (wanted[i].leads_to_heaps)
			snapshot_lacks(snapshot, "%s", wanted[i].words);
		else
			snapshot_warn(snapshot, "%s", wanted[i].words);
	}
	if (dump->is_bits_guessed)
		snapshot_warn(
			snapshot, "the dump names no known processor; read as %u-bit", dump->bits);
}

static void warn_peb(const struct minidump *dump, unsigned bits, uint64_t peb, const char *which,
	struct snapshot *snapshot)
{
	const struct peb_layout *layout = peb_layout(bits);
	uint64_t heap = 0, list = 0;
	unsigned char count[4];

	if (!peb) {
		snapshot_lacks(snapshot,
			"its threads' %senvironment blocks, which lead to the heaps, are missing",
			which);
		return;
	}
	if (!is_there(dump, peb, layout->bytes)) {
		snapshot_lacks(snapshot,
			"memory is missing: the %sprocess environment block at %" PRIX64, which,
			peb);
		return;
	}
	if (read_ptr(dump, bits, peb + layout->process_heap, &heap) ||
		(heap && !is_there(dump, heap, 1)))
		snapshot_lacks(
			snapshot, "memory is missing: the %sprocess heap at %" PRIX64, which, heap);
	if (read_ptr(dump, bits, peb + layout->heap_list, &list) ||
		minidump_copy(dump, peb + layout->heap_count, count, sizeof(count)))
		return;
	if (bytes_u32(count) && !is_there(dump, list, 1))
		snapshot_lacks(snapshot,
			"memory is missing: the %slist of %" PRIu32 " heap%s at %" PRIX64, which,
			bytes_u32(count), text_plural(bytes_u32(count)), list);
}

/* The use of memory is unknown if a thread's stack cannot be found. */
static void warn_tebs(struct minidump *dump, struct target *target, struct snapshot *snapshot)
{
	const size_t missing = dump->has_space ? minidump_missing_tebs(dump, target) : 0;

	if (missing)
		snapshot_warn(snapshot,
			"memory is missing: the environment blocks of %zu thread%s, so the use of "
			"the process's memory is unknown",
			missing, text_plural(missing));
}

void minidump_warn(struct minidump *dump, struct target *target, struct snapshot *snapshot)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < dump->memory.count; i++)
		bytes += dump->memory.list[i].end - dump->memory.list[i].addr;
	if (!dump->streams[MD_MEMORY64].bytes && !(dump->flags & MD_WITH_FULL_MEMORY))
		snapshot_warn(snapshot,
			"the dump was written without full memory: it has %" PRIu64
			" bytes in %" PRIu64 " range%s",
			bytes, dump->range_count, text_plural(dump->range_count));
	warn_streams(dump, snapshot);
	warn_peb(dump, target->bits, target->peb, "", snapshot);
	if (target->host_peb)
		warn_peb(dump, 64, target->host_peb, "64-bit ", snapshot);
	warn_gaps(dump, snapshot);
	/* comes last, because it counts the gaps in the list of threads again */
	warn_tebs(dump, target, snapshot);
}
