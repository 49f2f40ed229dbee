#include "symbolize/backend/llvm_json.h"

#include <string.h>

#include "core/err.h"
#include "core/kv.h"

#define DEPTH_MAX 8

struct cursor {
	char *at, *end;
};

static bool take(struct cursor *from, char c)
{
	while (from->at < from->end && *from->at == ' ')
		from->at++;
	if (from->at == from->end || *from->at != c)
		return false;
	from->at++;
	return true;
}

/* \uHHHH at from->at (behind the u), as UTF-8; halves of pairs, and NUL, become '?'. */
static bool unicode(struct cursor *from, char **to)
{
	char digits[5] = {0};
	uint64_t code;

	if (from->end - from->at < 4)
		return false;
	memcpy(digits, from->at, 4);
	if (kv_number(digits, 16, &code))
		return false;
	from->at += 4;
	if (!code || (code >= 0xd800 && code < 0xe000))
		code = '?';
	if (code >= 0x800) {
		*(*to)++ = (char)(0xe0 | code >> 12);
		*(*to)++ = (char)(0x80 | (code >> 6 & 0x3f));
	} else if (code >= 0x80) {
		*(*to)++ = (char)(0xc0 | code >> 6);
	}
	*(*to)++ = (char)(code >= 0x80 ? 0x80 | (code & 0x3f) : code);
	return true;
}

static bool escape(struct cursor *from, char **to)
{
	static const char letters[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
	const char *letter;

	if (from->at == from->end)
		return false;
	if (*from->at == 'u') {
		from->at++;
		return unicode(from, to);
	}
	letter = *from->at ? strchr(letters, *from->at) : NULL;
	if (!letter)
		return false;
	from->at++;
	*(*to)++ = bytes[letter - letters];
	return true;
}

/* A string, undone in place: it never grows. NULL when there is none. */
static const char *text(struct cursor *from)
{
	char *start, *to;

	if (!take(from, '"'))
		return NULL;
	start = to = from->at;
	while (from->at < from->end && *from->at != '"') {
		char c = *from->at++;

		if (c != '\\')
			*to++ = c;
		else if (!escape(from, &to))
			return NULL;
	}
	if (from->at == from->end)
		return NULL;
	from->at++;
	*to = '\0';
	return start;
}

/* A number, true, false or null: its letters; what they mean is for the one who asked. */
static size_t word(struct cursor *from, char *to, size_t size)
{
	size_t len = 0;

	while (from->at < from->end && *from->at == ' ')
		from->at++;
	while (from->at < from->end && !strchr(",}] \"", *from->at)) {
		if (len + 1 < size)
			to[len++] = *from->at;
		from->at++;
	}
	to[len] = '\0';
	return len;
}

static bool skip_value(struct cursor *from, int depth);

static bool skip_list(struct cursor *from, char end, int depth)
{
	if (take(from, end))
		return true;
	do {
		if (end == '}' && (!text(from) || !take(from, ':')))
			return false;
		if (!skip_value(from, depth + 1))
			return false;
	} while (take(from, ','));
	return take(from, end);
}

static bool skip_value(struct cursor *from, int depth)
{
	char letters[32];

	if (depth > DEPTH_MAX)
		return false;
	if (take(from, '{'))
		return skip_list(from, '}', depth);
	if (take(from, '['))
		return skip_list(from, ']', depth);
	if (from->at < from->end && *from->at == '"')
		return text(from) != NULL;
	return word(from, letters, sizeof(letters)) > 0;
}

static bool take_line(struct cursor *from, struct llvm_frame *frame)
{
	char letters[32];
	uint64_t line;

	if (!word(from, letters, sizeof(letters)) || kv_number(letters, 10, &line))
		return false;
	frame->line = line <= UINT32_MAX ? (uint32_t)line : 0;
	return true;
}

/* "0x12"; false: not that. */
static bool hex_number(const char *digits, uint64_t *value)
{
	return !strncmp(digits, "0x", 2) && !kv_number(digits + 2, 16, value);
}

static bool take_start(struct cursor *from, struct llvm_frame *frame)
{
	const char *start = text(from);

	if (!start)
		return false;
	if (!hex_number(start, &frame->start))
		frame->start = 0;
	return true;
}

static bool take_member(struct cursor *from, struct llvm_frame *frame)
{
	const char *key = text(from);

	if (!key || !take(from, ':'))
		return false;
	if (!strcmp(key, "FunctionName"))
		return (frame->function = text(from)) != NULL;
	if (!strcmp(key, "FileName"))
		return (frame->file = text(from)) != NULL;
	if (!strcmp(key, "Line"))
		return take_line(from, frame);
	if (!strcmp(key, "StartAddress"))
		return take_start(from, frame);
	return skip_value(from, 0);
}

static bool take_frame(struct cursor *from, struct llvm_frame *frame)
{
	*frame = (struct llvm_frame){.function = "", .file = ""};
	if (!take(from, '{'))
		return false;
	do {
		if (!take_member(from, frame))
			return false;
	} while (take(from, ','));
	return take(from, '}');
}

/* How many frames, 0 also when they are not well formed. */
static size_t take_frames(struct cursor *from, struct llvm_frame *frames, size_t max)
{
	size_t count = 0;

	if (!take(from, '['))
		return 0;
	do {
		if (count == max)
			count--; /* the outermost takes the last place */
		if (!take_frame(from, &frames[count++]))
			return 0;
	} while (take(from, ','));
	return take(from, ']') ? count : 0;
}

static bool take_address(struct cursor *from, struct llvm_question *question)
{
	const char *addr = text(from);

	question->has_addr = addr && hex_number(addr, &question->addr);
	return addr != NULL;
}

static bool take_module(struct cursor *from, struct llvm_question *question)
{
	const char *module = text(from);

	if (module)
		question->module = module;
	return module != NULL;
}

size_t llvm_json_parse(char *line, size_t len, struct llvm_question *question,
	struct llvm_frame *frames, size_t max)
{
	struct cursor from = {line, line + len};
	size_t count = 0;

	*question = (struct llvm_question){.module = ""};
	if (!max || !take(&from, '{'))
		return 0;
	do {
		const char *key = text(&from);
		bool ok;

		if (!key || !take(&from, ':'))
			return 0;
		if (!strcmp(key, "Address"))
			ok = take_address(&from, question);
		else if (!strcmp(key, "ModuleName"))
			ok = take_module(&from, question);
		else if (!strcmp(key, "Symbol"))
			ok = (count = take_frames(&from, frames, max)) > 0;
		else
			ok = skip_value(&from, 0);
		if (!ok)
			return 0;
	} while (take(&from, ','));
	return take(&from, '}') ? count : 0;
}
