#include <string.h>

#include "core/base/err.h"
#include "core/base/os.h"
#include "core/dump/kv.h"
#include "symbolize/backend/llvm.h"
#include "symbolize/names.h"

/* Labels, after LLVM's DIPrinter.cpp (13 to 19 print the same). */
static const char file_label[] = "  Filename: ", line_label[] = "  Line: ",
		  start_label[] = "  Function start address: 0x";
#define LABEL_LEN(label) (sizeof(label) - 1)

static const char unknown[] = "??";

static bool begins(const char *line, size_t len, const char *label, size_t label_len)
{
	return len >= label_len && !memcmp(line, label, label_len);
}

/* A number of len digits. */
static bool number(const char *digits, size_t len, int base, uint64_t *value)
{
	char text[24];

	if (!len || len >= sizeof(text))
		return false;
	memcpy(text, digits, len);
	text[len] = '\0';
	return !kv_number(text, base, value);
}

bool llvm_answer_address(const char *line, size_t len, uint64_t *addr)
{
	return begins(line, len, "0x", 2) && number(line + 2, len - 2, 16, addr);
}

bool llvm_answer_continues(const char *line, size_t len)
{
	return begins(line, len, file_label, LABEL_LEN(file_label));
}

size_t llvm_answer_length(const char *text, size_t len, size_t *searched)
{
	const char *at = text + *searched, *end = text + len;

	while (at < end && (at = memchr(at, '\n', (size_t)(end - at)))) {
		size_t next = (size_t)(at - text) + 2, left = next < len ? len - next : 0;

		if (next > len)
			break; /* whether an empty line follows is not known yet */
		if (at[1] == '\n' && left < LABEL_LEN(file_label) && left &&
			!memcmp(text + next, file_label, left))
			break; /* whether a name was empty is not known yet */
		if (at[1] == '\n' && !llvm_answer_continues(text + next, left))
			return next;
		at++;
	}
	*searched = at ? (size_t)(at - text) : len;
	return 0;
}

static void take_detail(struct llvm_frame *frame, char *line, size_t len)
{
	uint64_t value;

	if (begins(line, len, file_label, LABEL_LEN(file_label)))
		frame->file = line + LABEL_LEN(file_label);
	else if (begins(line, len, line_label, LABEL_LEN(line_label)) &&
		 number(line + LABEL_LEN(line_label), len - LABEL_LEN(line_label), 10, &value))
		frame->line = value <= UINT32_MAX ? (uint32_t)value : 0;
	else if (begins(line, len, start_label, LABEL_LEN(start_label)) &&
		 number(line + LABEL_LEN(start_label), len - LABEL_LEN(start_label), 16, &value))
		frame->start = value;
}

/* A frame whose details are all there: false when no file name came, which is always said. */
static bool end_frame(struct llvm_frame *frame)
{
	if (!frame->file)
		return false;
	if (!strcmp(frame->file, unknown))
		frame->file = "";
	if (!strcmp(frame->function, unknown))
		frame->function = "";
	return true;
}

size_t llvm_answer_parse(char *text, size_t len, struct llvm_frame *frames, size_t max)
{
	char *end = text + len, *newline;
	size_t count = 0;

	/* An empty line is the end, where a name could be. */
	for (char *line = text; max && line < end; line = newline + 1) {
		newline = memchr(line, '\n', (size_t)(end - line));
		if (!newline)
			return 0;
		*newline = '\0';
		if (count && line[0] == ' ' && line[1] == ' ') {
			take_detail(&frames[count - 1], line, (size_t)(newline - line));
			continue;
		}
		if (count && !end_frame(&frames[count - 1]))
			return 0;
		if (newline + 1 == end)
			return newline == line ? count : 0;
		count -= count == max; /* the outermost takes the last place */
		frames[count++] = (struct llvm_frame){.function = line};
	}
	return 0;
}

