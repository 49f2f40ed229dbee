/* Names that are set as if a backend had resolved them, without any symbol file. */
#ifndef TESTS_UNIT_TEST_NAMING_H
#define TESTS_UNIT_TEST_NAMING_H

#include "diff/match/locations.h"
#include "diff/query/naming.h"

/* Names a frame of a row, and all other frames at the same place. The row must have been passed to
 * naming_find() before. */
static inline void name_frame(
	const struct naming *naming, size_t row, size_t frame, struct symbols found)
{
	const struct comparison *comparison = naming->comparison;
	const struct row *of = &comparison->rows[row];
	struct location place =
		location_of(comparison->locations, of->dump, stack_frame(of->stack, frame), NULL);
	const struct named_place *named = names_find(comparison->names, &place);

	assert_non_null(named);
	comparison->names->list[named - comparison->names->list].found = found;
}

#endif
