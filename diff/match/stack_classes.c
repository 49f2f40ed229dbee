/* Classes of stacks: determines the location by which each frame is compared, hashes and compares
 * stacks, and orders classes. */
#include <stdlib.h>
#include <string.h>

#include <stdatomic.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/os.h"
#include "diff/match/match_parts.h"

/* Units of locations that are not in a numbered module. Module numbers are below these units. */
#define UNIT_SYMBOL (UINT64_C(1) << 32) /* plus the number of the module's group */
#define UNIT_TEXT (UINT64_C(2) << 32)
#define UNIT_NAMELESS (UINT64_C(3) << 32) /* plus the number of the module's group */

int stack_id_order(const char *a, const char *b)
{
	size_t x = strlen(a), y = strlen(b);

	return x != y ? (x < y ? -1 : 1) : strcmp(a, b);
}

static bool is_all_by_name(enum match_mode mode)
{
	return mode == MATCH_SYMBOL || mode == MATCH_FUNCTION;
}

/* Returns true if a frame at this location is compared by name when it has a name. */
static bool goes_by_name(const struct stack_classes *classes, const struct location *place)
{
	if (is_all_by_name(classes->mode))
		return true;
	return classes->mode == MATCH_AUTO && place->unit &&
	       classes->locations->ranks.is_rebuilt[place->unit - 1];
}

/* Returns true if a frame without a name at this location can be compared only by its position in
 * the stack. This is the case if its module was rebuilt and other frames in the module have names.
 * The frame's offset may then differ between builds. */
static bool is_any_nameless(const struct stack_classes *classes, const struct location *place)
{
	return classes->mode != MATCH_SYMBOL && place->unit &&
	       classes->locations->ranks.is_rebuilt[place->unit - 1] &&
	       classes->has_names[place->unit - 1];
}

/* Returns the location by which a frame is compared when names are used. */
static struct location named_place_at(
	const struct stack_classes *classes, const struct location *place)
{
	const struct module_ids *ranks = &classes->locations->ranks;
	uint64_t group = place->unit ? ranks->group[place->unit - 1] + 1 : 0;
	const struct named_place *named;

	if (!goes_by_name(classes, place))
		return *place;
	named = names_find(classes->names, place);
	if (named && named->row_class)
		return (struct location){UNIT_SYMBOL + group, named->row_class};
	if (is_any_nameless(classes, place))
		return (struct location){UNIT_NAMELESS + group, 0};
	return *place;
}

/* Returns the location by which a frame is compared. */
static struct location frame_at(
	const struct stack_classes *classes, size_t dump, const struct stack *stack, uint32_t index)
{
	uint64_t frame = stackless_frame(classes->stackless_sizes, stack, index);
	struct location place;

	if (stack->is_named)
		return (struct location){UNIT_TEXT, classes->texts[dump][frame]};
	if (classes->mode == MATCH_ADDRESS)
		return (struct location){0, frame};
	place = location_of(classes->locations, dump, frame, NULL);
	return classes->by_symbol ? named_place_at(classes, &place) : place;
}

struct location stack_class_function(
	const struct stack_classes *classes, size_t dump, const struct stack *stack, uint32_t index)
{
	struct location place =
		location_of(classes->locations, dump, stack_frame(stack, index), NULL);
	struct location at = named_place_at(classes, &place);
	const struct named_place *named;

	if (!goes_by_name(classes, &place))
		return place;
	named = names_find(classes->names, &place);
	return named && named->row_class ? (struct location){at.unit, named->function} : at;
}

