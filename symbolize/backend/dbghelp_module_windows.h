/*
 * Modules loaded into DbgHelp: each from the image and the PDB that were found to be the dump's build,
 * or else, where the user's symbol path names servers, from what DbgHelp finds there; and what it found
 * is checked once more.
 *
 * A module is not loaded where the dump has it but behind the one before: two dumps that are compared
 * have other modules at the same place. None is unloaded, and there is no SymCleanup() at the end: both
 * are broken in Wine 8, where they free what they must not.
 */
#ifndef SYMBOLIZE_DBGHELP_MODULE_WINDOWS_H
#define SYMBOLIZE_DBGHELP_MODULE_WINDOWS_H

#include "symbolize/backend/backend.h"
#include "symbolize/backend/dbghelp_library_windows.h"

struct dbghelp_module {
	bool is_tried;
	uint64_t base; /* where DbgHelp has it; 0: it knows nothing of it */
	bool knows_inlined; /* lines and scopes where functions are inlined are true */
};

struct dbghelp_session {
	struct dbghelp dbghelp;
	const struct symbol_options *options;
	const struct finder *finder;
	HANDLE handle;
	bool is_started;
	uint64_t next_base, next_low_base; /* the second: of 32-bit images */
	struct dbghelp_module *modules; /* by number of the subject */
	size_t module_count;
	const struct subject *loading; /* or NULL */
	size_t wanted_count; /* addresses that are asked about in it */
};

/* Fills the zeroed *session; false: DbgHelp is not to be had. Both are borrowed. */
bool dbghelp_session_start(struct dbghelp_session *session, const struct symbol_options *options,
	const struct finder *finder);
void dbghelp_session_release(struct dbghelp_session *session);

/* Loads a module unless that was tried; wanted_count: for people, how many addresses wait for it.
 * 0, also when there is nothing; or -ERR_NOMEM. */
int dbghelp_session_load(struct dbghelp_session *session, struct subject *subject,
	size_t wanted_count, struct dbghelp_module *module);

#endif
