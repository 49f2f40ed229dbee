#include "snapshot/target/target_memory.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

#define ROOM_BYTES ((size_t)4 << 20) /* of more room, while the target is held */

/* ---------------------------------------------------------------- room */

static int add_room(struct target_copy *copy, size_t bytes)
{
	struct copy_room room = {.cap = bytes};

	if (array_grow((void **)&copy->rooms, &copy->room_cap, copy->room_count, sizeof(room)))
		return -ERR_NOMEM;
	room.bytes = malloc(bytes);
	if (!room.bytes)
		return -ERR_NOMEM;
	copy->rooms[copy->room_count++] = room;
	return 0;
}

/* len bytes, at most BULK_PIECE_BYTES; NULL: out of memory, or past the limit. */
static unsigned char *take_room(struct target_copy *copy, size_t len)
{
	struct copy_room *room;

	if (len > copy->limit_bytes || copy->bytes > copy->limit_bytes - len)
		return NULL;
	while (copy->room < copy->room_count &&
		copy->rooms[copy->room].cap - copy->rooms[copy->room].used < len)
		copy->room++;
	if (copy->room == copy->room_count && add_room(copy, ROOM_BYTES))
		return NULL;
	room = &copy->rooms[copy->room];
	room->used += len;
	copy->bytes += len;
	return room->bytes + room->used - len;
}

int target_copy_reserve(struct target_copy *copy, uint64_t bytes)
{
	uint64_t have = 0;

	for (size_t i = 0; i < copy->room_count; i++)
		have += copy->rooms[i].cap;
	if (bytes <= have)
		return 0;
	bytes -= have;
	if (bytes > copy->limit_bytes || bytes > SIZE_MAX || add_room(copy, (size_t)bytes))
		return -ERR_NOMEM;
	/* Memory that was never written to is not there yet. */
	memset(copy->rooms[copy->room_count - 1].bytes, 1, (size_t)bytes);
	return 0;
}

/* ---------------------------------------------------------------- what was copied */