/* Looks up all names that are needed to compare stacks, in one batch. */
static void find_names(struct stack_classes *classes, struct names *names, size_t dump_count)
{
	static const enum name_class by_mode[] = {[MATCH_AUTO] = CLASS_CODE,
		[MATCH_SYMBOL] = CLASS_LINE,
		[MATCH_FUNCTION] = CLASS_FUNCTION};
	const struct module_ids *ranks = &classes->locations->ranks;
	bool is_needed = is_all_by_name(classes->mode);

	for (size_t i = 0; classes->mode == MATCH_AUTO && i < ranks->count; i++)
		is_needed |= ranks->is_rebuilt[i];
	if (!is_needed)
		return;
	for (size_t dump = 0; dump < dump_count; dump++) {
		const struct dump_sums *sums = &classes->dumps[dump];

		for (uint32_t i = 0; i < sums->stacks.count; i++) {
			const struct stack *stack = sums_stack(sums, i);

			for (uint32_t k = 0; !stack->is_named && k < stack->frame_count; k++) {
				struct location place = location_of(
					classes->locations, dump, stack_frame(stack, k), NULL);

				if (goes_by_name(classes, &place))
					names_want(names, dump, stack_frame(stack, k));
			}
		}
	}
	names_resolve(names);
	names_classify(names, by_mode[classes->mode]);
	classes->has_names = arena_alloc(&classes->arena, ranks->count);
	memset(classes->has_names, 0, ranks->count);
	for (size_t i = 0; i < names->count; i++) {
		if (names->list[i].found.count && names->list[i].place.unit)
			classes->has_names[names->list[i].place.unit - 1] = true;
	}
	classes->by_symbol = true;
}

/* ---------------------------------------------------------------- stacks */

static enum row_kind kind_of(const struct stack_classes *classes, const struct stack *stack)
{
	/* UMDH gives such blocks the id 0. */
	if (!stack || (!stack->frame_count && !stack->id[strspn(stack->id, "0")]))
		return ROW_STACKLESS;
	if (classes->mode == MATCH_ID)
		return ROW_STACK;
	if (!stack->frame_count)
		return ROW_UNKNOWN;
	return stack->alias_count ? ROW_AMBIGUOUS : ROW_STACK;
}

static const struct stack *stack_of(
	const struct stack_classes *classes, const struct stack_class *row_class)
{
	return sums_stack(&classes->dumps[row_class->dump], row_class->stack);
}

static bool is_by_id(const struct stack_classes *classes, enum row_kind kind)
{
	return kind == ROW_UNKNOWN || (kind == ROW_STACK && classes->mode == MATCH_ID);
}

/* Stores the locations of a stack's frames in `classes->frames`. */
static void add_frames(struct stack_classes *classes, size_t dump, const struct stack *stack)
{
	uint32_t depth = location_depth(classes->locations, dump, stack);

	if (depth > classes->frame_cap) {
		classes->frame_cap = depth + (size_t)depth / 2;
		classes->frames =
			xrealloc(classes->frames, classes->frame_cap * sizeof(*classes->frames));
	}
	for (uint32_t i = 0; i < depth; i++)
		classes->frames[i] = frame_at(classes, dump, stack, i);
	classes->depth = depth;
}

/* Hashes a stack. A stack without frames has only an id. For such a stack, also hashes the process,
 * because the id is valid only in that process. */
static uint32_t hash_stack(
	const struct stack_classes *classes, size_t dump, const struct stack *stack)
{
	struct hasher hasher = hasher_begin(&classes->index.key);
	uint64_t spread = hasher.a | 1;
	enum row_kind kind = kind_of(classes, stack);
	uint32_t depth;

	hasher_add(&hasher, kind);
	if (kind == ROW_STACKLESS)
		return hasher_end(&hasher);
	if (is_by_id(classes, kind)) {
		hasher_add_bytes(&hasher, stack->id, strlen(stack->id));
		hasher_add(&hasher, kind == ROW_UNKNOWN ? classes->process[dump] : 0);
		return hasher_end(&hasher);
	}
	hasher_add(&hasher, stack->alias_count);
	for (uint32_t i = 0; i < stack->alias_count; i++)
		hasher_add(&hasher, stack->alias_at[i]);
	depth = location_depth(classes->locations, dump, stack);
	/* One word per frame, combined with a random key to make collisions unpredictable. */
	for (uint32_t i = 0; i < depth; i++) {
		struct location place = frame_at(classes, dump, stack, i);

		hasher_add(&hasher, place.offset + place.unit * spread);
	}
	return hasher_end(&hasher);
}

