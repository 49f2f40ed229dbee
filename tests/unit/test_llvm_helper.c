#include "tests/unit/test_symbolize.h"

#define SHORT_MS 300 /* for an answer that must not come; a busy machine takes seconds to answer */
#define HANG_MS 3000 /* for a helper that answers and then hangs */
#define LONG_MS 60000

/* Writes a shell script named llvm-symbolizer. For each request line ($line), the script can print
 * $(answer NAME). The last request line for each module is about an address beyond all others. */
static void fake_llvm(const char *script)
{
	static const char head[] =
		"#!/bin/sh\n"
		"answer() { printf '%s\\n%s\\n  Filename: s.c\\n  Line: 7\\n  Column: 0\\n\\n' "
		"\"${line##* }\" \"$1\"; }\n";
	char text[2000], path[4096];

	snprintf(text, sizeof(text), "%s%s", head, script);
	scratch_write("bin/llvm-symbolizer", text, 0755);
	snprintf(path, sizeof(path), "%s/bin:%s", dir, old_path);
	setenv("PATH", path, 1);
}

static int no_fake_llvm(void **state)
{
	char path[400];

	setenv("PATH", old_path, 1);
	snprintf(path, sizeof(path), "%s/bin/llvm-symbolizer", dir);
	unlink(path);
	return stop(state);
}

#undef TEST_AROUND
#define TEST_AROUND NULL, no_fake_llvm

/* Requests the names of the calls in hidden() and api(), in order of address, from a fake helper.
 * Returns true if the request reported an error. */
static bool ask_fake(const char *script, unsigned patience_ms, char names[2][100])
{
	struct symbol_options options = {.patience_ms = patience_ms, .no_cache = true};
	struct symbol_query queries[] = {{.addr = BASE + hidden_return, .module = &module},
		{.addr = BASE + api_return, .module = &module}};
	bool is_trouble;

	assert_true(hidden_return < api_return);
	start(&options);
	fake_llvm(script);
	symbolizer_resolve(symbolizer, queries, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(queries[i].found.count, 1);
		snprintf(names[i], 100, "%s", queries[i].found.list[0].function);
	}
	is_trouble = symbolizer_trouble(symbolizer) != NULL;
	stop(NULL);
	return is_trouble;
}

static void check_fake(const char *script, unsigned patience_ms, const char *in_hidden,
	const char *in_api, bool is_trouble)
{
	char names[2][100];

	assert_int_equal(ask_fake(script, patience_ms, names), is_trouble);
	assert_string_equal(names[0], in_hidden);
	assert_string_equal(names[1], in_api);
}

TEST(test_answers_go_to_questions_they_answer)
{
	static const char swapped[] = "read -r first\nread -r line\nanswer f2\nline=$first\n"
				      "answer f1\nread -r line\n";
	static const char other[] = "while read -r line; do line=\"${line}0\"; answer f; done\n";
	static const char late[] = "read -r line\nanswer f1\nread -r line\nanswer f2\n"
				   "read -r line\nline='0x1'\nanswer f3\nread -r line\n";
	static const char twice[] = "while read -r line; do answer f1; answer f2; done\n";

	need_exe();
	check_fake(swapped, SHORT_MS, "hidden", "api", true);
	check_fake(other, SHORT_MS, "hidden", "api", true);
	check_fake(twice, HANG_MS, "f1", "api", true);
	check_fake(late, LONG_MS, "f1", "f2", false);
}

/* If the helper dies on an address, hsym asks a new helper without inlined functions. For an image,
 * the new answer would have the inlined function's line, so hsym shows no line and does not use the
 * name. */
TEST(test_one_that_dies_on_address_answers_all_others)
{
	static const char script[] = "while read -r line; do case $line in *0x%x)\n"
				     "case $* in *--no-inlines*) %s;; esac; exit 1;; esac\n"
				     "answer f; done\n";
	char text[400];

	need_exe();
	snprintf(text, sizeof(text), script, hidden_return - 1, "answer plain; continue");
	check_fake(text, LONG_MS, "hidden", "f", false);
	snprintf(text, sizeof(text), script, hidden_return - 1, "exit 1");
	check_fake(text, LONG_MS, "hidden", "f", true);
	snprintf(text, sizeof(text), script, api_return - 1, "exit 1");
	check_fake(text, LONG_MS, "f", "api", true);
}

