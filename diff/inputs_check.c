/* Checks of all inputs together: whether dumps belong together, and whether their times can be
 * right. */
#include <stdio.h>
#include <stdlib.h>

#include "core/base/err.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/base/parse.h"
#include "diff/dump_identity.h"
#include "diff/inputs.h"
#include "diff/messages.h"
#include "diff/options.h"
#include "diff/order_doubt.h"
#include "diff/read/read_dump.h"
#include "diff/report/report_parts.h"

/* Warns if dumps were sampled differently: growth may then be only an error of the estimates. In a
 * trend, warns about the first dump that differs from the previous one. Otherwise, warns about the
 * newest dump if another dump differs from it. */
void inputs_check_samples(struct inputs *inputs, const struct series *series)
{
	struct dump_sums *dumps = &inputs->dumps[series->first],
			 *newest = &dumps[series->count - 1];
	const char *words = series->number ? "sampled at a different rate than the snapshot before "
					     "it: growth in its series may be a sampling error" :
					     "sampled at a different rate than the dump it is "
					     "compared with: growth may be a sampling error";

	for (size_t i = 1; i < series->count; i++) {
		struct dump_sums *later = series->number ? &dumps[i] : newest;

		if (dumps[i - 1].quality.sample_bytes == later->quality.sample_bytes)
			continue;
		sums_warn(later, words);
		message_warning(inputs->messages, later->id.path, "", words);
		return;
	}
}

/* A dump cannot be older than its process. If it is older by this much, the clock was set. */
#define EARLY_MS 2000

/* Adds a warning to a dump. Also prints it, unless warnings are printed later per series. */
static void add_remark(const struct inputs *inputs, struct dump_sums *dump, const char *words)
{
	sums_warn(dump, words);
	if (inputs->is_few)
		message_warning(inputs->messages, dump->id.path, "", words);
}

/* Warns about a dump whose time was corrected. Dumps of the same process that lack a clock cannot
 * be corrected, so their times are marked as unknown. */
static void note_moved(const struct inputs *inputs, struct dump_sums *dump)
{
	char words[200], stated[DATE_TEXT_BYTES], taken[DATE_TEXT_BYTES];

	snprintf(words, sizeof(words),
		"its date is %s, but by the machine's uptime it was taken at %s; that time is used",
		date_text(dump->id.stated_ms, stated), date_text(dump->id.time_ms, taken));
	add_remark(inputs, dump, words);
	for (size_t i = 0; i < inputs->dump_count; i++) {
		struct dump_sums *other = &inputs->dumps[i];

		if (!other->id.clock_ms && other->id.time_ms && dump_same_process(dump, other))
			other->id.date_doubt = DATE_UNKNOWN;
	}
}

/* Checks the time of a dump whose time was not corrected. */
static void check_date(struct inputs *inputs, struct dump_sums *dump)
{
	char words[200], stated[DATE_TEXT_BYTES], start[DATE_TEXT_BYTES];

	if (dump->id.date_doubt == DATE_UNKNOWN) {
		add_remark(inputs, dump,
			"its time is unknown: other dumps of its process have wrong dates, and "
			"this one does not record the machine's uptime");
	} else if (!dump->id.has_wall_time && dump->id.time_ms < dump->id.start_ms - EARLY_MS) {
		dump->id.date_doubt = DATE_EARLY;
		snprintf(words, sizeof(words),
			"its date is %s, before its process began (%s): the clock was changed",
			date_text(dump->id.time_ms, stated), date_text(dump->id.start_ms, start));
		add_remark(inputs, dump, words);
	} else if (!dump->window.position && dump->id.time_ms - DAY_MS > os_time_ms()) {
		/* Not added to the dump's warnings: a report must not depend on the time of the
		 * run. */
		dump->id.date_doubt = DATE_AHEAD;
		snprintf(words, sizeof(words), "its date, %s, lies in the future",
			report_dump_time(dump, stated));
		message_warning(inputs->messages, dump->id.path, "", words);
	}
}

#define HOUR_MS 3600000

