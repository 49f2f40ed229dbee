/* Generated dumps, runs of hdiff on them, and a parser of hdiff's report. Tests compute their
 * expectations from the contents of the dumps. */
#ifndef TESTS_UNIT_TEST_DIFF_H
#define TESTS_UNIT_TEST_DIFF_H

#include "tests/unit/t.h"

#include <inttypes.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "core/dump/model.h"
#include "core/dump/source.h"
#include "diff/hdiff.h"
#include "diff/read/dump_sums.h"

#define APP_BASE UINT64_C(0x140000000)
#define LIB_BASE UINT64_C(0x7FF812340000)
#define ROWS_MAX 64

static inline char *read_text(const char *path)
{
	FILE *file = fopen(path, "rb");
	struct buf text;
	char part[4096];
	size_t got;

	if (!file)
		return NULL;
	buf_init(&text);
	buf_add(&text, "", 0);
	while ((got = fread(part, 1, sizeof(part), file)))
		buf_add(&text, part, got);
	assert_int_equal(fclose(file), 0);
	return text.data;
}

static inline void write_bytes(const char *path, const void *bytes, size_t len)
{
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
}

/* Reads the dump at path as hdiff does; returns 0 or an error. */
static inline int read_sums(struct dump_sums *sums, const char *path)
{
	struct source *source;
	int rc;

	sums_init(sums);
	assert_int_equal(source_open(&source, path, NULL), 0);
	rc = sums_read(sums, path, source, NULL);
	source_close(source);
	return rc;
}

struct maker {
	const char *eol;
	uint64_t slide; /* added to all module addresses, as by ASLR */
	uint32_t timestamp; /* time stamp of app.exe; 0: not recorded */
	bool is_ours; /* true: hsnap's dump, with an end mark; false: UMDH's dump */
	bool bare; /* has no heap marks, no end mark and no last line end */
	struct block_totals sum;
	struct buf text;
};

static inline void put(struct maker *maker, const char *format, ...) PRINTF_LIKE(2, 3);
static inline void put(struct maker *maker, const char *format, ...)
{
	char line[1000];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	buf_add_text(&maker->text, line);
	buf_add_text(&maker->text, maker->eol);
}

static inline void put_lines(struct maker *maker, const char *lines)
{
	buf_add_text(&maker->text, lines);
}

static inline void write_modules(struct maker *maker)
{
	put(maker, "// Loaded modules: ");
	put(maker, "//     Base Size Module");
	put(maker, "//    %16" PRIX64 " %8X C:\\made up\\app.exe", APP_BASE + maker->slide,
		0x10000);
	put(maker, "//    %16" PRIX64 " %8X C:\\made up\\lib.dll", LIB_BASE + maker->slide,
		0x20000);
	put(maker, "//");
	put(maker, "// Process modules enumerated.");
	if (maker->timestamp)
		put(maker, "// hsnap: module base=%" PRIX64 " timestamp=%" PRIX32 " checksum=1",
			APP_BASE + maker->slide, maker->timestamp);
}

static inline struct maker dump_new(struct maker settings)
{
	struct maker maker = settings;

	maker.eol = settings.eol ? settings.eol : "\n";
	buf_init(&maker.text);
	if (maker.is_ours)
		put(&maker, "// hsnap: dump format=1 tool=test");
	write_modules(&maker);
	if (!maker.bare)
		put(&maker, "*- - - - - Start of data for heap @ 1E0000 - - - - -");
	put(&maker, "*- - - - - Heap 1E0000 Hogs - - - - -");
	return maker;
}

/* Runs its body twice, first to fill old.txt and then to fill new.txt. The remaining arguments are
 * the maker's settings, and may depend on is_new. */
#define EACH_DUMP(made, is_new, ...)                                                               \
	for (int is_new = 0; is_new < 2; is_new++)                                                 \
		for (struct maker made = dump_new((struct maker){__VA_ARGS__}); made.eol;          \
			dump_end(&made, is_new ? "new.txt" : "old.txt"))

/* Adds the return addresses of made stack `number`, whose offsets are unique. */
static inline void put_stack(struct maker *maker, unsigned number)
{
	put(maker, "\t%" PRIX64, APP_BASE + maker->slide + 0x1000 + 0x10 * number);
	put(maker, "\t%" PRIX64, LIB_BASE + maker->slide + 0x500 + number);
	put(maker, "\t%" PRIX64, APP_BASE + maker->slide + 0x800);
}

