/* hdiff: compares heap dumps and says which stacks grew. */
#include <stdio.h>

#include "core/base/os.h"
#include "core/io/out.h"
#include "diff/hdiff.h"

int main(int argc, char **argv)
{
	if (os_start(&argc, &argv)) {
		fprintf(stderr, "hdiff: out of memory\n");
		return 2;
	}
	os_on_interrupt(out_interrupted);
	return hdiff_run(argc, argv, stderr);
}