#define MANY 5000

/* Requests many addresses from a helper that answers with the address, and checks each answer. The
 * helper dies on addresses that match the shell pattern `dying`. Returns the number of unanswered
 * addresses, including these. */
static size_t ask_many(const char *dying)
{
	struct symbol_options options = {.patience_ms = LONG_MS, .no_cache = true};
	struct symbol_query *queries = calloc(MANY, sizeof(*queries));
	char text[400], name[40];
	size_t without = 0;

	assert_non_null(queries);
	start(&options);
	snprintf(text, sizeof(text),
		"while read -r line; do case $line in %s) exit 1;; esac; answer \"f${line##*0x}\"; "
		"done\n",
		dying);
	fake_llvm(text);
	for (size_t i = 0; i < MANY; i++)
		queries[i] = (struct symbol_query){.addr = BASE + 0x1000 + i, .module = &module};
	symbolizer_resolve(symbolizer, queries, MANY);
	for (size_t i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "f%zx", 0x1000 + i - 1);
		if (queries[i].found.count && queries[i].found.list[0].function[0] == 'f' &&
			queries[i].found.list[0].line == 7)
			assert_string_equal(queries[i].found.list[0].function, name);
		else
			without++;
	}
	stop(NULL);
	free(queries);
	return without;
}

TEST(test_many_are_asked_side_by_side)
{
	need_exe();
	assert_int_equal(ask_many("nothing"), 0);
	assert_int_equal(ask_many("*0x1002"), 1);
	assert_int_equal(ask_many("*0x1[28]ff"), 2);
	assert_int_equal(ask_many("*"), MANY);
}

/* A single byte now and then does not count as progress; a whole answer does. */
TEST(test_helper_that_hangs_is_given_up)
{
	int64_t start;

	need_exe();
	start = os_time_ms();
	check_fake("exec sleep 30\n", SHORT_MS, "hidden", "api", true);
	check_fake("while printf x; do sleep 0.05; done\n", SHORT_MS, "hidden", "api", true);
	check_fake("while echo x; do sleep 0.05; done\n", SHORT_MS, "hidden", "api", true);
	check_fake("read -r line; answer f1; exec sleep 30\n", HANG_MS, "f1", "api", true);
	assert_true(os_time_ms() - start < 20000);
	check_fake("while read -r line; do sleep 1.7; answer f$((n += 1)); done\n", HANG_MS, "f1",
		"f2", false);
}

/* Writes a helper that reports its start through a pipe. Afterwards only the helper has the writing
 * end open, as descriptor 9. *from is the reading end. */
static void fake_with_pipe(const char *script, int *from)
{
	int ends[2];

	fake_llvm(script);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(dup2(ends[1], 9), 9);
	close(ends[1]);
	*from = ends[0];
}

static void expect_its_end(int from)
{
	struct pollfd poller = {.fd = from, .events = POLLIN};
	char byte;

	assert_int_equal(poll(&poller, 1, 10000), 1);
	assert_int_equal(read(from, &byte, 1), 0);
	close(from);
}

TEST(test_no_helper_outlives_us)
{
	char byte;
	int from;
	pid_t us;

	need_exe();
	fake_with_pipe("echo >&9\nexec sleep 30\n", &from);
	us = fork();
	assert_true(us >= 0);
	if (!us) {
		start(NULL);
		ask(&module, api_return);
		_exit(0);
	}
	close(9);
	assert_int_equal(read(from, &byte, 1), 1);
	kill(us, SIGKILL);
	assert_int_equal(waitpid(us, NULL, 0), us);
	expect_its_end(from);
}