/* Returns true if summer time may have ended between two logs of UMDH. The time of the second log
 * is then between `least_ms` and an hour before the time of the first. Summer time usually ends on
 * a Sunday before four o'clock. */
static bool may_be_set_back(
	const struct dump_sums *before, const struct dump_sums *after, int64_t least_ms)
{
	int64_t day = after->id.time_ms / DAY_MS, back_ms = before->id.time_ms - after->id.time_ms;

	return before->id.has_wall_time && after->id.has_wall_time &&
	       dump_same_process(before, after) && back_ms >= least_ms && back_ms <= HOUR_MS &&
	       (day + 4) % 7 == 0 && after->id.time_ms % DAY_MS < 4 * HOUR_MS &&
	       !dump_same_snapshot(before, after);
}

/* Drops the times of a process if the clock may have been set back an hour between its logs. */
static void check_summer_time(struct inputs *inputs)
{
	/* Two logs often have equal times, because UMDH's times have no seconds. In a longer
	 * series, equal times on such a night are suspicious. */
	const int64_t least_ms = inputs->dump_count > 2 ? 0 : 1;

	for (size_t i = 1; i < inputs->dump_count; i++) {
		struct dump_sums *dump = &inputs->dumps[i];
		char words[200], time[DATE_TEXT_BYTES];

		if (!may_be_set_back(dump - 1, dump, least_ms))
			continue;
		snprintf(words, sizeof(words),
			"its time, %s, is not later than that of the log before it: clocks may "
			"have been set back at the end of summer time, so the times are not used",
			report_dump_time(dump, time));
		add_remark(inputs, dump, words);
		for (size_t k = 0; k < inputs->dump_count; k++) {
			if (k != i && dump_same_process(dump, &inputs->dumps[k]))
				inputs->dumps[k].id.time_ms = 0;
		}
		dump->id.time_ms = 0;
	}
}

/* Corrects the times of dumps if the system's clock was wrong. */
void inputs_correct_clocks(struct inputs *inputs)
{
	struct dump_sums **dumps = xcalloc(inputs->dump_count + 1, sizeof(struct dump_sums *));

	for (size_t i = 0; i < inputs->dump_count; i++)
		dumps[i] = &inputs->dumps[i];
	dumps_correct_clocks(dumps, inputs->dump_count);
	free(dumps);
	for (size_t i = 0; i < inputs->dump_count; i++) {
		if (dump_is_moved(&inputs->dumps[i]))
			note_moved(inputs, &inputs->dumps[i]);
	}
	check_summer_time(inputs);
	for (size_t i = 0; i < inputs->dump_count; i++) {
		if (inputs->dumps[i].id.time_ms && !dump_is_moved(&inputs->dumps[i]))
			check_date(inputs, &inputs->dumps[i]);
	}
}

/* Swaps two dumps of one process that were named in the wrong order. Found dumps need no pid: their
 * order comes only from their times. */
static void order_pair(struct inputs *inputs, bool has_found)
{
	struct dump_sums *dumps = inputs->dumps, newer = dumps[0];
	char words[700];

	if ((!dumps[0].id.pid && !has_found) || !dump_same_process(&dumps[0], &dumps[1]) ||
		!dumps[0].id.time_ms || !dumps[1].id.time_ms ||
		dumps[0].id.time_ms <= dumps[1].id.time_ms)
		return;
	dumps[0] = dumps[1];
	dumps[1] = newer;
	snprintf(words, sizeof(words), "counts as NEW: taken after %.600s", dumps[0].id.path);
	if (!has_found)
		message_warning(inputs->messages, newer.id.path, "", words);
}

/* Warns if the times of two found dumps do not show which of them is older. The order of their
 * names does not show it: "after" sorts before "before". */
static void doubt_order(struct inputs *inputs, const struct dump_sums *a, struct dump_sums *b)
{
	char words[700];

	if (a->id.time_ms && b->id.time_ms &&
		(a->id.time_ms != b->id.time_ms || a->window.position != b->window.position))
		return;
	if (!inputs->options->force)
		inputs->growth_unknown = "the times in the dumps do not show which of them is "
					 "older; name them, the oldest first, or use --force";
	if (inputs->series[0].number)
		return; /* series_list.c prints the warning */
	snprintf(words, sizeof(words),
		a->id.time_ms && b->id.time_ms ?
			"records the same time as %.500s: they are ordered by name" :
			"this dump or %.500s has no usable time: they are ordered by name",
		a->id.path);
	sums_warn(b, words);
	message_warning(inputs->messages, b->id.path, "", words);
}

