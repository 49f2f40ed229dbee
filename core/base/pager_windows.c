/* Runs a pager with _popen(), only if an environment variable names one. */
#include <fcntl.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/os.h"
#include "core/base/terminal.h"

static struct {
	FILE *pipe; /* NULL: no pager */
	int saved; /* the original standard output */
} pager;

void pager_start(const char *variable)
{
	char *command = os_env(variable);

	if (!command)
		command = os_env("PAGER");
	if (command && *command && strcmp(command, "cat") != 0) {
		fflush(stdout);
		pager.saved = _dup(_fileno(stdout));
		pager.pipe = _popen(command, "wb");
		if (pager.pipe)
			_dup2(_fileno(pager.pipe), _fileno(stdout));
	}
	free(command);
}

bool pager_end(void)
{
	if (!pager.pipe)
		return false;
	_dup2(pager.saved, _fileno(stdout));
	_close(pager.saved);
	_pclose(pager.pipe);
	pager.pipe = NULL;
	return true;
}
