/* Runs a pager as a child process that reads this process's standard output through a pipe. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/os.h"
#include "core/base/terminal.h"

static struct {
	pid_t pid; /* 0: no pager */
	int saved; /* the original standard output */
	void (*on_interrupt)(int), (*on_pipe)(int);
} pager;

static char *command_of(const char *variable)
{
	char *command = os_env(variable);

	if (!command)
		command = os_env("PAGER");
	return command ? command :
			 strdup("if command -v less >/dev/null; then exec less; else exec cat; fi");
}

static void become_pager(int from, const char *command)
{
	dup2(from, STDIN_FILENO);
	close(from);
	/* FRX: exit if the text fits on one screen, show colours, do not clear the screen. */
	setenv("LESS", "FRX", 0);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

void pager_start(const char *variable)
{
	char *command = command_of(variable);
	int ends[2];

	if (!command || !*command || !strcmp(command, "cat") || pipe(ends)) {
		free(command);
		return;
	}
	fflush(stdout);
	pager.saved = dup(STDOUT_FILENO);
	pager.pid = pager.saved < 0 ? -1 : fork();
	if (!pager.pid) {
		close(ends[1]);
		become_pager(ends[0], command);
	}
	free(command);
	close(ends[0]);
	if (pager.pid > 0) {
		dup2(ends[1], STDOUT_FILENO);
		pager.on_interrupt = signal(SIGINT, SIG_IGN);
		pager.on_pipe = signal(SIGPIPE, SIG_IGN);
	} else {
		pager.pid = 0;
		if (pager.saved >= 0)
			close(pager.saved);
	}
	close(ends[1]);
}

bool pager_end(void)
{
	int status;

	if (!pager.pid)
		return false;
	/* This closes the pipe's last write end, so the pager reads the end of the text. */
	dup2(pager.saved, STDOUT_FILENO);
	close(pager.saved);
	waitpid(pager.pid, &status, 0);
	signal(SIGINT, pager.on_interrupt);
	signal(SIGPIPE, pager.on_pipe);
	pager.pid = 0;
	return true;
}
