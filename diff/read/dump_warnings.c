#include "diff/read/dump_warnings.h"

#include <stdlib.h>
#include <string.h>

#include "core/table.h"

static int add(struct dump_warnings *warnings, const struct sums *first, size_t number)
{
	if (array_grow((void **)&warnings->items, &warnings->cap, warnings->count,
		    sizeof(*warnings->items)))
		return -ERR_NOMEM;
	warnings->items[warnings->count++] =
		(struct dump_warning){.first = first, .number = number, .dump_count = 1};
	return 0;
}

/* last[n]: the last dump that has warning number n. */
static int gather_one(struct dump_warnings *warnings, struct table *numbers,
	const struct sums **last, const struct sums *dump, size_t number)
{
	const char *text = dump->warnings[number];
	const uint64_t *known = table_find(numbers, text, strlen(text));

	if (!known) {
		last[warnings->count] = dump;
		if (table_add(numbers, text, strlen(text), warnings->count))
			return -ERR_NOMEM;
		return add(warnings, dump, number);
	}
	warnings->items[*known].dump_count += last[*known] != dump;
	last[*known] = dump;
	return 0;
}

/* How many there are that are counted only. */
static int gather_rest(struct dump_warnings *warnings, const struct sums *dumps, size_t count)
{
	struct dump_warning *rest = NULL;

	for (size_t i = 0; i < count; i++) {
		if (dumps[i].warning_count <= WARNINGS_MAX)
			continue;
		if (rest)
			rest->dump_count++;
		else if (add(warnings, &dumps[i], WARNINGS_MAX))
			return -ERR_NOMEM;
		rest = &warnings->items[warnings->count - 1];
		rest->more += dumps[i].warning_count - WARNINGS_MAX;
	}
	return 0;
}

int dump_warnings_gather(struct dump_warnings *warnings, const struct sums *dumps, size_t count)
{
	const struct sums **last = calloc(count * WARNINGS_MAX + 1, sizeof(const struct sums *));
	struct table numbers; /* of warnings, by text */
	int rc = last ? 0 : -ERR_NOMEM;

	*warnings = (struct dump_warnings){0};
	table_init(&numbers);
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; !rc && k < dumps[i].warning_count && k < WARNINGS_MAX; k++)
			rc = gather_one(warnings, &numbers, last, &dumps[i], k);
	}
	if (!rc)
		rc = gather_rest(warnings, dumps, count);
	table_release(&numbers);
	free(last);
	return rc;
}

void dump_warnings_release(struct dump_warnings *warnings)
{
	free(warnings->items);
	*warnings = (struct dump_warnings){0};
}

int dump_warning_words(struct buf *words, const struct dump_warning *warning)
{
	int rc = warning->number < WARNINGS_MAX ?
			 buf_add_text(words, warning->first->warnings[warning->number]) :
			 buf_printf(words, "and %zu more", warning->more);

	return rc || warning->dump_count < 2 ?
		       rc :
		       buf_printf(words, " (%zu dumps, of which this is the first)",
			       warning->dump_count);
}
