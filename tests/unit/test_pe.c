/* PE images. core/pe/pe.h must agree with the compiler's own tools about a DLL, both in a file and
 * in memory. Damaged images must fail cleanly. */
#include "tests/unit/scratch.h"

#include "core/base/err.h"
#include "core/pe/pe.h"

static const char source_text[] =
	"static __attribute__((noinline)) int hidden(int n)\n"
	"{ volatile int v[9] = {0}; return v[n % 9] + n; }\n"
	"__declspec(dllexport) int alpha(int n) { return hidden(n) + 1; }\n"
	"__declspec(dllexport) int omega(int n) { return hidden(n) * 3; }\n"
	"__declspec(dllexport) int shared_value = 7;\n";

struct bytes {
	unsigned char *data;
	size_t len;
};

static char dll[340];
static struct bytes file; /* the DLL */
static struct pe_image image;

static int read_bytes(void *ctx, uint64_t offset, void *bytes, size_t len)
{
	const struct bytes *from = ctx;

	if (offset > from->len || len > from->len - offset)
		return -1;
	memcpy(bytes, from->data + offset, len);
	return 0;
}

static const struct pe_source source = {.read = read_bytes, .ctx = &file};

static int build(void **state)
{
	char command[700];

	if (scratch_begin(state))
		return -1;
	scratch_write("s.c", source_text, 0644);
	snprintf(command, sizeof(command),
		"cd '%s' && x86_64-w64-mingw32-gcc -O1 -shared -Wl,--build-id s.c -o s.dll", dir);
	if (system("command -v x86_64-w64-mingw32-gcc >/dev/null") != 0 || system(command) != 0)
		return 0;
	snprintf(dll, sizeof(dll), "%s/s.dll", dir);
	file.data = (unsigned char *)file_get(dll, &file.len);
	return pe_read_headers(&source, &image);
}

static int clean(void **state)
{
	free(file.data);
	return scratch_end(state);
}

static void need_dll(void)
{
	if (!dll[0]) {
		print_message("# no x86_64-w64-mingw32-gcc here\n");
		skip();
	}
}

TEST(test_headers_agree_with_objdump)
{
	char first[9] = {0};

	need_dll();
	assert_int_equal(image.bits, 64);
	assert_int_equal(image.machine, PE_MACHINE_AMD64);
	assert_int_equal(image.preferred_base, scratch_header(dll, "ImageBase"));
	assert_int_equal(image.size_of_image, scratch_header(dll, "SizeOfImage"));
	assert_int_equal(image.size_of_headers, scratch_header(dll, "SizeOfHeaders"));
	assert_int_equal(image.checksum, scratch_header(dll, "CheckSum"));
	assert_int_equal(image.entry_rva, scratch_header(dll, "AddressOfEntryPoint"));
	assert_true(image.coff_symbols > 0);
	assert_string_equal(pe_section_at(&image, scratch_rva(dll, "alpha"))->name, ".text");
	assert_true(pe_section_at(&image, scratch_rva(dll, "alpha"))->is_code);
	assert_string_equal(pe_section_at(&image, scratch_rva(dll, "shared_value"))->name, ".data");
	assert_null(pe_section_at(&image, image.size_of_image));
	assert_int_equal(strlen(image.pdb_guid), 32);
	assert_int_equal(image.pdb_age,
		scratch_number(
			"x86_64-w64-mingw32-objdump -p s.dll | sed -n '/RSDS/s/.*age //p'", 16));
	memcpy(first, image.pdb_guid, 8);
	/* "signature" and 32 digits, in byte order or as symbol servers spell the GUID */
	assert_int_equal(strtoull(first, NULL, 16),
		scratch_number("x86_64-w64-mingw32-objdump -p s.dll | "
			       "sed -n 's/.*signature \\([0-9a-f]\\{8\\}\\).*/\\1/p'",
			16));
}

static void check_exports(const struct pe_source *from)
{
	struct pe_exports exports;
	static const char *const names[] = {"alpha", "omega", "shared_value"};
	uint32_t rva = 1;

	assert_int_equal(pe_exports_read(from, &image, &exports), 0);
	assert_int_equal(exports.count, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_string_equal(exports.list[i].name, names[i]);
		assert_int_equal(exports.list[i].rva, scratch_rva(dll, names[i]));
		assert_int_equal(pe_find_export(from, &image, names[i], &rva), 0);
		assert_int_equal(rva, scratch_rva(dll, names[i]));
	}
	assert_int_equal(pe_find_export(from, &image, "alph", &rva), -ERR_SYMBOLS);
	assert_int_equal(pe_find_export(from, &image, "hidden", &rva), -ERR_SYMBOLS);
	assert_int_equal(rva, scratch_rva(dll, "shared_value"));
	pe_exports_release(&exports);
}

