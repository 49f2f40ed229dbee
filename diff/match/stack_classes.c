#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/text.h"
#include "diff/match/match_parts.h"

/* A text in parts that are compared one by one. */
struct spelling {
	const char *name, *digits, *rest;
	size_t name_len, digits_len, rest_len;
	uint32_t *number; /* where it goes */
};

static size_t hex_len(const char *text)
{
	return strspn(text, "0123456789abcdefABCDEF");
}

/* The digits of an offset behind a plus, without leading zeros: their number, or 0: it is none. */
static size_t offset_at(const char *plus, const char **digits)
{
	const char *at = plus + 1;
	size_t len, zeros;

	if (at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
		at += 2;
	len = hex_len(at);
	if (!len || (at[len] && at[len] != ' '))
		return 0;
	zeros = strspn(at, "0");
	if (zeros == len)
		zeros--;
	*digits = at + zeros;
	return len - zeros;
}

/* The last plus with digits behind it starts the offset: names may hold others. */
static struct spelling spelling_of(const char *text, bool by_function)
{
	struct spelling spelling = {.name = text, .name_len = strlen(text)};
	size_t len = spelling.name_len;

	for (const char *plus = strchr(text, '+'); plus; plus = strchr(plus + 1, '+')) {
		const char *digits;
		size_t digits_len = offset_at(plus, &digits);

		if (!digits_len)
			continue;
		spelling.name_len = (size_t)(plus - text);
		spelling.digits = digits;
		spelling.digits_len = digits_len;
		spelling.rest = digits + digits_len;
		spelling.rest_len = len - (size_t)(spelling.rest - text);
	}
	/* What has no function part is its offset. */
	if (by_function && memchr(text, '!', spelling.name_len))
		spelling.digits_len = spelling.rest_len = 0;
	return spelling;
}

static int text_order(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t len = a_len < b_len ? a_len : b_len;
	int order = len ? memcmp(a, b, len) : 0;

	return order ? order : a_len < b_len ? -1 : a_len > b_len;
}

static int digits_order(const struct spelling *a, const struct spelling *b)
{
	if (a->digits_len != b->digits_len)
		return a->digits_len < b->digits_len ? -1 : 1;
	for (size_t i = 0; i < a->digits_len; i++) {
		if (text_upper(a->digits[i]) != text_upper(b->digits[i]))
			return text_upper(a->digits[i]) < text_upper(b->digits[i]) ? -1 : 1;
	}
	return 0;
}

static int by_spelling(const void *a, const void *b)
{
	const struct spelling *x = a, *y = b;
	int order = text_order(x->name, x->name_len, y->name, y->name_len);

	if (!order)
		order = digits_order(x, y);
	return order ? order : text_order(x->rest, x->rest_len, y->rest, y->rest_len);
}

static void number(struct spelling *all, size_t count)
{
	uint32_t last = 0;

	if (count)
		qsort(all, count, sizeof(*all), by_spelling);
	for (size_t i = 0; i < count; i++) {
		if (!i || by_spelling(&all[i - 1], &all[i]))
			last++;
		*all[i].number = last;
	}
}

uint32_t **stack_frame_numbers(
	const struct dump_sums *dumps, size_t count, bool by_function, struct arena *arena)
{
	uint32_t **numbers = arena_alloc(arena, count * sizeof(*numbers) + 1);
	struct spelling *all;
	size_t total = 0, at = 0;

	for (size_t i = 0; i < count; i++)
		total += dumps[i].text_count;
	all = calloc(total + 1, sizeof(*all));
	for (size_t i = 0; numbers && all && i < count; i++) {
		numbers[i] = arena_alloc(arena, dumps[i].text_count * sizeof(**numbers) + 1);
		if (!numbers[i])
			numbers = NULL;
		for (size_t k = 0; numbers && k < dumps[i].text_count; k++) {
			all[at] = spelling_of(dumps[i].texts[k], by_function);
			all[at++].number = &numbers[i][k];
		}
	}
	if (numbers && all)
		number(all, total);
	else
		numbers = NULL;
	free(all);
	return numbers;
}

/* Units beside those of places: they differ from all modules' numbers. */
#define UNIT_SYMBOL (UINT64_C(1) << 32) /* plus the number of the module's group */
#define UNIT_TEXT (UINT64_C(2) << 32)
#define UNIT_NAMELESS (UINT64_C(3) << 32) /* plus the same */

int stack_id_order(const char *a, const char *b)
{
	size_t x = strlen(a), y = strlen(b);

	return x != y ? (x < y ? -1 : 1) : strcmp(a, b);
}

static int order_of(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* ---------------------------------------------------------------- frames */

static bool is_all_by_name(enum match_mode mode)
{
	return mode == MATCH_SYMBOL || mode == MATCH_FUNCTION;
}

/* Whether a frame there is known by its name, if it has one. */
static bool goes_by_name(const struct stack_classes *contents, const struct location *place)
{
	if (is_all_by_name(contents->mode))
		return true;
	return contents->mode == MATCH_AUTO && place->unit &&
	       contents->places->ranks.is_rebuilt[place->unit - 1];
}

/* Of a rebuilt module that has names in this build, a frame without one: offsets would tell it from
 * every frame of another build, so it goes by where it stands among the others. */
static bool is_any_nameless(const struct stack_classes *contents, const struct location *place)
{
	return contents->mode != MATCH_SYMBOL && place->unit &&
	       contents->places->ranks.is_rebuilt[place->unit - 1] &&
	       contents->has_names[place->unit - 1];
}

/* The place that a frame there is compared by where names count. */
static struct location named_place_at(
	const struct stack_classes *contents, const struct location *place)
{
	const struct module_ids *ranks = &contents->places->ranks;
	uint64_t group = place->unit ? ranks->group[place->unit - 1] + 1 : 0;
	const struct named_place *named;

	if (!goes_by_name(contents, place))
		return *place;
	named = names_find(contents->names, place);
	if (named && named->class)
		return (struct location){UNIT_SYMBOL + group, named->class};
	if (is_any_nameless(contents, place))
		return (struct location){UNIT_NAMELESS + group, 0};
	return *place;
}

/* The place that a frame is compared by. */
static struct location frame_at(const struct stack_classes *contents, size_t dump,
	const struct stack *stack, uint32_t index)
{
	uint64_t frame = stack->frames[index];
	struct location place;

	if (stack->is_named)
		return (struct location){UNIT_TEXT, contents->texts[dump][frame]};
	if (contents->mode == MATCH_ADDRESS)
		return (struct location){0, frame};
	place = location_of(contents->places, dump, frame, NULL);
	return contents->by_symbol ? named_place_at(contents, &place) : place;
}

static int want_stack(const struct stack_classes *contents, struct names *names, size_t dump,
	const struct stack *stack)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && !stack->is_named && i < stack->frame_count; i++) {
		struct location place = location_of(contents->places, dump, stack->frames[i], NULL);

		if (goes_by_name(contents, &place))
			rc = names_want(names, dump, stack->frames[i]);
	}
	return rc;
}

