#include "symbolize/addnames.h"

#include <stdlib.h>
#include <string.h>

#include "core/dump.h"

#define WINDOW_BYTES ((size_t)1 << 20)
#define MISSING_MAX 5 /* modules that are named */

int addnames_init(struct addnames *work, struct err *err)
{
	*work = (struct addnames){0};
	arena_init(&work->arena);
	module_list_init(&work->modules, &work->arena);
	table_init(&work->addrs);
	work->names = symbol_names_new();
	if (!work->names)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	work->symbolizer = symbolizer_new(err);
	return work->symbolizer ? 0 : -ERR_NOMEM;
}

void addnames_release(struct addnames *work)
{
	symbolizer_free(work->symbolizer);
	symbol_names_free(work->names);
	free(work->queries);
	table_release(&work->addrs);
	module_list_release(&work->modules);
	arena_release(&work->arena);
}

/* ---------------------------------------------------------------- reading */

static int add_module(void *ctx, uint64_t base, uint64_t size_bytes, const char *path, size_t len)
{
	return module_list_add(&((struct addnames *)ctx)->modules, base, size_bytes, path, len);
}

static int add_entry(void *ctx, const struct dump_entry *entry)
{
	struct addnames *work = ctx;

	for (uint32_t i = 0; entry->stack.frames && i < entry->stack.frame_count; i++) {
		uint64_t addr = entry->stack.frames[i];

		if (table_find(&work->addrs, &addr, sizeof(addr)))
			continue;
		if (array_grow((void **)&work->queries, &work->cap, work->count,
			    sizeof(*work->queries)) ||
			table_add(&work->addrs, &addr, sizeof(addr), 0))
			return -ERR_NOMEM;
		work->queries[work->count++] = (struct symbol_query){.addr = addr};
	}
	return 0;
}

static int add_note(void *ctx, const char *kind, const struct kv *pairs)
{
	struct addnames *work = ctx;

	if (!strcmp(kind, "module"))
		return module_list_note(&work->modules, pairs);
	if (!strcmp(kind, "name"))
		return symbol_names_note(work->names, pairs);
	return 0;
}

int addnames_read(struct addnames *work, struct input *input, bool accept_cut, struct err *err)
{
	struct dump_source source = {.read = input_read, .ctx = input, .name = input->name};
	struct dump_sink sink = {
		.ctx = work, .module = add_module, .entry = add_entry, .note = add_note};
	int rc = dump_scan(&source, &sink, err);

	module_list_finish(&work->modules);
	work->is_cut = rc == -ERR_CUT;
	return work->is_cut && accept_cut ? 0 : rc;
}

/* ---------------------------------------------------------------- names */

static int by_addr(const void *a, const void *b)
{
	const struct symbol_query *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

int addnames_resolve(struct addnames *work, struct err *err)
{
	if (work->count)
		qsort(work->queries, work->count, sizeof(*work->queries), by_addr);
	for (size_t i = 0; i < work->count; i++) {
		struct symbol_query *query = &work->queries[i];

		query->names = work->names;
		if (query->addr)
			query->module = module_at(
				work->modules.items, work->modules.count, query->addr - 1);
	}
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
	bool in_line; /* the last piece did not end one */
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
	/* Where a dump was cut inside a line, that line stays the last. */
	if (!copy->in_line && (is_end_mark(text, len) || (!is_whole && copy->work->is_cut)))
		add_names(copy);
	out_write(copy->out, text, len);
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
		out_text(out, copy.eol ? copy.eol : "\r\n");
	if (!rc)
		add_names(&copy);
	free(window);
	return rc;
}

/* ---------------------------------------------------------------- summary */

struct missing {
	const struct module *module; /* NULL: outside of all */
	size_t count;
};

/* Most first, then by address. */
static int by_count(const void *a, const void *b)
{
	const struct missing *x = a, *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	if (!x->module || !y->module)
		return !x->module - !y->module;
	return x->module->base < y->module->base ? -1 : 1;
}

/* Queries are by address, so those of one module follow each other. Returns how many groups. */
static size_t find_missing(const struct addnames *work, struct missing *missing)
{
	size_t count = 1;

	missing[0] = (struct missing){0};
	for (size_t i = 0; i < work->count; i++) {
		const struct symbol_query *query = &work->queries[i];

		if (query->found.count)
			continue;
		if (!query->module)
			missing[0].count++;
		else if (missing[count - 1].module == query->module)
			missing[count - 1].count++;
		else
			missing[count++] = (struct missing){query->module, 1};
	}
	qsort(missing, count, sizeof(*missing), by_count);
	return missing[count - 1].count ? count : count - 1;
}

/* A dump's words may hold what a terminal would obey. */
static void print_safely(const char *text, FILE *to)
{
	for (; *text; text++)
		fputc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, to);
}

static void print_missing(const struct missing *missing, size_t count, FILE *to)
{
	size_t shown = count < MISSING_MAX ? count : MISSING_MAX, rest = 0;

	for (size_t i = 0; i < shown; i++) {
		const struct module *module = missing[i].module;

		fprintf(to, "%s %zu %s", i ? "," : "; no names:", missing[i].count,
			module ? "in " : "outside all modules");
		if (module)
			print_safely(path_base(module->path), to);
	}
	for (size_t i = shown; i < count; i++)
		rest += missing[i].count;
	if (rest)
		fprintf(to, ", %zu in %zu more", rest, count - shown);
}

void addnames_summary(const struct addnames *work, FILE *to, const char *program)
{
	struct missing *missing = malloc((work->count + 1) * sizeof(*missing));
	size_t named = 0, groups = missing ? find_missing(work, missing) : 0;

	for (size_t i = 0; i < work->count; i++)
		named += work->queries[i].found.count > 0;
	fprintf(to, "%s: %zu of %zu addresses named", program, named, work->count);
	if (groups)
		print_missing(missing, groups, to);
	fprintf(to, "\n");
	free(missing);
}
