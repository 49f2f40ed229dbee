/* The rules that keep the tracer out of a process: one table, sorted by rank, with messages and
 * sources. */
#include "snapshot/control/refusal.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/pe/pe.h"

/* first build of Windows 8; since this build, a process can start threads in other sessions */
#define FIRST_BUILD_ACROSS 9200u
#define INTEGRITY_HIGH 0x3000u /* SECURITY_MANDATORY_HIGH_RID: the level of an elevated prompt */
#define BOTH (REFUSAL_RUN | REFUSAL_ATTACH)
#define BY_UST "'hsnap ust on IMAGE' needs no code in it"
#define BY_UST_OR_READING "'hsnap ust on IMAGE' and snapshots with -p may work"

static bool is_arm64_host(const struct control_facts *facts)
{
	return facts->host_machine == PE_MACHINE_ARM64;
}

static bool is_arm64_image(const struct control_facts *facts)
{
	return facts->image_machine == PE_MACHINE_ARM64;
}

static bool is_protected(const struct control_facts *facts)
{
	return facts->is_protected;
}

static bool is_microsoft_signed_only(const struct control_facts *facts)
{
	return facts->microsoft_signed_only;
}

static bool is_store_signed_only(const struct control_facts *facts)
{
	return facts->store_signed_only;
}

static bool is_in_other_session(const struct control_facts *facts)
{
	return facts->has_sessions && facts->session != facts->own_session;
}

static bool is_out_of_reach(const struct control_facts *facts)
{
	return facts->build && facts->build < FIRST_BUILD_ACROSS && is_in_other_session(facts);
}

static bool is_strict_cfg(const struct control_facts *facts)
{
	return facts->strict_cfg;
}

static bool is_app_container(const struct control_facts *facts)
{
	return facts->is_app_container;
}

static bool is_above(const struct control_facts *facts)
{
	return facts->has_integrity && facts->integrity > facts->own_integrity &&
	       facts->own_integrity < INTEGRITY_HIGH;
}

static bool is_without_new_code(const struct control_facts *facts)
{
	return facts->no_dynamic_code;
}

static bool is_without_children(const struct control_facts *facts)
{
	return facts->no_children;
}

static bool is_any(const struct control_facts *facts)
{
	(void)facts;
	return true;
}

/* Sorted by rank: only the first matching rule is reported. */
static const struct rule {
	bool (*applies)(const struct control_facts *facts);
	unsigned ways, steps; /* bits of enum refusal_way and enum refusal_step */
	const char *text; /* a printf format that may use the target's session */
} rules[] = {
	/* On such systems ntdll's functions are ARM64EC code, even in emulated processes: Microsoft
	 * Learn, "Arm64EC ABI". */
	{is_arm64_host, BOTH, REFUSAL_BEFORE,
		"the tracer does not run on ARM64 processors yet; " BY_UST_OR_READING},
	{is_arm64_image, BOTH, REFUSAL_BEFORE,
		"a program for ARM64 processors, on which the tracer does not run "
		"yet; " BY_UST_OR_READING},
	/* Microsoft Learn, "Process Security and Access Rights", "Protected Processes". */
	{is_protected, BOTH, REFUSAL_BEFORE | REFUSAL_OPEN,
		"a protected process, which other programs cannot read or change; an ETW log made "
		"with wpr may have its blocks, see hdiff-etw(7)"},
	/* Microsoft Learn, PROCESS_MITIGATION_BINARY_SIGNATURE_POLICY. */
	{is_microsoft_signed_only, BOTH, REFUSAL_BEFORE,
		"its ProcessSignaturePolicy allows only DLLs signed by Microsoft; " BY_UST},
	{is_store_signed_only, BOTH, REFUSAL_BEFORE,
		"its ProcessSignaturePolicy allows only DLLs signed by Microsoft or the Windows "
		"Store; " BY_UST},
	/* Microsoft Learn, CreateRemoteThread: "fails if the target process is in a different
	 * session". */
	{is_out_of_reach, REFUSAL_ATTACH, REFUSAL_BEFORE,
		"in session %" PRIu32 ", and before Windows 8 no thread can be started in "
		"another session; start hsnap there"},
	{is_in_other_session, REFUSAL_ATTACH, REFUSAL_THREAD,
		"the process runs in session %" PRIu32 "; start hsnap in that session"},
	/* Microsoft Learn, OpenProcess and "Mandatory Integrity Control" (no write-up). */
	{is_above, REFUSAL_ATTACH, REFUSAL_OPEN,
		"with a higher integrity level than hsnap; run hsnap from an elevated "
		"prompt"},
	/* Microsoft Learn, PROCESS_MITIGATION_CONTROL_FLOW_GUARD_POLICY. */
	{is_strict_cfg, BOTH, REFUSAL_BEFORE,
		"its ProcessControlFlowGuardPolicy is strict: it allows only DLLs built with "
		"Control Flow Guard, which the tracer is not; " BY_UST},
	/* Microsoft Learn, "AppContainer isolation". S-1-15-2-1 is ALL APPLICATION PACKAGES. */
	{is_app_container, BOTH, REFUSAL_LOAD,
		"in an AppContainer, which may not read hsnap's folder; allow it with "
		"'icacls FOLDER /grant *S-1-15-2-1:(OI)(CI)RX'"},
	/* Microsoft Learn, PROCESS_MITIGATION_DYNAMIC_CODE_POLICY. It is not known whether this
	 * policy also forbids changes from outside. */
	{is_without_new_code, BOTH, REFUSAL_INSTALL,
		"its ProcessDynamicCodePolicy forbids new code, which may be the reason; " BY_UST},
	{is_any, BOTH, REFUSAL_LOAD,
		"an antivirus or a policy, such as WDAC or Smart App Control, may forbid "
		"it; " BY_UST},
	/* Microsoft Learn, PROCESS_MITIGATION_CHILD_PROCESS_POLICY. */
	{is_without_children, REFUSAL_RUN, REFUSAL_CHILDREN,
		"its ProcessChildProcessPolicy forbids child processes, so --children has none to "
		"trace"},
};

bool refusal_find(const struct control_facts *facts, enum refusal_way way, enum refusal_step step,
	char *text, size_t size)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		const struct rule *rule = &rules[i];

		if (rule->ways & way && rule->steps & step && rule->applies(facts)) {
			snprintf(text, size, rule->text, facts->session);
			return true;
		}
	}
	return false;
}

int refusal_check(
	const struct control_facts *facts, enum refusal_way way, const char *name, struct err *err)
{
	char text[sizeof(err->detail)];

	if (!refusal_find(facts, way, REFUSAL_BEFORE, text, sizeof(text)))
		return 0;
	return err_set(err, ERR_CANNOT_TRACE, name, "%s", text);
}

int refusal_explain(const struct control_facts *facts, enum refusal_way way, enum refusal_step step,
	struct err *err)
{
	const struct err failed = *err;
	char text[sizeof(err->detail)];

	if (!refusal_find(facts, way, step, text, sizeof(text)))
		return -(int)failed.code;
	return err_set(err, ERR_CANNOT_TRACE, failed.place, "%s%s%s", failed.detail,
		failed.detail[0] ? ": " : "", text);
}
