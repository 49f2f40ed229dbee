/*
 * Files about a child for hsnap doctor --keep: the truth as text, and a minidump without strings
 * that identify the user. A minidump contains all of the child's memory. The child's environment
 * and current folder do not identify the user. However, the child's path may, and so may data that
 * the system adds. So known strings are overwritten wherever they occur, even if they occur by
 * chance.
 */
#include <inttypes.h>
#include <string.h>

#include "core/base/text.h"
#include "snapshot/doctor/doctor.h"
#include "snapshot/target/peb_layout.h"

#define NAME_UNITS_MIN 3 /* shorter names occur by chance in many other strings */

static uint16_t lower_unit(uint16_t unit)
{
	if (unit == '/')
		return '\\';
	return unit < 0x80 ? (uint16_t)(unsigned char)text_lower((char)unit) : unit;
}

/* Returns true if the unit may be part of a name. */
static bool is_part(const struct doctor_secret *secret, uint16_t unit)
{
	const uint16_t lower = lower_unit(unit);

	return (lower >= 'a' && lower <= 'z') || (unit >= '0' && unit <= '9') || unit >= 0x80 ||
	       (secret->is_path && (unit == '.' || unit == '_' || unit == '-'));
}

static void add_wide(struct doctor_secret *secret, const char *text)
{
	uint32_t code;
	size_t step;

	for (; (step = text_utf8(text, &code)) && secret->count + 2 <= DOCTOR_SECRET_UNITS;
		text += step) {
		if (code > 0xffff) {
			code -= 0x10000;
			secret->units[secret->count++] = (uint16_t)(0xd800 + (code >> 10));
			code = 0xdc00 + (code & 0x3ff);
		}
		secret->units[secret->count++] = lower_unit((uint16_t)code);
	}
}

static void add_bytes(struct doctor_secret *secret, const char *text)
{
	for (; *text && secret->count + 2 <= DOCTOR_SECRET_UNITS; text++)
		secret->units[secret->count++] = lower_unit((unsigned char)*text);
}

/* Returns the unit at offset `at`, or 0 outside the bytes. */
static uint16_t unit_at(const unsigned char *bytes, size_t len, size_t at, size_t width)
{
	if (at > len || len - at < width)
		return 0;
	return (uint16_t)(bytes[at] | (width == 2 ? bytes[at + 1] << 8 : 0));
}

static bool is_at(
	const struct doctor_secret *secret, const unsigned char *bytes, size_t len, size_t at)
{
	const size_t width = secret->width, end = at + secret->count * width;

	if (end > len)
		return false;
	for (size_t i = 0; i < secret->count; i++) {
		if (lower_unit(unit_at(bytes, len, at + i * width, width)) != secret->units[i])
			return false;
	}
	/* If the secret was truncated, more text may follow. */
	return (secret->count + 2 > DOCTOR_SECRET_UNITS ||
		       !is_part(secret, unit_at(bytes, len, end, width))) &&
	       (secret->is_path || at < width ||
		       !is_part(secret, unit_at(bytes, len, at - width, width)));
}

/* Overwrites a secret, except for the separators of a path. */
static void overwrite(const struct doctor_secret *secret, unsigned char *bytes)
{
	for (size_t i = 0; i < secret->count; i++) {
		unsigned char *unit = bytes + i * secret->width;

		if (secret->units[i] != '\\')
			*unit = 'x';
		if (secret->width == 2)
			unit[1] = 0;
	}
}

size_t doctor_blank(const struct doctor_secrets *secrets, unsigned char *bytes, size_t len)
{
	bool is_first[256] = {false}; /* possible first bytes of secrets */
	size_t places = 0;

	for (size_t i = 0; i < secrets->count; i++) {
		const unsigned char first = (unsigned char)secrets->list[i].units[0];

		is_first[first] = is_first[(unsigned char)text_upper((char)first)] = true;
		is_first['/'] |= first == '\\';
	}
	for (size_t at = 0; at < len; at++) {
		for (size_t i = 0; is_first[bytes[at]] && i < secrets->count; i++) {
			if (!is_at(&secrets->list[i], bytes, len, at))
				continue;
			overwrite(&secrets->list[i], bytes + at);
			places++;
		}
	}
	return places;
}

