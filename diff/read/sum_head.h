#ifndef DIFF_SUM_HEAD_H
#define DIFF_SUM_HEAD_H

#include "diff/read/sum.h"

/*
 * Reads of a dump what tells of which process it is, and when it was taken: pid, time_ms, start_ms, image,
 * or the modules in its place, and has_wall_time, as sums_read() and sums_take_banner() tell them; at most
 * DUMP_HEAD_BYTES are looked at. 0; 1: there may be more of that behind them; or an error, also
 * -ERR_BAD_LINE where sums_read() passes a line over. The caller releases sums in any case.
 */
int sums_read_head(struct sums *sums, const char *path, struct source *source, struct err *err);

#endif