#define ANSWER_MAX ((size_t)4 << 20) /* bytes of one answer; a longer one is nonsense */
#define STRAY_MAX 1000 /* lines that are no answers */
#define QUESTION_MAX 1000 /* bytes: LLVM 14 cuts its input at 1023 */
#define LISTENER_MS 100 /* the listener waits no longer than that */
#define TELL_MS 50 /* and is not told more often */
#define READY_BYTES ((size_t)256 << 10) /* of questions */

bool llvm_can_ask(const char *path)
{
	return strlen(path) < QUESTION_MAX - sizeof("CODE \"\" 0x0123456789abcdef\n") &&
	       !strpbrk(path, "\"\r\n");
}

/* ---------------------------------------------------------------- questions */

static int add_question(struct buf *questions, const char *file, size_t len, uint64_t addr)
{
	char digits[24] = "\" 0x";
	size_t count = 4;
	int rc = buf_add(questions, "CODE \"", 6);

	if (!rc)
		rc = buf_add(questions, file, len);
	for (int shift = 60; shift >= 0; shift -= 4) {
		if (addr >> shift || !shift)
			digits[count++] = "0123456789abcdef"[addr >> shift & 15];
	}
	digits[count++] = '\n';
	return rc ? rc : buf_add(questions, digits, count);
}

/* An address that no file is made for, and no image has. */
static uint64_t unforeseen(const struct llvm_talk *talk)
{
	uint64_t mix = (uint64_t)os_time_ms() * UINT64_C(0x9e3779b97f4a7c15);

	mix ^= (uint64_t)(uintptr_t)talk->helper * UINT64_C(0xc2b2ae3d27d4eb4f);
	mix ^= (uint64_t)os_pid() * UINT64_C(0x165667b19e3779f9);
	return (mix >> 2) | UINT64_C(1) << 62;
}

/* Has questions ready to be sent, but not all at once: each holds the whole path. 0 or -ERR_NOMEM. */
static int ask(struct llvm_talk *talk)
{
	struct buf *questions = &talk->questions;
	size_t len = strlen(talk->file), left = questions->len - talk->sent;
	int rc = 0;

	if (talk->is_all_asked || left >= READY_BYTES)
		return 0;
	if (talk->sent)
		memmove(questions->data, questions->data + talk->sent, left);
	questions->len = left;
	talk->sent = 0;
	for (; !rc && talk->next < talk->count && questions->len < 2 * READY_BYTES; talk->next++) {
		if (!talk->lookups[talk->next].found.count)
			rc = add_question(
				questions, talk->file, len, talk->lookups[talk->next].rva);
	}
	if (rc || talk->next < talk->count)
		return rc;
	talk->is_all_asked = true;
	return add_question(questions, talk->file, len, talk->end_addr);
}

/* ---------------------------------------------------------------- answers */

static void pass_named(struct llvm_talk *talk)
{
	while (talk->at < talk->count && talk->lookups[talk->at].found.count)
		talk->at++;
}

/* One line where an answer should begin: 0, or -ERR_READ when it is the answer to another question. */
static int take_line(struct llvm_talk *talk, const char *line, size_t len)
{
	uint64_t addr;

	if (!llvm_answer_address(line, len, &addr)) {
		/* What was taken for its end was an empty name. */
		if (llvm_answer_continues(line, len) && talk->last)
			talk->last->found = (struct symbols){0};
		return ++talk->stray_count > STRAY_MAX ? -ERR_READ : 0;
	}
	talk->is_done = talk->at == talk->count && addr == talk->end_addr;
	talk->is_inside = talk->at < talk->count && addr == talk->lookups[talk->at].rva;
	talk->searched = 0;
	return talk->is_done || talk->is_inside ? 0 : -ERR_READ;
}

static int take_answer(struct llvm_talk *talk, char *text, size_t len)
{
	struct llvm_frame frames[SYMBOL_CHAIN_MAX];
	struct lookup *lookup = &talk->lookups[talk->at++];
	size_t count = llvm_answer_parse(text, len, frames, SYMBOL_CHAIN_MAX);

	lookup->is_answered = true;
	talk->last = lookup;
	talk->is_inside = false;
	pass_named(talk);
	return talk->take(talk->ctx, lookup, frames, count);
}

