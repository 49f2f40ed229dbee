#include "snapshot/series/program_name.h"

#include <stdbool.h>
#include <string.h>

#include "core/text.h"

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* text[len] is word, in any case of letters. */
static bool is_word(const char *text, size_t len, const char *word)
{
	size_t same = 0;

	while (same < len && word[same] && lower(text[same]) == word[same])
		same++;
	return same == len && !word[same];
}

/* The file's name alone, and its length without ".exe". */
static const char *name_of(const char *program, size_t *len)
{
	static const char exe[] = ".exe";
	const char *name = program + strlen(program);

	while (name > program && !strchr("\\/:", name[-1]))
		name--;
	*len = strlen(name);
	if (*len > strlen(exe) && is_word(name + *len - strlen(exe), strlen(exe), exe))
		*len -= strlen(exe);
	return name;
}

bool program_name_is_device(const char *name, size_t name_len)
{
	static const char *const words[] = {"con", "prn", "aux", "nul", "conin$", "conout$"};
	static const char *const numbers[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9",
		"\xc2\xb9", "\xc2\xb2", "\xc2\xb3"};
	const char *dot = memchr(name, '.', name_len);
	size_t len = dot ? (size_t)(dot - name) : name_len;

	while (len && name[len - 1] == ' ')
		len--;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (is_word(name, len, words[i]))
			return true;
	}
	if (len < 4 || (!is_word(name, 3, "com") && !is_word(name, 3, "lpt")))
		return false;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		if (is_word(name + 3, len - 3, numbers[i]))
			return true;
	}
	return false;
}

/* What no name may hold on Windows, and what is no text. */
static void replace_unfit(char *name)
{
	while (*name) {
		uint32_t code;
		size_t unfit = text_unfit(name);
		size_t len = unfit ? unfit : text_utf8(name, &code);

		if (unfit || strchr("<>:\"/\\|?*", *name))
			memset(name, '_', len);
		name += len;
	}
}

/* Windows drops dots and blanks at the end; and two dots are another folder. */
static void replace_end(char *name)
{
	for (size_t len = strlen(name); len && strchr(". ", name[len - 1]); len--)
		name[len - 1] = '_';
}

/* A name that begins with a dash would be an option where a shell puts it in the place of a pattern. */
static void replace_dash(char *name)
{
	if (*name == '-')
		*name = '_';
}

int program_name_add(struct buf *to, const char *program)
{
	size_t len;
	const char *name = name_of(program, &len);
	struct buf fit;
	int rc;

	buf_init(&fit);
	rc = len ? buf_add(&fit, name, len) : buf_add_text(&fit, "_");
	if (!rc) {
		replace_unfit(fit.data);
		replace_end(fit.data);
		replace_dash(fit.data);
		rc = buf_printf(
			to, "%s%s", program_name_is_device(fit.data, fit.len) ? "_" : "", fit.data);
	}
	buf_release(&fit);
	return rc;
}
