/*
 * Interrupts, the steady clock and waiting on POSIX. A signal handler either ends the process, or
 * holds back the first Ctrl-C and wakes os_wait() using a pipe.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "core/base/os.h"

static void (*interrupt_handler)(void);
static volatile sig_atomic_t interrupt_held, interrupt_seen;
/* A pipe that wakes os_wait(). The pipe is never read, so it stays readable after the first
 * interrupt. */
static int wakers[2] = {-1, -1};

void os_end(void)
{
	if (interrupt_handler)
		interrupt_handler();
	_exit(2);
}

static void on_signal(int signal)
{
	if (signal == SIGINT && interrupt_held && !interrupt_seen) {
		int code = errno;

		interrupt_seen = 1;
		if (write(wakers[1], "", 1) < 0)
			errno = code; /* the pipe is missing or full */
		return;
	}
	os_end();
}

void os_on_interrupt(void (*handler)(void))
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	/* SA_RESTART: if the interrupt is held back, interrupted reads and writes continue. */
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	interrupt_handler = handler;
	sigfillset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
		struct sigaction old;

		/* If a signal is ignored, leave it ignored: nohup has done this, or a shell that
		 * runs this program as a background job. */
		if (sigaction(signals[i], NULL, &old) || old.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
	}
}

/* Does nothing, because `last` would run in a signal handler, which may call few functions. */
void os_on_end(void (*last)(void))
{
	(void)last;
}

void os_on_held(void (*told)(void))
{
	(void)told;
}

void os_hold_interrupt(bool is_held)
{
	if (is_held && wakers[0] < 0 && pipe(wakers))
		/* The pipe is missing, but the signal itself still ends a wait. */
		wakers[0] = wakers[1] = -1;
	for (size_t i = 0; is_held && i < 2 && wakers[i] >= 0; i++) {
		fcntl(wakers[i], F_SETFD, FD_CLOEXEC);
		fcntl(wakers[i], F_SETFL, O_NONBLOCK);
	}
	interrupt_held = is_held;
}

bool os_was_interrupted(void)
{
	return interrupt_seen;
}

int64_t os_clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void os_wait(int64_t until_ms, const intptr_t *handles, size_t count)
{
	struct pollfd polls[OS_WAIT_MAX + 1] = {{.fd = wakers[0], .events = POLLIN}};
	int64_t now = os_clock_ms();

	if (until_ms <= now || interrupt_seen)
		return;
	for (size_t i = 0; i < count; i++)
		polls[i + 1] = (struct pollfd){.fd = (int)handles[i], .events = POLLIN};
	poll(polls, count + 1, (int)(until_ms - now < OS_WAIT_MS ? until_ms - now : OS_WAIT_MS));
}
