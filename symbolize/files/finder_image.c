#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/os.h"
#include "symbolize/files/dwarf_sections.h"
#include "symbolize/files/finder.h"

static int read_file(void *ctx, uint64_t offset, void *bytes, size_t len)
{
	return os_read_at(ctx, offset, bytes, len);
}

/* Uses an image. 1 or -ERR_NOMEM. */
static int take_image(struct search *search, const char *path, const struct pe_source *source,
	const struct pe_image *pe)
{
	struct module_files *files = search->files;
	char *image = malloc(strlen(path) + 1);
	struct pe_image *headers = malloc(sizeof(*headers));

	if (!image || !headers) {
		free(image);
		free(headers);
		return -ERR_NOMEM;
	}
	memcpy(image, path, strlen(path) + 1);
	*headers = *pe;
	files->image = image;
	files->pe = headers;
	files->has_dwarf = image_has_dwarf(source, pe);
	return 1;
}

static int judge(struct search *search, const char *path, const struct pe_source *source,
	const struct pe_image *pe)
{
	char how[DIFFERENCE_BYTES];

	if (!image_differs(search->module, pe, how))
		return take_image(search, path, source, pe);
	if (!search->other_image && !search->is_guess) {
		search->other_image = arena_text(&search->arena, path, strlen(path));
		if (!search->other_image)
			return -ERR_NOMEM;
	}
	return search_misfit(search, false, true, path, "is another build: %s", how);
}

/* Takes the file at path when it is the image; 1, 0 or -ERR_NOMEM. */
static int try_image(void *ctx, const char *path)
{
	struct search *search = ctx;
	struct os_file file;
	struct pe_source source = {.read = read_file, .ctx = &file};
	struct pe_image pe;
	struct err err;
	char why[400];
	int rc = 0;

	if (!search_is_new(search, path, &rc))
		return rc;
	if (os_open(&file, path, &err)) {
		snprintf(why, sizeof(why), "%.399s", err.detail);
		return search_misfit(search, false, false, path, "cannot be opened (%s)", why);
	}
	rc = pe_read_headers(&source, &pe);
	rc = rc ? search_misfit(search, false, false, path, "is no PE image, or damaged") :
		  judge(search, path, &source, &pe);
	os_close(&file);
	return rc;
}

static int packed_image(void *ctx, const char *file, const char *remedy)
{
	return search_misfit(ctx, false, false, file, "%s", remedy);
}

/* Stores keep images by time stamp and size. */
static int search_stores(struct search *search)
{
	const struct module *module = search->module;
	char key[40];
	struct store_question question = {.name = path_base(module->path),
		.image = module->path,
		.use = try_image,
		.is_packed = packed_image,
		.ctx = search};

	if (module->has_identity && module->size_bytes && module->size_bytes <= UINT32_MAX) {
		snprintf(key, sizeof(key), "%08lX%lx", (unsigned long)module->timestamp,
			(unsigned long)module->size_bytes);
		question.key = key;
	}
	return finder_places(search->finder, &question);
}

/* A file that has but the name of the one that is meant must prove who it is. */
static int search_guesses(struct search *search)
{
	struct buf file;
	size_t next = 0;
	int rc = LOCAL_FILE;

	if (build_is_unknown(search->module) || search->finder->options->no_local_files)
		return 0;
	buf_init(&file);
	search->is_guess = true;
	search->is_quiet = true;
	while (rc == LOCAL_FILE) {
		rc = local_guess(search->finder->local, search->module->path, &next, &file);
		if (rc != LOCAL_FILE)
			break;
		rc = try_image(search, file.data);
		if (rc)
			break;
		rc = LOCAL_FILE;
	}
	search->is_guess = false;
	search->is_quiet = false;
	buf_release(&file);
	return rc;
}

int search_image(struct search *search)
{
	const char *path = search->module->path;
	int rc;

	search->is_quiet = local_is_other_system(path);
	rc = finder_meanings(search->finder, path, try_image, search);
	search->is_quiet = false;
	if (!rc)
		rc = search_stores(search);
	if (!rc)
		rc = search_guesses(search);
	return rc < 0 ? rc : 0;
}

int search_other_image(struct search *search)
{
	struct os_file file;
	struct pe_source source = {.read = read_file, .ctx = &file};
	struct pe_image pe;
	int rc = 0;

	if (!search->other_image || os_open(&file, search->other_image, NULL))
		return 0;
	if (!pe_read_headers(&source, &pe))
		rc = take_image(search, search->other_image, &source, &pe);
	os_close(&file);
	search->files->is_mismatch |= rc == 1;
	return rc < 0 ? rc : 0;
}
