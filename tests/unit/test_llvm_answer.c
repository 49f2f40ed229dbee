/* The answers of llvm-symbolizer: taken apart when they are whole, harmless when they are not. */
#include "tests/unit/t.h"

#include "symbolize/backend/llvm.h"

static const char answer[] = "inner<int>\n"
			     "  Filename: /s\xc3\xa4.c\n"
			     "  Function start filename: /s.c\n"
			     "  Function start line: 4\n"
			     "  Line: 11\n"
			     "  Column: 9\n"
			     "  Discriminator: 2\n"
			     "api\n"
			     "  Filename: ??\n"
			     "  Function start address: 0x1400015b0\n"
			     "  Line: 0\n"
			     "  Column: 0\n"
			     "\n";

/* An answer without a name, and one within a function without one. */
static const char nameless[] = "\n  Filename: ??\n  Line: 0\n  Column: 0\n\n";
static const char within[] = "f\n  Filename: a\n  Line: 3\n\n  Filename: ??\n  Line: 0\n\n";

TEST(test_an_answer_is_taken_apart)
{
	struct llvm_frame frames[2];
	char text[sizeof(answer)];

	memcpy(text, answer, sizeof(answer));
	assert_int_equal(llvm_answer_parse(text, strlen(text), frames, 2), 2);
	assert_string_equal(frames[0].function, "inner<int>");
	assert_string_equal(frames[0].file, "/s\xc3\xa4.c");
	assert_int_equal(frames[0].line, 11);
	assert_int_equal(frames[0].start, 0);
	assert_string_equal(frames[1].function, "api");
	assert_string_equal(frames[1].file, "");
	assert_int_equal(frames[1].line, 0);
	assert_int_equal(frames[1].start, 0x1400015b0);
	memcpy(text, answer, sizeof(answer));
	assert_int_equal(llvm_answer_parse(text, strlen(text), frames, 1), 1);
	assert_string_equal(frames[0].function, "api");
}

TEST(test_what_has_no_name_has_none)
{
	static const char unknown[] = "??\n  Filename: ??\n  Line: 0\n\n";
	struct llvm_frame frames[3];
	char text[100];

	snprintf(text, sizeof(text), "%s", nameless);
	assert_int_equal(llvm_answer_parse(text, strlen(text), frames, 3), 1);
	assert_string_equal(frames[0].function, "");
	snprintf(text, sizeof(text), "%s", unknown);
	assert_int_equal(llvm_answer_parse(text, strlen(text), frames, 3), 1);
	assert_string_equal(frames[0].function, "");
	snprintf(text, sizeof(text), "%s", within);
	assert_int_equal(llvm_answer_parse(text, strlen(text), frames, 3), 2);
	assert_string_equal(frames[0].function, "f");
	assert_string_equal(frames[1].function, "");
}

/* Wherever it is cut, and however far it was looked at: the end is where it is. */
TEST(test_the_end_of_an_answer_is_found)
{
	static const char *const answers[] = {answer, nameless, within};

	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
		char text[1000];
		size_t len = strlen(answers[i]), searched = 0, once;

		snprintf(text, sizeof(text), "%s0x12\nf\n", answers[i]);
		for (size_t part = 0; part < len; part++) {
			/* Cut behind an empty name: it looks like an end, and what follows tells. */
			if (part && text[part - 1] == '\n' && text[part] == ' ' && part > 1 &&
				text[part - 2] == '\n')
				continue;
			assert_int_equal(llvm_answer_length(text, part, &searched), 0);
			assert_true(searched <= part);
		}
		assert_int_equal(llvm_answer_length(text, len, &searched), len);
		for (size_t part = len; part <= strlen(text); part++) {
			once = 0;
			assert_int_equal(llvm_answer_length(text, part, &once), len);
		}
	}
}

TEST(test_an_address_is_known)
{
	static const char *const others[] = {"", "0x", "x12", "0x12g", "0x 12", "12", "f",
		"0x12345678901234567", "0x1234567890123456789012345678901234567890"};
	uint64_t addr = 0;

	assert_true(llvm_answer_address("0x15bd\nnot this", 6, &addr));
	assert_int_equal(addr, 0x15bd);
	assert_true(llvm_answer_address("0xffffffffffffffff", 18, &addr));
	assert_int_equal(addr, UINT64_MAX);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_false(llvm_answer_address(others[i], strlen(others[i]), &addr));
	assert_true(llvm_answer_continues("  Filename: x", 13));
	assert_false(llvm_answer_continues("  Filename: x", 11));
	assert_false(llvm_answer_continues("  Line: 10000000", 16));
}

TEST(test_what_is_no_answer_gives_nothing)
{
	static const char *const texts[] = {"", "\n", "\n\n", "f\n\n", "f\n  Line: 3\n\n",
		"  Filename: a\n\n", "f\n  Filename: a\n", "f\n  Filename: a\ng\n\n",
		"f\ng\n  Filename: a\n\n", "f\n  Filename: a\n  Line: 3"};
	struct llvm_frame frames[3];
	char text[100];

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		snprintf(text, sizeof(text), "%s", texts[i]);
		assert_int_equal(llvm_answer_parse(text, strlen(text), frames, 3), 0);
	}
	snprintf(text, sizeof(text), "f\n  Filename: a\n  Line: 99999999999\n\n");
	assert_int_equal(llvm_answer_parse(text, strlen(text), frames, 3), 1);
	assert_int_equal(frames[0].line, 0);
}

TEST(test_cut_and_damaged_answers_give_nothing_or_something_sound)
{
	struct llvm_frame frames[2];
	uint64_t random = 7;

	for (int round = 0; round < 20000; round++) {
		size_t len = round % 2 ? sizeof(answer) - 1 : (size_t)(round / 2) % sizeof(answer);
		char *text = malloc(len ? len : 1);
		size_t count, searched = 0;

		memcpy(text, answer, len);
		for (int i = 0; i < 3 && len; i++) {
			random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
			text[(size_t)(random >> 33) % len] = (char)(random >> 56);
		}
		assert_true(llvm_answer_length(text, len, &searched) <= len);
		count = llvm_answer_parse(text, len, frames, 2);
		for (size_t i = 0; i < count; i++)
			assert_true(strlen(frames[i].function) < sizeof(answer) &&
				    strlen(frames[i].file) < sizeof(answer));
		free(text);
	}
}