static int find_named_builds(struct stack_classes *contents, const struct names *names)
{
	contents->has_names = arena_alloc(&contents->arena, contents->places->ranks.count + 1);
	if (!contents->has_names)
		return -ERR_NOMEM;
	memset(contents->has_names, 0, contents->places->ranks.count + 1);
	for (size_t i = 0; i < names->count; i++) {
		if (names->list[i].found.count && names->list[i].place.unit)
			contents->has_names[names->list[i].place.unit - 1] = true;
	}
	return 0;
}

/* Looks for the names that stacks are compared by, all at once. */
static int find_names(struct stack_classes *contents, struct names *names, size_t dump_count)
{
	static const enum name_class classes[] = {[MATCH_AUTO] = CLASS_CODE,
		[MATCH_SYMBOL] = CLASS_LINE,
		[MATCH_FUNCTION] = CLASS_FUNCTION};
	const struct module_ids *ranks = &contents->places->ranks;
	bool is_needed = is_all_by_name(contents->mode);
	struct err err;
	int rc = 0;

	for (size_t i = 0; contents->mode == MATCH_AUTO && i < ranks->count; i++)
		is_needed |= ranks->is_rebuilt[i];
	if (!is_needed)
		return 0;
	for (size_t dump = 0; !rc && dump < dump_count; dump++) {
		const struct dump_sums *sums = &contents->dumps[dump];

		for (uint32_t i = 0; !rc && i < sums->stacks.count; i++)
			rc = want_stack(contents, names, dump, sums_stack(sums, i));
	}
	if (!rc)
		rc = names_resolve(names, &err);
	if (!rc)
		rc = names_classify(names, classes[contents->mode]);
	if (!rc)
		rc = find_named_builds(contents, names);
	contents->by_symbol = true;
	return rc;
}