static bool same_aliases(const struct stack *a, const struct stack *b)
{
	return a->alias_count == b->alias_count &&
	       (!a->alias_count ||
		       !memcmp(a->alias_at, b->alias_at, a->alias_count * sizeof(*a->alias_at)));
}

/* Returns true if `stack` belongs to the class `known`. `wanted` is the class that would be added
 * for the stack. */
static bool is_same(const struct stack_classes *classes, const struct stack_class *known,
	const struct stack_class *wanted, const struct stack *stack)
{
	const struct stack *other;
	bool same_dump = known->dump == wanted->dump;

	if (known->kind != wanted->kind)
		return false;
	if (known->kind == ROW_STACKLESS)
		return true;
	other = stack_of(classes, known);
	if (is_by_id(classes, known->kind))
		return !strcmp(other->id, stack->id) &&
		       (known->kind == ROW_STACK ||
			       classes->process[known->dump] == classes->process[wanted->dump]);
	if (location_depth(classes->locations, known->dump, other) != classes->depth ||
		!same_aliases(other, stack))
		return false;
	same_dump &= other->is_named == stack->is_named;
	for (uint32_t i = 0; i < classes->depth; i++) {
		struct location place;

		if (same_dump && stack_frame(other, i) == stack_frame(stack, i))
			continue;
		place = frame_at(classes, known->dump, other, i);
		if (!same_place(&place, &classes->frames[i]))
			return false;
	}
	return true;
}

static uint32_t add(
	struct stack_classes *classes, uint32_t hash, const struct stack_class *row_class)
{
	array_grow((void **)&classes->list, &classes->cap, classes->count, sizeof(*row_class));
	hash_index_add(&classes->index, hash, (uint32_t)classes->count);
	classes->list[classes->count] = *row_class;
	return (uint32_t)classes->count++;
}

static uint32_t find_class(struct stack_classes *classes, size_t dump, uint32_t number,
	const struct stack *stack, uint32_t hash)
{
	struct stack_class wanted = {kind_of(classes, stack), (uint32_t)dump, number};
	struct hash_probe probe = hash_index_probe(&classes->index, hash);
	bool is_at_hand = wanted.kind == ROW_STACKLESS || is_by_id(classes, wanted.kind);
	uint32_t known;

	while ((known = hash_index_next(&classes->index, &probe)) != INDEX_NONE) {
		if (!is_at_hand)
			add_frames(classes, dump, stack);
		is_at_hand = true;
		if (is_same(classes, &classes->list[known], &wanted, stack))
			return known;
	}
	return add(classes, hash, &wanted);
}

uint32_t stack_class_none(struct stack_classes *classes, size_t dump)
{
	return find_class(classes, dump, STACK_NONE, NULL, hash_stack(classes, dump, NULL));
}

/* Returns the cache entry of a stack, or NULL. A stack without frames has no entry, because its id
 * is valid only in its own process. */
static struct class_memo *memo_of(
	const struct stack_classes *classes, const struct dump_sums *sums, uint32_t number)
{
	return sums->shared && sums_stack(sums, number)->frame_count &&
			       sums->shared[number] < classes->memo_count ?
		       &classes->memo[sums->shared[number]] :
		       NULL;
}

#define HASHED_AT_ONCE 4096 /* in stacks */
#define PREFETCH_AHEAD 8

/* Shared state of the threads that hash a dump's stacks. */
struct class_hashing {
	const struct stack_classes *classes;
	size_t dump;
	uint32_t alike;
	uint32_t *hashes;
	atomic_size_t next; /* first stack that no thread has claimed */
};

