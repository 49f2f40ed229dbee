/* Output that takes nobody's place, and packed output, by the calls that Windows has. Speaks TAP. */
#include <stdio.h>
#include <string.h>
#include <windows.h>

#include "core/io/out.h"
#include "tests/win/folder.h"
#include "tests/win/tap.h"

static bool spew(const char *text)
{
	FILE *file = fopen(path, "wb");

	return file && fputs(text, file) >= 0 && !fclose(file);
}

static void test_new(unsigned flags)
{
	struct err err = {0};
	struct out out;

	ok(!out_open_as(&out, path, OUT_NEW | flags, &err), "a new file is opened");
	out_text(&out, "new\n");
	ok(!out_commit(&out, &err) && has("new\n") && file_count() == 1, "and is there, whole");
	ok(out_open_as(&out, path, OUT_NEW | flags, &err) == -ERR_EXISTS, "not a second time");
	DeleteFileA(path);
	ok(!out_open_as(&out, path, OUT_NEW | flags, &err), "it is opened again");
	out_text(&out, "new\n");
	ok(spew("somebody's\n"), "somebody takes the name meanwhile");
	ok(out_commit(&out, &err) == -ERR_EXISTS && err.code == ERR_EXISTS, "which is an error");
	ok(has("somebody's\n") && file_count() == 1, "keeps that file, and leaves nothing");
	ok(!out_open_as(&out, path, flags, &err), "not a new one:");
	out_text(&out, "new\n");
	ok(!out_commit(&out, &err) && has("new\n") && file_count() == 1, "it replaces the file");
	DeleteFileA(path);
}

int main(void)
{
	struct err err;
	struct out out;

	ok(make_folder(), "a folder for it");
	test_new(0);
	test_new(OUT_GZIP);
	ok(CreateDirectoryA(path, NULL), "a folder in the way");
	ok(out_open_as(&out, path, OUT_NEW, &err) == -ERR_EXISTS, "has the name, too");
	RemoveDirectoryA(path);
	ok(RemoveDirectoryA(folder), "nothing is left");
	return ok_end();
}
