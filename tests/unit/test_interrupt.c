/* Ctrl-C and its like: the handler is called and the process ends, but not where they are ignored. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/os.h"

static int ends[2];

static void say_called(void)
{
	if (write(ends[1], "!", 1) != 1)
		_exit(9);
}

/* The exit status of a process that gets the signal, which ends with 7 when it survives that; *called:
 * whether its handler was. */
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
		os_on_interrupt(say_called);
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

static void test_signals_end_the_process_in_order(void **state)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	bool called;

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		assert_int_equal(status_after(numbers[i], SIG_DFL, false, &called), 2);
		assert_true(called);
	}
}

static void test_what_was_ignored_stays_so(void **state)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	bool called;

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		assert_int_equal(status_after(numbers[i], SIG_IGN, false, &called), 7);
		assert_false(called);
	}
}

static void test_only_an_interrupt_is_held_back(void **state)
{
	bool called;

	(void)state;
	assert_int_equal(status_after(SIGINT, SIG_DFL, true, &called), 7);
	assert_false(called);
	assert_int_equal(status_after(SIGTERM, SIG_DFL, true, &called), 2);
	assert_true(called);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_signals_end_the_process_in_order),
		cmocka_unit_test(test_what_was_ignored_stays_so),
		cmocka_unit_test(test_only_an_interrupt_is_held_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
