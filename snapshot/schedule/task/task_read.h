/*
 * What a task of ours says that it runs, read from its XML, which anybody with the rights may have changed.
 */
#ifndef SNAPSHOT_TASK_READ_H
#define SNAPSHOT_TASK_READ_H

#include <stdint.h>

#include "core/buf.h"

struct task_read {
	struct buf program; /* the command, without quotes around it */
	struct buf arguments, folder; /* data may be NULL: there are none */
	int64_t every_ms; /* 0: not said, or not in one way */
};

void task_read_init(struct task_read *task);
void task_read_release(struct task_read *task);

/*
 * Reads a whole document: UTF-16 behind a byte order mark, or UTF-8 with or without one. A task that runs
 * anything but one program, a command that names none by its full path, and a text that is there twice are
 * refused, as is a document that is longer than TASK_XML_MAX_BYTES of UTF-8 (task_xml.h). 0,
 * -ERR_TASK, or -ERR_NOMEM; place is what errors name.
 */
int task_read(
	struct task_read *task, const void *bytes, size_t len, const char *place, struct err *err);

#endif
