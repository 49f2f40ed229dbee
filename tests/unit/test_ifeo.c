/* Changes of flags in the registry's two views, with a made registry in which any call can fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "snapshot/ifeo/ifeo.h"

#define NAME "app.exe"

static struct ifeo_value dword(uint32_t number)
{
	return (struct ifeo_value){.kind = IFEO_DWORD, .number = number};
}

static struct ifeo_value text(const char *text)
{
	struct ifeo_value value = {.kind = IFEO_TEXT};

	assert_true(strlen(text) < sizeof(value.text));
	strcpy(value.text, text);
	return value;
}

/* ---------------------------------------------------------------- a made registry */

struct registry {
	struct ifeo_image views[IFEO_VIEWS];
	bool is_one;
	int fail_at; /* the call that fails, from 1; 0: none */
	bool stays_broken; /* and all after it */
	int calls, changes;
	bool is_locked, is_busy;
	int locks;
};

static int fake_lock(void *ctx, const char *name, void **held, struct err *err)
{
	struct registry *registry = ctx;

	assert_string_equal(name, NAME);
	assert_false(registry->is_locked);
	if (registry->is_busy)
		return err_set(err, ERR_BUSY, name, NULL);
	registry->is_locked = true;
	registry->locks++;
	*held = registry;
	return 0;
}

static void fake_unlock(void *ctx, void *held)
{
	struct registry *registry = ctx;

	assert_ptr_equal(held, registry);
	assert_true(registry->is_locked);
	registry->is_locked = false;
}

static bool is_failing(struct registry *registry)
{
	assert_true(registry->is_locked);
	registry->calls++;
	return registry->fail_at &&
	       (registry->calls == registry->fail_at ||
		       (registry->stays_broken && registry->calls > registry->fail_at));
}

static struct ifeo_image *image_of(struct registry *registry, enum ifeo_view view)
{
	return &registry->views[registry->is_one ? 0 : view];
}

static int fake_read(
	void *ctx, enum ifeo_view view, const char *name, struct ifeo_image *image, struct err *err)
{
	assert_string_equal(name, NAME);
	if (is_failing(ctx))
		return err_set(err, ERR_ADMIN, name, "read");
	*image = *image_of(ctx, view);
	return 0;
}

static int fake_write(void *ctx, enum ifeo_view view, const char *name, enum ifeo_name which,
	const struct ifeo_value *value, struct err *err)
{
	struct ifeo_image *image = image_of(ctx, view);

	if (is_failing(ctx))
		return err_set(err, ERR_ADMIN, name, "write");
	assert_true(image->exists);
	image->values[which] = *value;
	((struct registry *)ctx)->changes++;
	return 0;
}

static int fake_make(void *ctx, enum ifeo_view view, const char *name, struct err *err)
{
	struct ifeo_image *image = image_of(ctx, view);

	if (is_failing(ctx))
		return err_set(err, ERR_ADMIN, name, "make");
	assert_false(image->exists);
	*image = (struct ifeo_image){.exists = true};
	((struct registry *)ctx)->changes++;
	return 0;
}

static int fake_remove(void *ctx, enum ifeo_view view, const char *name, struct err *err)
{
	struct ifeo_image *image = image_of(ctx, view);

	if (is_failing(ctx))
		return err_set(err, ERR_ADMIN, name, "remove");
	assert_false(image->has_others);
	for (int i = 0; i < IFEO_NAMES; i++)
		assert_int_equal(image->values[i].kind, IFEO_NONE);
	*image = (struct ifeo_image){0};
	((struct registry *)ctx)->changes++;
	return 0;
}

static bool fake_is_one(void *ctx)
{
	return ((struct registry *)ctx)->is_one;
}

static int apply(struct registry *registry, bool on, uint32_t db_mb, struct err *err)
{
	const struct ifeo_calls calls = {.lock = fake_lock,
		.unlock = fake_unlock,
		.read = fake_read,
		.write = fake_write,
		.make = fake_make,
		.remove = fake_remove,
		.is_one = fake_is_one,
		.ctx = registry};
	const struct ifeo_change change = {.on = on, .db_mb = db_mb};
	int rc = ifeo_apply(&calls, NAME, &change, err);

	assert_false(registry->is_locked);
	return rc;
}

