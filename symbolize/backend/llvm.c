/*
 * Backend for llvm-symbolizer.
 *
 * One process looks up addresses during the whole run. A second process, which ignores inlined
 * functions, looks up the addresses on which the first one dies. Each process is started when first
 * needed. If a file has many addresses, several processes of the first kind share them.
 *
 * The processes are not trusted: versions 14 to 19 crash on inlined functions in some PDBs of
 * Microsoft's compiler. When a process dies or sends garbage, the second process looks up the
 * address on which it died. A new first process continues after that address. If a process stays
 * silent for too long, no new process is started. Answers received so far are still used.
 */
#include "symbolize/backend/llvm.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/os.h"
#include "core/dump/kv.h"
#include "core/dump/model.h"
#include "symbolize/names.h"

#define PATIENCE_MS 20000 /* for one answer; loading a large PDB takes a long time */
#define VERSION_MS 5000 /* for the answer to --version */
#define VERSION_BYTES 65536
/* up to version 14, inlined lines in PDBs were one statement too late */
#define TRUE_LINES_SINCE 15
/* after this many failures without an answer in between, the program is not used any more */
#define FAILURES_MAX 5
/* after this many deaths on one file, inlined functions in the file are ignored */
#define DEATHS_MAX 64
/* maximum bytes of one answer; a longer one counts as garbage */
#define ANSWER_MAX ((size_t)4 << 20)
#define STRAY_MAX 1000 /* maximum number of lines that are not answers */
#define QUESTION_MAX 1000 /* maximum bytes; LLVM 14 truncates its input lines at 1023 */
#define READY_BYTES ((size_t)256 << 10) /* bytes of questions to keep ready for sending */
#define LISTENER_MS 100 /* longest time between calls of the listener */
#define TELL_MS 50 /* shortest time between progress reports */
#define SIDES_MAX 4 /* maximum number of parallel processes; each loads the file's data */
/* minimum addresses per process: starting a process costs as much as hundreds of answers */
#define SIDE_MIN 1000

/* Kinds of processes. INLINED reports inlined functions; PLAIN ignores them. The kinds from SIDES
 * upwards also report inlined functions. They share the addresses of a file with INLINED. */
enum llvm_kind { INLINED, PLAIN, SIDES, KINDS = SIDES + SIDES_MAX - 1 };

struct llvm_session {
	const struct symbol_options *options;
	struct helper *helpers[KINDS]; /* NULL: not running */
	bool is_absent; /* no program was found */
	unsigned failures; /* number of failures since the last answer */
	bool gave_up;
	bool is_version_known;
	unsigned version;
	struct buf program; /* path of the program */
	struct staging *staging;
	struct buf file; /* path of the file to look up, in the form used in questions */
};

/*
 * Looks up addresses of one file. A question is a line 'CODE "path" 0xRVA'. Questions are sent
 * without waiting for answers; answers arrive in the order of the questions. An answer begins with
 * the address of its question. An unexpected address ends the exchange; any other unexpected line
 * is skipped.
 *
 * The last question contains an unpredictable address, so that no text from the file can imitate
 * the end of the answers. It names a directory instead of the file: for a file, versions 15 and 16
 * would read all variables before finding that nothing is at the address.
 */
struct llvm_asking {
	struct llvm_session *backend;
	struct sym_module *subject;
	struct arena *arena;
	enum llvm_kind kind;
	struct llvm_talk talk;
	struct lookup *lookups; /* only lookups without a name and without an answer are sent */
	size_t count;
	/* index of the first lookup without an answer; index of the next lookup to ask about */
	size_t at, next;
	struct lookup *last; /* lookup that was answered last */
	uint64_t end_addr; /* unpredictable address in the last question */
	/* is_inside: the address line of the next answer was read. is_done: the address line of the
	 * last question was read. */
	bool is_inside, is_done;
	size_t stray_count;
};

/* ---------------------------------------------------------------- exchange */

void llvm_talk_init(
	struct llvm_talk *talk, struct helper *helper, const struct symbol_options *options)
{
	unsigned patience_ms = options->patience_ms ? options->patience_ms : PATIENCE_MS;

