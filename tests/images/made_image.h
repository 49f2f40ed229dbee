/*
 * A made Windows process, to be written as a minidump, with the truth about it beside it.
 *
 * Models of allocators (nt_model.c, segment_model.c, page_model.c, ust_model.c) lay out memory as
 * Windows does, from published facts and not from the walkers' tables, and say what they placed.
 * They place; they do not read back. Addresses are the made process's.
 *
 * Running out of memory, and a model's own mistakes, end the program with a message.
 */
#ifndef TESTS_IMAGES_MADE_IMAGE_H
#define TESTS_IMAGES_MADE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which Windows. */
struct profile {
	const char *name; /* "win7-x86", "win10-x64", ... */
	unsigned bits;
	unsigned os_major, os_minor, os_build;
};

enum image_access {
	IMAGE_READ = 1,
	IMAGE_WRITE = 2,
	IMAGE_EXECUTE = 4,
};

struct image;

struct image *image_new(const struct profile *profile, uint64_t seed);
void image_free(struct image *image);
const struct profile *image_profile(const struct image *image);
unsigned image_ptr_bytes(const struct image *image);

/* A repeatable random number below limit (> 0). */
uint64_t image_random(struct image *image, uint64_t limit);

/* ---- memory. Reserves address space of 64 KiB granules, at a free place of the image's choice, and commits
 * (zeroed) or decommits pages of it. Committed pages go into the dump. */
uint64_t image_reserve(struct image *image, uint64_t bytes, uint64_t align);
void image_commit(struct image *image, uint64_t addr, uint64_t bytes, unsigned access);
void image_decommit(struct image *image, uint64_t addr, uint64_t bytes);

/* Little-endian; the bytes must be committed. */
void image_put(struct image *image, uint64_t addr, uint64_t value, size_t bytes);
void image_put_ptr(struct image *image, uint64_t addr, uint64_t value);
uint64_t image_get(struct image *image, uint64_t addr, size_t bytes);
uint64_t image_get_ptr(struct image *image, uint64_t addr);
void image_fill(struct image *image, uint64_t addr, int byte, uint64_t bytes);

/* _LIST_ENTRY: an empty head, and an entry appended. */
void image_list_init(struct image *image, uint64_t head);
void image_list_add(struct image *image, uint64_t head, uint64_t entry);

/* ---- stacks. A stack is a number; its frames lie in the image's modules. record: where a block's pointer
 * leads to (its RTL_STACK_TRACE_ENTRY); 0 when the process was not started with +ust. */
#define STACK_NOTHING UINT32_MAX
unsigned image_stack_count(const struct image *image);
uint64_t image_stack_record(struct image *image, unsigned stack);
bool image_has_ust(const struct image *image);

/* ---- truth. kind: "nt", "segment", "page". */
void truth_heap(struct image *image, uint64_t heap, const char *kind);
void truth_block(struct image *image, uint64_t heap, uint64_t addr, uint64_t requested_bytes,
	uint64_t overhead_bytes, unsigned stack);

/* ---- models. Each makes one heap, enters it in the PEB's list, and fills it with about that many
 * blocks that are live, and others that were freed. Of each heap the growth'th state is made: what
 * is live in state 0 is live and in its place in all later ones; each adds blocks of some stacks. */
struct model_request {
	unsigned block_count;
	unsigned growth;
	bool is_process_heap;
};

uint64_t nt_model_make(struct image *image, const struct model_request *request);
uint64_t segment_model_make(struct image *image, const struct model_request *request);
/* A full page heap, or a light one (in an NT heap). */
uint64_t page_model_make(struct image *image, const struct model_request *request, bool is_full);

#endif
