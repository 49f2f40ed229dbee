/* The order in which a process is cloned, suspended and released, and the state after a failed
 * step. The system calls are replaced. Each replacement logs one letter. */
#include "tests/unit/t.h"

#include <pthread.h>

#include "snapshot/live/process.h"

struct world {
	struct hold hold;
	char log[200];
	bool capture_fails, clone_fails, looks;
	long suspend_status;
	int process, snapshot, clone; /* their addresses serve as handles */
	int snapshots, clones, suspended, armed; /* number of each that is open or in force */
};

static struct world world[1];

/* Two threads take turns. One thread takes snapshots, the other plays the interrupt. Each system
 * call has two moments, one before and one after its effect. */
static struct {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	pthread_t main, other;
	bool is_mains_turn, other_begun, other_ended;
	int main_moments, other_moments; /* moments until the turn changes; 0: never */
	bool suspended_at_end, armed_at_end; /* states when the interrupt finished */
} turns = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void give_turn(bool to_main)
{
	turns.is_mains_turn = to_main;
	pthread_cond_broadcast(&turns.changed);
	while (turns.is_mains_turn == to_main)
		pthread_cond_wait(&turns.changed, &turns.mutex);
}

static void *interrupt(void *ctx)
{
	pthread_mutex_lock(&turns.mutex);
	while (turns.is_mains_turn)
		pthread_cond_wait(&turns.changed, &turns.mutex);
	hold_interrupt(ctx);
	turns.other_ended = true;
	/* The process ends here: the first thread makes no further calls. */
	turns.suspended_at_end = world->suspended > 0;
	turns.armed_at_end = world->armed > 0;
	turns.is_mains_turn = true;
	pthread_cond_broadcast(&turns.changed);
	pthread_mutex_unlock(&turns.mutex);
	return NULL;
}

static void moment(void)
{
	bool is_main = pthread_equal(pthread_self(), turns.main);
	int *left = is_main ? &turns.main_moments : &turns.other_moments;

	if (!*left || --*left || turns.other_ended)
		return;
	turns.other_begun = true;
	give_turn(!is_main);
}

static void note(char letter)
{
	size_t len = strlen(world->log);

	assert_true(len + 1 < sizeof(world->log));
	world->log[len] = letter;
	moment();
}

static bool capture(void *process, void **snapshot)
{
	assert_ptr_equal(process, &world->process);
	note('c');
	if (world->capture_fails)
		return false;
	world->snapshots++;
	*snapshot = &world->snapshot;
	moment();
	return true;
}

static bool make_clone(void *snapshot, void **process)
{
	assert_ptr_equal(snapshot, &world->snapshot);
	note('q');
	if (world->clone_fails)
		return false;
	world->clones++;
	*process = &world->clone;
	moment();
	return true;
}

static void end_clone(void *process)
{
	assert_ptr_equal(process, &world->clone);
	assert_int_equal(world->snapshots, 1); /* the handle belongs to the snapshot */
	note('e');
	world->clones--;
	moment();
}

static void free_snapshot(void *snapshot)
{
	assert_ptr_equal(snapshot, &world->snapshot);
	note('f');
	world->snapshots--;
	moment();
}

static long suspend(void *process)
{
	assert_ptr_equal(process, &world->process);
	assert_int_equal(world->armed, 1);
	note('s');
	if (world->suspend_status >= 0)
		world->suspended++;
	moment();
	return world->suspend_status;
}

static void resume(void *process)
{
	assert_ptr_equal(process, &world->process);
	assert_int_equal(world->armed, 1);
	note('r');
	world->suspended--;
	moment();
}

static void look(void *ctx)
{
	assert_ptr_equal(ctx, world);
	assert_int_equal(world->armed, 1);
	note('l');
	moment();
}

static void arm(void *ctx)
{
	assert_ptr_equal(ctx, world);
	note('a');
	world->armed++;
	moment();
}

static void disarm(void *ctx)
{
	assert_ptr_equal(ctx, world);
	note('d');
	world->armed--;
	moment();
}

static const struct hold_calls with_clones = {
	capture, make_clone, end_clone, free_snapshot, suspend, resume, look, arm, disarm};
static const struct hold_calls without_clones = {
	NULL, NULL, end_clone, free_snapshot, suspend, resume, look, arm, disarm};