/* The number of the first piece that ends above addr. */
static size_t piece_above(const struct target_copy *copy, uint64_t addr)
{
	size_t low = 0, high = copy->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (copy->pieces[middle].addr + copy->pieces[middle].len <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static const unsigned char *copy_view(struct target *target, uint64_t addr, size_t *len)
{
	const struct target_copy *copy = target->system;
	size_t at = piece_above(copy, addr);
	const struct target_piece *piece;

	if (at == copy->count || copy->pieces[at].addr > addr)
		return NULL;
	piece = &copy->pieces[at];
	*len = piece->len - (size_t)(addr - piece->addr);
	return piece->bytes + (addr - piece->addr);
}

/* Copies len bytes at addr, none of which is copied yet; at is where their piece belongs. */
static int miss(struct target_copy *copy, size_t at, uint64_t addr, size_t len)
{
	struct target_piece piece = {.addr = addr, .len = len};

	if (copy->is_sealed)
		return -ERR_READ;
	if (len <= BULK_PIECE_BYTES && copy->misses < COPY_MISSES_MAX &&
		!array_grow((void **)&copy->pieces, &copy->cap, copy->count, sizeof(piece)))
		piece.bytes = take_room(copy, len);
	copy->is_short |= !piece.bytes;
	copy->misses++;
	if (!piece.bytes || target_read(copy->from, addr, piece.bytes, len))
		return -ERR_READ;
	memmove(&copy->pieces[at + 1], &copy->pieces[at],
		(copy->count++ - at) * sizeof(*copy->pieces));
	copy->pieces[at] = piece;
	return 0;
}

static int copy_read(struct target *target, uint64_t addr, void *bytes, size_t len)
{
	struct target_copy *copy = target->system;
	unsigned char *to = bytes;

	while (len) {
		size_t at = piece_above(copy, addr), part = len;
		uint64_t next = at < copy->count ? copy->pieces[at].addr : UINT64_MAX;
		const struct target_piece *piece;

		if (next > addr && next - addr < part)
			part = (size_t)(next - addr);
		if (next > addr && miss(copy, at, addr, part))
			return -ERR_READ;
		piece = &copy->pieces[at];
		if (piece->len - (addr - piece->addr) < part)
			part = piece->len - (size_t)(addr - piece->addr);
		memcpy(to, piece->bytes + (addr - piece->addr), part);
		to += part;
		addr += part;
		len -= part;
	}
	return 0;
}

static bool copy_is_alive(struct target *target)
{
	const struct target_copy *copy = target->system;

	return copy->from->ops->is_alive(copy->from);
}

static const struct target_ops copy_ops = {
	.read = copy_read,
	.view = copy_view,
	.is_alive = copy_is_alive,
};

/* ---------------------------------------------------------------- much at once */

/* Adds pieces for addr..end, of which nothing is copied, behind the others. */
static int add_pieces(struct target_copy *copy, size_t *count, uint64_t addr, uint64_t end)
{
	while (addr < end) {
		struct target_piece piece = {.addr = addr, .len = BULK_PIECE_BYTES};

		if (end - addr < piece.len)
			piece.len = (size_t)(end - addr);
		if (array_grow((void **)&copy->pieces, &copy->cap, *count, sizeof(piece)))
			return -ERR_NOMEM;
		piece.bytes = take_room(copy, piece.len);
		if (!piece.bytes)
			return -ERR_NOMEM;
		copy->pieces[(*count)++] = piece;
		addr += piece.len;
	}
	return 0;
}

/* Adds pieces, unread yet, for all that lacks of ranges: *count with them. */
static int add_lacking(struct target_copy *copy, const struct target_ranges *ranges, size_t *count)
{
	size_t at = 0;
	int rc = 0;

	for (size_t i = 0; !rc && i < ranges->count; i++) {
		uint64_t addr = ranges->items[i].addr, end = ranges->items[i].end;

		while (at < copy->count && copy->pieces[at].addr + copy->pieces[at].len <= addr)
			at++;
		for (; !rc && at < copy->count && copy->pieces[at].addr < end; at++) {
			const struct target_piece *piece = &copy->pieces[at];
			uint64_t next = piece->addr + piece->len;

			if (addr < piece->addr)
				rc = add_pieces(copy, count, addr, piece->addr);
			addr = next;
			if (next >= end) /* it may reach into the next range */
				break;
		}
		if (!rc && addr < end)
			rc = add_pieces(copy, count, addr, end);
	}
	return rc;
}

static int by_addr(const void *a, const void *b)
{
	const struct target_piece *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Keeps those of the pieces behind the others that could be read, in their places. */
static void keep_read(struct target_copy *copy, size_t count)
{
	size_t kept = copy->count;

	for (size_t i = copy->count; i < count; i++) {
		if (!copy->pieces[i].rc)
			copy->pieces[kept++] = copy->pieces[i];
	}
	copy->count = kept;
	if (kept)
		qsort(copy->pieces, kept, sizeof(*copy->pieces), by_addr);
}

int target_copy_take(struct target_copy *copy, struct target_ranges *ranges)
{
	size_t count = copy->count;
	int rc;

	if (!ranges->is_settled)
		target_ranges_settle(ranges);
	rc = add_lacking(copy, ranges, &count);
	if (rc || count == copy->count)
		return rc;
	target_read_many(copy->from, copy->pieces + copy->count, count - copy->count);
	keep_read(copy, count);
	return 0;
}

/* ---------------------------------------------------------------- from beginning to end */

void target_copy_init(struct target_copy *copy, struct target *from, uint64_t limit_bytes)
{
	*copy = (struct target_copy){
		.target = *from, .from = from, .limit_bytes = limit_bytes, .is_sealed = true};
	copy->target.ops = &copy_ops;
	copy->target.system = copy;
}

void target_copy_release(struct target_copy *copy)
{
	for (size_t i = 0; i < copy->room_count; i++)
		free(copy->rooms[i].bytes);
	free(copy->rooms);
	free(copy->pieces);
	target_copy_init(copy, copy->from, copy->limit_bytes);
}

void target_copy_open(struct target_copy *copy)
{
	copy->count = 0;
	copy->bytes = 0;
	copy->misses = 0;
	copy->is_short = false;
	copy->is_sealed = false;
	copy->room = 0;
	for (size_t i = 0; i < copy->room_count; i++)
		copy->rooms[i].used = 0;
}

void target_copy_seal(struct target_copy *copy)
{
	copy->is_sealed = true;
}
