#include "diff/ask/spellings.h"

#include <stdlib.h>
#include <string.h>

struct spelt {
	const char *text;
	size_t dump; /* that it is from */
};

/* ASCII's letters only, as modules are matched. Puts the key into spellings->lower. */
static int make_key(struct spellings *spellings, const char *module)
{
	struct buf *lower = &spellings->lower;

	buf_clear(lower);
	if (buf_add_text(lower, module))
		return -ERR_NOMEM;
	for (size_t i = 0; i < lower->len; i++) {
		if (lower->data[i] >= 'A' && lower->data[i] <= 'Z')
			lower->data[i] = (char)(lower->data[i] + 'a' - 'A');
	}
	return 0;
}

static int add(struct spellings *spellings, const char *module, size_t dump)
{
	struct buf *lower = &spellings->lower;
	const uint64_t *known;
	struct spelt *spelt;

	if (!module)
		return 0;
	if (make_key(spellings, module))
		return -ERR_NOMEM;
	known = table_find(&spellings->known, lower->data, lower->len);
	if (known) {
		spelt = &spellings->items[*known];
		if (spelt->dump == dump && strcmp(module, spelt->text) < 0)
			spelt->text = module;
		return 0;
	}
	if (array_grow((void **)&spellings->items, &spellings->cap, spellings->count,
		    sizeof(*spellings->items)) ||
		table_add(&spellings->known, lower->data, lower->len, spellings->count))
		return -ERR_NOMEM;
	spellings->items[spellings->count++] = (struct spelt){module, dump};
	return 0;
}

static int add_dump(struct spellings *spellings, const struct naming *naming, size_t dump)
{
	const struct sums *sums = &naming->comparison->dumps[dump];
	int rc = 0;

	for (size_t i = 0; !rc && i < sums->module_count; i++)
		rc = add(spellings, naming->modules[dump][i], dump);
	for (size_t i = 0; !rc && i < sums->text_count; i++)
		rc = add(spellings, naming->texts[dump][i].module, dump);
	return rc;
}

/* Of a row of a comparison that was read. */
static int add_given(struct spellings *spellings, const struct frames *frames)
{
	int rc = 0;

	for (size_t i = 0; !rc && frames && i < frames->count; i++)
		rc = add(spellings, frames->items[i].module, 0);
	return rc;
}

int spellings_make(struct spellings *spellings, const struct naming *naming)
{
	const struct comparison *comparison = naming->comparison;
	int rc = 0;

	*spellings = (struct spellings){.count = 0};
	table_init(&spellings->known);
	buf_init(&spellings->lower);
	for (size_t i = comparison->dumps ? comparison->dump_count : 0; !rc && i--;)
		rc = add_dump(spellings, naming, i);
	for (size_t i = 0; !rc && !comparison->dumps && i < comparison->row_count; i++)
		rc = add_given(spellings, comparison->rows[i].frames);
	return rc;
}

void spellings_release(struct spellings *spellings)
{
	table_release(&spellings->known);
	free(spellings->items);
	buf_release(&spellings->lower);
	*spellings = (struct spellings){.count = 0};
}

int spelling_find(struct spellings *spellings, const char *module, const char **spelling)
{
	const uint64_t *known;

	if (make_key(spellings, module))
		return -ERR_NOMEM;
	known = table_find(&spellings->known, spellings->lower.data, spellings->lower.len);
	*spelling = known ? spellings->items[*known].text : module;
	return 0;
}
