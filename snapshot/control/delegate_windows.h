/*
 * Programs of the other bitness: this hsnap cannot trace them, another one can.
 */
#ifndef SNAPSHOT_DELEGATE_WINDOWS_H
#define SNAPSHOT_DELEGATE_WINDOWS_H

#include <stdint.h>

#include "core/err.h"

#define HSNAP_32 "hsnap32.exe"

/*
 * Starts the 32-bit hsnap that lies beside this one with the same arguments, and waits for its end. It
 * has this one's streams, and Ctrl-C is left to it; it ends when this one is ended. name is what turned
 * out to be 32-bit, for messages. Returns 0 and its exit status: it has said all there is to say.
 * -ERR_BITS: there is none; -ERR_64_BITS: this is a 32-bit one; -ERR_START, -ERR_NOMEM.
 */
int delegate(const char *name, uint32_t *exit_status, struct err *err);

/* From now on Ctrl-C and Ctrl-Break do not end this process: a child that has the same console gets
 * them, and is waited for. */
void leave_interrupts_to_child(void);

#endif
