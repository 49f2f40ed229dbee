/* Plain entries as any machine reads them. */
#define ENTRY_PORTABLE
#include "tests/unit/test_entry_plain.h"
