#include "symbolize/tables/demangle_ms.h"

#include <stdlib.h>
#include <string.h>

#include "core/utf_windows.h"
#include "symbolize/backend/dbghelp_library_windows.h"

#define NAME_MAX_BYTES                                                                             \
	4096 /* as long as Microsoft's compilers make them; deeper nesting is no name */
#define TEXT_UNITS 4000

/* As the demangler of the other names says it: "app::f(int)", no more. */
#define WANTED                                                                                     \
	(UNDNAME_NO_LEADING_UNDERSCORES | UNDNAME_NO_MS_KEYWORDS | UNDNAME_NO_FUNCTION_RETURNS |   \
		UNDNAME_NO_ALLOCATION_MODEL | UNDNAME_NO_ALLOCATION_LANGUAGE |                     \
		UNDNAME_NO_ACCESS_SPECIFIERS | UNDNAME_NO_THROW_SIGNATURES |                       \
		UNDNAME_NO_MEMBER_TYPE)

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

int demangle_ms(const char *name, struct buf *text)
{
	const struct dbghelp *dbghelp = is_askable(name) ? library() : NULL;
	wchar_t said[TEXT_UNITS] = {0};
	wchar_t *wide = dbghelp ? wide_from_utf8(name) : NULL;
	char *utf8 = NULL;
	DWORD len;
	int rc = 0;

	if (dbghelp && !wide)
		return -ERR_NOMEM;
	/* A text that fills the room may have been cut. */
	len = wide ? dbghelp->UnDecorateSymbolNameW(wide, said, TEXT_UNITS, WANTED) : 0;
	said[TEXT_UNITS - 1] = 0;
	while (len && len < TEXT_UNITS && said[len - 1] == ' ') /* behind "const" */
		said[--len] = 0;
	if (len && len < TEXT_UNITS - 1 && said[0] && said[0] != '?') {
		utf8 = utf8_from_wide(said);
		rc = utf8 ? buf_add_text(text, utf8) : -ERR_NOMEM;
		rc = rc ? rc : 1;
	}
	free(utf8);
	free(wide);
	return rc;
}
