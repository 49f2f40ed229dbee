#include "tests/unit/t.h"

#include "snapshot/control/refusal.h"

#define UST "'hsnap ust on IMAGE' needs no code in it"

/* Returns the facts of a usual machine. A test changes one of them. */
static struct control_facts usual(void)
{
	return (struct control_facts){.host_machine = 0x8664,
		.image_machine = 0x8664,
		.build = 26100,
		.has_sessions = true,
		.session = 1,
		.own_session = 1,
		.has_integrity = true,
		.integrity = 0x2000,
		.own_integrity = 0x2000};
}

static void check_line(struct control_facts facts, enum refusal_way way, const char *line)
{
	struct err err = {0};
	char text[1600];

	assert_int_equal(refusal_check(&facts, way, "pid 12", &err), -ERR_CANNOT_TRACE);
	assert_string_equal(err_text(&err, text, sizeof(text)), line);
}

static void check_explained(
	struct control_facts facts, enum refusal_way way, enum refusal_step step, const char *line)
{
	struct err err;
	char text[1600];

	assert_int_equal(refusal_check(&facts, way, "pid 12", &err), 0);
	if (step == REFUSAL_OPEN)
		err_set(&err, ERR_RIGHTS, "pid 12", NULL);
	else
		err_set(&err, ERR_INJECT, "pid 12", "it failed");
	assert_int_equal(refusal_explain(&facts, way, step, &err), -ERR_CANNOT_TRACE);
	assert_string_equal(err_text(&err, text, sizeof(text)), line);
}

static void check_unexplained(
	struct control_facts facts, enum refusal_way way, enum refusal_step step)
{
	struct err err;

	err_set(&err, ERR_RIGHTS, "pid 12", "as it was");
	assert_int_equal(refusal_explain(&facts, way, step, &err), -ERR_RIGHTS);
	assert_string_equal(err.detail, "as it was");
}

TEST(usual_process_is_traced)
{
	const struct control_facts unknown = {0}, known = usual();
	struct err err;
	char text[600];

	for (unsigned way = REFUSAL_RUN; way <= REFUSAL_ATTACH; way++) {
		assert_int_equal(refusal_check(&unknown, way, "pid 12", &err), 0);
		assert_int_equal(refusal_check(&known, way, "pid 12", &err), 0);
		check_unexplained(unknown, way, REFUSAL_OPEN);
		check_unexplained(known, way, REFUSAL_OPEN);
		check_unexplained(known, way, REFUSAL_THREAD);
		check_unexplained(known, way, REFUSAL_INSTALL);
		assert_false(refusal_find(&known, way, REFUSAL_CHILDREN, text, sizeof(text)));
	}
}

TEST(arm64_is_refused)
{
	struct control_facts facts = usual();

	facts.image_machine = 0xaa64;
	for (unsigned way = REFUSAL_RUN; way <= REFUSAL_ATTACH; way++)
		check_line(facts, way,
			"pid 12: cannot be traced (a program for ARM64 processors, on which the "
			"tracer does not run yet; 'hsnap ust on IMAGE' and snapshots with -p may "
			"work)");
}

/* Emulated programs are refused too: their ntdll has different code. */
TEST(arm64_host_is_refused)
{
	static const uint16_t machines[] = {0, 0x14c, 0x8664, 0xaa64};
	struct control_facts facts = usual();

	facts.host_machine = 0xaa64;
	for (size_t i = 0; i < sizeof(machines) / sizeof(*machines); i++) {
		facts.image_machine = machines[i];
		for (unsigned way = REFUSAL_RUN; way <= REFUSAL_ATTACH; way++)
			check_line(facts, way,
				"pid 12: cannot be traced (the tracer does not run on ARM64 "
				"processors yet; 'hsnap ust on IMAGE' and snapshots with -p may "
				"work)");
	}
}

TEST(protected_process_is_refused)
{
	static const char line[] =
		"pid 12: cannot be traced (a protected process, which other programs cannot read "
		"or change; an ETW log made with wpr may have its blocks, see hdiff-etw(7))";
	struct control_facts facts = usual();
	struct err err;
	char text[1600];

	facts.is_protected = true;
	check_line(facts, REFUSAL_RUN, line);
	check_line(facts, REFUSAL_ATTACH, line);
	err_set(&err, ERR_RIGHTS, "pid 12", NULL);
	assert_int_equal(
		refusal_explain(&facts, REFUSAL_ATTACH, REFUSAL_OPEN, &err), -ERR_CANNOT_TRACE);
	assert_string_equal(err_text(&err, text, sizeof(text)), line);
}

