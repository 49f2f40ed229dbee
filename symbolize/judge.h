/*
 * Which name an address gets, of those that a backend gave and those that the module's own tables have.
 *
 * A name with a line comes from true debug information. One without may be that of some symbol far below
 * the address: then the tables decide, and what they know nothing of is kept only when it can reach the
 * address. Where tables know a C++ function by its whole name and the backend only by the first part, the
 * whole name is taken, which tells overloads apart. Where they know a function of another name that begins at
 * the same place, the backend's name is that of a label.
 */
#ifndef SYMBOLIZE_JUDGE_H
#define SYMBOLIZE_JUDGE_H

#include "symbolize/backend/backend.h"

/* Decides on lookup->found, which given_by gave (NULL: nobody did); texts are in the arena. *by: the table
 * that the name is from, or NULL: the backend's stands, or there is none. 0 or -ERR_NOMEM. */
int judge(struct subject *subject, struct lookup *lookup, const struct backend_kind *given_by,
	struct arena *arena, const char **by);

#endif
