#include "core/terminal.h"

#include <windows.h>

#include <stdio.h>

#include "core/os.h"

bool terminal_is_utf8(void)
{
	return os_is_terminal(stdout) && GetConsoleOutputCP() == CP_UTF8;
}