TEST(signature_policy_is_refused)
{
	struct control_facts facts = usual();

	facts.store_signed_only = true;
	check_line(facts, REFUSAL_RUN,
		"pid 12: cannot be traced (its ProcessSignaturePolicy allows only DLLs signed by "
		"Microsoft or the Windows Store; " UST ")");
	facts.microsoft_signed_only = true;
	check_line(facts, REFUSAL_ATTACH,
		"pid 12: cannot be traced (its ProcessSignaturePolicy allows only DLLs signed by "
		"Microsoft; " UST ")");
}

TEST(strict_control_flow_guard_is_refused)
{
	struct control_facts facts = usual();

	facts.strict_cfg = true;
	check_line(facts, REFUSAL_RUN,
		"pid 12: cannot be traced (its ProcessControlFlowGuardPolicy is strict: it allows "
		"only DLLs built with Control Flow Guard, which the tracer is not; " UST ")");
}

/* Windows 7 cannot start a thread in another session. On later or unknown versions hsnap tries
 * it. */
TEST(other_session)
{
	struct control_facts facts = usual();
	struct err err;

	facts.session = 3;
	facts.build = 7601;
	check_line(facts, REFUSAL_ATTACH,
		"pid 12: cannot be traced (in session 3, and before Windows 8 no thread can be "
		"started in another session; start hsnap there)");
	assert_int_equal(refusal_check(&facts, REFUSAL_RUN, "pid 12", &err), 0);
	facts.build = 9200;
	check_explained(facts, REFUSAL_ATTACH, REFUSAL_THREAD,
		"pid 12: cannot be traced (it failed: the process runs in session 3; start hsnap "
		"in that session)");
	facts.build = 0;
	assert_int_equal(refusal_check(&facts, REFUSAL_ATTACH, "pid 12", &err), 0);
	facts.build = 7601;
	facts.has_sessions = false;
	assert_int_equal(refusal_check(&facts, REFUSAL_ATTACH, "pid 12", &err), 0);
}

TEST(higher_integrity_explains_denial)
{
	struct control_facts facts = usual();

	facts.integrity = 0x3000;
	check_explained(facts, REFUSAL_ATTACH, REFUSAL_OPEN,
		"pid 12: cannot be traced (with a higher integrity level than hsnap; run hsnap "
		"from an elevated prompt)");
	/* An elevated prompt would not help. */
	facts.integrity = 0x4000;
	facts.own_integrity = 0x3000;
	check_unexplained(facts, REFUSAL_ATTACH, REFUSAL_OPEN);
	facts.own_integrity = 0x1000;
	facts.has_integrity = false;
	check_unexplained(facts, REFUSAL_ATTACH, REFUSAL_OPEN);
}

TEST(policies_explain_failure)
{
	struct control_facts facts;

	facts = usual();
	facts.is_app_container = true;
	check_explained(facts, REFUSAL_ATTACH, REFUSAL_LOAD,
		"pid 12: cannot be traced (it failed: in an AppContainer, which may not read "
		"hsnap's folder; allow it with 'icacls FOLDER /grant *S-1-15-2-1:(OI)(CI)RX')");
	facts = usual();
	facts.no_dynamic_code = true;
	check_explained(facts, REFUSAL_ATTACH, REFUSAL_INSTALL,
		"pid 12: cannot be traced (it failed: its ProcessDynamicCodePolicy forbids new "
		"code, which may be the reason; " UST ")");
	check_unexplained(facts, REFUSAL_ATTACH, REFUSAL_THREAD);
	check_explained(usual(), REFUSAL_RUN, REFUSAL_LOAD,
		"pid 12: cannot be traced (it failed: an antivirus or a policy, such as WDAC or "
		"Smart App Control, may forbid it; " UST ")");
}

TEST(child_policy_is_no_error)
{
	struct control_facts facts = usual();
	struct err err;
	char text[600];

	facts.no_children = true;
	assert_int_equal(refusal_check(&facts, REFUSAL_RUN, "pid 12", &err), 0);
	assert_int_equal(refusal_check(&facts, REFUSAL_ATTACH, "pid 12", &err), 0);
	assert_false(refusal_find(&facts, REFUSAL_ATTACH, REFUSAL_CHILDREN, text, sizeof(text)));
	assert_true(refusal_find(&facts, REFUSAL_RUN, REFUSAL_CHILDREN, text, sizeof(text)));
	assert_string_equal(text,
		"its ProcessChildProcessPolicy forbids child processes, so --children has none to "
		"trace");
}
