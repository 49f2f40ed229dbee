#include "core/terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/os.h"

static bool is_letter(char c, char lower)
{
	return c == lower || (c >= 'A' && c <= 'Z' && c - 'A' + 'a' == lower);
}

/* The coded character set stands between a dot and an "@". */
bool locale_is_utf8(const char *name)
{
	static const char utf[] = "utf";
	const char *at = name ? strchr(name, '.') : NULL;

	if (!at)
		return false;
	for (size_t i = 0; utf[i]; i++) {
		if (!is_letter(*++at, utf[i]))
			return false;
	}
	at += at[1] == '-';
	return at[1] == '8' && (!at[2] || at[2] == '@');
}

/* The names are looked at, and not what the C library makes of them: a terminal speaks UTF-8 also
 * where the locale that says so is not installed. */
static const char *locale_name(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return value;
	}
	return NULL;
}

bool terminal_is_utf8(void)
{
	return os_is_terminal(stdout) && locale_is_utf8(locale_name());
}