/* Checks two dumps that were found. */
static void check_pair(struct inputs *inputs, struct dump_sums *dumps)
{
	const struct order_rules rules = {
		.is_by_name = true, .is_pair = true, .force = inputs->options->force};
	const struct dump_place places[2] = {{&dumps[0], 0, true}, {&dumps[1], 1, true}};
	const struct dump_sums *warned = NULL;

	if (dump_same_process(&dumps[0], &dumps[1]))
		warned = order_check(places, 2, &rules);
	if (warned && warned->quality.warning_count <= WARNINGS_MAX)
		message_warning(inputs->messages, warned->id.path, "",
			warned->quality.warnings[warned->quality.warning_count - 1]);
	if (dumps[0].id.is_misplaced || dumps[1].id.is_misplaced)
		inputs->growth_unknown =
			"the dates of the dumps are in doubt; correct them, or use --force";
	else
		doubt_order(inputs, &dumps[0], &dumps[1]);
}

/* Warns if only one of two dumps lists modules, and nothing shows that they are of one process. Frames
 * with names need no modules. */
static void check_modules(struct inputs *inputs)
{
	const struct options *options = inputs->options;
	const bool first_has = inputs->dumps[0].module_list.count;
	const bool needs_none = (options->match == MATCH_ADDRESS || options->match == MATCH_ID) &&
				!options->modules.count && !options->includes.count;
	struct dump_sums *bare = &inputs->dumps[first_has];
	char words[700];

	if (needs_none || bare->module_list.count || !inputs->dumps[!first_has].module_list.count ||
		!bare->stacks.count || bare->text_count || bare->names ||
		dumps_share_modules(inputs->dumps, 2))
		return;
	if (!options->force)
		inputs->growth_unknown = "one of the dumps lists no modules; copy the whole log, "
					 "from its first line, or use --force";
	snprintf(words, sizeof(words),
		"lists no modules, so none of its frames is in a module of %.500s; copy the whole "
		"log, from its first line",
		inputs->dumps[!first_has].id.path);
	sums_warn(bare, words);
	message_warning(inputs->messages, bare->id.path, "", words);
}

/* Warns if the newer of two logs of a process lacks heaps. If it was cut at the end of a heap, nothing
 * else shows it. */
static void check_missing_heaps(struct inputs *inputs)
{
	const struct dump_sums *old = &inputs->dumps[0];
	struct dump_sums *now = &inputs->dumps[1];
	struct u64map listed;
	uint32_t number = 0;
	size_t missing = 0;
	char words[700];

	if (!old->id.has_wall_time || !now->heap_count || !dumps_share_modules(inputs->dumps, 2))
		return;
	u64map_init(&listed);
	for (size_t i = 0; i < now->heap_count; i++)
		u64map_add(&listed, now->heaps[i], &number);
	for (size_t i = 0; i < old->heap_count; i++)
		missing += old->heaps[i] && !u64map_find(&listed, old->heaps[i], &number);
	u64map_release(&listed);
	if (!missing)
		return;
	snprintf(words, sizeof(words),
		"%zu of the %zu heaps of %.500s %s not in it: destroyed since, or the log ends too "
		"early",
		missing, old->heap_count, old->id.path, missing > 1 ? "are" : "is");
	sums_warn(now, words);
	message_warning(inputs->messages, now->id.path, "", words);
}