static void hash_some(void *ctx, unsigned number)
{
	struct class_hashing *hashing = ctx;
	const struct dump_sums *sums = &hashing->classes->dumps[hashing->dump];
	size_t from;

	(void)number;
	while ((from = atomic_fetch_add(&hashing->next, HASHED_AT_ONCE)) < sums->stacks.count) {
		for (size_t i = from; i < from + HASHED_AT_ONCE && i < sums->stacks.count; i++) {
			struct class_memo *memo = memo_of(hashing->classes, sums, (uint32_t)i);

			if (sums->stacks.count - i > PREFETCH_AHEAD)
				__builtin_prefetch(sums_stack(sums, i + PREFETCH_AHEAD)->frames);
			hashing->hashes[i] = memo && memo->alike == hashing->alike ?
						     0 :
						     hash_stack(hashing->classes, hashing->dump,
							     sums_stack(sums, (uint32_t)i));
		}
	}
}

/* Uses the cached class of a stack if an earlier dump shares the stack. This requires that
 * addresses have the same locations in both dumps. */
void stack_classes_find(struct stack_classes *classes, size_t dump, uint32_t *numbers)
{
	const struct dump_sums *sums = &classes->dumps[dump];
	struct class_hashing hashing = {classes, dump, classes->locations->alike[dump], numbers, 0};
	size_t threads = sums->stacks.count / HASHED_AT_ONCE;

	if (!classes->count) /* usually enough, because dumps of one process share most stacks */
		hash_index_reserve(&classes->index, sums->stacks.count);
	thread_run(threads < thread_cores() ? (unsigned)threads + 1 : thread_cores(), hash_some,
		&hashing);
	for (uint32_t i = 0; i < sums->stacks.count; i++) {
		struct class_memo *memo = memo_of(classes, sums, i);

		if (sums->stacks.count - i > PREFETCH_AHEAD)
			hash_index_expect(&classes->index, numbers[i + PREFETCH_AHEAD]);
		if (memo && memo->alike == hashing.alike) {
			numbers[i] = memo->number;
			continue;
		}
		numbers[i] = find_class(classes, dump, i, sums_stack(sums, i), numbers[i]);
		if (memo)
			*memo = (struct class_memo){hashing.alike, numbers[i]};
	}
}

/* ---------------------------------------------------------------- order */

/* Returns true if a frame is compared, which outermost frames in no module are not. Calls
 * location_depth(), which is slow, only for frames in no module. */
static bool is_within(const struct stack_classes *classes, size_t dump, const struct stack *stack,
	uint32_t frame, const struct location *location)
{
	return location->unit || frame < location_depth(classes->locations, dump, stack);
}

int stack_order(const struct stack_classes *classes, size_t dump_a, const struct stack *a,
	size_t dump_b, const struct stack *b)
{
	int order = number_order(a->alias_count, b->alias_count);

	for (uint32_t i = 0; !order && i < a->alias_count; i++)
		order = number_order(a->alias_at[i], b->alias_at[i]);
	for (uint32_t i = 0; !order && i < a->frame_count && i < b->frame_count; i++) {
		struct location x, y;

		/* Stacks of one dump often start with equal frames. */
		if (dump_a == dump_b && a->is_named == b->is_named &&
			stack_frame(a, i) == stack_frame(b, i))
			continue;
		x = frame_at(classes, dump_a, a, i);
		y = frame_at(classes, dump_b, b, i);
		if (!is_within(classes, dump_a, a, i, &x) || !is_within(classes, dump_b, b, i, &y))
			break;
		order = location_order(&x, &y);
	}
	return order ? order :
		       number_order(location_depth(classes->locations, dump_a, a),
			       location_depth(classes->locations, dump_b, b));
}

static int list_order(
	const struct stack_classes *classes, const struct class_list *a, const struct class_list *b)
{
	int order = 0;

	for (size_t i = 0; !order && i < a->count && i < b->count; i++)
		order = stack_class_order(classes, a->classes[i], b->classes[i]);
	return order ? order : number_order(a->count, b->count);
}

