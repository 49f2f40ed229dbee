#include "symbolize/listen.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/text.h"

#define SENTENCE_BYTES 4000

void listener_warn(const struct symbol_options *options, const char *format, ...)
{
	char sentence[SENTENCE_BYTES];
	va_list args;

	if (!options->listener.warn)
		return;
	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	options->listener.warn(options->listener.ctx, text_harmless(sentence));
}

void listener_progress(
	const struct symbol_options *options, const char *module, size_t done, size_t total)
{
	if (options->listener.progress)
		options->listener.progress(options->listener.ctx, module, done, total);
}

void listener_busy(const struct symbol_options *options, bool is_busy)
{
	if (options->listener.busy)
		options->listener.busy(options->listener.ctx, is_busy);
}

bool listener_is_cancelled(const struct symbol_options *options)
{
	return options->listener.is_cancelled &&
	       options->listener.is_cancelled(options->listener.ctx);
}
