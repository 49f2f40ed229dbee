#include "symbolize/backend/undname.h"

#include <stdlib.h>
#include <string.h>

#include "core/utf_windows.h"
#include "symbolize/backend/dbghelp_library_windows.h"

#define NAME_MAX_BYTES                                                                             \
	4096 /* as long as Microsoft's compilers make them; deeper nesting is no name */
#define TEXT_UNITS 4000

/* Loaded once; what it says has no state. */
static const struct dbghelp *library(void)
{
	static struct dbghelp dbghelp;
	static bool is_tried, is_there;

	if (!is_tried)
		is_there = dbghelp_load(NULL, &dbghelp) && dbghelp.UnDecorateSymbolNameW;
	is_tried = true;
	return is_there ? &dbghelp : NULL;
}

/* Microsoft names are ASCII; that of another letter is left as it is. */
static bool is_askable(const char *name)
{
	size_t len = 0;

	for (; name[len]; len++) {
		if ((unsigned char)name[len] < 0x20 || (unsigned char)name[len] > 0x7e ||
			len == NAME_MAX_BYTES)
			return false;
	}
	return name[0] == '?';
}

/* 0 or -ERR_NOMEM. */
static int undname_one(
	const struct dbghelp *dbghelp, const char *name, const char **text, struct arena *arena)
{
	wchar_t said[TEXT_UNITS] = {0}, *wide = wide_from_utf8(name);
	char *utf8 = NULL;
	DWORD len;
	int rc = wide ? 0 : -ERR_NOMEM;

	/* A text that fills the room may have been cut. */
	len = wide ? dbghelp->UnDecorateSymbolNameW(wide, said, TEXT_UNITS, UNDNAME_NAME_ONLY) : 0;
	said[TEXT_UNITS - 1] = 0;
	if (len && len < TEXT_UNITS - 1 && said[0] && said[0] != '?') {
		utf8 = utf8_from_wide(said);
		*text = utf8 ? arena_text(arena, utf8, strlen(utf8)) : NULL;
		rc = *text ? 0 : -ERR_NOMEM;
	}
	free(utf8);
	free(wide);
	return rc;
}

int undname(const char *const *names, const char **texts, size_t count, struct arena *arena,
	const struct symbol_options *options)
{
	const struct dbghelp *dbghelp = library();
	int rc = 0;

	(void)options;
	memset(texts, 0, count * sizeof(*texts));
	for (size_t i = 0; dbghelp && !rc && i < count; i++) {
		if (is_askable(names[i]))
			rc = undname_one(dbghelp, names[i], &texts[i], arena);
	}
	return rc;
}
