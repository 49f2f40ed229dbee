#include "snapshot/stacks/tracer_table.h"

#include <stdlib.h>
#include <string.h>

#include "core/buf.h"

#define ENTRIES_LOG2_MAX 26 /* of one shard */
#define PIECE_BYTES ((size_t)1 << 20) /* of one read */

void tracer_copy_init(struct tracer_copy *copy)
{
	memset(copy, 0, sizeof(*copy));
}

void tracer_copy_release(struct tracer_copy *copy)
{
	free(copy->blocks);
	free(copy->stacks);
	tracer_copy_init(copy);
}

static bool is_tracer(const char *path)
{
	const char *name = path_base(path), *ours = TRACER_DLL_64;

	while (*name && *ours && (*name | 0x20) == (*ours | 0x20)) {
		name++;
		ours++;
	}
	return !*name && !*ours;
}

int tracer_find(struct target *target, const struct module *modules, size_t count,
	uint64_t *area_addr, struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		struct target_image at = {target, modules[i].base};
		struct pe_source source = target_image_source(&at);
		struct pe_image *image;
		uint32_t rva = 0;
		int rc;

		if (!is_tracer(modules[i].path))
			continue;
		image = malloc(sizeof(*image));
		if (!image)
			return err_set(err, ERR_NOMEM, target->name, NULL);
		rc = pe_read_headers(&source, image);
		if (!rc)
			rc = pe_find_export(&source, image, TRACER_EXPORT, &rva);
		free(image);
		if (rc)
			return target_err(target, modules[i].base, "no tracer in its DLL", err);
		*area_addr = modules[i].base + rva;
		return 0;
	}
	return err_set(err, ERR_NOT_TRACED, target->name, NULL);
}

int tracer_area_read(
	struct target *target, uint64_t area_addr, struct tracer_area *area, struct err *err)
{
	struct tracer_area *found = malloc(sizeof(*found));
	int rc = 0;

	if (!found)
		return err_set(err, ERR_NOMEM, target->name, NULL);
	if (target_read(target, area_addr, found, sizeof(*found)))
		rc = target_err(target, area_addr, "unreadable tracer", err);
	else if (found->magic != TRACER_MAGIC || found->version != TRACER_VERSION ||
		 found->area_bytes != sizeof(*found))
		rc = target_err(target, area_addr, "a tracer of another version", err);
	else if (found->state == TRACER_FAILED)
		rc = err_set(err, ERR_INJECT, target->name, "it found no free TLS slot");
	else
		*area = *found;
	free(found);
	return rc;
}

static int copy_bytes(struct target *target, uint64_t addr, unsigned char *bytes, uint64_t len)
{
	while (len) {
		size_t part = len < PIECE_BYTES ? (size_t)len : PIECE_BYTES;

		if (target_read(target, addr, bytes, part))
			return -ERR_READ;
		addr += part;
		bytes += part;
		len -= part;
	}
	return 0;
}

/* Adds the valid entries of one piece of a shard's table. */
static int keep_valid(struct tracer_copy *copy, const struct tracer_block *piece, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!piece[i].key || !tracer_block_is_live(&copy->area, &piece[i]))
			continue;
		if (array_grow((void **)&copy->blocks, &copy->block_cap, copy->block_count,
			    sizeof(*copy->blocks)))
			return -ERR_NOMEM;
		copy->blocks[copy->block_count++] = piece[i];
	}
	return 0;
}

static uint64_t table_addr(const struct tracer_shard *shard)
{
	return shard->table & ~(uint64_t)63;
}

/* Of its table; 0 when it has none, or one larger than can be. */
static uint64_t entry_count(const struct tracer_shard *shard)
{
	unsigned log2 = shard->table & 63;

	return shard->table && log2 <= ENTRIES_LOG2_MAX ? (uint64_t)1 << log2 : 0;
}

/*
 * False when a table is too large or two of them share memory: then a few bytes in the target could
 * be made to look like any number of blocks.
 */
static bool are_sound(const struct tracer_shard *shards)
{
	for (unsigned i = 0; i < TRACER_SHARDS; i++) {
		uint64_t addr = table_addr(&shards[i]), count = entry_count(&shards[i]);

		if (shards[i].table && !count)
			return false;
		for (unsigned k = 0; k < i; k++) {
			uint64_t other = table_addr(&shards[k]);

			if (addr - other < entry_count(&shards[k]) * sizeof(struct tracer_block) ||
				other - addr < count * sizeof(struct tracer_block))
				return false;
		}
	}
	return true;
}

