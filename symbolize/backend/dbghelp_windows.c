#include "symbolize/backend/backend.h"

#include <stdlib.h>
#include <string.h>

#include "core/utf_windows.h"
#include "symbolize/backend/dbghelp_module_windows.h"
#include "symbolize/keep.h"
#include "symbolize/own_name.h"
#include "symbolize/listen.h"

/*
 * Asking DbgHelp. With DWARF 5 the one of Wine 8 has no names and says nothing of it; functions of its
 * own DLLs begin 8 bytes late in it.
 */

#define TAG_FUNCTION 5 /* SymTagFunction: not a public symbol, whose size is guessed */
#define NAME_UNITS 4000
#define HIDDEN_LINES 0xf00f00 /* and above (0xfeefee): marks of compilers, no lines */
#define LOOK_UP_EVERY 64 /* addresses between two looks at the clock */
#define TELL_EVERY_MS 50

struct backend {
	bool is_tried, is_alive;
	const struct symbol_options *options;
	const struct finder *finder;
	struct dbghelp_session session;
	ULONGLONG told_ms;
	union { /* room for the name behind it */
		SYMBOL_INFOW info;
		unsigned char bytes[sizeof(SYMBOL_INFOW) + NAME_UNITS * sizeof(WCHAR)];
	} symbol;
};

/* One address that is asked about. */
struct question {
	const struct dbghelp_module *module;
	uint64_t addr; /* in DbgHelp */
	DWORD context; /* of the function itself, when others are inlined there; or 0 */
	struct symbol chain[SYMBOL_CHAIN_MAX];
	size_t count;
	bool is_sure; /* as in struct lookup */
	struct arena texts;
};

static struct backend *dbghelp_make(
	const struct symbol_options *options, const struct finder *finder)
{
	struct backend *backend = calloc(1, sizeof(*backend));

	if (backend) {
		backend->options = options;
		backend->finder = finder;
	}
	return backend;
}

static void dbghelp_release(struct backend *backend)
{
	dbghelp_session_release(&backend->session);
	free(backend);
}

static const char *dbghelp_trouble(const struct backend *backend)
{
	(void)backend;
	return NULL;
}

/* One UTF-8 text into the arena; NULL: out of memory. */
static const char *text_of(const wchar_t *wide, struct arena *arena)
{
	char *text = utf8_from_wide(wide);
	char *copy = text ? arena_text(arena, text, strlen(text)) : NULL;

	free(text);
	return copy;
}

static SYMBOL_INFOW *symbol_room(struct backend *backend)
{
	SYMBOL_INFOW *info = &backend->symbol.info;

	memset(info, 0, sizeof(*info));
	info->SizeOfStruct = sizeof(*info);
	info->MaxNameLen = NAME_UNITS;
	return info;
}

static int take_name(struct question *question, const wchar_t *name, uint64_t displacement)
{
	struct symbol *symbol = &question->chain[question->count];

	*symbol = (struct symbol){
		.function = text_of(name, &question->texts), .offset_bytes = displacement + 1};
	if (!symbol->function)
		return -ERR_NOMEM;
	question->count++;
	return 0;
}

static int take_line(const IMAGEHLP_LINEW64 *line, struct question *question, struct symbol *symbol)
{
	if (!line->FileName || !line->LineNumber || line->LineNumber >= HIDDEN_LINES)
		return 0;
	symbol->file = text_of(line->FileName, &question->texts);
	symbol->line = line->LineNumber;
	return symbol->file ? 0 : -ERR_NOMEM;
}

static int inlined_line(struct backend *backend, struct question *question, struct symbol *symbol)
{
	struct dbghelp_session *session = &backend->session;
	IMAGEHLP_LINEW64 line = {.SizeOfStruct = sizeof(line)};
	DWORD columns;

	if (!question->module->knows_inlined ||
		!session->dbghelp.SymGetLineFromInlineContextW(
			session->handle, question->addr, question->context, 0, &columns, &line))
		return 0;
	return take_line(&line, question, symbol);
}

static int finish_inlined(struct backend *backend, struct question *question, struct symbol *symbol)
{
	size_t len;

	if (!question->module->knows_inlined) /* the scopes may be those of others */
		symbol->function = own_name(symbol->function, &len);
	return inlined_line(backend, question, symbol);
}

