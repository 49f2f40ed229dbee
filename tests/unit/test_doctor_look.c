#include "tests/unit/t.h"

#include "tests/unit/fake_heaps.h"

#include "snapshot/doctor/doctor.h"

#define LIVE 100

struct look {
	struct doctor doctor;
	struct filling fill; /* of the growable heap */
};

static struct look look;

static int set_up(void **state)
{
	struct filling process;

	(void)state;
	memset(&look, 0, sizeof(look));
	image_begin();
	process = heap_place(HEAP_A, 0x2000, 0x10000);
	fill_used(&process, 100, 0);
	fill_rest(&process);
	look.fill = heap_place(HEAP_B, 0x10000, 0x10000);
	doctor_init(&look.doctor);
	look.doctor.truth->heaps[DOCTOR_PROCESS_HEAP] = HEAP_A;
	look.doctor.truth->heaps[DOCTOR_GROWABLE] = HEAP_B;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	doctor_release(&look.doctor);
	image_free();
	return 0;
}

/* Makes the child's blocks in the growable heap, and fills the rest of it. */
static void use(void)
{
	struct filling fill = look.fill;

	for (unsigned i = 0; i < LIVE; i++) {
		const struct doctor_block block = {.addr = fill_used(&fill, 40, 0),
			.requested_bytes = 40,
			.heap = DOCTOR_GROWABLE};

		assert_true(doctor_truth_add(look.doctor.truth, &block));
	}
	fill_rest(&fill);
	doctor_truth_sort(look.doctor.truth);
}

static void walk(void)
{
	doctor_look_walk(&look.doctor, &fake.target, "walk");
	assert_false(fake.is_held);
}

static const struct doctor_row *row(const char *heap, const char *what)
{
	for (size_t i = 0; i < look.doctor.row_count; i++) {
		const struct doctor_row *row = &look.doctor.rows[i];

		if (!strcmp(row->heap, heap) && !strcmp(row->what, what))
			return row;
	}
	fail_msg("no row %s, %s", heap, what);
	return NULL;
}

#undef TEST_AROUND
#define TEST_AROUND set_up, tear_down

TEST(test_sound_process_is_ok_and_its_layout_is_noted)
{
	use();
	walk();
	assert_int_equal(doctor_count(&look.doctor, NULL, DOCTOR_OFF), 0);
	assert_int_equal(row("growable", doctor_group_names[DOCTOR_SMALL])->found, LIVE);
	assert_int_equal(row("", "invalid places")->verdict, DOCTOR_OK);
	assert_non_null(strstr(look.doctor.notes.data, "kind wine, layout wine 8.0 x64,"));
	assert_non_null(strstr(look.doctor.notes.data, "held"));
}

TEST(heap_of_unknown_layout_is_described)
{
	use();
	/* for the process heap: the walk cannot find the ring */
	fake_write(HEAP_A + HEAP_MAGIC, 0, 4);
	walk();
	assert_non_null(strstr(look.doctor.notes.data,
		"of an unknown layout: FFEEFFEE at +10, HEAP at +b8, empty list at +98, "
		"own address at +360, before a block of 40 bytes 00 00 21 00 00 00 00 00 03 00 20 "
		"00 00 00 55 53\n"));
}

TEST(test_file_is_not_held)
{
	use();
	fake.target.is_file = true;
	walk();
	assert_null(strstr(look.doctor.notes.data, "held"));
}

TEST(test_place_without_sense_is_named_with_its_heap)
{
	const struct doctor_row *broken;
	char place[80];

	use();
	fake_write(HEAP_A + HEAP_FIRST_SUBHEAP + SUBHEAP_FIRST_BLOCK + 6, 0x1234, 2);
	walk();
	broken = row("", "invalid places");
	assert_int_equal(broken->verdict, DOCTOR_OFF);
	snprintf(place, sizeof(place), " at %X, in heap %X (process heap)",
		HEAP_A + HEAP_FIRST_SUBHEAP + SUBHEAP_FIRST_BLOCK, HEAP_A);
	assert_non_null(strstr(broken->detail, place));
	assert_int_equal(doctor_count(&look.doctor, NULL, DOCTOR_OFF), 1);
}

TEST(test_header_that_is_overwritten_is_off)
{
	uint64_t header;

	use();
	header = look.doctor.truth->blocks[LIVE / 2].addr - 8;
	fake_write(header + 3, fake_get(header + 3, 1) + 1, 1);
	walk();
	assert_int_equal(row("growable", doctor_group_names[DOCTOR_SMALL])->found, LIVE - 1);
	assert_int_equal(doctor_count(&look.doctor, NULL, DOCTOR_OFF), 1);
}

TEST(test_missing_parts_are_reported_without_remedy)
{
	use();
	doctor_look_dump(&look.doctor, &fake.target, "ust", STACKS_UST, false);
	doctor_look_dump(&look.doctor, &fake.target, "must", STACKS_UST, true);
	assert_int_equal(doctor_count(&look.doctor, "ust", DOCTOR_NOT_THERE), 1);
	assert_int_equal(doctor_count(&look.doctor, "must", DOCTOR_OFF), 1);
	assert_null(strstr(look.doctor.rows[0].detail, "hsnap ust on"));
	assert_non_null(strstr(look.doctor.rows[0].detail, "not started with +ust"));
	assert_non_null(strstr(look.doctor.rows[1].detail, "hsnap ust on"));
}

TEST(heap_that_walk_lacks_is_off)
{
	use();
	look.doctor.truth->listed[0] = HEAP_A;
	look.doctor.truth->listed[1] = HEAP_B;
	look.doctor.truth->listed_count = 2;
	walk();
	assert_int_equal(doctor_count(&look.doctor, NULL, DOCTOR_OFF), 0);
	look.doctor.row_count = 0;
	look.doctor.truth->listed[2] = HEAP_C;
	look.doctor.truth->listed_count = 3;
	walk();
	assert_int_equal(row("", "heaps of GetProcessHeaps()")->verdict, DOCTOR_OFF);
	assert_int_equal(doctor_count(&look.doctor, NULL, DOCTOR_OFF), 1);
}