	*talk = (struct llvm_talk){.helper = helper,
		.options = options,
		.patience_ms = patience_ms,
		.deadline_ms = os_clock_ms() + patience_ms};
}

int llvm_talk_step(struct llvm_talk *talk)
{
	int64_t left_ms = talk->deadline_ms - os_clock_ms(), took;
	struct buf *answers = &talk->answers;
	size_t had = answers->len, end;

	if (listener_is_cancelled(talk->options))
		return -ERR_INTERRUPTED;
	if (left_ms <= 0)
		return -ERR_BUSY;
	took = helper_exchange(talk->helper,
		talk->questions.len ? talk->questions.data + talk->sent : "",
		talk->questions.len - talk->sent, answers,
		left_ms < LISTENER_MS ? (unsigned)left_ms : LISTENER_MS);
	if (took < 0)
		return -ERR_READ;
	talk->sent += (size_t)took;
	/* Remove the \r of programs built for Windows, which end lines with \r\n. Names never
	 * contain \r. */
	end = answers->len;
	if (end == had || !memchr(answers->data + had, '\r', end - had))
		return 0;
	answers->len = had;
	for (size_t at = had; at < end; at++) {
		if (answers->data[at] != '\r')
			answers->data[answers->len++] = answers->data[at];
	}
	return 0;
}

void llvm_talk_release(struct llvm_talk *talk)
{
	buf_release(&talk->questions);
	buf_release(&talk->answers);
}

/* Returns the program's major version. Returns 0 if the program prints no version or the listener
 * cancels. Takes about 10 ms. */
static unsigned program_version(const struct llvm_session *backend)
{
	static const char *const args[] = {"--version", NULL};
	static const char word[] = "LLVM version ";
	struct llvm_talk talk;
	unsigned version = 0;
	const char *at;

	llvm_talk_init(&talk, helper_start(backend->program.data, args), backend->options);
	talk.deadline_ms = os_clock_ms() + VERSION_MS;
	while (talk.helper && talk.answers.len < VERSION_BYTES && !llvm_talk_step(&talk))
		;
	at = talk.answers.len ? strstr(talk.answers.data, word) : NULL;
	if (at)
		version = (unsigned)strtoul(at + strlen(word), NULL, 10);
	llvm_talk_release(&talk);
	helper_stop(talk.helper);
	return version;
}

/* Unless a process of this kind is running, starts the first program that can be started. */
static bool start(struct llvm_session *backend, enum llvm_kind kind)
{
	const char *const args[] = {"--relative-address",
		backend->options->no_demangle ? "--no-demangle" : "--demangle",
		kind == PLAIN ? "--no-inlines" : "--inlines", "--functions=linkage",
		"--output-style=LLVM", "--addresses", "--verbose", NULL};
	struct helper **helper = &backend->helpers[kind];
	struct buf list;

	if (*helper || backend->is_absent || backend->failures >= FAILURES_MAX)
		return *helper != NULL;
	buf_init(&list);
	llvm_program_list(&list);
	for (size_t at = 0; !*helper && at < list.len; at += strlen(list.data + at) + 1) {
		buf_clear(&backend->program);
		buf_add_text(&backend->program, list.data + at);
		*helper = helper_start(list.data + at, args);
	}
	buf_release(&list);
	backend->is_absent = !*helper;
	return *helper != NULL;
}

/* ---------------------------------------------------------------- questions */

static bool is_wanted(const struct lookup *lookup)
{
	return !lookup->found.count && !lookup->is_answered;
}

static size_t first_wanted(const struct lookup *lookups, size_t from, size_t count)
{
	while (from < count && !is_wanted(&lookups[from]))
		from++;
	return from;
}

/* Returns an unpredictable address that no image contains. */
static uint64_t unforeseen(const struct llvm_asking *asking)
{
	uint64_t mix = (uint64_t)os_time_ms() * UINT64_C(0x9e3779b97f4a7c15);

	mix ^= (uint64_t)(uintptr_t)asking->talk.helper * UINT64_C(0xc2b2ae3d27d4eb4f);
	mix ^= (uint64_t)os_pid() * UINT64_C(0x165667b19e3779f9);
	return (mix >> 2) | UINT64_C(1) << 62;
}

