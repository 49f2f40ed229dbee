/*
 * Rules of the system that keep the tracer out of a process, and alternatives.
 *
 * control_facts_windows.c reads the facts, refusal.c has one table of rules. Certain and dangerous
 * cases are refused before anything is written into the target. Cases that may work are tried, and
 * the rule explains the failure.
 */
#ifndef SNAPSHOT_CONTROL_REFUSAL_H
#define SNAPSHOT_CONTROL_REFUSAL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"

/* Facts about a target, this hsnap and the system. 0 and false mean no, or unknown. Unknown facts
 * refuse nothing. */
struct control_facts {
	uint16_t host_machine; /* PE_MACHINE_* of the processor, not of an emulation */
	uint16_t image_machine; /* of the target's program */
	uint32_t build; /* of Windows; 0 under Wine, too */
	/* Mitigation policies of the target. */
	bool microsoft_signed_only, store_signed_only;
	bool no_dynamic_code;
	bool strict_cfg;
	bool no_children;
	bool is_app_container;
	bool is_protected; /* at any protection level */
	bool has_sessions; /* the next two are known */
	uint32_t session, own_session;
	bool has_integrity; /* the next two are known */
	uint32_t integrity, own_integrity; /* SECURITY_MANDATORY_*_RID */
};

/* Way of the tracer into the target; bits. */
enum refusal_way {
	REFUSAL_RUN = 1, /* by the first thread of a new process */
	REFUSAL_ATTACH = 2, /* by a new thread of a running process */
};

/* Step at which a rule applies; bits. */
enum refusal_step {
	REFUSAL_BEFORE = 1, /* before anything is written into the target */
	REFUSAL_OPEN = 2, /* the process could not be opened */
	REFUSAL_THREAD = 4, /* the process takes no thread */
	REFUSAL_LOAD = 8, /* the thread ran, and the DLL was not loaded */
	REFUSAL_INSTALL = 16, /* the DLL is there, and the hooks could not be installed */
	REFUSAL_CHILDREN = 32, /* --children: worth a warning, never an error */
};

/* Writes the first rule that applies, and the alternative, as one phrase. Returns false if no rule
 * applies. */
bool refusal_find(const struct control_facts *facts, enum refusal_way way, enum refusal_step step,
	char *text, size_t size);

/* Returns 0, or -ERR_CANNOT_TRACE if a rule certainly keeps the tracer out. name: of the target,
 * for messages. */
int refusal_check(
	const struct control_facts *facts, enum refusal_way way, const char *name, struct err *err);

/* Adds the rule that explains a failure to *err, which becomes ERR_CANNOT_TRACE; without a rule,
 * leaves it as it is. Returns -err->code. */
int refusal_explain(const struct control_facts *facts, enum refusal_way way, enum refusal_step step,
	struct err *err);

#endif