static inline void write_entry(
	struct maker *maker, uint64_t requested, uint64_t overhead, const char *id)
{
	put(maker, "%" PRIX64 " bytes + %" PRIX64 " at %" PRIX64 " by BackTrace%s", requested,
		overhead, 0x200000 + 0x40 * maker->sum.block_count, id);
	maker->sum.block_count++;
	maker->sum.requested_bytes += requested;
	maker->sum.overhead_bytes += overhead;
}

/* Adds a text to a note. Escapes every byte, which is the worst case. */
static inline void write_escaped(struct buf *to, const char *text)
{
	for (; *text; text++)
		buf_printf(to, "\\x%02X", (unsigned)(unsigned char)*text);
}

/* Adds a note with the name of an address. file may be NULL, and line may be 0. */
static inline void write_symbol_note(struct maker *maker, uint64_t addr, const char *function,
	uint64_t offset, const char *file, uint32_t line)
{
	struct buf note;

	buf_init(&note);
	buf_printf(&note, "// hsnap: name addr=%" PRIX64 " function=\"", addr);
	write_escaped(&note, function);
	buf_printf(&note, "\" offset=%" PRIX64, offset);
	if (file) {
		buf_add_text(&note, " file=\"");
		write_escaped(&note, file);
		buf_add_text(&note, "\"");
	}
	if (line)
		buf_printf(&note, " line=%" PRIu32, line);
	put_lines(maker, note.data);
	put(maker, "%s", "");
	buf_release(&note);
}

/* Adds one block with made stack `number`. Prints the stack in full each time. */
static inline void put_block(
	struct maker *maker, uint64_t requested, uint64_t overhead, const char *id, unsigned number)
{
	put(maker, "%s", "");
	write_entry(maker, requested, overhead, id);
	put_stack(maker, number);
	put(maker, "%s", "");
}

static inline void write_stackless(
	struct maker *maker, uint64_t blocks, uint64_t requested, uint64_t overhead)
{
	put(maker,
		"// hsnap: heap addr=1E0000 kind=wine stackless-blocks=%" PRIu64
		" stackless-requested=%" PRIu64 " stackless-overhead=%" PRIu64,
		blocks, requested, overhead);
	maker->sum.block_count += blocks;
	maker->sum.requested_bytes += requested;
	maker->sum.overhead_bytes += overhead;
}

static inline void dump_end(struct maker *maker, const char *path)
{
	size_t cut = 0;

	if (!maker->bare)
		put(maker, "*- - - - - End of data for heap @ 1E0000 - - - - -");
	if (maker->is_ours)
		put(maker,
			"// hsnap: end blocks=%" PRIu64 " requested=%" PRIu64 " overhead=%" PRIu64,
			maker->sum.block_count, maker->sum.requested_bytes,
			maker->sum.overhead_bytes);
	while (maker->bare && strchr("\r\n", maker->text.data[maker->text.len - cut - 1]))
		cut++;
	write_bytes(path, maker->text.data, maker->text.len - cut);
	buf_release(&maker->text);
	maker->eol = NULL;
}

struct shown {
	char sign, count_sign;
	uint64_t growth, new_bytes, old_bytes, blocks;
	uint64_t count_growth, new_count, old_count;
	char id[40], notes[200], frames[2000];
};

struct result {
	int status;
	char *text; /* text of the report, or NULL if hdiff wrote none */
	char words[4000]; /* messages on stderr */
	struct shown rows[ROWS_MAX];
	size_t row_count;
	bool is_increase;
	int64_t requested, overhead, sum; /* totals as printed in the last line */
};

static inline const char *next_text(const char *at)
{
	const char *newline = strchr(at, '\n');

	assert_non_null(newline);
	return newline + 1;
}

static inline int64_t signed_number(const char *text, bool hex)
{
	return *text == '-' ? -(int64_t)strtoull(text + 1, NULL, hex ? 16 : 10) :
			      (int64_t)strtoull(text, NULL, hex ? 16 : 10);
}

static inline void parse_total(struct result *result, const char *at, bool hex)
{
	char word[20], requested[40], overhead[40], sum[40];

	int parts = sscanf(at, "Total %19s == %39s requested + %39s overhead = %39s", word,
		requested, overhead, sum);

	if (parts == 2) { /* UMDH's old format has no overhead */
		strcpy(overhead, "0");
		strcpy(sum, requested);
	} else {
		assert_int_equal(parts, 4);
	}
	result->is_increase = !strcmp(word, "increase");
	assert_true(result->is_increase || !strcmp(word, "decrease"));
	result->requested = signed_number(requested, hex);
	result->overhead = signed_number(overhead, hex);
	result->sum = signed_number(sum, hex);
	assert_int_equal(result->requested + result->overhead, result->sum);
	if (result->row_count || result->requested || result->overhead)
		assert_string_equal(next_text(at), "");
	else
		assert_non_null(strstr(next_text(at), " changed.\n"));
}

