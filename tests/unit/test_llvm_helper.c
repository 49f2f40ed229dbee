/* What runs as llvm-symbolizer may be slow, broken or another program: names are right or missing. */
#include "tests/unit/test_symbolize.h"

#define SHORT_MS 300

/* A shell script that is called llvm-symbolizer. For each line that asks, $line, it can say
 * $(answer NAME); count is how many were asked. */
static void fake_llvm(const char *script)
{
	static const char head[] =
		"#!/bin/sh\n"
		"answer() { path=${line#CODE }; printf '{\"Address\":\"%s\",\"ModuleName\":%s,"
		"\"Symbol\":[{\"FileName\":\"s.c\",\"FunctionName\":\"%s\",\"Line\":7,"
		"\"StartAddress\":\"\"}]}\\n' \"${line##* }\" \"${path% *}\" \"$1\"; }\n";
	char text[2000], path[4096];

	snprintf(text, sizeof(text), "%s%s", head, script);
	write_file("bin/llvm-symbolizer", text, 0755);
	snprintf(path, sizeof(path), "%s/bin:%s", dir, old_path);
	setenv("PATH", path, 1);
}

static void no_fake_llvm(void)
{
	char path[400];

	setenv("PATH", old_path, 1);
	snprintf(path, sizeof(path), "%s/bin/llvm-symbolizer", dir);
	unlink(path);
}

/* Asks for the calls in hidden() and api(), in that order of address, of a fake helper. Returns
 * whether it gave trouble. */
static bool ask_fake(const char *script, char names[2][100])
{
	struct symbol_options options = {.patience_ms = SHORT_MS, .no_cache = true};
	struct symbolizer *symbolizer = symbolizer_new(&options, NULL);
	struct symbol_query queries[] = {{.addr = BASE + hidden_return, .module = &module},
		{.addr = BASE + api_return, .module = &module}};
	bool is_trouble;
	struct err err;

	assert_true(hidden_return < api_return);
	fake_llvm(script);
	assert_int_equal(symbolizer_resolve(symbolizer, queries, 2, &err), 0);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(queries[i].found.count, 1);
		snprintf(names[i], 100, "%s", queries[i].found.list[0].function);
	}
	is_trouble = symbolizer_trouble(symbolizer) != NULL;
	symbolizer_free(symbolizer);
	no_fake_llvm();
	return is_trouble;
}

static void check_fake(
	const char *script, const char *in_hidden, const char *in_api, bool is_trouble)
{
	char names[2][100];

	assert_int_equal(ask_fake(script, names), is_trouble);
	assert_string_equal(names[0], in_hidden);
	assert_string_equal(names[1], in_api);
}

static void test_answers_go_to_the_questions_they_answer(void **state)
{
	static const char each[] =
		"count=0\nwhile read -r line; do count=$((count + 1)); answer \"f$count\"; done\n";
	static const char stray[] =
		"count=0\necho warning: of a banner\n"
		"while read -r line; do count=$((count + 1)); answer \"f$count\"; done\n";
	static const char swapped[] = "read -r first\nread -r line\nanswer f2\nline=$first\n"
				      "answer f1\nread -r line\n";
	static const char other[] = "while read -r line; do line=\"CODE \\\"/x\\\" ${line##* }\"; "
				    "answer f; done\n";
	static const char twice[] = "while read -r line; do answer f1; answer f2; done\n";

	(void)state;
	need_exe();
	check_fake(each, "f1", "f2", false);
	check_fake(stray, "f1", "f2", false);
	check_fake(swapped, "hidden", "api", true);
	check_fake(other, "hidden", "api", true);
	check_fake(twice, "f1", "api", true);
}

/* A byte now and then is no progress, a whole answer is. */
static void test_a_helper_that_hangs_is_given_up(void **state)
{
	int64_t start;

	(void)state;
	need_exe();
	start = os_time_ms();
	check_fake("exec sleep 30\n", "hidden", "api", true);
	check_fake("while printf x; do sleep 0.05; done\n", "hidden", "api", true);
	check_fake("while echo x; do sleep 0.05; done\n", "hidden", "api", true);
	check_fake("read -r line; answer f1; exec sleep 30\n", "f1", "api", true);
	assert_true(os_time_ms() - start < 20000);
	check_fake("read -r line; sleep 0.2; answer f1; read -r line; sleep 0.2; answer f2\n"
		   "read -r line\n",
		"f1", "f2", false);
}

