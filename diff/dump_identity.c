/* Identity of dumps: finds dumps of one process, program or moment, and corrects the times of
 * dumps. */
#include "diff/dump_identity.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/base/text.h"
#include "core/dump/model.h"
#include "core/dump/source.h"

#define CLOCK_SLACK_MS 50 /* the time and the running clock are not read at the same instant */
#define NOTED_MS 2000 /* smaller corrections need no message */

/* In UMDH's logs, the program is known only from the module list. If the list contains two
 * programs, the image is unknown. */
const char *dump_image(const struct dump_sums *dump)
{
	const char *found = NULL;

	if (dump->id.image)
		return module_path_base(dump->id.image);
	for (size_t i = 0; i < dump->module_list.count; i++) {
		const char *path = dump->module_list.items[i].path;
		size_t len = strlen(path);

		if (len <= 4 || text_compare(path + len - 4, ".exe") != 0)
			continue;
		if (found && text_compare(found, module_path_base(path)) != 0)
			return NULL;
		found = module_path_base(path);
	}
	return found;
}

static int image_order(const struct dump_sums *a, const struct dump_sums *b)
{
	const char *x = dump_image(a), *y = dump_image(b);

	return x && y ? text_compare(x, y) : int64_order(x != NULL, y != NULL);
}

uint64_t dump_code_base(const struct dump_sums *dump, enum code_base which)
{
	const char *name = which == BASE_NTDLL ? "ntdll.dll" : dump_image(dump);
	const bool is_of_umdh = dump->id.has_wall_time;

	for (size_t i = 0; is_of_umdh && name && i < dump->module_list.count; i++) {
		const struct module *module = &dump->module_list.items[i];

		if (!text_compare(name, module_path_base(module->path)))
			return module->base;
	}
	return dump->id.code_bases[which];
}

/* Compares the bases of two dumps of one pid and image. A process never moves its program or
 * ntdll. */
static int base_order(const struct dump_sums *a, const struct dump_sums *b)
{
	int order = 0;

	for (enum code_base i = 0; !order && i < CODE_BASES; i++) {
		uint64_t x = dump_code_base(a, i), y = dump_code_base(b, i);

		order = x < y ? -1 : x > y;
	}
	return order;
}

static int64_t second_of(int64_t ms)
{
	return ms / 1000 - (ms % 1000 < 0);
}

static int host_order(const struct dump_sums *a, const struct dump_sums *b)
{
	return a->id.host && b->id.host ? text_compare(a->id.host, b->id.host) :
					  int64_order(a->id.host != NULL, b->id.host != NULL);
}

/* Orders processes as if there were only one machine. */
static int local_order(const struct dump_sums *a, const struct dump_sums *b)
{
	int order = int64_order(a->id.pid, b->id.pid);

	if (!order)
		order = int64_order(second_of(a->id.start_ms), second_of(b->id.start_ms));
	if (!order)
		order = image_order(a, b);
	return order ? order : base_order(a, b);
}

/* Compares the machine last. Thus, a dump without a machine is next to dumps of the same process
 * with one. */
int dump_process_order(const struct dump_sums *a, const struct dump_sums *b)
{
	int order = local_order(a, b);

	return order ? order : host_order(a, b);
}

/* Returns true if one of the dumps does not record its machine, as in minidumps. It may then be
 * from the machine of the other dump. Both dumps must have a start time: without one, as in UMDH's
 * logs, the machine is needed to identify the process. */
static bool may_be_of_one_host(const struct dump_sums *a, const struct dump_sums *b)
{
	return a->id.start_ms && b->id.start_ms && (!a->id.host || !b->id.host);
}

bool dump_same_process(const struct dump_sums *a, const struct dump_sums *b)
{
	return !local_order(a, b) && (may_be_of_one_host(a, b) || !host_order(a, b));
}

bool dump_reuses_pid(const struct dump_sums *a, const struct dump_sums *b)
{
	return a->id.pid && a->id.pid == b->id.pid && !host_order(a, b) && !image_order(a, b) &&
	       base_order(a, b);
}

/* Returns true if nothing in two logs of UMDH shows that they are of two processes. */
static bool may_be_one_process(const struct dump_sums *a, const struct dump_sums *b)
{
	bool is_one = a->id.has_wall_time && b->id.has_wall_time && a->id.host && b->id.host &&
		      !host_order(a, b) && !dump_other_program(a, b);

	for (enum code_base i = 0; is_one && i < CODE_BASES; i++) {
		uint64_t x = dump_code_base(a, i), y = dump_code_base(b, i);

		is_one = !x || !y || x == y;
	}
	return is_one;
}

bool dumps_share_modules(const struct dump_sums *dumps, size_t count)
{
	const struct dump_sums *first = dumps;
	bool is_one = true;

	while (first + 1 < dumps + count && !first->module_list.count)
		first++;
	for (const struct dump_sums *dump = dumps; is_one && dump < dumps + count; dump++)
		is_one = dump->id.pid && dump->id.pid == first->id.pid &&
			 dump->id.start_ms == first->id.start_ms &&
			 (dump->id.start_ms || may_be_one_process(first, dump));
	return is_one;
}