TEST(test_exports_agree_with_nm)
{
	need_dll();
	check_exports(&source);
}

static unsigned reads;

static int read_counted(void *ctx, uint64_t offset, void *bytes, size_t len)
{
	reads++;
	return read_bytes(ctx, offset, bytes, len);
}

/* Reading another process's memory is expensive, so the number of reads must not depend on the
 * number of names. */
TEST(test_exports_are_found_at_one_read)
{
	static const char *const names[] = {"shared_value", "hidden", "omega", "alpha", "omega"};
	struct pe_source counted = {.read = read_counted, .ctx = &file};
	struct pe_image cut = image;
	uint32_t rvas[5];

	need_dll();
	reads = 0;
	assert_int_equal(pe_find_exports(&counted, &cut, names, 5, rvas), 0);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(rvas[i], i == 1 ? 0 : scratch_rva(dll, names[i]));
	assert_int_equal(reads, 1);
	/* The range that the headers specify is too short. */
	cut.exports.size_bytes = 44;
	assert_int_equal(pe_find_exports(&counted, &cut, names, 5, rvas), 0);
	assert_int_equal(rvas[3], scratch_rva(dll, "alpha"));
}

TEST(test_symbols_agree_with_nm)
{
	static const char *const names[] = {"hidden", "alpha", "omega"};
	struct pe_source in_memory = {.read = read_bytes, .ctx = &file, .in_memory = true};
	struct pe_exports symbols;
	size_t found = 0;

	need_dll();
	assert_int_equal(pe_symbols_read(&source, &image, &symbols), 0);
	for (size_t i = 0; i < symbols.count; i++) {
		for (size_t name = 0; name < 3; name++) {
			if (strcmp(symbols.list[i].name, names[name]) != 0)
				continue;
			assert_int_equal(symbols.list[i].rva, scratch_rva(dll, names[name]));
			found++;
		}
		assert_string_not_equal(symbols.list[i].name, "shared_value");
		assert_true(!i || symbols.list[i].rva >= symbols.list[i - 1].rva);
	}
	assert_int_equal(found, 3);
	pe_exports_release(&symbols);
	assert_int_equal(pe_symbols_read(&in_memory, &image, &symbols), 0);
	assert_int_equal(symbols.count, 0);
}

static struct bytes map(void)
{
	struct bytes memory = {calloc(1, image.size_of_image), image.size_of_image};

	assert_non_null(memory.data);
	memcpy(memory.data, file.data, image.size_of_headers);
	for (size_t i = 0; i < image.section_count; i++) {
		const struct pe_section *section = &image.sections[i];
		size_t len = section->file_bytes < section->size_bytes ? section->file_bytes :
									 section->size_bytes;

		memcpy(memory.data + section->rva, file.data + section->file_offset, len);
	}
	return memory;
}

TEST(test_memory_reads_as_file_does)
{
	struct bytes memory;
	struct pe_source mapped = {.read = read_bytes, .ctx = &memory, .in_memory = true};
	struct pe_image again;

	need_dll();
	memory = map();
	assert_int_equal(pe_read_headers(&mapped, &again), 0);
	assert_int_equal(again.timestamp, image.timestamp);
	assert_int_equal(again.checksum, image.checksum);
	assert_string_equal(again.pdb_guid, image.pdb_guid);
	check_exports(&mapped);
	free(memory.data);
}

TEST(test_function_starts_agree_with_nm)
{
	uint32_t start = 0, hidden;

	need_dll();
	hidden = scratch_rva(dll, "hidden");
	assert_int_equal(pe_function_start(&source, &image, hidden, &start), 1);
	assert_int_equal(start, hidden);
	assert_int_equal(pe_function_start(&source, &image, hidden + 9, &start), 1);
	assert_int_equal(start, hidden);
	assert_int_equal(
		pe_function_start(&source, &image, scratch_rva(dll, "shared_value"), &start), 0);
	assert_true(start > hidden && start < scratch_rva(dll, "shared_value"));
}

