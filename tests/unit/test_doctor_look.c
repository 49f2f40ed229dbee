/*
 * Looking at a made process with Wine's heaps as the doctor does: what it finds there is right, what is
 * planted turns the row about it off, and what was there before is known.
 */
#include "tests/unit/fake_heaps.h"

#include "snapshot/doctor/doctor.h"

#define LIVE 100

struct look {
	struct fake fake;
	struct truth placed;
	struct doctor doctor;
	struct filling fill; /* of the growable heap */
};

static int set_up(void **state)
{
	struct look *look = calloc(1, sizeof(*look));
	struct filling process;

	assert_non_null(look);
	fake_init(&look->fake);
	process = heap_place(&look->fake, &look->placed, HEAP_A, 0x2000, 0x10000);
	fill_used(&process, 100, 0);
	fill_rest(&process);
	look->fill = heap_place(&look->fake, &look->placed, HEAP_B, 0x10000, 0x10000);
	assert_int_equal(doctor_init(&look->doctor), 0);
	memset(look->doctor.truth, 0, sizeof(*look->doctor.truth));
	look->doctor.truth->heaps[DOCTOR_PROCESS_HEAP] = HEAP_A;
	look->doctor.truth->heaps[DOCTOR_GROWABLE] = HEAP_B;
	*state = look;
	return 0;
}

static int tear_down(void **state)
{
	struct look *look = *state;

	doctor_release(&look->doctor);
	fake_release(&look->fake);
	free(look);
	return 0;
}

/* Blocks of the child in the growable heap, and what is left of it. */
static void use(struct look *look)
{
	struct filling fill = look->fill;

	for (unsigned i = 0; i < LIVE; i++) {
		const struct doctor_block block = {.addr = fill_used(&fill, 40, 0),
			.requested_bytes = 40,
			.heap = DOCTOR_GROWABLE};

		assert_true(doctor_truth_add(look->doctor.truth, &block));
	}
	fill_rest(&fill);
	doctor_truth_settle(look->doctor.truth);
}

static void walk(struct look *look)
{
	assert_int_equal(doctor_look_walk(&look->doctor, &look->fake.target, "walk"), 0);
	assert_false(look->fake.is_held);
}

static const struct doctor_row *row(const struct look *look, const char *heap, const char *what)
{
	for (size_t i = 0; i < look->doctor.report.count; i++) {
		const struct doctor_row *row = &look->doctor.report.rows[i];

		if (!strcmp(row->heap, heap) && !strcmp(row->what, what))
			return row;
	}
	fail_msg("no row %s, %s", heap, what);
	return NULL;
}

static void test_a_sound_process_is_ok_and_its_layout_is_noted(void **state)
{
	struct look *look = *state;

	use(look);
	walk(look);
	assert_int_equal(doctor_report_off(&look->doctor.report), 0);
	assert_int_equal(row(look, "growable", doctor_group_name(DOCTOR_SMALL))->found, LIVE);
	assert_int_equal(row(look, "", "places without sense")->verdict, DOCTOR_OK);
	assert_non_null(strstr(look->doctor.notes.data, "kind wine, layout wine 8.0 x64,"));
	assert_non_null(strstr(look->doctor.notes.data, "held"));
}

static void test_a_file_is_not_held(void **state)
{
	struct look *look = *state;

	use(look);
	look->fake.target.is_file = true;
	walk(look);
	assert_null(strstr(look->doctor.notes.data, "held"));
}

static void test_a_place_without_sense_is_named_with_its_heap(void **state)
{
	struct look *look = *state;
	const struct doctor_row *broken;
	char place[80];

	use(look);
	fake_put(&look->fake, HEAP_A + HEAP_FIRST_SUBHEAP + SUBHEAP_FIRST_BLOCK + 6, 0x1234, 2);
	walk(look);
	broken = row(look, "", "places without sense");
	assert_int_equal(broken->verdict, DOCTOR_OFF);
	snprintf(place, sizeof(place), " at %X, in heap %X (process heap)",
		HEAP_A + HEAP_FIRST_SUBHEAP + SUBHEAP_FIRST_BLOCK, HEAP_A);
	assert_non_null(strstr(broken->detail, place));
	assert_int_equal(doctor_report_off(&look->doctor.report), 1);
}

