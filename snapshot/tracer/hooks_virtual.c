/*
 * The functions for virtual memory.
 */
#include "snapshot/tracer/hooks.h"

void hooks_virtual_init(void)
{
}