bool dump_is_child(const struct dump_sums *child, const struct dump_sums *parent)
{
	return child->id.parent_pid && child->id.parent_pid == parent->id.pid &&
	       parent->id.start_ms && parent->id.start_ms <= child->id.start_ms &&
	       (may_be_of_one_host(child, parent) || !host_order(child, parent));
}

bool dump_other_program(const struct dump_sums *a, const struct dump_sums *b)
{
	return dump_image(a) && dump_image(b) && image_order(a, b);
}

/* Returns true if a dump has the module, but not with this size. */
static bool has_other_size(const struct dump_sums *dump, const struct module *module)
{
	const char *name = module_path_base(module->path);
	bool has_other = false;

	for (size_t i = 0; i < dump->module_list.count; i++) {
		const struct module *own = &dump->module_list.items[i];

		if (text_compare(name, module_path_base(own->path)) != 0)
			continue;
		if (own->size_bytes == module->size_bytes ||
			(own->has_identity && module->has_identity))
			return false;
		has_other = true;
	}
	return has_other;
}

const char *dump_other_build(const struct dump_sums *a, const struct dump_sums *b)
{
	const char *found = NULL, *program = dump_image(b);

	if (a->module_list.items == b->module_list.items)
		return NULL;
	for (size_t i = 0; i < b->module_list.count; i++) {
		const struct module *module = &b->module_list.items[i];
		const char *name = module_path_base(module->path);
		const bool is_program = program && !text_compare(program, name);

		if ((found && !is_program) || text_glob("*\\windows\\*", module->path, GLOB_FOLD) ||
			!has_other_size(a, module))
			continue;
		found = name;
		if (is_program)
			break;
	}
	return found;
}

/* Returns true for two dumps of one moment. Returns false if the start time of the process is
 * unknown: the dump's time is then accurate only to the minute, and a minute may contain two
 * snapshots, which is_copy() compares. Positions are also compared, because a millisecond of a
 * recording may contain several moments. */
static bool is_twin(const struct dump_sums *a, const struct dump_sums *b)
{
	bool may_be_same = (!a->window.position || !b->window.position ||
				   a->window.position == b->window.position) &&
			   (!a->id.clock_ms || !b->id.clock_ms || a->id.clock_ms == b->id.clock_ms);

	return a->id.start_ms && !a->id.has_wall_time && !b->id.has_wall_time && a->id.time_ms &&
	       a->id.time_ms == b->id.time_ms && may_be_same;
}

#define COMPARED_BYTES ((size_t)64 << 10)

/* Reads text without its CRs. Returns the number of bytes, which is less than COMPARED_BYTES only at
 * the end, or a negative error code. */
static int64_t read_text(struct source *source, unsigned char *bytes)
{
	int64_t len = 0, got = 1;

	while (got > 0 && len < (int64_t)COMPARED_BYTES) {
		int64_t at = len;

		got = source_read(source, bytes + len, COMPARED_BYTES - (size_t)len, NULL);
		for (int64_t end = at + got; at < end; at++) {
			bytes[len] = bytes[at];
			len += bytes[at] != '\r';
		}
	}
	return got < 0 ? got : len;
}

static bool has_same_text(struct source *a, struct source *b)
{
	unsigned char *bytes = xmalloc(2 * COMPARED_BYTES);
	int64_t len;
	bool is_same;

	do {
		len = read_text(a, bytes);
		is_same = len >= 0 && len == read_text(b, bytes + COMPARED_BYTES) &&
			  !memcmp(bytes, bytes + COMPARED_BYTES, (size_t)len);
	} while (is_same && len == (int64_t)COMPARED_BYTES);
	free(bytes);
	return is_same;
}

static bool can_be_read_again(const char *path)
{
	return strcmp(path, "-") != 0 && !os_is_special(path);
}

/* Reads both files only if their sums are equal. The sums of a log whose head alone was read are 0. */
bool dump_is_copy(const struct dump_sums *a, const struct dump_sums *b)
{
	struct source *sources[2] = {NULL};
	bool is_same = !a->id.file && !b->id.file && a->total.block_count &&
		       a->total.block_count == b->total.block_count &&
		       a->total.requested_bytes == b->total.requested_bytes &&
		       can_be_read_again(a->id.path) && can_be_read_again(b->id.path) &&
		       !source_open(&sources[0], a->id.path, NULL) &&
		       !source_open(&sources[1], b->id.path, NULL) &&
		       has_same_text(sources[0], sources[1]);

	source_close(sources[0]);
	source_close(sources[1]);
	return is_same;
}

/* Compares by process, then by the difference between time and clock. Dumps without a clock come
 * last in their process. */