TEST(test_what_helper_started_ends_with_it)
{
	static const struct symbol_options options = {.patience_ms = HANG_MS, .no_cache = true};
	char byte;
	int from;

	need_exe();
	fake_with_pipe("echo >&9\nsleep 30\n", &from);
	start(&options);
	ask(&module, api_return);
	stop(NULL);
	close(9);
	assert_int_equal(read(from, &byte, 1), 1);
	expect_its_end(from);
}

static void check_path_asked(const char *path)
{
	struct module odd = module;
	struct symbols found;

	odd.path = (char *)(uintptr_t)path;
	start(NULL);
	found = ask(&odd, api_return);
	assert_int_equal(found.count, 1);
	assert_string_equal(found.list[0].function, "same");
	assert_int_equal(found.list[0].line, 7);
}

/* Makes nested folders until the path of a link to exe is longer than a request may be. */
static void make_deep(char *path, char *to, size_t size)
{
	char name[201];

	memset(name, 'd', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	snprintf(path, size, "C:");
	snprintf(to, size, "%s/drive_c", dir);
	for (int i = 0; i < 6; i++) {
		snprintf(path + strlen(path), size - strlen(path), "\\%s", name);
		snprintf(to + strlen(to), size - strlen(to), "/%s", name);
		assert_int_equal(mkdir(to, 0755), 0);
	}
	snprintf(path + strlen(path), size - strlen(path), "\\deep.exe");
	snprintf(to + strlen(to), size - strlen(to), "/deep.exe");
	assert_int_equal(symlink(exe, to), 0);
}

/* The helper reads short lines with quoted paths, so an unusual path could inject requests. hsym
 * requests such a file by another name. */
TEST(test_paths_that_cannot_be_asked_for_are_asked_by_another_name)
{
	static const char *const names[] = {"a\"b", "a\nb", "a\rb", "a b", "\xc3\xa4"};
	char path[2000], to[2000], script[1500];

	need_exe();
	snprintf(script, sizeof(script),
		"while read -r line; do path=${line#*\\\"}; cmp -s \"${path%%\\\"*}\" '%s' && "
		"answer same || answer other; done\n",
		exe);
	fake_llvm(script);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "C:\\%s", names[i]);
		snprintf(to, sizeof(to), "%s/drive_c/%s", dir, names[i]);
		assert_int_equal(symlink("Mixed Case/App.exe", to), 0);
		check_path_asked(path);
		unlink(to);
	}
	make_deep(path, to, sizeof(path));
	check_path_asked(path);
}

TEST(test_one_file_is_asked_once_however_its_path_is_spelled)
{
	struct module other = module;

	need_exe();
	other.path = "C:/mixed case\\APP.exe";
	start(NULL);
	assert_ptr_equal(ask(&module, api_return).list, ask(&other, api_return).list);
	assert_true(sizeof(struct sym_module) < 256); /* every module has one */
}

TEST(test_control_characters_of_names_are_made_harmless)
{
	char names[2][100];

	need_exe();
	ask_fake("while read -r line; do answer \"$(printf 'a\\033\\302\\233b\\177')\"; done\n",
		LONG_MS, names);
	assert_string_equal(names[0], "a???b?");
}

/* A name without a line is not used if another function lies between the name and the address. */
static const char far[] = "while read -r line; do answer far | sed 's/Line: 7/Line: 0/; "
			  "s/  Column: 0/  Function start address: 0x1/'; done\n";

TEST(test_bad_llvm_symbolizer_harms_nothing)
{
	const char *const bad[] = {"exit 1\n", "read -r line\nanswer x | head -2\nexit 0\n",
		"while read -r line; do echo ${line##* }; echo; done\n",
		"while read -r line; do echo '  Filename: x'; done\n",
		"while read -r line; do echo nonsense; echo; done\n", "yes\n",
		"yes xxxxxxxxxxxxxxxx | tr -d '\\n'\n"};

	need_exe();
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		check_fake(bad[i], SHORT_MS, "hidden", "api", true);
	check_fake(far, LONG_MS, "hidden", "api", false);
}

