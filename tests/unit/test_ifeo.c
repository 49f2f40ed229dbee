/* Changes of flags in the registry's two views, with a made registry in which any call can fail. */
#include "tests/unit/t.h"

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
	bool is_one; /* both views show the first */
	int fail_at; /* the call that fails, from 1; 0: none */
	bool stays_broken; /* and all after it */
	int calls, changes;
};

static bool is_failing(struct registry *registry)
{
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

/* The first that fails has written the flag. */
static int fake_write(void *ctx, enum ifeo_view view, const char *name, const struct ifeo_image *to,
	struct err *err)
{
	struct ifeo_image *image = image_of(ctx, view);
	bool is_empty = true;

	assert_string_equal(name, NAME);
	if (is_failing(ctx)) {
		if (((struct registry *)ctx)->calls == ((struct registry *)ctx)->fail_at) {
			image->exists |= to->exists;
			image->values[IFEO_FLAG] = to->values[IFEO_FLAG];
		}
		return err_set(err, ERR_ADMIN, name, "write");
	}
	for (int i = 0; i < IFEO_NAMES; i++) {
		image->values[i] = to->values[i];
		is_empty = is_empty && to->values[i].kind == IFEO_NONE;
	}
	assert_true(to->exists || is_empty);
	image->exists = to->exists || image->has_others;
	((struct registry *)ctx)->changes++;
	return 0;
}

static int apply(struct registry *registry, bool on, uint32_t db_mb, struct err *err)
{
	const struct ifeo_calls calls = {.read = fake_read, .write = fake_write, .ctx = registry};
	const struct ifeo_change change = {.on = on, .db_mb = db_mb};

	return ifeo_apply(&calls, NAME, &change, err);
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

/* Their flags. */
static const uint32_t bits[BEFORES] = {0, 0, 0, 0, 0x70, 0x70, 0, 0, 0x2000000};

/* ---------------------------------------------------------------- changes */

TEST(on_sets_the_bit_and_keeps_the_others)
{
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

/* What a key is after on and off: the same, but that its flag is a number, what was 0 or empty is gone, and so is
 * the size of the database. */
static struct ifeo_image afterwards(const struct ifeo_image *before, uint32_t flag)
{
	struct ifeo_image after = {
		.exists = flag || before->has_others, .has_others = before->has_others};

	if (flag)
		after.values[IFEO_FLAG] = dword(flag);
	return after;
}

TEST(off_clears_the_bit_and_leaves_no_empty_key)
{
	for (size_t i = 0; i < BEFORES * BEFORES * 2 * 3; i++) {
		size_t one = i % BEFORES, other = i / BEFORES % BEFORES;
		struct registry registry = {.views = {befores[one], befores[other]},
			.is_one = i / BEFORES / BEFORES % 2};
		struct registry expected = {
			.views = {afterwards(&befores[one], bits[one]),
				registry.is_one ? befores[other] :
						  afterwards(&befores[other], bits[other])}};
		uint32_t db_mb = (uint32_t)(i / BEFORES / BEFORES / 2) * 100;

		assert_int_equal(apply(&registry, true, db_mb, NULL), 0);
		if (db_mb)
			assert_int_equal(registry.views[0].values[IFEO_DB].number, db_mb);
		assert_int_equal(apply(&registry, false, 0, NULL), 0);
		assert_as(&registry, &expected);
	}
}

TEST(on_twice_is_as_on_once)
{
	for (size_t i = 0; i < BEFORES; i++) {
		struct registry registry = {.views = {befores[i], befores[0]}};

		assert_int_equal(apply(&registry, true, 60, NULL), 0);
		registry.changes = 0;
		assert_int_equal(apply(&registry, true, 0, NULL), 0);
		assert_int_equal(apply(&registry, true, 60, NULL), 0);
		assert_int_equal(registry.changes, 0);
	}
}

TEST(the_usual_case_is_one_value)
{
	struct registry registry = {0};

	assert_int_equal(apply(&registry, true, 0, NULL), 0);
	for (int view = 0; view < IFEO_VIEWS; view++) {
		assert_int_equal(registry.views[view].values[IFEO_FLAG].number, 0x1000);
		assert_int_equal(registry.views[view].values[IFEO_DB].kind, IFEO_NONE);
	}
}

/* 1000 is ust to some, and 4096 to others; 2000 is to neither. */
TEST(what_may_be_ust_is_never_passed_by)
{
	static const struct {
		const char *text;
		bool is_refused;
	} flags[] = {{"1000", true}, {"00001000", true}, {"4096", true}, {"ffffffff", true},
		{"70", false}, {"2000", false}, {"ust", false}};

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

TEST(off_undoes_what_gflags_had_set)
{
	struct registry registry = {
		.views = {{.exists = true, .values = {[IFEO_FLAG] = text("0x00001000")}},
			{.exists = true,
				.values = {
					[IFEO_FLAG] = text("0x02001000"), [IFEO_DB] = dword(64)}}}};

	assert_int_equal(apply(&registry, false, 0, NULL), 0);
	assert_false(registry.views[0].exists);
	assert_true(registry.views[1].exists);
	assert_int_equal(registry.views[1].values[IFEO_FLAG].kind, IFEO_DWORD);
	assert_int_equal(registry.views[1].values[IFEO_FLAG].number, 0x2000000);
	assert_int_equal(registry.views[1].values[IFEO_DB].kind, IFEO_NONE);
}

TEST(off_changes_nothing_where_nothing_is_on)
{
	for (size_t i = 0; i < BEFORES; i++) {
		const struct registry before = {.views = {befores[i], befores[i]}};
		struct registry registry = before;

		assert_int_equal(apply(&registry, false, 0, NULL), 0);
		assert_as(&registry, &before);
		assert_int_equal(registry.changes, 0);
	}
}

TEST(a_size_that_is_no_number_is_left_alone)
{
	struct registry registry = {
		.views = {{.exists = true, .values = {[IFEO_DB] = {.kind = IFEO_OTHER}}},
			befores[0]}};
	const struct registry before = registry;
	struct err err = {0};

	assert_int_equal(apply(&registry, true, 64, &err), -ERR_SYSTEM);
	assert_non_null(strstr(err.detail, "StackTraceDatabaseSizeInMb"));
	assert_as(&registry, &before);
	assert_int_equal(apply(&registry, true, 0, NULL), 0);
	assert_int_equal(apply(&registry, false, 0, NULL), 0);
	assert_as(&registry, &before);
}

TEST(a_flag_that_is_no_number_is_left_alone)
{
	static const struct ifeo_value flags[] = {{.kind = IFEO_OTHER},
		{.kind = IFEO_TEXT, .text = "ust"}, {.kind = IFEO_TEXT, .text = "0x100000000"}};

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
TEST(a_change_that_fails_half_way_is_taken_back)
{
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

TEST(what_cannot_be_taken_back_is_said)
{
	struct registry registry = {.fail_at = 4, .stays_broken = true};
	struct err err = {0};

	/* two reads, a write in the 64-bit view, then this */
	assert_int_equal(apply(&registry, true, 0, &err), -ERR_ADMIN);
	assert_true(ifeo_has_ust(&registry.views[0]));
	assert_non_null(strstr(err.detail, "64-bit view could not be put back"));
	assert_non_null(strstr(err.detail, "32-bit view could not be put back"));
}
