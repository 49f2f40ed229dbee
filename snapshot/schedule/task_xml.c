/* A task as XML, and its conversion to UTF-16. */
#include "snapshot/schedule/task.h"

#include <string.h>

#include "core/base/text.h"

/*
 * The elements, their order and their types follow Microsoft's documentation "Task Scheduler
 * Schema", pages "Task Scheduler Schema Elements", "taskType Complex Type", "triggerBaseType
 * Complex Type" (a sequence: StartBoundary before Repetition), "repetitionType Complex Type"
 * (Interval from PT1M to P31D), "principalType Complex Type", "settingsType Complex Type" and
 * "execActionType Complex Type". tests/schedule/task.xsd contains the same rules.
 *
 * A repetition without a duration continues forever. The system's account, identified by its SID,
 * needs no kind of logon. For a user, the kind is a logon without a password, whether or not the
 * user is logged on. Priority 5 is normal ("TaskSettings.Priority property"). The default, 7, is
 * lower, which would be bad while the captured process is held. The program is in quotes, because
 * its path may contain blanks. The folder is never in quotes, because quotes would be part of its
 * name. */
static const char form[] =
	"<?xml version=\"1.0\" encoding=\"UTF-16\"?>\n"
	"<Task version=\"1.2\" xmlns=\"http://schemas.microsoft.com/windows/2004/02/mit/task\">\n"
	"  <RegistrationInfo>\n"
	"    <Author>hsnap</Author>\n"
	"    <Description>%s</Description>\n"
	"  </RegistrationInfo>\n"
	"  <Triggers>\n"
	"    <TimeTrigger>\n"
	"      <StartBoundary>%s</StartBoundary>\n"
	"      <Repetition>\n"
	"        <Interval>%s</Interval>\n"
	"      </Repetition>\n"
	"    </TimeTrigger>\n"
	"%s"
	"  </Triggers>\n"
	"  <Principals>\n"
	"    <Principal id=\"Author\">\n"
	"      <UserId>%s</UserId>\n"
	"%s"
	"      <RunLevel>HighestAvailable</RunLevel>\n"
	"    </Principal>\n"
	"  </Principals>\n"
	"  <Settings>\n"
	"    <AllowStartOnDemand>true</AllowStartOnDemand>\n"
	"    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>\n"
	"    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>\n"
	"    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>\n"
	"    <AllowHardTerminate>true</AllowHardTerminate>\n"
	"    <StartWhenAvailable>true</StartWhenAvailable>\n"
	"    <RunOnlyIfNetworkAvailable>false</RunOnlyIfNetworkAvailable>\n"
	"    <WakeToRun>false</WakeToRun>\n"
	"    <Enabled>true</Enabled>\n"
	"    <Hidden>false</Hidden>\n"
	"    <ExecutionTimeLimit>%s</ExecutionTimeLimit>\n"
	"    <Priority>5</Priority>\n"
	"    <RunOnlyIfIdle>false</RunOnlyIfIdle>\n"
	"  </Settings>\n"
	"  <Actions Context=\"Author\">\n"
	"    <Exec>\n"
	"      <Command>&quot;%s&quot;</Command>\n"
	"      <Arguments>%s</Arguments>\n"
	"      <WorkingDirectory>%s</WorkingDirectory>\n"
	"    </Exec>\n"
	"  </Actions>\n"
	"</Task>\n";

/* One minute after the start, all services are available. */
static const char boot_trigger[] = "    <BootTrigger>\n"
				   "      <Delay>PT1M</Delay>\n"
				   "    </BootTrigger>\n";
static const char logon_type[] = "      <LogonType>S4U</LogonType>\n";

static const char *entity_of(char c)
{
	switch (c) {
	case '&': return "&amp;";
	case '<': return "&lt;";
	case '>': return "&gt;";
	case '"': return "&quot;";
	case '\'': return "&apos;";
	default: return NULL;
	}
}

/* Adds text and escapes special characters. XML 1.0 cannot represent most control characters,
 * U+FFFE and U+FFFF. */
static int add_escaped(struct buf *xml, const char *text, struct err *err)
{
	const char *all = text;
	uint32_t code;

	for (size_t len; *text; text += len) {
		const char *entity = entity_of(*text);

		len = text_utf8(text, &code);
		if (!len || text_obeyed(text) || code == 0xfffe || code == 0xffff)
			return err_set(err, ERR_USAGE, all,
				"contains a character that a task cannot have");
		buf_add(xml, entity ? entity : text, entity ? strlen(entity) : len);
	}
	return 0;
}

#define SPAN_BYTES 32

/* Formats whole minutes in a form such as "P1DT12H30M". */
static const char *span_text(int64_t ms, char text[SPAN_BYTES])
{
	int days = (int)(ms / 86400000), hours = (int)(ms / 3600000 % 24),
	    minutes = (int)(ms / 60000 % 60);
	int len = snprintf(text, SPAN_BYTES, "P");

	if (days)
		len += snprintf(text + len, SPAN_BYTES - (size_t)len, "%dD", days);
	if (hours || minutes)
		len += snprintf(text + len, SPAN_BYTES - (size_t)len, "T");
	if (hours)
		len += snprintf(text + len, SPAN_BYTES - (size_t)len, "%dH", hours);
	if (minutes)
		snprintf(text + len, SPAN_BYTES - (size_t)len, "%dM", minutes);
	return text;
}

int task_xml_add(struct buf *xml, const struct task_plan *plan, struct err *err)
{
	enum { DESCRIPTION, START, USER, PROGRAM, ARGUMENTS, HOME, COUNT };
	const char *const texts[COUNT] = {plan->description.data, plan->start.data,
		plan->user ? plan->user : "S-1-5-18", plan->program.data, plan->arguments.data,
		plan->home.data};
	struct buf as_xml[COUNT] = {0};
	char every[SPAN_BYTES], limit[SPAN_BYTES];
	int rc = 0;

	for (size_t i = 0; i < COUNT && !rc; i++)
		rc = add_escaped(&as_xml[i], texts[i], err);
	if (!rc)
		buf_printf(xml, form, as_xml[DESCRIPTION].data, as_xml[START].data,
			span_text(plan->every_ms, every), plan->at_boot ? boot_trigger : "",
			as_xml[USER].data, plan->user ? logon_type : "",
			span_text(plan->limit_ms, limit), as_xml[PROGRAM].data,
			as_xml[ARGUMENTS].data, as_xml[HOME].data);
	for (size_t i = 0; i < COUNT; i++)
		buf_release(&as_xml[i]);
	return rc;
}

static void add_unit(struct buf *bytes, uint32_t unit)
{
	const unsigned char pair[2] = {(unsigned char)unit, (unsigned char)(unit >> 8)};

	buf_add(bytes, pair, sizeof(pair));
}

void task_xml_utf16(struct buf *bytes, const char *text)
{
	uint32_t code;

	add_unit(bytes, 0xfeff);
	for (size_t len; (len = text_utf8(text, &code)); text += len) {
		if (code == '\n')
			add_unit(bytes, '\r');
		if (code >= 0x10000)
			add_unit(bytes, 0xd800 | (code - 0x10000) >> 10);
		add_unit(bytes, code < 0x10000 ? code : 0xdc00 | (code & 0x3ff));
	}
}