/* Warns if both dumps are one snapshot: a script may have copied the first file over the second. */
static void check_double(struct inputs *inputs)
{
	const struct dump_sums *old = &inputs->dumps[0];
	struct dump_sums *now = &inputs->dumps[1];
	char words[700];

	/* dumps of one moment with different blocks are of two states, as in minidumps that keep a time */
	if (!(now->id.file && dump_same_snapshot(old, now)) && !dump_is_copy(old, now))
		return;
	if (!inputs->options->force)
		inputs->growth_unknown =
			"both dumps are the same snapshot; name two, or use --force";
	snprintf(words, sizeof(words), "the same snapshot as %.600s", old->id.path);
	sums_warn(now, words);
	message_warning(inputs->messages, now->id.path, "", words);
}

static int finish_pair(struct inputs *inputs, bool has_found, struct err *err)
{
	struct dump_sums *dumps = inputs->dumps;
	char words[700];

	for (int i = 0; i < 2; i++) {
		if (dump_is_child(&dumps[i], &dumps[!i]))
			return err_set(err, ERR_USAGE, dumps[i].id.path,
				"from a child process of %s, not a later state of it; --sum adds "
				"up both",
				dumps[!i].id.path);
	}
	order_pair(inputs, has_found);
	if (has_found)
		check_pair(inputs, dumps);
	check_double(inputs);
	check_modules(inputs);
	check_missing_heaps(inputs);
	if (!dump_other_program(&dumps[0], &dumps[1]))
		return 0;
	if (!inputs->options->force) /* differences between two programs are not growth */
		inputs->growth_unknown = "the dumps are from different programs; to compare them "
					 "anyway, use --force";
	snprintf(words, sizeof(words), "from a different program (%.300s) than OLD (%.300s)",
		dump_image(&dumps[1]), dump_image(&dumps[0]));
	sums_warn(&dumps[1], words);
	message_warning(inputs->messages, dumps[1].id.path, "", words);
	return 0;
}

/* Checks the order of the first two dumps and of the last two dumps of each series of a trend. The
 * growth from the first dump to the last depends on it. Skips series whose dumps have no times. */
static void check_ends(struct inputs *inputs)
{
	for (size_t i = 0; i < inputs->series_count; i++) {
		const struct series *series = &inputs->series[i];
		struct dump_sums *first = &inputs->dumps[series->first];

		if (series->count < 2 || !first->id.time_ms)
			continue;
		doubt_order(inputs, &first[0], &first[1]);
		doubt_order(inputs, &first[series->count - 2], &first[series->count - 1]);
	}
}

/* If the inputs are two dumps of one program but of different processes, prints how to compare
 * them. The user may have wanted a comparison. */
static void hint_pair(const struct inputs *inputs)
{
	const struct dump_sums *dumps = inputs->dumps;

	if (inputs->dump_count == 2 && !dump_other_program(&dumps[0], &dumps[1]) &&
		!dump_is_child(&dumps[0], &dumps[1]) && !dump_is_child(&dumps[1], &dumps[0]))
		message_line(inputs->messages,
			"the two dumps are from different processes; to compare them: hdiff %s %s",
			dumps[0].id.path, dumps[1].id.path);
}

/* In a trend with one dump per process, warns if a process is a child of another. */
static void check_family(const struct inputs *inputs)
{
	const struct dump_sums *dumps = inputs->dumps;
	char words[700];

	for (size_t i = 0; i < inputs->dump_count; i++) {
		for (size_t k = 0; dumps[i].id.parent_pid && k < inputs->dump_count; k++) {
			if (!dump_is_child(&dumps[i], &dumps[k]))
				continue;
			snprintf(words, sizeof(words),
				"from a child process of %.600s; --sum adds up all dumps",
				dumps[k].id.path);
			message_warning(inputs->messages, dumps[i].id.path, "", words);
			return;
		}
	}
}

static int by_process(const void *a, const void *b)
{
	return dump_process_order(*(struct dump_sums *const *)a, *(struct dump_sums *const *)b);
}

