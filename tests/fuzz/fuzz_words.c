/* Values of options and placeholders in texts, one per line. Reading a value, printing it and
 * reading it again gives the same value. No program's name can lead out of a folder. */
#include "tests/fuzz/fuzz.h"

#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/base/parse.h"
#include "core/base/text.h"
#include "core/dump/kv.h"
#include "diff/read/frame.h"
#include "snapshot/series/file_pattern.h"
#include "symbolize/files/local_path.h"

static void check_times(const char *text)
{
	char words[DURATION_TEXT_BYTES], date[DATE_TEXT_BYTES];
	int64_t ms, again, first, last;
	struct moment moment;
	uint64_t bytes;

	if (!duration_parse(text, &ms)) {
		HOLDS(ms >= 0);
		HOLDS(!duration_parse(duration_text(ms, words), &again));
		HOLDS(again == ms / 1000 * 1000);
	}
	if (!date_parse(text, &ms)) {
		HOLDS(!date_parse(date_text(ms, date), &again));
		HOLDS(again == ms);
	}
	if (!date_span_parse(text, &first, &last))
		HOLDS(first <= last);
	if (!moment_parse(text, false, &moment))
		moment_ms(&moment, INT64_C(1700000000000));
	size_parse(text, strlen(text), &bytes);
}

static size_t count_of(const char *text, const char *bytes)
{
	size_t count = 0;

	for (; *text; text++)
		count += strchr(bytes, *text) != NULL;
	return count;
}

/* Uses the line both as a pattern and as a program's name. */
static void check_pattern(const char *text)
{
	static const char *const patterns[] = {
		"{name}", "d/{name}-{pid}-{time}.txt", "{name}_{n}.gz"};
	struct file_names names = {
		.program = text, .pid = 4711, .time_ms = INT64_C(1700000000000), .number = 3};
	unsigned words;

	if (!file_pattern_check(text, &words, NULL)) {
		struct buf path = {0};

		names.program = "app.exe";
		file_pattern_add(&path, text, &names);
		file_pattern_bind(&path, text, "app.exe", 1);
		buf_release(&path);
		names.program = text;
	}
	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
		struct buf path = {0}, bound = {0};
		uint64_t number;

		file_pattern_add(&path, patterns[i], &names);
		file_pattern_bind(&bound, patterns[i], text, names.pid);
		HOLDS(count_of(path.data, "/\\") == count_of(patterns[i], "/\\"));
		HOLDS(fuzz_is_harmless(path.data, path.len) && path.data[0] != '-');
		HOLDS(!file_pattern_check(bound.data, &words, NULL));
		HOLDS(file_pattern_fits(
			file_pattern_last(bound.data), file_pattern_last(path.data), &number));
		HOLDS(!(words & PATTERN_NUMBER) || number == names.number);
		buf_release(&path);
		buf_release(&bound);
	}
}

static void check_pairs(const char *text)
{
	struct buf line = {0};
	struct kv pairs;

	kv_init(&pairs);
	if (!kv_parse(&pairs, text, strlen(text)))
		HOLDS(pairs.count <= KV_MAX);
	buf_add_text(&line, "k=");
	kv_quote(&line, text);
	HOLDS(!kv_parse(&pairs, line.data, line.len));
	HOLDS(pairs.count == 1 && !strcmp(kv_get(&pairs, "k"), text));
	kv_release(&pairs);
	buf_release(&line);
}

static void check_text(const char *text)
{
	char *harmless = text_harmless(xstrdup(text));
	size_t len = strlen(text);
	const char *end;

	HOLDS(strlen(harmless) == len);
	for (const char *at = harmless; *at; at++)
		HOLDS(!text_obeyed(at) || (*at & 0xc0) == 0x80);
	HOLDS(!text_is_plain(text, len) || !strcmp(text, harmless));
	end = text_tail(text, len / 2);
	HOLDS(end >= text && strlen(end) <= len / 2);
	HOLDS(!text_compare(text, text) && text_same(text, len, text, len));
	free(harmless);
}

static void check_frame(const char *text)
{
	struct buf name = {0};
	struct symbol_path path;
	struct frame frame;
	struct arena arena;

	arena_init(&arena);
	frame_parse(&frame, &arena, text, strlen(text));
	frame_name(&frame, &name);
	if (frame.function)
		HOLDS(function_own(frame.function) <= frame.function + strlen(frame.function));
	buf_clear(&name);
	function_shown(text, &name);
	arena_release(&arena);
	buf_release(&name);
	symbol_path_init(&path);
	symbol_path_parse(&path, text);
	symbol_path_release(&path);
	local_is_remote(text);
	local_leads_away(text);
	HOLDS(strstr(text, local_plain(text)));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fuzz_input input = {bytes, bytes + len};

	while (fuzz_left(&input)) {
		char *line = fuzz_line(&input);

		check_times(line);
		check_pattern(line);
		check_pairs(line);
		check_text(line);
		check_frame(line);
		free(line);
	}
	return 0;
}
