/* Messages for missing rights: one line with the request and the remedy. The codes are HRESULTs:
 * those of facility 7 are Microsoft's "System Error Codes", the others are "Common HRESULT
 * Values". */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "snapshot/live/spawn_windows.h"
#include "snapshot/schedule/scheduler_parts_windows.h"
#include "tests/win/tap.h"

static bool is_one_line(const struct err *err, const char *place, const char *remedy)
{
	char text[1600];

	err_text(err, text, sizeof(text));
	printf("# %s\n", text);
	return !strncmp(text, place, strlen(place)) && strstr(text, remedy) && !strchr(text, '\n');
}

#define ADMIN "; run hsnap as administrator"

static void test_scheduler(void)
{
	static const struct {
		unsigned long hr;
		enum err_code code;
		const char *remedy;
	} answers[] = {
		{0x80070005, ERR_ADMIN, ADMIN}, /* E_ACCESSDENIED */
		{0x800702e4, ERR_ADMIN, ADMIN}, /* 740, ERROR_ELEVATION_REQUIRED */
		{0x80070522, ERR_ADMIN, ADMIN}, /* 1314, ERROR_PRIVILEGE_NOT_HELD */
		{0x80070002, ERR_NO_TASK, "'schtasks /query"}, /* no such file */
		{0x800700b7, ERR_TASK_EXISTS, "--replace"}, /* 183, ERROR_ALREADY_EXISTS */
		{0x80041315, ERR_SYSTEM, "net start Schedule"}, /* SCHED_E_SERVICE_NOT_RUNNING */
		{0x80041322, ERR_SYSTEM, "net start Schedule"}, /* _NOT_AVAILABLE */
		{0x800706ba, ERR_SYSTEM, "net start Schedule"}, /* 1722, RPC_S_SERVER_UNAVAILABLE */
		{0x80004001, ERR_SYSTEM, "--print-xml"}, /* E_NOTIMPL: Wine */
	};

	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
		struct err err = {0};
		int rc = scheduler_fail((HRESULT)answers[i].hr, "app.exe", &err);

		ok(rc == -(int)answers[i].code && err.code == answers[i].code &&
				is_one_line(&err, "app.exe: ", answers[i].remedy),
			"practice 6: an answer of the scheduler");
	}
}

/* Partial success: the task is registered but will not run as intended. */
static void test_warnings(void)
{
	static const struct {
		unsigned long hr;
		const char *remedy; /* NULL: success without a remedy */
	} answers[] = {
		{0, NULL}, {1, NULL}, /* S_FALSE */
		{0x0004131b, "--start"}, /* SCHED_S_SOME_TRIGGERS_FAILED */
		{0x0004131c, "Log on as a batch job"}, /* SCHED_S_BATCH_LOGON_PROBLEM */
	};

	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
		const char *warning = scheduler_warning((HRESULT)answers[i].hr);

		printf("# %08lX\n", answers[i].hr);
		ok(answers[i].remedy ? warning && strstr(warning, answers[i].remedy) : !warning,
			"practice 6: an answer of the scheduler that is no failure");
	}
}

static void test_start(void)
{
	struct err err = {0};
	int rc = spawn_fail(740, "setup.exe", &err);

	ok(rc == -ERR_ELEVATION && is_one_line(&err, "setup.exe: ", ADMIN),
		"practice 6: a program that asks for an administrator");
	rc = spawn_fail(2, "setup.exe", &err);
	ok(rc == -ERR_START && is_one_line(&err, "setup.exe: ", "; check its name"),
		"practice 6: and one that is not there");
}

int main(void)
{
	test_scheduler();
	test_warnings();
	test_start();
	return ok_end();
}
