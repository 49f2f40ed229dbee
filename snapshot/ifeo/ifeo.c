#include "snapshot/ifeo/ifeo.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/text.h"
#include "core/dump/kv.h"

/* FLG_* of phnt's ntexapi.h by the names that gflags gives them; as its documentation lists them. */
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

/* Programs have such names; others never reach the options of an image. */
static bool is_program(const char *name, size_t len)
{
	static const char *const ends[] = {".exe", ".com", ".scr"};

	for (size_t i = 0; len > 4 && i < sizeof(ends) / sizeof(*ends); i++) {
		if (text_same(name + len - 4, 4, ends[i], 4))
			return true;
	}
	return false;
}

/* The length in characters as Windows counts them, of 16 bits; 0: it is no text, or has what no file name has. */
static size_t plain_length(const char *name)
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
	size_t count = plain_length(name), len = strlen(name);

	if (!*name)
		return err_set(err, ERR_IMAGE_NAME, "an empty word", NULL);
	if (!count)
		return err_set(err, ERR_IMAGE_NAME, name,
			"it has a character that file names do not have");
	if (count > IFEO_NAME_MAX)
		return err_set(err, ERR_IMAGE_NAME, name, "it is too long");
	if (name[0] == ' ')
		return err_set(err, ERR_IMAGE_NAME, name, "it starts with a blank");
	if (!is_program(name, len))
		return err_set(err, ERR_IMAGE_NAME, name, "programs end in .exe, .com or .scr");
	return 0;
}

static bool digits_number(const char *digits, unsigned base, uint32_t *number)
{
	uint64_t value;

	if (kv_number(digits, base, &value) || value > UINT32_MAX)
		return false;
	*number = (uint32_t)value;
	return true;
}

/* Without 0x, gflags' readers take digits for hexadecimal and the loader takes them for decimal: text
 * stands for a number when both find the same. */
static bool text_number(const char *text, uint32_t *number)
{
	uint32_t hex, decimal;

	if (text[0] == '0' && text_lower(text[1]) == 'x')
		return digits_number(text + 2, 16, number);
	if (!digits_number(text, 16, &hex) || !digits_number(text, 10, &decimal) || hex != decimal)
		return false;
	*number = hex;
	return true;
}

static bool may_have_ust(const struct ifeo_value *value)
{
	uint32_t number;

	if (value->kind != IFEO_TEXT || text_number(value->text, &number))
		return false;
	return (digits_number(value->text, 16, &number) && number & IFEO_UST) ||
	       (digits_number(value->text, 10, &number) && number & IFEO_UST);
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

	return err_set(err, ERR_SYSTEM, name,
		"the value %s of its key under " IFEO_KEY
		" holds %s%.40s%s, which hsnap leaves alone; make it a REG_DWORD, or a text with "
		"0x in front",
		value_name, text ? "the text '" : "something else", text ? text : "",
		text ? "'" : "");
}

static int plan_on(struct ifeo_image *image, uint32_t db_mb, const char *name, struct err *err)
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

/* A flag of 0 goes, the size of the database, which has no use without ust, and a key that becomes empty. */
static int plan_off(struct ifeo_image *image, const char *name, struct err *err)
{
	struct ifeo_value *flag = &image->values[IFEO_FLAG], *db = &image->values[IFEO_DB];
	uint32_t number = 0;

	if (may_have_ust(flag))
		return leave_alone(name, "GlobalFlag", flag, err);
	if (!ifeo_has_ust(image))
		return 0;
	flag_number(flag, &number);
	number &= ~IFEO_UST;
	*flag = (struct ifeo_value){.kind = number ? IFEO_DWORD : IFEO_NONE, .number = number};
	if (db->kind != IFEO_OTHER)
		*db = (struct ifeo_value){.kind = IFEO_NONE};
	image->exists = number || db->kind != IFEO_NONE || image->has_others;
	return 0;
}

static bool is_same(const struct ifeo_value *a, const struct ifeo_value *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == IFEO_TEXT)
		return !strcmp(a->text, b->text);
	return a->kind != IFEO_DWORD || a->number == b->number;
}

static bool is_changed(const struct ifeo_image *before, const struct ifeo_image *after)
{
	bool is_changed = before->exists != after->exists;

	for (int i = 0; i < IFEO_NAMES; i++)
		is_changed = is_changed || !is_same(&before->values[i], &after->values[i]);
	return is_changed;
}

/* 0: the view is as it was, or is so again. */
static int put_back(const struct ifeo_calls *calls, enum ifeo_view view, const char *name,
	const struct ifeo_image *before)
{
	struct ifeo_image now;
	int rc = calls->read(calls->ctx, view, name, &now, NULL);

	return rc || !is_changed(before, &now) ? rc :
						 calls->write(calls->ctx, view, name, before, NULL);
}

/* Puts back the views up to the one that failed, or adds to the error that one is not as it was. */
static void put_all_back(const struct ifeo_calls *calls, const char *name,
	const struct ifeo_image *before, int failed, struct err *err)
{
	static const char *const views[IFEO_VIEWS] = {"64-bit", "32-bit"};

	for (int view = failed; view >= 0; view--) {
		size_t len = strlen(err->detail);

		if (put_back(calls, (enum ifeo_view)view, name, &before[view]))
			snprintf(err->detail + len, sizeof(err->detail) - len,
				"%sthe %s view could not be put back as it was", len ? "; " : "",
				views[view]);
	}
}

int ifeo_apply(const struct ifeo_calls *calls, const char *name, const struct ifeo_change *change,
	struct err *err)
{
	int rc = 0;
	struct ifeo_image before[IFEO_VIEWS] = {0}, after[IFEO_VIEWS];

	for (int view = 0; !rc && view < IFEO_VIEWS; view++) {
		rc = calls->read(calls->ctx, (enum ifeo_view)view, name, &before[view], err);
		after[view] = before[view];
		if (!rc)
			rc = change->on ? plan_on(&after[view], change->db_mb, name, err) :
					  plan_off(&after[view], name, err);
	}
	for (int view = 0; !rc && view < IFEO_VIEWS; view++) {
		if (!is_changed(&before[view], &after[view]))
			continue;
		rc = calls->write(calls->ctx, (enum ifeo_view)view, name, &after[view], err);
		if (rc)
			put_all_back(calls, name, before, view, err);
	}
	return rc;
}

static int describe_flags(struct buf *text, uint32_t number)
{
	uint32_t known = 0;
	int rc = buf_printf(text, "GlobalFlag %08" PRIX32, number);

	for (size_t i = 0; !rc && i < FLAGS; i++) {
		known |= flags[i].bit;
		if (number & flags[i].bit)
			rc = buf_printf(text, " %s", flags[i].name);
	}
	if (!rc && number & ~known)
		rc = buf_printf(text, " and %" PRIX32, number & ~known);
	return rc;
}

int ifeo_describe(struct buf *text, const struct ifeo_image *image)
{
	const struct ifeo_value *flag = &image->values[IFEO_FLAG], *db = &image->values[IFEO_DB];
	uint32_t number;
	int rc;

	if (!image->exists || flag->kind == IFEO_NONE)
		rc = buf_add_text(text, "no GlobalFlag");
	else if (flag_number(flag, &number))
		rc = describe_flags(text, number);
	else if (may_have_ust(flag))
		rc = buf_add_text(text, "a GlobalFlag in digits without 0x, which may be ust");
	else
		rc = buf_add_text(text, "a GlobalFlag that is no number");
	if (!rc && image->exists && db->kind == IFEO_DWORD)
		rc = buf_printf(text, ", database of %" PRIu32 " MB", db->number);
	return rc;
}