/* ---------------------------------------------------------------- stacks */

static enum row_kind kind_of(const struct stack_classes *contents, const struct stack *stack)
{
	bool is_none = !stack || !stack->id[strspn(stack->id, "0")];

	if (!stack || (!stack->frame_count && is_none)) /* UMDH's id of such blocks is 0 */
		return ROW_STACKLESS;
	if (contents->mode == MATCH_ID)
		return ROW_STACK;
	if (!stack->frame_count)
		return ROW_UNKNOWN;
	return stack->alias_count ? ROW_AMBIGUOUS : ROW_STACK;
}

static const struct stack *stack_of(
	const struct stack_classes *contents, const struct content *content)
{
	return sums_stack(&contents->dumps[content->dump], content->stack);
}

static bool is_by_id(const struct stack_classes *contents, enum row_kind kind)
{
	return kind == ROW_UNKNOWN || (kind == ROW_STACK && contents->mode == MATCH_ID);
}

/* Puts the stack's frames where they are at hand. */
static int take_frames(struct stack_classes *contents, size_t dump, const struct stack *stack)
{
	uint32_t depth = location_depth(contents->places, dump, stack);

	if (depth > contents->frame_cap) {
		size_t cap = depth + (size_t)depth / 2;
		struct location *frames = realloc(contents->frames, cap * sizeof(*frames));

		if (!frames)
			return -ERR_NOMEM;
		contents->frames = frames;
		contents->frame_cap = cap;
	}
	for (uint32_t i = 0; i < depth; i++)
		contents->frames[i] = frame_at(contents, dump, stack, i);
	contents->depth = depth;
	return 0;
}

/* Of the stack at hand. An id without a stack means something in its own process only. */
static uint32_t hash_stack(const struct stack_classes *contents, enum row_kind kind, size_t dump,
	const struct stack *stack)
{
	struct hasher hasher = hasher_begin(&contents->index.key);
	uint64_t spread = hasher.a | 1;

	hasher_add(&hasher, kind);
	if (kind == ROW_STACKLESS)
		return hasher_end(&hasher);
	if (is_by_id(contents, kind)) {
		hasher_add_bytes(&hasher, stack->id, strlen(stack->id));
		hasher_add(&hasher, kind == ROW_UNKNOWN ? contents->process[dump] : 0);
		return hasher_end(&hasher);
	}
	hasher_add(&hasher, stack->alias_count);
	for (uint32_t i = 0; i < stack->alias_count; i++)
		hasher_add(&hasher, stack->alias_at[i]);
	/* One word for each frame: which others give the same word depends on the key. */
	for (uint32_t i = 0; i < contents->depth; i++)
		hasher_add(&hasher, contents->frames[i].offset + contents->frames[i].unit * spread);
	return hasher_end(&hasher);
}

