/* feed FILE...: hands each file once to the target that it is linked with, in libFuzzer's place. A line "ok" on standard
 * output for each that it came through; the rest is the sanitizers'. */
#include "tests/fuzz/fuzz.h"

#include "core/base/memory.h"
#include "core/base/os.h"

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t len, size_t max)
{
	(void)bytes;
	return len < max ? len : max;
}

/* In a block of its own size, so that a read behind its end is seen. */
static void feed(const char *path)
{
	struct os_file file;
	uint8_t *bytes;
	size_t len;

	HOLDS(!os_open(&file, path, NULL));
	len = (size_t)os_size(&file);
	bytes = xmalloc(len);
	HOLDS(!os_read_at(&file, 0, bytes, len));
	os_close(&file);
	LLVMFuzzerTestOneInput(bytes, len);
	free(bytes);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		feed(argv[i]);
		printf("ok\t%s\n", argv[i]);
		fflush(stdout);
	}
	return 0;
}
