/* PDBs: each list is sorted, and reading twice gives equal results. */
#include "tests/fuzz/fuzz.h"

#include "core/base/err.h"
#include "symbolize/files/pdb.h"

static void check_list(struct pe_exports *list)
{
	for (size_t i = 0; i < list->count; i++) {
		HOLDS(list->list[i].name && !list->list[i].ordinal);
		HOLDS(!i || pe_export_compare(&list->list[i - 1], &list->list[i]) <= 0);
	}
	pe_exports_release(list);
}

static void check_parts(struct pdb_parts *parts)
{
	for (size_t i = 1; i < parts->count; i++)
		HOLDS(parts->list[i - 1].rva <= parts->list[i].rva);
	free(parts->list);
}

static void check_failed(int rc, const struct err *err)
{
	HOLDS((int)err->code == -rc && (rc == -ERR_TARGET || rc == -ERR_READ));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const char *path = fuzz_file(0, bytes, len);
	struct pdb_identity identity;
	struct pe_exports functions = {0};
	struct pdb_parts parts = {0};
	static struct pe_image image;
	struct err err = {0};
	int rc = pdb_read_identity(path, &identity, &err);

	if (rc)
		check_failed(rc, &err);
	else
		HOLDS(strspn(identity.guid, "0123456789ABCDEF") == 32 && !identity.guid[32]);
	rc = pdb_read_functions(path, &functions, &err);
	if (rc)
		check_failed(rc, &err);
	else
		check_list(&functions);
	functions = (struct pe_exports){0};
	rc = pdb_read_private_functions(path, &functions, &parts, &err);
	if (!rc) {
		check_list(&functions);
		check_parts(&parts);
	}
	rc = pdb_read_sections(path, &image, &err);
	HOLDS(rc || image.section_count <= PE_SECTIONS_MAX);
	parts = (struct pdb_parts){0};
	if (!pdb_read_parts(path, &parts, &err))
		check_parts(&parts);
	return 0;
}
