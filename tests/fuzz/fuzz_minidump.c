/* Minidumps, and the walkers of all kinds of Windows heaps. The first byte of an input is the
 * number of a valid image in tests/fuzz/images, and the rest are changes to that image; 255 means
 * that the rest is a complete minidump. The second byte selects the options of the snapshot. */
#include "core/base/os.h"
#include "snapshot/live/process.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_capture.h"

#define IMAGES_MAX 32
#define IS_FREE 255

static struct fuzz_memory images[IMAGES_MAX];
static size_t image_count;

static void load(const char *path)
{
	struct os_file file;
	size_t len;
	uint8_t *bytes;

	HOLDS(image_count < IMAGES_MAX);
	HOLDS(!os_open(&file, path, NULL));
	len = (size_t)os_size(&file);
	bytes = xmalloc(len);
	HOLDS(!os_read_at(&file, 0, bytes, len));
	os_close(&file);
	fuzz_memory_take(&images[image_count++], bytes, len);
}

static void load_all(void)
{
	char path[80];

	for (size_t i = 0;; i++) {
		snprintf(path, sizeof(path), "build/fuzz/images/%zu.dmp", i);
		if (!os_exists(path))
			break;
		load(path);
	}
	HOLDS(image_count >
		0); /* tests/fuzz/images makes them; the current folder is the project's root */
}

static void take(const uint8_t *bytes, size_t len, unsigned how)
{
	struct target target;

	if (target_open_minidump_bytes(&target, bytes, len, "made.dmp", NULL))
		return;
	capture_check(&target, how);
	target.ops->close(&target);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fuzz_input input = {bytes, bytes + len};
	unsigned number, how;

	if (!image_count)
		load_all();
	if (len < 2)
		return 0;
	number = (unsigned)fuzz_number(&input, 1);
	how = (unsigned)fuzz_number(&input, 1);
	if (number == IS_FREE) {
		take(input.at, fuzz_left(&input), how);
	} else {
		struct fuzz_memory *image = &images[number % image_count];

		fuzz_memory_patch(image, &input);
		take(image->bytes, image->len, how);
		fuzz_memory_restore(image);
	}
	return 0;
}
