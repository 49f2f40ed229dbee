#include "symbolize/backend/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/buf.h"
#include "symbolize/keep.h"
#include "symbolize/backend/llvm_json.h"

/*
 * One llvm-symbolizer for the whole run: a question is a line 'CODE "path" 0xRVA', its answer one
 * line of JSON. (Its other styles do not tell an answer of no name from one that failed.) Both
 * directions are one socket, not two pipes: a write to a program that died is then an error and
 * no signal. All questions about one image are under way at once, so both directions are polled.
 *
 * It is not trusted to do as it should. An answer says what it answers: a line that does not is
 * passed over, and one that answers another question ends the use of the helper. So does silence.
 */

#define ANSWER_MAX ((size_t)4 << 20) /* bytes of one line; a longer one is nonsense */
#define STRAY_MAX 1000 /* lines that are no answers */
#define PATIENCE_MS 20000 /* for one answer: a large PDB takes its time */

struct backend {
	const struct symbol_options *options;
	bool is_tried, is_alive, gave_up;
	pid_t pid;
	int fd;
	unsigned patience_ms;
	size_t stray_count;
	struct buf questions, answers;
};

static struct backend *llvm_make(const struct symbol_options *options, const struct finder *finder)
{
	struct backend *backend = calloc(1, sizeof(*backend));

	(void)finder;
	if (backend) {
		backend->options = options;
		backend->patience_ms = options->patience_ms ? options->patience_ms : PATIENCE_MS;
	}
	return backend;
}

static const char *llvm_trouble(const struct backend *backend)
{
	return backend->gave_up ? "llvm-symbolizer failed before it had answered all" : NULL;
}

