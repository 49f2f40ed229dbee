/* A folder for what a test makes, and what the programs that it builds there say of themselves. */
#ifndef TESTS_UNIT_SCRATCH_H
#define TESTS_UNIT_SCRATCH_H

#include "tests/unit/t.h"

#include <unistd.h>

static char dir[300]; /* full path */

static inline int scratch_begin(void **state)
{
	const char *temporary = getenv("TMPDIR");
	char *full;

	(void)state;
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

/* What a command in the folder prints as a hexadecimal number. */
static inline uint64_t scratch_number(const char *command)
{
	char text[2000], line[100] = "";
	FILE *pipe;

	snprintf(text, sizeof(text), "cd '%s' && %s", dir, command);
	pipe = popen(text, "r");
	if (!pipe || !fgets(line, sizeof(line), pipe))
		line[0] = '\0';
	if (pipe)
		pclose(pipe);
	return strtoull(line, NULL, 16);
}

/* A number in an image's headers, as objdump calls it. */
static inline uint64_t scratch_header(const char *image, const char *word)
{
	char command[500];

	snprintf(command, sizeof(command),
		"x86_64-w64-mingw32-objdump -p %s | awk '$1 == \"%s\" { print $2 }'", image, word);
	return scratch_number(command);
}

/* Where nm says that a symbol is; 0: nowhere. */
static inline uint32_t scratch_rva(const char *image, const char *symbol)
{
	uint64_t base = scratch_header(image, "ImageBase"), at;
	char command[500];

	snprintf(command, sizeof(command),
		"x86_64-w64-mingw32-nm %s | awk '$3 == \"%s\" { print $1 }'", image, symbol);
	at = scratch_number(command);
	return at > base ? (uint32_t)(at - base) : 0;
}

#endif
