#include "diff/sum.h"

#include <stdlib.h>
#include <string.h>

#include "core/date.h"
#include "core/dump.h"

#define MEMO_WAYS 4 /* a cache line of them */
#define MEMO_BITS 14 /* 1 MiB: what a processor keeps close */
#define MEMO_MIX UINT64_C(0x9e3779b97f4a7c15) /* spreads ids: its upper bits depend on all */

/* What a short id stands for: saves most searches in the stack set. */
struct memo {
	uint64_t head; /* the id's first 8 bytes; 0: nothing is known */
	uint32_t tail; /* and the next 4, zeros behind the end */
	uint32_t stack; /* the first one under this id */
};

/* What only the reading needs. */
struct reader {
	struct sums *sums;
	struct err *err;
	struct memo *memo;
	/* What "module" notes say, until all modules are known: base and identity. */
	struct module *notes;
	size_t note_count, note_cap;
};

void sums_init(struct sums *sums)
{
	*sums = (struct sums){0};
	arena_init(&sums->arena);
	stackset_init(&sums->stacks);
}

void sums_release(struct sums *sums)
{
	free(sums->modules);
	free(sums->by_stack);
	symbol_names_free(sums->names);
	stackset_release(&sums->stacks);
	arena_release(&sums->arena);
	sums_init(sums);
}

static const char *keep(struct sums *sums, const char *text)
{
	return text ? arena_text(&sums->arena, text, strlen(text)) : NULL;
}

/*
 * Counts to the total first: all other sums are parts of it, so that none can overflow when it
 * does not. The limit leaves room to subtract one total from another with a sign.
 */
static int count(struct sums *sums, struct census *to, const struct census *more)
{
	struct census total = sums->total;

	if (more->block_count > INT64_MAX - total.block_count ||
		more->requested_bytes > INT64_MAX - total.requested_bytes - total.overhead_bytes)
		return -ERR_BAD_LINE;
	total.block_count += more->block_count;
	total.requested_bytes += more->requested_bytes;
	if (more->overhead_bytes > INT64_MAX - total.requested_bytes - total.overhead_bytes)
		return -ERR_BAD_LINE;
	total.overhead_bytes += more->overhead_bytes;
	sums->total = total;
	to->block_count += more->block_count;
	to->requested_bytes += more->requested_bytes;
	to->overhead_bytes += more->overhead_bytes;
	return 0;
}

static int read_module(void *ctx, uint64_t base, uint64_t size_bytes, const char *path, size_t len)
{
	struct sums *sums = ((struct reader *)ctx)->sums;
	const char *copy = arena_text(&sums->arena, path, len);

	if (!copy || array_grow((void **)&sums->modules, &sums->module_cap, sums->module_count,
			     sizeof(*sums->modules)))
		return -ERR_NOMEM;
	sums->modules[sums->module_count++] =
		(struct module){.base = base, .size_bytes = size_bytes, .path = copy};
	return 0;
}

/* The sums of the stack with this index, which is at most one behind the last. */
static struct census *sums_of(struct sums *sums, uint32_t index)
{
	if (index == sums->by_stack_count) {
		if (array_grow((void **)&sums->by_stack, &sums->by_stack_cap, index,
			    sizeof(*sums->by_stack)))
			return NULL;
		sums->by_stack[sums->by_stack_count++] = (struct census){0};
	}
	return &sums->by_stack[index];
}

/* The memo of an id, for the caller to fill in when it is not known; NULL: the id is too long. */
static struct memo *memo_at(struct reader *reader, const char *id, size_t len, bool *is_known)
{
	struct memo wanted = {0}, *memo;
	size_t way = 0;

	*is_known = false;
	if (len > sizeof(wanted.head) + sizeof(wanted.tail))
		return NULL;
	memcpy(&wanted.head, id, len < 8 ? len : 8);
	memcpy(&wanted.tail, id + 8, len < 8 ? 0 : len - 8);
	memo = reader->memo +
	       MEMO_WAYS * ((wanted.head ^ wanted.tail) * MEMO_MIX >> (64 - MEMO_BITS));
	for (; way < MEMO_WAYS && memo[way].head; way++) {
		if (memo[way].head == wanted.head && memo[way].tail == wanted.tail) {
			*is_known = true;
			return &memo[way];
		}
	}
	memo += way < MEMO_WAYS ? way : wanted.head % MEMO_WAYS;
	*memo = wanted;
	return memo;
}

static bool same_stack(const struct stack *known, const struct stack *stack)
{
	return known->frames && !known->alias_count && !stack->alias_count &&
	       known->frame_count == stack->frame_count &&
	       !memcmp(known->frames, stack->frames, stack->frame_count * sizeof(*stack->frames));
}

/* As stackset_put(). */
static int find_stack(struct reader *reader, const struct dump_entry *entry, uint32_t *index)
{
	struct stackset *stacks = &reader->sums->stacks;
	struct stack bare = {.id = entry->stack.id, .same_id = STACK_NONE};
	bool is_known;
	struct memo *memo = memo_at(reader, entry->stack.id, entry->id_len, &is_known);
	int rc;

	if (is_known &&
		(!entry->stack.frames || same_stack(&stacks->stacks[memo->stack], &entry->stack))) {
		*index = memo->stack;
		return 0;
	}
	rc = stackset_put(stacks, &entry->stack, entry->id_len, index);
	if (!rc && memo && !is_known)
		rc = stackset_put(stacks, &bare, entry->id_len, &memo->stack);
	return rc;
}