int stack_class_order(const struct stack_classes *classes, uint32_t a, uint32_t b)
{
	const struct stack_class *x = &classes->list[a], *y = &classes->list[b];
	int order;

	if (a == b)
		return 0;
	if (x->kind != y->kind)
		return number_order(x->kind, y->kind);
	if (x->kind == ROW_ONE_OF)
		return list_order(classes, &classes->lists[x->stack], &classes->lists[y->stack]);
	if (x->kind == ROW_STACKLESS)
		return 0;
	if (is_by_id(classes, x->kind)) {
		order = stack_id_order(stack_of(classes, x)->id, stack_of(classes, y)->id);
		return order ? order :
			       number_order(classes->process[x->dump], classes->process[y->dump]);
	}
	return stack_order(classes, x->dump, stack_of(classes, x), y->dump, stack_of(classes, y));
}

/* Returns true if classes of this kind are ordered by frames. */
static bool is_by_frames(const struct stack_classes *classes, const struct stack_class *row_class)
{
	return row_class->kind == ROW_STACK && !is_by_id(classes, row_class->kind);
}

uint32_t stack_class_common(
	const struct stack_classes *classes, uint32_t a, uint32_t b, uint32_t most)
{
	const struct stack_class *x = &classes->list[a], *y = &classes->list[b];
	const struct stack *left, *right;
	uint32_t count = 0;

	if (x->dump != y->dump || !is_by_frames(classes, x) || !is_by_frames(classes, y))
		return 0;
	left = stack_of(classes, x);
	right = stack_of(classes, y);
	most = left->is_named == right->is_named ? most : 0;
	while (count < most && count < left->frame_count && count < right->frame_count &&
		stack_frame(left, count) == stack_frame(right, count))
		count++;
	return count;
}

#define KEY_UNIT_BITS 34 /* enough for UNIT_NAMELESS plus a group */
#define KEY_OFFSET_BITS 27 /* all offsets too large for these bits get the same key */

uint64_t stack_class_key(const struct stack_classes *classes, uint32_t number, uint32_t common)
{
	const uint64_t offset_max = (UINT64_C(1) << KEY_OFFSET_BITS) - 1;
	const struct stack_class *row_class = &classes->list[number];
	const struct stack *stack;
	struct location place;
	uint64_t key = (uint64_t)row_class->kind << (KEY_UNIT_BITS + KEY_OFFSET_BITS);

	if (!is_by_frames(classes, row_class))
		return key;
	stack = stack_of(classes, row_class);
	if (common >= stack->frame_count)
		return key;
	place = frame_at(classes, row_class->dump, stack, common);
	if (!is_within(classes, row_class->dump, stack, common, &place))
		return key;
	return key | place.unit << KEY_OFFSET_BITS |
	       (place.offset < offset_max ? place.offset : offset_max);
}

/* ---------------------------------------------------------------- one of several stacks */

/* A class number, and the classes that are needed to compare it with another. */
struct sorted_class {
	const struct stack_classes *classes;
	uint32_t number;
};

static int by_class(const void *a, const void *b)
{
	const struct sorted_class *x = a, *y = b;

	return stack_class_order(x->classes, x->number, y->number);
}