static inline const char *parse_row(struct shown *row, const char *at, bool hex)
{
	char again[40];
	size_t len;

	assert_int_equal(sscanf(at,
				 hex ? "%c%" SCNx64 " ( %" SCNx64 " - %" SCNx64 ") %" SCNx64
				       " allocs\tBackTrace%39s" :
				       "%c%" SCNu64 " ( %" SCNu64 " - %" SCNu64 ") %" SCNu64
				       " allocs\tBackTrace%39s",
				 &row->sign, &row->growth, &row->new_bytes, &row->old_bytes,
				 &row->blocks, row->id),
		6);
	at = next_text(at);
	assert_int_equal(sscanf(at,
				 hex ? "%c%" SCNx64 " ( %" SCNx64 " - %" SCNx64
				       ")\tBackTrace%39s\tallocations\n" :
				       "%c%" SCNu64 " ( %" SCNu64 " - %" SCNu64
				       ")\tBackTrace%39s\tallocations\n",
				 &row->count_sign, &row->count_growth, &row->new_count,
				 &row->old_count, again),
		5);
	assert_string_equal(row->id, again);
	assert_int_equal(row->blocks, row->new_count);
	at = next_text(at);
	assert_int_equal(*at, '\n');
	for (++at; *at == '\t'; at = next_text(at)) {
		len = strlen(row->frames);
		snprintf(row->frames + len, sizeof(row->frames) - len, "%.*s",
			(int)(next_text(at) - at), at);
	}
	assert_int_equal(*at, '\n');
	return at + 1;
}

static inline void parse_report(struct result *result, bool hex)
{
	const char *at = result->text, *notes;

	while (*at == '/' && strncmp(at, "//     ", 7) != 0)
		at = next_text(at);
	for (;;) {
		struct shown *row = &result->rows[result->row_count];

		for (notes = at; *at == '/'; at = next_text(at))
			;
		if (*at != '+' && *at != '-')
			break;
		assert_true(result->row_count < ROWS_MAX);
		snprintf(row->notes, sizeof(row->notes), "%.*s", (int)(at - notes), notes);
		at = parse_row(row, at, hex);
		result->row_count++;
	}
	assert_memory_equal(at, "\n\n\n", 3);
	parse_total(result, at + 3, hex);
}

/* Runs hdiff with NULL-terminated arguments, then reads out.txt. The results of the last four runs
 * remain valid. */
static inline struct result *run_raw(const char *const *args)
{
	static struct result results[4];
	static size_t runs;
	struct result *result = &results[runs++ % 4];
	/* Selects UMDH's format. */
	char *argv[25] = {(char *)(uintptr_t) "hdiff", (char *)(uintptr_t) "-d"};
	FILE *messages = tmpfile();
	int argc = 2;

	assert_non_null(messages);
	free(result->text);
	memset(result, 0, sizeof(*result));
	for (; *args; args++)
		argv[argc++] = (char *)(uintptr_t)*args;
	(void)remove("out.txt");
	result->status = hdiff_run(argc, argv, messages);
	rewind(messages);
	result->words[fread(result->words, 1, sizeof(result->words) - 1, messages)] = '\0';
	assert_int_equal(fclose(messages), 0);
	result->text = read_text("out.txt");
	return result;
}

/* Like run_raw(), but passes -f out.txt and `first` (unless NULL) before the arguments, and parses
 * the report. */
static inline struct result *run_with(const char *first, const char *const *args)
{
	const char *all[24] = {"-fout.txt"};
	size_t count = 1;
	struct result *result;
	bool hex = false;

	if (first)
		all[count++] = first;
	for (; *args; args++) {
		hex |= !strcmp(*args, "--hex");
		all[count++] = *args;
	}
	result = run_raw(all);
	if (result->text)
		parse_report(result, hex);
	return result;
}

#define run_hdiff(...) run_with("--no-symbols", (const char *const[]){__VA_ARGS__, NULL})
#define ask_hdiff(...) run_with(NULL, (const char *const[]){__VA_ARGS__, NULL})

/* Requires this exit status and these words in the messages. If words is "", requires that there
 * are no messages. */
