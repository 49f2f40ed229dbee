/* A temporary folder for a test's files, and facts about the programs that the test builds
 * there. */
#ifndef TESTS_UNIT_SCRATCH_H
#define TESTS_UNIT_SCRATCH_H

#include "tests/unit/t.h"

#include <sys/stat.h>
#include <unistd.h>

#include "core/base/os.h"
#include "core/pe/pe.h"

static char dir[300];

/* Sets the environment variable LLVM to the version suffix of LLVM's tools. Test commands contain
 * clang$LLVM. */
static inline void scratch_find_llvm(void)
{
	char end[20] = "";
	FILE *pipe = popen("setup/llvm 2>/dev/null", "r");

	if (pipe && fgets(end, sizeof(end), pipe))
		end[strcspn(end, "\n")] = '\0';
	if (pipe)
		pclose(pipe);
	setenv("LLVM", end, 1);
}

static inline void scratch_use_llvm(void)
{
	char path[60];

	snprintf(path, sizeof(path), "/usr/bin/llvm-symbolizer%s", getenv("LLVM"));
	setenv("HSYM_LLVM", path, 1);
}

static inline int scratch_begin(void **state)
{
	const char *temporary = getenv("TMPDIR");
	char *full;

	(void)state;
	scratch_find_llvm();
	snprintf(dir, sizeof(dir), "%s/test.XXXXXX", temporary ? temporary : "build");
	full = mkdtemp(dir) ? realpath(dir, NULL) : NULL;
	snprintf(dir, sizeof(dir), "%s", full ? full : "");
	free(full);
	return !*dir;
}

static inline int scratch_end(void **state)
{
	char command[400];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command);
}

static inline void file_write(const char *path, const void *bytes, size_t len)
{
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
}

/* Returns a file's bytes, terminated by NUL. The caller frees them. */
static inline char *file_get(const char *path, size_t *len)
{
	FILE *file = fopen(path, "rb");
	char *bytes;

	assert_non_null(file);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	*len = (size_t)ftell(file);
	rewind(file);
	bytes = calloc(1, *len + 1);
	assert_non_null(bytes);
	assert_int_equal(fread(bytes, 1, *len, file), *len);
	assert_int_equal(fclose(file), 0);
	return bytes;
}

static inline void scratch_write(const char *name, const char *text, mode_t mode)
{
	char path[800];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file_write(path, text, strlen(text));
	assert_int_equal(chmod(path, mode), 0);
}

static inline int scratch_read(void *ctx, uint64_t offset, void *bytes, size_t len)
{
	return os_read_at(ctx, offset, bytes, len);
}

static inline int scratch_headers(const char *path, struct pe_image *pe)
{
	struct os_file file;
	struct pe_source source = {.read = scratch_read, .ctx = &file};
	int rc;

	assert_int_equal(os_open(&file, path, NULL), 0);
	rc = pe_read_headers(&source, pe);
	os_close(&file);
	return rc;
}

/* Runs a command in the folder and parses its output as a number in this base. */
static inline uint64_t scratch_number(const char *command, int base)
{
	char text[2000], line[100] = "";
	FILE *pipe;

	snprintf(text, sizeof(text), "cd '%s' && %s", dir, command);
	pipe = popen(text, "r");
	if (!pipe || !fgets(line, sizeof(line), pipe))
		line[0] = '\0';
	if (pipe)
		pclose(pipe);
	return strtoull(line, NULL, base);
}

/* Returns a number from an image's headers. word: objdump's label for the number. */
static inline uint64_t scratch_header(const char *image, const char *word)
{
	char command[500];

	snprintf(command, sizeof(command),
		"x86_64-w64-mingw32-objdump -p '%s' | awk '$1 == \"%s\" { print $2 }'", image,
		word);
	return scratch_number(command, 16);
}

/* Returns a symbol's RVA as nm reports it, or 0 if nm does not list the symbol. */
static inline uint32_t scratch_rva(const char *image, const char *symbol)
{
	uint64_t base = scratch_header(image, "ImageBase"), at;
	char command[500];

	snprintf(command, sizeof(command),
		"x86_64-w64-mingw32-nm '%s' | awk '$3 == \"%s\" { print $1 }'", image, symbol);
	at = scratch_number(command, 16);
	return at > base ? (uint32_t)(at - base) : 0;
}

#endif
