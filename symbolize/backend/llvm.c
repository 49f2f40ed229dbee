#include "symbolize/backend/llvm.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/os.h"
#include "core/dump/model.h"
#include "symbolize/backend/backend.h"
#include "symbolize/names.h"

#define VERSION_MS 5000 /* to say its version */
#define VERSION_BYTES 65536
#define LISTENER_MS 100 /* the listener waits no longer than that */

struct helper *llvm_program_start(const char *const *args, struct buf *path)
{
	struct helper *helper = NULL;
	struct buf list;

	buf_init(&list);
	if (!llvm_program_list(&list)) {
		for (size_t at = 0; !helper && at < list.len; at += strlen(list.data + at) + 1) {
			buf_clear(path);
			if (!buf_add_text(path, list.data + at))
				helper = helper_start(path->data, args);
		}
	}
	buf_release(&list);
	return helper;
}

/* All that a program says until it ends. */
static void listen(struct helper *helper, struct buf *said, const struct symbol_options *options)
{
	int64_t deadline_ms = helper_clock_ms() + VERSION_MS;

	while (helper_clock_ms() < deadline_ms && said->len < VERSION_BYTES &&
		!listener_is_cancelled(options) &&
		helper_exchange(helper, "", 0, said, LISTENER_MS) >= 0)
		;
}

unsigned llvm_program_version(const char *path, const struct symbol_options *options)
{
	static const char *const args[] = {"--version", NULL};
	static const char word[] = "LLVM version ";
	struct helper *helper = helper_start(path, args);
	const char *at = NULL;
	unsigned version = 0;
	struct buf said;

	if (!helper)
		return 0;
	buf_init(&said);
	listen(helper, &said, options);
	if (said.len)
		at = strstr(said.data, word);
	if (at)
		version = (unsigned)strtoul(at + strlen(word), NULL, 10);
	buf_release(&said);
	helper_stop(helper);
	return version;
}

/*
 * One llvm-symbolizer for the whole run, and a second one for what the first dies over, each started when
 * first needed. They are not trusted to do as they should: versions 14 to 19 crash over some functions of
 * PDBs made by Microsoft's compiler, when asked what is inlined there. So when one dies or talks nonsense,
 * the address it died on is asked of the second one, which is not to look for inlined functions, and a new
 * one goes on behind it. When it is silent, none is started any more. What it said by then stays.
 */

#define PATIENCE_MS 20000 /* for one answer: a large PDB takes its time */
#define FAILURES_MAX 5 /* in a row, without an answer between them: it is of no use */
#define DEATHS_MAX 64 /* over one file; then the rest of it is asked without inlined functions */
#define TRUE_LINES_SINCE                                                                           \
	15 /* up to 14, lines inlined from a PDB were those of the next statement */

enum llvm_kind { INLINED, PLAIN, KINDS }; /* with and without the functions inlined at an address */

struct backend {
	const struct symbol_options *options;
	struct helper *helpers[KINDS]; /* NULL: it does not run */
	bool is_absent; /* there is none */
	unsigned failures; /* since the last answer */
	bool gave_up;
	bool is_version_known;
	unsigned version;
	struct buf program; /* its path */
	struct staging *staging;
	struct buf name; /* of the file that is asked about, as it is asked */
};

static struct backend *llvm_make(const struct symbol_options *options, const struct finder *finder)
{
	struct backend *backend = calloc(1, sizeof(*backend));

	(void)finder;
	if (!backend)
		return NULL;
	backend->options = options;
	backend->staging = staging_new();
	if (backend->staging)
		return backend;
	free(backend);
	return NULL;
}

static void llvm_release(struct backend *backend)
{
	for (int kind = 0; kind < KINDS; kind++)
		helper_stop(backend->helpers[kind]);
	staging_free(backend->staging);
	buf_release(&backend->program);
	buf_release(&backend->name);
	free(backend);
}

static const char *llvm_trouble(const struct backend *backend)
{
	return backend->gave_up ? "llvm-symbolizer failed before it had answered all" : NULL;
}