/* Warns once about a log of UMDH whose process has the pid of an earlier one. */
static void check_pids(const struct inputs *inputs)
{
	struct dump_sums **sorted = xcalloc(inputs->dump_count + 1, sizeof(struct dump_sums *));
	char words[700];

	for (size_t i = 0; i < inputs->dump_count; i++)
		sorted[i] = &inputs->dumps[i];
	qsort(sorted, inputs->dump_count, sizeof(struct dump_sums *), by_process);
	for (size_t i = 1; i < inputs->dump_count; i++) {
		bool is_later = sorted[i] > sorted[i - 1]; /* inputs are in order */
		struct dump_sums *later = sorted[i - !is_later];

		if (!dump_reuses_pid(sorted[i - 1], sorted[i]))
			continue;
		snprintf(words, sizeof(words),
			"from another process than %.600s, with the same pid: the program or "
			"ntdll.dll has another base",
			sorted[i - is_later]->id.path);
		sums_warn(later, words);
		message_warning(inputs->messages, later->id.path, "", words);
		break;
	}
	free(sorted);
}

/* Warns once if logs of UMDH are of different builds of a module. They do not record what would pair the
 * stacks of two builds. */
static void check_builds(const struct inputs *inputs)
{
	for (size_t i = 0; i < inputs->series_count; i++) {
		struct dump_sums *first = &inputs->dumps[inputs->series[i].first];

		for (size_t k = 1; k < inputs->series[i].count; k++) {
			const char *name = dump_other_build(&first[k - 1], &first[k]);
			char words[900];

			if (!name)
				continue;
			snprintf(words, sizeof(words),
				"another build of %.200s than in %.500s, as its size shows: rows "
				"are "
				"compared by offset, and what did not change may be shown as "
				"growth",
				name, first[k - 1].id.path);
			sums_warn(&first[k], words);
			message_warning(inputs->messages, first[k].id.path, "", words);
			return;
		}
	}
}

/* Checks that dumps of different processes can be compared. */
int inputs_check_processes(struct inputs *inputs, bool has_found, struct err *err)
{
	if (inputs->options->sum || inputs->is_printed)
		return 0;
	if (inputs->dump_count == 1 && has_found)
		inputs->growth_unknown = "a single dump was found";
	check_pids(inputs);
	check_builds(inputs);
	if (inputs->dump_count == 2 && !inputs->series[0].number)
		return finish_pair(inputs, has_found, err);
	if (has_found)
		check_ends(inputs);
	if (inputs->series_count == inputs->dump_count) {
		check_family(inputs);
		hint_pair(inputs);
	}
	return 0;
}

void inputs_check_whole(struct inputs *inputs)
{
	const struct options *options = inputs->options;
	const bool has_limit = options_has_limit(options);

	for (size_t i = 0; has_limit && !options->force && i < inputs->dump_count; i++) {
		if (!inputs->dumps[i].quality.is_incomplete)
			continue;
		inputs->is_partial = true;
		message_warning(inputs->messages, inputs->dumps[i].id.path,
			"--max-growth cannot judge it: ",
			"the snapshot is incomplete; take it again, or use --force");
	}
}

/* Returns the reason why limits cannot be judged, or NULL. A limit must not pass only because rows
 * are missing or numbers were guessed. */
static const char *no_limit(const struct options *options, const struct comparison *comparison)
{
	bool has_limit = !options->force && options_limit_ends(options);

	if (!has_limit)
		return NULL;
	if (comparison->lacks_rows || comparison->may_lack_rows)
		return "may not show everything that grew; compare the dumps, or use --force";
	if (comparison->is_guess)
		return "its number base was guessed; give --input-base";
	if (comparison->lacks_counts && (options->grown_max.blocks & options->row_max.blocks &
						options->net_max.blocks) != UINT64_MAX)
		return "does not record how many blocks were added";
	return NULL;
}

void inputs_judge_printed(struct inputs *inputs, const struct comparison *comparison)
{
	const char *why = no_limit(inputs->options, comparison);

	inputs->is_partial |= why || comparison->is_partial;
	if (why)
		message_warning(inputs->messages, inputs->printed_name,
			"--max-growth cannot judge it: ", why);
}

void inputs_leave_out(struct inputs *inputs, const char *path)
{
	array_grow((void **)&inputs->left_out, &inputs->left_out_cap, inputs->left_out_count,
		sizeof(*inputs->left_out));
	inputs->left_out[inputs->left_out_count++] = arena_text(&inputs->paths, path, strlen(path));
}
