/* Plain entries parsed with this target's minimum instructions. */
#include "tests/unit/test_entry_plain.h"