static bool start(struct backend *backend, enum llvm_kind kind)
{
	const char *const args[] = {"--relative-address",
		backend->options->no_demangle ? "--no-demangle" : "--demangle",
		kind == INLINED ? "--inlines" : "--no-inlines", "--functions=linkage",
		"--output-style=LLVM", "--addresses", "--verbose", NULL};

	if (!backend->helpers[kind] && !backend->is_absent && backend->failures < FAILURES_MAX) {
		backend->helpers[kind] = llvm_program_start(args, &backend->program);
		backend->is_absent = !backend->helpers[kind];
	}
	return backend->helpers[kind] != NULL;
}

/* Adds a reason why there are no names, once. */
static int add_reason(struct sym_module *subject, const char *text)
{
	struct buf *reason = &subject->files.reason;
	int rc = 0;

	if (reason->len && strstr(reason->data, text))
		return 0;
	if (reason->len)
		rc = buf_add_text(reason, "; ");
	return rc ? rc : buf_add_text(reason, text);
}

/* Why there is no helper. */
static int explain(const struct backend *backend, struct sym_module *subject)
{
	char *named;
	int rc;

	if (!backend->is_absent)
		return add_reason(subject, "llvm-symbolizer failed");
	named = os_env("HSYM_LLVM");
	rc = add_reason(subject, named ? "HSYM_LLVM is not the full path of a program" :
					 "llvm-symbolizer is not installed");
	free(named);
	return rc;
}

/* ---------------------------------------------------------------- what to ask about */

/* An image is asked itself when it names no PDB: of one that it names, any build would be taken. */
static bool is_asked(const struct module_files *files)
{
	return files->pdb || (files->image && files->pe && !files->pe->pdb[0]);
}

/* Fills backend->name: 0, -ERR_CREATE or -ERR_NOMEM. */
static int name_file(struct backend *backend, const struct sym_module *subject)
{
	const struct module_files *files = &subject->files;

	if (files->pdb)
		return staging_pdb(backend->staging, subject->number, files, &backend->name);
	if (!llvm_can_ask(files->image))
		return staging_file(
			backend->staging, subject->number, files->image, &backend->name);
	buf_clear(&backend->name);
	return buf_add_text(&backend->name, files->image);
}

/* ---------------------------------------------------------------- what it answers */

struct asked {
	struct backend *backend;
	struct sym_module *subject;
	struct arena *arena;
	enum llvm_kind kind;
};

static bool has_true_lines(struct backend *backend)
{
	if (!backend->is_version_known)
		backend->version = llvm_program_version(backend->program.data, backend->options);
	backend->is_version_known = true;
	return backend->version >= TRUE_LINES_SINCE;
}

/* 0 when it is not recorded where the function begins: so for much that is inlined. */
static uint64_t offset_of(const struct sym_module *subject, const struct lookup *lookup,
	const struct llvm_frame *frame)
{
	uint64_t base = subject->files.pe ? subject->files.pe->preferred_base : 0;
	uint64_t addr = base + lookup->rva + 1;

	return frame->start >= base && frame->start && frame->start < addr ? addr - frame->start :
									     0;
}

/*
 * Whether the line of the outermost function is its own. DWARF's tables of lines have that of the innermost
 * inlined code; those of PDBs have the function's.
 */
static bool has_own_line(const struct asked *asked)
{
	return asked->kind == INLINED || asked->subject->files.pdb;
}

static int take(void *ctx, struct lookup *lookup, const struct llvm_frame *frames, size_t count)
{
	const struct asked *asked = ctx;
	bool has_lines = count < 2 || !asked->subject->files.pdb || has_true_lines(asked->backend);
	struct symbol chain[SYMBOL_CHAIN_MAX], *outer;
	size_t kept = 0;
	bool is_sure;

	asked->backend->failures = 0;
	for (size_t i = 0; i < count; i++) {
		bool is_outer = i + 1 == count;
		bool has_line = frames[i].line && (is_outer ? has_own_line(asked) : has_lines);

		if (frames[i].function[0])
			chain[kept++] = (struct symbol){.function = frames[i].function,
				.offset_bytes = offset_of(asked->subject, lookup, &frames[i]),
				.file = has_line && frames[i].file[0] ? frames[i].file : NULL,
				.line = has_line ? frames[i].line : 0};
		else if (is_outer)
			return 0;
	}
	if (!kept)
		return 0;
	outer = &chain[kept - 1];
	/* From a PDB it never tells where a function begins, but the tables know. With a line the name is
	 * sure; without one it may be that of some symbol far below, and the caller will not believe it. */
	if (asked->subject->files.pdb && outer->line) {
		uint64_t offset = tables_offset(asked->subject->tables, lookup->rva, &is_sure);

		outer->offset_bytes = is_sure ? offset : 0;
	}
	return names_keep(asked->arena, chain, kept, &lookup->found);
}

