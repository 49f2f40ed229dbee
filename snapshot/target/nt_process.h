/*
 * What Windows keeps about a process in its environment block (PEB): its heaps, its global flags, its
 * build. A 32-bit process on 64-bit Windows has two, each with heaps of its own.
 */
#ifndef SNAPSHOT_TARGET_NT_PROCESS_H
#define SNAPSHOT_TARGET_NT_PROCESS_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "snapshot/target/target.h"
#include "snapshot/target/target_memory.h"

#define HEAPS_MAX 65536 /* in one process; more is a broken list */
#define NT_MODULES_MAX 16384
#define NT_PATHS_BYTES ((size_t)1 << 24) /* of all modules; no more are read */
#define NT_FLAG_UST 0x1000u /* FLG_USER_STACK_TRACE_DB */
#define NT_FLAG_HPA 0x2000000u /* FLG_HEAP_PAGE_ALLOCS */

struct nt_process {
	unsigned bits;
	uint64_t peb;
	uint32_t global_flag; /* PEB.NtGlobalFlag */
	uint32_t os_major, os_minor, os_build; /* as the PEB says; 0 under Wine before its start */
	/* In the PEB's order, each once; the process heap first. Owned. */
	uint64_t *heaps;
	size_t heap_count;
	bool is_heap_list_cut; /* it could not be read to its end */
	bool is_heap_twice; /* it names one heap twice, where another should be */
};

/* Reads a PEB. Returns 0; -ERR_GONE, -ERR_TARGET (not readable, or no heap yet), -ERR_NOMEM. */
int nt_process_read(struct nt_process *process, struct memory *memory, uint64_t peb, unsigned bits,
	struct err *err);
void nt_process_release(struct nt_process *process);

/*
 * Adds the modules of a process, or of one half of it, as its loader lists them: base, size, and a path, which is "?" and
 * the base where it cannot be read. Those that lie where there is one already are left out. 0; -ERR_READ: there is no list
 * yet, or it cannot be read to its end, since it is being changed or damaged; then none is added.
 */
int nt_modules_read(struct memory *memory, uint64_t peb, unsigned bits, struct snapshot *snapshot);

/* The flags that the process, or the 64-bit part of a 32-bit one, was started with; those that cannot
 * be read are 0. */
uint32_t nt_global_flag(struct target *target);

/* What the process was started with, as UTF-8 and hostile; the caller frees it. NULL: it cannot be read. */
char *nt_command_line(struct target *target);

#endif