static bool same_image(const struct ifeo_image *a, const struct ifeo_image *b)
{
	if (a->exists != b->exists || a->has_others != b->has_others)
		return false;
	for (int i = 0; i < IFEO_NAMES; i++) {
		if (a->values[i].kind != b->values[i].kind ||
			a->values[i].number != b->values[i].number ||
			strcmp(a->values[i].text, b->values[i].text) != 0)
			return false;
	}
	return true;
}

static void assert_as(const struct registry *registry, const struct registry *expected)
{
	for (int i = 0; i < IFEO_VIEWS; i++)
		assert_true(same_image(&registry->views[i], &expected->views[i]));
}

/* What there can be before: each of these in either view. */
static const struct ifeo_image befores[] = {
	{0},
	{.exists = true},
	{.exists = true, .has_others = true},
	{.exists = true, .values = {[IFEO_FLAG] = {.kind = IFEO_DWORD, .number = 0}}},
	{.exists = true, .values = {[IFEO_FLAG] = {.kind = IFEO_DWORD, .number = 0x70}}},
	{.exists = true, .values = {[IFEO_FLAG] = {.kind = IFEO_TEXT, .text = "0x00000070"}}},
	{.exists = true, .values = {[IFEO_FLAG] = {.kind = IFEO_TEXT, .text = "00000000"}}},
	{.exists = true, .values = {[IFEO_DB] = {.kind = IFEO_DWORD, .number = 32}}},
	{.exists = true,
		.has_others = true,
		.values = {[IFEO_FLAG] = {.kind = IFEO_TEXT, .text = "0x2000000"},
			[IFEO_DB] = {.kind = IFEO_TEXT, .text = "0x40"}}},
};

#define BEFORES (sizeof(befores) / sizeof(*befores))

/* ---------------------------------------------------------------- changes */

static void on_sets_the_bit_and_keeps_the_others(void **state)
{
	static const uint32_t bits[BEFORES] = {0, 0, 0, 0, 0x70, 0x70, 0, 0, 0x2000000};

	(void)state;
	for (size_t i = 0; i < BEFORES; i++) {
		struct registry registry = {.views = {befores[i], befores[BEFORES - 1 - i]}};

		assert_int_equal(apply(&registry, true, 0, NULL), 0);
		for (int view = 0; view < IFEO_VIEWS; view++) {
			const struct ifeo_value *flag = &registry.views[view].values[IFEO_FLAG];
			uint32_t old = bits[view ? BEFORES - 1 - i : i];

			assert_int_equal(flag->kind, IFEO_DWORD);
			assert_int_equal(flag->number, old | 0x1000);
			assert_true(ifeo_has_ust(&registry.views[view]));
		}
	}
}

static void off_puts_back_exactly_what_was_there(void **state)
{
	(void)state;
	for (size_t i = 0; i < BEFORES * BEFORES * 2 * 3; i++) {
		const struct registry before = {
			.views = {befores[i % BEFORES], befores[i / BEFORES % BEFORES]},
			.is_one = i / BEFORES / BEFORES % 2};
		uint32_t db_mb = (uint32_t)(i / BEFORES / BEFORES / 2) * 100;
		struct registry registry = before;

		assert_int_equal(apply(&registry, true, db_mb, NULL), 0);
		if (db_mb)
			assert_int_equal(registry.views[0].values[IFEO_DB].number, db_mb);
		assert_int_equal(apply(&registry, false, 0, NULL), 0);
		assert_as(&registry, &before);
	}
}

static void on_twice_is_as_on_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < BEFORES * 4; i++) {
		const struct registry before = {.views = {befores[i / 4], befores[0]}};
		uint32_t first = i % 2 ? 50 : 0, second = i / 2 % 2 ? 60 : 0;
		struct registry registry = before;

		assert_int_equal(apply(&registry, true, first, NULL), 0);
		assert_int_equal(apply(&registry, true, second, NULL), 0);
		registry.changes = 0;
		assert_int_equal(apply(&registry, true, 0, NULL), 0);
		assert_int_equal(registry.changes, 0);
		assert_int_equal(apply(&registry, false, 0, NULL), 0);
		assert_as(&registry, &before);
	}
}

