/* The backends on POSIX, in order of use. */
#include "symbolize/backend/backend.h"

const struct backend_kind *const backends[] = {&llvm_backend, NULL};