/* The functions inlined at the address, innermost first. */
static int ask_inlined(struct backend *backend, struct question *question)
{
	struct dbghelp_session *session = &backend->session;
	const struct dbghelp *dbghelp = &session->dbghelp;
	uint64_t addr = question->addr;
	DWORD depth = dbghelp->SymAddrIncludeInlineTrace(session->handle, addr), index = 0;
	int rc = 0;

	if (!depth || !dbghelp->SymQueryInlineTrace(
			      session->handle, addr, 0, addr, addr, &question->context, &index)) {
		question->context = 0;
		return 0;
	}
	for (DWORD i = 0; !rc && i < depth; i++, question->context++) {
		SYMBOL_INFOW *info = symbol_room(backend);
		DWORD64 displacement = 0;

		if (question->count == SYMBOL_CHAIN_MAX - 1 ||
			!dbghelp->SymFromInlineContextW(
				session->handle, addr, question->context, &displacement, info) ||
			!info->Name[0])
			continue;
		info->Name[NAME_UNITS - 1] = 0; /* a longer name may have been cut */
		rc = take_name(question, info->Name, displacement);
		if (!rc)
			rc = finish_inlined(
				backend, question, &question->chain[question->count - 1]);
	}
	return rc;
}

static int function_line(struct backend *backend, struct question *question, struct symbol *symbol)
{
	struct dbghelp_session *session = &backend->session;
	IMAGEHLP_LINEW64 line = {.SizeOfStruct = sizeof(line)};
	DWORD displacement;

	if (question->context)
		return inlined_line(backend, question, symbol);
	if (!session->dbghelp.SymGetLineFromAddrW64(
		    session->handle, question->addr, &displacement, &line))
		return 0;
	return take_line(&line, question, symbol);
}

/* The function itself. What is inlined in one without a name is left out with it. */
static int ask_function(struct backend *backend, struct question *question)
{
	struct dbghelp_session *session = &backend->session;
	SYMBOL_INFOW *info = symbol_room(backend);
	DWORD64 displacement = 0;
	int rc;

	if (!session->dbghelp.SymFromAddrW(session->handle, question->addr, &displacement, info) ||
		!info->Name[0] || (info->Flags & SYMFLAG_EXPORT)) {
		question->count = 0;
		return 0;
	}
	info->Name[NAME_UNITS - 1] = 0;
	question->is_sure = info->Tag == TAG_FUNCTION && displacement < info->Size;
	rc = take_name(question, info->Name, displacement);
	return rc ? rc : function_line(backend, question, &question->chain[question->count - 1]);
}

static int look_up(struct backend *backend, const struct dbghelp_module *module,
	struct lookup *lookup, struct arena *arena)
{
	struct question question = {.module = module, .addr = module->base + lookup->rva};
	int rc = 0;

	arena_init(&question.texts);
	if (backend->session.dbghelp.has_inlines)
		rc = ask_inlined(backend, &question);
	if (!rc)
		rc = ask_function(backend, &question);
	if (!rc && question.count)
		rc = symbols_keep(arena, question.chain, question.count, &lookup->found);
	lookup->is_answered = !rc;
	lookup->is_sure = question.is_sure;
	arena_release(&question.texts);
	return rc;
}

/* Tells how far it is, not too often. false: it is to stop. */
static bool go_on(struct backend *backend, const struct module *module, size_t done, size_t total)
{
	ULONGLONG now_ms;

	if (done % LOOK_UP_EVERY)
		return true;
	now_ms = GetTickCount64();
	if (now_ms - backend->told_ms >= TELL_EVERY_MS) {
		backend->told_ms = now_ms;
		listener_progress(backend->options, path_base(module->path), done, total);
	}
	return !listener_is_cancelled(backend->options);
}

static int dbghelp_resolve(struct backend *backend, struct subject *subject, struct lookup *lookups,
	size_t count, struct arena *arena)
{
	struct dbghelp_module module = {0};
	int rc;

	if (!backend->is_tried) {
		backend->is_tried = true;
		backend->is_alive =
			dbghelp_session_start(&backend->session, backend->options, backend->finder);
	}
	if (!backend->is_alive)
		return 0;
	rc = dbghelp_session_load(&backend->session, subject, count, &module);
	for (size_t i = 0; !rc && module.base && i < count; i++) {
		if (!go_on(backend, subject->module, i, count))
			break;
		if (!lookups[i].found.count)
			rc = look_up(backend, &module, &lookups[i], arena);
	}
	return rc;
}

const struct backend_kind dbghelp_backend = {
	.name = "DbgHelp",
	.make = dbghelp_make,
	.release = dbghelp_release,
	.resolve = dbghelp_resolve,
	.trouble = dbghelp_trouble,
};
