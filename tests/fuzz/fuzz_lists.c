/* Lists that users write: suppressions, frames to remove, patterns. The first line of an input is a
 * stack, with frames "module!function" separated by blanks. The next line is a pattern, and the
 * rest is the list. Matching the pattern gives the same result each time, or takes too long. Every
 * accepted line of a list has an effect. */
#include "tests/fuzz/fuzz.h"

#include "core/base/memory.h"
#include "core/base/text.h"
#include "diff/query/pattern.h"
#include "diff/query/strip.h"
#include "diff/query/suppress.h"

static void check_pattern(const char *pattern, const char *text)
{
	struct patterns patterns;
	struct err err = {0};
	int rc, again;

	patterns_init(&patterns, "-i");
	rc = patterns_add(&patterns, pattern, &err);
	HOLDS(!rc || (rc == -ERR_USAGE && err.code == ERR_USAGE));
	if (!rc) {
		rc = patterns_match(&patterns, text, &err);
		again = patterns_match_known(&patterns, text, &err);
		HOLDS(rc == again && (rc == 0 || rc == 1 || rc == -ERR_USAGE));
		HOLDS(patterns_match_known(&patterns, text, &err) == again);
		patterns_try(&patterns, text);
		HOLDS(!strcmp(pattern_text(&patterns, 0), pattern));
	}
	patterns_release(&patterns);
	text_glob(pattern, text, GLOB_FOLD | GLOB_QUESTION);
	HOLDS(strpbrk(text, "*?") || text_glob(text, text, GLOB_QUESTION));
}

/* Makes frames from the words of a line. The frames' texts point into the line. */
static void frames_of(char *line, struct frames *frames)
{
	for (char *word = strtok(line, " "); word; word = strtok(NULL, " ")) {
		char *function = strchr(word, '!');
		struct frame frame = {.module = word};

		if (function) {
			*function++ = '\0';
			frame.function = *function ? function : NULL;
		}
		frames_add(frames, &frame);
	}
}

static void check_lists(const char *path, struct frames *frames)
{
	struct comparison comparison = {0};
	struct row row = {.kind = ROW_STACK, .frames = frames};
	struct suppressions suppressions;
	struct strip strip;
	struct err err = {0};
	size_t count = frames->count;
	int rc;

	suppressions_init(&suppressions);
	rc = suppressions_add_file(&suppressions, path, &err);
	HOLDS(!rc || (int)err.code == -rc);
	if (!rc) {
		struct suppression *first =
			suppressions_match(&suppressions, &comparison, &row, frames);

		HOLDS(suppressions_match(&suppressions, &comparison, &row, frames) == first);
	}
	suppressions_release(&suppressions);
	strip_init(&strip);
	rc = strip_add_file(&strip, path, &err);
	HOLDS(!rc || (int)err.code == -rc);
	strip_add_known(&strip);
	for (size_t i = 0; i < frames->count; i++)
		strip_matches(&strip, &frames->items[i]);
	strip_frames(&strip, frames);
	HOLDS(frames->count <= count && (!count || frames->count));
	strip_release(&strip);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fuzz_input input = {bytes, bytes + len};
	char *stack = fuzz_line(&input), *pattern = fuzz_line(&input);
	struct frames frames;

	check_pattern(pattern, stack);
	frames_init(&frames);
	frames_of(stack, &frames);
	check_lists(fuzz_file(0, input.at, fuzz_left(&input)), &frames);
	frames_release(&frames);
	free(stack);
	free(pattern);
	return 0;
}
