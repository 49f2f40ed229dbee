/* stepper "SCRIPT..." N PROGRAM [ARG...]: leads a sample through N steps from a batch file, which
 * cannot communicate with a running program. Each time the program prints "step K pid P"
 * (samples/step.h), stepper runs "cmd /c SCRIPT... K P" to its end and lets the program continue.
 * After step N the program's input ends. The program's output is forwarded. The status is the
 * program's, or 2 if it did not reach step N. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#define LINE_SIZE 1024

/* Returns this program's command line after its first COUNT words, unchanged. */
static char *line_after(char *line, int count)
{
	while (count--) {
		char *end = *line == '"' ? strchr(line + 1, '"') : NULL;

		line = end ? end + 1 : line + strcspn(line, " ");
		line += strspn(line, " ");
	}
	return line;
}

/* Starts a command line. Where a stream is NULL, the process gets this program's stream. Returns
 * the process, or NULL. */
static HANDLE start(char *line, HANDLE in, HANDLE out)
{
	STARTUPINFOA startup = {.cb = sizeof(startup), .dwFlags = STARTF_USESTDHANDLES};
	PROCESS_INFORMATION info;

	startup.hStdInput = in ? in : GetStdHandle(STD_INPUT_HANDLE);
	startup.hStdOutput = out ? out : GetStdHandle(STD_OUTPUT_HANDLE);
	startup.hStdError = GetStdHandle(STD_ERROR_HANDLE);
	if (!CreateProcessA(NULL, line, NULL, NULL, TRUE, 0, NULL, NULL, &startup, &info)) {
		fprintf(stderr, "stepper: %s: error %lu\n", line, GetLastError());
		return NULL;
	}
	CloseHandle(info.hThread);
	return info.hProcess;
}

static DWORD wait_for(HANDLE process)
{
	DWORD status = 2;

	if (process) {
		WaitForSingleObject(process, INFINITE);
		GetExitCodeProcess(process, &status);
		CloseHandle(process);
	}
	return status;
}

/* Opens a pipe. The program inherits one end; `ours` is the other end. */
static BOOL open_pipe(HANDLE *from, HANDLE *to, HANDLE *ours)
{
	SECURITY_ATTRIBUTES inherited = {.nLength = sizeof(inherited), .bInheritHandle = TRUE};

	return CreatePipe(from, to, &inherited, 0) &&
	       SetHandleInformation(*ours, HANDLE_FLAG_INHERIT, 0);
}

/* Reads the next line without its end; returns FALSE at the end of the program's output. */
static BOOL read_line(HANDLE from, char *line)
{
	size_t len = 0;
	DWORD got;
	char c;

	while (ReadFile(from, &c, 1, &got, NULL) && got == 1 && c != '\n')
		if (c != '\r' && len + 1 < LINE_SIZE)
			line[len++] = c;
	line[len] = '\0';
	return len > 0 || (got == 1 && c == '\n');
}

int main(int argc, char **argv)
{
	HANDLE in, to, from, out, program;
	char command[2 * LINE_SIZE], line[LINE_SIZE], *pid;
	unsigned long step = 0, last;
	DWORD put, status;

	if (argc < 4 || !(last = strtoul(argv[2], NULL, 10))) {
		fputs("usage: stepper \"SCRIPT...\" N PROGRAM [ARG...]\n", stderr);
		return 2;
	}
	if (!open_pipe(&in, &to, &to) || !open_pipe(&from, &out, &from))
		return 2;
	program = start(line_after(GetCommandLineA(), 3), in, out);
	CloseHandle(in);
	CloseHandle(out);
	while (program && read_line(from, line)) {
		puts(line);
		fflush(stdout);
		if (strncmp(line, "step ", 5) != 0)
			continue;
		step = strtoul(line + 5, &pid, 10);
		pid += strncmp(pid, " pid ", 5) == 0 ? 5 : 0;
		snprintf(command, sizeof(command), "cmd.exe /d /c %s %lu %s", argv[1], step, pid);
		wait_for(start(command, NULL, NULL));
		if (step == last)
			break;
		WriteFile(to, "\n", 1, &put, NULL);
	}
	CloseHandle(to);
	status = wait_for(program);
	return step == last ? (int)status : 2;
}
