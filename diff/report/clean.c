/* Foreign text made safe: control characters and invalid bytes are replaced, markup is escaped, and
 * text is cut to a width. */
#include "diff/report/clean.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/text.h"

unsigned report_write_cut(struct out *out, const char *text, unsigned columns)
{
	unsigned used = 0, width, room = columns;

	if (text_columns(text) > columns)
		room = columns > 3 ? columns - 3 : 0;
	while (*text) {
		size_t len = text_char(text, &width);

		if (used + width > room)
			break;
		out_write(out, text, len);
		text += len;
		used += width;
	}
	for (unsigned i = 0; *text && used < columns && i < 3; i++, used++)
		out_char(out, '.');
	return used;
}

static void write_xml(struct out *out, const char *text, bool is_line)
{
	struct buf clean;

	buf_init(&clean);
	buf_add_text(&clean, "");
	clean_text(&clean, text, is_line);
	for (const char *at = clean.data; *at; at++) {
		if (!strncmp(at, "\xef\xbf\xbe", 3) || !strncmp(at, "\xef\xbf\xbf", 3)) {
			out_char(out, '?');
			at += 2;
			continue;
		}
		switch (*at) {
		case '&': out_text(out, "&amp;"); break;
		case '<': out_text(out, "&lt;"); break;
		case '>': out_text(out, "&gt;"); break;
		case '"': out_text(out, "&quot;"); break;
		/* in an attribute, readers would convert a plain line end to a blank */
		case '\n': out_text(out, "&#10;"); break;
		default: out_char(out, *at);
		}
	}
	buf_release(&clean);
}

void xml_text(struct out *out, const char *text)
{
	write_xml(out, text, true);
}

void xml_lines(struct out *out, const char *text)
{
	write_xml(out, text, false);
}

static bool stays(char c, bool one_line)
{
	return !one_line && (c == '\t' || c == '\r' || c == '\n');
}

void clean_text(struct buf *buf, const char *text, bool one_line)
{
	const char *from = text; /* start of the unchanged text that is not yet appended */
	size_t all = strlen(text);

	if (text_is_plain(text, all)) {
		buf_add(buf, text, all);
		return;
	}
	while (*text) {
		uint32_t code;
		size_t len = text_utf8(text, &code);

		if (len && (!text_obeyed(text) || stays(*text, one_line))) {
			text += len;
			continue;
		}
		buf_add(buf, from, (size_t)(text - from));
		buf_add_text(buf, len ? "?" : "\xef\xbf\xbd");
		from = text += len ? len : 1;
	}
	buf_add(buf, from, (size_t)(text - from));
}

void clean_frame(struct buf *buf, const struct frame *frame, bool one_line)
{
	if (frame->module) {
		clean_text(buf, frame_module(frame), one_line);
		buf_add(buf, frame->function ? "!" : "+", 1);
	}
	if (frame->function)
		clean_text(buf, frame->function, one_line);
	else if (!frame->module && !frame->has_addr)
		buf_add_text(buf, "?");
	else
		buf_printf(buf, "%" PRIX64, frame->module ? frame->offset_bytes : frame->addr);
}