/* Fills the buffer of questions, up to a limit, because each question repeats the whole path. */
static void add_questions(struct llvm_asking *asking)
{
	struct buf *questions = &asking->talk.questions;
	size_t left = questions->len - asking->talk.sent;

	if (left >= READY_BYTES || asking->next > asking->count)
		return;
	if (asking->talk.sent)
		memmove(questions->data, questions->data + asking->talk.sent, left);
	questions->len = left;
	asking->talk.sent = 0;
	for (; asking->next <= asking->count && questions->len < 2 * READY_BYTES; asking->next++) {
		bool is_end = asking->next == asking->count;

		if (is_end || is_wanted(&asking->lookups[asking->next]))
			buf_printf(questions, "CODE \"%s\" 0x%llx\n",
				is_end ? "." : asking->backend->file.data,
				(unsigned long long)(is_end ? asking->end_addr :
							      asking->lookups[asking->next].rva));
	}
}

/* ---------------------------------------------------------------- answers */

/*
 * The output of llvm-symbolizer --output-style=LLVM --addresses --verbose for one address consists
 * of the address, the functions and an empty line. Each function is a line with its name, followed
 * by detail lines that begin with two blanks. (The JSON output has the same data but takes 1.5
 * times as long.)
 *
 * The text comes from untrusted files: a name may contain line breaks and imitate any other line.
 * An answer is accepted only where it is expected, and malformed answers give no names.
 *
 * The labels come from LLVM's DIPrinter.cpp (versions 13 to 19 print the same labels).
 */
static const char file_label[] = "  Filename: ", line_label[] = "  Line: ",
		  start_label[] = "  Function start address: 0x";

/* Returns the text after a label if the line begins with that label, or NULL. */
static char *behind(char *line, const char *label)
{
	size_t len = strlen(label);

	return strncmp(line, label, len) ? NULL : line + len;
}

/* Returns the length of the first line with its newline, or 0 if the line is incomplete. */
static size_t line_length(const char *text, size_t len)
{
	const char *newline = memchr(text, '\n', len);

	return newline ? (size_t)(newline - text) + 1 : 0;
}

/* Returns the length of an answer, from the line after its address to the empty line at its end.
 * Returns 0 if the answer is incomplete. An empty line is also printed for a function without a
 * name; a file line then follows. If the text after an empty line has not arrived yet, assumes that
 * the answer ends there. If that is wrong, handle_line() notices later. */
static size_t answer_length(const char *text, size_t len)
{
	const size_t label_len = sizeof(file_label) - 1;

	for (size_t at = 0, line; (line = line_length(text + at, len - at)); at += line) {
		size_t next = at + line + 1;

		if (next <= len && text[next - 1] == '\n' &&
			(len - next < label_len || memcmp(text + next, file_label, label_len) != 0))
			return next;
	}
	return 0;
}

static void parse_detail(struct symbol *symbol, char *line)
{
	char *text = behind(line, file_label);
	uint64_t value;

	if (text)
		symbol->file = text;
	text = behind(line, line_label);
	if (text && !kv_number(text, 10, &value))
		symbol->line = value <= UINT32_MAX ? (uint32_t)value : 0;
	text = behind(line, start_label);
	if (text && !kv_number(text, 16, &value))
		symbol->offset_bytes = value;
}

/* Parses an answer. The symbols' strings point into `text`, and their offsets are start addresses.
 * If there are more than SYMBOL_CHAIN_MAX functions, keeps the innermost functions and the
 * outermost one. Returns the number of functions, or 0 if the answer is malformed. */
static size_t parse_answer(char *text, size_t len, struct symbol *chain)
{
	char *end = text + len;
	size_t count = 0, bytes;

	for (char *line = text; line < end; line += bytes) {
		bytes = line_length(line, (size_t)(end - line));
		line[bytes - 1] = '\0';
		if (count && line[0] == ' ' && line[1] == ' ') {
			parse_detail(&chain[count - 1], line);
			continue;
		}
		if (count && !chain[count - 1].file) /* each function has a file line */
			return 0;
		if (line + bytes == end)
			return bytes == 1 ? count : 0;
		count -= count == SYMBOL_CHAIN_MAX;
		chain[count++] = (struct symbol){.function = line};
	}
	return 0;
}

