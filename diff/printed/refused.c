/* Files that hdiff refuses, and the marks that identify them. */
#include <string.h>

#include "diff/printed/printed.h"

#define FOREIGN(what) what ", which hdiff does not read"
#define CONVERT(what, how) what "; convert it first: '" how "'"
#define BY_HAND(what) what "; hdiff(1), \"Files of other tools\", converts it to folded stacks"
#define PACKED(by, how) "packed by " by "; unpack it first: '" how " FILE | hdiff -'"
#define REPORT(what) "a report in " what "; only UMDH's form, -o umdh, is read back"
#define PEOPLE REPORT_FOR "reading, not for hdiff; only UMDH's form, -o umdh, is read back"
#define REPORT_FOR "a report for "

/* Marks that identify a file. A mark is at the start of the text or, if `is_anywhere`, at the start
 * of any line, after blanks. */
static const struct {
	const char *words, *mark;
	bool is_anywhere;
} marks[] = {
	/* our own reports */
	{REPORT("JSON"), "{\"schema\":\"hdiff/", false},
	{REPORT("CSV"), "growth_bytes,new_bytes,old_bytes,", false},
	{REPORT("CSV"), "self_growth_bytes,self_new_bytes,", false},
	{PEOPLE, "Growth\nfrom ", false},
	{PEOPLE, "Growth of ", false},
	{PEOPLE, "Growth as ", false},
	{PEOPLE, "Growth recorded in ", false},
	{PEOPLE, "Memory of ", false},
	{PEOPLE, "Trend of ", false},
	/* packed files */
	{PACKED("xz", "xz -dc"),
		"\xfd"
		"7zXZ",
		false},
	{PACKED("bzip2", "bzip2 -dc"), "BZh", false},
	{PACKED("zstd", "zstd -dc"), "\x28\xb5\x2f\xfd", false},
	{PACKED("lz4", "lz4 -dc"), "\x04\x22\x4d\x18", false},
	{PACKED("zip", "unzip -p"), "PK\x03\x04", false},
	{PACKED("7-Zip", "7z x -so"), "7z\xbc\xaf\x27\x1c", false},
	/* files of other tools */
	{"a minidump; take a dump of it with hsnap -z FILE.dmp -f FILE.txt", "MDMP", false},
	{CONVERT("a heap profile of gperftools or Go",
		 "go tool pprof -proto -output OUT.pb.gz PROGRAM FILE"),
		"heap profile: ", false},
	{CONVERT("a heap profile of jemalloc", "jeprof --collapsed PROGRAM FILE >OUT.folded"),
		"heap_v2/", false},
	{CONVERT("a profile for pprof with symbols", "go tool pprof -proto -output OUT.pb.gz FILE"),
		"--- symbol\n", false},
	{BY_HAND("a DHAT file"), "{\"dhatFileVersion\"", false},
	{FOREIGN("a speedscope file"), "{\"$schema\":\"https://www.speedscope", false},
	{FOREIGN("a Chrome trace"), "{\"traceEvents\"", false},
	{"a Massif file; run valgrind --tool=dhat instead, whose file hdiff(1) converts",
		"time_unit: ", true},
	{BY_HAND("a Visual Leak Detector report"), "Visual Leak Detector ", true},
	{BY_HAND("a Visual Leak Detector report"), "WARNING: Visual Leak Detector ", true},
	{BY_HAND("a Visual Leak Detector report"), "---------- Block ", true},
	{BY_HAND("a leak list of the C runtime"), "Detected memory leaks!", true},
	{BY_HAND("a leak list of the C runtime"), "Dumping objects ->", true},
	{FOREIGN("a Dr. Memory report"), "Dr. Memory version ", true},
	{FOREIGN("output of WinDbg's !heap"), "LFH Key ", true},
	{FOREIGN("output of WinDbg's !heap"), "Heap     Flags   Reserv", true},
	{FOREIGN("output of WinDbg's !heap"), "_HEAP @ ", true},
	{FOREIGN("output of WinDbg's !heap"), "_DPH_HEAP_ROOT @ ", true},
	{FOREIGN("output of WinDbg's !heap"), "Allocations statistics for", true},
	{FOREIGN("output of WinDbg's !heap"), "group-by: ", true},
	{"a PDF file; save it as plain text", "%PDF-", false},
	{"a quoted-printable mail; save it as plain text",
		"Content-Transfer-Encoding: quoted-printable", true},
	{"a base64 mail; save it as plain text", "Content-Transfer-Encoding: base64", true},
	{"a patch; use the files that it was made of", "@@ -", true},
	{"a web page; save it as plain text", "<!DOCTYPE html", false},
	{"a web page; save it as plain text", "<html", false},
};

static bool starts(const char *at, const char *end, const char *mark)
{
	size_t len = strlen(mark);

	return (size_t)(end - at) >= len && !memcmp(at, mark, len);
}

static bool contains(const char *at, const char *end, const char *words)
{
	while (at < end && (at = memchr(at, *words, (size_t)(end - at)))) {
		if (starts(at, end, words))
			return true;
		at++;
	}
	return false;
}

