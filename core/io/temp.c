/* Temporary files in a private folder under TMPDIR, TEMP or TMP. The folder is created together
 * with the first file. */
#include "core/io/temp.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/io/interrupt.h"

/* Only one thread creates files, but an interrupt may occur at any time. */
static struct interrupt_cleanup folder, files[TEMP_FILES_MAX];
static size_t file_count;

static char *new_folder(struct err *err)
{
	static const char *const names[] = {"TMPDIR", "TEMP", "TMP"};
	char *place = NULL, text[64];
	struct buf path;

	for (size_t i = 0; !place && i < sizeof(names) / sizeof(*names); i++)
		place = os_env(names[i]);
	buf_init(&path);
	snprintf(text, sizeof(text), "/hsnap-%lu-%016" PRIx64, os_pid(), hash_key().words[1]);
	buf_printf(&path, "%s%s", place && *place ? place : P_tmpdir, text);
	free(place);
	if (!os_make_private_folder(path.data))
		return path.data;
	err_set(err, ERR_CREATE, path.data,
		"the folder for temporary files; set TMPDIR or TEMP to use another");
	buf_release(&path);
	return NULL;
}

int temp_path(const char **path, const char *ending, struct err *err)
{
	char *in = atomic_load(&folder.thing);
	struct buf name;

	if (!in) {
		in = new_folder(err);
		if (!in)
			return -ERR_CREATE;
		interrupt_cleanup_set(&folder, in);
	}
	if (file_count == TEMP_FILES_MAX)
		return err_set(err, ERR_CREATE, in, "more than %d temporary files", TEMP_FILES_MAX);
	buf_init(&name);
	buf_printf(&name, "%s/%zu%s", in, file_count + 1, ending);
	*path = name.data;
	interrupt_cleanup_set(&files[file_count++], name.data);
	return 0;
}

void temp_remove_all(void)
{
	for (size_t i = 0; i < TEMP_FILES_MAX; i++) {
		const char *path = interrupt_cleanup_get(&files[i]);

		if (path)
			os_remove(path);
		interrupt_cleanup_done(&files[i]);
	}
	{
		const char *path = interrupt_cleanup_get(&folder);

		if (path)
			os_remove_folder(path);
		interrupt_cleanup_done(&folder);
	}
}
