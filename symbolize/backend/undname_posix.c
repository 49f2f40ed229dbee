#include "symbolize/backend/undname.h"

#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "symbolize/backend/helper.h"
#include "symbolize/backend/llvm.h"
#include "symbolize/names.h"

/*
 * llvm-undname repeats each line that it reads, and writes what it means behind it, and an empty line. A name
 * of a few hundred bytes can mean more text than a disk holds, so its memory and its time are bounded; one
 * that it dies of is left out.
 */

#define NAME_BYTES_MAX 4096 /* as long as Microsoft's compilers make them */
#define SAID_BYTES_MAX ((size_t)16 << 20) /* of one line */
#define PATIENCE_MS 20000 /* for one name */
#define LISTENER_MS 100 /* the listener waits no longer than that */
#define STARTS_MAX 4

static const char script[] = "ulimit -v 524288; ulimit -t 5; LLVM_DISABLE_SYMBOLIZATION=1 exec "
			     "\"$0\" --no-access-specifier --no-calling-convention "
			     "--no-member-type --no-return-type";
static const char end_mark[] = "?hsym@@3HA";

struct questions {
	const char *const *names;
	const char **texts;
	size_t count;
	size_t at, next; /* the one that was repeated last; the one that will be */
	bool is_done; /* the end mark was */
	struct arena *arena;
};

static bool is_askable(const char *name)
{
	size_t len = 0;

	for (; name[len]; len++) {
		if ((unsigned char)name[len] <= 0x20 || (unsigned char)name[len] > 0x7e ||
			len == NAME_BYTES_MAX)
			return false;
	}
	return name[0] == '?';
}

/* How long scope and name are. Within template arguments and quotes, and in "operator()", there may be
 * parentheses, too. */
static size_t name_length(const char *text)
{
	static const char word[] = "operator";
	size_t angles = 0, quotes = 0, len;
	const char *at = text;

	for (; *at; at++) {
		if (!strncmp(at, word, sizeof(word) - 1) && (at == text || at[-1] == ':')) {
			at += sizeof(word) - 1;
			at += !strncmp(at, "()", 2) ? 2 : strspn(at, "<>-=!+*/%^&|~,[]");
		}
		if (*at == '`')
			quotes++;
		else if (*at == '\'' && quotes)
			quotes--;
		else if (*at == '<')
			angles++;
		else if (*at == '>' && angles)
			angles--;
		else if (!*at || (*at == '(' && !angles && !quotes))
			break;
	}
	len = (size_t)(at - text);
	while (len && text[len - 1] == ' ')
		len--;
	return len;
}

/* The first from at on that can be asked about. */
static size_t askable_from(const struct questions *questions, size_t at)
{
	while (at < questions->count && !is_askable(questions->names[at]))
		at++;
	return at;
}

static int take_line(struct questions *questions, const char *line)
{
	bool is_last = questions->next == questions->count;
	size_t len = name_length(line);
	const char **text =
		questions->at < questions->count ? &questions->texts[questions->at] : NULL;

	if (!strcmp(line, is_last ? end_mark : questions->names[questions->next])) {
		questions->is_done = is_last;
		questions->at = questions->next;
		questions->next = askable_from(questions, questions->next + !is_last);
	} else if (text && !*text && len && line[0] != '?') {
		*text = arena_text(questions->arena, line, len);
		return *text ? 0 : -ERR_NOMEM;
	}
	return 0;
}

/* Takes the lines that are whole. */
static int take_lines(struct questions *questions, struct buf *said)
{
	char *from = said->data, *end = said->data + said->len, *newline;
	int rc = 0;

	while (!rc && from < end && (newline = memchr(from, '\n', (size_t)(end - from)))) {
		*newline = '\0';
		rc = take_line(questions, from);
		from = newline + 1;
	}
	said->len = (size_t)(end - from);
	memmove(said->data, from, said->len);
	return rc ? rc : said->len > SAID_BYTES_MAX ? -ERR_READ : 0;
}

/* Asks about all from questions->next on. 0; -ERR_READ: it died over the name at questions->at; -ERR_BUSY: it
 * is silent; -ERR_INTERRUPTED; -ERR_NOMEM. */
static int ask(
	struct questions *questions, struct helper *helper, const struct symbol_options *options)
{
	unsigned patience_ms = options->patience_ms ? options->patience_ms : PATIENCE_MS;
	int64_t deadline_ms = helper_clock_ms() + patience_ms, took = 0;
	struct buf asked, said;
	size_t sent = 0, had;
	int rc = 0;

	buf_init(&asked);
	buf_init(&said);
	for (size_t i = questions->next; !rc && i < questions->count;
		i = askable_from(questions, i + 1))
		rc = buf_printf(&asked, "%s\n", questions->names[i]);
	if (!rc)
		rc = buf_printf(&asked, "%s\n", end_mark);
	while (!rc && !questions->is_done) {
		if (listener_is_cancelled(options))
			rc = -ERR_INTERRUPTED;
		else if (took < 0)
			rc = -ERR_READ;
		else if (helper_clock_ms() > deadline_ms)
			rc = -ERR_BUSY;
		if (rc)
			break;
		had = said.len;
		took = helper_exchange(
			helper, asked.data + sent, asked.len - sent, &said, LISTENER_MS);
		sent += took > 0 ? (size_t)took : 0;
		if (took == -ERR_NOMEM)
			rc = -ERR_NOMEM;
		if (rc || said.len == had)
			continue;
		deadline_ms = helper_clock_ms() + patience_ms;
		rc = take_lines(questions, &said);
	}
	buf_release(&asked);
	buf_release(&said);
	return rc;
}

/* Puts into path that of the first there is: beside each llvm-symbolizer, called as that is. */
static int find_program(struct buf *path)
{
	static const char symbolizer[] = "llvm-symbolizer";
	struct buf list;
	int rc;

	buf_init(&list);
	rc = llvm_program_list(&list);
	for (size_t at = 0; !rc && at < list.len; at += strlen(list.data + at) + 1) {
		const char *base = strrchr(list.data + at, '/') + 1;

		if (strncmp(base, symbolizer, sizeof(symbolizer) - 1) != 0)
			continue;
		buf_clear(path);
		rc = buf_printf(path, "%.*sllvm-undname%s", (int)(base - (list.data + at)),
			list.data + at, base + sizeof(symbolizer) - 1);
		if (!rc && !access(path->data, X_OK))
			break;
		buf_clear(path);
	}
	buf_release(&list);
	return rc;
}

int undname_find(const char *const *names, const char **texts, size_t count, struct arena *arena,
	const struct symbol_options *options)
{
	struct questions questions = {names, texts, count, .at = count, .arena = arena};
	struct helper *helper;
	struct buf path;
	int rc;

	buf_init(&path);
	memset(texts, 0, count * sizeof(*texts));
	questions.next = askable_from(&questions, 0);
	rc = questions.next < count ? find_program(&path) : 0;
	for (int starts = 0; !rc && path.len && questions.next < count && starts < STARTS_MAX;
		starts++) {
		const char *const args[] = {"-c", script, path.data, NULL};

		helper = helper_start("/bin/sh", args);
		if (!helper)
			break;
		rc = ask(&questions, helper, options);
		helper_stop(helper);
		rc = rc == -ERR_READ ? 0 : rc;
	}
	buf_release(&path);
	return rc == -ERR_NOMEM ? rc : 0;
}
