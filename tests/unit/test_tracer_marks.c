/* Marks that a program sends: each reaches hsnap once, with its label, and the program waits for
 * the answer, but never for an hsnap that has ended. */
#include "tests/unit/t.h"

#include <pthread.h>

#include "tests/unit/fake_memory.h"

#include "snapshot/tracer/rings.h"
#include "snapshot/tracer/tables.h"

#define RINGS 2u
#define SENDERS 8u
#define MARKS 500u

static struct ring_area *rings;

static int set_up_marks(void **state)
{
	uint64_t bytes = ring_area_bytes(RINGS, RING_LOG2_MIN);

	set_up(state);
	fake_hsnap_ended = false;
	rings = aligned_alloc(64, (bytes + 63) & ~(uint64_t)63);
	assert_non_null(rings);
	memset(rings, 0, bytes);
	ring_area_init(rings, RINGS, RING_LOG2_MIN, 0);
	area.rings = (uintptr_t)rings;
	return 0;
}

static int tear_down_marks(void **state)
{
	area.rings = 0;
	free(rings);
	return tear_down(state);
}

#undef TEST_AROUND
#define TEST_AROUND set_up_marks, tear_down_marks

/* Sends a mark from another thread, and returns its label as hsnap reads it. */
static void *send_label(void *label)
{
	rings_mark(&area, label);
	return NULL;
}

static void check_label(const char *sent, const char *expected)
{
	char label[RING_LABEL_BYTES];
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, send_label, (void *)sent), 0);
	while (!ring_letter_read(rings, label))
		sched_yield();
	ring_letter_answer(rings);
	pthread_join(thread, NULL);
	assert_string_equal(label, expected);
	assert_false(ring_letter_read(rings, label));
}

TEST(label_arrives)
{
	check_label("Parser.Long", "Parser.Long");
	check_label("a", "a");
	check_label("", "mark");
	check_label(NULL, "mark");
}

TEST(long_label_is_cut_between_characters)
{
	char sent[300], expected[RING_LABEL_BYTES];

	for (unsigned before = 190; before < 203; before++) {
		memset(sent, 'x', sizeof(sent));
		memcpy(sent + before, "\xe2\x82\xac", 3); /* one character */
		sent[before + 20] = '\0';
		memcpy(expected, sent, sizeof(expected) - 1);
		expected[before + 3 <= 199 || before >= 199 ? 199 : before] = '\0';
		check_label(sent, expected);
	}
}

static unsigned seen[SENDERS][MARKS];

static void *send_many(void *ctx)
{
	const unsigned number = (unsigned)(uintptr_t)ctx;

	for (unsigned i = 0; i < MARKS; i++) {
		char label[40];

		snprintf(label, sizeof(label), "%u %u", number, i);
		rings_mark(&area, label);
		/* the answer came before the call returned */
		assert_int_equal(__atomic_load_n(&seen[number][i], __ATOMIC_ACQUIRE), 1);
	}
	return NULL;
}

TEST(many_threads_send_marks_and_each_arrives_once)
{
	pthread_t threads[SENDERS];
	char label[RING_LABEL_BYTES];
	unsigned number, i, count = 0;

	memset(seen, 0, sizeof(seen));
	for (uintptr_t k = 0; k < SENDERS; k++)
		assert_int_equal(pthread_create(&threads[k], NULL, send_many, (void *)k), 0);
	while (count < SENDERS * MARKS) {
		if (!ring_letter_read(rings, label)) {
			sched_yield();
			continue;
		}
		assert_int_equal(sscanf(label, "%u %u", &number, &i), 2);
		__atomic_fetch_add(&seen[number][i], 1, __ATOMIC_RELEASE);
		ring_letter_answer(rings);
		count++;
	}
	for (unsigned k = 0; k < SENDERS; k++)
		pthread_join(threads[k], NULL);
	for (unsigned k = 0; k < SENDERS * MARKS; k++)
		assert_int_equal(seen[k / MARKS][k % MARKS], 1);
}

TEST(without_recording_nothing_happens)
{
	area.rings = 0;
	rings_mark(&area, "a");
	assert_int_equal(rings->letter.state, LETTER_FREE);
}

TEST(nobody_waits_for_hsnap_that_has_ended)
{
	fake_hsnap_ended = true;
	rings_mark(&area, "a");
	assert_int_equal(area.rings, 0);
	/* another thread's mark was not answered */
	area.rings = (uintptr_t)rings;
	assert_int_equal(rings->letter.state, LETTER_SENT);
	rings_mark(&area, "b");
	assert_int_equal(area.rings, 0);
	assert_string_equal(rings->letter.label, "a");
}

TEST(thread_that_was_ended_while_it_wrote_its_label_stops_marks_only)
{
	rings->letter.state = LETTER_TAKEN;
	rings_mark(&area, "a");
	assert_int_equal(rings->letter.state, LETTER_TAKEN);
	assert_int_equal(area.rings, (uintptr_t)rings);
}

static void *end_recording(void *unused)
{
	while (__atomic_load_n(&rings->letter.state, __ATOMIC_ACQUIRE) != LETTER_SENT)
		sched_yield();
	__atomic_store_n(&area.rings, 0, __ATOMIC_RELEASE);
	return unused;
}

TEST(nobody_waits_when_recording_ends)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, end_recording, NULL), 0);
	rings_mark(&area, "a");
	pthread_join(thread, NULL);
	assert_int_equal(area.rings, 0);
}

/* The target may write to the section. */
TEST(label_without_end_is_cut)
{
	char label[RING_LABEL_BYTES];

	memset(rings->letter.label, 'x', RING_LABEL_BYTES);
	rings->letter.state = LETTER_SENT;
	assert_true(ring_letter_read(rings, label));
	assert_int_equal(strlen(label), RING_LABEL_BYTES - 1);
}
