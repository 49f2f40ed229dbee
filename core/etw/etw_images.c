/* Modules of processes: load times, PDBs and paths. The scan collects the events about images,
 * identities and volumes, which are joined afterwards. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/etw/etw_parts.h"

/* limit for all processes together; real logs contain about 20,000 */
#define IMAGES_MAX ((size_t)1 << 18)
#define VOLUMES_MAX ((size_t)1 << 12)

/* Reads an image event. Versions 2 and 3 have all fields. After the size, version 1 has only the
 * process, and version 0 has nothing. */
static void add_image(struct etw_images *images, const struct etw_event *event)
{
	struct etw_payload from = etw_payload(event);
	struct etw_image image = {.ticks = event->time, .pid = event->pid, .type = event->type};

	image.base = etw_parse_pointer(&from);
	image.bytes = event->version ? etw_parse_pointer(&from) : etw_parse_u32(&from);
	if (event->version)
		image.pid = etw_parse_u32(&from);
	if (event->version >= 2) {
		image.checksum = etw_parse_u32(&from);
		image.timestamp = etw_parse_u32(&from);
		etw_pass(&from, 4);
		etw_parse_pointer(&from); /* skip the preferred base */
		etw_pass(&from, 16);
	}
	if (images->image_count >= IMAGES_MAX) {
		images->dropped_count++;
		return;
	}
	if (from.is_short)
		return;
	image.path = etw_parse_wide(&from, &images->texts);
	array_grow((void **)&images->images, &images->image_cap, images->image_count,
		sizeof(*images->images));
	images->images[images->image_count++] = image;
}

static void add_identity(struct etw_images *images, const struct etw_event *event)
{
	struct etw_payload from = etw_payload(event);
	struct etw_identity identity = {.ticks = event->time};

	identity.base = etw_parse_pointer(&from);
	if (event->type == IMAGE_ID_INFO) {
		etw_parse_pointer(&from);
		identity.pid = etw_parse_u32(&from);
		identity.timestamp = etw_parse_u32(&from);
	} else {
		identity.pid = etw_parse_u32(&from);
		if (from.end - from.at >= 16)
			memcpy(identity.guid, from.at, 16);
		etw_pass(&from, 16);
		identity.age = etw_parse_u32(&from);
		if (!from.is_short)
			identity.pdb = etw_parse_text(&from, &images->texts);
	}
	if (from.is_short || images->identity_count >= IMAGES_MAX)
		return;
	array_grow((void **)&images->identities, &images->identity_cap, images->identity_count,
		sizeof(*images->identities));
	images->identities[images->identity_count++] = identity;
}

static void add_volume(struct etw_images *images, const struct etw_event *event)
{
	struct etw_payload from = etw_payload(event);
	struct etw_volume volume = {.nt = etw_parse_wide(&from, &images->texts)};

	volume.dos = etw_parse_wide(&from, &images->texts);
	if (!*volume.nt || !*volume.dos || images->volume_count >= VOLUMES_MAX)
		return;
	array_grow((void **)&images->volumes, &images->volume_cap, images->volume_count,
		sizeof(*images->volumes));
	images->volumes[images->volume_count++] = volume;
}

void etw_images_add(struct etw_images *images, const struct etw_event *event)
{
	if (event->group == ETW_IMAGE) {
		if ((event->type >= IMAGE_UNLOAD && event->type <= IMAGE_RUNDOWN_END) ||
			event->type == IMAGE_LOAD)
			add_image(images, event);
	} else if (event->group == ETW_IMAGE_ID) {
		if (event->type == IMAGE_ID_INFO || event->type == IMAGE_ID_RSDS)
			add_identity(images, event);
	} else if (event->type == PATHS_VOLUME) {
		add_volume(images, event);
	}
}

void etw_images_release(struct etw_images *images)
{
	free(images->images);
	free(images->identities);
	free(images->volumes);
	arena_release(&images->texts);
}

/* ---------------------------------------------------------------- modules of one process */

const char *etw_images_path(struct etw_images *images, const char *path)
{
	const struct etw_volume *best = NULL;
	size_t best_len = 0;
	struct buf plain;

	for (size_t i = 0; i < images->volume_count; i++) {
		size_t len = strlen(images->volumes[i].nt);

		if (len > best_len && text_begins(path, images->volumes[i].nt)) {
			best = &images->volumes[i];
			best_len = len;
		}
	}
	if (!best)
		return path;
	buf_init(&plain);
	buf_printf(&plain, "%s%s", best->dos, path + best_len);
	path = arena_text(&images->texts, plain.data, plain.len);
	buf_release(&plain);
	return path;
}

static int by_ticks(const void *a, const void *b)
{
	const struct etw_image *x = *(const struct etw_image *const *)a,
			       *y = *(const struct etw_image *const *)b;

	if (x->ticks != y->ticks)
		return x->ticks < y->ticks ? -1 : 1;
	return x < y ? -1 : x > y;
}

