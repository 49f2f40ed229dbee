/* The mailbox of a recorded process: a named section with room for one mark, two events, and a
 * mutex for the senders. */
#include "snapshot/record/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <windows.h>

#include "core/base/memory.h"
#include "core/base/os_windows.h"
#include "snapshot/live/live_windows.h"

#define PATIENCE_MS 10000

/* The section. It contains one mark at a time. */
struct letter {
	volatile LONG is_sent; /* set by the sender, cleared by the recorder */
	volatile LONG is_refused; /* the recorder's answer: the recording has ended */
	char label[MAILBOX_LABEL_BYTES];
};

struct mailbox {
	/* `stop` and `taken` are events; `turn` is the mutex of the senders */
	HANDLE section, stop, taken, turn;
	struct letter *letter;
	char name[40]; /* name of the process, for messages */
};

static int fail(const struct mailbox *mailbox, DWORD code, struct err *err)
{
	char text[200];

	return err_set(
		err, ERR_SYSTEM, mailbox->name, "%s", windows_error(code, text, sizeof(text)));
}

void mailbox_free(struct mailbox *mailbox)
{
	HANDLE handles[4];

	if (!mailbox)
		return;
	memcpy(handles, (HANDLE[]){mailbox->section, mailbox->stop, mailbox->taken, mailbox->turn},
		sizeof(handles));
	if (mailbox->letter)
		UnmapViewOfFile(mailbox->letter);
	for (size_t i = 0; i < 4; i++) {
		if (handles[i])
			CloseHandle(handles[i]);
	}
	free(mailbox);
}

/* Creates the name of an object. `space` is the namespace, or empty for names that only one session
 * sees. */
static const wchar_t *name_of(
	wchar_t name[60], const wchar_t *space, uint32_t pid, const wchar_t *part)
{
	_snwprintf(name, 60, L"%lshsnap-recording-%lu-%ls", space, (unsigned long)pid, part);
	return name;
}

static HANDLE make_section(const wchar_t *full, void *rights)
{
	return CreateFileMappingW(
		INVALID_HANDLE_VALUE, rights, PAGE_READWRITE, 0, sizeof(struct letter), full);
}

static HANDLE find_section(const wchar_t *full, void *unused)
{
	(void)unused;
	return OpenFileMappingW(FILE_MAP_WRITE, FALSE, full);
}

static struct mailbox *new_mailbox(uint32_t pid)
{
	struct mailbox *mailbox = xcalloc(1, sizeof(*mailbox));

	snprintf(mailbox->name, sizeof(mailbox->name), "pid %lu", (unsigned long)pid);
	return mailbox;
}

static int map(struct mailbox *mailbox, struct err *err)
{
	if (mailbox->section)
		mailbox->letter = MapViewOfFile(
			mailbox->section, FILE_MAP_WRITE, 0, 0, sizeof(*mailbox->letter));
	return mailbox->letter && mailbox->stop && mailbox->taken && mailbox->turn ?
		       0 :
		       fail(mailbox, GetLastError(), err);
}

int mailbox_new(struct mailbox **made, uint32_t pid, struct err *err)
{
	struct mailbox *mailbox = new_mailbox(pid);
	SECURITY_ATTRIBUTES rights;
	const wchar_t *space;
	wchar_t name[60];
	DWORD code;
	int rc = 0;

	shared_name_rights(&rights);
	mailbox->section =
		shared_name_make(name_of(name, L"", pid, L"letter"), make_section, &rights, &space);
	code = GetLastError();
	if (mailbox->section ? code == ERROR_ALREADY_EXISTS : code == ERROR_ACCESS_DENIED)
		rc = err_set(err, ERR_BUSY, mailbox->name, "another hsnap records it");
	else if (!mailbox->section)
		rc = fail(mailbox, code, err);
	if (!rc) {
		mailbox->stop =
			CreateEventW(&rights, TRUE, FALSE, name_of(name, space, pid, L"stop"));
		mailbox->taken =
			CreateEventW(&rights, FALSE, FALSE, name_of(name, space, pid, L"taken"));
		mailbox->turn = CreateMutexW(&rights, FALSE, name_of(name, space, pid, L"senders"));
		rc = map(mailbox, err);
	}
	LocalFree(rights.lpSecurityDescriptor);
	*made = rc ? NULL : mailbox;
	if (rc)
		mailbox_free(mailbox);
	return rc;
}

