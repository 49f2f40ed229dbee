/* Parts of the UMDH report about one dump: its notes, its warnings, and its time in a recording. */
#include "diff/report/umdh.h"

#include <inttypes.h>

#include "core/base/parse.h"
#include "core/base/text.h"
#include "core/dump/model.h"
#include "diff/read/dump_sums.h"
#include "diff/report/report_parts.h"

void umdh_seconds(struct out *out, uint64_t ms)
{
	out_printf(out, "%" PRIu64 ".%03u s", ms / 1000, (unsigned)(ms % 1000));
}

void umdh_fate(struct out *out, const struct dump_sums *sums)
{
	static const char *const words[] = {
		[FATE_AIFO] = "what was allocated and not freed",
		[FATE_AIFI] = "what was allocated and freed",
		[FATE_AOFI] = "what existed before and was freed",
		[FATE_AOFO] = "what existed before and was not freed",
		[FATE_AI] = "what was allocated",
		[FATE_ALL] = "everything that existed",
	};
	const bool is_longer = window_is_longer(&sums->window);

	if (sums->window.fate == FATE_LIVE)
		return;
	out_printf(out, ", %s from ", is_longer ? "what was allocated" : words[sums->window.fate]);
	umdh_seconds(out, sums->window.from_ms);
	out_text(out, " to ");
	umdh_seconds(out, sums->window.born_ms);
	if (is_longer) {
		out_text(out, " and still existed at ");
		umdh_seconds(out, sums->window.to_ms);
	}
}

void umdh_dump_notes(struct out *out, const struct dump_sums *sums)
{
	umdh_fate(out, sums);
	if (sums->is_attached)
		out_text(out, ", traced only since hsnap attached");
	if (sums->is_attached && !sums->quality.sample_bytes)
		out_printf(out, ": %" PRIu64 " older block%s of %" PRIu64 " bytes %s no stack",
			sums->before.block_count, sums->before.block_count == 1 ? "" : "s",
			sums->before.requested_bytes,
			sums->before.block_count == 1 ? "has" : "have");
	if (sums->quality.sample_bytes)
		out_printf(out, ", ESTIMATES: one in %" PRIu64 " bytes was recorded",
			sums->quality.sample_bytes);
	if (sums->quality.is_cut)
		out_text(out, CUT_SHORT);
}

static void write_dump(struct out *out, const char *role, const struct dump_sums *sums)
{
	char time[DATE_TEXT_BYTES];

	out_printf(out, "// %s: ", role);
	out_harmless(out, sums->id.path);
	if (sums->id.image) {
		out_text(out, ", ");
		out_harmless(out, module_path_base(sums->id.image));
	}
	if (sums->id.pid)
		out_printf(out, ", process %lu", (unsigned long)sums->id.pid);
	if (sums->id.start_ms)
		out_printf(out, ", started %s", date_text(sums->id.start_ms, time));
	if (*report_dump_time(sums, time))
		out_printf(out, ", taken %s", time);
	umdh_dump_notes(out, sums);
	out_text(out, "\n");
}

void umdh_warnings(struct out *out, const char *before, const char *path,
	const char *const *warnings, size_t count)
{
	for (size_t i = 0; i < count && i <= WARNINGS_MAX; i++) {
		out_printf(out, "%swarning: ", before);
		out_harmless(out, path);
		out_text(out, ": ");
		if (i < WARNINGS_MAX)
			out_harmless(out, warnings[i]);
		else
			out_printf(out, "%zu more warning%s not shown", count - WARNINGS_MAX,
				text_plural(count - WARNINGS_MAX));
		out_text(out, "\n");
	}
}

void umdh_dump(struct out *out, const char *role, const struct dump_sums *sums)
{
	write_dump(out, role, sums);
	umdh_warnings(
		out, "// ", sums->id.path, sums->quality.warnings, sums->quality.warning_count);
}

static void write_all_warnings(struct out *out, const struct comparison *comparison)
{
	for (size_t i = comparison->dump_count; i--;)
		umdh_warnings(out, "// ", comparison->dumps[i].id.path,
			comparison->dumps[i].quality.warnings,
			comparison->dumps[i].quality.warning_count);
}

void umdh_series_warnings(struct out *out, const char *before, const struct comparison *comparison)
{
	struct dump_warnings warnings;
	struct buf words;

	dump_warnings_gather(&warnings, comparison->dumps, comparison->dump_count);
	buf_init(&words);
	for (size_t i = 0; i < warnings.count; i++) {
		buf_clear(&words);
		dump_warning_words(&words, &warnings.items[i]);
		umdh_warnings(out, before, warnings.items[i].first->id.path,
			(const char *const[]){words.data}, 1);
	}
	buf_release(&words);
	dump_warnings_release(&warnings);
}

void umdh_dumps(struct out *out, const struct comparison *comparison)
{
	size_t count = comparison->dump_count;

	for (size_t i = 0; comparison->is_sum && i + 1 < count; i++)
		write_dump(out, "NEW", &comparison->dumps[i]);
	write_dump(out, "NEW", &comparison->dumps[count - 1]);
	if (comparison_columns(comparison) > 1)
		write_dump(out, "OLD", &comparison->dumps[0]);
	else
		out_text(out, "// OLD: none: everything counts as new\n");
	write_all_warnings(out, comparison);
}
