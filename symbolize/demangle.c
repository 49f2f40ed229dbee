#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/names.h"

/* Nodes of the tree that a name stands for, with all it refers to written out, which a demangler may
 * walk without printing anything: a tenth of a second or so. */
#define WORK_MAX (UINT64_C(1) << 24)

/* What a part of the name may stand for, at most. */
struct name_weight {
	uint64_t nodes;
	uint64_t arguments; /* references to arguments of templates among them */
};

/*
 * After the Itanium C++ ABI: "S_", "S0_", ... "SZ_", "S10_" stand for the first, second ... part of the
 * name before them that can be referred to. Where those parts end is not looked for: the i-th cannot end
 * behind the first reference to it or to a later one, and is not heavier than all that is before that.
 * Everything that looks like a reference is taken for one, also within identifiers.
 */
struct estimate {
	struct name_weight sum; /* of the name so far */
	struct name_weight parts[MANGLED_MAX];
	size_t part_count;
	unsigned scopes; /* of templates, that can lie within each other */
};

/* The digits of a reference and its '_', from at on: the number of the part; SIZE_MAX: it is none. */
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
			number = MANGLED_MAX; /* no such part */
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

/* An argument is printed as what surrounds its template sees it: the references in it lead one scope
 * outwards. */
static uint64_t work(const struct estimate *estimate)
{
	uint64_t work = estimate->sum.nodes;

	for (unsigned i = 0; estimate->sum.arguments && i < estimate->scopes && work < WORK_MAX;
		i++)
		work *= 1 + estimate->sum.arguments;
	return work;
}

/*
 * An Itanium name may refer to parts of itself, and those to others: a few hundred bytes can stand for
 * terabytes, or for as much work that prints nothing. False when that cannot be ruled out for the name
 * of len bytes, at most MANGLED_MAX.
 */
static bool demangle_is_bounded(const char *name, size_t len)
{
	struct estimate estimate = {0};

	for (size_t i = 0; i < len && estimate.sum.nodes < WORK_MAX; i++) {
		size_t part = name[i] == 'S' ? reference(name, len, i + 1) : SIZE_MAX;

		estimate.sum.nodes++;
		if (part < i) /* else there cannot be as many parts before it */
			refer(&estimate, part);
		if (name[i] == 'T' && reference(name, len, i + 1) != SIZE_MAX)
			estimate.sum.arguments++;
		/* an encoding of its own, and a conversion to a type */
		if (name[i] == 'Z' || (name[i] == 'c' && i + 1 < len && name[i + 1] == 'v'))
			estimate.scopes++;
	}
	return estimate.sum.nodes < WORK_MAX && work(&estimate) < WORK_MAX;
}

/* Where an expression may begin, or the end: a template argument, a type by an expression, an array's size. Part of an
 * identifier or not. */
static const char *first_expression(const char *name)
{
	const char *at = name + strcspn(name, "XDA");

	while ((*at == 'D' && at[1] >= '0' && at[1] <= '9') ||
		(*at == 'A' && ((at[1] >= '0' && at[1] <= '9') || at[1] == '_')))
		at += 1 + strcspn(at + 1, "XDA");
	return at;
}

/*
 * Returns true if an unresolved name that begins at at is of these parts alone: "St", names with their lengths,
 * references, and template arguments that are references; then 'E'. gcc's demangler takes each of them or leaves it
 * behind, whatever it makes of them. g++ 12 has such a name in every std::make_shared.
 */
static bool is_simple_name(const char *at)
{
	bool is_inside = false; /* of template arguments */

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
 * gcc's demangler (12) never ends where an unresolved name, which is "sr" in an expression, has a 'C', 'D' or 'U' that begins
 * nothing: neither a constructor, a destructor, a decltype, a lambda nor a type without a name. Letters may be those of
 * identifiers for all that is known here: of 80,798 names of LLVM's libraries and libstdc++ 85 are refused.
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
 * The demangler of gcc's C++ library (libsupc++), from where the library's own start-up code calls it;
 * no header declares it. It hands its text on in pieces and owns nothing that would have to be freed,
 * so it may be left in the middle. Not 0: the name is none.
 */
int __gcclibcxx_demangle_callback(const char *name, /* NOLINT: the library's */
	void (*take)(const char *text, size_t len, void *ctx), void *ctx);

struct demangling {
	struct buf *text;
	size_t left; /* bytes that may be added */
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

	buf_add(to->text, text, part);
	to->left -= part;
	if (part < len)
		longjmp(to->enough, 1);
}

/* Apart from what changes local variables, which longjmp() may spoil. */
static bool run(const char *name, struct demangling *to)
{
	return setjmp(to->enough) || !__gcclibcxx_demangle_callback(name, take, to);
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
	const char *own = names_own(name, &len), *said_own = names_own(said, &said_len);
	size_t plain = strcspn(own, "<(.@"), said_plain = strcspn(said_own, "<(.@");

	return plain && plain == said_plain && !strncmp(own, said_own, plain);
}

int is_name_of(const char *name, const char *said)
{
	struct buf text;
	int fits;

	if (!strcmp(name, said))
		return 2;
	if (name[0] == '?')
		return has_own_name(name, said);
	buf_init(&text);
	if (demangle_name(name, &text))
		name = text.data;
	fits = !strcmp(name, said) ? 2 : is_own_name(name, said);
	buf_release(&text);
	return fits;
}
