/* ask_lock.exe PID: prints "taken" if an hsnap has the lock of process PID, otherwise "free". For
 * tests/e2e_attach.t. */
#include <stdio.h>
#include <stdlib.h>

#include "snapshot/live/live_windows.h"

int main(int argc, char **argv)
{
	struct process_lock lock;

	if (argc != 2)
		return 2;
	puts(process_lock_acquire(&lock, (uint32_t)strtoul(argv[1], NULL, 10), 0) ? "free" :
										    "taken");
	process_lock_release(&lock);
	return 0;
}
