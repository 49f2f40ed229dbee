/*
 * Asking llvm-symbolizer about the addresses of one file.
 *
 * A question is a line 'CODE "path" 0xRVA'. All are under way at once, and answers are taken as they
 * come, in the order of the questions. An answer begins with the address it is about: one about another
 * address ends the talk, a line that is no answer is passed over. The last question is about an
 * address that nobody can foresee, so that whatever a file makes llvm-symbolizer say about it ends with
 * that file.
 */
#ifndef SYMBOLIZE_LLVM_TALK_H
#define SYMBOLIZE_LLVM_TALK_H

#include "symbolize/backend/backend.h"
#include "symbolize/backend/helper_process.h"
#include "symbolize/backend/llvm_answer.h"

struct llvm_talk {
	struct helper *helper;
	const struct symbol_options *options; /* whom to tell how far it is, and whether to go on */
	const char *module; /* what it is called there */
	const char *file; /* to ask about; llvm_can_ask() */
	struct lookup *lookups; /* those without a name are asked about */
	size_t count;
	size_t at; /* the first to ask about; then the first that has no answer */
	unsigned patience_ms; /* for one answer */
	/* Takes an answer: 0 or -ERR_NOMEM. */
	int (*take)(
		void *ctx, struct lookup *lookup, const struct llvm_frame *frames, size_t count);
	void *ctx;

	/* The rest is for llvm_talk() alone. */
	struct buf questions, answers;
	size_t sent; /* of questions */
	size_t next; /* of lookups, to ask about */
	bool is_all_asked;
	struct lookup *last; /* that was answered */
	uint64_t end_addr; /* that nobody can foresee */
	bool is_inside, is_done; /* behind the address of an answer; of the last one */
	size_t searched, stray_count;
	int64_t deadline_ms, told_ms;
};

/* Whether a question can have this path in it. */
bool llvm_can_ask(const char *path);

/*
 * Asks, and marks those that were answered. 0 when all were; -ERR_READ: it died or talks nonsense;
 * -ERR_BUSY: it is silent; -ERR_INTERRUPTED: the listener cancelled; -ERR_NOMEM. After any of these the
 * helper is of no more use.
 */
int llvm_talk(struct llvm_talk *talk);

#endif
