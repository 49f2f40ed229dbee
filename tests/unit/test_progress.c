/* The progress line. It appears only on a terminal, after a delay, and changes at a limited rate.
 * It is removed at the end. The test uses a pseudo terminal and its own clock. */
#include "tests/unit/t.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/ioctl.h>

#include "core/base/terminal.h"

#define WHAT "hsym: looking up names"

static int master = -1;
static FILE *terminal;
static struct progress progress;

static int open_terminal(void **state)
{
	int slave;

	(void)state;
	master = posix_openpt(O_RDWR | O_NOCTTY);
	if (master < 0 || grantpt(master) || unlockpt(master))
		return -1;
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	terminal = slave < 0 ? NULL : fdopen(slave, "w");
	return terminal ? 0 : -1;
}

static int close_terminal(void **state)
{
	(void)state;
	(void)fclose(terminal);
	return close(master);
}

/* Returns the text that was written to the terminal since the last call. */
static const char *seen(void)
{
	static char text[2000];
	struct pollfd poller = {.fd = master, .events = POLLIN};
	size_t len = 0;

	while (poll(&poller, 1, 0) > 0) {
		ssize_t got = read(master, text + len, sizeof(text) - 1 - len);

		assert_true(got > 0);
		len += (size_t)got;
	}
	text[len] = '\0';
	return text;
}

TEST(what_is_done_soon_shows_nothing)
{
	progress_begin(&progress, terminal, WHAT, 1000);
	progress_report(&progress, "app.dll", 1, 10, 1000);
	progress_report(&progress, "app.dll", 9, 10, 1000 + PROGRESS_AFTER_MS - 1);
	progress_wipe(&progress);
	assert_string_equal(seen(), "");
}

TEST(line_is_rewritten_in_place_and_wiped)
{
	char blanks[200];

	progress_begin(&progress, terminal, WHAT, 1000);
	progress_report(&progress, "application.dll", 1234, 10000, 1500);
	assert_string_equal(seen(), "\r" WHAT ": 1234 of 10000, application.dll");
	progress_report(&progress, "a.dll", 5678, 10000, 1500 + PROGRESS_EVERY_MS - 1);
	assert_string_equal(seen(), "");
	progress_report(&progress, "a.dll", 5678, 10000, 1500 + PROGRESS_EVERY_MS);
	assert_string_equal(seen(), "\r" WHAT ": 5678 of 10000, a.dll          ");
	progress_wipe(&progress);
	snprintf(blanks, sizeof(blanks), "\r%*s\r", (int)strlen(WHAT ": 5678 of 10000, a.dll^C"),
		"");
	assert_string_equal(seen(), blanks);
	progress_wipe(&progress);
	assert_string_equal(seen(), "");
}

TEST(what_takes_long_is_named)
{
	progress_begin(&progress, terminal, WHAT, 0);
	progress_report(&progress, "big.dll", 1, 2, 1000);
	progress_report(&progress, "big.dll", 1, 2, 1000 + PROGRESS_LONG_MS);
	assert_null(strstr(seen(), "takes long"));
	progress_report(&progress, "big.dll", 1, 2, 1100 + PROGRESS_LONG_MS);
	assert_string_equal(seen(), "\r" WHAT ": 1 of 2, big.dll takes long");
	progress_report(&progress, "b.dll", 2, 2, 1200 + PROGRESS_LONG_MS);
	assert_null(strstr(seen(), "takes long"));
}

/* The line has a fixed length, whole characters and no control characters. */
TEST(long_or_hostile_name_stays_on_its_line)
{
	char name[300];
	const char *line;
	size_t columns = 0;

	for (size_t i = 0; i < 140; i++)
		memcpy(name + 2 * i, "\xc3\xa4", 3);
	progress_begin(&progress, terminal, WHAT, 0);
	progress_report(&progress, name, SIZE_MAX, SIZE_MAX, 1000);
	line = seen();
	assert_non_null(strstr(line, "\xc3\xa4"));
	for (const char *at = line + 1; *at; at++) {
		columns += (*at & 0xc0) != 0x80;
		assert_true((at[0] & 0xff) != 0xc3 || (at[1] & 0xff) == 0xa4);
	}
	assert_true(columns <= PROGRESS_COLUMNS);
	progress_report(&progress,
		"a\x1b[2J\x9b"
		"b\n",
		1, 2, 2000);
	line = seen();
	assert_non_null(strstr(line, "a?[2J?b?"));
	assert_null(strchr(line + 1, '\x1b'));
	assert_null(strchr(line + 1, 0x9b));
	assert_null(strchr(line + 1, '\n'));
}

TEST(where_nobody_looks_nothing_is_written)
{
	FILE *file = tmpfile();

	assert_non_null(file);
	progress_begin(&progress, file, WHAT, 0);
	progress_report(&progress, "app.dll", 1, 10, 10000);
	progress_wipe(&progress);
	assert_int_equal(ftell(file), 0);
	(void)fclose(file);
}

TEST(clock_that_goes_back_does_no_harm)
{
	progress_begin(&progress, terminal, WHAT, 0);
	progress_report(&progress, "app.dll", 1, 10, 100000);
	assert_non_null(strstr(seen(), "1 of 10"));
	progress_report(&progress, "app.dll", 2, 10, 50000);
	assert_non_null(strstr(seen(), "2 of 10"));
	progress_wipe(&progress);
	seen();
}

static void set_columns(unsigned short columns)
{
	assert_int_equal(
		ioctl(master, TIOCSWINSZ, &(struct winsize){.ws_row = 24, .ws_col = columns}), 0);
}

TEST(terminal_width_is_its_own_or_columns)
{
	FILE *file = tmpfile();

	unsetenv("COLUMNS");
	set_columns(132);
	assert_int_equal(terminal_columns(terminal), 132);
	set_columns(500);
	assert_int_equal(terminal_columns(terminal), 200);
	set_columns(0);
	assert_int_equal(terminal_columns(terminal), 80);
	assert_int_equal(terminal_columns(file), 80);
	setenv("COLUMNS", "100", 1);
	set_columns(132);
	assert_int_equal(terminal_columns(terminal), 100);
	assert_int_equal(terminal_columns(file), 80);
	setenv("COLUMNS", "-1", 1);
	assert_int_equal(terminal_columns(terminal), 132);
	setenv("COLUMNS", "wide", 1);
	assert_int_equal(terminal_columns(terminal), 132);
	unsetenv("COLUMNS");
	(void)fclose(file);
}

GROUP(open_terminal, close_terminal)
