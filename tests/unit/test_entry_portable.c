/* Plain entries parsed without special instructions. */
#define ENTRY_PORTABLE
#include "tests/unit/test_entry_plain.h"