static void the_usual_case_leaves_no_mark(void **state)
{
	struct registry registry = {0};

	(void)state;
	assert_int_equal(apply(&registry, true, 0, NULL), 0);
	for (int view = 0; view < IFEO_VIEWS; view++) {
		assert_int_equal(registry.views[view].values[IFEO_MARK].kind, IFEO_NONE);
		assert_int_equal(registry.views[view].values[IFEO_FLAG].number, 0x1000);
		assert_int_equal(registry.views[view].values[IFEO_DB].kind, IFEO_NONE);
	}
}

/* 1000 is ust to some, and 4096 to others; 2000 is to neither. */
static void what_may_be_ust_is_never_passed_by(void **state)
{
	static const struct {
		const char *text;
		bool is_refused;
	} flags[] = {{"1000", true}, {"00001000", true}, {"4096", true}, {"ffffffff", true},
		{"70", false}, {"2000", false}, {"ust", false}};

	(void)state;
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		const struct registry before = {
			.views = {{.exists = true, .values = {[IFEO_FLAG] = text(flags[i].text)}}}};
		struct registry registry = before;
		struct err err = {0};

		assert_int_equal(apply(&registry, true, 0, &err), -ERR_SYSTEM);
		assert_non_null(strstr(err.detail, flags[i].text));
		assert_non_null(strstr(err.detail, "Image File Execution Options"));
		assert_non_null(strstr(err.detail, "0x"));
		assert_as(&registry, &before);
		assert_int_equal(
			apply(&registry, false, 0, &err), flags[i].is_refused ? -ERR_SYSTEM : 0);
		assert_as(&registry, &before);
	}
}

static void off_undoes_what_gflags_had_set(void **state)
{
	struct registry registry = {
		.views = {{.exists = true, .values = {[IFEO_FLAG] = text("0x00001000")}},
			{.exists = true,
				.values = {
					[IFEO_FLAG] = text("0x02001000"), [IFEO_DB] = dword(64)}}}};

	(void)state;
	assert_int_equal(apply(&registry, false, 0, NULL), 0);
	assert_false(registry.views[0].exists);
	assert_true(registry.views[1].exists);
	assert_int_equal(registry.views[1].values[IFEO_FLAG].kind, IFEO_DWORD);
	assert_int_equal(registry.views[1].values[IFEO_FLAG].number, 0x2000000);
	assert_int_equal(registry.views[1].values[IFEO_DB].number, 64);
}

static void off_changes_nothing_where_nothing_is_on(void **state)
{
	(void)state;
	for (size_t i = 0; i < BEFORES; i++) {
		const struct registry before = {.views = {befores[i], befores[i]}};
		struct registry registry = before;

		assert_int_equal(apply(&registry, false, 0, NULL), 0);
		assert_as(&registry, &before);
		assert_int_equal(registry.changes, 0);
	}
}

static void what_others_changed_meanwhile_stays(void **state)
{
	struct registry registry = {.views = {befores[5], befores[0]}};

	(void)state;
	assert_int_equal(apply(&registry, true, 64, NULL), 0);
	registry.views[0].values[IFEO_FLAG].number |= 0x2000000;
	registry.views[0].values[IFEO_DB].number = 128;
	registry.views[1].has_others = true;
	assert_int_equal(apply(&registry, false, 0, NULL), 0);
	assert_int_equal(registry.views[0].values[IFEO_FLAG].kind, IFEO_DWORD);
	assert_int_equal(registry.views[0].values[IFEO_FLAG].number, 0x2000070);
	assert_int_equal(registry.views[0].values[IFEO_DB].number, 128);
	assert_int_equal(registry.views[0].values[IFEO_MARK].kind, IFEO_NONE);
	assert_true(registry.views[1].exists);
	assert_int_equal(registry.views[1].values[IFEO_FLAG].kind, IFEO_NONE);
}

static void a_mark_that_is_not_ours_is_left(void **state)
{
	static const char *const marks[] = {"", "hello", "key=made", "key=made flag=none",
		"key=made flag=dword:100000000 db=none set=0",
		"key=made flag=text:zz db=none set=0", "key=made flag=none db=none set=-1",
		"key=\"", "key=kept flag=text:11111111111111111111111111 db=none set=0"};

	(void)state;
	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
		struct registry registry = {.is_one = true,
			.views = {{.exists = true,
				.values = {[IFEO_FLAG] = dword(0x1000),
					[IFEO_MARK] = text(marks[i])}}}};

		assert_int_equal(apply(&registry, false, 0, NULL), 0);
		assert_true(registry.views[0].exists);
		assert_int_equal(registry.views[0].values[IFEO_FLAG].kind, IFEO_NONE);
		assert_string_equal(registry.views[0].values[IFEO_MARK].text, marks[i]);
	}
}

