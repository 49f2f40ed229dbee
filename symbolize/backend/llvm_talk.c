#include "symbolize/backend/llvm_talk.h"

#include <string.h>

#include "core/os.h"
#include "symbolize/keep.h"
#include "symbolize/listen.h"

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
