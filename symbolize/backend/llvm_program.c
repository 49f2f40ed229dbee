#include "symbolize/backend/llvm_program.h"

#include <stdlib.h>
#include <string.h>

#define VERSION_MS 5000 /* to say its version */
#define VERSION_BYTES 65536

struct helper *llvm_program_start(const char *const *args, struct buf *path)
{
	struct helper *helper = NULL;
	struct buf list;

	buf_init(&list);
	if (!llvm_program_list(&list)) {
		for (size_t at = 0; !helper && at < list.len; at += strlen(list.data + at) + 1) {
			buf_clear(path);
			if (!buf_add_text(path, list.data + at))
				helper = helper_start(path->data, args);
		}
	}
	buf_release(&list);
	return helper;
}

/* All that a program says until it ends. */
static void listen(struct helper *helper, struct buf *said)
{
	int64_t deadline_ms = helper_clock_ms() + VERSION_MS;
	int64_t left;

	while ((left = deadline_ms - helper_clock_ms()) > 0 && said->len < VERSION_BYTES &&
		helper_exchange(helper, "", 0, said, (unsigned)left) >= 0)
		;
}

unsigned llvm_program_version(const char *path)
{
	static const char *const args[] = {"--version", NULL};
	static const char word[] = "LLVM version ";
	struct helper *helper = helper_start(path, args);
	const char *at = NULL;
	unsigned version = 0;
	struct buf said;

	if (!helper)
		return 0;
	buf_init(&said);
	listen(helper, &said);
	if (said.len)
		at = strstr(said.data, word);
	if (at)
		version = (unsigned)strtoul(at + strlen(word), NULL, 10);
	buf_release(&said);
	helper_stop(helper);
	return version;
}
