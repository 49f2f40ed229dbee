/*
 * Recognizes files that no output may replace: dumps, UMDH's logs and comparisons, recordings,
 * minidumps, ETW logs, programs, symbols, and lists for --suppress and --strip-file. Files packed by programs other than gzip are also protected, because they
 * may contain any of these.
 *
 * Such files describe a process that may have exited, so they cannot be produced again. A file is
 * recognized by its first bytes (after gunzip), whatever its name. Reports are not protected,
 * because they can be produced again from dumps. The modules for these formats have stricter tests,
 * but this folder may not include them. The caller of out_protect() provides the test for pasted and
 * other texts that need the readers' own rules.
 */
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/base/text.h"
#include "core/io/out.h"

#define LOOK_BYTES ((size_t)64 << 10)
#define GZIP_WINDOW (MAX_WBITS + 16)
#define UNPACK_MAX 3 /* gzip in gzip */

static out_text_kind *text_kind_of; /* NULL: nothing is protected */

void out_protect(out_text_kind *find)
{
	text_kind_of = find;
}

static bool starts(const char *text, size_t len, const char *with)
{
	size_t with_len = strlen(with);

	return len >= with_len && !memcmp(text, with, with_len);
}

/* Reads the first bytes of a regular file. Returns the number of bytes read; 0 if the file is
 * unreadable. */
static size_t read_start(const char *path, char bytes[LOOK_BYTES])
{
	struct os_file file;
	size_t len = 0;
	int64_t got;

	if (os_open(&file, path, NULL))
		return 0;
	while (len < LOOK_BYTES &&
		(got = os_read(&file, bytes + len, LOOK_BYTES - len, path, NULL)) > 0)
		len += (size_t)got;
	os_close(&file);
	return len;
}

/* Unpacks gzip in place. Returns the number of unpacked bytes. */
static size_t unpack_start(char bytes[LOOK_BYTES], size_t len)
{
	z_stream stream = {0};
	char *packed;

	if (inflateInit2(&stream, GZIP_WINDOW) != Z_OK)
		return len;
	packed = xmalloc(len);
	memcpy(packed, bytes, len);
	stream.next_in = (unsigned char *)packed;
	stream.avail_in = (unsigned)len;
	stream.next_out = (unsigned char *)bytes;
	stream.avail_out = (unsigned)LOOK_BYTES;
	inflate(&stream, Z_SYNC_FLUSH);
	len = LOOK_BYTES - stream.avail_out;
	inflateEnd(&stream);
	free(packed);
	return len;
}

/* Removes zero bytes in place. ASCII text in UTF-16 or UTF-32, such as the first lines of a dump,
 * becomes plain ASCII. */
static size_t narrow_start(char bytes[LOOK_BYTES], size_t len)
{
	size_t to = 0;

	for (size_t at = 0; at < len; at++) {
		if (bytes[at])
			bytes[to++] = bytes[at];
	}
	return to;
}

/* Returns true if a line contains `word`. */
static bool contains(const char *line, size_t len, const char *word)
{
	const char *end = line + len;

	while (line < end && (line = memchr(line, *word, (size_t)(end - line)))) {
		if (starts(line, (size_t)(end - line), word))
			return true;
		line++;
	}
	return false;
}

/* Returns the name of the protected kind of text that has such a line, or NULL. The line may be
 * part of a mail, a web page or a build log. */
static const char *line_kind(const char *line, size_t len)
{
	static const struct {
		const char *word, *kind;
	} words[] = {{"// + BYTES_DELTA ", "a UMDH comparison"},
		{" allocs\tBackTrace", "a UMDH comparison"},
		{" allocs BackTrace", "a UMDH comparison"}, {"// hsnap: ", "a heap dump"},
		{" by BackTrace", "a heap dump"}, {" by: BackTrace", "a heap dump"},
		{"// UMDH: version ", "a UMDH log"}, {"// Loaded modules", "a UMDH log"},
		{"// Process modules", "a UMDH log"}, {"*- - - - -", "a UMDH log"},
		{"REQUESTED bytes + OVERHEAD", "a UMDH log"}};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (contains(line, len, words[i].word))
			return words[i].kind;
	}
	return NULL;
}

/* Entries of a list for --suppress or --strip-file. */
struct list_entries {
	size_t suppressions, functions, others;
};

