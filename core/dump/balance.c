/* The figures of a process's balance, and their notes in a dump (man/hdump.5). */
#include "core/dump/balance.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/io/out.h"

#define EOL "\r\n"

const struct balance_word balance_words[BALANCE_FIGURES] = {
	[BALANCE_PRIVATE] = {"private", "private bytes", false},
	[BALANCE_WORKING_SET] = {"working-set", "working set", false},
	[BALANCE_COMMIT_PEAK] = {"private-peak", "peak of private bytes", false},
	[BALANCE_BLOCKS] = {"heap-blocks", "heap blocks", false},
	[BALANCE_OVERHEAD] = {"heap-overhead", "overhead of heap blocks", false},
	[BALANCE_FREE] = {"heap-free", "free space in heaps", false},
	[BALANCE_TRACER] = {"tracer", "hsnap's tracer", false},
	[BALANCE_STACKS] = {"thread-stacks", "thread stacks", false},
	[BALANCE_VIRTUAL] = {"virtual", "other private memory", false},
	[BALANCE_IMAGE_COPIES] = {"image-copies", "written pages of images", false},
	[BALANCE_VIEW_COPIES] = {"view-copies", "written pages of views", false},
	[BALANCE_SYSTEM] = {"system", "PEB and TEBs", false},
	[BALANCE_MAPPED] = {"mapped", "mapped files and sections", false},
	[BALANCE_IMAGES] = {"images", "images", false},
	[BALANCE_STACKS_RESERVED] = {"thread-stacks-reserved", "reserved thread stacks", false},
	[BALANCE_THREADS] = {"threads", "threads", true},
	[BALANCE_HANDLES] = {"handles", "handles", true},
	[BALANCE_GDI] = {"gdi", "GDI objects", true},
	[BALANCE_GDI_PEAK] = {"gdi-peak", "peak of GDI objects", true},
	[BALANCE_USER] = {"user", "USER objects", true},
	[BALANCE_USER_PEAK] = {"user-peak", "peak of USER objects", true},
};

uint64_t balance_parts_sum(const struct balance *balance)
{
	uint64_t sum = 0;

	for (int i = BALANCE_FIRST_PART; i <= BALANCE_LAST_PART; i++)
		sum += balance->figures[i];
	return sum;
}

static int by_type(const void *a, const void *b)
{
	const struct balance_handles *x = a, *y = b;

	return strcmp(x->type, y->type);
}

void balance_sort_handles(struct balance *balance)
{
	size_t count = 0;

	if (balance->handle_count)
		qsort(balance->handles, balance->handle_count, sizeof(*balance->handles), by_type);
	for (size_t i = 0; i < balance->handle_count; i++) {
		const struct balance_handles item = balance->handles[i];

		if (count && !strcmp(balance->handles[count - 1].type, item.type))
			balance->handles[count - 1].count += item.count;
		else
			balance->handles[count++] = item;
	}
	balance->handle_count = count;
}

uint64_t balance_handles_of(const struct balance *balance, const char *type)
{
	for (size_t i = 0; i < balance->handle_count; i++) {
		if (!strcmp(balance->handles[i].type, type))
			return balance->handles[i].count;
	}
	return 0;
}

/* Writes the known figures of one unit as a note. */
static void write_figures(
	struct out *out, const struct balance *balance, const char *kind, bool is_count)
{
	bool has_any = false;

	for (int i = 0; i < BALANCE_FIGURES; i++) {
		if (!balance_knows(balance, i) || balance_words[i].is_count != is_count)
			continue;
		if (!has_any)
			out_printf(out, "// hsnap: %s", kind);
		out_printf(out, " %s=%" PRIu64, balance_words[i].key, balance->figures[i]);
		has_any = true;
	}
	if (has_any)
		out_text(out, EOL);
}

void balance_write(struct out *out, const struct balance *balance)
{
	struct buf type;

	write_figures(out, balance, "memory", false);
	write_figures(out, balance, "counts", true);
	for (size_t i = 0; i < balance->handle_count; i++) {
		buf_init(&type);
		kv_quote(&type, balance->handles[i].type);
		out_printf(out, "// hsnap: handles type=%s count=%" PRIu64 EOL, type.data,
			balance->handles[i].count);
		buf_release(&type);
	}
}

static int read_figures(struct balance *balance, const struct kv *kv, bool is_count)
{
	for (int i = 0; i < BALANCE_FIGURES; i++) {
		uint64_t value = 0;

		if (balance_words[i].is_count != is_count || !kv_get(kv, balance_words[i].key))
			continue;
		/* larger values could overflow sums */
		if (kv_get_number(kv, balance_words[i].key, 10, &value) || value >> 56)
			return -ERR_BAD_LINE;
		balance_set(balance, i, value);
	}
	return 0;
}

static int read_handles(struct balance *balance, struct arena *arena, const struct kv *kv)
{
	const char *type = kv_get(kv, "type");
	uint64_t count = 0;

	if (!type || !kv_get(kv, "count") || kv_get_number(kv, "count", 10, &count) ||
		count >> 56 || balance->handle_count == BALANCE_HANDLES_MAX)
		return -ERR_BAD_LINE;
	if (!balance->handles)
		balance->handles =
			arena_alloc(arena, BALANCE_HANDLES_MAX * sizeof(*balance->handles));
	balance->handles[balance->handle_count++] = (struct balance_handles){
		.type = arena_text(arena, type, strlen(type)), .count = count};
	return 0;
}

int balance_note(
	struct balance *balance, struct arena *arena, const char *kind, const struct kv *kv)
{
	if (!strcmp(kind, "memory"))
		return read_figures(balance, kv, false);
	if (!strcmp(kind, "counts"))
		return read_figures(balance, kv, true);
	if (!strcmp(kind, "handles"))
		return read_handles(balance, arena, kv);
	return 1;
}
