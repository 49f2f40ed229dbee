/*
 * Synchronization of a sample with its observer.
 *
 * A sample calls step_done(K) after its step K. That function prints "step K pid P\n" and waits for
 * one line on standard input. At the end of the input, or if the line is "quit", it returns false,
 * and the sample ends with status 0. The functions of this file allocate nothing: they use the
 * standard handles directly, not through the C library's buffers.
 *
 * A sample's leaks are stated in its header comment, to the byte, in lines that tests read:
 *
 *	truth: step FROM->TO stack INNERMOST<-CALLER<-...<-main bytes +N allocs +N
 *
 * "stack" lists functions of the sample, the allocating one first. Stacks that are not listed do
 * not change from step to step. Step 1 is the warm-up: it runs through the same code.
 *
 * A loop around a relevant call counts in a volatile variable. Otherwise a compiler could unroll
 * the loop, which turns one call site into several, and one stack into several. The statement
 * before a relevant call is on a line of its own. Otherwise, if a loop and its first call begin at
 * one address, Wine's DbgHelp would report the loop's line.
 */
#ifndef SAMPLES_STEP_H
#define SAMPLES_STEP_H

#include <stdbool.h>
#include <string.h>
#include <windows.h>

#define NOINLINE __attribute__((noinline))

/* Receives leaked addresses, so that compilers keep the allocations. */
static void *volatile step_leaked;

static inline void *step_leak(void *block)
{
	if (!block)
		ExitProcess(3); /* out of memory: the stated truth would be wrong */
	step_leaked = block;
	return block;
}

static inline char *step_text(char *to, const char *text)
{
	while (*text)
		*to++ = *text++;
	return to;
}

static inline char *step_decimal(char *to, unsigned long value)
{
	char digits[20];
	int count = 0;

	do
		digits[count++] = (char)('0' + value % 10);
	while (value /= 10);
	while (count)
		*to++ = digits[--count];
	return to;
}

/* Reads a line without its end. Returns false at the end of the input. */
static inline bool step_line(char *line, size_t size)
{
	HANDLE input = GetStdHandle(STD_INPUT_HANDLE);
	size_t len = 0;
	DWORD got;
	char c;

	while (ReadFile(input, &c, 1, &got, NULL) && got == 1) {
		if (c == '\n') {
			line[len] = '\0';
			return true;
		}
		if (c != '\r' && len + 1 < size)
			line[len++] = c;
	}
	return false;
}

/* Prints that a step is done and waits for permission to continue. Returns false if the sample must
 * end. */
static inline bool step_done(unsigned long step)
{
	char line[64], *end = step_text(line, "step ");
	DWORD put;

	end = step_decimal(end, step);
	end = step_text(end, " pid ");
	end = step_decimal(end, GetCurrentProcessId());
	*end++ = '\n';
	if (!WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), line, (DWORD)(end - line), &put, NULL))
		return false;
	return step_line(line, sizeof(line)) && strcmp(line, "quit") != 0;
}

#endif
