/* hdiff: compares heap dumps and shows which stacks grew. */
#include "diff/hdiff.h"

#include <stdio.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/io/out.h"

int main(int argc, char **argv)
{
	memory_program = "hdiff";
	os_start(&argc, &argv);
	os_on_interrupt(out_interrupted);
	return hdiff_run(argc, argv, stderr);
}
