/* Where there is no Windows to ask. */
#include "snapshot/stacks/os_stacks.h"

int os_stacks_take(struct target *target, struct os_stacks **stacks, struct err *err)
{
	(void)stacks;
	return err_set(
		err, ERR_NO_STACKS, target->name, "os stacks are the system's, not in a file");
}

int os_stacks_switch(uint32_t pid, bool on, struct err *err)
{
	(void)pid;
	(void)on;
	return err_set(err, ERR_PLATFORM, "os", NULL);
}
