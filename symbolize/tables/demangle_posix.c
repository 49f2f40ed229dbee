#include "symbolize/tables/demangle_ms.h"

/* Those who can read them are DbgHelp and llvm-symbolizer, and they give readable names themselves. */
int demangle_ms(const char *name, struct buf *text)
{
	(void)name;
	(void)text;
	return 0;
}
