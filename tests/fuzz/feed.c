/* feed FILE...: runs the linked fuzz target once on each file, without libFuzzer. Prints a line
 * "ok" for each file that passed; the sanitizers report failures. */
#include "tests/fuzz/fuzz.h"

#include "core/base/memory.h"
#include "core/base/os.h"

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t len, size_t max)
{
	(void)bytes;
	return len < max ? len : max;
}

/* Copies the file to a block of its exact size, so that a read past its end is detected. */
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
