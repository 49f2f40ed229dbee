/* llvm_stand_in: replaces llvm-symbolizer. For an address in a file, it prints the file's first
 * word as the function and the address as the line. If the file is an image that names a PDB, the
 * word is the PDB's first word. If STAND_IN_ANSWERS names a file, it prints the answers recorded in
 * that file, but only for files whose names end with STAND_IN_FOR. STAND_IN_MODE: "hang", "die" or
 * "babble" after the first answer. STAND_IN_PID: a file into which it writes its process id. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#define LINE_BYTES 4000

static char *contents;

static const char *env(const char *name)
{
	const char *value = getenv(name);

	return value ? value : "";
}

/* Reads the first bytes of a file. Opens the file as LLVM does: other programs may delete it at the
 * same time. */
static size_t read_start(const char *path, char *bytes, size_t size)
{
	wchar_t wide[LINE_BYTES];
	HANDLE file;
	DWORD got = 0;

	if (!MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, LINE_BYTES))
		return 0;
	file = CreateFileW(wide, GENERIC_READ,
		FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, OPEN_EXISTING,
		FILE_ATTRIBUTE_NORMAL, NULL);
	if (file == INVALID_HANDLE_VALUE || !ReadFile(file, bytes, (DWORD)size, &got, NULL))
		got = 0;
	if (file != INVALID_HANDLE_VALUE)
		CloseHandle(file);
	return got;
}

static void read_answers(void)
{
	const wchar_t *path = _wgetenv(L"STAND_IN_ANSWERS");
	FILE *file = path ? _wfopen(path, L"rb") : NULL;
	size_t size = 64 << 20, got;

	if (!file)
		return;
	contents = malloc(size);
	if (!contents)
		exit(3);
	contents[0] = '\n';
	got = fread(contents + 1, 1, size - 2, file);
	contents[got + 1] = '\0';
	(void)fclose(file);
}

/* Returns the PDB that an image names, or NULL. */
static const char *pdb_in(const char *bytes, size_t len)
{
	for (size_t i = 0; i + 30 < len; i++) {
		if (!memcmp(bytes + i, "RSDS", 4))
			return bytes + i + 24;
	}
	return NULL;
}

/* Reads the first word of a file or of its PDB. */
static void look(const char *path, char *word, size_t size)
{
	char bytes[4096];
	size_t len = read_start(path, bytes, sizeof(bytes) - 1);
	const char *pdb = pdb_in(bytes, len);

	bytes[len] = '\0';
	if (pdb)
		look(pdb, word, size);
	else
		snprintf(word, size, "%.*s", (int)strspn(bytes, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
			bytes);
}

static void print_recorded(const char *path, unsigned long long addr)
{
	size_t len = strlen(path), known = strlen(env("STAND_IN_FOR"));
	bool is_known = len >= known && !strcmp(path + len - known, env("STAND_IN_FOR"));
	const char *at, *end;
	char head[40];

	snprintf(head, sizeof(head), "\n0x%llx\n", addr);
	at = is_known ? strstr(contents, head) : NULL;
	end = at ? strstr(at + strlen(head), "\n\n") : NULL;
	if (end)
		printf("%.*s\n\n", (int)(end - at - 1), at + 1);
	else
		printf("0x%llx\n??\n  Filename: ??\n  Line: 0\n  Column: 0\n\n", addr);
}

static void answer(const char *path, unsigned long long addr)
{
	static char last[LINE_BYTES], word[100];

	if (contents) {
		print_recorded(path, addr);
		return;
	}
	if (strcmp(last, path) != 0) {
		snprintf(last, sizeof(last), "%s", path);
		look(path, word, sizeof(word));
	}
	printf("0x%llx\n", addr);
	printf("%s\n  Filename: s.c\n  Line: %lu\n  Column: 0\n\n", *word ? word : "??",
		(unsigned long)addr);
}

static void misbehave(void)
{
	const char *mode = env("STAND_IN_MODE");

	if (!strcmp(mode, "hang"))
		Sleep(INFINITE);
	if (!strcmp(mode, "die"))
		TerminateProcess(GetCurrentProcess(), 1);
	while (!strcmp(mode, "babble"))
		printf("x\n");
}

static void print_pid(void)
{
	const wchar_t *path = _wgetenv(L"STAND_IN_PID");
	FILE *file = path ? _wfopen(path, L"ab") : NULL;

	if (!file)
		return;
	fprintf(file, "%lu\n", GetCurrentProcessId());
	(void)fclose(file);
}

int main(void)
{
	char line[LINE_BYTES];

	print_pid();
	read_answers();
	while (fgets(line, sizeof(line), stdin)) {
		char *path = strchr(line, '"'), *end = path ? strchr(path + 1, '"') : NULL;

		if (!end)
			continue;
		*end = '\0';
		answer(path + 1, strtoull(end + 1, NULL, 16));
		fflush(stdout);
		misbehave();
	}
	return 0;
}