static inline struct result *expect_with(
	const char *first, int status, const char *words, const char *const *args)
{
	struct result *result = run_with(first, args);

	if (result->status != status || (*words ? !strstr(result->words, words) : *result->words))
		fail_msg("status %d, said: %s, wanted: %d, %s", result->status, result->words,
			status, words);
	return result;
}

#define run_expect(status, words, ...)                                                             \
	expect_with("--no-symbols", status, words, (const char *const[]){__VA_ARGS__, NULL})
#define ask_expect(status, words, ...)                                                             \
	expect_with(NULL, status, words, (const char *const[]){__VA_ARGS__, NULL})

/* Requires this exit status and, unless rows is ROWS_MAX, this number of rows. Ignores messages. */
static inline struct result *ended_with(
	const char *first, int status, size_t rows, const char *const *args)
{
	struct result *result = run_with(first, args);

	if (result->status != status || (rows != ROWS_MAX && result->row_count != rows))
		fail_msg("status %d, %zu rows, said: %s, wanted: %d, %zu", result->status,
			result->row_count, result->words, status, rows);
	return result;
}

#define run_status(status, ...)                                                                    \
	ended_with("--no-symbols", status, ROWS_MAX, (const char *const[]){__VA_ARGS__, NULL})
#define ask_status(status, ...)                                                                    \
	ended_with(NULL, status, ROWS_MAX, (const char *const[]){__VA_ARGS__, NULL})
#define run_rows(rows, ...)                                                                        \
	ended_with("--no-symbols", 0, rows, (const char *const[]){__VA_ARGS__, NULL})
#define ask_rows(rows, ...) ended_with(NULL, 0, rows, (const char *const[]){__VA_ARGS__, NULL})

/* Requires exit status 2, no report, and these words on a single line. */
static inline void check_refused(const char *words, const char *const *args)
{
	struct result *result = expect_with(NULL, 2, words, args);

	assert_null(result->text);
	assert_ptr_equal(strchr(result->words, '\n'), strrchr(result->words, '\n'));
}

#define refused(words, ...) check_refused(words, (const char *const[]){__VA_ARGS__, NULL})

static inline size_t times(const char *text, const char *word)
{
	size_t count = 0;

	for (; (text = strstr(text, word)); text++)
		count++;
	return count;
}

/* Returns a row's signed growth, after checking it against NEW and OLD. */
static inline int64_t growth(const struct shown *row)
{
	assert_int_equal(row->new_bytes < row->old_bytes ? '-' : '+', row->sign);
	assert_int_equal(row->new_count < row->old_count ? '-' : '+', row->count_sign);
	assert_int_equal(
		row->sign == '+' ? row->growth : 0 - row->growth, row->new_bytes - row->old_bytes);
	assert_int_equal(row->count_sign == '+' ? row->count_growth : 0 - row->count_growth,
		row->new_count - row->old_count);
	return (int64_t)(row->new_bytes - row->old_bytes);
}

/* Returns the only row that has made stack `number`, or NULL. */
static inline const struct shown *row_of(const struct result *result, unsigned number)
{
	const struct shown *found = NULL;
	char frame[40];

	snprintf(frame, sizeof(frame), "\tapp+%X : ", 0x1000 + 0x10 * number);
	for (size_t i = 0; i < result->row_count; i++) {
		if (strncmp(result->rows[i].frames, frame, strlen(frame)) != 0)
			continue;
		assert_null(found);
		found = &result->rows[i];
	}
	return found;
}

/* Returns the row with this label, or an empty row. */
static inline const struct shown *row_named(const struct result *result, const char *id)
{
	static const struct shown none;

	for (size_t i = 0; i < result->row_count; i++) {
		if (!strcmp(result->rows[i].id, id))
			return &result->rows[i];
	}
	return &none;
}

static inline int enter_folder(void **state)
{
	const char *base = getenv("TMPDIR");
	char name[4096];
	char *old = getcwd(NULL, 0);

	snprintf(name, sizeof(name), "%s/test_diff.XXXXXX", base ? base : "build");
	if (!old || !mkdtemp(name) || chdir(name))
		return -1;
	*state = old;
	return 0;
}

static inline int leave_folder(void **state)
{
	static const char *const files[] = {
		"old.txt", "new.txt", "more.txt", "out.txt", "out.txt.1", "cut.txt"};
	char *own = getcwd(NULL, 0);
	int rc;

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		(void)remove(files[i]);
	rc = chdir(*state) || (own && rmdir(own));
	free(own);
	free(*state);
	return rc ? -1 : 0;
}

#undef TEST_AROUND
#define TEST_AROUND enter_folder, leave_folder

#endif
