#include "symbolize/tables/demangle.h"

#include <setjmp.h>
#include <string.h>

#include "symbolize/keep.h"
#include "symbolize/own_name.h"
#include "symbolize/tables/demangle_work.h"

/*
 * The demangler of gcc's C++ library (libsupc++), from where the library's own start-up code calls it;
 * no header declares it. It hands its text on in pieces and owns nothing that would have to be freed,
 * so it may be left in the middle. Not 0: the name is none.
 */
int __gcclibcxx_demangle_callback(const char *name, /* NOLINT: the library's */
	void (*take)(const char *text, size_t len, void *ctx), void *ctx);

struct demangling {
	struct buf *text;
	size_t left; /* bytes that may be added */
	int rc;
	jmp_buf enough;
};

bool is_mangled(const char *name)
{
	return !strncmp(name, "_Z", 2) || !strncmp(name, "__Z", 3) || name[0] == '?';
}

static void take(const char *text, size_t len, void *ctx)
{
	struct demangling *to = ctx;
	size_t part = len < to->left ? len : to->left;

	to->rc = buf_add(to->text, text, part);
	to->left -= part;
	if (to->rc || part < len)
		longjmp(to->enough, 1);
}

/* 1, 0 or -ERR_NOMEM, with what there was by then in to->text. */
static int run(const char *name, struct demangling *to)
{
	if (setjmp(to->enough))
		return to->rc ? to->rc : 1;
	return !__gcclibcxx_demangle_callback(name, take, to);
}

static int demangle_itanium(const char *name, struct buf *text)
{
	struct demangling to = {.text = text, .left = SYMBOL_TEXT_MAX};
	size_t from = text->len, len = strlen(name);
	int rc;

	if (len > MANGLED_MAX || !demangle_is_bounded(name, len))
		return 0;
	rc = run(name, &to);
	if (rc == 1 && text->len > from)
		return 1;
	text->len = from;
	if (text->data)
		text->data[from] = '\0';
	return rc < 0 ? rc : 0;
}

int demangle(const char *name, struct buf *text)
{
	if (!is_mangled(name) || name[0] == '?')
		return 0;
	return demangle_itanium(name[1] == '_' ? name + 1 : name, text);
}

/* "?grab@Pool@app@@QEAAPEAXN@Z" and "app::Pool::grab(double)": does the first name in the one stand in the
 * other? */
static bool has_own_name(const char *mangled, const char *text)
{
	size_t len = strcspn(mangled + 1, "@?$");
	const char *at = text;

	while (len && (at = strchr(at, mangled[1]))) {
		if (!strncmp(at, mangled + 1, len))
			return true;
		at++;
	}
	return false;
}

/* Whether the functions' own names are the same, but for a suffix: "f.part.0", or "f@8" of 32-bit images. */
static bool is_own_name(const char *name, const char *said)
{
	size_t len, said_len;
	const char *own = own_name(name, &len), *said_own = own_name(said, &said_len);
	size_t plain = strcspn(own, "<(.@"), said_plain = strcspn(said_own, "<(.@");

	return plain && plain == said_plain && !strncmp(own, said_own, plain);
}

int is_name_of(const char *name, const char *said)
{
	struct buf text;
	int rc;

	if (!strcmp(name, said))
		return 2;
	if (name[0] == '?')
		return has_own_name(name, said);
	buf_init(&text);
	rc = demangle(name, &text);
	if (rc >= 0) {
		const char *readable = rc ? text.data : name;

		rc = !strcmp(readable, said) ? 2 : is_own_name(readable, said);
	}
	buf_release(&text);
	return rc;
}
