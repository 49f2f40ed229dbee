/* One snapshot of a member of a loop (series_members.h), into a file of its own. */
#ifndef SNAPSHOT_SERIES_SHOT_H
#define SNAPSHOT_SERIES_SHOT_H

#include "snapshot/series/series_members.h"

/* Takes one if it is time for it: always, or when the process has grown. All that comes of it is said and
 * counted. */
void series_shot(struct series_members *members, struct series_member *member);

#endif
