/* Planning of changes to an image's global flags, and the names of the flags. Only values that
 * hsnap understands are changed. */
#include "snapshot/ifeo/ifeo.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/text.h"
#include "core/dump/kv.h"

/* FLG_* of phnt's ntexapi.h, with the names from the documentation of gflags. */
static const struct {
	uint32_t bit;
	const char *name;
} flags[] = {
	{0x00000001, "soe"},
	{0x00000002, "sls"},
	{0x00000004, "dic"},
	{0x00000008, "shg"},
	{0x00000010, "htc"},
	{0x00000020, "hfc"},
	{0x00000040, "hpc"},
	{0x00000080, "hvc"},
	{0x00000100, "vrf"},
	{0x00000400, "ptg"},
	{0x00000800, "htg"},
	{IFEO_UST, "ust"},
	{0x00002000, "kst"},
	{0x00004000, "otl"},
	{0x00008000, "htd"},
	{0x00010000, "dse"},
	{0x00020000, "d32"},
	{0x00040000, "ksl"},
	{0x00080000, "dps"},
	{0x00100000, "scb"},
	{0x00200000, "dhc"},
	{0x00400000, "ece"},
	{0x00800000, "eel"},
	{0x01000000, "eot"},
	{0x02000000, "hpa"},
	{0x08000000, "ddp"},
	{0x10000000, "cse"},
	{0x20000000, "ltd"},
	{0x40000000, "bhd"},
	{0x80000000, "dpd"},
};

#define FLAGS (sizeof(flags) / sizeof(*flags))

/* Returns true if the name has the extension of a program. */
static bool is_program(const char *name, size_t len)
{
	static const char *const ends[] = {".exe", ".com", ".scr"};

	for (size_t i = 0; len > 4 && i < sizeof(ends) / sizeof(*ends); i++) {
		if (text_same(name + len - 4, 4, ends[i], 4))
			return true;
	}
	return false;
}

/* Returns the length of a name in UTF-16 units. Returns 0 if the name is not UTF-8, or contains a
 * character that file names cannot contain. */
static size_t name_units(const char *name)
{
	size_t count = 0, bytes;
	uint32_t code;

	for (; *name; name += bytes, count += code > 0xffff ? 2 : 1) {
		bytes = text_utf8(name, &code);
		if (!bytes || text_obeyed(name) || strchr("\\/:*?\"<>|", *name))
			return 0;
	}
	return count;
}

int ifeo_check_name(const char *name, struct err *err)
{
	size_t count = name_units(name), len = strlen(name);

	if (!*name)
		return err_set(err, ERR_IMAGE_NAME, "an empty name", NULL);
	if (!count)
		return err_set(err, ERR_IMAGE_NAME, name,
			"contains a character that file names cannot have");
	if (count > IFEO_NAME_MAX)
		return err_set(err, ERR_IMAGE_NAME, name, "too long");
	if (name[0] == ' ')
		return err_set(err, ERR_IMAGE_NAME, name, "starts with a space");
	if (!is_program(name, len))
		return err_set(err, ERR_IMAGE_NAME, name, "programs end in .exe, .com or .scr");
	return 0;
}

/* Parses a number in the form that gflags writes. Some readers parse a number without 0x as
 * hexadecimal, others as decimal, so such numbers are refused. */
static bool text_number(const char *text, uint32_t *number)
{
	uint64_t value;

	if (text[0] != '0' || text_lower(text[1]) != 'x' || kv_number(text + 2, 16, &value) ||
		value > UINT32_MAX)
		return false;
	*number = (uint32_t)value;
	return true;
}

static bool flag_number(const struct ifeo_value *value, uint32_t *number)
{
	if (value->kind == IFEO_TEXT)
		return text_number(value->text, number);
	if (value->kind == IFEO_DWORD)
		*number = value->number;
	return value->kind == IFEO_DWORD;
}

bool ifeo_has_ust(const struct ifeo_image *image)
{
	uint32_t number;

	return image->exists && flag_number(&image->values[IFEO_FLAG], &number) &&
	       number & IFEO_UST;
}

