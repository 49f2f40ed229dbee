#include "symbolize/tables/demangle_work.h"

#include <stdint.h>

/* Nodes of the tree that a name stands for, with all it refers to written out, which a demangler may
 * walk without printing anything: a tenth of a second or so. */
#define WORK_MAX (UINT64_C(1) << 24)

/* What a part of the name may stand for, at most. */
struct weight {
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
	struct weight sum; /* of the name so far */
	struct weight parts[MANGLED_MAX];
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

bool demangle_is_bounded(const char *name, size_t len)
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
