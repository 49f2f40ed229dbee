#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/base/text.h"
#include "core/dump/dump.h"
#include "symbolize/hsym/hsym.h"

#define PART_BYTES ((size_t)256 << 10)
#define LINE_MAX_BYTES ((size_t)16 << 20)
#define MAX_BYTES ((size_t)1 << 30)

int input_open(struct input *input, const char *path, struct err *err)
{
	bool is_stdin = !strcmp(path, "-");
	int rc;

	*input = (struct input){
		.path = path, .name = is_stdin ? "standard input" : path, .max_bytes = MAX_BYTES};
	rc = source_open(&input->source, path, err);
	input->is_kept = !rc && (is_stdin || os_is_special(path));
	return rc;
}

static int check_bounds(struct input *input, const char *part, size_t len, struct err *err)
{
	size_t tail = 0;

	while (tail < len && part[len - 1 - tail] != '\n')
		tail++;
	input->line_bytes = tail < len ? tail : input->line_bytes + len;
	if (input->line_bytes > LINE_MAX_BYTES)
		return err_set(err, ERR_READ, input->name, "a line is too long");
	if (input->kept.len > input->max_bytes)
		return err_set(err, ERR_READ, input->name,
			"it is not a file and is over %zu MB: save it to one first",
			input->max_bytes >> 20);
	return 0;
}

static int keep_more(struct input *input, struct err *err)
{
	char *part;
	int64_t got;

	if (buf_reserve(&input->kept, PART_BYTES))
		return err_set(err, ERR_NOMEM, input->name, NULL);
	part = input->kept.data + input->kept.len;
	got = source_read(input->source, part, PART_BYTES, err);
	if (got < 0)
		return (int)got;
	input->is_over = !got;
	input->kept.len += (size_t)got;
	return check_bounds(input, part, (size_t)got, err);
}

/* Reads on; as struct dump_source asks. ctx is a struct input. Besides what the system says,
 * -ERR_READ is a pipe of over max_bytes or with a line too long for a dump. -ERR_CUT, -ERR_READ and
 * -ERR_NOMEM as source_read() says. */
static int64_t input_read(void *ctx, void *bytes, size_t len, struct err *err)
{
	struct input *input = ctx;

	if (!input->is_kept)
		return source_read(input->source, bytes, len, err);
	if (input->at == input->kept.len && !input->is_over) {
		int rc = keep_more(input, err);

		if (rc)
			return rc;
	}
	if (len > input->kept.len - input->at)
		len = input->kept.len - input->at;
	if (len)
		memcpy(bytes, input->kept.data + input->at, len);
	input->at += len;
	return (int64_t)len;
}

int input_rewind(struct input *input, struct err *err)
{
	input->at = 0;
	if (input->is_kept)
		return 0;
	source_close(input->source);
	input->source = NULL;
	return source_open(&input->source, input->path, err);
}

void input_close(struct input *input)
{
	source_close(input->source);
	input->source = NULL;
	buf_release(&input->kept);
}

#define WINDOW_BYTES ((size_t)128 << 10)
#define SEEN_BITS 16
#define TIDY_MIN ((size_t)1 << 20)

/* Dumps have the same stacks again and again: some are remembered whole. */
struct seen_stack {
	uint64_t *frames;
	uint32_t count;
};

int addnames_init(struct addnames *work, const struct symbol_options *options, struct err *err)
{
	*work = (struct addnames){0};
	arena_init(&work->arena);
	module_list_init(&work->modules, &work->arena);
	work->tidy_at = TIDY_MIN;
	work->names = symbol_names_new();
	work->seen = calloc((size_t)1 << SEEN_BITS, sizeof(*work->seen));
	if (!work->names || !work->seen)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	work->symbolizer = symbolizer_new(options, err);
	return work->symbolizer ? 0 : -(int)err->code;
}

