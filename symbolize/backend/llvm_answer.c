#include "symbolize/backend/llvm_answer.h"

#include <string.h>

#include "core/err.h"
#include "core/kv.h"

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
