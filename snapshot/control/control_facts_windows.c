/*
 * Reads the facts for the rules in refusal.c, using documented functions. Functions that Windows 7
 * lacks are looked up at run time. In Wine, some functions succeed without writing a result, so
 * each result is preset to "no".
 */
#include <stdlib.h>

#include <windows.h>

#include "core/base/os.h"
#include "core/base/os_windows.h"
#include "core/pe/pe.h"
#include "snapshot/control/control_windows.h"

#define PATH_UNITS 32768

/* PROCESS_MITIGATION_POLICY and the flags in its structs. Source: Microsoft Learn, winnt.h. */
#define POLICY_DYNAMIC_CODE 2
#define POLICY_CFG 7
#define POLICY_SIGNATURE 8
#define POLICY_CHILDREN 13
#define PROHIBIT_DYNAMIC_CODE 1u
#define CFG_STRICT 4u
#define MICROSOFT_SIGNED_ONLY 1u
#define STORE_SIGNED_ONLY 2u
#define SIGNED_OPT_IN 4u /* signed by Microsoft, the Store or WHQL */
#define NO_CHILDREN 1u

/* PROCESS_INFORMATION_CLASS and PROCESS_PROTECTION_LEVEL_INFORMATION. Source: Microsoft Learn,
 * processthreadsapi.h. */
#define CLASS_PROTECTION_LEVEL 7
#define LEVEL_NONE 0xfffffffeu

typedef BOOL(WINAPI *machines_fn)(HANDLE process, USHORT *process_machine, USHORT *native_machine);
typedef BOOL(WINAPI *policy_fn)(HANDLE process, int policy, void *flags, SIZE_T bytes);
typedef BOOL(WINAPI *information_fn)(HANDLE process, int info_class, void *answer, DWORD bytes);

static void *kernel32(const char *name)
{
	return (void *)GetProcAddress(GetModuleHandleW(L"kernel32.dll"), name);
}

static int read_file(void *ctx, uint64_t offset, void *bytes, size_t len)
{
	return os_read_at(ctx, offset, bytes, len);
}

uint16_t control_file_machine(const wchar_t *path)
{
	char *text = wide_to_utf8(path);
	struct pe_image *image = malloc(sizeof(*image));
	struct os_file file;
	uint16_t machine = 0;

	if (text && image && !os_open(&file, text, NULL)) {
		struct pe_source source = {.read = read_file, .ctx = &file};

		if (!pe_read_headers(&source, image))
			machine = image->machine;
		os_close(&file);
	}
	free(image);
	free(text);
	return machine;
}

static uint16_t image_machine(HANDLE process)
{
	wchar_t *path = malloc(PATH_UNITS * sizeof(*path));
	DWORD units = PATH_UNITS;
	uint16_t machine = 0;

	if (path && QueryFullProcessImageNameW(process, 0, path, &units))
		machine = control_file_machine(path);
	free(path);
	return machine;
}

static uint32_t policy(HANDLE process, int which)
{
	policy_fn get = (policy_fn)kernel32("GetProcessMitigationPolicy");
	DWORD flags = 0;

	return get && get(process, which, &flags, sizeof(flags)) ? flags : 0;
}

static void read_policies(struct control_facts *facts, HANDLE process)
{
	uint32_t signature = policy(process, POLICY_SIGNATURE);

	facts->microsoft_signed_only = signature & MICROSOFT_SIGNED_ONLY;
	facts->store_signed_only = signature & (STORE_SIGNED_ONLY | SIGNED_OPT_IN);
	facts->no_dynamic_code = policy(process, POLICY_DYNAMIC_CODE) & PROHIBIT_DYNAMIC_CODE;
	facts->strict_cfg = policy(process, POLICY_CFG) & CFG_STRICT;
	facts->no_children = policy(process, POLICY_CHILDREN) & NO_CHILDREN;
}

static bool is_protected(HANDLE process)
{
	information_fn get = (information_fn)kernel32("GetProcessInformation");
	DWORD level = LEVEL_NONE;

	return get && get(process, CLASS_PROTECTION_LEVEL, &level, sizeof(level)) &&
	       level != LEVEL_NONE;
}

/* Reads a process's integrity level. Returns false if the level is not known. */
static bool read_integrity(HANDLE token, uint32_t *integrity)
{
	union {
		TOKEN_MANDATORY_LABEL label;
		char room[sizeof(TOKEN_MANDATORY_LABEL) + SECURITY_MAX_SID_SIZE];
	} answer;
	DWORD bytes;
	PSID sid;

	if (!GetTokenInformation(token, TokenIntegrityLevel, &answer, sizeof(answer), &bytes))
		return false;
	sid = answer.label.Label.Sid;
	if (!IsValidSid(sid) || !*GetSidSubAuthorityCount(sid))
		return false;
	*integrity = *GetSidSubAuthority(sid, *GetSidSubAuthorityCount(sid) - 1u);
	return true;
}

static void read_tokens(struct control_facts *facts, HANDLE process)
{
	HANDLE token = NULL, own = NULL;
	DWORD is_app_container = 0, bytes;

	if (OpenProcessToken(process, TOKEN_QUERY, &token)) {
		facts->is_app_container =
			GetTokenInformation(token, TokenIsAppContainer, &is_app_container,
				sizeof(is_app_container), &bytes) &&
			is_app_container;
		facts->has_integrity = read_integrity(token, &facts->integrity) &&
				       OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &own) &&
				       read_integrity(own, &facts->own_integrity);
	}
	if (token)
		CloseHandle(token);
	if (own)
		CloseHandle(own);
}

void control_facts_of_host(struct control_facts *facts)
{
	machines_fn get = (machines_fn)kernel32("IsWow64Process2");
	USHORT process_machine, host_machine;

	*facts = (struct control_facts){.build = windows_build()};
	if (get && get(GetCurrentProcess(), &process_machine, &host_machine))
		facts->host_machine = host_machine;
}

void control_facts_of_process(struct control_facts *facts, HANDLE process)
{
	DWORD session, own_session;

	control_facts_of_host(facts);
	facts->image_machine = image_machine(process);
	read_policies(facts, process);
	facts->is_protected = is_protected(process);
	facts->has_sessions = ProcessIdToSessionId(GetProcessId(process), &session) &&
			      ProcessIdToSessionId(GetCurrentProcessId(), &own_session);
	if (facts->has_sessions) {
		facts->session = session;
		facts->own_session = own_session;
	}
	read_tokens(facts, process);
}
