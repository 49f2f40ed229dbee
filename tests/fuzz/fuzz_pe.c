/* PE images, as a file and in memory. Reported ranges lie within the image, lists are sorted, and a
 * lookup by name agrees with the list. */
#include "tests/fuzz/fuzz.h"

#include "core/base/err.h"
#include "core/pe/pe.h"
#include "symbolize/files/module_files.h"

static int read_bytes(void *ctx, uint64_t offset, void *bytes, size_t len)
{
	const struct fuzz_input *from = ctx;

	if (offset > fuzz_left(from) || len > fuzz_left(from) - offset)
		return -ERR_READ;
	memcpy(bytes, from->at + offset, len);
	return 0;
}

static void check_list(const struct pe_exports *list)
{
	for (size_t i = 0; i < list->count; i++) {
		HOLDS(list->list[i].name);
		HOLDS(!i || pe_export_compare(&list->list[i - 1], &list->list[i]) <= 0);
	}
}

static void check_exports(const struct pe_source *source, const struct pe_image *image)
{
	struct pe_exports exports;
	uint32_t rva, rvas[2];

	if (pe_exports_read(source, image, &exports))
		return;
	check_list(&exports);
	for (size_t i = 0; i < exports.count && i < 8; i++) {
		const char *names[2] = {exports.list[i].name, "DllMain"};
		int rc = pe_find_export(source, image, names[0], &rva);

		HOLDS(!rc || rc == -ERR_SYMBOLS || rc == -ERR_TARGET || rc == -ERR_READ);
		pe_find_exports(source, image, names, 2, rvas);
	}
	pe_exports_release(&exports);
}

static void check_image(const struct pe_source *source, const struct pe_image *image)
{
	struct pe_exports symbols;
	uint32_t start;
	char text[40];

	HOLDS(image->section_count <= PE_SECTIONS_MAX && (image->bits == 32 || image->bits == 64));
	check_exports(source, image);
	if (!pe_symbols_read(source, image, &symbols)) {
		check_list(&symbols);
		pe_exports_release(&symbols);
	}
	for (size_t i = 0; i < image->section_count; i++) {
		uint32_t rva = image->sections[i].rva + image->sections[i].size_bytes / 2;
		const struct pe_section *section = pe_section_at(image, rva);

		if (section)
			HOLDS(rva - section->rva < section->size_bytes ||
				rva - section->rva < section->file_bytes);
		/* the start may lie past its section */
		pe_function_start(source, image, rva, &start);
		pe_read_text(source, image, rva, text, sizeof(text));
		pe_read(source, image, rva, text, sizeof(text));
		pe_left_at(image, rva);
	}
	build_has_dwarf(source, image);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fuzz_input from = {bytes, bytes + len};
	struct pe_source source = {.read = read_bytes, .ctx = &from};
	static struct pe_image image;

	for (int i = 0; i < 2; i++) {
		source.in_memory = i;
		if (!pe_read_headers(&source, &image))
			check_image(&source, &image);
	}
	return 0;
}