static bool is_known(const char *text)
{
	return text[0] && strcmp(text, "??") != 0;
}

static bool has_true_lines(struct llvm_session *backend)
{
	if (!backend->is_version_known)
		backend->version = program_version(backend);
	backend->is_version_known = true;
	return backend->version >= TRUE_LINES_SINCE;
}

static void store_names(
	struct llvm_asking *asking, struct lookup *lookup, struct symbol *chain, size_t count)
{
	const struct module_files *files = &asking->subject->files;
	uint64_t base = files->pe ? files->pe->preferred_base : 0, addr = base + lookup->rva + 1;
	bool inner_has_line = count < 2 || !files->pdb || has_true_lines(asking->backend);
	/* In DWARF, the address's line is that of the innermost inlined code; in PDBs, it is that
	 * of the outer function. */
	bool outer_has_line = asking->kind != PLAIN || files->pdb;
	struct symbol *outer = chain;
	bool is_sure;

	asking->backend->failures = 0;
	if (!count || !is_known(chain[count - 1].function))
		return;
	for (size_t i = 0; i < count; i++) {
		uint64_t start = chain[i].offset_bytes;

		if (!is_known(chain[i].function))
			continue;
		*outer = chain[i];
		if (!(i + 1 == count ? outer_has_line : inner_has_line))
			outer->line = 0;
		if (!outer->line || !is_known(outer->file))
			outer->file = NULL;
		/* Debug information often does not record where inlined code starts. */
		outer->offset_bytes = start >= base && start && start < addr ? addr - start : 0;
		outer++;
	}
	count = (size_t)(outer-- - chain);
	/* For PDBs, llvm-symbolizer never prints function starts, but the tables have them. If
	 * there is a line, the name is certain. If there is no line, the name may be that of a
	 * symbol far below the address. The caller checks such a name. */
	if (files->pdb && outer->line) {
		outer->offset_bytes = tables_offset(asking->subject->tables, lookup->rva, &is_sure);
		if (!is_sure)
			outer->offset_bytes = 0;
	}
	names_copy(asking->arena, chain, count, &lookup->found);
}

static void handle_answer(struct llvm_asking *asking, char *text, size_t len)
{
	struct symbol chain[SYMBOL_CHAIN_MAX];
	struct lookup *lookup = &asking->lookups[asking->at];

	store_names(asking, lookup, chain, parse_answer(text, len, chain));
	lookup->is_answered = true;
	asking->last = lookup;
	asking->is_inside = false;
	asking->at = first_wanted(asking->lookups, asking->at + 1, asking->count);
	asking->talk.deadline_ms = os_clock_ms() + asking->talk.patience_ms;
}

/* Handles a line where an answer should begin. Returns 0, or -ERR_READ if the line is the answer to
 * another question. */
static int handle_line(struct llvm_asking *asking, char *line, size_t len)
{
	uint64_t addr;

	line[len - 1] = '\0';
	if (strncmp(line, "0x", 2) != 0 || kv_number(line + 2, 16, &addr)) {
		/* The empty line that seemed to end the last answer was an empty name, so discard
		 * that answer. */
		if (behind(line, file_label) && asking->last)
			asking->last->found = (struct symbols){0};
		return ++asking->stray_count > STRAY_MAX ? -ERR_READ : 0;
	}
	asking->is_done = asking->at == asking->count && addr == asking->end_addr;
	asking->is_inside = asking->at < asking->count && addr == asking->lookups[asking->at].rva;
	return asking->is_done || asking->is_inside ? 0 : -ERR_READ;
}

/* Handles all complete answers. Returns 0 or -ERR_READ. */
static int handle_answers(struct llvm_asking *asking)
{
	struct buf *answers = &asking->talk.answers;
	size_t from = 0, len = 1;
	int rc = 0;

	while (!rc && len && !asking->is_done && from < answers->len) {
		char *text = answers->data + from;
		size_t left = answers->len - from;

		len = asking->is_inside ? answer_length(text, left) : line_length(text, left);
		if (len && asking->is_inside)
			handle_answer(asking, text, len);
		else if (len)
			rc = handle_line(asking, text, len);
		from += len;
	}
	answers->len -= from;
	if (from)
		memmove(answers->data, answers->data + from, answers->len);
	return answers->len > ANSWER_MAX ? -ERR_READ : rc;
}

