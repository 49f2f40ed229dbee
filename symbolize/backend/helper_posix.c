#define _GNU_SOURCE /* the size of a pipe, which is Linux's own */
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

/*
 * What it is told goes through a socket: a write to a program that died is then an error and no
 * signal. What it says comes through a pipe, which costs it less, and one with room: it writes every
 * answer by itself, and to be woken for each would cost more than all else.
 */

#define ROOM_BYTES (1 << 20) /* of the pipe: the most that everyone may have */
#define READ_BYTES (256 << 10)
#define GATHER_NS 300000 /* 0.3 ms: what it says in this time is read at once */

struct helper {
	pid_t pid;
	int to, from;
};

int64_t helper_clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void reap(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* What the child needs, made before there is one: it may not ask for memory. */
struct helper_birth {
	const char *program;
	char **argv, **env;
	int input, output, status;
	pid_t parent;
};

/* In the child: becomes the program, or says a byte to status. */
static _Noreturn void become(const struct helper_birth *birth)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	ssize_t put;

	/* When we are killed, one that hangs must not stay; Ctrl-C in the terminal is for us. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == birth->parent &&
		setpgid(0, 0) == 0 && dup2(birth->input, STDIN_FILENO) >= 0 &&
		dup2(birth->output, STDOUT_FILENO) >= 0 && dup2(null, STDERR_FILENO) >= 0)
		execve(birth->program, birth->argv, birth->env);
	put = write(birth->status, "", 1);
	_exit(put == 1 ? 127 : 126);
}

/* Its process id once it runs the program, or -1. */
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

/* The environment without what would change its answers or send it to servers: the caller frees the
 * list alone. */
static char **environment(void)
{
	static const char *const without[] = {"LLVM_SYMBOLIZER_OPTS=", "DEBUGINFOD_URLS="};
	size_t count = 0, kept = 0;
	char **env;

	while (environ && environ[count])
		count++;
	env = malloc((count + 1) * sizeof(*env));
	for (size_t i = 0; env && i < count; i++) {
		if (strncmp(environ[i], without[0], strlen(without[0])) != 0 &&
			strncmp(environ[i], without[1], strlen(without[1])) != 0)
			env[kept++] = environ[i];
	}
	if (env)
		env[kept] = NULL;
	return env;
}

/* Both directions: ends[0] and [1] are those of a socket, [2] and [3] those of a pipe; our ends are
 * the first of each. */
static bool open_ends(int ends[4])
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return false;
	if (pipe2(ends + 2, O_CLOEXEC)) {
		close(ends[0]);
		close(ends[1]);
		return false;
	}
	fcntl(ends[2], F_SETPIPE_SZ, ROOM_BYTES);
	fcntl(ends[2], F_SETFL, O_NONBLOCK);
	return true;
}

struct helper *helper_start(const char *program, const char *const *args)
{
	struct helper *helper = malloc(sizeof(*helper));
	char *argv[HELPER_ARGS_MAX + 2] = {(char *)(uintptr_t)program};
	struct helper_birth birth = {.program = program, .argv = argv, .env = environment()};
	int ends[4];

	for (size_t i = 0; i < HELPER_ARGS_MAX && args[i]; i++)
		argv[i + 1] = (char *)(uintptr_t)args[i];
	if (!helper || !birth.env || !open_ends(ends))
		goto fail;
	birth.input = ends[1];
	birth.output = ends[3];
	*helper = (struct helper){.pid = spawn(&birth), .to = ends[0], .from = ends[2]};
	close(ends[1]);
	close(ends[3]);
	if (helper->pid > 0)
		goto out;
	close(ends[0]);
	close(ends[2]);
fail:
	free(helper);
	helper = NULL;
out:
	free(birth.env);
	return helper;
}

void helper_stop(struct helper *helper)
{
	if (!helper)
		return;
	close(helper->to);
	close(helper->from);
	/* It has nothing to save, and might not look at its input. Its group is its own: what it started
	 * itself, when it is a script, goes too. */
	kill(-helper->pid, SIGKILL);
	kill(helper->pid, SIGKILL);
	reap(helper->pid);
	free(helper);
}

static bool would_wait(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

/* How many bytes it took; one that does not listen any more may still have something to say. */
static int64_t send_some(struct helper *helper, const char *bytes, size_t len)
{
	ssize_t put = send(helper->to, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (put >= 0)
		return put;
	return would_wait() ? 0 : (int64_t)len;
}

/* How many bytes came, 0 when none are there, or as helper_exchange(). */
static int64_t receive_some(struct helper *helper, struct buf *answers)
{
	ssize_t got;

	if (buf_reserve(answers, READ_BYTES))
		return -ERR_NOMEM;
	got = read(helper->from, answers->data + answers->len, READ_BYTES);
	if (got < 0)
		return would_wait() ? 0 : -ERR_READ;
	answers->len += (size_t)got;
	answers->data[answers->len] = '\0';
	return got ? got : -ERR_READ;
}

int64_t helper_exchange(
	struct helper *helper, const char *bytes, size_t len, struct buf *answers, unsigned wait_ms)
{
	struct pollfd poller[] = {{.fd = helper->from, .events = POLLIN},
		{.fd = len ? helper->to : -1, .events = POLLOUT}};
	int ready = poll(poller, 2, (int)wait_ms);
	int64_t took = 0, got = 0;

	if (ready <= 0)
		return ready < 0 && errno != EINTR ? -ERR_READ : 0;
	if (poller[1].revents)
		took = send_some(helper, bytes, len);
	if (poller[0].revents & POLLIN)
		nanosleep(&(struct timespec){.tv_nsec = GATHER_NS}, NULL);
	if (poller[0].revents)
		got = receive_some(helper, answers);
	return got < 0 ? got : took;
}

#define VERSION_MIN 13 /* the first that says where functions begin */
#define VERSION_MAX 40

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* Adds a path with its NUL to the list when it is that of a program. */
static int add(struct buf *list, const char *path)
{
	return is_program(path) ? buf_add(list, path, strlen(path) + 1) : 0;
}

static int add_folder(struct buf *list, const char *folder, size_t len)
{
	struct buf path;
	int rc = 0;

	buf_init(&path);
	for (int version = VERSION_MAX; !rc && version >= VERSION_MIN; version--) {
		buf_clear(&path);
		rc = buf_printf(&path, "%.*s/llvm-symbolizer-%d", (int)len, folder, version);
		if (!rc)
			rc = add(list, path.data);
	}
	buf_clear(&path);
	if (!rc)
		rc = buf_printf(&path, "%.*s/llvm-symbolizer", (int)len, folder);
	if (!rc)
		rc = add(list, path.data);
	buf_release(&path);
	return rc;
}

int llvm_program_list(struct buf *list)
{
	char *named = os_env("HSYM_LLVM"), *path = named ? NULL : os_env("PATH");
	int rc = 0;

	if (named && named[0] == '/')
		rc = add(list, named);
	for (const char *at = path; !rc && at && *at;) {
		size_t len = strcspn(at, ":");

		if (at[0] == '/' && len < 4096)
			rc = add_folder(list, at, len);
		at += len + (at[len] == ':');
	}
	free(named);
	free(path);
	return rc;
}
