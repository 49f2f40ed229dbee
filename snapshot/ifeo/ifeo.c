#include "snapshot/ifeo/ifeo.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/text.h"
#include "core/dump/kv.h"

#define KEPT_TEXT_MAX 24 /* longer than any number */

/*
 * Switching off clears our bit, deletes a value that became 0, and a key that became empty. That puts
 * back nearly all there can have been before; what it would not, the mark keeps: a value beside the
 * others, so that it goes when they go, and whoever runs hsnap later finds it.
 */
struct mark {
	bool key_was_there; /* without anything in it */
	struct ifeo_value flag, db; /* before */
	uint32_t db_mb; /* that we set; 0: none */
};

static bool is_same(const struct ifeo_value *a, const struct ifeo_value *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == IFEO_TEXT)
		return !strcmp(a->text, b->text);
	return a->kind != IFEO_DWORD || a->number == b->number;
}

/* Whether it can be written into a mark and be read again. */
static bool can_be_kept(const struct ifeo_value *value)
{
	uint32_t number;

	if (value->kind == IFEO_TEXT)
		return ifeo_number(value, &number) && strlen(value->text) <= KEPT_TEXT_MAX;
	return value->kind != IFEO_OTHER;
}

static bool is_empty(const struct ifeo_image *image)
{
	bool empty = !image->has_others;

	for (int i = 0; i < IFEO_NAMES; i++)
		empty = empty && image->values[i].kind == IFEO_NONE;
	return empty;
}

/* ---------------------------------------------------------------- the mark as text */

/* "none", "dword:70", "text:0x00000070" */
static void put_kept(const struct ifeo_value *value, char *text, size_t size)
{
	if (value->kind == IFEO_TEXT)
		snprintf(text, size, "text:%.*s", KEPT_TEXT_MAX, value->text);
	else if (value->kind == IFEO_DWORD)
		snprintf(text, size, "dword:%" PRIX32, value->number);
	else
		snprintf(text, size, "none");
}

static bool take_kept(const char *text, struct ifeo_value *value)
{
	uint64_t number;

	*value = (struct ifeo_value){.kind = IFEO_NONE};
	if (!text)
		return false;
	if (!strncmp(text, "text:", 5) && strlen(text + 5) <= KEPT_TEXT_MAX) {
		value->kind = IFEO_TEXT;
		strcpy(value->text, text + 5);
		return can_be_kept(value);
	}
	if (!strncmp(text, "dword:", 6) && !kv_number(text + 6, 16, &number) &&
		number <= UINT32_MAX) {
		value->kind = IFEO_DWORD;
		value->number = (uint32_t)number;
		return true;
	}
	return !strcmp(text, "none");
}

static void put_mark(const struct mark *mark, struct ifeo_value *value)
{
	char flag[KEPT_TEXT_MAX + 8], db[KEPT_TEXT_MAX + 8];

	put_kept(&mark->flag, flag, sizeof(flag));
	put_kept(&mark->db, db, sizeof(db));
	*value = (struct ifeo_value){.kind = IFEO_TEXT};
	snprintf(value->text, sizeof(value->text), "key=%s flag=%s db=%s set=%" PRIu32,
		mark->key_was_there ? "kept" : "made", flag, db, mark->db_mb);
}

/* False when there is none, or none of ours; then *mark is one that keeps nothing. */
static bool take_mark(const struct ifeo_value *value, struct mark *mark)
{
	struct mark found = {0};
	const char *key;
	struct kv kv;
	bool good;

	*mark = (struct mark){0};
	if (value->kind != IFEO_TEXT)
		return false;
	kv_init(&kv);
	good = !kv_parse(&kv, value->text, strlen(value->text)) && (key = kv_get(&kv, "key")) &&
	       take_kept(kv_get(&kv, "flag"), &found.flag) &&
	       take_kept(kv_get(&kv, "db"), &found.db) && !kv_get_u32(&kv, "set", 10, &found.db_mb);
	if (good) {
		found.key_was_there = !strcmp(key, "kept");
		*mark = found;
	}
	kv_release(&kv);
	return good;
}