TEST(test_name_that_looks_like_answers_is_that_of_its_file_alone)
{
	static const char forged[] =
		"while read -r line; do case $line in *forged*)\n"
		"answer \"$(printf 'a\\n\\n0x%x\\nforged\\n  Filename: f\\n  Line: 1\\n\\n')\";;\n"
		"*) answer true;; esac; done\n";
	struct symbol_query queries[2];
	struct module other = module;
	char to[400];

	need_exe();
	snprintf(to, sizeof(to), "%s/drive_c/forged.exe", dir);
	assert_int_equal(symlink("Mixed Case/App.exe", to), 0);
	other.path = (char[]){"C:\\forged.exe"};
	fake_llvm(forged);
	start(NULL);
	queries[0] = (struct symbol_query){.addr = BASE + api_return, .module = &other};
	queries[1] = (struct symbol_query){.addr = BASE + api_return, .module = &module};
	symbolizer_resolve(symbolizer, queries, 2);
	assert_string_equal(queries[0].found.list[0].function, "api");
	assert_string_equal(queries[1].found.list[0].function, "true");
	unlink(to);
}

/* Requests `count` modules. The helper dies on module number `bad` and all later ones. Returns how
 * often a helper was started. */
static size_t count_starts(size_t count, size_t bad, const char *script, unsigned patience_ms)
{
	struct symbol_options options = {.patience_ms = patience_ms, .no_cache = true};
	struct module modules[8];
	struct symbol_query queries[8];
	char paths[8][40], text[1000], *lines;
	size_t starts;

	start(&options);
	snprintf(text, sizeof(text), "echo >>'%s'/starts\n%s", dir, script);
	fake_llvm(text);
	for (size_t i = 0; i < count; i++) {
		snprintf(paths[i], sizeof(paths[i]), "C:\\%s%zu.exe", i < bad ? "good" : "bad", i);
		snprintf(text, sizeof(text), "%s/drive_c/%s", dir, paths[i] + 3);
		assert_int_equal(symlink("Mixed Case/App.exe", text), 0);
		modules[i] = module;
		modules[i].path = paths[i];
		queries[i] =
			(struct symbol_query){.addr = BASE + api_return, .module = &modules[i]};
	}
	symbolizer_resolve(symbolizer, queries, count);
	for (size_t i = 0; i < count; i++) {
		assert_string_equal(queries[i].found.list[0].function, i < bad ? "f" : "api");
		snprintf(text, sizeof(text), "%s/drive_c/%s", dir, paths[i] + 3);
		unlink(text);
	}
	assert_int_equal(symbolizer_trouble(symbolizer) != NULL, bad < count);
	stop(NULL);
	snprintf(text, sizeof(text), "%s/starts", dir);
	lines = file_get(text, &starts); /* each start writes one line feed */
	free(lines);
	unlink(text);
	return starts;
}

TEST(test_one_helper_serves_all_and_one_that_dies_is_replaced)
{
	static const char dies[] =
		"while read -r line; do case $line in */bad*) exit 1;; *) answer f;; esac; done\n";
	static const char hangs[] = "while read -r line; do case $line in */bad*) exec sleep 30;; "
				    "*) answer f;; esac; done\n";

	need_exe();
	assert_int_equal(count_starts(8, 8, dies, LONG_MS), 1);
	/* one helper dies, and another starts for the address on which the first died */
	assert_int_equal(count_starts(2, 1, dies, LONG_MS), 2);
	assert_int_equal(count_starts(3, 1, dies, LONG_MS), 4);
	assert_int_equal(count_starts(8, 1, dies, LONG_MS), 5);
	assert_int_equal(count_starts(8, 2, hangs, HANG_MS), 1);
}

struct told {
	unsigned asked, told, last_done, total;
	unsigned stop_at;
};

static void take_progress(void *ctx, const char *name, size_t done, size_t total)
{
	struct told *told = ctx;

	assert_string_equal(name, "APP.exe");
	told->told++;
	told->last_done = (unsigned)done;
	told->total = (unsigned)total;
}

