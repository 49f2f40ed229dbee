#include "symbolize/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/buf.h"
#include "symbolize/keep.h"
#include "symbolize/llvm_json.h"

/*
 * One llvm-symbolizer for the whole run: a question is a line 'CODE "path" 0xRVA', its answer one
 * line of JSON. (Its other styles do not tell an answer of no name from one that failed.) Both
 * directions are one socket, not two pipes: a write to a program that died is then an error and
 * no signal. All questions about one image are under way at once, so both directions are polled.
 */

#define ANSWER_MAX ((size_t)4 << 20) /* bytes of one line; a longer one is nonsense */
#define PATIENCE_MS 300000 /* without a byte in any direction: a large PDB takes its time */

extern char **environ;

struct backend {
	bool is_tried, is_alive;
	pid_t pid;
	int fd;
	struct buf questions, answers;
};

struct backend *backend_new(void)
{
	return calloc(1, sizeof(struct backend));
}

static void stop(struct backend *backend)
{
	if (!backend->is_alive)
		return;
	backend->is_alive = false;
	close(backend->fd);
	kill(backend->pid, SIGKILL); /* it has nothing to save, and might not look at its input */
	while (waitpid(backend->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

void backend_free(struct backend *backend)
{
	stop(backend);
	buf_release(&backend->questions);
	buf_release(&backend->answers);
	free(backend);
}

/* Starts name with both its ends on fd: 0, or an errno. */
static int spawn(struct backend *backend, const char *name, int fd)
{
	static const char *const options[] = {"--relative-address", "--demangle", "--inlines",
		"--functions=linkage", "--output-style=JSON"};
	char *argv[2 + sizeof(options) / sizeof(*options)] = {(char *)name};
	posix_spawn_file_actions_t actions;
	int rc;

	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
		argv[i + 1] = (char *)options[i];
	rc = posix_spawn_file_actions_init(&actions);
	if (rc)
		return rc;
	rc = posix_spawn_file_actions_adddup2(&actions, fd, STDIN_FILENO);
	if (!rc)
		rc = posix_spawn_file_actions_adddup2(&actions, fd, STDOUT_FILENO);
	if (!rc)
		rc = posix_spawn_file_actions_addopen(
			&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	if (!rc)
		rc = posix_spawnp(&backend->pid, name, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}

/* Debian's names: versions 13 and later write JSON. */
static bool spawn_any(struct backend *backend, int fd)
{
	char name[64];

	if (!spawn(backend, "llvm-symbolizer", fd))
		return true;
	for (int version = 19; version >= 13; version--) {
		snprintf(name, sizeof(name), "llvm-symbolizer-%d", version);
		if (!spawn(backend, name, fd))
			return true;
	}
	return false;
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
	backend->is_alive = spawn_any(backend, ends[1]);
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
	const struct image *image, const struct lookup *lookup, const struct llvm_frame *frame)
{
	uint64_t addr = image->pe.preferred_base + lookup->rva + 1;

	return frame->start >= image->pe.preferred_base && frame->start && frame->start < addr ?
		       addr - frame->start :
		       0;
}

static int take_answer(const struct image *image, char *line, size_t len, struct lookup *lookup,
	struct arena *arena)
{
	struct llvm_frame frames[SYMBOL_CHAIN_MAX];
	struct symbol chain[SYMBOL_CHAIN_MAX];
	size_t count = llvm_json_parse(line, len, frames, SYMBOL_CHAIN_MAX);

	for (size_t i = 0; i < count; i++) {
		if (!frames[i].function[0])
			return 0;
		chain[i] = (struct symbol){.function = frames[i].function,
			.offset_bytes = offset_of(image, lookup, &frames[i]),
			.file = frames[i].file[0] ? frames[i].file : NULL,
			.line = frames[i].line};
	}
	if (!count)
		return 0;
	/* From a PDB it never tells where a function begins. With a line the name is sure; without
	 * one it may be that of some symbol far below, and the caller will not believe it. */
	if (!chain[count - 1].offset_bytes && chain[count - 1].line)
		chain[count - 1].offset_bytes = image_function_offset(image, lookup->rva);
	return symbols_keep(arena, chain, count, &lookup->found);
}

/* Takes the whole lines received so far; *at counts the lookups answered. */
static int take_answers(struct backend *backend, const struct image *image, struct lookup *lookups,
	size_t count, size_t *at, struct arena *arena)
{
	struct buf *answers = &backend->answers;
	char *from = answers->data, *end = answers->data + answers->len, *newline;

	while (*at < count && (newline = memchr(from, '\n', (size_t)(end - from)))) {
		int rc = take_answer(
			image, from, (size_t)(newline - from), &lookups[(*at)++], arena);

		if (rc)
			return rc;
		from = newline + 1;
	}
	answers->len = (size_t)(end - from);
	memmove(answers->data, from, answers->len);
	return answers->len > ANSWER_MAX ? -ERR_READ : 0;
}

/* Sends the questions and takes as many answers; 0, -ERR_NOMEM, or -ERR_READ: it died. */
static int converse(struct backend *backend, const struct image *image, struct lookup *lookups,
	size_t count, struct arena *arena)
{
	size_t sent = 0, answered = 0;
	int rc = 0;

	backend->answers.len = 0;
	while (!rc && answered < count) {
		bool more = sent < backend->questions.len;
		struct pollfd poller = {
			.fd = backend->fd, .events = (short)(more ? POLLIN | POLLOUT : POLLIN)};
		int ready = poll(&poller, 1, PATIENCE_MS);

		if (!ready || (ready < 0 && errno != EINTR))
			return -ERR_READ;
		if (ready < 0)
			continue;
		if (poller.revents & POLLOUT && !send_some(backend, &sent))
			return -ERR_READ;
		if (poller.revents & (POLLIN | POLLHUP | POLLERR))
			rc = receive_some(backend);
		if (rc != -ERR_NOMEM && backend->answers.len) {
			int taken = take_answers(backend, image, lookups, count, &answered, arena);

			rc = taken ? taken : rc;
		}
	}
	return answered == count ? 0 : rc;
}

static int ask(struct buf *questions, const struct image *image, const struct lookup *lookups,
	size_t count)
{
	int rc = 0;

	buf_clear(questions);
	for (size_t i = 0; !rc && i < count; i++)
		rc = buf_printf(
			questions, "CODE \"%s\" 0x%" PRIx32 "\n", image->path, lookups[i].rva);
	return rc;
}

int backend_resolve(struct backend *backend, struct image *image, struct lookup *lookups,
	size_t count, struct arena *arena)
{
	int rc;

	if (strpbrk(image->path, "\"\r\n")) /* its input cannot say such a path */
		return 0;
	if (!backend->is_tried)
		start(backend);
	if (!backend->is_alive)
		return 0;
	rc = ask(&backend->questions, image, lookups, count);
	if (!rc)
		rc = converse(backend, image, lookups, count, arena);
	if (rc)
		stop(backend);
	return rc == -ERR_NOMEM ? rc : 0;
}
