/*
 * Interface of the test programs with known names. It includes no header of a C library, because
 * clang's MSVC target does not accept mingw's headers.
 *
 * A program prints the address from which it was called as "note MARKER MODULE RVA". RVA is the
 * offset of a return address from its module's base, in hexadecimal. Comments in the sources, at
 * the lines that the frames must show, contain the frames expected for that address:
 *
 *   frame MARKER N FUNCTION
 *
 * N counts from 1, the innermost frame. All frames except the last are inlined. In C++ a FUNCTION
 * has its parameters.
 */
#ifndef TESTS_NAMES_NOTE_H
#define TESTS_NAMES_NOTE_H

#ifdef __cplusplus
extern "C" {
#endif
int printf(const char *format, ...);
int fflush(void *file);
__attribute__((noreturn)) void exit(int status);
extern const char __ImageBase; /* start of the module, defined by the linker */
#ifdef __cplusplus
}
#endif

/* Prevents gcc from making a second version of such a function under another name. clang makes one
 * if an argument is a constant address. */
#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif
#define INLINE static inline __attribute__((always_inline))

static NOINLINE void note(const char *marker)
{
	const char *from = (const char *)__builtin_return_address(0);

	printf("note %s %s %I64x\n", marker, MODULE, (unsigned long long)(from - &__ImageBase));
	fflush(0);
}

/* The call of this function is the caller's last instruction, so the return address lies after the
 * caller. */
static NOINLINE __attribute__((noreturn, unused)) void note_last(const char *marker)
{
	const char *from = (const char *)__builtin_return_address(0);

	printf("note %s %s %I64x\n", marker, MODULE, (unsigned long long)(from - &__ImageBase));
	fflush(0);
	exit(0);
}

#endif