/* The helper says that it runs to a pipe which nobody else holds open: its end is that of the
 * helper. */
static void test_no_helper_outlives_us(void **state)
{
	struct pollfd poller = {.events = POLLIN};
	int ends[2];
	char byte;
	pid_t us;

	(void)state;
	need_exe();
	fake_llvm("echo >&9\nexec sleep 30\n");
	assert_int_equal(pipe(ends), 0);
	us = fork();
	assert_true(us >= 0);
	if (!us) {
		dup2(ends[1], 9);
		close(ends[1]);
		close(ends[0]);
		ask(symbolizer_new(NULL, NULL), &module, api_return);
		_exit(0);
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	kill(us, SIGKILL);
	assert_int_equal(waitpid(us, NULL, 0), us);
	poller.fd = ends[0];
	assert_int_equal(poll(&poller, 1, 10000), 1);
	assert_int_equal(read(ends[0], &byte, 1), 0);
	close(ends[0]);
	no_fake_llvm();
}

/* The helper's input is lines with the path in quotes: such a path could ask what we did not. */
static void test_paths_that_cannot_be_asked_for_are_not(void **state)
{
	static const char *const names[] = {"a\"b", "a\nb", "a\rb"};
	char path[400], to[800], started[350];

	(void)state;
	need_exe();
	snprintf(started, sizeof(started), "%s/started", dir);
	snprintf(path, sizeof(path), "touch %s\n", started);
	fake_llvm(path);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct module odd = module;

		snprintf(path, sizeof(path), "C:\\%s", names[i]);
		snprintf(to, sizeof(to), "%s/drive_c/%s", dir, names[i]);
		assert_int_equal(symlink("Mixed Case/App.exe", to), 0);
		odd.path = path;
		check_tables(&odd, true);
		unlink(to);
	}
	assert_int_equal(access(started, F_OK), -1);
	check_tables(&module, true);
	assert_int_equal(access(started, F_OK), 0);
	no_fake_llvm();
}

static void test_one_file_is_asked_once_however_its_path_is_spelled(void **state)
{
	struct symbolizer *symbolizer;
	struct module other = module;

	(void)state;
	need_exe();
	other.path = "C:/mixed case\\APP.exe";
	symbolizer = symbolizer_new(NULL, NULL);
	assert_ptr_equal(ask(symbolizer, &module, api_return).list,
		ask(symbolizer, &other, api_return).list);
	symbolizer_free(symbolizer);
	assert_true(sizeof(struct subject) < 256); /* there is one for every module */
}

static void test_control_characters_of_names_are_made_harmless(void **state)
{
	char names[2][100];

	(void)state;
	need_exe();
	ask_fake("while read -r line; do answer 'a\\u001b\\u009bb\\u007f'; done\n", names);
	assert_string_equal(names[0], "a???b?");
}

/* Names alone, without a line, are not believed where another function lies between. */
static const char far[] = "while read -r line; do answer far | sed 's/:7/:0/; s/\"\"/\"0x1\"/'; "
			  "done\n";

/* Programs called llvm-symbolizer that die, answer nonsense or never end their line. */
static void test_a_bad_llvm_symbolizer_harms_nothing(void **state)
{
	const char *const bad[] = {"exit 1\n", "read -r line\necho '{\"Symbol\":[{'\nexit 0\n",
		"while read -r line; do echo '{\"Symbol\":[]}'; done\n",
		"while read -r line; do echo nonsense; echo; done\n", "yes\n",
		"yes xxxxxxxxxxxxxxxx | tr -d '\\n'\n"};

	(void)state;
	need_exe();
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		check_fake(bad[i], "hidden", "api", true);
	check_fake(far, "hidden", "api", false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers_go_to_the_questions_they_answer),
		cmocka_unit_test(test_a_helper_that_hangs_is_given_up),
		cmocka_unit_test(test_no_helper_outlives_us),
		cmocka_unit_test(test_paths_that_cannot_be_asked_for_are_not),
		cmocka_unit_test(test_one_file_is_asked_once_however_its_path_is_spelled),
		cmocka_unit_test(test_control_characters_of_names_are_made_harmless),
		cmocka_unit_test(test_a_bad_llvm_symbolizer_harms_nothing),
	};

	return cmocka_run_group_tests(tests, build, clean);
}
