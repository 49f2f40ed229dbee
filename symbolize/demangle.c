/*
 * Demangles Itanium C++ names, using the demangler in gcc's C++ library. A short hostile name can
 * stand for terabytes of text or make the demangler run forever. So the cost of a name is
 * estimated, and its form is checked, before the name is passed to the demangler.
 */
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/names.h"

/* Limit of the work for one name: the number of tree nodes that a demangler may visit after
 * expanding all references; about 0.1 s. */
#define WORK_MAX (UINT64_C(1) << 24)

/* Upper bound of the expansion of a part of a name. */
struct name_weight {
	uint64_t nodes;
	uint64_t arguments; /* number of references to template arguments */
};

/*
 * Cost estimate based on the Itanium C++ ABI. "S_", "S0_", ... "SZ_", "S10_" refer to the first,
 * second, ... of the earlier parts of the name, which the ABI calls substitutable components. The
 * estimate does not parse where parts end. Part i must end before the first reference to part i or
 * to a later part. So the weight of part i is at most that of everything before that reference.
 * Anything that looks like a reference counts as one, even inside identifiers.
 */
struct estimate {
	struct name_weight sum; /* weight of the name so far */
	struct name_weight parts[MANGLED_MAX];
	size_t part_count;
	unsigned scopes; /* number of template scopes, which can be nested */
};

/* Parses the digits of a reference and the '_' after them. Returns the number of the part, or
 * SIZE_MAX if this is not a reference. */
static size_t reference(const char *name, size_t len, size_t at)
{
	size_t number = 0;

	for (size_t i = at; i < len; i++) {
		char c = name[i];

		if (c == '_')
			return i == at ? 0 : number + 1;
		if ((c < '0' || c > '9') && (c < 'A' || c > 'Z'))
			return SIZE_MAX;
		number = number * 36 + (size_t)(c <= '9' ? c - '0' : c - 'A' + 10);
		if (number > MANGLED_MAX)
			number = MANGLED_MAX; /* larger than the number of any part */
	}
	return SIZE_MAX;
}

static void refer(struct estimate *estimate, size_t part)
{
	while (estimate->part_count <= part)
		estimate->parts[estimate->part_count++] = estimate->sum;
	estimate->sum.nodes += estimate->parts[part].nodes;
	estimate->sum.arguments += estimate->parts[part].arguments;
}

/* Returns the work for the whole name. A template argument is expanded in the enclosing scope, so
 * each scope can multiply the work by the number of references. */
static uint64_t work(const struct estimate *estimate)
{
	uint64_t work = estimate->sum.nodes;

	for (unsigned i = 0; estimate->sum.arguments && i < estimate->scopes && work < WORK_MAX;
		i++)
		work *= 1 + estimate->sum.arguments;
	return work;
}

/*
 * Returns true if the cost of demangling is certainly bounded. Parts of an Itanium name may refer
 * to earlier parts, which may contain references themselves. So a few hundred bytes can stand for
 * terabytes of text, or cause that much work without output. `len` must not exceed MANGLED_MAX.
 */
static bool demangle_is_bounded(const char *name, size_t len)
{
	struct estimate estimate = {0};

	for (size_t i = 0; i < len && estimate.sum.nodes < WORK_MAX; i++) {
		size_t part = name[i] == 'S' ? reference(name, len, i + 1) : SIZE_MAX;

		estimate.sum.nodes++;
		/* A name has at most `i` parts before byte `i`, so a reference to any other part is
		 * invalid. */
		if (part < i)
			refer(&estimate, part);
		if (name[i] == 'T' && reference(name, len, i + 1) != SIZE_MAX)
			estimate.sum.arguments++;
		/* a nested encoding, or a conversion to a type */
		if (name[i] == 'Z' || (name[i] == 'c' && i + 1 < len && name[i + 1] == 'v'))
			estimate.scopes++;
	}
	return estimate.sum.nodes < WORK_MAX && work(&estimate) < WORK_MAX;
}

/* Returns the first place in the name where an expression may begin (a template argument, a
 * decltype, an array size), or the end of the name. That place may be inside an identifier. */
static const char *first_expression(const char *name)
{
	const char *at = name + strcspn(name, "XDA");

	while ((*at == 'D' && at[1] >= '0' && at[1] <= '9') ||
		(*at == 'A' && ((at[1] >= '0' && at[1] <= '9') || at[1] == '_')))
		at += 1 + strcspn(at + 1, "XDA");
	return at;
}

/*
 * Returns true if the unresolved name at `at` consists only of the following elements and ends with
 * 'E': "St", length-prefixed names, references, and template arguments that are references. gcc's
 * demangler always advances over each of these elements. g++ 12 emits such a name for every
 * std::make_shared.
 */
