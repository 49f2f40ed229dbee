/* The environment blocks of 32-bit processes on 64-bit systems, in the layouts of five systems.
 * Wine's addresses and answers were measured. Those of Windows are invented and far apart. */
#include "tests/unit/t.h"

#include "tests/unit/fake_target.h"

#include "snapshot/target/nt_process.h"

#define PROGRAM 0x400000u
#define LOADER 0x51000u

static const struct column {
	const char *name;
	uint64_t peb, guest_peb; /* guest_peb: 0 in a 64-bit process */
	uint64_t teb;
	uint64_t asked; /* answer to ProcessWow64Information */
	bool is_wine, has_host;
} columns[] = {
	{"Wine 8", 0x3fff0000, 0x3fff1000, 0x3ffe8000, 1, true, false},
	{"Wine 10", 0x3fff0000, 0x3fff1000, 0x3ffe8000, 0x3fff1000, true, false},
	{"Wine 10, new WoW64", 0x7ffd0000, 0x7ffd1000, 0x7ffc0000, 0x7ffd1000, true, true},
	{"Windows", 0x2ab000, 0x7efde000, 0x2af000, 0x7efde000, false, true},
	{"a 64-bit process", 0x7ff500000, 0, 0x7ff501000, 0, false, true},
};

#define COLUMNS (sizeof(columns) / sizeof(*columns))

static int close_all(void **state)
{
	(void)state;
	fake_release();
	return 0;
}

#undef TEST_AROUND
#define TEST_AROUND NULL, close_all

/* Makes a process with the offsets of phnt. */
static void make(const struct column *column)
{
	fake_release();
	fake = (struct fake){.target = fake.target};
	fake_init();
	fake.target.is_wine = column->is_wine;
	if (!fake_range_at(column->peb)) /* one column uses the PEB of every fake process */
		fake_map(column->peb, 0x1000);
	fake_write(column->peb + 0x10, PROGRAM, 8);
	fake_write(column->peb + 0x18, column->has_host ? LOADER : 0, 8);
	fake_map(column->teb, 0x3000);
	fake_write(column->teb + 0x30, column->teb, 8);
	fake_write(column->teb + 0x60, column->peb, 8);
	if (!column->guest_peb)
		return;
	fake_write(column->teb, column->teb + 0x2000, 8);
	fake_write(column->teb + 0x2018, column->teb + 0x2000, 4);
	fake_write(column->teb + 0x2030, column->guest_peb, 4);
	fake_map(column->guest_peb, 0x1000);
	fake_write(column->guest_peb + 8, PROGRAM, 4);
}

/* Returns the PEB that is found through the thread, or 0. */
static uint64_t by_thread(const struct column *column)
{
	uint64_t peb = 0;

	nt_peb_of_teb(&fake.target, 32, nt_guest_teb(&fake.target, column->teb), &peb);
	return peb;
}

TEST(thread_leads_to_32_bit_peb_on_every_system)
{
	for (size_t i = 0; i < COLUMNS; i++) {
		uint64_t peb = 0;

		make(&columns[i]);
		assert_int_equal(by_thread(&columns[i]), columns[i].guest_peb);
		assert_int_equal(nt_peb_of_teb(&fake.target, 64, columns[i].teb, &peb), 0);
		assert_int_equal(peb, columns[i].peb);
	}
}

TEST(what_does_not_name_itself_is_not_32_bit_teb)
{
	for (size_t i = 0; i < COLUMNS - 1; i++) {
		const struct column *column = &columns[i];

		make(column);
		fake_write(column->teb + 0x2018, column->teb + 0x1000, 4);
		assert_int_equal(by_thread(column), 0);
		make(column);
		fake_write(column->teb + 0x2030, 0, 4);
		assert_int_equal(by_thread(column), 0);
		make(column);
		fake_write(column->teb, 0x66660000, 8); /* points to unmapped memory */
		assert_int_equal(by_thread(column), 0);
		fake_write(column->teb, (uint64_t)1 << 32 | (column->teb + 0x2000), 8);
		assert_int_equal(by_thread(column), 0);
		fake_unmap(column->teb);
		assert_int_equal(by_thread(column), 0);
	}
}

/* In Wine's new WoW64, the 64-bit TEBs of later threads do not begin with an address. */
TEST(distance_leads_from_each_teb_to_other)
{
	for (size_t i = 0; i < COLUMNS - 1; i++) {
		const uint64_t teb = columns[i].teb;

		make(&columns[i]);
		fake_write(teb, 0, 8);
		assert_int_equal(nt_guest_teb(&fake.target, teb), 0);
		assert_int_equal(nt_host_teb(&fake.target, teb + 0x2000), 0);
		fake_write(teb + 0x180c, 0x2000, 4);
		fake_write(teb + 0x2fdc, (uint32_t)-0x2000, 4);
		assert_int_equal(nt_guest_teb(&fake.target, teb), teb + 0x2000);
		assert_int_equal(nt_host_teb(&fake.target, teb + 0x2000), teb);
		fake_write(teb + 0x2018, 0, 4);
		fake_write(teb + 0x30, 0, 8);
		assert_int_equal(nt_guest_teb(&fake.target, teb), 0);
		assert_int_equal(nt_host_teb(&fake.target, teb + 0x2000), 0);
	}
}

/* A process whose threads cannot be opened. The PEBs come from the system's answer or from Wine's
 * convention. */
TEST(without_thread_both_pebs_must_name_one_program)
{
	for (size_t i = 0; i < COLUMNS; i++) {
		const struct column *column = &columns[i];

		make(column);
		assert_int_equal(
			nt_guest_peb(&fake.target, column->peb, column->asked), column->guest_peb);
		if (!column->guest_peb)
			continue;
		fake_write(column->guest_peb + 8, PROGRAM + 0x10000, 4);
		assert_int_equal(nt_guest_peb(&fake.target, column->peb, column->asked), 0);
		fake_write(column->guest_peb + 8, 0, 4);
		fake_write(column->peb + 0x10, 0, 8);
		assert_int_equal(nt_guest_peb(&fake.target, column->peb, column->asked), 0);
	}
}

TEST(flag_is_address_nowhere_and_page_on_only_under_wine)
{
	make(&columns[0]);
	fake.target.is_wine = false;
	assert_int_equal(nt_guest_peb(&fake.target, columns[0].peb, 1), 0);
	assert_int_equal(nt_guest_peb(&fake.target, columns[0].peb, columns[0].guest_peb),
		columns[0].guest_peb);
	fake.target.is_wine = true;
	fake_unmap(columns[0].guest_peb);
	assert_int_equal(nt_guest_peb(&fake.target, columns[0].peb, 1), 0);
}

TEST(wow64_half_exists_if_its_loader_does)
{
	for (size_t i = 0; i < COLUMNS; i++) {
		make(&columns[i]);
		assert_int_equal(nt_host_peb(&fake.target, columns[i].peb),
			columns[i].has_host ? columns[i].peb : 0);
		fake_unmap(columns[i].peb);
		/* An unreadable PEB is not an absent one: a later read reports the error. */
		assert_int_equal(nt_host_peb(&fake.target, columns[i].peb), columns[i].peb);
	}
}