static bool same_aliases(const struct stack *a, const struct stack *b)
{
	return a->alias_count == b->alias_count &&
	       (!a->alias_count ||
		       !memcmp(a->alias_at, b->alias_at, a->alias_count * sizeof(*a->alias_at)));
}

/* Whether a known content is that of the stack at hand. */
static bool is_same(const struct stack_classes *contents, const struct content *known,
	const struct content *wanted, const struct stack *stack)
{
	const struct stack *other;
	bool same_dump = known->dump == wanted->dump;

	if (known->kind != wanted->kind)
		return false;
	if (known->kind == ROW_STACKLESS)
		return true;
	other = stack_of(contents, known);
	if (is_by_id(contents, known->kind))
		return !strcmp(other->id, stack->id) &&
		       (known->kind == ROW_STACK ||
			       contents->process[known->dump] == contents->process[wanted->dump]);
	if (location_depth(contents->places, known->dump, other) != contents->depth ||
		!same_aliases(other, stack))
		return false;
	same_dump &= other->is_named == stack->is_named;
	for (uint32_t i = 0; i < contents->depth; i++) {
		struct location place;

		if (same_dump && other->frames[i] == stack->frames[i])
			continue;
		place = frame_at(contents, known->dump, other, i);
		if (!same_place(&place, &contents->frames[i]))
			return false;
	}
	return true;
}

static int add(struct stack_classes *contents, uint32_t hash, const struct content *content,
	uint32_t *number)
{
	if (contents->count >= INDEX_NONE - 1 ||
		array_grow((void **)&contents->list, &contents->cap, contents->count,
			sizeof(*content)) ||
		hash_index_add(&contents->index, hash, (uint32_t)contents->count))
		return -ERR_NOMEM;
	*number = (uint32_t)contents->count;
	contents->list[contents->count++] = *content;
	return 0;
}

static int find_content(struct stack_classes *contents, size_t dump, uint32_t stack,
	const struct stack *of, uint32_t *number)
{
	struct content wanted = {kind_of(contents, of), (uint32_t)dump, stack};
	struct hash_probe probe;
	uint32_t hash, known;

	if (of && wanted.kind != ROW_STACKLESS && !is_by_id(contents, wanted.kind) &&
		take_frames(contents, dump, of))
		return -ERR_NOMEM;
	hash = hash_stack(contents, wanted.kind, dump, of);
	probe = hash_index_probe(&contents->index, hash);
	while ((known = hash_index_next(&contents->index, &probe)) != INDEX_NONE) {
		if (is_same(contents, &contents->list[known], &wanted, of)) {
			*number = known;
			return 0;
		}
	}
	return add(contents, hash, &wanted, number);
}

/* Where an earlier dump's stack is the same, and so is where its addresses lie, so is the content. An
 * id without a stack means something in its own process only. */
static struct content_memo *memo_of(
	const struct stack_classes *contents, size_t dump, uint32_t stack, const struct stack *of)
{
	const uint32_t *shared = contents->dumps[dump].shared;

	if (!shared || !of || !of->frame_count || shared[stack] >= contents->memo_count)
		return NULL;
	return &contents->memo[shared[stack]];
}

int content_of(struct stack_classes *contents, size_t dump, uint32_t stack, uint32_t *number)
{
	const struct stack *of =
		stack == STACK_NONE ? NULL : sums_stack(&contents->dumps[dump], stack);
	struct content_memo *memo = memo_of(contents, dump, stack, of);
	int rc;

	if (memo && memo->alike == contents->places->alike[dump]) {
		*number = memo->number;
		return 0;
	}
	rc = find_content(contents, dump, stack, of, number);
	if (!rc && memo)
		*memo = (struct content_memo){contents->places->alike[dump], *number};
	return rc;
}

/* ---------------------------------------------------------------- order */