int mailbox_find(struct mailbox **found, uint32_t pid, struct err *err)
{
	struct mailbox *mailbox = new_mailbox(pid);
	const wchar_t *space;
	wchar_t name[60];
	DWORD code;
	int rc = 0;

	mailbox->section =
		shared_name_find(name_of(name, L"", pid, L"letter"), find_section, NULL, &space);
	code = GetLastError();
	if (!mailbox->section && code == ERROR_FILE_NOT_FOUND)
		rc = err_set(err, ERR_NOT_RECORDED, mailbox->name, NULL);
	else if (!mailbox->section && code == ERROR_ACCESS_DENIED)
		rc = err_set(err, ERR_ADMIN, mailbox->name, "another user records it");
	else if (!mailbox->section)
		rc = fail(mailbox, code, err);
	if (!rc) {
		mailbox->stop =
			OpenEventW(EVENT_MODIFY_STATE, FALSE, name_of(name, space, pid, L"stop"));
		mailbox->taken =
			OpenEventW(SYNCHRONIZE, FALSE, name_of(name, space, pid, L"taken"));
		mailbox->turn =
			OpenMutexW(SYNCHRONIZE, FALSE, name_of(name, space, pid, L"senders"));
		rc = map(mailbox, err);
	}
	*found = rc ? NULL : mailbox;
	if (rc)
		mailbox_free(mailbox);
	return rc;
}

int mailbox_mark(struct mailbox *mailbox, const char *label, struct err *err)
{
	bool is_taken;
	int rc = 0;

	if (!*label || strlen(label) >= sizeof(mailbox->letter->label))
		return err_set(err, ERR_USAGE, mailbox->name, "a label has 1 to %d bytes",
			MAILBOX_LABEL_BYTES - 1);
	if (WaitForSingleObject(mailbox->turn, PATIENCE_MS) == WAIT_TIMEOUT)
		return err_set(err, ERR_BUSY, mailbox->name, "its recorder does not answer");
	/* Clear the answer to an earlier mark whose sender stopped waiting. */
	WaitForSingleObject(mailbox->taken, 0);
	strcpy(mailbox->letter->label, label);
	InterlockedExchange(&mailbox->letter->is_sent, 1);
	is_taken = WaitForSingleObject(mailbox->taken, PATIENCE_MS) == WAIT_OBJECT_0;
	if (is_taken && mailbox->letter->is_refused)
		rc = err_set(err, ERR_NOT_RECORDED, mailbox->name, "its recording is over");
	else if (!is_taken)
		rc = err_set(err, ERR_BUSY, mailbox->name, "its recorder does not answer");
	ReleaseMutex(mailbox->turn);
	return rc;
}

int mailbox_stop(struct mailbox *mailbox, struct err *err)
{
	return SetEvent(mailbox->stop) ? 0 : fail(mailbox, GetLastError(), err);
}

bool mailbox_next(struct mailbox *mailbox, char label[MAILBOX_LABEL_BYTES])
{
	if (!mailbox->letter->is_sent)
		return false;
	memcpy(label, mailbox->letter->label, MAILBOX_LABEL_BYTES - 1);
	label[MAILBOX_LABEL_BYTES - 1] = '\0';
	return true;
}

void mailbox_acknowledge(struct mailbox *mailbox, bool is_refused)
{
	InterlockedExchange(&mailbox->letter->is_refused, is_refused);
	InterlockedExchange(&mailbox->letter->is_sent, 0);
	SetEvent(mailbox->taken);
}

bool mailbox_is_stopped(const struct mailbox *mailbox)
{
	return WaitForSingleObject(mailbox->stop, 0) == WAIT_OBJECT_0;
}
