/*
 * Rules of the system that keep the tracer out of a process, and the alternatives that the user
 * has.
 *
 * control_facts_windows.c reads the facts; refusal.c has a single table of rules. If a rule makes
 * it certain that the attempt would fail or do harm, hsnap refuses before it writes anything into
 * the target. In uncertain cases, hsnap makes the attempt. If it fails, the rule explains the
 * failure.
 */
#ifndef SNAPSHOT_CONTROL_REFUSAL_H
#define SNAPSHOT_CONTROL_REFUSAL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"

/* Facts about a target, this hsnap and the system. A field that is 0 or false stands for "no" or
 * "not known". So an unknown fact never causes a refusal. */
struct control_facts {
	uint16_t host_machine; /* PE_MACHINE_* of the physical processor, not of an emulation */
	uint16_t image_machine; /* machine type of the target's program */
	uint32_t build; /* Windows build; 0 in Wine */
	/* Mitigation policies of the target. */
	bool microsoft_signed_only, store_signed_only;
	bool no_dynamic_code;
	bool strict_cfg;
	bool no_children;
	bool is_app_container;
	bool is_protected; /* the process is protected, at any level */
	bool has_sessions; /* the next two fields are known */
	uint32_t session, own_session;
	bool has_integrity; /* the next two fields are known */
	uint32_t integrity, own_integrity; /* SECURITY_MANDATORY_*_RID */
};

/* Ways of loading the tracer into the target; bits. */
enum refusal_way {
	REFUSAL_RUN = 1, /* loaded by the first thread of a new process */
	REFUSAL_ATTACH = 2, /* loaded by a new thread of a running process */
};

/* Steps to which a rule applies; bits. */
enum refusal_step {
	REFUSAL_BEFORE = 1, /* before anything is written into the target */
	REFUSAL_OPEN = 2, /* the process could not be opened */
	REFUSAL_THREAD = 4, /* no thread can be created in the process */
	REFUSAL_LOAD = 8, /* the thread ran, but the DLL was not loaded */
	REFUSAL_INSTALL = 16, /* the DLL is loaded, but the hooks could not be installed */
	REFUSAL_CHILDREN = 32, /* --children: causes a warning, never an error */
};

/* Writes the first matching rule and its alternative, as one phrase. Returns false if no rule
 * matches. */
bool refusal_find(const struct control_facts *facts, enum refusal_way way, enum refusal_step step,
	char *text, size_t size);

/* Returns 0, or -ERR_CANNOT_TRACE if a rule certainly keeps the tracer out. `name` is the target's
 * name in messages. */
int refusal_check(
	const struct control_facts *facts, enum refusal_way way, const char *name, struct err *err);

/* Adds the rule that explains a failure to `*err`, and changes the error to ERR_CANNOT_TRACE.
 * Leaves `*err` unchanged if no rule matches. Returns -err->code. */
int refusal_explain(const struct control_facts *facts, enum refusal_way way, enum refusal_step step,
	struct err *err);

#endif