int content_stack_order(const struct stack_classes *contents, size_t dump_a, const struct stack *a,
	size_t dump_b, const struct stack *b)
{
	int order = order_of(a->alias_count, b->alias_count);
	uint32_t a_depth = location_depth(contents->places, dump_a, a);
	uint32_t b_depth = location_depth(contents->places, dump_b, b);

	for (uint32_t i = 0; !order && i < a->alias_count; i++)
		order = order_of(a->alias_at[i], b->alias_at[i]);
	for (uint32_t i = 0; !order && i < a_depth && i < b_depth; i++) {
		struct location x, y;

		/* Stacks of one dump often start with the same frames. */
		if (dump_a == dump_b && a->is_named == b->is_named && a->frames[i] == b->frames[i])
			continue;
		x = frame_at(contents, dump_a, a, i);
		y = frame_at(contents, dump_b, b, i);
		order = location_order(&x, &y);
	}
	return order ? order : order_of(a_depth, b_depth);
}

static int list_order(const struct stack_classes *contents, const struct content_list *a,
	const struct content_list *b)
{
	int order = 0;

	for (size_t i = 0; !order && i < a->count && i < b->count; i++)
		order = content_order(contents, a->contents[i], b->contents[i]);
	return order ? order : order_of(a->count, b->count);
}

int content_order(const struct stack_classes *contents, uint32_t a, uint32_t b)
{
	const struct content *x = &contents->list[a], *y = &contents->list[b];
	int order;

	if (a == b)
		return 0;
	if (x->kind != y->kind)
		return order_of(x->kind, y->kind);
	if (x->kind == ROW_ONE_OF)
		return list_order(contents, &contents->lists[x->stack], &contents->lists[y->stack]);
	if (x->kind == ROW_STACKLESS)
		return 0;
	if (is_by_id(contents, x->kind)) {
		order = stack_id_order(stack_of(contents, x)->id, stack_of(contents, y)->id);
		return order ? order :
			       order_of(contents->process[x->dump], contents->process[y->dump]);
	}
	return content_stack_order(
		contents, x->dump, stack_of(contents, x), y->dump, stack_of(contents, y));
}

/* ---------------------------------------------------------------- one of several */

/* A number that sorts by what it stands for. */
struct sorted_class {
	const struct stack_classes *contents;
	uint32_t number;
};

static int by_content(const void *a, const void *b)
{
	const struct sorted_class *x = a, *y = b;

	return content_order(x->contents, x->number, y->number);
}

/* Sorts numbers by content and drops the doubles: how many are left, or 0: out of memory. */
static size_t tidy(const struct stack_classes *contents, uint32_t *all, size_t count)
{
	struct sorted_class *sorted = calloc(count + 1, sizeof(*sorted));
	size_t kept = 0;

	if (!sorted)
		return 0;
	for (size_t i = 0; i < count; i++)
		sorted[i] = (struct sorted_class){contents, all[i]};
	qsort(sorted, count, sizeof(*sorted), by_content);
	for (size_t i = 0; i < count; i++) {
		if (!kept || all[kept - 1] != sorted[i].number)
			all[kept++] = sorted[i].number;
	}
	free(sorted);
	return kept;
}

static int add_list(struct stack_classes *contents, const uint32_t *all, size_t count)
{
	uint32_t *copy = arena_alloc(&contents->arena, count * sizeof(*copy));

	if (!copy || array_grow((void **)&contents->lists, &contents->list_cap,
			     contents->list_count, sizeof(*contents->lists)))
		return -ERR_NOMEM;
	memcpy(copy, all, count * sizeof(*copy));
	contents->lists[contents->list_count++] = (struct content_list){copy, count};
	return 0;
}