/* Calls all functions. Only the sanitizers check the results. */
static int exercise(const struct bytes *bytes, bool in_memory)
{
	struct pe_source from = {.read = read_bytes, .ctx = (void *)bytes, .in_memory = in_memory};
	struct pe_image damaged;
	struct pe_exports exports;
	uint32_t rva;
	int rc = pe_read_headers(&from, &damaged);

	if (rc)
		return rc;
	rc = pe_exports_read(&from, &damaged, &exports);
	if (!rc)
		pe_exports_release(&exports);
	if (!pe_symbols_read(&from, &damaged, &exports))
		pe_exports_release(&exports);
	pe_find_export(&from, &damaged, "omega", &rva);
	for (uint32_t at = 0; at < damaged.size_of_image && at < 0x8000; at += 0x35)
		pe_function_start(&from, &damaged, at, &rva);
	return rc;
}

TEST(test_every_cut_fails_cleanly)
{
	struct bytes cut;

	need_dll();
	for (size_t len = 0; len < file.len; len += len < 2048 ? 1 : 997) {
		int rc;

		/* Makes a copy of exactly this size, so that a read past its end is detected. */
		cut = (struct bytes){malloc(len + !len), len};
		assert_non_null(cut.data);
		memcpy(cut.data, file.data, len);
		rc = exercise(&cut, false);
		assert_true(len >= 1024 || rc < 0);
		free(cut.data);
	}
}

TEST(test_damage_is_survived)
{
	uint64_t random = 12345;

	need_dll();
	for (int round = 0; round < 4000; round++) {
		unsigned char was[4];
		size_t at[4];

		for (int i = 0; i < 4; i++) {
			random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
			at[i] = (size_t)(random >> 33) % (i < 3 ? 1024 : file.len);
			was[i] = file.data[at[i]];
			file.data[at[i]] = (unsigned char)(random >> 56);
		}
		exercise(&file, round & 1);
		for (int i = 3; i >= 0; i--)
			file.data[at[i]] = was[i];
	}
	assert_int_equal(exercise(&file, false), 0);
}

TEST(test_files_that_are_not_images_are_reported)
{
	unsigned char nothing[1024] = {'M', 'Z'};
	struct bytes bytes = {nothing, sizeof(nothing)};
	struct pe_source from = {.read = read_bytes, .ctx = &bytes};
	struct pe_image small = {.bits = 99};

	assert_int_equal(pe_read_headers(&from, &small), -ERR_TARGET);
	nothing[60] = 64;
	nothing[64] = 'P';
	nothing[65] = 'E';
	assert_int_equal(pe_read_headers(&from, &small), -ERR_TARGET);
	nothing[63] = 0xff; /* the offset is far past the end */
	assert_int_equal(pe_read_headers(&from, &small), -ERR_READ);
	nothing[0] = 'Z';
	assert_int_equal(pe_read_headers(&from, &small), -ERR_TARGET);
	assert_int_equal(small.bits, 99);
}

static void write_u32(unsigned char *at, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (unsigned char)(value >> 8 * i);
}

/* Makes a file with `count` functions. Their names overlap in one long text, and each begins one
 * byte later. */
static struct bytes many_symbols(uint32_t count, struct pe_image *made)
{
	size_t texts = count * (size_t)18, texts_bytes = 4 + count + 9000;
	struct bytes bytes = {calloc(1, texts + texts_bytes), texts + texts_bytes};

	assert_non_null(bytes.data);
	*made = (struct pe_image){.machine = PE_MACHINE_AMD64,
		.coff_symbols = count,
		.sections = {{.rva = 0x1000, .size_bytes = 0x1000}},
		.section_count = 1};
	for (uint32_t i = 0; i < count; i++) {
		unsigned char *entry = bytes.data + i * (size_t)18;

		write_u32(entry + 4, 4 + i);
		write_u32(entry + 8, i % 0x1000);
		entry[12] = 1;
		entry[14] = 0x20;
		entry[16] = 2;
	}
	write_u32(bytes.data + texts, (uint32_t)texts_bytes);
	memset(bytes.data + texts + 4, 'n', texts_bytes - 5);
	return bytes;
}

TEST(test_names_take_no_more_memory_than_file)
{
	enum { COUNT = 20000 };
	struct pe_image small;
	struct bytes bytes = many_symbols(COUNT, &small);
	struct pe_source from = {.read = read_bytes, .ctx = &bytes};
	struct pe_exports symbols;

	assert_int_equal(pe_symbols_read(&from, &small, &symbols), 0);
	assert_int_equal(symbols.count, COUNT);
	assert_int_equal(symbols.list[COUNT - 1].rva, 0x1fff);
	assert_true(strlen(symbols.list[0].name) > 4000);
	assert_true(symbols.arena.used_bytes < 2 * bytes.len);
	pe_exports_release(&symbols);
	/* A string table that claims to be longer than the file. */
	write_u32(bytes.data + COUNT * 18, UINT32_MAX);
	assert_true(pe_symbols_read(&from, &small, &symbols) < 0);
	free(bytes.data);
}

