#include "symbolize/image.h"

#include <stdlib.h>
#include <string.h>

#include "symbolize/paths.h"

#define PAGE_BYTES 4096

static int read_file(void *ctx, uint64_t offset, void *bytes, size_t len)
{
	return os_read_at(ctx, offset, bytes, len);
}

static struct pe_source file_source(const struct image *image)
{
	return (struct pe_source){.read = read_file, .ctx = (void *)&image->file};
}

static uint64_t in_pages(uint64_t bytes)
{
	return bytes / PAGE_BYTES + (bytes % PAGE_BYTES != 0);
}

static bool same_digits(const char *a, const char *b)
{
	for (; *a && *b; a++, b++) {
		char x = *a >= 'a' && *a <= 'f' ? (char)(*a - 'a' + 'A') : *a;
		char y = *b >= 'a' && *b <= 'f' ? (char)(*b - 'a' + 'A') : *b;

		if (x != y)
			return false;
	}
	return *a == *b;
}

/* Is this file the build that the dump's process had loaded? Time stamps may be the same on
 * purpose (builds that can be repeated), so what else is known must agree too. */
static bool is_same_build(const struct module *module, const struct pe_image *pe)
{
	if (module->size_bytes && in_pages(module->size_bytes) != in_pages(pe->size_of_image))
		return false;
	if (!module->has_identity)
		return true;
	if (module->timestamp != pe->timestamp)
		return false;
	if (module->pdb_guid && pe->pdb_guid[0])
		return same_digits(module->pdb_guid, pe->pdb_guid) &&
		       module->pdb_age == pe->pdb_age;
	return !module->checksum || !pe->checksum || module->checksum == pe->checksum;
}

struct search {
	struct image *image;
	const struct module *module;
	bool no_memory;
};

/* false: out of memory. */
static bool keep_file(struct image *image, const char *path, const struct pe_image *pe)
{
	image->path = malloc(strlen(path) + 1);
	image->pe = malloc(sizeof(*image->pe));
	if (!image->path || !image->pe) {
		free(image->path);
		free(image->pe);
		image->path = NULL;
		image->pe = NULL;
		return false;
	}
	memcpy(image->path, path, strlen(path) + 1);
	*image->pe = *pe;
	image->is_open = true;
	return true;
}

static bool try_file(void *ctx, const char *path, bool is_guess)
{
	struct search *search = ctx;
	struct image *image = search->image;
	struct pe_source source = file_source(image);
	struct pe_image pe;

	if ((is_guess && !search->module->has_identity) || os_open(&image->file, path, NULL))
		return false;
	if (!pe_read_headers(&source, &pe) && is_same_build(search->module, &pe)) {
		if (keep_file(image, path, &pe))
			return true;
		search->no_memory = true;
	}
	os_close(&image->file);
	return false;
}

int image_open(struct image *image, const struct module *module)
{
	struct search search = {.image = image, .module = module};
	struct path_user user = {.use = try_file, .ctx = &search};

	if (image->path) {
		image->is_open = !os_open(&image->file, image->path, NULL);
		return image->is_open ? 0 : -ERR_SYMBOLS;
	}
	if (module_files(module->path, &user))
		return 0;
	return search.no_memory ? -ERR_NOMEM : -ERR_SYMBOLS;
}

void image_close(struct image *image)
{
	if (image->is_open)
		os_close(&image->file);
	image->is_open = false;
}

void image_release(struct image *image)
{
	image_close(image);
	free(image->path);
	free(image->pe);
	pe_exports_release(&image->symbols);
	pe_exports_release(&image->exports);
	*image = (struct image){0};
}

bool image_reaches(const struct image *image, uint32_t start, uint32_t rva)
{
	struct pe_source source = file_source(image);
	const struct pe_section *section = pe_section_at(image->pe, rva);
	uint32_t function;

	if (!section || start > rva || start < section->rva)
		return false;
	if (pe_function_start(&source, image->pe, rva, &function) < 0)
		return true; /* no table says more */
	return start >= function;
}

uint64_t image_function_offset(const struct image *image, uint32_t rva)
{
	struct pe_source source = file_source(image);
	uint32_t start;

	if (pe_function_start(&source, image->pe, rva, &start) != 1)
		return 0;
	return (uint64_t)rva + 1 - start;
}

/* The last that begins at or below rva, of several for one place the first by name. */
static const struct pe_export *last_below(const struct pe_exports *table, uint32_t rva)
{
	size_t low = 0, count = table->count;

	while (count) { /* the first that begins above rva */
		size_t half = count / 2;

		if (table->list[low + half].rva <= rva) {
			low += half + 1;
			count -= half + 1;
		} else {
			count = half;
		}
	}
	while (low > 1 && table->list[low - 2].rva == table->list[low - 1].rva)
		low--;
	return low ? &table->list[low - 1] : NULL;
}

/* A table that cannot be read has nothing in it. */
static void read_tables(struct image *image)
{
	struct pe_source source = file_source(image);

	image->tables_read = true;
	if (pe_symbols_read(&source, image->pe, &image->symbols))
		image->symbols = (struct pe_exports){0};
	if (pe_exports_read(&source, image->pe, &image->exports))
		image->exports = (struct pe_exports){0};
}

const struct pe_export *image_function_at(struct image *image, uint32_t rva)
{
	const struct pe_export *function;

	if (!image->tables_read)
		read_tables(image);
	function = last_below(&image->symbols, rva);
	if (function && image_reaches(image, function->rva, rva))
		return function;
	function = last_below(&image->exports, rva);
	return function && image_reaches(image, function->rva, rva) ? function : NULL;
}
