#include "symbolize/backend/llvm_program.h"

#include <stdlib.h>
#include <string.h>

#include "symbolize/listen.h"

#define VERSION_MS 5000 /* to say its version */
#define VERSION_BYTES 65536
#define LISTENER_MS 100 /* the listener waits no longer than that */

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
static void listen(struct helper *helper, struct buf *said, const struct symbol_options *options)
{
	int64_t deadline_ms = helper_clock_ms() + VERSION_MS;

	while (helper_clock_ms() < deadline_ms && said->len < VERSION_BYTES &&
		!listener_is_cancelled(options) &&
		helper_exchange(helper, "", 0, said, LISTENER_MS) >= 0)
		;
}

unsigned llvm_program_version(const char *path, const struct symbol_options *options)
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
	listen(helper, &said, options);
	if (said.len)
		at = strstr(said.data, word);
	if (at)
		version = (unsigned)strtoul(at + strlen(word), NULL, 10);
	buf_release(&said);
	helper_stop(helper);
	return version;
}
