/* hdiff without its main(): what tests call. */
#ifndef DIFF_RUN_H
#define DIFF_RUN_H

#include <stdio.h>

#include "diff/options.h" /* hdiff_options */

/* Does what the arguments (argv[0] is skipped) ask for; words go to say, one line for an error.
 * Returns the exit status: 0 done, 1 growth over a limit, 2 trouble. */
int hdiff_run(int argc, char **argv, FILE *say);

#endif