static int read_entry(void *ctx, const struct dump_entry *entry)
{
	struct reader *reader = ctx;
	struct sums *sums = reader->sums;
	struct census more = {entry->block_count, entry->requested_bytes, entry->overhead_bytes};
	struct census *to;
	uint32_t index;

	if (find_stack(reader, entry, &index) || !(to = sums_of(sums, index)))
		return -ERR_NOMEM;
	if (count(sums, to, &more))
		return err_set(reader->err, ERR_BAD_LINE, sums->path,
			"its blocks add up to more than 8 EiB");
	return 0;
}

static int note_dump(struct reader *reader, const struct kv *kv)
{
	const char *time = kv_get(kv, "time");

	return time ? date_parse(time, &reader->sums->time_ms) : 0;
}

static int note_process(struct reader *reader, const struct kv *kv)
{
	const char *start = kv_get(kv, "start");
	uint64_t pid = 0;
	int rc = kv_get_number(kv, "id", 10, &pid);

	if (!rc && start)
		rc = date_parse(start, &reader->sums->start_ms);
	reader->sums->pid = (uint32_t)pid;
	reader->sums->image = keep(reader->sums, kv_get(kv, "image"));
	return rc;
}

static int note_module(struct reader *reader, const struct kv *kv)
{
	uint64_t base = 0, timestamp = 0, checksum = 0, age = 0;
	int rc = kv_get_number(kv, "base", 16, &base);

	if (!rc)
		rc = kv_get_number(kv, "timestamp", 16, &timestamp);
	if (!rc)
		rc = kv_get_number(kv, "checksum", 16, &checksum);
	if (!rc)
		rc = kv_get_number(kv, "age", 16, &age);
	if (rc)
		return rc;
	if (array_grow((void **)&reader->notes, &reader->note_cap, reader->note_count,
		    sizeof(*reader->notes)))
		return -ERR_NOMEM;
	reader->notes[reader->note_count++] = (struct module){.base = base,
		.has_identity = true,
		.timestamp = (uint32_t)timestamp,
		.checksum = (uint32_t)checksum,
		.pdb = keep(reader->sums, kv_get(kv, "pdb")),
		.pdb_guid = keep(reader->sums, kv_get(kv, "guid")),
		.pdb_age = (uint32_t)age};
	return 0;
}

static int note_heap(struct reader *reader, const struct kv *kv)
{
	struct census more = {0};
	int rc = kv_get_number(kv, "stackless-blocks", 10, &more.block_count);

	if (!rc)
		rc = kv_get_number(kv, "stackless-requested", 10, &more.requested_bytes);
	if (!rc)
		rc = kv_get_number(kv, "stackless-overhead", 10, &more.overhead_bytes);
	return rc ? rc : count(reader->sums, &reader->sums->stackless, &more);
}

static int note_name(struct reader *reader, const struct kv *kv)
{
	return symbol_names_note(reader->sums->names, kv);
}

static int read_note(void *ctx, const char *kind, const struct kv *kv)
{
	static const struct {
		const char *kind;
		int (*read)(struct reader *reader, const struct kv *kv);
	} notes[] = {
		{"dump", note_dump},
		{"process", note_process},
		{"module", note_module},
		{"heap", note_heap},
		{"name", note_name},
	};

	for (size_t i = 0; i < sizeof(notes) / sizeof(*notes); i++) {
		if (!strcmp(kind, notes[i].kind))
			return notes[i].read(ctx, kv);
	}
	return 0;
}

/* A total order: what qsort does with equal items differs from one C library to the next. */
static int by_base(const void *a, const void *b)
{
	const struct module *x = a, *y = b;

	if (x->base != y->base)
		return x->base < y->base ? -1 : 1;
	if (x->size_bytes != y->size_bytes)
		return x->size_bytes < y->size_bytes ? -1 : 1;
	if (x->timestamp != y->timestamp)
		return x->timestamp < y->timestamp ? -1 : 1;
	return x->path && y->path ? strcmp(x->path, y->path) : 0;
}

/* Gives the modules the identities that the notes tell. */
static void identify(struct sums *sums, struct reader *reader)
{
	size_t at = 0;

	if (!sums->module_count || !reader->note_count)
		return;
	qsort(reader->notes, reader->note_count, sizeof(*reader->notes), by_base);
	for (size_t i = 0; i < sums->module_count; i++) {
		struct module identified = sums->modules[i];

		while (at < reader->note_count && reader->notes[at].base < identified.base)
			at++;
		if (at == reader->note_count)
			break;
		if (reader->notes[at].base != identified.base)
			continue;
		identified = reader->notes[at];
		identified.size_bytes = sums->modules[i].size_bytes;
		identified.path = sums->modules[i].path;
		sums->modules[i] = identified;
	}
}

int sums_read(struct sums *sums, const char *path, struct err *err)
{
	struct reader reader = {.sums = sums, .err = err};
	struct dump_sink sink = {
		.ctx = &reader, .module = read_module, .entry = read_entry, .note = read_note};
	int rc;

	sums->path = keep(sums, path);
	sums->names = symbol_names_new();
	reader.memo = calloc((size_t)MEMO_WAYS << MEMO_BITS, sizeof(*reader.memo));
	if (!sums->path || !sums->names || !reader.memo) {
		free(reader.memo);
		return err_set(err, ERR_NOMEM, path, NULL);
	}
	rc = dump_scan_file(path, &sink, err);
	sums->is_cut = rc == -ERR_CUT;
	if (sums->module_count)
		qsort(sums->modules, sums->module_count, sizeof(*sums->modules), by_base);
	identify(sums, &reader);
	free(reader.notes);
	free(reader.memo);
	return rc;
}

const struct module *sums_module_at(const struct sums *sums, uint64_t addr)
{
	/* The call is what counts: when it never returns, the address behind it may already lie
	 * behind the module. */
	const struct module *module = module_at(sums->modules, sums->module_count, addr - 1);

	return module ? module : module_at(sums->modules, sums->module_count, addr);
}
