/*
 * Adds names to a dump (hsym.h): the input, which is read twice; the collection of addresses; the
 * copy with name lines; and the summary.
 */
#include "symbolize/hsym/hsym.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/base/sorted.h"
#include "core/base/text.h"
#include "core/dump/dump.h"
#include "core/dump/stackless_note.h"

#define PART_BYTES ((size_t)256 << 10)
#define LINE_MAX_BYTES ((size_t)16 << 20)
#define MAX_BYTES ((size_t)1 << 30)

int input_open(struct input *input, const char *path, struct err *err)
{
	bool is_stdin = !strcmp(path, "-");

	*input = (struct input){.path = path,
		.name = is_stdin ? "standard input" : path,
		.is_pipe = is_stdin || os_is_special(path),
		.max_bytes = MAX_BYTES};
	return source_open(&input->source, path, err);
}

static int read_more(struct input *input, struct err *err)
{
	size_t tail = 0, len;
	const char *part;
	int64_t got;

	buf_reserve(&input->text, PART_BYTES);
	part = input->text.data + input->text.len;
	got = source_read(input->source, input->text.data + input->text.len, PART_BYTES, err);
	input->is_over = !got;
	if (got <= 0)
		return (int)got;
	len = (size_t)got;
	input->text.len += len;
	while (tail < len && part[len - 1 - tail] != '\n')
		tail++;
	input->line_bytes = tail < len ? tail : input->line_bytes + len;
	if (input->line_bytes > LINE_MAX_BYTES)
		return err_set(err, ERR_NOT_DUMP, input->name, "a line is too long");
	if (input->text.len > input->max_bytes)
		return err_set(err, ERR_USAGE, input->name,
			"a pipe of over %zu MB: save it to a file first", input->max_bytes >> 20);
	return 0;
}

/* Read function of struct dump_source; `ctx` is a struct input. Returns the errors of
 * source_read(). For a pipe, also returns -ERR_USAGE if it exceeds `max_bytes`, and -ERR_NOT_DUMP
 * if a line is too long for a dump. */
static int64_t input_read(void *ctx, void *bytes, size_t len, struct err *err)
{
	struct input *input = ctx;
	int rc;

	if (!input->is_pipe)
		return source_read(input->source, bytes, len, err);
	if (input->at == input->text.len && !input->is_over) {
		rc = read_more(input, err);
		if (rc)
			return rc;
	}
	if (len > input->text.len - input->at)
		len = input->text.len - input->at;
	if (len && input->text.data)
		memcpy(bytes, input->text.data + input->at, len);
	input->at += len;
	return (int64_t)len;
}

int input_rewind(struct input *input, struct err *err)
{
	input->at = 0;
	if (input->is_pipe)
		return 0;
	source_close(input->source);
	input->source = NULL;
	return source_open(&input->source, input->path, err);
}

void input_close(struct input *input)
{
	source_close(input->source);
	input->source = NULL;
	buf_release(&input->text);
}

#define WINDOW_BYTES ((size_t)128 << 10)
#define SEEN_BITS 17
#define SEEN_COUNT ((size_t)1 << SEEN_BITS)
#define TIDY_MIN ((size_t)1 << 20)

/* A stack that occurred earlier. Dumps often repeat stacks, so a hash table remembers some of
 * them. */
struct seen_stack {
	uint64_t *frames;
	uint32_t count;
};

int addnames_init(struct addnames *work, const struct symbol_options *options, struct err *err)
{
	*work = (struct addnames){.tidy_at = TIDY_MIN};
	arena_init(&work->arena);
	module_list_init(&work->modules, &work->arena);
	work->names = symbol_names_new();
	work->seen = xcalloc(SEEN_COUNT, sizeof(*work->seen));
	work->symbolizer = symbolizer_new(options, err);
	return work->symbolizer ? 0 : -(int)err->code;
}

void addnames_release(struct addnames *work)
{
	symbolizer_free(work->symbolizer);
	symbol_names_free(work->names);
	for (size_t i = 0; i < SEEN_COUNT; i++) {
		if (work->seen[i].frames)
			free(work->seen[i].frames);
	}
	free(work->seen);
	free(work->queries);
	free(work->addrs);
	module_list_release(&work->modules);
	arena_release(&work->arena);
}

/* ---------------------------------------------------------------- reading */

static int add_module(void *ctx, uint64_t base, uint64_t size_bytes, const char *path, size_t len)
{
	return module_list_add(&((struct addnames *)ctx)->modules, base, size_bytes, path, len);
}

/* Sorts the addresses and removes duplicates. */
static void tidy_addrs(struct addnames *work)
{
	size_t count = sorted_unique(work->addrs, work->addr_count);

	work->addr_count = count;
	work->tidy_at = count < TIDY_MIN / 2 ? TIDY_MIN : count * 2;
}