/* Section symbols as gcc writes them: class 3, no type, followed by one auxiliary entry. */
TEST(test_part_for_one_function_has_its_name)
{
	static const char *const names[] = {".text$_ZN3app4fillEv",
		".text.startup._GLOBAL__sub_I_pool", ".text$f", ".text.startup", ".text",
		".text.unlikely.fill", ".text$", ".rdata$fill", ".xdata.startup.fill"};
	enum { COUNT = sizeof(names) / sizeof(*names), TEXTS = COUNT * 2 * 18 };
	unsigned char data[TEXTS + 4 + 40 * COUNT] = {0};
	struct bytes bytes = {data, sizeof(data)};
	struct pe_source from = {.read = read_bytes, .ctx = &bytes};
	struct pe_image small = {.machine = PE_MACHINE_AMD64,
		.coff_symbols = COUNT * 2,
		.sections = {{.rva = 0x1000, .size_bytes = 0x1000}},
		.section_count = 1};
	struct pe_exports symbols;

	for (uint32_t i = 0; i < COUNT; i++) {
		unsigned char *entry = data + i * 2 * 18;

		write_u32(entry + 4, 4 + 40 * i);
		strcpy((char *)data + TEXTS + 4 + 40 * i, names[i]);
		write_u32(entry + 8, 0x10 * i);
		entry[12] = 1;
		entry[16] = 3;
		entry[17] = 1;
	}
	write_u32(data + TEXTS, 4 + 40 * COUNT);
	assert_int_equal(pe_symbols_read(&from, &small, &symbols), 0);
	assert_int_equal(symbols.count, 3);
	assert_string_equal(symbols.list[0].name, "_ZN3app4fillEv");
	assert_string_equal(symbols.list[1].name, "_GLOBAL__sub_I_pool");
	assert_string_equal(symbols.list[2].name, "f");
	assert_int_equal(symbols.list[1].rva, 0x1010);
	pe_exports_release(&symbols);
}

/* Microsoft's decorations of C functions: cdecl, stdcall, fastcall, vectorcall. The first name and
 * the last share their text. */
TEST(decorations_of_32_bit_names_are_undone)
{
	static const char *const names[][2] = {{"__fill@8", "_fill"}, {"_fill", "fill"},
		{"_fill@12", "fill"}, {"@fill_fast@4", "fill_fast"},
		{"fill_vector@@16", "fill_vector"}, {"_a@8", "a"}, {"__Z4fillv", "_Z4fillv"},
		{"?fill@@YAXXZ", "?fill@@YAXXZ"}, {"fill@x", "fill@x"}, {"__fill@8", "_fill"}};
	enum { COUNT = sizeof(names) / sizeof(*names), TEXTS = COUNT * 18 };
	unsigned char data[TEXTS + 4 + 40 * COUNT] = {0};
	struct bytes bytes = {data, sizeof(data)};
	struct pe_source from = {.read = read_bytes, .ctx = &bytes};
	struct pe_image small = {.machine = PE_MACHINE_I386,
		.coff_symbols = COUNT,
		.sections = {{.rva = 0x1000, .size_bytes = 0x1000}},
		.section_count = 1};
	struct pe_exports symbols;

	for (uint32_t i = 0; i < COUNT; i++) {
		unsigned char *entry = data + i * 18;

		if (strlen(names[i][0]) <= 8 && i < COUNT - 1 && i)
			memcpy(entry, names[i][0], strlen(names[i][0]));
		else
			write_u32(entry + 4, 4 + 40 * (i % (COUNT - 1)));
		strcpy((char *)data + TEXTS + 4 + 40 * i, names[i][0]);
		write_u32(entry + 8, 0x10 * i);
		entry[12] = 1;
		entry[14] = 0x20;
		entry[16] = 2;
	}
	write_u32(data + TEXTS, 4 + 40 * COUNT);
	assert_int_equal(pe_symbols_read(&from, &small, &symbols), 0);
	assert_int_equal(symbols.count, COUNT);
	for (size_t i = 0; i < COUNT; i++)
		assert_string_equal(symbols.list[i].name, names[i][1]);
	pe_exports_release(&symbols);
}

GROUP(build, clean)