static int identity_order(const struct etw_identity *x, const struct etw_identity *y)
{
	const bool x_has = x->pdb != NULL, y_has = y->pdb != NULL;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->base != y->base)
		return x->base < y->base ? -1 : 1;
	if (x_has != y_has)
		return x_has ? 1 : -1;
	return x->ticks < y->ticks ? -1 : x->ticks > y->ticks;
}

static int by_identity(const void *a, const void *b)
{
	return identity_order(a, b);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Returns the identity that belongs to an image's event, or NULL if none was logged for the image's
 * process and base. Windows logs an image and its identity close together. So, of several
 * identities, chooses the one whose event is nearest in time. The identities must be sorted. */
static const struct etw_identity *find_identity(
	const struct etw_images *images, const struct etw_image *image, const char *pdb)
{
	const struct etw_identity wanted = {
		.pid = image->pid, .base = image->base, .ticks = image->ticks, .pdb = pdb};
	const struct etw_identity *best = NULL;
	size_t low = 0, high = images->identity_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (identity_order(&images->identities[middle], &wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = low ? low - 1 : 0; i <= low && i < images->identity_count; i++) {
		const struct etw_identity *one = &images->identities[i];

		if (one->pid == image->pid && one->base == image->base && !one->pdb == !pdb &&
			(!best || distance(one->ticks, image->ticks) <
					  distance(best->ticks, image->ticks)))
			best = one;
	}
	return best;
}

static void identify(
	struct etw_images *images, struct etw_module *found, const struct etw_image *image)
{
	const struct etw_identity *info = find_identity(images, image, NULL);
	const struct etw_identity *pdb = find_identity(images, image, "");
	struct module *module = &found->module;

	if (info && (!module->timestamp || module->timestamp == info->timestamp))
		module->timestamp = info->timestamp;
	module->has_identity = module->timestamp && module->size_bytes;
	if (pdb) {
		const unsigned char *g = pdb->guid;
		char text[40];
		int len = snprintf(text, sizeof(text),
			"%08lX%04X%04X%02X%02X%02X%02X%02X%02X%02X%02X", (unsigned long)etw_u32(g),
			etw_u16(g + 4), etw_u16(g + 6), g[8], g[9], g[10], g[11], g[12], g[13],
			g[14], g[15]);

		module->pdb = (char *)pdb->pdb;
		module->pdb_guid = arena_text(&images->texts, text, (size_t)len);
		module->pdb_age = pdb->age;
	}
}

struct etw_module *etw_images_modules(struct etw_images *images, uint32_t pid, size_t *count)
{
	const struct etw_image **mine =
		xcalloc(images->image_count + 1, sizeof(const struct etw_image *));
	struct etw_module *modules;
	size_t mine_count = 0, found = 0;
	struct table last_at; /* maps a base to the number of the last module there */

	for (size_t i = 0; i < images->image_count; i++) {
		if (images->images[i].pid == pid)
			mine[mine_count++] = &images->images[i];
	}
	qsort(mine, mine_count, sizeof(*mine), by_ticks);
	if (images->identity_count)
		qsort(images->identities, images->identity_count, sizeof(*images->identities),
			by_identity);
	table_init(&last_at);
	modules = xcalloc(mine_count + 1, sizeof(*modules));
	for (size_t i = 0; i < mine_count; i++) {
		const struct etw_image *image = mine[i];
		uint64_t *number = table_find(&last_at, &image->base, sizeof(image->base));
		const bool is_there = number && modules[*number].to == UINT64_MAX;
		struct etw_module made = {.to = UINT64_MAX};

		if (is_there && (image->type == IMAGE_UNLOAD || image->type == IMAGE_LOAD))
			modules[*number].to = image->ticks;
		if (is_there && image->type != IMAGE_LOAD)
			continue;
		/* The first event of this module is a rundown or an unload, so the module was
		 * loaded earlier. If another module was at that base, this one was loaded after the
		 * other was unloaded. */
		made.from = image->type == IMAGE_LOAD ? image->ticks :
			    number		      ? modules[*number].to :
							0;
		if (number)
			*number = found;
		else
			table_add(&last_at, &image->base, sizeof(image->base), found);
		if (image->type == IMAGE_UNLOAD)
			made.to = image->ticks;
		made.module = (struct module){.base = image->base,
			.size_bytes = image->bytes,
			.timestamp = image->timestamp,
			.checksum = image->checksum,
			.path = (char *)etw_images_path(images, image->path)};
		identify(images, &made, image);
		modules[found++] = made;
	}
	free(mine);
	table_release(&last_at);
	*count = found;
	return modules;
}

uint64_t etw_images_identified(const struct etw_images *images)
{
	struct table known;
	uint64_t count = 0;

	table_init(&known);
	for (size_t i = 0; i < images->identity_count; i++) {
		const struct etw_identity *identity = &images->identities[i];
		const uint64_t key[] = {identity->pid, identity->base};

		if (!table_find(&known, key, sizeof(key)))
			table_add(&known, key, sizeof(key), 0);
	}
	for (size_t i = 0; i < images->image_count; i++) {
		const uint64_t key[] = {images->images[i].pid, images->images[i].base};

		count += table_find(&known, key, sizeof(key)) != NULL;
	}
	table_release(&known);
	return count;
}