/* Returns true if this stack is in the hash table; otherwise stores it there. */
static bool seen_before(struct addnames *work, const struct stack *stack)
{
	size_t bytes = stack->frame_count * FRAME_WIDTH;
	struct seen_stack *seen;
	uint64_t hash = 0;

	for (uint32_t i = 0; i < stack->frame_count; i++)
		hash = (hash ^ stack_frame(stack, i)) * UINT64_C(0x9e3779b97f4a7c15);
	seen = &work->seen[hash >> (64 - SEEN_BITS)];
	if (seen->count == stack->frame_count && !memcmp(seen->frames, stack->frames, bytes))
		return true;
	seen->frames = xrealloc(seen->frames, bytes);
	memcpy(seen->frames, stack->frames, bytes);
	seen->count = stack->frame_count;
	return false;
}

static void add_addr(struct addnames *work, uint64_t addr)
{
	if (work->addr_count >= work->tidy_at)
		tidy_addrs(work);
	array_grow((void **)&work->addrs, &work->addr_cap, work->addr_count, sizeof(*work->addrs));
	work->addrs[work->addr_count++] = addr;
}

/* Adds the words in a block's content, because a word may be the address of code or data. A look-up
 * uses the byte before a return address, so 1 is added to each word. */
static int add_content(struct addnames *work, const struct kv *pairs)
{
	struct content_note note;
	const struct block_content *content = &note.content;
	int rc = content_note_read(pairs, &note);

	for (uint32_t at = 0; !rc && at + note.bits / 8 <= content->len; at += note.bits / 8) {
		uint64_t word = content_word(content->bytes + at, content->len - at, note.bits);

		if (word && word + 1)
			add_addr(work, word + 1);
	}
	return rc;
}

/* Adds the address to which the first word of blocks without a stack points. */
static int add_stackless(struct addnames *work, const struct kv *pairs)
{
	struct stackless_group group;
	uint64_t heap;
	int rc = stackless_note_read(pairs, &group, &heap);

	if (!rc && group.kind == STACKLESS_ADDRESS && group.word + 1)
		add_addr(work, group.word + 1);
	return rc;
}

static int add_entry(void *ctx, const struct dump_entry *entry)
{
	const struct stack *stack = &entry->stack;
	struct addnames *work = ctx;

	if (!stack->frames || !stack->frame_count || seen_before(work, stack))
		return 0;
	for (uint32_t i = 0; i < stack->frame_count; i++)
		add_addr(work, stack_frame(stack, i));
	return 0;
}

static void add_creator(struct addnames *work, const struct kv *pairs)
{
	uint64_t frames[CREATOR_FRAMES_MAX];
	const uint32_t count = creator_note_read(pairs, frames);

	for (uint32_t i = 0; i < count; i++)
		add_addr(work, frames[i]);
}

static int add_note(void *ctx, const char *kind, const struct kv *pairs)
{
	struct addnames *work = ctx;

	if (!strcmp(kind, "heap"))
		add_creator(work, pairs);

	if (!strcmp(kind, "content"))
		return add_content(work, pairs);
	if (!strcmp(kind, "stackless"))
		return add_stackless(work, pairs);
	if (!strcmp(kind, "module")) {
		work->is_ours = true;
		return module_list_note(&work->modules, pairs);
	}
	if (!strcmp(kind, "name"))
		return symbol_names_note(work->names, pairs);
	work->is_ours = true;
	return 0;
}

static int count_bad(void *ctx, const struct err *why)
{
	struct addnames *work = ctx;

	if (!work->bad_lines++)
		work->first_bad = *why;
	return 0;
}

/* Positions of the last line and the last entry, used to find an incomplete line or entry. */
struct tail {
	struct input *input;
	uint64_t at; /* number of bytes read */
	uint64_t line, entry; /* offset of the last line; offset of the last entry */
	char first; /* first byte of the last line; 0: not read yet */
	bool in_entry; /* only stack lines have followed the last entry */
};

/* Like input_read(), with a struct tail as ctx. */
static int64_t read_noting_tail(void *ctx, void *bytes, size_t len, struct err *err)
{
	struct tail *tail = ctx;
	int64_t got = input_read(tail->input, bytes, len, err);
	const char *begin = bytes, *end = begin + (got > 0 ? got : 0);

	for (const char *at = begin; at < end;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));

		if (!tail->first) {
			tail->first = *at;
			tail->line = tail->at + (uint64_t)(at - begin);
			if (hex_digits[(unsigned char)*at])
				tail->entry = tail->line;
			tail->in_entry =
				hex_digits[(unsigned char)*at] || (tail->in_entry && *at == '\t');
		}
		if (newline)
			tail->first = '\0';
		at = newline ? newline + 1 : end;
	}
	tail->at += (uint64_t)(end - begin);
	return got;
}