/* Returns true for "MODULE!FUNCTION". A line of folded stacks ends with a number. */
static bool is_function(const char *line, size_t len)
{
	const char *mark = memchr(line, '!', len);
	size_t digits = len;

	while (digits && line[digits - 1] >= '0' && line[digits - 1] <= '9')
		digits--;
	return mark && mark > line && mark + 1 < line + len && mark[1] != ' ' &&
	       !memchr(line, ' ', (size_t)(mark - line)) && !memchr(line, ';', len) &&
	       (digits == len || !digits || line[digits - 1] != ' ');
}

/* Counts a line of a list. Comments and empty lines do not count. */
static void count_entry(struct list_entries *entries, const char *line, size_t len)
{
	while (len && strchr(" \t\r", line[len - 1]))
		len--;
	while (len && strchr(" \t\xef\xbb\xbf\xff\xfe", *line)) { /* also byte order marks */
		line++;
		len--;
	}
	if (!len || *line == '#')
		return;
	if (starts(line, len, "leak:"))
		entries->suppressions++;
	else if (is_function(line, len))
		entries->functions++;
	else
		entries->others++;
}

static const char *list_kind(const struct list_entries *entries)
{
	if (entries->others || (entries->suppressions && entries->functions))
		return NULL;
	return entries->suppressions ? "a list of suppressions" :
	       entries->functions    ? "a list of functions" :
				       NULL;
}

/* Returns the name of the protected kind of text that begins like this, or NULL. */
static const char *text_kind(const char *path, const char *text, size_t len)
{
	const char *end = text + len, *kind = NULL;
	struct list_entries entries = {0};

	while (text < end && !kind) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t line = (size_t)((newline ? newline : end) - text);

		if (starts(text, line, "// hdiff "))
			return NULL; /* a report, which can be produced again from the dumps */
		kind = line_kind(text, line);
		count_entry(&entries, text, line);
		text += line + !!newline;
	}
	if (!kind)
		kind = list_kind(&entries);
	return kind ? kind : text_kind_of(path);
}

/* Returns true for the first buffer of an ETW log: a 72-byte head of type 4, followed by the log
 * header's event. core/etw/etw_file.c describes the layout. */
static bool is_etw(const unsigned char *bytes, size_t len)
{
	return len >= 104 && bytes[0x36] == 4 && !bytes[0x37] &&
	       (bytes[72 + 2] == 1 || bytes[72 + 2] == 2) && (bytes[72 + 3] & 0xc0) == 0xc0 &&
	       !bytes[72 + 6] && !bytes[72 + 7];
}

/* Returns the name of the protected kind of file at `path`, or NULL if the file may be replaced. */
static const char *find_kind(const char *path)
{
	char *bytes = xmalloc(LOOK_BYTES);
	size_t len = read_start(path, bytes);
	static const char *const packed[] = {
		"\x1f\x8b", "\3757zXZ", "BZh", "\x28\xb5\x2f\xfd", "7z\xbc\xaf"};
	const char *kind = NULL;

	for (int tries = 0; tries < UNPACK_MAX && starts(bytes, len, "\x1f\x8b"); tries++)
		len = unpack_start(bytes, len);
	for (size_t i = 0; i < sizeof(packed) / sizeof(*packed); i++)
		kind = starts(bytes, len, packed[i]) ? "a packed file" : kind;
	if (starts(bytes, len, "\x89hrc\r\n"))
		kind = "a recording";
	else if (starts(bytes, len, "MDMP"))
		kind = "a minidump";
	else if (starts(bytes, len, "PK\3\4"))
		kind = "a zip archive";
	else if (starts(bytes, len, "MZ"))
		kind = "a program";
	else if (starts(bytes, len, "Microsoft C/C++ "))
		kind = "a symbol file";
	else if (is_etw((const unsigned char *)bytes, len))
		kind = "an ETW log";
	else if (!kind)
		kind = text_kind(path, bytes, narrow_start(bytes, len));
	free(bytes);
	return kind;
}

int out_check(const char *path, struct err *err)
{
	const char *kind;

	if (!text_kind_of || !path || !strcmp(path, "-") || os_is_special(path) || !os_exists(path))
		return 0;
	kind = find_kind(path);
	return kind ? err_set(err, ERR_KEPT, path, "%s", kind) : 0;
}
