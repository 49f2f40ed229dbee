/* Plain entries as this machine reads them at least. */
#include "tests/unit/test_entry_plain.h"