/* ---------------------------------------------------------------- plans */

static int leave_alone(
	const char *name, enum ifeo_name which, const struct ifeo_value *value, struct err *err)
{
	return err_set(err, ERR_SYSTEM, name,
		"the value %s of its key under " IFEO_KEY
		" holds %s%.40s%s, which hsnap leaves alone; make it a REG_DWORD, or a text with "
		"0x in front",
		ifeo_names[which], value->kind == IFEO_TEXT ? "the text '" : "something else",
		value->kind == IFEO_TEXT ? value->text : "", value->kind == IFEO_TEXT ? "'" : "");
}

/* Whether off would put things back without a mark. */
static bool needs_mark(const struct mark *mark)
{
	return mark->db_mb || mark->key_was_there || mark->flag.kind == IFEO_TEXT ||
	       (mark->flag.kind == IFEO_DWORD && !mark->flag.number);
}

static int plan_on(const struct ifeo_image *before, uint32_t db_mb, struct ifeo_image *after,
	const char *name, struct err *err)
{
	const struct ifeo_value *flag = &before->values[IFEO_FLAG], *db = &before->values[IFEO_DB];
	struct mark mark;
	uint32_t number = 0;

	if (!can_be_kept(flag))
		return leave_alone(name, IFEO_FLAG, flag, err);
	if (db_mb && !can_be_kept(db))
		return leave_alone(name, IFEO_DB, db, err);
	if (!take_mark(&before->values[IFEO_MARK], &mark)) {
		mark.key_was_there = before->exists && is_empty(before);
		mark.flag = *flag;
		mark.db = *db;
	} else if (db_mb && !mark.db_mb) {
		mark.db = *db;
	}
	if (db_mb) {
		mark.db_mb = db_mb;
		after->values[IFEO_DB] = (struct ifeo_value){.kind = IFEO_DWORD, .number = db_mb};
	}
	ifeo_number(flag, &number);
	after->exists = true;
	after->values[IFEO_FLAG] =
		(struct ifeo_value){.kind = IFEO_DWORD, .number = number | IFEO_UST};
	if (!is_same(flag, &after->values[IFEO_FLAG]) || db_mb) {
		after->values[IFEO_MARK] = (struct ifeo_value){.kind = IFEO_NONE};
		if (needs_mark(&mark))
			put_mark(&mark, &after->values[IFEO_MARK]);
	}
	return 0;
}

/* The flag as it was, when nobody has changed it since; else without our bit. */
static void clear_flag(const struct mark *mark, uint32_t number, struct ifeo_value *flag)
{
	uint32_t before = 0;

	ifeo_number(&mark->flag, &before);
	if (mark->flag.kind != IFEO_NONE && !(before & IFEO_UST) && number == (before | IFEO_UST)) {
		*flag = mark->flag;
		return;
	}
	number &= ~IFEO_UST;
	*flag = (struct ifeo_value){.kind = number ? IFEO_DWORD : IFEO_NONE, .number = number};
}

static int plan_off(const struct ifeo_image *before, struct ifeo_image *after, const char *name,
	struct err *err)
{
	const struct ifeo_value *db = &before->values[IFEO_DB];
	struct mark mark;
	bool is_ours = take_mark(&before->values[IFEO_MARK], &mark), has_flag;
	uint32_t number = 0;

	if (ifeo_may_have_ust(&before->values[IFEO_FLAG]))
		return leave_alone(name, IFEO_FLAG, &before->values[IFEO_FLAG], err);
	has_flag = ifeo_number(&before->values[IFEO_FLAG], &number) && number & IFEO_UST;
	if (!has_flag && !is_ours)
		return 0;
	if (has_flag)
		clear_flag(&mark, number, &after->values[IFEO_FLAG]);
	if (mark.db_mb && db->kind == IFEO_DWORD && db->number == mark.db_mb)
		after->values[IFEO_DB] = mark.db;
	if (is_ours)
		after->values[IFEO_MARK] = (struct ifeo_value){.kind = IFEO_NONE};
	after->exists = !is_empty(after) || mark.key_was_there;
	return 0;
}

