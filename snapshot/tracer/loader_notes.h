/*
 * What the loader tells of modules that go: they are noted with what identifies them, and what the
 * unwinder has learnt of their code is forgotten.
 */
#ifndef SNAPSHOT_TRACER_LOADER_NOTES_H
#define SNAPSHOT_TRACER_LOADER_NOTES_H

/* Asks the loader to tell; from then on to the end of the process. Where the loader cannot (before
 * Windows Vista), or will not, modules that go are not noted. */
void loader_notes_init(void);

#endif