static void reap(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static void stop(struct backend *backend)
{
	if (!backend->is_alive)
		return;
	backend->is_alive = false;
	close(backend->fd);
	kill(backend->pid, SIGKILL); /* it has nothing to save, and might not look at its input */
	reap(backend->pid);
}

static void llvm_release(struct backend *backend)
{
	stop(backend);
	buf_release(&backend->questions);
	buf_release(&backend->answers);
	free(backend);
}

/* Debian's names: versions 13 and later write JSON. Returns when none can be started. */
static void exec_any(void)
{
	char name[64] = "llvm-symbolizer";
	char *argv[] = {name, (char *)"--relative-address", (char *)"--demangle",
		(char *)"--inlines", (char *)"--functions=linkage", (char *)"--output-style=JSON",
		NULL};

	execvp(name, argv);
	for (int version = 19; version >= 13; version--) {
		snprintf(name, sizeof(name), "llvm-symbolizer-%d", version);
		execvp(name, argv);
	}
}

/* In the child: becomes the helper with both its ends on fd, or says a byte to status. */
static _Noreturn void become_helper(int fd, int status, pid_t parent)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	ssize_t put = 0;

	/* When hsym is killed, a helper that hangs must not stay. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent &&
		fcntl(fd, F_SETFD, 0) == 0 && dup2(fd, STDIN_FILENO) >= 0 &&
		dup2(fd, STDOUT_FILENO) >= 0 && dup2(null, STDERR_FILENO) >= 0)
		exec_any();
	put = write(status, "", 1);
	_exit(put == 1 ? 127 : 126);
}

/* Starts the helper with both its ends on fd; false: there is none. */
static bool spawn(struct backend *backend, int fd)
{
	pid_t parent = getpid();
	int status[2];
	ssize_t got;
	char failed;

	if (pipe(status))
		return false;
	fcntl(status[0], F_SETFD, FD_CLOEXEC);
	fcntl(status[1], F_SETFD, FD_CLOEXEC);
	backend->pid = fork();
	if (!backend->pid)
		become_helper(fd, status[1], parent);
	close(status[1]);
	do
		got = read(status[0], &failed, 1);
	while (got < 0 && errno == EINTR);
	close(status[0]);
	if (backend->pid > 0 && got)
		reap(backend->pid);
	return backend->pid > 0 && !got;
}

static void start(struct backend *backend)
{
	int ends[2];

	backend->is_tried = true;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return;
	fcntl(ends[0], F_SETFD, FD_CLOEXEC);
	fcntl(ends[1], F_SETFD, FD_CLOEXEC);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	backend->is_alive = spawn(backend, ends[1]);
	close(ends[1]);
	if (backend->is_alive)
		backend->fd = ends[0];
	else
		close(ends[0]);
}

static bool would_wait(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

/* Sends what fits; false when nobody listens any more. */
static bool send_some(struct backend *backend, size_t *sent)
{
	ssize_t put = send(backend->fd, backend->questions.data + *sent,
		backend->questions.len - *sent, MSG_NOSIGNAL);

	if (put < 0)
		return would_wait();
	*sent += (size_t)put;
	return true;
}

/* 0, -ERR_NOMEM, or -ERR_READ when no more answers come. */
static int receive_some(struct backend *backend)
{
	ssize_t got;

	if (buf_reserve(&backend->answers, 65536))
		return -ERR_NOMEM;
	got = recv(backend->fd, backend->answers.data + backend->answers.len, 65536, 0);
	if (got < 0)
		return would_wait() ? 0 : -ERR_READ;
	backend->answers.len += (size_t)got;
	return got ? 0 : -ERR_READ;
}

/* 0 when it is not recorded where the function begins: so for much that is inlined. */
static uint64_t offset_of(
	const struct subject *subject, const struct lookup *lookup, const struct llvm_frame *frame)
{
	uint64_t addr = subject->files.pe->preferred_base + lookup->rva + 1;

	return frame->start >= subject->files.pe->preferred_base && frame->start &&
			       frame->start < addr ?
		       addr - frame->start :
		       0;
}

static int keep_frames(const struct subject *subject, const struct llvm_frame *frames, size_t count,
	struct lookup *lookup, struct arena *arena)
{
	struct symbol chain[SYMBOL_CHAIN_MAX];

	for (size_t i = 0; i < count; i++) {
		if (!frames[i].function[0])
			return 0;
		chain[i] = (struct symbol){.function = frames[i].function,
			.offset_bytes = offset_of(subject, lookup, &frames[i]),
			.file = frames[i].file[0] ? frames[i].file : NULL,
			.line = frames[i].line};
	}
	if (!count)
		return 0;
	/* From a PDB it never tells where a function begins. With a line the name is sure; without
	 * one it may be that of some symbol far below, and the caller will not believe it. */
	if (!chain[count - 1].offset_bytes && chain[count - 1].line)
		chain[count - 1].offset_bytes = tables_offset(subject->tables, lookup->rva);
	return symbols_keep(arena, chain, count, &lookup->found);
}

/* All questions about one image, and how far they are answered. */
struct talk {
	struct backend *backend;
	const struct subject *subject;
	struct lookup *lookups;
	size_t count, answered, sent;
	struct arena *arena;
	int64_t deadline_ms; /* of the next answer */
};

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* What is no UTF-8 comes back as something else: only ASCII is compared. */
static bool same_path(const char *a, const char *b)
{
	do {
		while (*a & 0x80)
			a++;
		while (*b & 0x80)
			b++;
		if (*a != *b)
			return false;
	} while (b++, *a++);
	return true;
}

/* One line: 0, -ERR_NOMEM, or -ERR_READ when it is the answer to another question. */
static int take_answer(struct talk *talk, char *line, size_t len)
{
	struct lookup *lookup = &talk->lookups[talk->answered];
	struct llvm_frame frames[SYMBOL_CHAIN_MAX];
	struct llvm_question question;
	size_t count = llvm_json_parse(line, len, &question, frames, SYMBOL_CHAIN_MAX);

	if (!question.has_addr)
		return ++talk->backend->stray_count > STRAY_MAX ? -ERR_READ : 0;
	if (question.addr != lookup->rva || !same_path(question.module, talk->subject->files.image))
		return -ERR_READ;
	talk->answered++;
	lookup->is_answered = true;
	talk->deadline_ms = now_ms() + talk->backend->patience_ms;
	return keep_frames(talk->subject, frames, count, lookup, talk->arena);
}

/* Takes the whole lines received so far. */
static int take_answers(struct talk *talk)
{
	struct buf *answers = &talk->backend->answers;
	char *from = answers->data, *end = answers->data + answers->len, *newline;

	while (talk->answered < talk->count &&
		(newline = memchr(from, '\n', (size_t)(end - from)))) {
		int rc = take_answer(talk, from, (size_t)(newline - from));

		if (rc)
			return rc;
		from = newline + 1;
	}
	answers->len = (size_t)(end - from);
	memmove(answers->data, from, answers->len);
	return answers->len > ANSWER_MAX ? -ERR_READ : 0;
}

/* Waits until something can be sent or received, and does; returns as converse(). */
static int exchange(struct talk *talk)
{
	struct backend *backend = talk->backend;
	bool more = talk->sent < backend->questions.len;
	struct pollfd poller = {
		.fd = backend->fd, .events = (short)(more ? POLLIN | POLLOUT : POLLIN)};
	int64_t left = talk->deadline_ms - now_ms();
	int ready = left > 0 ? poll(&poller, 1, left < INT_MAX ? (int)left : INT_MAX) : 0;
	int rc = 0, taken = 0;

	if (ready < 0 && errno == EINTR)
		return 0;
	if (ready <= 0 || (poller.revents & POLLOUT && !send_some(backend, &talk->sent)))
		return -ERR_READ;
	if (poller.revents & (POLLIN | POLLHUP | POLLERR))
		rc = receive_some(backend);
	if (rc != -ERR_NOMEM && backend->answers.len)
		taken = take_answers(talk);
	return taken ? taken : rc;
}

/* Sends the questions and takes as many answers; 0, -ERR_NOMEM, or -ERR_READ: it is no use. */
static int converse(struct talk *talk)
{
	int rc = 0;

	talk->backend->answers.len = 0;
	talk->deadline_ms = now_ms() + talk->backend->patience_ms;
	while (!rc && talk->answered < talk->count)
		rc = exchange(talk);
	return talk->answered == talk->count && rc != -ERR_NOMEM ? 0 : rc;
}

static int ask(struct buf *questions, const char *path, const struct lookup *lookups, size_t count)
{
	int rc = 0;

	buf_clear(questions);
	for (size_t i = 0; !rc && i < count; i++)
		rc = buf_printf(questions, "CODE \"%s\" 0x%" PRIx32 "\n", path, lookups[i].rva);
	return rc;
}

static int llvm_resolve(struct backend *backend, struct subject *subject, struct lookup *lookups,
	size_t count, struct arena *arena)
{
	struct talk talk = {.backend = backend,
		.subject = subject,
		.lookups = lookups,
		.count = count,
		.arena = arena};
	const char *path = subject->files.image;
	int rc;

	if (!path || strpbrk(path, "\"\r\n")) /* its input cannot say such a path */
		return 0;
	if (!backend->is_tried)
		start(backend);
	if (!backend->is_alive)
		return 0;
	rc = ask(&backend->questions, path, lookups, count);
	if (!rc)
		rc = converse(&talk);
	if (rc)
		stop(backend);
	backend->gave_up |= rc == -ERR_READ;
	return rc == -ERR_NOMEM ? rc : 0;
}

const struct backend_kind llvm_backend = {
	.name = "llvm-symbolizer",
	.make = llvm_make,
	.release = llvm_release,
	.resolve = llvm_resolve,
	.trouble = llvm_trouble,
};
