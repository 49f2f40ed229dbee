/* Zip archives. An unpacked entry has the length and the checksum that the list states. */
#include "tests/fuzz/fuzz.h"

#include <zlib.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/io/zip.h"

#define BYTES_MAX ((uint64_t)1 << 20) /* a larger entry is not unpacked */

static void unpack(struct zip *zip, size_t number)
{
	const struct zip_entry *entry = zip_entry(zip, number);
	struct err err = {0};
	struct os_file file;
	unsigned char *bytes;
	char path[60];
	int rc;

	if (entry->bytes > BYTES_MAX)
		return;
	snprintf(path, sizeof(path), "/dev/shm/fuzz-zip-%lu", os_pid());
	rc = zip_unpack(zip, number, path, &err);
	HOLDS(!rc || (int)err.code == -rc);
	if (!rc) {
		HOLDS(!os_open(&file, path, NULL));
		HOLDS(os_size(&file) == entry->bytes);
		bytes = xmalloc((size_t)entry->bytes);
		HOLDS(!os_read_at(&file, 0, bytes, (size_t)entry->bytes));
		HOLDS(crc32(0, bytes, (unsigned)entry->bytes) == entry->crc);
		free(bytes);
		os_close(&file);
	}
	os_remove(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const char *path = fuzz_file(0, bytes, len);
	struct err err = {0};
	struct zip *zip;
	int rc = zip_open(&zip, path, &err);

	HOLDS(!rc || (int)err.code == -rc);
	if (rc)
		return 0;
	for (size_t i = 0; i < zip_count(zip) && i < 8; i++)
		unpack(zip, i);
	zip_close(zip);
	return 0;
}
