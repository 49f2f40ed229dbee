/* The history of an NT heap: blocks of all sizes, holes, big blocks, and the low fragmentation
 * front end. The later changes are the growth. */
#include "tests/images/nt_model.h"

#include <stdlib.h>

#include "tests/images/image_inside.h"

/* Later states free some blocks and fill some free places. Each such place changes once, at a state
 * below this number. */
#define LAST_CHANGE 4
#define GROWTH_BLOCKS 25

struct program {
	struct nt_heap *heap;
	struct image *image;
	const struct model_request *request;
	unsigned placed; /* number of places that are live in state 0 */
	bool is_growing; /* state 0 is complete */
	unsigned state; /* state that is being made, once is_growing is true */
	uint32_t class_units;
};

/* A few stacks have most blocks. The growing stacks are among the first. */
static unsigned any_stack(struct program *program)
{
	unsigned count = image_stack_count(program->image);
	if (program->is_growing)
		return (program->state + (unsigned)image_random(program->image, 3)) % count;
	uint64_t below = 1 + image_random(program->image, count);
	return (unsigned)image_random(program->image, below);
}

/* Returns an invalid trace: facts, section 5.3. */
static uint64_t no_trace(struct program *program)
{
	uint64_t odd = image_ptr_bytes(program->image) == 8 ? 0x0101000000000000 : 0x01010000;
	return image_random(program->image, 2) ? odd : 0;
}

static struct nt_block any_block(struct program *program, uint64_t requested)
{
	struct nt_block block = {.requested = requested, .stack = any_stack(program)};
	uint64_t kind = image_random(program->image, 100);
	/* The first blocks were allocated before the system began to record stacks. */
	block.is_bare = !program->is_growing && program->placed < 24;
	if (!program->is_growing && kind == 0) {
		block.stack = STACK_NOTHING;
		block.trace = no_trace(program);
	}
	if (kind < 4) {
		/* The rest was too small for a separate block. */
		/* Or add 2 to 30 units, more than the header's byte can store. */
		block.slack = kind == 3 ? 2 + (unsigned)image_random(program->image, 30) : 1;
	}
	if (kind == 4)
		block.user_flags = 0x20u << image_random(program->image, 3);
	block.has_extra = kind == 5;
	return block;
}

static uint64_t any_size(struct program *program)
{
	uint64_t kind = image_random(program->image, 100);
	uint64_t most = kind < 60 ? 128 : kind < 90 ? 1024 : kind < 99 ? 4096 : 20000;
	return image_random(program->image, most);
}

static void add(struct program *program, uint64_t requested)
{
	if (image_options(program->image)->is_sparse && !program->is_growing)
		nt_add_free(program->heap, 64 + (unsigned)image_random(program->image, 2000));
	struct nt_block block = any_block(program, requested);
	nt_add_block(program->heap, &block);
	program->placed++;
}

static void add_ring_blocks(struct program *program, unsigned count, unsigned bytes)
{
	for (unsigned i = 0; i < count; i++) {
		struct nt_block block = any_block(program, bytes);
		image_ring_offer(program->image, nt_add_block(program->heap, &block));
		program->placed++;
	}
}

/* Adds a place that some later state frees, or that some later state fills. Neighbouring places
 * stay. */
static void add_changing(struct program *program, bool is_freed)
{
	struct nt_block block = any_block(program, any_size(program) % 2000);
	unsigned when = 1 + (unsigned)image_random(program->image, LAST_CHANGE);
	bool is_live = is_freed == (program->request->growth < when);
	if (is_live)
		nt_add_block(program->heap, &block);
	else
		nt_add_freed(program->heap, &block);
	program->placed += is_freed;
	add(program, any_size(program) % 200);
}

/* Adds blocks in the back end, with free blocks and holes between them. */
static void add_run(struct program *program, unsigned count)
{
	struct image *image = program->image;
	unsigned end = program->placed + count;
	while (program->placed < end) {
		add(program, any_size(program));
		uint64_t next = image_random(image, 200);
		if (next < 14) {
			nt_add_free(program->heap, 2 + (unsigned)image_random(image, 62));
			add(program, image_random(image, 64));
		} else if (next < 20) {
			add_changing(program, next < 17);
		} else if (next == 20) {
			nt_add_hole(program->heap, 1 + (unsigned)image_random(image, 6));
		}
	}
}

/* Adds every special size up to the largest, and some larger ones. */
static void add_ladder(struct program *program)
{
	uint64_t unit = program->heap->shape->unit;
	uint64_t most = unit * program->heap->shape->most_units;
	for (uint64_t size = 0; size <= 40; size++)
		add(program, size);
	for (uint64_t size = 48; size < most / 2; size = size * 3 / 2) {
		add(program, size);
		add(program, size + 1);
	}
	add(program, most - 0x80);
	add(program, most + 1);
	add(program, 0x200000);
	add(program, 0x123456);
}