int ifeo_plan(const struct ifeo_image *before, const struct ifeo_change *change,
	struct ifeo_image *after, const char *name, struct err *err)
{
	struct ifeo_image planned = *before;
	int rc = 0;

	if (change->on)
		rc = plan_on(before, change->db_mb, &planned, name, err);
	else if (before->exists)
		rc = plan_off(before, &planned, name, err);
	if (!rc)
		*after = planned;
	return rc;
}

/* ---------------------------------------------------------------- making it so */

struct step {
	struct ifeo_image before, after;
};

/* Writes what differs. On the way to ust the mark comes first and the flag last, on the way from it
 * the other way round: whatever happens between two writes, off finds what it needs. */
static int change_view(const struct ifeo_calls *calls, enum ifeo_view view, const char *name,
	const struct ifeo_image *from, const struct ifeo_image *to, struct err *err)
{
	static const enum ifeo_name on[IFEO_NAMES] = {IFEO_MARK, IFEO_DB, IFEO_FLAG};
	static const enum ifeo_name off[IFEO_NAMES] = {IFEO_FLAG, IFEO_DB, IFEO_MARK};
	const enum ifeo_name *order = ifeo_has_ust(to) ? on : off;
	int rc = 0;

	if (to->exists && !from->exists)
		rc = calls->make(calls->ctx, view, name, err);
	for (int i = 0; !rc && i < IFEO_NAMES; i++) {
		const struct ifeo_value *value = &to->values[order[i]];

		if (!is_same(&from->values[order[i]], value))
			rc = calls->write(calls->ctx, view, name, order[i], value, err);
	}
	if (!rc && from->exists && !to->exists)
		rc = calls->remove(calls->ctx, view, name, err);
	return rc;
}

/* Puts a view back, as far as it is not as it was: 0 or an error. */
static int put_back(const struct ifeo_calls *calls, enum ifeo_view view, const char *name,
	const struct ifeo_image *before)
{
	struct ifeo_image now;
	int rc = calls->read(calls->ctx, view, name, &now, NULL);

	return rc ? rc : change_view(calls, view, name, &now, before, NULL);
}

static int fail(const struct ifeo_calls *calls, const char *name, const struct step *steps,
	int failed, int rc, struct err *err)
{
	static const char *const views[IFEO_VIEWS] = {"64-bit", "32-bit"};

	for (int view = failed; view >= 0; view--) {
		if (put_back(calls, (enum ifeo_view)view, name, &steps[view].before) && err) {
			size_t len = strlen(err->detail);

			snprintf(err->detail + len, sizeof(err->detail) - len,
				"%sthe %s view could not be put back as it was", len ? "; " : "",
				views[view]);
		}
	}
	return rc;
}

static int apply(const struct ifeo_calls *calls, const char *name, const struct ifeo_change *change,
	struct err *err)
{
	int views = calls->is_one(calls->ctx) ? 1 : IFEO_VIEWS, rc = 0;
	struct step steps[IFEO_VIEWS] = {0};

	for (int view = 0; !rc && view < views; view++) {
		rc = calls->read(calls->ctx, (enum ifeo_view)view, name, &steps[view].before, err);
		if (!rc)
			rc = ifeo_plan(&steps[view].before, change, &steps[view].after, name, err);
	}
	for (int view = 0; !rc && view < views; view++) {
		rc = change_view(calls, (enum ifeo_view)view, name, &steps[view].before,
			&steps[view].after, err);
		if (rc)
			return fail(calls, name, steps, view, rc, err);
	}
	return rc;
}

/* What one reads in a view must still be there when it writes, or the views end up different. */
int ifeo_apply(const struct ifeo_calls *calls, const char *name, const struct ifeo_change *change,
	struct err *err)
{
	void *held = NULL;
	int rc = calls->lock(calls->ctx, name, &held, err);

	if (rc)
		return rc;
	rc = apply(calls, name, change, err);
	calls->unlock(calls->ctx, held);
	return rc;
}

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
