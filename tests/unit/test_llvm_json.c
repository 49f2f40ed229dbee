/* The lines of llvm-symbolizer: taken apart when they are whole, harmless when they are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "symbolize/llvm_json.h"

static const char answer[] =
	"{\"Address\":\"0x15bd\",\"ModuleName\":\"C:\\\\a\",\"Symbol\":[{\"Column\":9,"
	"\"FileName\":\"/s\\u00e4.c\",\"FunctionName\":\"in\\\"ner\",\"Line\":11,"
	"\"Nested\":{\"a\":[1,{}]},\"StartAddress\":\"\"},{\"FileName\":\"\","
	"\"FunctionName\":\"api\",\"Line\":0,\"StartAddress\":\"0x1400015b0\"}]}";

static void test_an_answer_is_taken_apart(void **state)
{
	struct llvm_frame frames[2];
	char line[sizeof(answer)];

	(void)state;
	memcpy(line, answer, sizeof(answer));
	assert_int_equal(llvm_json_parse(line, strlen(line), frames, 2), 2);
	assert_string_equal(frames[0].function, "in\"ner");
	assert_string_equal(frames[0].file, "/s\xc3\xa4.c");
	assert_int_equal(frames[0].line, 11);
	assert_int_equal(frames[0].start, 0);
	assert_string_equal(frames[1].function, "api");
	assert_int_equal(frames[1].start, 0x1400015b0);
	memcpy(line, answer, sizeof(answer));
	assert_int_equal(llvm_json_parse(line, strlen(line), frames, 1), 1);
	assert_string_equal(frames[0].function, "api");
}

static void test_cut_and_damaged_answers_give_nothing_or_something_sound(void **state)
{
	struct llvm_frame frames[2];
	uint64_t random = 7;

	(void)state;
	for (size_t len = 0; len < sizeof(answer) - 2; len++) {
		char *line = malloc(len + 1);

		memcpy(line, answer, len);
		assert_int_equal(llvm_json_parse(line, len, frames, 2), 0);
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
		count = llvm_json_parse(line, sizeof(answer) - 1, frames, 2);
		for (size_t i = 0; i < count; i++)
			assert_true(strlen(frames[i].function) < sizeof(answer));
		free(line);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_answer_is_taken_apart),
		cmocka_unit_test(test_cut_and_damaged_answers_give_nothing_or_something_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