void addnames_release(struct addnames *work)
{
	symbolizer_free(work->symbolizer);
	symbol_names_free(work->names);
	for (size_t i = 0; work->seen && i < (size_t)1 << SEEN_BITS; i++)
		free(work->seen[i].frames);
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

/* 1: this very stack was here before; 0: it is remembered now; or -ERR_NOMEM. */
static int seen_before(struct addnames *work, const struct stack *stack)
{
	size_t bytes = stack->frame_count * sizeof(*stack->frames);
	struct seen_stack *seen;
	uint64_t hash = 0, *copy;

	for (uint32_t i = 0; i < stack->frame_count; i++)
		hash = (hash ^ stack->frames[i]) * UINT64_C(0x9e3779b97f4a7c15);
	for (size_t way = 0; way < 2; way++) {
		seen = &work->seen[(hash >> (64 - SEEN_BITS)) ^ way];
		if (seen->count == stack->frame_count &&
			!memcmp(seen->frames, stack->frames, bytes))
			return 1;
		if (!seen->count)
			break;
	}
	copy = realloc(seen->frames, bytes);
	if (!copy)
		return -ERR_NOMEM;
	memcpy(copy, stack->frames, bytes);
	*seen = (struct seen_stack){copy, stack->frame_count};
	return 0;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Sorts the addresses, each once. */
static void tidy_addrs(struct addnames *work)
{
	size_t kept = 0;

	if (work->addr_count)
		qsort(work->addrs, work->addr_count, sizeof(*work->addrs), by_value);
	for (size_t i = 0; i < work->addr_count; i++) {
		if (!kept || work->addrs[kept - 1] != work->addrs[i])
			work->addrs[kept++] = work->addrs[i];
	}
	work->addr_count = kept;
	work->tidy_at = kept < TIDY_MIN / 2 ? TIDY_MIN : kept * 2;
}

static int add_addr(struct addnames *work, uint64_t addr)
{
	if (work->addr_count >= work->tidy_at)
		tidy_addrs(work);
	if (array_grow(
		    (void **)&work->addrs, &work->addr_cap, work->addr_count, sizeof(*work->addrs)))
		return -ERR_NOMEM;
	work->addrs[work->addr_count++] = addr;
	return 0;
}

static int add_entry(void *ctx, const struct dump_entry *entry)
{
	const struct stack *stack = &entry->stack;
	struct addnames *work = ctx;
	int rc;

	if (!stack->frames || !stack->frame_count)
		return 0;
	rc = seen_before(work, stack);
	if (rc)
		return rc < 0 ? rc : 0;
	for (uint32_t i = 0; !rc && i < stack->frame_count; i++)
		rc = add_addr(work, stack->frames[i]);
	return rc;
}

static int add_note(void *ctx, const char *kind, const struct kv *pairs)
{
	struct addnames *work = ctx;

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

/* Where lines begin, and which of them may still be waiting for more. */
struct tail {
	uint64_t at; /* bytes seen */
	uint64_t line, entry; /* where the last ones begin */
	char first; /* byte of that line; 0: none yet */
	bool in_entry; /* only lines of its stack came behind */
};

static void take_tail(struct tail *tail, const char *bytes, size_t len)
{
	for (const char *at = bytes, *end = bytes + len; at < end;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));

		if (!tail->first) {
			tail->first = *at;
			tail->line = tail->at + (uint64_t)(at - bytes);
			if (hex_digits[(unsigned char)*at])
				tail->entry = tail->line;
			tail->in_entry =
				hex_digits[(unsigned char)*at] || (tail->in_entry && *at == '\t');
		}
		if (newline)
			tail->first = '\0';
		at = newline ? newline + 1 : end;
	}
	tail->at += len;
}

/* Reads a dump that was cut once more: what it ends with is not whole. */
static int find_tail(struct addnames *work, struct input *input, struct err *err)
{
	struct tail tail = {0};
	char *window = malloc(WINDOW_BYTES);
	int64_t got = window ? input_rewind(input, err) : err_set(err, ERR_NOMEM, NULL, NULL);

	if (!got) {
		while ((got = input_read(input, window, WINDOW_BYTES, err)) > 0)
			take_tail(&tail, window, (size_t)got);
	}
	free(window);
	work->whole_bytes = tail.in_entry ? tail.entry : tail.first ? tail.line : tail.at;
	if (got && got != -ERR_CUT) /* what it is packed in may be what was cut */
		return (int)got;
	return tail.at ? 0 :
			 err_set(err, ERR_EMPTY, input->name, "what is packed in it is cut off");
}

int addnames_read(struct addnames *work, struct input *input, bool accept_cut, struct err *err)
{
	struct dump_source source = {.read = input_read, .ctx = input, .name = input->name};
	struct dump_sink sink = {.ctx = work,
		.module = add_module,
		.entry = add_entry,
		.note = add_note,
		.skipped = count_bad};
	int rc = dump_scan(&source, &sink, err);

	module_list_finish(&work->modules);
	work->is_cut = rc == -ERR_CUT;
	return work->is_cut && accept_cut ? find_tail(work, input, err) : rc;
}

/* ---------------------------------------------------------------- names */

int addnames_resolve(struct addnames *work, struct err *err)
{
	tidy_addrs(work);
	free(work->queries);
	work->queries = malloc((work->addr_count + 1) * sizeof(*work->queries));
	if (!work->queries)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	work->count = work->addr_count;
	for (size_t i = 0; i < work->count; i++)
		work->queries[i] = (struct symbol_query){.addr = work->addrs[i],
			.names = work->names,
			.module = module_of_return(
				work->modules.items, work->modules.count, work->addrs[i])};
	return symbolizer_resolve(work->symbolizer, work->queries, work->count, err);
}

static void write_new_names(const struct addnames *work, struct out *out, const char *eol)
{
	for (size_t i = 0; i < work->count; i++) {
		const struct symbol_query *query = &work->queries[i];

		if (!symbol_names_find(work->names, query->addr).count)
			symbol_names_write(out, query->addr, &query->found, eol);
	}
}

/* ---------------------------------------------------------------- copying */

struct copy {
	const struct addnames *work;
	struct out *out;
	const char *eol; /* NULL: no line end was seen yet */
	uint64_t at; /* bytes copied */
	bool in_line; /* the last piece did not end one */
	char last; /* byte copied */
	bool is_done; /* the names are written */
};

static void add_names(struct copy *copy)
{
	if (!copy->is_done)
		write_new_names(copy->work, copy->out, copy->eol ? copy->eol : "\r\n");
	copy->is_done = true;
}

static bool is_end_mark(const char *text, size_t len)
{
	static const char mark[] = "// hsnap: end";
	size_t mark_len = sizeof(mark) - 1;

	return len > mark_len && !memcmp(text, mark, mark_len) &&
	       (text[mark_len] == ' ' || text[mark_len] == '\r' || text[mark_len] == '\n');
}

/* A line, or a part of one that is too long to be of interest. */
static void copy_piece(struct copy *copy, const char *text, size_t len)
{
	bool is_whole = text[len - 1] == '\n';

	if (is_whole && !copy->eol)
		copy->eol = len > 1 && text[len - 2] == '\r' ? "\r\n" : "\n";
	if (!copy->in_line && (is_end_mark(text, len) ||
				      (copy->work->is_cut && copy->at >= copy->work->whole_bytes)))
		add_names(copy);
	out_write(copy->out, text, len);
	copy->at += len;
	copy->last = text[len - 1];
	copy->in_line = !is_whole;
}

/* Copies the whole lines in the window, and all of it when there is none. Returns bytes used. */
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

static int copy_all(struct copy *copy, struct input *input, char *window, struct err *err)
{
	size_t len = 0;
	int64_t got;

	while ((got = input_read(input, window + len, WINDOW_BYTES - len, err)) > 0) {
		len += (size_t)got;
		if (len == WINDOW_BYTES) {
			size_t used = copy_window(copy, window, len);

			len -= used;
			memmove(window, window + used, len);
		}
	}
	if (got == -ERR_CUT && copy->work->is_cut)
		got = 0;
	for (size_t used = 0; !got && used < len;)
		used += copy_window(copy, window + used, len - used);
	return (int)got;
}

int addnames_copy(
	const struct addnames *work, struct input *input, struct out *out, struct err *err)
{
	struct copy copy = {.work = work, .out = out};
	char *window = malloc(WINDOW_BYTES);
	int rc;

	if (!window)
		return err_set(err, ERR_NOMEM, input->name, NULL);
	rc = copy_all(&copy, input, window, err);
	if (!rc && !copy.is_done && copy.in_line)
		out_text(out, copy.last == '\r' ? "\n" : copy.eol ? copy.eol : "\r\n");
	if (!rc)
		add_names(&copy);
	free(window);
	return rc;
}

#define MISSING_MAX 5 /* modules that are named */

struct missing_answers {
	const struct module *module; /* NULL: outside of all */
	size_t count;
};

/* Most first, then by address. */
static int by_count(const void *a, const void *b)
{
	const struct missing_answers *x = a, *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	if (!x->module || !y->module)
		return !x->module - !y->module;
	return x->module->base < y->module->base ? -1 : 1;
}

/* Queries are by address, so those of one module follow each other. Returns how many groups. */
static size_t find_missing(const struct addnames *work, struct missing_answers *missing)
{
	size_t count = 1;

	missing[0] = (struct missing_answers){0};
	for (size_t i = 0; i < work->count; i++) {
		const struct symbol_query *query = &work->queries[i];

		if (query->found.count)
			continue;
		if (!query->module)
			missing[0].count++;
		else if (missing[count - 1].module == query->module)
			missing[count - 1].count++;
		else
			missing[count++] = (struct missing_answers){query->module, 1};
	}
	qsort(missing, count, sizeof(*missing), by_count);
	return missing[count - 1].count ? count : count - 1;
}

static void print_place(const struct module *module, FILE *to)
{
	struct buf text;

	buf_init(&text);
	if (!buf_printf(&text, "in %s", module_path_base(module->path)))
		fputs(text_harmless(text.data), to);
	buf_release(&text);
}

static void print_missing(const struct missing_answers *missing, size_t count, FILE *to)
{
	size_t shown = count < MISSING_MAX ? count : MISSING_MAX, rest = 0;

	for (size_t i = 0; i < shown; i++) {
		const struct module *module = missing[i].module;

		fprintf(to, "%s %zu ", i ? "," : "; no names:", missing[i].count);
		if (module)
			print_place(module, to);
		else
			fprintf(to, "outside all modules");
	}
	for (size_t i = shown; i < count; i++)
		rest += missing[i].count;
	if (rest)
		fprintf(to, ", %zu in %zu more", rest, count - shown);
}

static void print_bad_lines(const struct addnames *work, FILE *to)
{
	struct err first = work->first_bad;

	if (!work->bad_lines)
		return;
	fprintf(to, "; %d bad line%s passed over, the first is %s", work->bad_lines,
		work->bad_lines > 1 ? "s" : "", text_harmless(first.place));
	if (first.detail[0])
		fprintf(to, " (%s)", text_harmless(first.detail));
}

size_t addnames_named(const struct addnames *work)
{
	size_t named = 0;

	for (size_t i = 0; i < work->count; i++)
		named += work->queries[i].found.count > 0;
	return named;
}

bool addnames_lacks_builds(const struct addnames *work)
{
	return !work->is_ours && work->modules.count;
}

void addnames_summary(const struct addnames *work, FILE *to, const char *program)
{
	struct missing_answers *missing = malloc((work->count + 1) * sizeof(*missing));
	const char *trouble = symbolizer_trouble(work->symbolizer);
	size_t named = addnames_named(work), groups = missing ? find_missing(work, missing) : 0;

	if (symbol_console_stopped() && named < work->count)
		fprintf(to, "%s: stopped looking for names; %zu addresses have none\n", program,
			work->count - named);
	fprintf(to, "%s: %zu of %zu addresses named", program, named, work->count);
	if (groups)
		print_missing(missing, groups, to);
	if (trouble)
		fprintf(to, "; %s", trouble);
	if (addnames_lacks_builds(work))
		fprintf(to, "; " LACKS_BUILDS);
	print_bad_lines(work, to);
	fprintf(to, "\n");
	free(missing);
}
