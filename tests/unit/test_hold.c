/* In what order a process is cloned, suspended and let go, and what is left when a step fails: with
 * made calls of the system, each of which writes down one letter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "snapshot/live/hold.h"

struct world {
	struct hold hold;
	char log[200];
	bool capture_fails, clone_fails;
	long suspend_status;
	int process, snapshot, clone; /* their addresses are the handles */
	int snapshots, clones, suspended, armed; /* open or in force now */
	int ends_in; /* hold_end() on another thread: during this call from now on; 0: never */
};

static struct world *world;

static void note(char letter)
{
	size_t len = strlen(world->log);

	assert_true(len + 1 < sizeof(world->log));
	world->log[len] = letter;
	if (world->ends_in && !--world->ends_in)
		hold_end(&world->hold);
}

static bool capture(void *process, void **snapshot)
{
	assert_ptr_equal(process, &world->process);
	note('c');
	if (world->capture_fails)
		return false;
	world->snapshots++;
	*snapshot = &world->snapshot;
	return true;
}

static bool clone(void *snapshot, void **process)
{
	assert_ptr_equal(snapshot, &world->snapshot);
	note('q');
	if (world->clone_fails)
		return false;
	world->clones++;
	*process = &world->clone;
	return true;
}

static void end_clone(void *process)
{
	assert_ptr_equal(process, &world->clone);
	assert_int_equal(world->snapshots, 1); /* whose handle it is */
	note('e');
	world->clones--;
}

static void free_snapshot(void *snapshot)
{
	assert_ptr_equal(snapshot, &world->snapshot);
	note('f');
	world->snapshots--;
}

static long suspend(void *process)
{
	assert_ptr_equal(process, &world->process);
	assert_int_equal(world->armed, 1);
	note('s');
	if (world->suspend_status >= 0)
		world->suspended++;
	return world->suspend_status;
}

static void resume(void *process)
{
	assert_ptr_equal(process, &world->process);
	assert_int_equal(world->armed, 1);
	note('r');
	world->suspended--;
}

static void arm(void *ctx)
{
	assert_ptr_equal(ctx, world);
	note('a');
	world->armed++;
}

static void disarm(void *ctx)
{
	assert_ptr_equal(ctx, world);
	note('d');
	world->armed--;
}

static const struct hold_calls with_clones = {
	capture, clone, end_clone, free_snapshot, suspend, resume, arm, disarm};
static const struct hold_calls without_clones = {
	NULL, NULL, end_clone, free_snapshot, suspend, resume, arm, disarm};

static void begin(struct world *fresh, const struct hold_calls *calls)
{
	world = fresh;
	hold_init(&fresh->hold, calls, &fresh->process, fresh);
	assert_ptr_equal(atomic_load(&fresh->hold.reader), &fresh->process);
}

static void check_nothing_left(const char *log)
{
	assert_string_equal(world->log, log);
	assert_int_equal(world->snapshots, 0);
	assert_int_equal(world->clones, 0);
	assert_int_equal(world->suspended, 0);
	assert_int_equal(world->armed, 0);
	assert_false(hold_is_cloned(&world->hold));
	assert_ptr_equal(atomic_load(&world->hold.reader), &world->process);
}

static void a_clone_is_read_and_then_ended(void **state)
{
	struct world fresh = {0};

	(void)state;
	begin(&fresh, &with_clones);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(hold_start(&fresh.hold), 0);
		assert_true(hold_is_cloned(&fresh.hold));
		assert_ptr_equal(atomic_load(&fresh.hold.reader), &fresh.clone);
		assert_int_equal(fresh.suspended, 0);
		hold_end(&fresh.hold);
	}
	hold_end(&fresh.hold);
	check_nothing_left("cqefcqef");
}

static void without_clones_the_process_is_suspended(void **state)
{
	struct world fresh = {0};

	(void)state;
	begin(&fresh, &without_clones);
	assert_int_equal(hold_start(&fresh.hold), 0);
	assert_false(hold_is_cloned(&fresh.hold));
	assert_ptr_equal(atomic_load(&fresh.hold.reader), &fresh.process);
	assert_int_equal(fresh.suspended, 1);
	hold_end(&fresh.hold);
	hold_end(&fresh.hold);
	check_nothing_left("asrd");
}

static void a_clone_that_fails_is_tried_once(void **state)
{
	struct world fresh = {.capture_fails = true};

	(void)state;
	begin(&fresh, &with_clones);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(hold_start(&fresh.hold), 0);
		assert_int_equal(fresh.suspended, 1);
		hold_end(&fresh.hold);
	}
	check_nothing_left("casrdasrd");
}

static void a_snapshot_without_a_clone_is_freed(void **state)
{
	struct world fresh = {.clone_fails = true};

	(void)state;
	begin(&fresh, &with_clones);
	assert_int_equal(hold_start(&fresh.hold), 0);
	assert_int_equal(fresh.snapshots, 0);
	assert_int_equal(fresh.suspended, 1);
	hold_end(&fresh.hold);
	check_nothing_left("cqfasrd");
}

static void a_process_that_cannot_be_suspended_is_not_guarded(void **state)
{
	struct world fresh = {.capture_fails = true, .suspend_status = -5};

	(void)state;
	begin(&fresh, &with_clones);
	assert_int_equal(hold_start(&fresh.hold), -5);
	check_nothing_left("casd");
	hold_end(&fresh.hold);
	check_nothing_left("casd");
}

static void starting_twice_leaves_nothing_behind(void **state)
{
	struct world fresh = {0}, other = {0};

	(void)state;
	begin(&fresh, &with_clones);
	hold_start(&fresh.hold);
	hold_start(&fresh.hold);
	hold_end(&fresh.hold);
	check_nothing_left("cqefcqef");
	begin(&other, &without_clones);
	hold_start(&other.hold);
	hold_start(&other.hold);
	hold_end(&other.hold);
	check_nothing_left("asrdasrd");
}

/* An interrupt ends what is held while any call of the first's is under way: nothing is ended twice,
 * and the second hold_end() finds nothing left. */
static void an_interrupt_during_any_call_ends_things_once(void **state)
{
	(void)state;
	for (int during = 1; during <= 8; during++) {
		struct world fresh = {.ends_in = during}, other = {.ends_in = during};

		begin(&fresh, &with_clones);
		hold_start(&fresh.hold);
		hold_end(&fresh.hold);
		check_nothing_left("cqef");
		begin(&other, &without_clones);
		hold_start(&other.hold);
		hold_end(&other.hold);
		check_nothing_left("asrd");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_clone_is_read_and_then_ended),
		cmocka_unit_test(without_clones_the_process_is_suspended),
		cmocka_unit_test(a_clone_that_fails_is_tried_once),
		cmocka_unit_test(a_snapshot_without_a_clone_is_freed),
		cmocka_unit_test(a_process_that_cannot_be_suspended_is_not_guarded),
		cmocka_unit_test(starting_twice_leaves_nothing_behind),
		cmocka_unit_test(an_interrupt_during_any_call_ends_things_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
