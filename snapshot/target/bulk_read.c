#include "snapshot/target/bulk_read.h"

#include <stdatomic.h>

#include "core/thread.h"

/* So little that starting threads takes longer. */
#define ALONE_BYTES ((uint64_t)1 << 18)
#define ALONE_PIECES 8

struct bulk {
	struct target *target;
	struct target_piece *pieces;
	size_t count;
	atomic_size_t next;
};

static void read_pieces(void *ctx, unsigned number)
{
	struct bulk *bulk = ctx;
	size_t at;

	(void)number;
	while ((at = atomic_fetch_add(&bulk->next, 1)) < bulk->count) {
		struct target_piece *piece = &bulk->pieces[at];

		piece->rc = piece->addr + piece->len < piece->addr ?
				    -ERR_READ :
				    bulk->target->ops->read(
					    bulk->target, piece->addr, piece->bytes, piece->len);
	}
}

static unsigned thread_count(const struct target *target, size_t count, uint64_t bytes)
{
	unsigned most = target->reader_count ? target->reader_count : 1;

	if (bytes <= ALONE_BYTES && count <= ALONE_PIECES)
		return 1;
	return count < most ? (unsigned)count : most;
}

void target_read_many(struct target *target, struct target_piece *pieces, size_t count)
{
	struct bulk bulk = {.target = target, .pieces = pieces, .count = count};
	uint64_t bytes = 0;

	if (!count)
		return;
	for (size_t i = 0; i < count; i++)
		bytes += pieces[i].len;
	/* Here and not where they are read: several threads do that. */
	target->reads += count;
	target->read_bytes += bytes;
	atomic_init(&bulk.next, 0);
	thread_run(thread_count(target, count, bytes), read_pieces, &bulk);
}
