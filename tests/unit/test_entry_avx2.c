/* Plain entries parsed with the instructions of current processors. */
#if defined(__x86_64__) && !defined(__clang__)
#pragma GCC target("avx2,bmi,bmi2")
#endif
int run_entry_tests(void);
#define main run_entry_tests
#include "tests/unit/test_entry_plain.h"
#undef main

int main(void)
{
#if defined(__x86_64__) && !defined(__clang__)
	__builtin_cpu_init();
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi2")) {
		printf("1..0 # SKIP this processor has no AVX2\n");
		return 0;
	}
#endif
	return run_entry_tests();
}
