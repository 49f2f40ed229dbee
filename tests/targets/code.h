/* Code that a program makes at run time. It lies in no image, and only the program knows how to
 * unwind it. */
#ifndef TESTS_CODE_H
#define TESTS_CODE_H

#include <string.h>
#include <windows.h>

#define CODE_BYTES 4096
#define CODE_UNWIND 0x100 /* offset of the unwind data, which follow the code */

/* Makes sub rsp, 40; mov rax, function; call rax; nop; add rsp, 40; ret, and the unwind data of
 * this code, as in "x64 exception handling", Microsoft Learn. */
static inline char *code_make(void *(*function)(void))
{
	static const unsigned char start[] = {0x48, 0x83, 0xec, 0x28, 0x48, 0xb8};
	static const unsigned char end[] = {0xff, 0xd0, 0x90, 0x48, 0x83, 0xc4, 0x28, 0xc3};
	static const unsigned char unwind[] = {1, 4, 1, 0, 4, 0x42, 0, 0};
	char *code =
		VirtualAlloc(NULL, CODE_BYTES, MEM_COMMIT | MEM_RESERVE, PAGE_EXECUTE_READWRITE);

	memcpy(code, start, sizeof(start));
	memcpy(code + sizeof(start), &function, sizeof(function));
	memcpy(code + sizeof(start) + sizeof(function), end, sizeof(end));
	memcpy(code + CODE_UNWIND, unwind, sizeof(unwind));
	return code;
}

#endif