int addnames_read(struct addnames *work, struct input *input, bool accept_cut, struct err *err)
{
	struct tail tail = {.input = input};
	struct dump_source source = {.read = input_read, .ctx = input, .name = input->name};
	struct dump_sink sink = {.ctx = work,
		.module = add_module,
		.entry = add_entry,
		.note = add_note,
		.skipped = count_bad};
	int rc;

	if (accept_cut)
		source = (struct dump_source){
			.read = read_noting_tail, .ctx = &tail, .name = input->name};
	rc = dump_scan(&source, &sink, err);
	module_list_finish(&work->modules);
	work->is_cut = rc == -ERR_CUT;
	if (!work->is_cut || !accept_cut)
		return rc;
	/* The last entry or line may be incomplete. */
	work->whole_bytes = tail.in_entry ? tail.entry : tail.first ? tail.line : tail.at;
	return tail.at ? 0 :
			 err_set(err, ERR_EMPTY, input->name, "the compressed data is truncated");
}

/* ---------------------------------------------------------------- names */

void addnames_resolve(struct addnames *work)
{
	tidy_addrs(work);
	free(work->queries);
	work->queries = xcalloc(work->addr_count, sizeof(*work->queries));
	work->count = work->addr_count;
	for (size_t i = 0; i < work->count; i++)
		work->queries[i] = (struct symbol_query){.addr = work->addrs[i],
			.names = work->names,
			.module = module_of_return(
				work->modules.items, work->modules.count, work->addrs[i])};
	symbolizer_resolve(work->symbolizer, work->queries, work->count);
}

/* ---------------------------------------------------------------- copying */

struct copy {
	const struct addnames *work;
	struct out *out;
	const char *eol; /* NULL: no line end seen yet */
	uint64_t at; /* bytes copied */
	bool in_line; /* the last piece did not end with a line end */
	char last;
	bool is_done; /* the names have been written */
	bool is_shown; /* out is a terminal */
	struct buf shown;
};

static void add_names(struct copy *copy)
{
	const struct addnames *work = copy->work;

	for (size_t i = 0; !copy->is_done && i < work->count; i++) {
		const struct symbol_query *query = &work->queries[i];

		if (!symbol_names_find(work->names, query->addr).count)
			symbol_names_write(copy->out, query->addr, &query->found,
				copy->eol ? copy->eol : "\r\n");
	}
	copy->is_done = true;
}

static bool is_end_mark(const char *text, size_t len)
{
	static const char mark[] = "// hsnap: end";
	size_t mark_len = sizeof(mark) - 1;

	return len > mark_len && !memcmp(text, mark, mark_len) &&
	       (text[mark_len] == ' ' || text[mark_len] == '\r' || text[mark_len] == '\n');
}

/* Writes `text`, replacing control characters with "?", except for TABs and line ends. */
static void show_piece(struct copy *copy, const char *text, size_t len)
{
	char *shown;

	buf_clear(&copy->shown);
	buf_add(&copy->shown, text, len);
	shown = copy->shown.data;
	for (size_t at = 0, size; at < len; at += size) {
		bool is_blank = shown[at] && strchr("\t\r\n", shown[at]);
		size_t obeyed = !shown[at] ? 1 : is_blank ? 0 : text_obeyed(shown + at);

		memset(shown + at, '?', obeyed);
		size = obeyed ? obeyed : 1;
	}
	out_write(copy->out, shown, len);
}

/* Copies a line, or a part of a line that fills the window. */
static void copy_piece(struct copy *copy, const char *text, size_t len)
{
	bool is_whole = text[len - 1] == '\n';

	if (is_whole && !copy->eol)
		copy->eol = len > 1 && text[len - 2] == '\r' ? "\r\n" : "\n";
	if (!copy->in_line && (is_end_mark(text, len) ||
				      (copy->work->is_cut && copy->at >= copy->work->whole_bytes)))
		add_names(copy);
	if (copy->is_shown)
		show_piece(copy, text, len);
	else
		out_write(copy->out, text, len);
	copy->at += len;
	copy->last = text[len - 1];
	copy->in_line = !is_whole;
}

/* Copies the complete lines in the window. If the window contains no complete line, copies all of
 * it. Returns the number of bytes copied. */
