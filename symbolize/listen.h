/* Talking to the listener of a symbolizer (symbol_listener), which may not be there. */
#ifndef SYMBOLIZE_LISTEN_H
#define SYMBOLIZE_LISTEN_H

#include "symbolize/symbolize.h"

/* Says one sentence, printf-formatted; what is not harmless on a terminal is made so. */
void listener_warn(const struct symbol_options *options, const char *format, ...) PRINTF_LIKE(2, 3);

void listener_progress(
	const struct symbol_options *options, const char *module, size_t done, size_t total);

void listener_busy(const struct symbol_options *options, bool is_busy);

bool listener_is_cancelled(const struct symbol_options *options);

#endif
