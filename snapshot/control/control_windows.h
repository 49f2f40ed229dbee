/* Programs that hsnap starts or traces: their files, the facts that decide about tracing, and the
 * hsnap of the other bitness. */
#ifndef SNAPSHOT_CONTROL_CONTROL_WINDOWS_H
#define SNAPSHOT_CONTROL_CONTROL_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>
#include <wchar.h>

#include <windows.h>

#include "core/base/err.h"
#include "snapshot/control/control.h"
#include "snapshot/control/refusal.h"

struct spawn;

/* The bitness of this hsnap and of the programs that it can trace. */
#define OUR_BITS ((unsigned)(8 * sizeof(void *)))

/* Returns the PE_MACHINE_* of a program file, or 0 if the file is not an image (for example a
 * script). */
uint16_t control_file_machine(const wchar_t *path);

/*
 * Read facts for the rules. control_facts_of_host() reads the facts that do not depend on a
 * process. control_facts_of_process() reads the facts about `process`, which must have the right
 * PROCESS_QUERY_LIMITED_INFORMATION and, for mitigation policies, PROCESS_QUERY_INFORMATION.
 */
void control_facts_of_host(struct control_facts *facts);
void control_facts_of_process(struct control_facts *facts, HANDLE process);

/* Returns the path of a file next to hsnap, or NULL if the file does not exist. The path has a form
 * that has no length limit. The caller frees the path. */
wchar_t *program_beside(const wchar_t *name);

/* Returns true if path refers to hsnap's own file, even under another name. */
bool program_is_this(const wchar_t *path);

/* Starts the program, suspended. Returns an error if the program could not load the tracer. */
int program_start(const struct program_run *run, struct spawn *spawn, struct err *err);

/* A child process that is waiting to be prepared. The hsnap that follows the parent hands the child
 * over to the hsnap of the other bitness. */
struct handed_child {
	uint32_t pid, tid;
	HANDLE parent; /* with the rights SYNCHRONIZE and PROCESS_QUERY_LIMITED_INFORMATION */
	HANDLE ready; /* event that is set when the child has been prepared or will not be traced */
	HANDLE output_lock; /* mutex for output to the standard streams */
	int64_t until_ms; /* end of the time limit, as os_clock_ms() counts; 0: none */
};

/*
 * Makes the other hsnap follow a child. Sets the event `prepared` when the child may continue.
 * Waits until the child and the other hsnap have ended. Returns 0 and the exit status, after the
 * other hsnap has printed all messages. Returns -ERR_BITS or -ERR_64_BITS if the other hsnap does
 * not exist, -ERR_START or -ERR_NOMEM.
 */
int follow_by_other(const struct handed_child *child, const char *name, HANDLE prepared,
	uint32_t *exit_status, struct err *err);

/* Returns true if a program of the other bitness can run on this system. Wine without a 32-bit
 * ntdll ends 32-bit programs at once, with status 0. */
bool other_bits_can_run(const wchar_t *image);

/* Runs the other hsnap with the given arguments, which are separated by blanks. Returns the same
 * values as run_other_hsnap(). */
int run_other_hsnap_for(
	const char *name, const wchar_t *words, uint32_t *exit_status, struct err *err);

/* Copies the description of the child that was handed over to this hsnap. Returns false if no child
 * was handed over. */
bool follow_child_handed(struct handed_child *child);

#endif