static int leave_alone(
	const char *name, const char *value_name, const struct ifeo_value *value, struct err *err)
{
	const char *text = value->kind == IFEO_TEXT ? value->text : NULL;

	return err_set(err, ERR_NOT_CHANGED, name,
		"the value %s of its key under " IFEO_KEY
		" holds %s%.40s%s, which hsnap leaves alone; make it a REG_DWORD, or a text that "
		"starts with 0x",
		value_name, text ? "the text '" : "something else", text ? text : "",
		text ? "'" : "");
}

static int switch_on(struct ifeo_image *image, uint32_t db_mb, const char *name, struct err *err)
{
	struct ifeo_value *flag = &image->values[IFEO_FLAG], *db = &image->values[IFEO_DB];
	uint32_t number = 0;

	if (flag->kind != IFEO_NONE && !flag_number(flag, &number))
		return leave_alone(name, "GlobalFlag", flag, err);
	if (db_mb && db->kind == IFEO_OTHER)
		return leave_alone(name, "StackTraceDatabaseSizeInMb", db, err);
	*flag = (struct ifeo_value){.kind = IFEO_DWORD, .number = number | IFEO_UST};
	if (db_mb)
		*db = (struct ifeo_value){.kind = IFEO_DWORD, .number = db_mb};
	image->exists = true;
	return 0;
}

/* Clears the flag, and removes the GlobalFlag value if it becomes 0. Also removes the database's
 * size, which is useless without ust, and the key if it is then empty. */
static int switch_off(struct ifeo_image *image, const char *name, struct err *err)
{
	struct ifeo_value *flag = &image->values[IFEO_FLAG], *db = &image->values[IFEO_DB];
	uint32_t number = 0;

	if (flag->kind != IFEO_NONE && !flag_number(flag, &number))
		return leave_alone(name, "GlobalFlag", flag, err);
	if (!(number & IFEO_UST))
		return 0;
	number &= ~IFEO_UST;
	*flag = (struct ifeo_value){.kind = number ? IFEO_DWORD : IFEO_NONE, .number = number};
	if (db->kind != IFEO_OTHER)
		*db = (struct ifeo_value){.kind = IFEO_NONE};
	image->exists = number || db->kind != IFEO_NONE || image->has_others;
	return 0;
}

int ifeo_plan(struct ifeo_image *image, const char *name, const struct ifeo_change *change,
	struct err *err)
{
	return change->on ? switch_on(image, change->db_mb, name, err) :
			    switch_off(image, name, err);
}

static bool is_same(const struct ifeo_value *a, const struct ifeo_value *b)
{
	return a->kind == b->kind && (a->kind != IFEO_TEXT || !strcmp(a->text, b->text)) &&
	       (a->kind != IFEO_DWORD || a->number == b->number);
}

bool ifeo_is_same(const struct ifeo_image *a, const struct ifeo_image *b)
{
	return a->exists == b->exists && is_same(&a->values[IFEO_FLAG], &b->values[IFEO_FLAG]) &&
	       is_same(&a->values[IFEO_DB], &b->values[IFEO_DB]);
}

static void describe_flags(struct buf *text, uint32_t number)
{
	uint32_t known = 0;

	buf_printf(text, "GlobalFlag %08" PRIX32, number);
	for (size_t i = 0; i < FLAGS; i++) {
		known |= flags[i].bit;
		if (number & flags[i].bit)
			buf_printf(text, " %s", flags[i].name);
	}
	if (number & ~known)
		buf_printf(text, " and %" PRIX32, number & ~known);
}

void ifeo_describe(struct buf *text, const struct ifeo_image *image)
{
	const struct ifeo_value *flag = &image->values[IFEO_FLAG], *db = &image->values[IFEO_DB];
	uint32_t number;

	if (!image->exists || flag->kind == IFEO_NONE)
		buf_add_text(text, "no GlobalFlag");
	else if (flag_number(flag, &number))
		describe_flags(text, number);
	else
		buf_add_text(text, "a GlobalFlag that is not a number");
	if (image->exists && db->kind == IFEO_DWORD)
		buf_printf(text, ", database of %" PRIu32 " MB", db->number);
}
