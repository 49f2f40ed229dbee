#include "snapshot/ifeo/ifeo.h"

#include <inttypes.h>
#include <string.h>

#include "core/kv.h"
#include "core/text.h"

const char *const ifeo_names[IFEO_NAMES] = {
	[IFEO_FLAG] = "GlobalFlag",
	[IFEO_DB] = "StackTraceDatabaseSizeInMb",
	[IFEO_MARK] = "hsnap",
};

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

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Programs have such names; others never reach the options of an image. */
static bool is_program(const char *name, size_t len)
{
	static const char *const ends[] = {".exe", ".com", ".scr"};

	for (size_t i = 0; len > 4 && i < sizeof(ends) / sizeof(*ends); i++) {
		size_t same = 0;

		while (same < 4 && lower(name[len - 4 + same]) == ends[i][same])
			same++;
		if (same == 4)
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

	if (text[0] == '0' && lower(text[1]) == 'x')
		return digits_number(text + 2, 16, number);
	if (!digits_number(text, 16, &hex) || !digits_number(text, 10, &decimal) || hex != decimal)
		return false;
	*number = hex;
	return true;
}

bool ifeo_may_have_ust(const struct ifeo_value *value)
{
	uint32_t number;

	if (value->kind != IFEO_TEXT || text_number(value->text, &number))
		return false;
	return (digits_number(value->text, 16, &number) && number & IFEO_UST) ||
	       (digits_number(value->text, 10, &number) && number & IFEO_UST);
}

bool ifeo_number(const struct ifeo_value *value, uint32_t *number)
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

	return image->exists && ifeo_number(&image->values[IFEO_FLAG], &number) &&
	       number & IFEO_UST;
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
	else if (ifeo_number(flag, &number))
		rc = describe_flags(text, number);
	else if (ifeo_may_have_ust(flag))
		rc = buf_add_text(text, "a GlobalFlag in digits without 0x, which may be ust");
	else
		rc = buf_add_text(text, "a GlobalFlag that is no number");
	if (!rc && image->exists && db->kind == IFEO_DWORD)
		rc = buf_printf(text, ", database of %" PRIu32 " MB", db->number);
	return rc;
}
