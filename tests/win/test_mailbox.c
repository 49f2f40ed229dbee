/* Shared objects with names can belong to anyone. So marks are read as untrusted data, and a name
 * that is already in use is reported. Prints TAP. */
#include <stdio.h>
#include <string.h>

#include <windows.h>
#include <sddl.h>

#include "snapshot/record/session.h"
#include "tests/win/tap.h"

#define PID 4242u /* no process in this test has this pid */
#define NAME L"Global\\hsnap-recording-4242-"

static bool is_refused(int rc, enum err_code code, const struct err *err)
{
	char text[600];

	err_text(err, text, sizeof(text));
	printf("# %s\n", text);
	return rc == -(int)code;
}

static void test_stranger_was_first(void)
{
	struct mailbox *mailbox;
	struct err err = {0};
	HANDLE taken = CreateFileMappingW(
		INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, 0, 4096, NAME L"letter");

	ok(is_refused(mailbox_new(&mailbox, PID, &err), ERR_BUSY, &err) && !mailbox,
		"a name that is taken: no recording");
	ok(is_refused(mailbox_find(&mailbox, PID, &err), ERR_SYSTEM, &err) && !mailbox,
		"a half of one: no mark is sent");
	CloseHandle(taken);
	taken = CreateEventW(NULL, TRUE, FALSE, NAME L"letter");
	ok(is_refused(mailbox_new(&mailbox, PID, &err), ERR_SYSTEM, &err) && !mailbox,
		"taken by something else: no recording");
	CloseHandle(taken);
}

/* The object denies all access, as another user's recorder would. */
static void test_another_user_records(void)
{
	SECURITY_ATTRIBUTES closed = {.nLength = sizeof(closed)};
	struct mailbox *mailbox;
	struct err err = {0};
	HANDLE taken;

	ConvertStringSecurityDescriptorToSecurityDescriptorW(
		L"D:P", SDDL_REVISION_1, &closed.lpSecurityDescriptor, NULL);
	taken = CreateFileMappingW(
		INVALID_HANDLE_VALUE, &closed, PAGE_READWRITE, 0, 4096, NAME L"letter");
	ok(taken && is_refused(mailbox_new(&mailbox, PID, &err), ERR_BUSY, &err) && !mailbox,
		"another user records it: no recording");
	ok(is_refused(mailbox_find(&mailbox, PID, &err), ERR_ADMIN, &err) && !mailbox,
		"and no mark is sent");
	CloseHandle(taken);
	LocalFree(closed.lpSecurityDescriptor);
	ok(is_refused(mailbox_find(&mailbox, PID, &err), ERR_NOT_RECORDED, &err) && !mailbox,
		"then nobody records it");
}

/* Every byte of the shared memory is set. So a mark exists, and its label has no end. */
static void test_label_without_an_end(void)
{
	char label[MAILBOX_LABEL_BYTES];
	struct mailbox *mailbox;
	struct err err = {0};
	HANDLE section;
	char *view;

	ok(!mailbox_new(&mailbox, PID, &err), "a recording begins");
	section = OpenFileMappingW(FILE_MAP_WRITE, FALSE, NAME L"letter");
	view = MapViewOfFile(section, FILE_MAP_WRITE, 0, 0, 0);
	if (ok(view != NULL, "its memory can be written by the same user"))
		memset(view, 'x', 2 * sizeof(LONG) + MAILBOX_LABEL_BYTES);
	memset(label, 0, sizeof(label));
	ok(mailbox_next(mailbox, label) && strlen(label) == MAILBOX_LABEL_BYTES - 1,
		"a label without an end gets one");
	mailbox_acknowledge(mailbox, false);
	ok(!mailbox_next(mailbox, label), "and is taken once");
	UnmapViewOfFile(view);
	CloseHandle(section);
	mailbox_free(mailbox);
}

int main(void)
{
	test_stranger_was_first();
	test_another_user_records();
	test_label_without_an_end();
	return ok_end();
}
