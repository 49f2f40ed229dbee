/* Writing JSON: values, and frames. */
#include "diff/report/json.h"

#include "core/base/text.h"
#include "diff/report/numbers.h"
#include "diff/report/report_parts.h"

static void write_key(struct json *json, const char *key)
{
	if (!json->is_first)
		out_char(json->out, ',');
	json->is_first = false;
	if (!key)
		return;
	out_char(json->out, '"');
	out_text(json->out, key);
	out_text(json->out, "\":");
}

void json_open(struct json *json, const char *key, char kind)
{
	write_key(json, key);
	out_char(json->out, kind);
	json->is_first = true;
}

void json_close(struct json *json, char kind)
{
	out_char(json->out, kind);
	json->is_first = false;
}

void json_line(struct json *json)
{
	if (!json->is_first)
		out_char(json->out, ',');
	json->is_first = true;
	out_char(json->out, '\n');
}

void json_open_line(struct json *json, const char *key, char kind)
{
	json_line(json);
	json_open(json, key, kind);
}

static bool is_markup(char c)
{
	return c == '<' || c == '>' || c == '&';
}

static bool is_escaped(const struct json *json, uint32_t code)
{
	if (json->is_in_page && code < 0x7f && is_markup((char)code))
		return true;
	return code < ' ' || code == '"' || code == '\\' || (code >= 0x7f && code <= 0x9f) ||
	       code == 0x2028 || code == 0x2029;
}

/* Skips characters that need no escape. Only for speed. */
static const char *skip_plain(const char *text)
{
	while (*text >= ' ' && *text <= '~' && *text != '"' && *text != '\\' && !is_markup(*text))
		text++;
	return text;
}

static void write_escape(struct out *out, uint32_t code)
{
	if (code == '"' || code == '\\') {
		out_char(out, '\\');
		out_char(out, (char)code);
		return;
	}
	out_text(out, "\\u");
	for (int shift = 12; shift >= 0; shift -= 4)
		out_char(out, "0123456789abcdef"[code >> shift & 15]);
}

void json_text(struct json *json, const char *key, const char *text)
{
	const char *from = text; /* start of the unchanged text that is not yet written */
	struct out *out = json->out;

	write_key(json, key);
	out_char(out, '"');
	while (*(text = skip_plain(text))) {
		uint32_t code = 0xfffd;
		size_t len = text_utf8(text, &code);

		if (len && !is_escaped(json, code)) {
			text += len;
			continue;
		}
		out_write(out, from, (size_t)(text - from));
		if (len)
			write_escape(out, code);
		else
			out_text(out, "\xef\xbf\xbd");
		from = text += len ? len : 1;
	}
	out_write(out, from, (size_t)(text - from));
	out_char(out, '"');
}

void json_hex(struct json *json, const char *key, uint64_t value)
{
	write_key(json, key);
	out_char(json->out, '"');
	out_hex(json->out, value);
	out_char(json->out, '"');
}

void json_number(struct json *json, const char *key, uint64_t value)
{
	write_key(json, key);
	out_number(json->out, value, 10, 0);
}

void json_signed(struct json *json, const char *key, int64_t value)
{
	uint64_t bits = (uint64_t)value;

	write_key(json, key);
	out_signed(json->out, value < 0 ? '-' : '\0', value < 0 ? 0 - bits : bits, 10, 0);
}

void json_fraction(struct json *json, const char *key, double value)
{
	char text[FRACTION_TEXT_BYTES];
	const char *digits = report_fraction(value, text);

	write_key(json, key);
	out_text(json->out, digits ? digits : "null");
}

void json_bool(struct json *json, const char *key, bool value)
{
	write_key(json, key);
	out_text(json->out, value ? "true" : "false");
}

void json_known(struct json *json, const char *key, uint64_t value, bool is_known)
{
	write_key(json, key);
	if (is_known)
		out_number(json->out, value, 10, 0);
	else
		out_text(json->out, "null");
}

void json_growth(struct json *json, const char *key, uint64_t now, uint64_t old, bool is_known)
{
	struct growth growth = growth_of(now, old);

	write_key(json, key);
	if (!is_known)
		out_text(json->out, "null");
	else
		out_signed(json->out, growth.sign == '-' ? '-' : '\0', growth.amount, 10, 0);
}

void json_open_frame(struct json *json, const struct frame *frame)
{
	json_open(json, NULL, '{');
	if (frame->module)
		json_text(json, "module", frame->module);
	if (frame->module_path)
		json_text(json, "path", frame->module_path);
	if (frame->function)
		json_text(json, "function", frame->function);
	/* 0 is a valid offset in a module, but stands for "unknown" in a function. */
	if (frame->offset_bytes || (frame->module && !frame->function))
		json_hex(json, "offset", frame->offset_bytes);
	if (frame->has_addr)
		json_hex(json, "address", frame->addr);
	if (frame->file)
		json_text(json, "file", frame->file);
	if (frame->line)
		json_number(json, "line", frame->line);
	if (frame->is_inline)
		json_bool(json, "inline", true);
}

void json_heap(struct json *json, const char *key, uint64_t heap)
{
	if (heap_name(heap))
		json_text(json, key, heap_name(heap));
	else
		json_hex(json, key, heap);
}
