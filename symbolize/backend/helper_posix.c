/*
 * Helper processes on POSIX.
 *
 * Input is sent through a socket, because writing to the socket of a dead program causes an error
 * instead of a signal. Output is read from a pipe, which is cheaper for the helper. The pipe is
 * large because the helper writes every answer separately, and waking up for each answer would cost
 * more than everything else.
 */
#define _GNU_SOURCE /* F_SETPIPE_SZ exists only on Linux */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "core/base/os.h"
#include "symbolize/backend/helper.h"
#include "symbolize/backend/llvm.h"

#define ROOM_BYTES (1 << 20) /* size of the pipe: the limit for unprivileged users */
#define READ_BYTES (256 << 10)
/* 1 ms: collects several answers for one read, and meanwhile leaves a core to the helper. */
#define GATHER_NS 1000000

struct helper {
	pid_t pid;
	int to, from;
};

static void reap(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* Data for the child process, prepared before fork() because the child must not allocate memory. */
struct helper_birth {
	const char *program;
	char **argv, **env;
	int input, output, status;
	pid_t parent;
};

/* Runs in the child: executes the program. On failure, writes a byte to status. */
static _Noreturn void become(const struct helper_birth *birth)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	ssize_t put;

	/* If this process is killed, a hanging helper must die too. Ctrl-C in the terminal must not
	 * reach the helper. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == birth->parent &&
		setpgid(0, 0) == 0 && dup2(birth->input, STDIN_FILENO) >= 0 &&
		dup2(birth->output, STDOUT_FILENO) >= 0 && dup2(null, STDERR_FILENO) >= 0)
		execve(birth->program, birth->argv, birth->env);
	put = write(birth->status, "", 1);
	_exit(put == 1 ? 127 : 126);
}

/* Forks. Returns the child's process id once the program is running, or -1. */
static pid_t spawn(struct helper_birth *birth)
{
	int status[2];
	ssize_t got;
	char failed;
	pid_t pid;

	if (pipe2(status, O_CLOEXEC))
		return -1;
	birth->status = status[1];
	birth->parent = getpid();
	pid = fork();
	if (!pid)
		become(birth);
	close(status[1]);
	do
		got = read(status[0], &failed, 1);
	while (got < 0 && errno == EINTR);
	close(status[0]);
	if (pid > 0 && got) {
		reap(pid);
		pid = -1;
	}
	return pid;
}

/* Returns the environment without variables that would change answers or make the helper query
 * servers. The caller frees only the array. */
static char **environment(void)
{
	static const char *const without[] = {"LLVM_SYMBOLIZER_OPTS=", "DEBUGINFOD_URLS="};
	size_t count = 0, used = 0;
	char **env;

	while (environ && environ[count])
		count++;
	env = xcalloc(count + 1, sizeof(*env));
	for (size_t i = 0; i < count; i++) {
		if (strncmp(environ[i], without[0], strlen(without[0])) != 0 &&
			strncmp(environ[i], without[1], strlen(without[1])) != 0)
			env[used++] = environ[i];
	}
	return env;
}

struct helper *helper_start(const char *program, const char *const *args)
{
	char *argv[HELPER_ARGS_MAX + 2] = {(char *)(uintptr_t)program};
	struct helper_birth birth = {.program = program, .argv = argv};
	struct helper *helper = NULL;
	int to[2], from[2]; /* index 0 is this process's end */
	pid_t pid;

	for (size_t i = 0; i < HELPER_ARGS_MAX && args[i]; i++)
		argv[i + 1] = (char *)(uintptr_t)args[i];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, to))
		return NULL;
	if (pipe2(from, O_CLOEXEC)) {
		close(to[0]);
		close(to[1]);
		return NULL;
	}
	fcntl(from[0], F_SETPIPE_SZ, ROOM_BYTES);
	fcntl(from[0], F_SETFL, O_NONBLOCK);
	birth.input = to[1];
	birth.output = from[1];
	birth.env = environment();
	pid = spawn(&birth);
	free(birth.env);
	close(to[1]);
	close(from[1]);
	if (pid > 0) {
		helper = xmalloc(sizeof(*helper));
		*helper = (struct helper){.pid = pid, .to = to[0], .from = from[0]};
	} else {
		close(to[0]);
		close(from[0]);
	}
	return helper;
}

void helper_stop(struct helper *helper)
{
	if (!helper)
		return;
	close(helper->to);
	close(helper->from);
	/* Kill the helper, because it has nothing to save and might not read its input. It leads
	 * its own process group, so the children of a script are killed too. */
	kill(-helper->pid, SIGKILL);
	kill(helper->pid, SIGKILL);
	reap(helper->pid);
	free(helper);
}

static bool would_wait(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

int64_t helper_exchange(
	struct helper *helper, const char *bytes, size_t len, struct buf *answers, unsigned wait_ms)
{
	struct pollfd poller[] = {{.fd = helper->from, .events = POLLIN},
		{.fd = len ? helper->to : -1, .events = POLLOUT}};
	int ready = poll(poller, 2, (int)wait_ms);
	ssize_t took = 0, got;

	if (ready <= 0)
		return ready < 0 && errno != EINTR ? -ERR_READ : 0;
	if (poller[1].revents)
		took = send(helper->to, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (took < 0) /* even after closing its input, a helper may still produce output */
		took = would_wait() ? 0 : (ssize_t)len;
	if (!poller[0].revents)
		return took;
	if (poller[0].revents & POLLIN)
		nanosleep(&(struct timespec){.tv_nsec = GATHER_NS}, NULL);
	buf_reserve(answers, READ_BYTES);
	got = read(helper->from, answers->data + answers->len, READ_BYTES);
	if (!got || (got < 0 && !would_wait()))
		return -ERR_READ;
	answers->len += got > 0 ? (size_t)got : 0;
	answers->data[answers->len] = '\0';
	return took;
}

#define VERSION_MIN 13 /* the first version that prints where functions begin */
#define VERSION_MAX 40

/* If `path` is an executable file, appends it to `list`, including the NUL. */
static void add(struct buf *list, const char *path)
{
	struct stat st;

	if (!stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK))
		buf_add(list, path, strlen(path) + 1);
}

void llvm_program_list(struct buf *list)
{
	char *named = os_env("HSYM_LLVM"), *path = named ? NULL : os_env("PATH");
	struct buf program;

	buf_init(&program);
	if (named && named[0] == '/')
		add(list, named);
	for (const char *at = path; at && *at;) {
		size_t len = strcspn(at, ":");

		/* The name without a version comes last. */
		for (int version = VERSION_MAX; at[0] == '/' && version >= VERSION_MIN - 1;
			version--) {
			buf_clear(&program);
			buf_printf(&program, "%.*s/llvm-symbolizer", (int)len, at);
			if (version >= VERSION_MIN)
				buf_printf(&program, "-%d", version);
			add(list, program.data);
		}
		at += len + (at[len] == ':');
	}
	buf_release(&program);
	free(named);
	free(path);
}
