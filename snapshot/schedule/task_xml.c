#include "snapshot/schedule/task.h"

#include <string.h>

#include "core/base/text.h"

/* As in an XML parser's default: what may stand between two tags, and in quotes. */
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

/* XML 1.0 has no way to write most control characters, and neither U+FFFE nor U+FFFF. */
static bool is_fit(const char *text, uint32_t code)
{
	return !text_obeyed(text) && code != 0xfffe && code != 0xffff;
}

static int add_escaped(struct buf *xml, const char *text, struct err *err)
{
	const char *all = text;
	uint32_t code;
	int rc = 0;

	while (*text && !rc) {
		size_t len = text_utf8(text, &code);
		const char *entity = entity_of(*text);

		if (!len || !is_fit(text, code))
			return err_set(
				err, ERR_USAGE, all, "it has a character that a task cannot have");
		rc = entity ? buf_add_text(xml, entity) : buf_add(xml, text, len);
		text += len;
	}
	return rc ? err_set(err, ERR_NOMEM, NULL, NULL) : 0;
}

/* One element with nothing but text in it, on a line of its own. */
static int add_text(
	struct buf *xml, const char *indent, const char *name, const char *text, struct err *err)
{
	int rc = buf_printf(xml, "%s<%s>", indent, name);

	if (rc)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	rc = add_escaped(xml, text, err);
	if (!rc && buf_printf(xml, "</%s>\n", name))
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	return rc;
}

static int add_span(
	struct buf *xml, const char *indent, const char *name, int64_t ms, struct err *err)
{
	struct buf text;
	int rc;

	buf_init(&text);
	rc = iso_duration_add(&text, ms) ? err_set(err, ERR_NOMEM, NULL, NULL) :
					   add_text(xml, indent, name, text.data, err);
	buf_release(&text);
	return rc;
}

/* Text of ours, as it is. */
static int add_fixed(struct buf *xml, const char *text, struct err *err)
{
	return buf_add_text(xml, text) ? err_set(err, ERR_NOMEM, NULL, NULL) : 0;
}

static int add_registration(struct buf *xml, const struct scheduled_task *task, struct err *err)
{
	int rc = add_fixed(xml,
		"  <RegistrationInfo>\n"
		"    <Author>hsnap</Author>\n",
		err);

	if (!rc)
		rc = add_text(xml, "    ", "Description", task->description, err);
	return rc ? rc : add_fixed(xml, "  </RegistrationInfo>\n", err);
}

/* A repetition without a duration goes on for ever. A minute after the start services are there. */
static int add_triggers(struct buf *xml, const struct scheduled_task *task, struct err *err)
{
	int rc = add_fixed(xml,
		"  <Triggers>\n"
		"    <TimeTrigger>\n",
		err);

	if (!rc)
		rc = add_text(xml, "      ", "StartBoundary", task->start, err);
	if (!rc)
		rc = add_fixed(xml, "      <Repetition>\n", err);
	if (!rc)
		rc = add_span(xml, "        ", "Interval", task->every_ms, err);
	if (!rc)
		rc = add_fixed(xml,
			"      </Repetition>\n"
			"    </TimeTrigger>\n",
			err);
	if (!rc && task->at_boot)
		rc = add_fixed(xml,
			"    <BootTrigger>\n"
			"      <Delay>PT1M</Delay>\n"
			"    </BootTrigger>\n",
			err);
	return rc ? rc : add_fixed(xml, "  </Triggers>\n", err);
}

/* The system's account, by its SID, needs no way to log on; a user's is one without a password, whether
 * somebody is logged on or not. */
static int add_principal(struct buf *xml, const struct scheduled_task *task, struct err *err)
{
	int rc = add_fixed(xml,
		"  <Principals>\n"
		"    <Principal id=\"Author\">\n",
		err);

	if (!rc)
		rc = add_text(xml, "      ", "UserId", task->user ? task->user : "S-1-5-18", err);
	if (!rc && task->user)
		rc = add_fixed(xml, "      <LogonType>S4U</LogonType>\n", err);
	return rc ? rc :
		    add_fixed(xml,
			    "      <RunLevel>HighestAvailable</RunLevel>\n"
			    "    </Principal>\n"
			    "  </Principals>\n",
			    err);
}

/* Priority 5 is the normal one; the default, 7, is below it, and the process that is looked at may be held
 * meanwhile. */
static int add_settings(struct buf *xml, const struct scheduled_task *task, struct err *err)
{
	int rc = add_fixed(xml,
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
		"    <Hidden>false</Hidden>\n",
		err);

	if (!rc)
		rc = add_span(xml, "    ", "ExecutionTimeLimit", task->limit_ms, err);
	return rc ? rc :
		    add_fixed(xml,
			    "    <Priority>5</Priority>\n"
			    "    <RunOnlyIfIdle>false</RunOnlyIfIdle>\n"
			    "  </Settings>\n",
			    err);
}

/* The program in quotes, for its path may have blanks; the folder never, there they would be part of it. */
static int add_action(struct buf *xml, const struct scheduled_task *task, struct err *err)
{
	struct buf program;
	int rc = add_fixed(xml,
		"  <Actions Context=\"Author\">\n"
		"    <Exec>\n",
		err);

	buf_init(&program);
	if (!rc && buf_printf(&program, "\"%s\"", task->program))
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	if (!rc)
		rc = add_text(xml, "      ", "Command", program.data, err);
	if (!rc)
		rc = add_text(xml, "      ", "Arguments", task->arguments, err);
	if (!rc)
		rc = add_text(xml, "      ", "WorkingDirectory", task->folder, err);
	buf_release(&program);
	return rc ? rc :
		    add_fixed(xml,
			    "    </Exec>\n"
			    "  </Actions>\n",
			    err);
}

int task_xml_add(struct buf *xml, const struct scheduled_task *task, struct err *err)
{
	int rc = add_fixed(xml,
		"<?xml version=\"1.0\" encoding=\"UTF-16\"?>\n"
		"<Task version=\"1.2\" "
		"xmlns=\"http://schemas.microsoft.com/windows/2004/02/mit/task\">\n",
		err);

	if (!rc)
		rc = add_registration(xml, task, err);
	if (!rc)
		rc = add_triggers(xml, task, err);
	if (!rc)
		rc = add_principal(xml, task, err);
	if (!rc)
		rc = add_settings(xml, task, err);
	if (!rc)
		rc = add_action(xml, task, err);
	return rc ? rc : add_fixed(xml, "</Task>\n", err);
}

static int add_unit(struct buf *bytes, uint32_t unit)
{
	const unsigned char pair[2] = {(unsigned char)unit, (unsigned char)(unit >> 8)};

	return buf_add(bytes, pair, sizeof(pair));
}

static int add_code(struct buf *bytes, uint32_t code)
{
	int rc;

	if (code == '\n' && (rc = add_unit(bytes, '\r')))
		return rc;
	if (code < 0x10000)
		return add_unit(bytes, code);
	rc = add_unit(bytes, 0xd800 | (code - 0x10000) >> 10);
	return rc ? rc : add_unit(bytes, 0xdc00 | (code & 0x3ff));
}

int task_xml_utf16(struct buf *bytes, const char *text)
{
	uint32_t code;
	int rc = add_unit(bytes, 0xfeff);

	while (*text && !rc) {
		size_t len = text_utf8(text, &code);

		rc = len ? add_code(bytes, code) : -ERR_USAGE;
		text += len;
	}
	return rc;
}
