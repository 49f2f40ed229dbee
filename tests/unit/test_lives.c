/* The table of births and deaths when it reaches its limits: rows and spans are merged, and all sums
 * stay exact. The test remembers each block and adds up by itself. */
#include "tests/unit/t.h"

#include "diff/query/lives.h"

#define STEPS 20000 /* of 1 ms */

struct lived_block {
	uint32_t row;
	uint64_t birth_ms, death_ms; /* death_ms is UINT64_MAX for blocks that are not freed */
};

struct lives_scene {
	struct record_facts facts;
	struct record_kind *kinds;
	struct record_mark marks[3];
	struct lived_block *blocks;
	size_t rows, count;
	struct lives *lives;
};

static uint64_t word = 88172645463325252u;

/* xorshift64 by Marsaglia */
static uint64_t random_below(uint64_t n)
{
	word ^= word << 13;
	word ^= word >> 7;
	word ^= word << 17;
	return word % n;
}

static void scene_begin(struct lives_scene *scene, size_t rows)
{
	*scene = (struct lives_scene){.rows = rows, .kinds = calloc(rows, sizeof(*scene->kinds))};
	for (size_t i = 0; i < rows; i++)
		scene->kinds[i] = (struct record_kind){.bytes = i % 7 ? 16 : 40};
	scene->marks[0] = (struct record_mark){STEPS / 3, 1, "one"};
	scene->marks[1] = (struct record_mark){STEPS / 2, 2, "again"};
	scene->marks[2] = (struct record_mark){STEPS / 2 + 1, 3, "again"};
	scene->facts = (struct record_facts){.kinds = scene->kinds, .kind_count = rows};
	scene->blocks = calloc(STEPS * 200, sizeof(*scene->blocks));
}

/* In each step, allocates `births` blocks and frees `deaths` of the live ones at random. */
static void scene_run(struct lives_scene *scene, size_t births, size_t deaths)
{
	const struct life_window window = {.facts = &scene->facts,
		.row_count = scene->rows,
		.to_position = UINT64_MAX,
		.to_ms = STEPS};
	struct life_maker *maker = lives_begin(&window);
	uint64_t *numbers = calloc(scene->rows, sizeof(*numbers));
	uint64_t *number_of = calloc(STEPS * 200, sizeof(*number_of));
	size_t *live = calloc(STEPS * 200, sizeof(*live)), live_count = 0;

	for (uint32_t i = 0; i < scene->rows; i++)
		lives_add_kind(maker, &(struct life_kind){.number = i, .row = i});
	for (uint64_t ms = 1; ms <= STEPS; ms++) {
		lives_advance(maker, ms, ms);
		for (size_t i = 0; i < births; i++) {
			/* Row 0 has the most blocks. */
			uint32_t row = (uint32_t)random_below(scene->rows) * (random_below(4) != 0);

			number_of[scene->count] = numbers[row]++;
			scene->blocks[scene->count] = (struct lived_block){row, ms, UINT64_MAX};
			lives_alloc(maker, row);
			live[live_count++] = scene->count++;
		}
		for (size_t i = 0; i < deaths && live_count; i++) {
			size_t at = random_below(live_count);
			struct lived_block *block = &scene->blocks[live[at]];

			lives_free(maker, block->row, number_of[live[at]]);
			block->death_ms = ms;
			live[at] = live[--live_count];
		}
	}
	scene->lives = lives_end(maker);
	free(numbers);
	free(number_of);
	free(live);
}

static void scene_end(struct lives_scene *scene)
{
	lives_release(scene->lives);
	free(scene->kinds);
	free(scene->blocks);
}

/* Adds up a class of blocks from edge `from` to edge `to`, for one row or, with LIFE_OTHER, for
 * all rows that are not listed. */
