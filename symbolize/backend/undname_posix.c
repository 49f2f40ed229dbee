/*
 * Undecorates names with llvm-undname. The program repeats each line that it reads, and then prints
 * the undecorated name and an empty line. A name of a few hundred bytes can expand to more text
 * than fits on a disk, so the program's memory and time are limited. A name that kills the program
 * is skipped.
 */
#include "symbolize/backend/undname.h"

#include <string.h>
#include <unistd.h>

#include "core/base/os.h"
#include "symbolize/backend/helper.h"
#include "symbolize/backend/llvm.h"
#include "symbolize/names.h"

#define NAME_BYTES_MAX 4096 /* limit of Microsoft's compilers */
#define ANSWER_BYTES_MAX ((size_t)16 << 20) /* maximum length of one line of output */
#define STARTS_MAX 4

static const char script[] = "ulimit -v 524288; ulimit -t 5; LLVM_DISABLE_SYMBOLIZATION=1 exec "
			     "\"$0\" --no-access-specifier --no-calling-convention "
			     "--no-member-type --no-return-type";
static const char end_mark[] = "?hsym@@3HA";

struct questions {
	const char *const *names;
	const char **texts;
	size_t count;
	/* index of the last name that was repeated; index of the next name expected */
	size_t at, next;
	bool is_done; /* the end mark was repeated, so all names were answered */
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

/* Returns the length of scope and name. Parentheses do not always end the name, because template
 * arguments, quotes and "operator()" may contain them too. */
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

/* Returns the index of the first name, starting at `at`, that may be passed to the program. */
static size_t askable_from(const struct questions *questions, size_t at)
{
	while (at < questions->count && !is_askable(questions->names[at]))
		at++;
	return at;
}

static void handle_line(struct questions *questions, const char *line)
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
	}
}

/* Handles all complete lines, and removes them from the buffer. */
static void handle_lines(struct questions *questions, struct buf *answers)
{
	char *from = answers->data, *end = answers->data + answers->len, *newline;

	while (from < end && (newline = memchr(from, '\n', (size_t)(end - from)))) {
		*newline = '\0';
		handle_line(questions, from);
		from = newline + 1;
	}
	answers->len = (size_t)(end - from);
	memmove(answers->data, from, answers->len);
}

/* Sends all names starting at questions->next. Returns the same values as llvm_talk_step(), and
 * also -ERR_READ if the name at questions->at produced too much output. */
static int ask(
	struct questions *questions, struct helper *helper, const struct symbol_options *options)
{
	struct llvm_talk talk;
	struct buf *answers = &talk.answers;
	int rc = 0;

	llvm_talk_init(&talk, helper, options);
	for (size_t i = questions->next; i < questions->count; i = askable_from(questions, i + 1))
		buf_printf(&talk.questions, "%s\n", questions->names[i]);
	buf_printf(&talk.questions, "%s\n", end_mark);
	while (!rc && !questions->is_done) {
		size_t had = answers->len;

		rc = llvm_talk_step(&talk);
		if (rc || answers->len == had)
			continue;
		talk.deadline_ms = os_clock_ms() + talk.patience_ms;
		handle_lines(questions, answers);
		rc = answers->len > ANSWER_BYTES_MAX ? -ERR_READ : 0;
	}
	llvm_talk_release(&talk);
	return rc;
}

/* Sets `path` to the first llvm-undname that is beside an llvm-symbolizer and has the same version
 * suffix. */
static void find_program(struct buf *path)
{
	static const char symbolizer[] = "llvm-symbolizer";
	struct buf list;

	buf_init(&list);
	llvm_program_list(&list);
	for (size_t at = 0; !path->len && at < list.len; at += strlen(list.data + at) + 1) {
		const char *base = strrchr(list.data + at, '/') + 1;

		if (strncmp(base, symbolizer, sizeof(symbolizer) - 1) != 0)
			continue;
		buf_printf(path, "%.*sllvm-undname%s", (int)(base - (list.data + at)),
			list.data + at, base + sizeof(symbolizer) - 1);
		if (access(path->data, X_OK))
			buf_clear(path);
	}
	buf_release(&list);
}

void undname_find(const char *const *names, const char **texts, size_t count, struct arena *arena,
	const struct symbol_options *options)
{
	struct questions questions = {names, texts, count, .at = count, .arena = arena};
	struct buf path;
	int rc = -ERR_READ;

	buf_init(&path);
	memset(texts, 0, count * sizeof(*texts));
	questions.next = askable_from(&questions, 0);
	if (questions.next < count)
		find_program(&path);
	for (int starts = 0;
		rc == -ERR_READ && path.len && questions.next < count && starts < STARTS_MAX;
		starts++) {
		const char *const args[] = {"-c", script, path.data, NULL};
		struct helper *helper = helper_start("/bin/sh", args);

		rc = helper ? ask(&questions, helper, options) : 0;
		helper_stop(helper);
	}
	buf_release(&path);
}
