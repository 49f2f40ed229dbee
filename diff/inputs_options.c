/* Checks that the options apply to the inputs. */
#include "core/base/err.h"
#include "diff/dump_identity.h"
#include "diff/inputs.h"
#include "diff/options.h"
#include "diff/report/report_parts.h"

/* If heaps are requested, checks that a dump records them. */
static int check_heaps(const struct inputs *inputs, struct err *err)
{
	if (!inputs->options->style.shows_heaps)
		return 0;
	for (size_t i = 0; i < inputs->dump_count; i++) {
		if (inputs->dumps[i].heap_fact_count)
			return 0;
	}
	return err_set(err, ERR_USAGE, "--heaps",
		"no input records the memory of heaps; only dumps made by hsnap do");
}

#define ONLY_SUMS "has only sums, not single blocks: take it without --by-stack and --sample"

/* If single blocks are requested, checks that the inputs list them. */
static int check_blocks(const struct inputs *inputs, struct err *err)
{
	const struct options *options = inputs->options;
	const char *name = options_of_blocks(options);
	const struct dump_sums *dumps = inputs->dumps;

	for (size_t i = 0; options->part.by_thread && i < inputs->dump_count; i++) {
		if (!dumps[i].id.file)
			return err_set(err, ERR_USAGE, dumps[i].id.path,
				"%s needs recordings: a dump does not record which thread "
				"allocated",
				options_of_thread(options));
	}
	for (size_t i = 0; options->part.sizes.is_limited && i < inputs->dump_count; i++) {
		if (dumps[i].single.has_unlisted)
			return err_set(err, ERR_USAGE, dumps[i].id.path, ONLY_SUMS);
	}
	if (!name)
		return 0;
	if (inputs->series[0].number)
		return err_set(err, ERR_USAGE, name, "applies to one dump or two, not to a trend");
	for (size_t i = 0; i < inputs->dump_count; i++) {
		if (dumps[i].id.file)
			return err_set(err, ERR_USAGE, name,
				"applies to dumps; for a recording use --histogram, or make a dump "
				"of a moment with hdiff --extract");
		if (dumps[i].single.has_unlisted)
			return err_set(err, ERR_USAGE, dumps[i].id.path, ONLY_SUMS);
		if (options->shows_pinned && !dumps[i].single.has_containers)
			return err_set(err, ERR_USAGE, dumps[i].id.path,
				"does not list containers; hsnap lists them, except with "
				"--by-stack "
				"and --sample");
	}
	if (!options->shows_age ||
		(inputs->dump_count == 2 && dump_same_process(&dumps[0], &dumps[1])))
		return 0;
	return err_set(err, ERR_USAGE, "--age", "needs two dumps of one process");
}

/* If a file records no numbers of blocks, rejects options that need them. */
static int check_counts(const struct inputs *inputs, struct err *err)
{
	const struct options *options = inputs->options;
	const uint64_t limit =
		options->grown_max.blocks & options->row_max.blocks & options->net_max.blocks;
	char form[40];
	const char *name = options->min_blocks		 ? "--min-count" :
			   options->sort == SORT_COUNT	 ? "--sort count" :
			   limit != UINT64_MAX		 ? "--max-growth SIZE,BLOCKS" :
			   options->format->needs_blocks ? form :
							   NULL;

	snprintf(form, sizeof(form), "-o %s", options->format->name);
	for (size_t i = 0; name && i < inputs->dump_count; i++) {
		if (inputs->dumps[i].quality.lacks_blocks)
			return err_set(err, ERR_USAGE, name,
				"needs numbers of blocks, which %.400s does not record",
				inputs->dumps[i].id.path);
	}
	return 0;
}

int inputs_check_options(const struct inputs *inputs, struct err *err)
{
	const struct options *options = inputs->options;
	const char *of_trend = options_of_trend(options);
	char form[40];
	int rc = check_blocks(inputs, err);

	if (!rc)
		rc = check_heaps(inputs, err);
	if (!rc)
		rc = check_counts(inputs, err);
	if (rc)
		return rc;
	for (size_t i = 0; options->only_lost && i < inputs->dump_count; i++) {
		if (!inputs->dumps[i].has_reach)
			return err_set(err, ERR_USAGE, inputs->dumps[i].id.path,
				"does not record which blocks are lost: take it with hsnap -g");
	}
	if (of_trend && !inputs->series[0].comparison.axis)
		return err_set(err, ERR_USAGE, of_trend,
			"applies only to a trend, of more than two dumps");
	snprintf(form, sizeof(form), "-o %s", options->format->name);
	if (options->format->is_of_dumps &&
		(inputs->is_printed || options->sum || options->group != GROUP_STACK))
		return err_set(err, ERR_USAGE, form,
			"shows each stack in each dump: leave out --sum and --group, and give "
			"dumps, not a comparison");
	if (options->format->is_packed && options_is_shown(options) && os_is_terminal(stdout))
		return err_set(err, ERR_USAGE, form,
			"compressed output is not for a terminal; give -f FILE");
	if (inputs->series_count < 2 || !options->format->is_of_one)
		return 0;
	return err_set(err, ERR_USAGE, form,
		"shows only one series, but there are %zu; choose one with --series N",
		inputs->series_count);
}