/* ---------------------------------------------------------------- one file */

/* Prepares to look up the addresses of lookups [at, end). Returns false if the program cannot be
 * started. */
static bool ask_begin(struct llvm_asking *asking, enum llvm_kind kind, size_t at, size_t end)
{
	struct llvm_session *backend = asking->backend;

	if (!start(backend, kind))
		return false;
	asking->kind = kind;
	asking->count = end;
	asking->at = asking->next = first_wanted(asking->lookups, at, end);
	asking->is_inside = false;
	asking->is_done = asking->at == end;
	asking->last = NULL;
	asking->stray_count = 0;
	llvm_talk_init(&asking->talk, backend->helpers[kind], backend->options);
	asking->end_addr = unforeseen(asking);
	return true;
}

/* Waits up to 0.1 s for more answers. Returns 0; -ERR_READ if the process died or sent garbage;
 * -ERR_BUSY if it stayed silent too long; -ERR_INTERRUPTED if the listener cancelled. */
static int ask_step(struct llvm_asking *asking)
{
	int rc;

	add_questions(asking);
	rc = llvm_talk_step(&asking->talk);
	return rc ? rc : handle_answers(asking);
}

static void ask_end(struct llvm_asking *asking, int rc)
{
	struct llvm_session *backend = asking->backend;

	llvm_talk_release(&asking->talk);
	if (rc) {
		helper_stop(backend->helpers[asking->kind]);
		backend->helpers[asking->kind] = NULL;
		backend->failures = rc == -ERR_BUSY ? FAILURES_MAX : backend->failures + 1;
	}
}

static void report_progress(
	const struct llvm_asking *asking, int64_t *told_ms, size_t done, size_t count)
{
	int64_t now_ms = os_clock_ms();

	if (now_ms - *told_ms < TELL_MS)
		return;
	*told_ms = now_ms;
	listener_progress(asking->backend->options, module_path_base(asking->subject->module->path),
		done, count);
}

/*
 * Looks up the addresses of lookups [*at, end), and sets `*at` to the first lookup without an
 * answer. Returns 0 if all were answered, -ERR_TARGET if the program cannot be started, or an error
 * of ask_step().
 */
static int ask(struct llvm_asking *asking, enum llvm_kind kind, size_t *at, size_t end)
{
	int64_t told_ms = os_clock_ms();
	int rc = 0;

	if (!ask_begin(asking, kind, *at, end))
		return -ERR_TARGET;
	while (!rc && !asking->is_done) {
		report_progress(asking, &told_ms, asking->at, end);
		rc = ask_step(asking);
	}
	*at = asking->at;
	ask_end(asking, rc);
	return rc;
}

/* If there are many addresses, divides them among several processes. Leaves addresses without an
 * answer to ask_all(). */
static void ask_side_by_side(const struct llvm_asking *all, size_t count)
{
	struct llvm_asking parts[SIDES_MAX];
	int rcs[SIDES_MAX] = {0};
	size_t want = thread_cores() < SIDES_MAX ? thread_cores() : SIDES_MAX, part_count = 0;
	int64_t told_ms = os_clock_ms();
	bool is_going_on = true;

	want = count / SIDE_MIN < want ? count / SIDE_MIN : want;
	if (want < 2)
		return;
	for (; part_count < want; part_count++) {
		struct llvm_asking *part = &parts[part_count];
		size_t i = part_count;

		*part = *all;
		if (!ask_begin(part, i ? SIDES + i - 1 : INLINED, count * i / want,
			    count * (i + 1) / want))
			break;
	}
	while (is_going_on) {
		size_t done = 0;

		is_going_on = false;
		for (size_t i = 0; i < part_count; i++) {
			if (!rcs[i] && !parts[i].is_done) {
				rcs[i] = ask_step(&parts[i]);
				is_going_on = true;
			}
			done += parts[i].at - count * i / want;
		}
		report_progress(all, &told_ms, done, count);
	}
	for (size_t i = 0; i < part_count; i++)
		ask_end(&parts[i], rcs[i]);
}