#define ENCODED_BYTES 16 /* bytes needed to detect an encoding */
#define MARK_BYTES 4 /* the largest byte order mark */
#define ENCODED(what, name) what "; convert it first: 'iconv -f " name " -t UTF-8 FILE | hdiff -'"

/* Returns true if the text consists of ASCII characters in units of `unit_bytes`. `at` is the index
 * of the character's byte in each unit; all other bytes must be 0. */
static bool is_encoded(const char *bytes, size_t unit_bytes, size_t at)
{
	for (size_t i = MARK_BYTES; i < MARK_BYTES + ENCODED_BYTES; i++) {
		bool is_text = (bytes[i] >= ' ' && bytes[i] < 0x7f) || bytes[i] == '\t' ||
			       bytes[i] == '\r' || bytes[i] == '\n';

		if (i % unit_bytes == at ? !is_text : bytes[i] != 0)
			return false;
	}
	return true;
}

/* Returns a message if the text has an encoding that hdiff cannot read, or NULL. */
static const char *encoding_words(const char *bytes, size_t len)
{
	static const struct {
		const char *words;
		size_t unit_bytes, at;
	} encodings[] = {{ENCODED("UTF-16 without a byte order mark", "UTF-16LE"), 2, 0},
		{ENCODED("UTF-16 without a byte order mark", "UTF-16BE"), 2, 1},
		{ENCODED("UTF-32", "UTF-32LE"), 4, 0}, {ENCODED("UTF-32", "UTF-32BE"), 4, 3}};

	for (size_t i = 0; i < sizeof(encodings) / sizeof(*encodings); i++) {
		if (len >= MARK_BYTES + ENCODED_BYTES &&
			is_encoded(bytes, encodings[i].unit_bytes, encodings[i].at))
			return encodings[i].words;
	}
	if (!memchr(bytes, '\n', len) && memchr(bytes, '\r', len))
		return "its lines end only with CR; convert it first: 'tr \"\\r\" \"\\n\" <FILE | "
		       "hdiff -'";
	return NULL;
}

/* Returns the start of the next line, or `end`. */
static const char *line_behind(const char *at, const char *end)
{
	const char *newline = memchr(at, '\n', (size_t)(end - at));

	return newline ? newline + 1 : end;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Returns true for "v 10500 3" followed by "X PROGRAM". */
static bool is_heaptrack(const char *at, const char *end)
{
	return starts(at, end, "v ") && end - at > 2 && is_digit(at[2]) &&
	       starts(line_behind(at, end), end, "X ");
}

/* Returns a message for "==PID==" or "==PID==ERROR: LeakSanitizer", or NULL. */
static const char *checker_words(const char *at, const char *end)
{
	const char *from = at + 2;

	if (!starts(at, end, "=="))
		return NULL;
	while (from < end && is_digit(*from))
		from++;
	if (from == at + 2 || !starts(from, end, "=="))
		return NULL;
	return starts(from, end, "==ERROR: ") ? FOREIGN("a sanitizer report") :
						FOREIGN("a Valgrind report");
}

/* Returns true for an empty comment, as UMDH prints it, whose last blank is encoded. */
static bool is_encoded_comment(const char *line, const char *end)
{
	const char *at = line + 2;

	if (!starts(line, end, "//"))
		return false;
	while (at < end && *at == ' ')
		at++;
	return starts(at, end, "=20\n") || starts(at, end, "=20\r\n");
}

const char *printed_encoded(const char *bytes, size_t len)
{
	const char *end = bytes + len;

	for (const char *line = bytes; line < end; line = line_behind(line, end)) {
		if (is_encoded_comment(line, end) || starts(line, end, "Total increase =3D=3D ") ||
			starts(line, end, "Total decrease =3D=3D "))
			return "quoted-printable mail, in which \"=3D\" stands for \"=\" and \"=\" "
			       "at the end of a line joins two lines; save its text with the mail "
			       "program";
	}
	return NULL;
}

const char *printed_refused(const char *bytes, size_t len)
{
	const char *end = bytes + len, *words;

	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
		if (starts(bytes, end, marks[i].mark))
			return marks[i].words;
	}
	words = encoding_words(bytes, len);
	if (words)
		return words;
	if (starts(bytes, end, "// ") &&
		contains(bytes, end, "enabled allocation stack collection"))
		return "UMDH found that the process collected no stacks; take the log again, or "
		       "run 'gflags /i IMAGE +ust' or 'hsnap ust on IMAGE' and restart the process";
	if (is_heaptrack(bytes, end))
		return CONVERT("a heaptrack recording",
			"heaptrack_print --flamegraph-cost-type leaked -F OUT.folded FILE");
	for (const char *line = bytes; line < end; line = line_behind(line, end)) {
		const char *at = line;

		words = checker_words(line, end);
		if (words)
			return words;
		while (at < end && *at == ' ')
			at++;
		for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
			if (marks[i].is_anywhere && starts(at, end, marks[i].mark))
				return marks[i].words;
		}
	}
	return NULL;
}
