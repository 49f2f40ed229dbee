/* Names set as if they had been resolved, which no file here contains. */
#ifndef TESTS_UNIT_TEST_NAMING_H
#define TESTS_UNIT_TEST_NAMING_H

#include "diff/match/locations.h"
#include "diff/query/naming.h"

/* Names a frame of a row, and every other frame of the same place. naming_find() must have
 * requested the row. */
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
