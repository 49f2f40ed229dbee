#include "symbolize/command/asked_module.h"

#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "core/os.h"
#include "symbolize/files/local_path.h"

/* Where the module is said to lie: anywhere will do, as long as the names of images of both kinds can
 * be asked for there. */
#define SAID_BASE UINT64_C(0x10000000)
#define PDB_ALONE_BYTES 0x10000 /* at first: it grows with what is asked */

static const char image_of[] = "'s image";
static const char pdb_magic[] = "Microsoft C/C++ ";

static int read_file(void *ctx, uint64_t offset, void *bytes, size_t len)
{
	return os_read_at(ctx, offset, bytes, len);
}

static int open_image(struct asked_module *asked, struct os_file *file, struct err *err)
{
	struct pe_source source = {.read = read_file, .ctx = file};
	struct pe_image *image = &asked->image;
	struct module *module = &asked->module;

	if (pe_read_headers(&source, image))
		return err_set(err, ERR_OPEN, asked->path, "it is neither a PE image nor a PDB");
	asked->preferred_base = image->preferred_base;
	module->size_bytes = image->size_of_image;
	module->timestamp = image->timestamp;
	module->checksum = image->checksum;
	module->has_identity = true;
	if (image->pdb_guid[0]) {
		module->pdb = path_base(image->pdb);
		module->pdb_guid = image->pdb_guid;
		module->pdb_age = image->pdb_age;
	}
	return 0;
}

/* Paths of dumps are not followed to other machines, or not at all; this one the user typed, as those in the
 * symbol path: there its folder comes first. */
static int make_symbol_path(struct asked_module *asked)
{
	const char *given = asked->options.symbol_path;
	char *environment = given ? NULL : os_env("_NT_SYMBOL_PATH");
	size_t folder = (size_t)(path_base(asked->path) - asked->path);
	struct buf path;
	int rc;

	buf_init(&path);
	given = given ? given : environment;
	rc = buf_add(&path, asked->path, folder > 1 ? folder - 1 : folder);
	if (!rc && given && *given)
		rc = buf_printf(&path, ";%s", given);
	free(environment);
	if (rc) {
		buf_release(&path);
		return rc;
	}
	asked->symbol_path = path.data;
	asked->options.symbol_path = path.data;
	return 0;
}

/* Not looked for at the path of a module. */
static bool is_elsewhere(const struct asked_module *asked)
{
	return asked->options.no_local_files || local_is_remote(asked->path);
}

/* There is no image, and none may be taken for it: its path is one that nobody has. */
static int open_pdb(struct asked_module *asked, struct err *err)
{
	struct err why;
	int rc = pdb_read_identity(asked->path, &asked->identity, &why);

	if (rc) /* of a damaged one it speaks as of a process */
		return err_set(err, rc == -ERR_TARGET ? ERR_OPEN : why.code, asked->path, "%s",
			why.detail);
	asked->image_path = malloc(strlen(asked->path) + sizeof(image_of));
	if (!asked->image_path)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	strcat(strcpy(asked->image_path, asked->path), image_of);
	asked->module.path = asked->image_path;
	asked->module.size_bytes = PDB_ALONE_BYTES;
	asked->module.has_identity = true;
	asked->module.pdb = is_elsewhere(asked) ? path_base(asked->path) : asked->path;
	asked->module.pdb_guid = asked->identity.guid;
	asked->module.pdb_age = asked->identity.age;
	return 0;
}

static int open_either(struct asked_module *asked, struct err *err)
{
	char magic[sizeof(pdb_magic) - 1];
	struct os_file file;
	int rc = os_is_special(asked->path) ?
			 err_set(err, ERR_READ, asked->path, "it is no regular file") :
			 os_open(&file, asked->path, err);

	if (rc)
		return rc;
	asked->is_pdb = !os_read_at(&file, 0, magic, sizeof(magic)) &&
			!memcmp(magic, pdb_magic, sizeof(magic));
	if (!asked->is_pdb)
		rc = open_image(asked, &file, err);
	os_close(&file);
	if (asked->is_pdb)
		rc = open_pdb(asked, err);
	if (!rc && is_elsewhere(asked) && make_symbol_path(asked))
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	return rc;
}

static char *short_name(const char *path)
{
	const char *base = path_base(path), *dot = strrchr(base, '.');
	size_t len = dot && dot > base ? (size_t)(dot - base) : strlen(base);
	char *name = malloc(len + 1);

	if (name) {
		memcpy(name, base, len);
		name[len] = '\0';
	}
	return name;
}

int asked_module_open(struct asked_module *asked, const char *path,
	const struct symbol_options *options, struct err *err)
{
	int rc;

	*asked = (struct asked_module){.options = *options};
	asked->options.is_one_file = true;
	asked->path = os_full_path(path);
	asked->name = short_name(path);
	asked->module.base = SAID_BASE;
	asked->module.path = asked->path;
	rc = asked->path && asked->name ? open_either(asked, err) :
					  err_set(err, ERR_NOMEM, path, NULL);
	if (!rc)
		return 0;
	if (err && rc != -ERR_NOMEM) /* as it was given */
		snprintf(err->place, sizeof(err->place), "%s", path);
	asked_module_release(asked);
	return rc;
}

void asked_module_release(struct asked_module *asked)
{
	free(asked->path);
	free(asked->image_path);
	free(asked->name);
	free(asked->symbol_path);
	*asked = (struct asked_module){0};
}