/* ---------------------------------------------------------------- one subject */

static bool is_one_unnamed(const struct lookup *lookups, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!lookups[i].found.count)
			return true;
	}
	return false;
}

/* Asks from *at up to end; *at is then the first that has no answer. As llvm_talk(), and -ERR_TARGET: it
 * cannot be started. */
static int ask(
	struct asked *asked, enum llvm_kind kind, struct lookup *lookups, size_t *at, size_t end)
{
	struct backend *backend = asked->backend;
	unsigned patience_ms = backend->options->patience_ms;
	struct llvm_talk talk = {.options = backend->options,
		.module = module_path_base(asked->subject->module->path),
		.file = backend->name.data,
		.lookups = lookups,
		.at = *at,
		.count = end,
		.patience_ms = patience_ms ? patience_ms : PATIENCE_MS,
		.take = take,
		.ctx = asked};
	int rc;

	if (!start(backend, kind))
		return -ERR_TARGET;
	asked->kind = kind;
	talk.helper = backend->helpers[kind];
	rc = llvm_talk(&talk);
	*at = talk.at;
	if (rc) {
		helper_stop(backend->helpers[kind]);
		backend->helpers[kind] = NULL;
		backend->failures = rc == -ERR_BUSY ? FAILURES_MAX : backend->failures + 1;
	}
	return rc;
}

/* Asks about all, past those that it dies on. *lost: how many it did not answer as it should, also when
 * asked alone. */
static int ask_all(struct asked *asked, struct lookup *lookups, size_t count, size_t *lost)
{
	size_t at = 0, bad, failed = 0;
	int rc = -ERR_READ;

	for (size_t deaths = 0; rc == -ERR_READ && at < count && deaths < 2 * DEATHS_MAX;
		deaths++) {
		enum llvm_kind kind = deaths < DEATHS_MAX ? INLINED : PLAIN;

		rc = ask(asked, kind, lookups, &at, count);
		if (rc != -ERR_READ || at == count)
			break;
		bad = at++;
		if (kind == INLINED)
			rc = ask(asked, PLAIN, lookups, &bad, at);
		failed += rc != 0;
		rc = rc ? rc : -ERR_READ;
	}
	*lost = failed + (count - at);
	return rc;
}

static int llvm_resolve(struct backend *backend, struct sym_module *subject, struct lookup *lookups,
	size_t count, struct arena *arena)
{
	struct asked asked = {backend, subject, arena, INLINED};
	size_t lost;
	int rc;

	if (!is_asked(&subject->files) || !is_one_unnamed(lookups, count))
		return 0;
	if (!start(backend, INLINED))
		return explain(backend, subject);
	rc = name_file(backend, subject);
	if (rc)
		return rc == -ERR_NOMEM ?
			       rc :
			       add_reason(subject, "llvm-symbolizer cannot be asked about it");
	rc = ask_all(&asked, lookups, count, &lost);
	if (rc == -ERR_NOMEM || rc == -ERR_INTERRUPTED)
		return rc == -ERR_NOMEM ? rc : 0;
	backend->gave_up |= lost > 0;
	return lost ? add_reason(subject, "llvm-symbolizer failed") : 0;
}

const struct backend_kind llvm_backend = {
	.name = "llvm-symbolizer",
	.says_parameters = true,
	.make = llvm_make,
	.release = llvm_release,
	.resolve = llvm_resolve,
	.trouble = llvm_trouble,
};
