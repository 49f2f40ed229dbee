/* The three compression formats for buffers of ETW logs. The first byte selects the format, and the
 * next two give the output size. No byte may be written past that size. A complete output must be
 * reproducible. */
#include "tests/fuzz/fuzz.h"

#include "core/base/memory.h"
#include "core/etw/etw_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const unsigned formats[] = {ETW_LZNT1, ETW_XPRESS, ETW_XPRESS_HUFFMAN};
	struct fuzz_input input = {bytes, bytes + len};
	unsigned format = formats[fuzz_number(&input, 1) % 3];
	size_t to_bytes = (size_t)fuzz_number(&input, 2);
	/* The buffers have the exact size, so that any overrun is detected. */
	unsigned char *to = xmalloc(to_bytes), *again = xmalloc(to_bytes);

	memset(to, 1, to_bytes ? to_bytes : 1);
	memset(again, 2, to_bytes ? to_bytes : 1);
	if (etw_unpack(format, input.at, fuzz_left(&input), to, to_bytes)) {
		HOLDS(etw_unpack(format, input.at, fuzz_left(&input), again, to_bytes));
		HOLDS(!to_bytes || !memcmp(to, again, to_bytes)); /* every byte was written */
	}
	free(to);
	free(again);
	return 0;
}
