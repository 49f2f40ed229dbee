/* The sentences and remedies of err.h, and the conversion of an error to one line of text. */
#include "core/base/err.h"

#include <stdarg.h>
#include <string.h>

#include "core/base/text.h"

static const struct {
	const char *sentence, *remedy;
} messages[] = {[ERR_OK] = {"no error", ""},
#define X(code, sentence, remedy) [code] = {sentence, remedy},
	ERR_LIST(X)
#undef X
};

int err_set(struct err *err, enum err_code code, const char *place, const char *detail, ...)
{
	va_list args;

	if (!err)
		return -(int)code;
	err->code = code;
	snprintf(err->place, sizeof(err->place), "%s", place ? place : "");
	err->detail[0] = '\0';
	if (detail) {
		va_start(args, detail);
		vsnprintf(err->detail, sizeof(err->detail), detail, args);
		va_end(args);
	}
	return -(int)code;
}

const char *err_reason(const struct err *err, char *text, size_t size)
{
	snprintf(text, size, "%s%s%s%s%s%s", err->place, err->place[0] ? ": " : "",
		messages[err->code].sentence, err->detail[0] ? " (" : "", err->detail,
		err->detail[0] ? ")" : "");
	return text_harmless(text);
}

const char *err_text(const struct err *err, char *text, size_t size)
{
	const char *remedy = messages[err->code].remedy;
	size_t len;

	err_reason(err, text, size);
	len = strlen(text);
	snprintf(text + len, size - len, "%s%s", remedy[0] ? "; " : "", remedy);
	return text;
}

void err_print(FILE *to, const char *program, const struct err *err)
{
	char text[1600];

	fprintf(to, "%s: %s\n", program, err_text(err, text, sizeof(text)));
	fflush(to);
}
