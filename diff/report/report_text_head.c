/* The head of the report for people: the inputs, their warnings, and the whole trend. */
#include "diff/report/report_text.h"

#include <string.h>

#include "core/base/parse.h"
#include "core/base/text.h"
#include "core/dump/model.h"
#include "diff/report/balance_text.h"
#include "diff/report/clean.h"
#include "diff/report/report_parts.h"
#include "diff/report/umdh.h"

/* Writes " of app.exe, process 4242 on WEB2", if known. `before` is " of" or another preposition. */
static void write_process(
	struct text_report *text, const char *before, const struct dump_sums *sums)
{
	if (sums->id.image) {
		out_printf(text->out, "%s ", before);
		out_harmless(text->out, module_path_base(sums->id.image));
	}
	if (sums->id.pid)
		out_printf(text->out, "%s process %lu", sums->id.image ? "," : before,
			(unsigned long)sums->id.pid);
	if (text->comparison->shows_hosts && sums->id.host) {
		out_text(text->out, " on ");
		out_harmless(text->out, sums->id.host);
	}
}

/* Writes both processes if they differ. */
static void write_processes(struct text_report *text)
{
	const struct comparison *comparison = text->comparison;
	const struct dump_sums *first = comparison->dumps,
			       *last = first + comparison->dump_count - 1;

	if (text->is_single || !first->id.pid || !last->id.pid ||
		(first->id.pid == last->id.pid && !comparison->shows_hosts)) {
		write_process(text, " of", last);
		return;
	}
	write_process(text, " from", first);
	write_process(text, " to", last);
}

static void add_file(struct buf *word, const char *before, const struct dump_sums *sums)
{
	char time[DATE_TEXT_BYTES];

	buf_add_text(word, before);
	clean_text(word, sums->id.path, true);
	/* cut the fraction of seconds off "2026-11-24T03:43:15.021Z" */
	if (*report_dump_time(sums, time))
		buf_printf(word, ", %.19s%s", time, strlen(time) > 19 ? "Z" : "");
}

static bool has_notes(const struct dump_sums *sums)
{
	return sums->window.fate != FATE_LIVE || sums->is_attached || sums->quality.sample_bytes ||
	       sums->quality.is_cut;
}

static void write_file(struct text_report *text, const char *before, const struct dump_sums *sums)
{
	buf_clear(&text->word);
	add_file(&text->word, before, sums);
	out_text(text->out, text->word.data);
	umdh_dump_notes(text->out, sums);
	out_char(text->out, '\n');
}

/* Writes both files, on one line if they fit. */
static void write_files(struct text_report *text)
{
	const struct comparison *comparison = text->comparison;
	const struct dump_sums *first = comparison->dumps,
			       *last = first + comparison->dump_count - 1;

	if (comparison->is_sum)
		return;
	if (text->is_single) {
		write_file(text, "in ", last);
		return;
	}
	buf_clear(&text->word);
	add_file(&text->word, "from ", first);
	add_file(&text->word, " to ", last);
	if (!has_notes(first) && !has_notes(last) &&
		text_columns(text->word.data) <= text->columns) {
		out_printf(text->out, "%s\n", text->word.data);
		return;
	}
	write_file(text, "from ", first);
	write_file(text, "to   ", last);
}

static void write_span(
	struct text_report *text, const struct dump_sums *first, const struct dump_sums *last)
{
	char span[DURATION_TEXT_BYTES];

	if (first->id.time_ms && last->id.time_ms > first->id.time_ms)
		out_printf(text->out, "%s in %s", text->comparison->axis ? "" : ",",
			duration_text(last->id.time_ms - first->id.time_ms, span));
	out_char(text->out, '\n');
}

static void write_title(struct text_report *text)
{
	const struct comparison *comparison = text->comparison;
	const struct dump_sums *first = comparison->dumps,
			       *last = first + comparison->dump_count - 1;

	if (comparison->axis) {
		out_text(text->out, "Trend");
		if (comparison->image) {
			out_text(text->out, " of ");
			out_harmless(text->out, comparison->image);
		} else {
			write_process(text, " of", first);
		}
		out_printf(text->out, ": %zu snapshot%s", comparison->dump_count,
			text_plural(comparison->dump_count));
	} else if (comparison->is_sum) {
		out_printf(text->out, "Sum of %zu dump%s", comparison->dump_count,
			text_plural(comparison->dump_count));
	} else {
		out_text(text->out, text->is_single ? "Memory" : "Growth");
		write_processes(text);
	}
	write_span(text, first, last);
}

static void write_warnings(struct text_report *text)
{
	const struct comparison *comparison = text->comparison;

	if (comparison->dumps)
		umdh_series_warnings(text->out, "", comparison);
	umdh_warnings(text->out, "", comparison->read_from ? comparison->read_from : "",
		comparison->warnings, comparison->warning_count);
}

/* Returns true if a line may be broken at the blank `at`. This is so between the items of a list,
 * and before a sentence in brackets. */
static bool may_break(const char *line, const char *at)
{
	return at > line &&
	       (strchr(",:;", at[-1]) || (at[1] == '(' && strcspn(at, ")") > strlen(" (grows)")));
}

/* Writes a line, broken into several lines if it is too wide. All lines after the first are
 * indented. */
static void write_wrapped(struct text_report *text, char *line)
{
	const char *indent = "";

	for (;;) {
		const size_t columns = text->columns - strlen(indent);
		char *end = NULL;

		for (char *at = strchr(line, ' '); at; at = strchr(at + 1, ' ')) {
			*at = '\0';
			if (may_break(line, at) && (!end || text_columns(line) <= columns))
				end = at;
			*at = ' ';
		}
		if (!end || text_columns(line) <= columns)
			break;
		*end = '\0';
		out_printf(text->out, "%s%s\n", indent, line);
		line = end + 1;
		indent = "  ";
	}
	out_printf(text->out, "%s%s\n", indent, line);
}

static void write_balance(struct text_report *text)
{
	struct buf words;

	buf_init(&words);
	balance_text(&words, text->view);
	for (char *line = words.data, *end; line && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		write_wrapped(text, line);
	}
	buf_release(&words);
}

void report_text_head(struct text_report *text)
{
	const struct comparison *comparison = text->comparison;

	report_text_colour(text, "1");
	if (comparison->dumps) {
		write_title(text);
	} else {
		out_text(text->out, "Growth recorded in ");
		out_harmless(text->out, comparison->read_from ? comparison->read_from : "-");
		out_text(text->out, comparison->is_cut ? ", which is cut short\n" : "\n");
	}
	report_text_colour(text, "0");
	if (comparison->dumps)
		write_files(text);
	write_warnings(text);
	if (comparison->axis) {
		out_text(text->out, text->view->is_filtered ? "selected: " : "in all: ");
		report_text_trend(text, &text->view->trend, text->view->series);
	}
	write_balance(text);
	out_char(text->out, '\n');
}