static int copy_shard(struct tracer_copy *copy, struct target *target,
	const struct tracer_shard *shard, struct tracer_block *piece)
{
	uint64_t addr = table_addr(shard), count = entry_count(shard);
	int rc = 0;

	if (shard->broken) { /* what it says may be long past */
		copy->broken_shards++;
		return 0;
	}
	while (count && !rc) {
		size_t part = PIECE_BYTES / sizeof(*piece);

		part = count < part ? (size_t)count : part;
		rc = target_read(target, addr, piece, part * sizeof(*piece));
		if (!rc)
			rc = keep_valid(copy, piece, part);
		addr += part * sizeof(*piece);
		count -= part;
	}
	return rc;
}

static int copy_stacks(struct tracer_copy *copy, struct target *target)
{
	const struct tracer_area *area = &copy->area;

	if (area->stacks_top > area->stacks_committed || area->stacks_top > area->stacks_limit ||
		area->stacks_limit > (uint64_t)8 << TRACER_STACK_BITS || area->stacks_top < 8)
		return -ERR_TARGET;
	copy->stacks = malloc((size_t)area->stacks_top);
	if (!copy->stacks)
		return -ERR_NOMEM;
	if (copy_bytes(target, area->stacks, copy->stacks, area->stacks_top))
		return -ERR_READ;
	copy->stacks_bytes = area->stacks_top;
	return 0;
}

/* The tables behind copy->area. */
static int copy_tables(struct tracer_copy *copy, struct target *target)
{
	struct tracer_block *piece = malloc(PIECE_BYTES);
	int rc = piece ? 0 : -ERR_NOMEM;

	if (!rc && !are_sound(copy->area.shards))
		rc = -ERR_TARGET;
	/* A fresh process has committed nothing: its stack area is empty. */
	if (!rc && copy->area.stacks_committed)
		rc = copy_stacks(copy, target);
	for (unsigned i = 0; !rc && i < TRACER_SHARDS; i++)
		rc = copy_shard(copy, target, &copy->area.shards[i], piece);
	free(piece);
	return rc;
}

int tracer_copy_take(
	struct tracer_copy *copy, struct target *target, uint64_t area_addr, struct err *err)
{
	int rc = tracer_area_read(target, area_addr, &copy->area, err);

	free(copy->stacks);
	copy->stacks = NULL;
	copy->stacks_bytes = 0;
	copy->block_count = 0;
	copy->broken_shards = 0;
	if (rc)
		return rc;
	rc = copy_tables(copy, target);
	if (rc == -ERR_NOMEM)
		return err_set(err, ERR_NOMEM, target->name, NULL);
	return rc ? target_err(target, area_addr, "damaged tracer table", err) : 0;
}

static int by_addr(const void *a, const void *b)
{
	const struct tracer_block *x = a, *y = b;

	uint64_t left = tracer_block_addr(x), right = tracer_block_addr(y);

	return left < right ? -1 : left > right;
}

void tracer_copy_sort(struct tracer_copy *copy)
{
	size_t kept = 0;

	if (!copy->block_count)
		return;
	qsort(copy->blocks, copy->block_count, sizeof(*copy->blocks), by_addr);
	for (size_t i = 1; i < copy->block_count; i++) {
		if (tracer_block_addr(&copy->blocks[i]) != tracer_block_addr(&copy->blocks[kept]))
			copy->blocks[++kept] = copy->blocks[i];
	}
	copy->block_count = kept + 1;
}

const struct tracer_block *tracer_copy_find(const struct tracer_copy *copy, uint64_t addr)
{
	struct tracer_block wanted = {.key = addr};

	if (!copy->block_count)
		return NULL;
	return bsearch(&wanted, copy->blocks, copy->block_count, sizeof(wanted), by_addr);
}

uint64_t tracer_copy_heap(const struct tracer_copy *copy, const struct tracer_block *block)
{
	return tracer_heap_handle(&copy->area, tracer_block_heap(block));
}

uint32_t tracer_copy_stack(
	const struct tracer_copy *copy, uint32_t id, uint64_t frames[TRACER_DEPTH_MAX])
{
	uint64_t at = (uint64_t)id * 8;
	struct tracer_stack head;

	if (!id || copy->stacks_bytes < sizeof(head) || at > copy->stacks_bytes - sizeof(head))
		return 0;
	memcpy(&head, copy->stacks + at, sizeof(head));
	at += sizeof(head);
	if (!head.depth || head.depth > TRACER_DEPTH_MAX ||
		head.depth * 8 > copy->stacks_bytes - at)
		return 0;
	memcpy(frames, copy->stacks + at, head.depth * 8);
	return head.depth;
}
