/* The names in a folder. folder_list_posix.c or folder_list_windows.c. */
#ifndef SYMBOLIZE_FOLDER_LIST_H
#define SYMBOLIZE_FOLDER_LIST_H

/* Hands each name on, UTF-8, in no order. Returns 0 when there are no more, -ERR_READ when the folder
 * cannot be read (to its end), -ERR_NOMEM, or what name returned when that is not 0: then it stops. */
int folder_list(const char *path, int (*name)(void *ctx, const char *name), void *ctx);

#endif