static void a_flag_that_is_no_number_is_left_alone(void **state)
{
	static const struct ifeo_value flags[] = {{.kind = IFEO_OTHER},
		{.kind = IFEO_TEXT, .text = "ust"},
		{.kind = IFEO_TEXT, .text = "0x00000000000000000000000000000070"}};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct registry before = {
			.views = {
				befores[0], {.exists = true, .values = {[IFEO_FLAG] = flags[i]}}}};
		struct registry registry = before;
		struct err err = {0};

		assert_int_equal(apply(&registry, true, 0, &err), -ERR_SYSTEM);
		assert_non_null(strstr(err.detail, "GlobalFlag"));
		assert_as(&registry, &before);
		assert_int_equal(apply(&registry, false, 0, NULL), 0);
		assert_as(&registry, &before);
	}
}

/* Whatever call fails, and works again when things are put back: all is as before, and said so. */
static void a_change_that_fails_half_way_is_taken_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < BEFORES * BEFORES * 2; i++) {
		struct registry before = {
			.views = {befores[i / 2 % BEFORES], befores[i / 2 / BEFORES]}};
		bool on = i % 2;
		int rc = -1;

		if (!on)
			assert_int_equal(apply(&before, true, 64, NULL), 0);
		for (int fail_at = 1; rc; fail_at++) {
			struct registry registry = before;
			struct err err = {0};

			registry.calls = 0;
			registry.fail_at = fail_at;
			rc = apply(&registry, on, on ? 64 : 0, &err);
			if (rc) {
				assert_int_equal(rc, -ERR_ADMIN);
				assert_as(&registry, &before);
				assert_null(strstr(err.detail, "put back"));
			}
			assert_true(fail_at < 30);
		}
	}
}

static void what_cannot_be_taken_back_is_said(void **state)
{
	struct registry registry = {.fail_at = 6, .stays_broken = true};
	struct err err = {0};

	(void)state;
	/* two reads, make and write in the 64-bit view, make in the other, then this */
	assert_int_equal(apply(&registry, true, 0, &err), -ERR_ADMIN);
	assert_true(ifeo_has_ust(&registry.views[0]));
	assert_false(ifeo_has_ust(&registry.views[1]));
	assert_non_null(strstr(err.detail, "64-bit view could not be put back"));
	assert_non_null(strstr(err.detail, "32-bit view could not be put back"));
}

/* Every call above is under the lock, and it is let go after every error. */
static void practice_7_nothing_is_touched_while_another_one_is_at_it(void **state)
{
	struct registry registry = {0}, before = registry;
	struct err err = {0};

	(void)state;
	registry.is_busy = true;
	assert_int_equal(apply(&registry, true, 0, &err), -ERR_BUSY);
	assert_int_equal(err.code, ERR_BUSY);
	assert_int_equal(registry.calls, 0);
	assert_as(&registry, &before);
	registry.is_busy = false;
	assert_int_equal(apply(&registry, true, 0, &err), 0);
	assert_int_equal(registry.locks, 1);
	assert_true(registry.calls > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(practice_7_nothing_is_touched_while_another_one_is_at_it),
		cmocka_unit_test(what_may_be_ust_is_never_passed_by),
		cmocka_unit_test(on_sets_the_bit_and_keeps_the_others),
		cmocka_unit_test(off_puts_back_exactly_what_was_there),
		cmocka_unit_test(on_twice_is_as_on_once),
		cmocka_unit_test(the_usual_case_leaves_no_mark),
		cmocka_unit_test(off_undoes_what_gflags_had_set),
		cmocka_unit_test(off_changes_nothing_where_nothing_is_on),
		cmocka_unit_test(what_others_changed_meanwhile_stays),
		cmocka_unit_test(a_mark_that_is_not_ours_is_left),
		cmocka_unit_test(a_flag_that_is_no_number_is_left_alone),
		cmocka_unit_test(a_change_that_fails_half_way_is_taken_back),
		cmocka_unit_test(what_cannot_be_taken_back_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