static size_t copy_window(struct copy *copy, const char *window, size_t len)
{
	size_t used = 0;

	while (used < len) {
		const char *newline = memchr(window + used, '\n', len - used);
		size_t piece = newline ? (size_t)(newline + 1 - window) - used : len - used;

		if (!newline && used)
			break;
		copy_piece(copy, window + used, piece);
		used += piece;
	}
	return used;
}

int addnames_copy(const struct addnames *work, struct input *input, struct out *out, bool is_shown,
	struct err *err)
{
	struct copy copy = {.work = work, .out = out, .is_shown = is_shown};
	char *window = xmalloc(WINDOW_BYTES);
	size_t len = 0, used;
	int64_t got;

	while ((got = input_read(input, window + len, WINDOW_BYTES - len, err)) > 0) {
		len += (size_t)got;
		used = len == WINDOW_BYTES ? copy_window(&copy, window, len) : 0;
		len -= used;
		memmove(window, window + used, len);
	}
	if (got == -ERR_CUT && work->is_cut)
		got = 0;
	for (used = 0; !got && used < len;)
		used += copy_window(&copy, window + used, len - used);
	if (!got && !copy.is_done && copy.in_line)
		out_text(out, copy.last == '\r' ? "\n" : copy.eol ? copy.eol : "\r\n");
	if (!got)
		add_names(&copy);
	free(window);
	buf_release(&copy.shown);
	return (int)got;
}

/* ---------------------------------------------------------------- results */

#define MISSING_MAX 5 /* maximum number of modules listed by name */

size_t addnames_modules(const struct addnames *work, struct addnames_module **rows)
{
	size_t all = work->modules.count, count = 0;
	struct addnames_module *list = xcalloc(all + 1, sizeof(*list));

	for (size_t i = 0; i < work->count; i++) {
		const struct symbol_query *query = &work->queries[i];
		size_t number = query->module ? (size_t)(query->module - work->modules.items) : all;

		list[number].module = query->module;
		list[number].seen++;
		list[number].named += query->found.count > 0;
		list[number].carried += symbol_names_find(work->names, query->addr).count > 0;
	}
	for (size_t i = 0; i <= all; i++) {
		if (list[i].seen)
			list[count++] = list[i];
	}
	*rows = list;
	return count;
}

/* Orders modules by number of addresses without names, largest first, then by base address. */
static int by_lack(const void *a, const void *b)
{
	const struct addnames_module *x = a, *y = b;
	size_t x_lack = x->seen - x->named, y_lack = y->seen - y->named;

	if (x_lack != y_lack)
		return x_lack > y_lack ? -1 : 1;
	if (!x->module || !y->module)
		return !x->module - !y->module;
	return x->module->base < y->module->base ? -1 : 1;
}

bool addnames_lacks_builds(const struct addnames *work)
{
	return !work->is_ours && work->modules.count;
}

void addnames_summary(const struct addnames *work, FILE *to, const char *program)
{
	const char *trouble = symbolizer_trouble(work->symbolizer);
	struct err first = work->first_bad;
	struct addnames_module *rows;
	size_t count = addnames_modules(work, &rows), lack = 0, shown = 0, rest;

	qsort(rows, count, sizeof(*rows), by_lack);
	for (size_t i = 0; i < count; i++)
		lack += rows[i].seen - rows[i].named;
	if (symbol_console_stopped() && lack)
		fprintf(to, "%s: stopped looking for names; addresses without a name: %zu\n",
			program, lack);
	fprintf(to, "%s: %zu of %zu address%s named", program, work->count - lack, work->count,
		work->count == 1 ? "" : "es");
	rest = lack;
	for (; rest && shown < MISSING_MAX; shown++) {
		const struct addnames_module *row = &rows[shown];
		struct buf name;

		buf_init(&name);
		buf_add_text(&name, row->module ? "in " : "outside all modules");
		buf_add_text(&name, row->module ? module_path_base(row->module->path) : "");
		fprintf(to, "%s %zu %s", shown ? "," : "; no names:", row->seen - row->named,
			text_harmless(name.data));
		rest -= row->seen - row->named;
		buf_release(&name);
	}
	if (rest) {
		while (count && rows[count - 1].seen == rows[count - 1].named)
			count--;
		fprintf(to, ", %zu in %zu more module%s", rest, count - shown,
			text_plural(count - shown));
	}
	if (trouble)
		fprintf(to, "; %s", trouble);
	if (addnames_lacks_builds(work))
		fprintf(to, "; " LACKS_BUILDS);
	if (work->bad_lines)
		fprintf(to, "; %d bad line%s skipped, the first is %s", work->bad_lines,
			text_plural(work->bad_lines), text_harmless(first.place));
	if (work->bad_lines && first.detail[0])
		fprintf(to, " (%s)", text_harmless(first.detail));
	fprintf(to, "\n");
	free(rows);
}
