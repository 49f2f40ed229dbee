/* Queries about the options: where they apply, and where the output goes. */
#include "diff/options.h"

#include <string.h>

bool options_limit_ends(const struct options *options)
{
	return (options->grown_max.bytes & options->row_max.bytes & options->net_max.bytes) !=
	       UINT64_MAX;
}

bool options_has_limit(const struct options *options)
{
	return options_limit_ends(options) || options->rate_max_hours || options->figure_max_count;
}

const char *options_of_blocks(const struct options *options)
{
	if (options->shows_age)
		return "--age";
	if (options->shows_sizes)
		return "--sizes";
	return options->shows_pinned ? "--pinned" : NULL;
}

const char *options_of_thread(const struct options *options)
{
	return options->part.thread ? "--thread" : "--group thread";
}

bool options_select_blocks(const struct options *options)
{
	return options->heap_count || options->only_lost || options->part.sizes.is_limited ||
	       options->part.thread;
}

const char *options_of_chart(const struct options *options)
{
	return options->chart == CHART_SIZES ? "--histogram" : "--over-time";
}

bool options_is_shown(const struct options *options)
{
	return !options->output || !strcmp(options->output, "-");
}

bool options_strip(const struct options *options)
{
	return options->strip == STRIP_YES ||
	       (options->strip == STRIP_DEFAULT &&
		       (options->group != GROUP_STACK || options->style.is_tree));
}

const char *options_of_trend(const struct options *options)
{
	if (options->sort == SORT_VERDICT)
		return "--sort verdict";
	if (options->sort == SORT_SLOPE)
		return "--sort slope";
	if (options->trend_verdicts)
		return "--verdict";
	return options->rate_max_hours ? "--max-growth SIZE/h" : NULL;
}

const char *options_of_recording(const struct options *options)
{
	const struct recording_part *part = &options->part;

	if (options->by_mark)
		return "--by-mark";
	if (part->moment)
		return "--peak";
	if (part->fate)
		return part->fate == FATE_AIFI ? "--class, --transient" : "--class";
	if (part->older_ms || part->still_at)
		return part->older_ms ? "--older-than" : "--still-at";
	if (part->from || part->to)
		return part->from ? "--from" : "--to";
	return options_of_chart(options);
}

bool options_request_trend(const struct options *options)
{
	return options->warm_up || options->since.kind || options->until.kind ||
	       options->across_restarts || options->series;
}
