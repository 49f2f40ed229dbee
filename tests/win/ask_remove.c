/* ask_remove.exe PATH...: removes files with core/io/file.h, and prints "removed" or "left" for
 * each. For tests/e2e_remove_links.t. */
#include <stdio.h>

#include "core/base/os.h"
#include "core/io/file.h"

int main(int argc, char **argv)
{
	os_start(&argc, &argv);
	for (int i = 1; i < argc; i++)
		puts(folder_remove(argv[i], NULL) ? "left" : "removed");
	return 0;
}