int content_one_of(struct stack_classes *contents, uint32_t *all, size_t count, uint32_t *number)
{
	struct hasher hasher = hasher_begin(&contents->index.key);
	struct content content = {.kind = ROW_ONE_OF, .stack = (uint32_t)contents->list_count};
	struct hash_probe probe;
	uint32_t hash, known;

	count = tidy(contents, all, count);
	if (count < 2) {
		*number = all[0];
		return count ? 0 : -ERR_NOMEM;
	}
	hasher_add(&hasher, ROW_ONE_OF);
	for (size_t i = 0; i < count; i++)
		hasher_add(&hasher, all[i]);
	hash = hasher_end(&hasher);
	probe = hash_index_probe(&contents->index, hash);
	while ((known = hash_index_next(&contents->index, &probe)) != INDEX_NONE) {
		const struct content *at = &contents->list[known];
		const struct content_list *list = &contents->lists[at->stack];

		if (at->kind == ROW_ONE_OF && list->count == count &&
			!memcmp(list->contents, all, count * sizeof(*all))) {
			*number = known;
			return 0;
		}
	}
	if (contents->list_count >= UINT32_MAX || add_list(contents, all, count))
		return -ERR_NOMEM;
	return add(contents, hash, &content, number);
}

/* ---------------------------------------------------------------- start and end */

/* Room to remember what was found for stacks that the dumps have in common. */
static int memo_make(struct stack_classes *contents, size_t dump_count)
{
	for (size_t i = 0; i < dump_count; i++) {
		const struct dump_sums *sums = &contents->dumps[i];

		for (size_t k = 0; sums->shared && k < sums->stacks.count; k++) {
			if (sums->shared[k] != STACK_NONE &&
				sums->shared[k] >= contents->memo_count)
				contents->memo_count = (size_t)sums->shared[k] + 1;
		}
	}
	contents->memo = malloc((contents->memo_count + 1) * sizeof(*contents->memo));
	if (!contents->memo)
		return -ERR_NOMEM;
	memset(contents->memo, 0xff, contents->memo_count * sizeof(*contents->memo));
	return 0;
}

/* What a dump tells of its process. */
struct process_key {
	int64_t start_ms;
	int64_t pid;
};

/* The first dump that is not of another process: it tells the same, or nothing. */
static int find_processes(struct stack_classes *contents, size_t dump_count)
{
	struct table known;
	size_t untold = SIZE_MAX; /* the first that tells nothing */
	int rc = 0;

	table_init(&known);
	for (size_t i = 0; !rc && i < dump_count; i++) {
		const struct dump_sums *sums = &contents->dumps[i];
		struct process_key key = {sums->start_ms, sums->pid};
		const uint64_t *same;

		contents->process[i] = 0;
		if (!sums->pid || !sums->start_ms) {
			untold = untold < i ? untold : i;
			continue;
		}
		same = table_find(&known, &key, sizeof(key));
		if (!same)
			rc = table_add(&known, &key, sizeof(key), i);
		contents->process[i] = same && *same < untold ? (size_t)*same : untold;
		if (!same && untold == SIZE_MAX)
			contents->process[i] = i;
	}
	table_release(&known);
	return rc;
}

int stack_classes_make(struct stack_classes *contents, const struct dump_sums *dumps,
	size_t dump_count, const struct locations *places, struct names *names,
	const struct match_request *request)
{
	*contents = (struct stack_classes){
		.dumps = dumps, .places = places, .names = names, .mode = request->mode};
	arena_init(&contents->arena);
	hash_index_init(&contents->index);
	contents->texts = stack_frame_numbers(
		dumps, dump_count, is_all_by_name(request->mode), &contents->arena);
	contents->process =
		arena_alloc(&contents->arena, dump_count * sizeof(*contents->process) + 1);
	if (!contents->texts || !contents->process || memo_make(contents, dump_count) ||
		find_processes(contents, dump_count))
		return -ERR_NOMEM;
	return request->no_symbols ? 0 : find_names(contents, names, dump_count);
}

void stack_classes_release(struct stack_classes *contents)
{
	hash_index_release(&contents->index);
	free(contents->list);
	free(contents->lists);
	free(contents->memo);
	free(contents->frames);
	arena_release(&contents->arena);
	*contents = (struct stack_classes){0};
}