static void add_secret(struct doctor_secrets *secrets, const char *text, bool is_path, size_t width)
{
	struct doctor_secret *secret = &secrets->list[secrets->count];
	struct doctor_secrets alone = {.count = 1};
	unsigned char system[sizeof(secrets->system)];
	size_t len = strlen(secrets->system);

	if (secrets->count == DOCTOR_SECRETS)
		return;
	*secret = (struct doctor_secret){.width = width, .is_path = is_path};
	(width == 2 ? add_wide : add_bytes)(secret, text);
	while (is_path && secret->count && secret->units[secret->count - 1] == '\\')
		secret->count--;
	if (secret->count < NAME_UNITS_MIN)
		return;
	/* Modules are recognized by the system's folder, so its components must remain. */
	memcpy(system, secrets->system, len);
	alone.list[0] = *secret;
	alone.list[0].width = 1;
	if (!doctor_blank(&alone, system, len))
		secrets->count++;
}

void doctor_secrets_add(struct doctor_secrets *secrets, const char *text, bool is_path)
{
	/* Windows may use the volume's name instead of the drive. */
	if (is_path && *text && text[1] == ':')
		text += 2;
	add_secret(secrets, text, is_path, 2);
	if (is_path)
		add_secret(secrets, text, true, 1);
}

static const char *heap_kind(struct target *target, uint64_t addr)
{
	uint32_t signature = 0;

	target_u32(target, addr + NT_HEAP_SIGNATURE_AT(target->bits), &signature);
	if (signature == SEGMENT_HEAP_SIGNATURE)
		return "segment";
	if (signature == NT_HEAP_SIGNATURE)
		return target->is_wine ? "wine" : "nt";
	return "unknown";
}

static void add_range(struct buf *text, const char *what, const struct doctor_range *range)
{
	buf_printf(text, "%s %" PRIX64 " %" PRIX64 "\n", what, range->from, range->to);
}

static void add_block(
	struct buf *text, const struct doctor_truth *truth, const struct doctor_block *block)
{
	const uint64_t heap = truth->heaps[block->heap];

	if (block->is_freed) {
		buf_printf(text, "freed %" PRIX64 " %" PRIX64 "\n", heap, block->addr);
		return;
	}
	buf_printf(text, "block %" PRIX64 " %" PRIX64 " %" PRIu64 " - - %u", heap, block->addr,
		block->requested_bytes, block->site);
	if (block->was_bytes)
		buf_printf(text, "|%d", DOCTOR_RESIZE_SITE);
	buf_add_text(text, "\n");
}

void doctor_truth_text(
	struct buf *text, const struct doctor_truth *truth, struct target *target, uint32_t flags)
{
	uint64_t bytes = 0;
	uint32_t count = 0;

	buf_printf(text, "process pid=%" PRIu32 " bits=%u build=%" PRIu32 " flags=%" PRIX32 "\n",
		target->pid, target->bits, target->os_build, flags);
	add_range(text, "image", &truth->image);
	add_range(text, "outer", &truth->outer);
	for (int i = 0; i <= DOCTOR_RESIZE_SITE; i++) {
		buf_printf(text, "site %d", i);
		add_range(text, "", &truth->sites[i]);
	}
	for (uint32_t i = 0; i < truth->listed_count; i++)
		buf_printf(text, "heap %" PRIX64 " %s\n", truth->listed[i],
			heap_kind(target, truth->listed[i]));
	for (uint32_t i = 0; i < truth->block_count; i++) {
		add_block(text, truth, &truth->blocks[i]);
		count += !truth->blocks[i].is_freed;
		bytes += truth->blocks[i].is_freed ? 0 : truth->blocks[i].requested_bytes;
	}
	buf_printf(text, "total %" PRIu32 " %" PRIu64 " -\n", count, bytes);
}

void doctor_keep_reason(struct doctor_keep *keep, const char *state, unsigned bits, const char *why)
{
	buf_printf(&keep->machine, "%s-%u is not kept: %s\n", state, bits, why);
}
