#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/files/finder.h"

static int take_pdb(struct search *search, const char *path)
{
	char *copy = malloc(strlen(path) + 1);

	if (!copy)
		return -ERR_NOMEM;
	memcpy(copy, path, strlen(path) + 1);
	search->files->pdb = copy;
	return 1;
}

/* Takes the file at path when it is the PDB; 1, 0 or -ERR_NOMEM. */
static int try_pdb(void *ctx, const char *path)
{
	struct search *search = ctx;
	struct pdb_identity pdb;
	struct err err;
	char how[DIFFERENCE_BYTES];
	int rc = 0;

	if (!search_is_new(search, path, &rc))
		return rc;
	rc = pdb_read_identity(path, &pdb, &err);
	if (rc == -ERR_NOMEM)
		return rc;
	if (rc)
		return search_misfit(search, true, false, path, "cannot be used: %s", err.detail);
	if (!pdb_differs(search->files->guid, search->files->age, &pdb, search->pdb_owner, how))
		return take_pdb(search, path);
	return search_misfit(search, true, true, path, "is another build: %s", how);
}

static int packed_pdb(void *ctx, const char *file, const char *remedy)
{
	return search_misfit(ctx, true, false, file, "%s", remedy);
}

/* Fills files->guid and age, and search->pdb_name; false: nobody knows which PDB it is. full becomes
 * the PDB's path as the one who names it does. */
static bool know_pdb(struct search *search, const char **full)
{
	const struct pe_image *pe = search->files->pe;
	const struct module *module = search->module;
	const char *said = module->has_identity && module->pdb && *module->pdb ? module->pdb : NULL;
	char guid[33];

	if (pe && (!pe->pdb[0] || !guid_is_known(pe->pdb_guid, guid)))
		return false;
	if (!pe && (!said || !guid_is_known(module->pdb_guid, guid)))
		return false;
	/* A name that fills its field was cut: then the dump may know more. */
	*full = pe && (!said || strlen(pe->pdb) < sizeof(pe->pdb) - 1) ? pe->pdb : said;
	search->pdb_name = path_base(*full);
	search->pdb_owner = pe ? "image" : "dump";
	memcpy(search->files->guid, guid, sizeof(guid));
	search->files->age = pe ? pe->pdb_age : module->pdb_age;
	return *search->pdb_name != '\0';
}

/* In the folder of the file at path; foreign: as the dump gives it. */
static int try_beside(struct search *search, const char *path, bool is_foreign)
{
	struct finder *finder = search->finder;
	size_t folder = (size_t)(path_base(path) - path);
	struct buf file;
	int rc;

	if (!folder)
		return 0;
	buf_init(&file);
	rc = buf_add(&file, path, folder);
	if (!rc && is_foreign) {
		rc = buf_add_text(&file, search->pdb_name);
		if (!rc)
			rc = finder_meanings(finder, file.data, try_pdb, search);
	} else if (!rc) {
		file.data[--file.len] = '\0';
		rc = local_below(finder->local, &file, search->pdb_name);
		rc = rc == LOCAL_FILE ? try_pdb(search, file.data) : rc < 0 ? rc : 0;
	}
	buf_release(&file);
	return rc;
}

static int try_places(struct search *search)
{
	char key[48];
	struct store_question question = {.name = search->pdb_name,
		.image = search->module->path,
		.key = key,
		.use = try_pdb,
		.is_packed = packed_pdb,
		.ctx = search};

	snprintf(key, sizeof(key), "%s%lX", search->files->guid, (unsigned long)search->files->age);
	return finder_places(search->finder, &question);
}

int search_pdb(struct search *search)
{
	const char *full;
	int rc;

	if (!know_pdb(search, &full))
		return 0;
	rc = finder_meanings(search->finder, full, try_pdb, search);
	if (!rc && search->files->image)
		rc = try_beside(search, search->files->image, false);
	if (!rc)
		rc = try_beside(search, search->module->path, true);
	if (!rc)
		rc = try_places(search);
	return rc < 0 ? rc : 0;
}

int search_other_pdb(struct search *search)
{
	for (size_t i = 0; i < search->misfit_count; i++) {
		const struct misfit *misfit = &search->misfits[i];
		int rc;

		if (!misfit->is_pdb || !misfit->is_build)
			continue;
		rc = take_pdb(search, misfit->path);
		search->files->is_mismatch |= rc == 1;
		return rc < 0 ? rc : 0;
	}
	return 0;
}