/* Looks up all addresses, skipping those that crash the process. Sets `*lost` to the number of
 * addresses that have no proper answer even after a second try in a new process. */
static int ask_all(struct llvm_asking *asking, size_t count, size_t *lost)
{
	size_t at = 0, bad, failed = 0;
	int rc = -ERR_READ;

	for (size_t deaths = 0; rc == -ERR_READ && at < count && deaths < 2 * DEATHS_MAX;
		deaths++) {
		enum llvm_kind kind = deaths < DEATHS_MAX ? INLINED : PLAIN;

		rc = ask(asking, kind, &at, count);
		if (rc != -ERR_READ || at == count)
			break;
		bad = at++;
		if (kind == INLINED)
			rc = ask(asking, PLAIN, &bad, at);
		failed += rc != 0;
		rc = rc ? rc : -ERR_READ;
	}
	*lost = failed + (count - at);
	return rc;
}

/* Appends a reason for missing names, unless the text already contains it. */
static void add_reason(struct sym_module *subject, const char *text)
{
	struct buf *reason = &subject->files.reason;

	if (!reason->len || !strstr(reason->data, text))
		buf_printf(reason, "%s%s", reason->len ? "; " : "", text);
}

/* Sets backend->file to the path used in questions. This is the image itself if there is no PDB and
 * the path fits in a question; otherwise the path of a staged file. Returns false on failure. */
static bool name_file(struct llvm_session *backend, const struct sym_module *subject)
{
	const struct module_files *files = &subject->files;

	buf_clear(&backend->file);
	if (files->pdb || strpbrk(files->image, "\"\r\n") ||
		strlen(files->image) >= QUESTION_MAX - sizeof("CODE \"\" 0x0123456789abcdef\n"))
		return staging_file(backend->staging, subject->number, files, &backend->file);
	buf_add_text(&backend->file, files->image);
	return true;
}

static void llvm_resolve(void *of_backend, struct sym_module *subject, struct lookup *lookups,
	size_t count, struct arena *arena)
{
	struct llvm_session *backend = of_backend;
	struct llvm_asking asking = {
		.backend = backend, .subject = subject, .arena = arena, .lookups = lookups};
	const struct module_files *files = &subject->files;
	char *named;
	size_t lost;

	/* Without a PDB, only images that name no PDB are looked up: if an image names a PDB,
	 * llvm-symbolizer uses any build of that PDB. */
	if (!files->pdb && (!files->image || !files->pe || files->pe->pdb[0]))
		return;
	if (first_wanted(lookups, 0, count) == count)
		return;
	if (!start(backend, INLINED)) {
		named = os_env("HSYM_LLVM");
		add_reason(subject, !backend->is_absent ? "llvm-symbolizer failed" :
				    named ? "HSYM_LLVM is not the full path of a program" :
					    "llvm-symbolizer is not installed");
		free(named);
		return;
	}
	if (!name_file(backend, subject)) {
		add_reason(subject, "llvm-symbolizer cannot be used for it");
		return;
	}
	ask_side_by_side(&asking, count);
	if (ask_all(&asking, count, &lost) != -ERR_INTERRUPTED && lost) {
		backend->gave_up = true;
		add_reason(subject, "llvm-symbolizer failed");
	}
}

static void *llvm_make(const struct symbol_options *options, const struct finder *finder)
{
	struct llvm_session *backend = xcalloc(1, sizeof(*backend));

	(void)finder;
	backend->options = options;
	backend->staging = staging_new();
	return backend;
}

static void llvm_release(void *of_backend)
{
	struct llvm_session *backend = of_backend;

	for (int kind = 0; kind < KINDS; kind++)
		helper_stop(backend->helpers[kind]);
	staging_free(backend->staging);
	buf_release(&backend->program);
	buf_release(&backend->file);
	free(backend);
}

static const char *llvm_trouble(const void *of_backend)
{
	const struct llvm_session *backend = of_backend;

	return backend->gave_up ? "llvm-symbolizer failed before all addresses were looked up" :
				  NULL;
}

const struct backend_kind llvm_backend = {
	.name = "llvm-symbolizer",
	.says_parameters = true,
	.make = llvm_make,
	.release = llvm_release,
	.resolve = llvm_resolve,
	.trouble = llvm_trouble,
};