static bool is_simple_name(const char *at)
{
	bool is_inside = false; /* inside template arguments */

	for (;;) {
		size_t digits = strspn(at, "0123456789"), len;

		if (*at == 'S' && at[1] == 't' && !is_inside) {
			at += 2;
		} else if (*at == 'S' || *at == 'T') {
			at += 1 + strspn(at + 1, *at == 'S' ?
							 "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ" :
							 "0123456789");
			if (*at++ != '_')
				return false;
		} else if (*at == 'I' && !is_inside) {
			is_inside = true;
			at++;
		} else if (*at == 'E' && is_inside) {
			is_inside = false;
			at++;
		} else if (digits && digits < 5 && !is_inside) {
			len = strtoul(at, NULL, 10);
			at += digits;
			if (!len || strnlen(at, len) < len)
				return false;
			at += len;
		} else {
			return *at == 'E';
		}
	}
}

/*
 * Returns false if gcc's demangler (version 12) might never end. It can loop forever in an
 * unresolved name ("sr" in an expression). This happens if a 'C', 'D' or 'U' in the name does not
 * start a constructor, destructor, decltype, lambda or unnamed type. This check cannot distinguish
 * such letters from letters in identifiers: it refuses 85 of 80,798 names in LLVM's libraries and
 * libstdc++.
 */
static bool demangle_ends(const char *name)
{
	const char *at = strstr(first_expression(name), "sr");

	while (at && is_simple_name(at + 2))
		at = strstr(at + 2, "sr");
	for (; at && (at = strpbrk(at, "CDU")); at++) {
		const char *begins = *at == 'C' ? "12345I" : *at == 'D' ? "01245Tt" : "lt";

		if (!at[1] || !strchr(begins, at[1]))
			return false;
	}
	return true;
}

/*
 * The demangler of gcc's C++ library (libsupc++), used by the library's start-up code; no header
 * declares it. It passes the text to its callback in pieces and owns no memory, so the callback may
 * call longjmp(). Returns nonzero if `name` is not a mangled name.
 */
int __gcclibcxx_demangle_callback(const char *name, /* NOLINT: the library's name */
	void (*append_text)(const char *text, size_t len, void *ctx), void *ctx);

struct demangling {
	struct buf *text;
	size_t left; /* number of bytes that may still be added */
	jmp_buf enough;
};

bool is_mangled(const char *name)
{
	return !strncmp(name, "_Z", 2) || !strncmp(name, "__Z", 3) || name[0] == '?';
}

static void append_text(const char *text, size_t len, void *ctx)
{
	struct demangling *to = ctx;
	size_t part = len < to->left ? len : to->left;

	buf_add(to->text, text, part);
	to->left -= part;
	if (part < len)
		longjmp(to->enough, 1);
}

/* Runs the demangler. This is a separate function because longjmp() may clobber local variables
 * that were changed. */
static bool run(const char *name, struct demangling *to)
{
	return setjmp(to->enough) || !__gcclibcxx_demangle_callback(name, append_text, to);
}

int demangle_name(const char *name, struct buf *text)
{
	struct demangling to = {.text = text, .left = SYMBOL_TEXT_MAX};
	size_t from = text->len, len;

	if (!is_mangled(name) || name[0] == '?')
		return 0;
	name += name[1] == '_';
	len = strlen(name);
	if (len > MANGLED_MAX || !demangle_is_bounded(name, len) || !demangle_ends(name))
		return 0;
	if (run(name, &to) && text->len > from)
		return 1;
	text->len = from;
	if (text->data)
		text->data[from] = '\0';
	return 0;
}

/* Returns true if `text` contains the first identifier in a mangled name, such as "grab" for
 * "?grab@Pool@app@@QEAAPEAXN@Z" and "app::Pool::grab(double)". */
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

/* Returns true if the two own names are equal, ignoring suffixes such as ".part.0", or "@8" in
 * 32-bit images. */
static bool is_own_name(const char *name, const char *other_name)
{
	size_t len, other_len;
	const char *own = names_own(name, &len), *other_own = names_own(other_name, &other_len);
	size_t plain = strcspn(own, "<(.@"), said_plain = strcspn(other_own, "<(.@");

	return plain && plain == said_plain && !strncmp(own, other_own, plain);
}

int is_name_of(const char *name, const char *other_name)
{
	struct buf text;
	int fits;

	if (!strcmp(name, other_name))
		return 2;
	if (name[0] == '?')
		return has_own_name(name, other_name);
	buf_init(&text);
	if (demangle_name(name, &text))
		name = text.data;
	fits = !strcmp(name, other_name) ? 2 : is_own_name(name, other_name);
	buf_release(&text);
	return fits;
}