static void test_a_header_that_is_overwritten_is_off(void **state)
{
	struct look *look = *state;
	uint64_t header;

	use(look);
	header = look->doctor.truth->blocks[LIVE / 2].addr - 8;
	fake_put(&look->fake, header + 3, fake_get(&look->fake, header + 3, 1) + 1, 1);
	walk(look);
	assert_int_equal(row(look, "growable", doctor_group_name(DOCTOR_SMALL))->found, LIVE - 1);
	assert_int_equal(doctor_report_off(&look->doctor.report), 1);
}

static void test_what_was_in_a_new_heap_is_no_other_block(void **state)
{
	struct look *look = *state;
	struct filling rest;

	fill_used(&look->fill, 500, 0);
	rest = look->fill;
	fill_rest(&rest);
	assert_int_equal(doctor_look_before(&look->doctor, &look->fake.target), 0);
	assert_int_equal(look->doctor.before.block_count, 2); /* one in the process heap */
	use(look);
	walk(look);
	assert_int_equal(doctor_report_off(&look->doctor.report), 0);
	assert_int_equal(row(look, "growable", "other blocks")->found, 0);
	doctor_forget(&look->doctor);
	assert_int_equal(look->doctor.before.block_count, 0);
	walk(look);
	assert_int_equal(doctor_report_off(&look->doctor.report), 1);
}

static void test_the_sums_are_those_of_the_walk(void **state)
{
	static const struct doctor_dump sums = {"sums", STACKS_AUTO, true, true};
	struct look *look = *state;
	struct filling rest;

	fill_used(&look->fill, 500, 0);
	rest = look->fill;
	fill_rest(&rest);
	assert_int_equal(doctor_look_before(&look->doctor, &look->fake.target), 0);
	use(look);
	walk(look);
	assert_int_equal(doctor_look_dump(&look->doctor, &look->fake.target, &sums), 0);
	assert_int_equal(doctor_report_off(&look->doctor.report), 0);
	assert_int_equal(row(look, "growable", "number of blocks")->found, LIVE + 1);
	assert_int_equal(row(look, "growable", "bytes in them")->found, LIVE * 40 + 500);
}

static void test_what_is_not_there_is_said_without_a_remedy(void **state)
{
	static const struct doctor_dump ust = {"ust", STACKS_UST, false, false};
	static const struct doctor_dump must = {"must", STACKS_UST, true, false};
	struct look *look = *state;

	use(look);
	assert_int_equal(doctor_look_dump(&look->doctor, &look->fake.target, &ust), 0);
	assert_int_equal(doctor_look_dump(&look->doctor, &look->fake.target, &must), 0);
	assert_true(doctor_report_has(&look->doctor.report, "ust", DOCTOR_NOT_THERE));
	assert_true(doctor_report_has(&look->doctor.report, "must", DOCTOR_OFF));
	assert_null(strstr(look->doctor.report.rows[0].detail, "hsnap ust on"));
	assert_non_null(strstr(look->doctor.report.rows[0].detail, "not started with +ust"));
	assert_non_null(strstr(look->doctor.report.rows[1].detail, "hsnap ust on"));
}

#define LOOK(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOOK(test_a_sound_process_is_ok_and_its_layout_is_noted),
		LOOK(test_a_file_is_not_held),
		LOOK(test_a_place_without_sense_is_named_with_its_heap),
		LOOK(test_a_header_that_is_overwritten_is_off),
		LOOK(test_what_was_in_a_new_heap_is_no_other_block),
		LOOK(test_the_sums_are_those_of_the_walk),
		LOOK(test_what_is_not_there_is_said_without_a_remedy),
	};

	return cmocka_run_group_tests_name("doctor look", tests, NULL, NULL);
}