static void check_window(
	const struct lives_scene *scene, size_t from, size_t to, const bool *is_listed)
{
	const struct lives *lives = scene->lives;
	const uint64_t from_ms = lives->edges[from].time_ms, to_ms = lives->edges[to].time_ms;
	uint64_t *found = calloc(8 * (scene->rows + 1), sizeof(*found));
	uint64_t *wanted = calloc(8 * (scene->rows + 1), sizeof(*wanted));

	for (size_t i = 0; i < lives->entry_count; i++) {
		const struct life_entry *entry = &lives->entries[i];
		const size_t row = entry->row == LIFE_OTHER ? scene->rows : entry->row;
		const size_t class = (entry->birth > from) + 2 * (entry->death > to);

		if (entry->birth > to || entry->death <= from)
			continue;
		found[8 * row + class] += entry->blocks;
		found[8 * row + 4 + class] += entry->bytes;
	}
	for (size_t i = 0; i < scene->count; i++) {
		const struct lived_block *block = &scene->blocks[i];
		const size_t row = is_listed[block->row] ? block->row : scene->rows;
		const size_t class = (block->birth_ms > from_ms) + 2 * (block->death_ms > to_ms);

		if (block->birth_ms > to_ms || block->death_ms <= from_ms)
			continue;
		wanted[8 * row + class]++;
		wanted[8 * row + 4 + class] += scene->kinds[block->row].bytes;
	}
	assert_memory_equal(found, wanted, 8 * (scene->rows + 1) * sizeof(*found));
	free(found);
	free(wanted);
}

static size_t check_windows(const struct lives_scene *scene)
{
	const struct lives *lives = scene->lives;
	bool *is_listed = calloc(scene->rows, sizeof(*is_listed));
	size_t listed = 0;

	for (size_t i = 0; i < lives->entry_count; i++) {
		if (lives->entries[i].row == LIFE_OTHER)
			continue;
		listed += !is_listed[lives->entries[i].row];
		is_listed[lives->entries[i].row] = true;
	}
	assert_int_equal(lives->edges[0].time_ms, 0);
	assert_int_equal(lives->edges[lives->edge_count - 1].time_ms, STEPS);
	check_window(scene, 0, lives->edge_count - 1, is_listed);
	for (size_t i = 0; i < 5; i++) {
		size_t a = random_below(lives->edge_count), b = random_below(lives->edge_count);

		check_window(scene, a < b ? a : b, a < b ? b : a, is_listed);
	}
	free(is_listed);
	return listed;
}

/* The table would have about 3 million entries: small rows are merged, and row 0 stays. */
TEST(small_rows_are_merged)
{
	struct lives_scene scene;

	scene_begin(&scene, 20000);
	scene_run(&scene, 170, 160);
	assert_in_range(scene.lives->edge_count, 190, LIFE_SPANS_MAX + 1);
	assert_in_range(check_windows(&scene), 2000, 19000);
	assert_int_equal(scene.lives->entries[0].row, 0);
	scene_end(&scene);
}

/* Few rows, but each frees blocks of each span in each span. */
TEST(spans_are_merged)
{
	struct lives_scene scene;

	scene_begin(&scene, 1500);
	scene_run(&scene, 190, 185);
	assert_in_range(scene.lives->edge_count, 17, 150);
	assert_int_equal(check_windows(&scene), 1500);
	scene_end(&scene);
}

/* A window that ends at the last moment that a number can hold, and one without length. */
TEST(windows_of_any_length)
{
	struct record_facts facts = {0};
	struct life_window window = {
		.facts = &facts, .from_ms = UINT64_MAX - 1000, .to_ms = UINT64_MAX};
	struct lives *lives = lives_end(lives_begin(&window));

	assert_in_range(lives->edge_count, 2, LIFE_SPANS_MAX + 1);
	lives_release(lives);
	window.from_ms = 0;
	lives = lives_end(lives_begin(&window));
	assert_in_range(lives->edge_count, 2, LIFE_SPANS_MAX + 1);
	lives_release(lives);
	window.to_ms = 0;
	lives = lives_end(lives_begin(&window));
	assert_int_equal(lives->edge_count, 2);
	lives_release(lives);
}