static bool fill_block(void *context, unsigned number, uint64_t most_bytes, struct nt_block *block)
{
	struct program *program = context;
	struct image *image = program->image;
	/* A smaller class serves smaller requests, so only blocks that were shrunk are smaller than
	 * their class. */
	uint64_t range = most_bytes < 16 ? most_bytes + 1 : number % 16 == 7 ? most_bytes : 16;
	*block = any_block(program, most_bytes - image_random(image, range));
	block->is_bare = block->is_bare && number % 2;
	uint64_t kind = image_random(image, 100);
	unsigned when = 1 + (unsigned)image_random(image, LAST_CHANGE);
	unsigned growth = program->request->growth;
	if (program->is_growing)
		return kind < 90;
	bool is_live = kind >= 15;
	if (image_options(image)->is_sparse)
		is_live = image_random(image, 64) == 0;
	program->placed += is_live;
	if (kind < 5)
		return growth >= when; /* free now, but filled later */
	return is_live && !(kind < 20 && growth >= when);
}

/* Returns the size index of a container that holds about `blocks` blocks, but at least two. */
static unsigned size_index_for(const struct nt_heap *heap, uint32_t units, unsigned blocks)
{
	uint64_t bytes = (uint64_t)units * heap->shape->unit;
	unsigned index = 8;
	while (index < 17 && (uint64_t)1 << index < blocks * bytes)
		index++;
	return index;
}

/* Adds containers of one size until they contain about `count` live blocks. */
static void add_containers(struct program *program, uint64_t requested, unsigned count)
{
	struct nt_heap *heap = program->heap;
	uint32_t units = lfh_units_of(heap, requested);
	unsigned end = program->placed + count;
	while (program->placed < end) {
		unsigned blocks = 8u << image_random(program->image, count > 1000 ? 8 : 5);
		lfh_add_container(
			heap, units, size_index_for(heap, units, blocks), fill_block, program);
		if (image_random(program->image, 4) == 0)
			add_run(program, 1);
	}
}

static void add_front_end(struct program *program, unsigned count)
{
	struct image *image = program->image;
	program->heap->lfh = lfh_new(program->heap);
	unsigned end = program->placed + count;
	while (program->placed < end) {
		uint64_t kind = image_random(image, 100);
		uint64_t most = kind < 80 ? 256 : kind < 97 ? 2048 : 0x3f00;
		unsigned left = end - program->placed;
		unsigned share = left < 64 ? left : left / 8;
		add_containers(program, image_random(image, most), share);
	}
}

static void write_decoy(struct image *image, uint64_t user)
{
	const struct made_lfh_layout *layout =
		made_lfh_layout(image_profile(image)->bits, image_profile(image)->os_build);
	image_write_ptr(image, user, user + 64);
	image_write(image, user + layout->blocks_signature, 0xf0e0d0c0, 4);
}

/* Adds a block of the program and a free block. Both contain bytes that resemble the start of a
 * container. */
static void add_decoys(struct program *program)
{
	struct nt_heap *heap = program->heap;
	struct nt_block block = {.requested = 256, .stack = any_stack(program), .is_bare = true};
	write_decoy(program->image, nt_add_block(heap, &block));
	program->placed++;
	nt_add_free(heap, 32);
	write_decoy(program->image, heap->last_entry + heap->shape->unit);
	add(program, 64);
}

static bool grow_block(void *context, unsigned number, uint64_t most_bytes, struct nt_block *block)
{
	struct program *program = context;
	*block = (struct nt_block){.requested = most_bytes, .stack = any_stack(program)};
	return number % 8 != 7;
}

static void grow(struct program *program)
{
	program->is_growing = true;
	for (unsigned state = 1; state <= program->request->growth; state++) {
		program->state = state;
		for (unsigned i = 0; i < GROWTH_BLOCKS; i++)
			add(program, 24 + 8 * (uint64_t)i);
		if (program->heap->lfh) {
			uint32_t units = lfh_units_of(program->heap, 100);
			lfh_add_container(program->heap, units, 12, grow_block, program);
		}
	}
}

uint64_t nt_model_make(struct image *image, const struct model_request *request)
{
	struct nt_heap *heap = nt_heap_new(image, request->is_process_heap);
	struct program program = {.heap = heap, .image = image, .request = request};
	uint64_t base = heap->base;
	bool has_lfh = image_options(image)->has_lfh && !heap->has_tail;
	unsigned all = request->block_count;
	if (!request->is_unlisted)
		image_enter_heap(image, base, request->is_process_heap);
	image_ring_add(image, base, base + heap->layout->user_context);
	truth_heap(image, base, "nt");
	struct ring_wish wish = image_ring_wish(image);
	/* The heap's own entry is its first block. The entries of other heaps were made later. */
	add_ring_blocks(&program, wish.count ? 1 : 0, wish.bytes);
	add_run(&program, all / 20);
	add_ring_blocks(&program, wish.count ? wish.count - 1 : 0, wish.bytes);
	if (request->is_process_heap && all >= 100) {
		add_ladder(&program);
		add_decoys(&program);
	}
	if (has_lfh && all > program.placed)
		add_front_end(&program, (all - program.placed) / 4 * 3);
	if (all > program.placed)
		add_run(&program, all - program.placed);
	grow(&program);
	nt_heap_finish(heap);
	return base;
}