static void begin(struct world fresh, const struct hold_calls *calls)
{
	*world = fresh;
	hold_init(&world->hold, calls, &world->process, world);
	world->hold.looks = fresh.looks;
	assert_ptr_equal(atomic_load(&world->hold.reader), &world->process);
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

TEST(process_is_cloned_or_else_suspended_and_then_let_go)
{
	static const struct {
		struct world world;
		const struct hold_calls *calls;
		bool is_cloned;
		const char *log; /* letters logged during two holds */
	} cases[] = {
		{{.capture_fails = false}, &with_clones, true, "cqefcqef"},
		{{.capture_fails = false}, &without_clones, false, "asrdasrd"},
		/* A failing kind of hold is tried only once. A snapshot without a clone is
		 * freed. */
		{{.capture_fails = true}, &with_clones, false, "casrdasrd"},
		{{.clone_fails = true}, &with_clones, false, "cqfasrdasrd"},
		/* With a callback at the moment of the clone. */
		{{.looks = true}, &with_clones, true, "aslcqrdefaslcqrdef"},
		{{.looks = true}, &without_clones, false, "asrdasrd"},
		{{.looks = true, .capture_fails = true}, &with_clones, false, "aslcrdasrd"},
		{{.looks = true, .clone_fails = true}, &with_clones, false, "aslcqfrdasrd"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		bool is_cloned = cases[i].is_cloned;

		begin(cases[i].world, cases[i].calls);
		for (int k = 0; k < 2; k++) {
			assert_int_equal(hold_start(&world->hold), 0);
			assert_int_equal(hold_is_cloned(&world->hold), is_cloned);
			assert_ptr_equal(atomic_load(&world->hold.reader),
				is_cloned ? &world->clone : &world->process);
			assert_int_equal(world->suspended, !is_cloned);
			assert_int_equal(world->snapshots, is_cloned);
			hold_end(&world->hold);
		}
		hold_end(&world->hold);
		check_nothing_left(cases[i].log);
	}
}

TEST(process_that_cannot_be_suspended_is_not_guarded)
{
	begin((struct world){.capture_fails = true, .suspend_status = -5}, &with_clones);
	assert_int_equal(hold_start(&world->hold), -5);
	check_nothing_left("casd");
	hold_end(&world->hold);
	check_nothing_left("casd");
}

TEST(starting_twice_leaves_nothing_behind)
{
	begin((struct world){0}, &with_clones);
	hold_start(&world->hold);
	hold_start(&world->hold);
	hold_end(&world->hold);
	check_nothing_left("cqefcqef");
	begin((struct world){0}, &without_clones);
	hold_start(&world->hold);
	hold_start(&world->hold);
	hold_end(&world->hold);
	check_nothing_left("asrdasrd");
}

/* Takes snapshots repeatedly, as for a busy heap. The interrupt begins after main_moments moments
 * of the first thread, and yields once after other_moments of its own (0: never). Returns false if
 * there are fewer moments. */
static bool interrupted(
	const struct hold_calls *calls, bool looks, int main_moments, int other_moments)
{
	bool came;

	begin((struct world){.looks = looks}, calls);
	turns.main = pthread_self();
	turns.is_mains_turn = true;
	turns.other_begun = turns.other_ended = false;
	turns.main_moments = main_moments;
	turns.other_moments = other_moments;
	assert_int_equal(pthread_create(&turns.other, NULL, interrupt, &world->hold), 0);
	pthread_mutex_lock(&turns.mutex);
	for (int i = 0; i < 3; i++) {
		long status = hold_start(&world->hold);

		assert_true(status == 0 || (turns.other_begun && status == HOLD_OVER));
		hold_end(&world->hold);
	}
	came = turns.other_begun;
	while (!turns.other_ended)
		give_turn(false);
	assert_int_equal(hold_start(&world->hold), HOLD_OVER);
	pthread_mutex_unlock(&turns.mutex);
	assert_int_equal(pthread_join(turns.other, NULL), 0);
	check_nothing_left(world->log);
	assert_true(!turns.suspended_at_end || turns.armed_at_end);
	return came;
}

/* In any interleaving, every resource is ended once, and nothing starts afterwards. If hsnap ends
 * while the process is suspended, the guard knows it. */
TEST(interrupt_at_any_moment_leaves_nothing_held)
{
	for (int other = 0; other <= 5; other++) {
		int with = 1, without = 1, looking = 1;

		while (interrupted(&with_clones, false, with, other))
			with++;
		while (interrupted(&without_clones, false, without, other))
			without++;
		while (interrupted(&with_clones, true, looking, other))
			looking++;
		/* three tries with four calls, each of two moments, and the end */
		assert_int_equal(with, 25);
		assert_int_equal(without, 25);
		assert_int_equal(looking, 55); /* nine calls per try */
	}
}

TEST(after_interrupt_nothing_is_begun)
{
	begin((struct world){0}, &with_clones);
	hold_interrupt(&world->hold);
	assert_int_equal(hold_start(&world->hold), HOLD_OVER);
	check_nothing_left("");
	begin((struct world){0}, &without_clones);
	hold_interrupt(&world->hold);
	assert_int_equal(hold_start(&world->hold), HOLD_OVER);
	check_nothing_left("");
}
