/* Artificial processes with random damage, captured as hsnap -z would capture them. The test
 * damages words of the images in tests/images. Each capture must end within its bounds.
 * HSNAP_DAMAGE_ROUNDS is the number of rounds for each image (default 250). */
#include "tests/unit/t.h"

#include <unistd.h>

#include "snapshot/capture/capture.h"
#include "snapshot/live/process.h"

#define MAKER "build/linux/images/make_image"
#define ROUNDS "250"
#define SECONDS 30 /* seconds after which a capture counts as hanging */

static unsigned char *sound;
static size_t sound_len;
static uint32_t *words; /* offsets of the nonzero words */
static size_t word_count;
static uint64_t seed;

static uint64_t dice(uint64_t limit)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed * 0x2545f4914f6cdd1du >> 16) % limit;
}

/* ---------------------------------------------------------------- valid image */

static void find_words(void)
{
	words = malloc(sound_len / 4 * sizeof(*words));
	assert_non_null(words);
	word_count = 0;
	for (size_t at = 0; at + 4 <= sound_len; at += 4) {
		if (memcmp(sound + at, "\0\0\0", 4) != 0)
			words[word_count++] = (uint32_t)at;
	}
	assert_true(word_count > 100);
}

static void load(const char *path)
{
	FILE *file = fopen(path, "rb");
	long len;

	assert_non_null(file);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	len = ftell(file);
	assert_true(len > 0);
	rewind(file);
	sound_len = (size_t)len;
	sound = malloc(sound_len);
	assert_non_null(sound);
	assert_int_equal(fread(sound, 1, sound_len, file), sound_len);
	(void)fclose(file);
	find_words();
}

static void make(const char *how)
{
	const char *base = getenv("TMPDIR");
	char dir[200], path[300], truth[310], command[700];

	snprintf(dir, sizeof(dir), "%s/images-XXXXXX", base ? base : "build");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a.dmp", dir);
	snprintf(truth, sizeof(truth), "%s.truth", path);
	snprintf(command, sizeof(command), MAKER " %s '%s'", how, path);
	assert_int_equal(system(command), 0);
	load(path);
	unlink(path);
	unlink(truth);
	rmdir(dir);
}

/* ---------------------------------------------------------------- damage */

/* Replaces a word with a value that is typical of damage, with a harmful number, or with another
 * word, which may close a circle of pointers. */
static void damage_word(unsigned char *bytes, size_t at)
{
	static const uint32_t numbers[] = {0, 1, 2, 8, 0xffff, 0x7fffffff, 0x80000000, UINT32_MAX};
	size_t from = words[dice(word_count)];
	uint32_t word;

	memcpy(&word, bytes + at, 4);
	switch (dice(5)) {
	case 0: word = numbers[dice(8)]; break;
	case 1: word ^= (uint32_t)1 << dice(32); break;
	case 2: word += (uint32_t)dice(64) - 32; break;
	default: /* a whole pointer, if there is room for one */
		if (from + 8 <= sound_len && at + 8 <= sound_len) {
			memmove(bytes + at, sound + from, 8);
			return;
		}
	}
	memcpy(bytes + at, &word, 4);
}

/* Sometimes damages many adjacent words, as if one whole structure were damaged. */
static void damage(unsigned char *bytes)
{
	size_t near = words[dice(word_count)];

	for (uint64_t left = dice(4) ? 1 + dice(12) : dice(300); left; left--) {
		size_t at = dice(3) ? words[dice(word_count)] : near + 4 * dice(64);

		if (at + 4 <= sound_len)
			damage_word(bytes, at);
	}
}

/* Captures an image; returns the number of blocks, or -1. */
static int64_t look(const unsigned char *bytes)
{
	struct capture_options options = {.stacks = STACKS_AUTO};
	struct capture_stats stats;
	struct snapshot snapshot;
	struct target target;
	struct err err = {0};
	int64_t blocks = -1;

	if (target_open_minidump_bytes(&target, bytes, sound_len, "a.dmp", &err))
		return -1;
	snapshot_init(&snapshot);
	if (!capture_target(&target, &options, &snapshot, &stats, &err))
		blocks = (int64_t)snapshot_total(&snapshot).block_count;
	else
		assert_int_not_equal(err.code, ERR_NOMEM);
	snapshot_release(&snapshot);
	target.ops->close(&target);
	return blocks;
}

static void survives(const char *how, uint64_t first_seed)
{
	unsigned char *bytes;
	const char *wanted = getenv("HSNAP_DAMAGE_ROUNDS");
	long rounds = strtol(wanted ? wanted : ROUNDS, NULL, 10), taken = 0;

	if (access(MAKER, X_OK)) {
		print_message("%s is not built\n", MAKER);
		skip();
	}
	make(how);
	seed = first_seed;
	bytes = malloc(sound_len);
	assert_non_null(bytes);
	assert_true(look(sound) > 100); /* the valid image must have enough blocks to damage */
	for (long i = 0; i < rounds; i++) {
		int64_t blocks;

		alarm(SECONDS);
		memcpy(bytes, sound, sound_len);
		damage(bytes);
		blocks = look(bytes);
		taken += blocks >= 0;
		/* every block has at least the size of a header */
		assert_true(blocks <= (int64_t)(sound_len / 8));
	}
	alarm(0);
	assert_true(taken > rounds / 2); /* most damaged images are captured, not refused */
	free(bytes);
	free(words);
	free(sound);
}

#define SURVIVES(name, how, first_seed)                                                            \
	TEST(name)                                                                                 \
	{                                                                                          \
		survives(how, first_seed);                                                         \
	}

SURVIVES(nt_heaps_survive, "win10-x64 --ust --blocks 400", 1)
SURVIVES(nt_heaps_of_windows_7_survive, "win7-x86 --ust --blocks 400", 2)
SURVIVES(segment_heaps_survive, "win10-x64 --ust --segment --blocks 400", 3)
SURVIVES(segment_heaps_of_32_bits_survive, "win10-x86 --ust --segment --blocks 400", 4)
SURVIVES(full_page_heaps_survive, "win10-x64 --ust --page-heap full --blocks 200", 5)
SURVIVES(light_page_heaps_survive, "win10-x86 --ust --page-heap light --blocks 200", 6)
SURVIVES(both_halves_survive, "wow64 --ust --blocks 300", 7)
