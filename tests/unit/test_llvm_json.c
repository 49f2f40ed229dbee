/* The lines of llvm-symbolizer: taken apart when they are whole, harmless when they are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "symbolize/backend/llvm_json.h"

static const char answer[] =
	"{\"Address\":\"0x15bd\",\"ModuleName\":\"C:\\\\a\",\"Symbol\":[{\"Column\":9,"
	"\"FileName\":\"/s\\u00e4.c\",\"FunctionName\":\"in\\\"ner\",\"Line\":11,"
	"\"Nested\":{\"a\":[1,{}]},\"StartAddress\":\"\"},{\"FileName\":\"\","
	"\"FunctionName\":\"api\",\"Line\":0,\"StartAddress\":\"0x1400015b0\"}]}";

static void test_an_answer_is_taken_apart(void **state)
{
	struct llvm_frame frames[2];
	struct llvm_question question;
	char line[sizeof(answer)];

	(void)state;
	memcpy(line, answer, sizeof(answer));
	assert_int_equal(llvm_json_parse(line, strlen(line), &question, frames, 2), 2);
	assert_true(question.has_addr);
	assert_int_equal(question.addr, 0x15bd);
	assert_string_equal(question.module, "C:\\a");
	assert_string_equal(frames[0].function, "in\"ner");
	assert_string_equal(frames[0].file, "/s\xc3\xa4.c");
	assert_int_equal(frames[0].line, 11);
	assert_int_equal(frames[0].start, 0);
	assert_string_equal(frames[1].function, "api");
	assert_int_equal(frames[1].start, 0x1400015b0);
	memcpy(line, answer, sizeof(answer));
	assert_int_equal(llvm_json_parse(line, strlen(line), &question, frames, 1), 1);
	assert_string_equal(frames[0].function, "api");
}

static void test_what_is_answered_is_told_even_if_the_answer_is_none(void **state)
{
	static const char *const lines[] = {
		"{\"Address\":\"0x10\",\"Error\":{\"Message\":\"No\"},\"ModuleName\":\"/none\"}",
		"{\"ModuleName\":\"/none\",\"Address\":\"0x10\",\"Symbol\":[{"};
	static const char *const strays[] = {"", "warning: x", "{}", "{\"Symbol\":[]}",
		"{\"Address\":16,\"ModuleName\":\"/none\"}", "{\"Address\":\"16\"}"};
	struct llvm_question question;
	struct llvm_frame frame;
	char line[100];

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		snprintf(line, sizeof(line), "%s", lines[i]);
		assert_int_equal(llvm_json_parse(line, strlen(line), &question, &frame, 1), 0);
		assert_true(question.has_addr);
		assert_int_equal(question.addr, 0x10);
		assert_string_equal(question.module, "/none");
	}
	for (size_t i = 0; i < sizeof(strays) / sizeof(*strays); i++) {
		snprintf(line, sizeof(line), "%s", strays[i]);
		assert_int_equal(llvm_json_parse(line, strlen(line), &question, &frame, 1), 0);
		assert_false(question.has_addr);
	}
}

static void test_cut_and_damaged_answers_give_nothing_or_something_sound(void **state)
{
	struct llvm_frame frames[2];
	struct llvm_question question;
	uint64_t random = 7;

	(void)state;
	for (size_t len = 0; len < sizeof(answer) - 2; len++) {
		char *line = malloc(len + 1);

		memcpy(line, answer, len);
		assert_int_equal(llvm_json_parse(line, len, &question, frames, 2), 0);
		free(line);
	}
	for (int round = 0; round < 20000; round++) {
		char *line = malloc(sizeof(answer) - 1);
		size_t count;

		memcpy(line, answer, sizeof(answer) - 1);
		for (int i = 0; i < 3; i++) {
			random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
			line[(size_t)(random >> 33) % (sizeof(answer) - 1)] = (char)(random >> 56);
		}
		count = llvm_json_parse(line, sizeof(answer) - 1, &question, frames, 2);
		for (size_t i = 0; i < count; i++)
			assert_true(strlen(frames[i].function) < sizeof(answer));
		free(line);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_answer_is_taken_apart),
		cmocka_unit_test(test_what_is_answered_is_told_even_if_the_answer_is_none),
		cmocka_unit_test(test_cut_and_damaged_answers_give_nothing_or_something_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