static int by_offset(const void *a, const void *b)
{
	const struct dump_sums *x = *(struct dump_sums *const *)a,
			       *y = *(struct dump_sums *const *)b;
	int order = dump_process_order(x, y);

	if (!order)
		order = int64_order(!x->id.clock_ms, !y->id.clock_ms);
	return order ? order :
		       int64_order(x->id.time_ms - x->id.clock_ms, y->id.time_ms - y->id.clock_ms);
}

/* Returns the number of leading dumps that have a clock and belong to the first dump's process. */
static size_t clocked_count(struct dump_sums *const *first, size_t count)
{
	size_t found = 0;

	while (found < count && first[found]->id.clock_ms && first[found]->id.time_ms &&
		(!found || dump_same_process(first[found - 1], first[found])))
		found++;
	return found;
}

/* Returns the median difference between time and clock. Ignores differences that would make a dump
 * older than its process. */
static int64_t usual_offset(struct dump_sums *const *first, size_t count)
{
	int64_t least_ms = first[0]->id.clock_ms;
	size_t early = 0;

	for (size_t i = 1; i < count; i++)
		least_ms = first[i]->id.clock_ms < least_ms ? first[i]->id.clock_ms : least_ms;
	while (early < count && first[early]->id.time_ms - first[early]->id.clock_ms + least_ms <
					first[early]->id.start_ms)
		early++;
	early = early < count ? early : 0;
	early += (count - early - 1) / 2;
	return first[early]->id.time_ms - first[early]->id.clock_ms;
}

/* Returns the correct difference between time and clock. This is usually the difference in the
 * newest dump, because time servers correct the system's time. If this difference is more than a
 * day from the median of all dumps, the date of the newest dump itself may be wrong. The median is
 * used in that case. With only two dumps, the median is used only if the newest dump is dated
 * before the start of its process. */
static int64_t true_offset(struct dump_sums *const *first, size_t count)
{
	const struct dump_sums *newest = first[0];
	int64_t usual = usual_offset(first, count), offset;

	for (size_t i = 1; i < count; i++)
		newest = first[i]->id.clock_ms > newest->id.clock_ms ? first[i] : newest;
	offset = newest->id.time_ms - newest->id.clock_ms;
	if ((count > 2 || newest->id.time_ms < newest->id.start_ms) &&
		(offset - usual > DAY_MS || usual - offset > DAY_MS))
		return usual;
	return offset;
}

void dumps_correct_clocks(struct dump_sums *const *dumps, size_t count)
{
	struct dump_sums **sorted = xcalloc(count + 1, sizeof(struct dump_sums *));
	size_t clocked;

	for (size_t i = 0; i < count; i++)
		sorted[i] = dumps[i];
	qsort(sorted, count, sizeof(struct dump_sums *), by_offset);
	for (size_t i = 0; i < count; i += clocked ? clocked : 1) {
		int64_t offset;

		clocked = clocked_count(sorted + i, count - i);
		if (!clocked || !sorted[i]->id.pid || !sorted[i]->id.start_ms)
			continue;
		offset = true_offset(sorted + i, clocked);
		for (size_t k = i; k < i + clocked; k++) {
			struct dump_identity *id = &sorted[k]->id;
			int64_t ms = id->clock_ms + offset;

			if (id->time_ms - ms < CLOCK_SLACK_MS && ms - id->time_ms < CLOCK_SLACK_MS)
				continue;
			if (!id->stated_ms)
				id->stated_ms = id->time_ms;
			id->time_ms = ms;
		}
	}
	free(sorted);
}

bool dump_is_moved(const struct dump_sums *dump)
{
	int64_t by_ms = dump->id.stated_ms - dump->id.time_ms;

	return dump->id.stated_ms && (by_ms >= NOTED_MS || by_ms <= -NOTED_MS);
}

const char *dumps_doubt_words(const struct dump_sums *dump)
{
	if (dump->id.date_doubt == DATE_ODD)
		return "in doubt; correct it, or use --force";
	return dump->id.date_doubt == DATE_UNKNOWN ? "not known" : "wrong";
}

const struct dump_sums *dumps_find_doubt(
	const struct dump_sums *dumps, size_t count, bool with_ahead)
{
	const struct dump_sums *found = NULL;
	bool is_clocked = true;

	for (size_t i = 0; i < count; i++) {
		is_clocked &= dumps[i].id.clock_ms != 0;
		if (dumps[i].id.date_doubt &&
			(with_ahead || dumps[i].id.date_doubt != DATE_AHEAD) &&
			(!found || dumps[i].id.date_doubt > found->id.date_doubt))
			found = &dumps[i];
	}
	return is_clocked ? NULL : found;
}

bool dump_same_snapshot(const struct dump_sums *a, const struct dump_sums *b)
{
	return a->id.time_ms == b->id.time_ms && dump_same_process(a, b) &&
	       (is_twin(a, b) ||
		       (a->id.has_wall_time && b->id.has_wall_time && dump_is_copy(a, b)));
}