static bool stop_now(void *ctx)
{
	struct told *told = ctx;

	return ++told->asked >= told->stop_at;
}

/* hsym calls the listener during a silent wait. The listener can stop the wait; names received
 * before stay. */
TEST(test_listener_can_stop_it)
{
	struct told told = {.stop_at = 5};
	const struct symbol_options options = {.no_cache = true,
		.listener = {.ctx = &told, .progress = take_progress, .is_cancelled = stop_now}};
	struct symbol_query queries[] = {{.addr = BASE + hidden_return, .module = &module},
		{.addr = BASE + api_return, .module = &module}};

	need_exe();
	fake_llvm("read -r line; answer f1; exec sleep 60\n");
	start(&options);
	symbolizer_resolve(symbolizer, queries, 2);
	assert_string_equal(queries[0].found.list[0].function, "f1");
	assert_true(told.asked >= told.stop_at && told.asked < 30);
	assert_true(told.told > 1);
	assert_int_equal(told.total, 2);
	assert_null(symbolizer_trouble(symbolizer));
	stop(NULL);
}

TEST(test_missing_helper_is_reported)
{
	struct symbol_status story;

	need_exe();
	setenv("HSYM_LLVM", "llvm-symbolizer", 1); /* not a full path */
	start(NULL);
	assert_string_equal(ask(&module, api_return).list[0].function, "api");
	symbolizer_explain(symbolizer, &module, &story);
	assert_non_null(strstr(story.reason, "HSYM_LLVM is not the full path of a program"));
	assert_null(symbolizer_trouble(symbolizer));
	unsetenv("HSYM_LLVM");
	setenv("PATH", "bin:/nowhere:", 1); /* the current folder is not searched */
	start(NULL);
	ask(&module, api_return);
	ask(&module, hidden_return);
	symbolizer_explain(symbolizer, &module, &story);
	assert_non_null(strstr(story.reason, "llvm-symbolizer is not installed"));
	assert_null(strstr(strstr(story.reason, "not installed") + 1, "not installed"));
	setenv("PATH", old_path, 1);
}

/* Requests names with these options. The helper answers with its own path and arguments. */
static void ask_how(const struct symbol_options *options, char *name, size_t size)
{
	start(options);
	snprintf(name, size, "%s", ask(&module, api_return).list[0].function);
}

TEST(test_which_program_is_started_and_how)
{
	static const char *const others[] = {
		"llvm-symbolizer-12", "llvm-symbolizer-14", "llvm-symbolizer-16", "named"};
	static const char script[] =
		"#!/bin/sh\nwhile read -r line; do printf '%s\\n%s\\n"
		"  Filename: s.c\\n  Line: 7\\n\\n' \"${line##* }\" \"$0 $*\"; "
		"done\n";
	struct symbol_options options = {.no_demangle = true, .no_cache = true};
	char name[1000], path[400];

	need_exe();
	fake_llvm("");
	scratch_write("bin/llvm-symbolizer", script, 0755);
	ask_how(NULL, name, sizeof(name));
	assert_non_null(strstr(name, "bin/llvm-symbolizer "));
	assert_non_null(strstr(name, " --demangle "));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		snprintf(path, sizeof(path), "bin/%s", others[i]);
		scratch_write(path, script, 0755);
	}
	ask_how(&options, name, sizeof(name));
	assert_non_null(strstr(name, "bin/llvm-symbolizer-16 "));
	assert_non_null(strstr(name, " --no-demangle "));
	snprintf(path, sizeof(path), "%s/bin/named", dir);
	setenv("HSYM_LLVM", path, 1);
	ask_how(NULL, name, sizeof(name));
	stop(NULL);
	assert_non_null(strstr(name, "bin/named "));
	unsetenv("HSYM_LLVM");
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		snprintf(path, sizeof(path), "%s/bin/%s", dir, others[i]);
		unlink(path);
	}
}

GROUP(build, clean)
