/* Mangled names, one per line. The length of the demangled text is bounded, even if back references
 * are repeated. */
#include "tests/fuzz/fuzz.h"

#include "core/base/memory.h"
#include "symbolize/names.h"

static void check(const char *name, const char *said)
{
	static const char *const prefixes[] = {"/src", "C:\\Work\\", "/src/app/"};
	struct buf text = {0};
	const char *own, *rest;
	size_t len;

	is_mangled(name);
	if (demangle_name(name, &text)) {
		HOLDS(text.len > 0 && text.len == strlen(text.data));
		HOLDS(is_name_of(name, text.data) > 0);
	} else {
		HOLDS(!text.len);
	}
	HOLDS(is_name_of(name, name) == 2 || is_mangled(name) || !*name);
	is_name_of(name, said);
	own = names_own(name, &len);
	HOLDS(own >= name && own + len <= name + strlen(name));
	rest = names_strip_path(name, prefixes, 3);
	HOLDS(rest >= name && rest <= name + strlen(name) && (*rest || !*name));
	buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fuzz_input input = {bytes, bytes + len};
	char *before = fuzz_line(&input);

	while (fuzz_left(&input)) {
		char *line = fuzz_line(&input);

		check(line, before);
		free(before);
		before = line;
	}
	check(before, "f(int)");
	free(before);
	return 0;
}
