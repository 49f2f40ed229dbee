#include "tests/unit/t.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "core/base/os.h"

static int ends[2];

static void print_called(void)
{
	if (write(ends[1], "!", 1) != 1)
		_exit(9);
}

/* Returns the exit status of a process that receives the signal, or 7 if the process survives. Sets
 * `*called` to true if the handler ran. */
static int status_after(int number, void (*before)(int), bool is_held, bool *called)
{
	int status;
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		signal(number, before);
		os_on_interrupt(print_called);
		os_hold_interrupt(is_held);
		raise(number);
		_exit(is_held && !os_was_interrupted() ? 8 : 7);
	}
	close(ends[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	*called = read(ends[0], &byte, 1) == 1;
	close(ends[0]);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(test_signals_end_process_but_what_was_ignored_or_is_held_does_not)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	bool called;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		assert_int_equal(status_after(numbers[i], SIG_DFL, false, &called), 2);
		assert_true(called);
		assert_int_equal(status_after(numbers[i], SIG_IGN, false, &called), 7);
		assert_false(called);
	}
	assert_int_equal(status_after(SIGINT, SIG_DFL, true, &called), 7);
	assert_false(called);
	assert_int_equal(status_after(SIGTERM, SIG_DFL, true, &called), 2);
	assert_true(called);
}

/* Starts a process that waits for a very long time. Sends it a SIGINT or writes to the pipe on
 * which it waits. Returns the process's exit status: 3 for the interrupt, 4 for the pipe. */
static int status_of_wait(bool is_interrupt)
{
	int status, told[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pipe(told), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		intptr_t handle = told[0];

		signal(SIGINT, SIG_DFL); /* the parent may ignore the signal */
		os_on_interrupt(print_called);
		os_hold_interrupt(true);
		print_called();
		os_wait(INT64_MAX, &handle, 1);
		_exit(os_was_interrupted() ? 3 : read(told[0], &byte, 1) == 1 ? 4 : 5);
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	if (is_interrupt)
		assert_int_equal(kill(pid, SIGINT), 0);
	else
		assert_int_equal(write(told[1], "!", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	for (size_t i = 0; i < 2; i++) {
		close(ends[i]);
		close(told[i]);
	}
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(test_wait_is_ended_by_interrupt_or_what_is_waited_for)
{
	assert_int_equal(status_of_wait(true), 3);
	assert_int_equal(status_of_wait(false), 4);
}

TEST(test_wait_until_then_is_none)
{
	int64_t from = os_clock_ms();

	os_wait(from, NULL, 0);
	os_wait(INT64_MIN + 1, NULL, 0);
	do
		os_wait(from + 20, NULL, 0);
	while (os_clock_ms() < from + 20);
	assert_true(os_clock_ms() - from >= 20);
}

static void run_out(void *ctx, unsigned number)
{
	(void)ctx;
	(void)number;
	memory_out();
}

TEST(test_threads_that_run_out_of_memory_together_report_it_once)
{
	for (int i = 0; i < 100; i++) {
		char text[1000];
		size_t len = 0;
		ssize_t got;
		int status;
		pid_t pid;

		assert_int_equal(pipe(ends), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (!pid) {
			dup2(ends[1], STDERR_FILENO);
			thread_run(8, run_out, NULL);
			_exit(9);
		}
		close(ends[1]);
		while ((got = read(ends[0], text + len, sizeof(text) - 1 - len)) > 0)
			len += (size_t)got;
		text[len] = '\0';
		close(ends[0]);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 2);
		assert_non_null(strchr(text, '\n'));
		assert_string_equal(strchr(text, '\n'), "\n");
	}
}