/* Takes what begins at from, if it is whole: how many bytes, 0 when it is not, or negative. */
static int64_t take_next(struct llvm_talk *talk, char *from, size_t len)
{
	const char *newline;
	size_t taken;
	int rc;

	if (talk->is_inside) {
		taken = llvm_answer_length(from, len, &talk->searched);
		rc = taken ? take_answer(talk, from, taken) : 0;
	} else {
		newline = memchr(from, '\n', len);
		taken = newline ? (size_t)(newline - from) + 1 : 0;
		rc = newline ? take_line(talk, from, taken - 1) : 0;
	}
	return rc ? rc : (int64_t)taken;
}

/* Takes all that is whole: 0 or an error. */
static int take_answers(struct llvm_talk *talk)
{
	struct buf *answers = &talk->answers;
	size_t at = talk->at, from = 0;
	int64_t taken;

	do {
		taken = take_next(talk, answers->data + from, answers->len - from);
		from += taken > 0 ? (size_t)taken : 0;
	} while (taken > 0 && !talk->is_done && from < answers->len);
	if (talk->at > at)
		talk->deadline_ms = helper_clock_ms() + talk->patience_ms;
	answers->len -= from;
	memmove(answers->data, answers->data + from, answers->len);
	if (taken < 0)
		return (int)taken;
	return answers->len > ANSWER_MAX ? -ERR_READ : 0;
}

/* Lines end in two characters where the program is Windows' own; names have none of these. */
static void drop_returns(struct buf *text, size_t from)
{
	char *to = text->len > from ? memchr(text->data + from, '\r', text->len - from) : NULL;
	char *end;

	if (!to)
		return;
	end = text->data + text->len;
	for (char *at = to; at < end; at++) {
		if (*at != '\r')
			*to++ = *at;
	}
	text->len = (size_t)(to - text->data);
}

/* ---------------------------------------------------------------- both at once */

/* Whether to go on; tells how far it is. */
static int report(struct llvm_talk *talk, int64_t now_ms)
{
	if (listener_is_cancelled(talk->options))
		return -ERR_INTERRUPTED;
	if (now_ms - talk->told_ms >= TELL_MS) {
		talk->told_ms = now_ms;
		listener_progress(talk->options, talk->module, talk->at, talk->count);
	}
	return now_ms < talk->deadline_ms ? 0 : -ERR_BUSY;
}

static int exchange(struct llvm_talk *talk)
{
	int64_t now_ms = helper_clock_ms(), left_ms = talk->deadline_ms - now_ms, took;
	unsigned wait_ms = left_ms < LISTENER_MS ? (unsigned)left_ms : LISTENER_MS;
	size_t had = talk->answers.len;
	int rc = report(talk, now_ms);

	if (!rc)
		rc = ask(talk);
	if (rc)
		return rc;
	took = helper_exchange(talk->helper, talk->questions.data + talk->sent,
		talk->questions.len - talk->sent, &talk->answers, wait_ms);
	if (took > 0)
		talk->sent += (size_t)took;
	drop_returns(&talk->answers, had);
	if (took != -ERR_NOMEM && talk->answers.len > had)
		rc = take_answers(talk);
	return rc || took >= 0 || talk->is_done ? rc : (int)took;
}

int llvm_talk(struct llvm_talk *talk)
{
	int rc = 0;

	pass_named(talk);
	if (talk->at == talk->count)
		return 0;
	talk->next = talk->at;
	talk->end_addr = unforeseen(talk);
	talk->told_ms = helper_clock_ms();
	talk->deadline_ms = talk->told_ms + talk->patience_ms;
	while (!rc && !talk->is_done)
		rc = exchange(talk);
	buf_release(&talk->questions);
	buf_release(&talk->answers);
	return rc;
}