uint32_t stack_class_one_of(struct stack_classes *classes, uint32_t *all, size_t count)
{
	struct sorted_class *sorted = xcalloc(count, sizeof(*sorted));
	struct hasher hasher = hasher_begin(&classes->index.key);
	struct stack_class row_class = {.kind = ROW_ONE_OF, .stack = (uint32_t)classes->list_count};
	struct class_list list = {.classes = all};
	struct hash_probe probe;
	uint32_t hash, known;

	for (size_t i = 0; i < count; i++)
		sorted[i] = (struct sorted_class){classes, all[i]};
	qsort(sorted, count, sizeof(*sorted), by_class);
	hasher_add(&hasher, ROW_ONE_OF);
	for (size_t i = 0; i < count; i++) {
		if (list.count && all[list.count - 1] == sorted[i].number)
			continue;
		all[list.count++] = sorted[i].number;
		hasher_add(&hasher, sorted[i].number);
	}
	free(sorted);
	if (list.count == 1)
		return all[0];
	hash = hasher_end(&hasher);
	probe = hash_index_probe(&classes->index, hash);
	while ((known = hash_index_next(&classes->index, &probe)) != INDEX_NONE) {
		const struct stack_class *at = &classes->list[known];

		if (at->kind == ROW_ONE_OF && classes->lists[at->stack].count == list.count &&
			!memcmp(classes->lists[at->stack].classes, all, list.count * sizeof(*all)))
			return known;
	}
	list.classes = arena_alloc(&classes->arena, list.count * sizeof(*all));
	memcpy(list.classes, all, list.count * sizeof(*all));
	array_grow((void **)&classes->lists, &classes->list_cap, classes->list_count, sizeof(list));
	classes->lists[classes->list_count++] = list;
	return add(classes, hash, &row_class);
}

/* ---------------------------------------------------------------- making and freeing */

/* Identity of a dump's process. */
struct process_key {
	int64_t start_ms;
	int64_t pid;
};

/* Stores for each dump the first dump of the same process. Dumps without pid or start time are
 * treated as one process. */
static void find_processes(struct stack_classes *classes, size_t dump_count)
{
	struct table known;
	size_t untold = SIZE_MAX; /* the first dump without pid or start time */

	table_init(&known);
	for (size_t i = 0; i < dump_count; i++) {
		const struct dump_sums *sums = &classes->dumps[i];
		struct process_key key = {sums->id.start_ms, sums->id.pid};
		const uint64_t *same;

		classes->process[i] = 0;
		if (!sums->id.pid || !sums->id.start_ms) {
			untold = untold < i ? untold : i;
			continue;
		}
		same = table_find(&known, &key, sizeof(key));
		if (!same)
			table_add(&known, &key, sizeof(key), i);
		classes->process[i] = same && *same < untold ? (size_t)*same : untold;
		if (!same && untold == SIZE_MAX)
			classes->process[i] = i;
	}
	table_release(&known);
}

void stack_classes_make(struct stack_classes *classes, const struct dump_sums *dumps,
	size_t dump_count, const struct locations *locations, struct names *names,
	const struct match_request *request)
{
	*classes = (struct stack_classes){
		.dumps = dumps, .locations = locations, .names = names, .mode = request->mode};
	arena_init(&classes->arena);
	hash_index_init(&classes->index);
	classes->texts =
		text_numbers(dumps, dump_count, is_all_by_name(request->mode), &classes->arena);
	classes->process = arena_alloc(&classes->arena, dump_count * sizeof(*classes->process));
	for (size_t i = 0; i < dump_count; i++) {
		for (size_t k = 0; dumps[i].shared && k < dumps[i].stacks.count; k++) {
			uint32_t shared = dumps[i].shared[k];

			if (shared != STACK_NONE && shared >= classes->memo_count)
				classes->memo_count = (size_t)shared + 1;
		}
	}
	classes->memo = xmalloc(classes->memo_count * sizeof(*classes->memo));
	memset(classes->memo, 0xff, classes->memo_count * sizeof(*classes->memo));
	find_processes(classes, dump_count);
	if (!request->no_symbols)
		find_names(classes, names, dump_count);
}

void stack_classes_close(struct stack_classes *classes)
{
	hash_index_release(&classes->index);
	free(classes->memo);
	free(classes->frames);
	classes->memo = NULL;
	classes->frames = NULL;
}

void stack_classes_forget(struct stack_classes *classes)
{
	stack_classes_close(classes);
	free(classes->list);
	free(classes->lists);
	classes->list = NULL;
	classes->lists = NULL;
}

void stack_classes_release(struct stack_classes *classes)
{
	stack_classes_forget(classes);
	arena_release(&classes->arena);
	*classes = (struct stack_classes){0};
}
