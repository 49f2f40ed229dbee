/* The backends on Windows, in order of use. */
#include "symbolize/backend/backend.h"

const struct backend_kind *const backends[] = {&dbghelp_backend, &llvm_backend, NULL};
