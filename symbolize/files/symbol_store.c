#include "symbolize/files/symbol_store.h"

#include <string.h>

#include "core/model.h"
#include "core/text.h"

struct visit {
	struct local_paths *paths;
	const struct store_question *question;
	struct buf here;
};

/* Goes to first/second, either of which may be empty, below root. An enum local_kind or -ERR_NOMEM. */
static int go(struct visit *visit, const char *root, const char *first, const char *second)
{
	int rc;

	buf_clear(&visit->here);
	rc = buf_add_text(&visit->here, root);
	if (!rc)
		rc = local_below(visit->paths, &visit->here, first);
	return rc == LOCAL_FOLDER ? local_below(visit->paths, &visit->here, second) : rc;
}

/* Hands on the file of that name in a folder, or says that it is packed. */
static int look_in(struct visit *visit, const char *folder, const char *below)
{
	const struct store_question *question = visit->question;
	size_t len = strlen(question->name);
	struct buf packed;
	int rc = go(visit, folder, below, question->name);

	if (rc == LOCAL_FILE)
		return question->use(question->ctx, visit->here.data);
	if (rc < 0)
		return rc;
	buf_init(&packed);
	rc = buf_add_text(&packed, question->name);
	if (!rc) {
		packed.data[len - 1] = '_';
		rc = go(visit, folder, below, packed.data);
	}
	buf_release(&packed);
	if (rc == LOCAL_FILE)
		rc = question->is_packed(
			question->ctx, visit->here.data, "is compressed: unpack it with expand");
	return rc < 0 ? rc : 0;
}

/* In symbols/EXT and EXT, name ending in EXT. */
static int look_in_kinds(struct visit *visit, const char *root, const char *name)
{
	const char *extension = strrchr(name, '.');
	struct buf below;
	int rc;

	if (!extension || !extension[1])
		return 0;
	buf_init(&below);
	rc = buf_printf(&below, "symbols/%s", extension + 1);
	if (!rc)
		rc = look_in(visit, root, below.data);
	if (!rc)
		rc = look_in(visit, root, below.data + strlen("symbols/"));
	buf_release(&below);
	return rc;
}

static int look_in_folder(struct visit *visit, const char *root)
{
	int rc = look_in(visit, root, "");

	if (!rc)
		rc = look_in_kinds(visit, root, path_base(visit->question->image));
	if (!rc)
		rc = look_in_kinds(visit, root, visit->question->name);
	return rc;
}

/* In the folder of one build, which is there. */
static int look_in_build(struct visit *visit, const char *folder)
{
	int rc = look_in(visit, folder, "");

	if (rc)
		return rc;
	rc = go(visit, folder, "file.ptr", "");
	return rc == LOCAL_FILE ? visit->question->is_packed(visit->question->ctx, visit->here.data,
					  "only points to the file: copy that here") :
	       rc < 0		? rc :
				  0;
}

static int look_in_tier(struct visit *visit, const char *root, const char *tier)
{
	struct buf below, folder;
	int rc;

	buf_init(&below);
	buf_init(&folder);
	rc = buf_printf(&below, "%s/%s/%s", tier, visit->question->name, visit->question->key);
	if (!rc)
		rc = go(visit, root, below.data, "");
	if (rc == LOCAL_FOLDER) {
		rc = buf_add_text(&folder, visit->here.data);
		if (!rc)
			rc = look_in_build(visit, folder.data);
	} else if (rc > 0) {
		rc = 0;
	}
	buf_release(&below);
	buf_release(&folder);
	return rc;
}

/* The tier's name is the first two letters of the file's. */
static int look_in_store(struct visit *visit, const char *root)
{
	const char *end = visit->question->name;
	struct buf tier;
	uint32_t code;
	int rc = look_in_tier(visit, root, "");

	if (rc)
		return rc;
	for (int i = 0; i < 2 && *end; i++) {
		size_t len = text_utf8(end, &code);

		end += len ? len : 1;
	}
	buf_init(&tier);
	rc = buf_add(&tier, visit->question->name, (size_t)(end - visit->question->name));
	if (!rc)
		rc = look_in_tier(visit, root, tier.data);
	buf_release(&tier);
	return rc;
}

int store_search(struct local_paths *paths, const char *root, bool is_store,
	const struct store_question *question)
{
	struct visit visit = {.paths = paths, .question = question};
	const char *name = question->name;
	int rc = 0;

	if (!*name || !strcmp(name, ".") || !strcmp(name, "..") || strpbrk(name, "/\\"))
		return 0;
	buf_init(&visit.here);
	if (!is_store)
		rc = look_in_folder(&visit, root);
	if (!rc && question->key)
		rc = look_in_store(&visit, root);
	buf_release(&visit.here);
	return rc;
}
