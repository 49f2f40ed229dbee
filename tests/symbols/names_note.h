/*
 * What the programs with names for tests share. They know no header of a C library, for clang's MSVC
 * target takes none of mingw's.
 *
 * A program says where it was called from: "note MARKER MODULE RVA", the last being the offset of a
 * return address from its module's base, in hexadecimal. What that address stands for is said by
 * comments in the sources, at the lines which the frames must show:
 *
 *	frame MARKER N FUNCTION
 *
 * N counts from 1, the innermost. All but the last are inlined. A FUNCTION of C++ has its parameters.
 */
#ifndef TESTS_NAMES_NOTE_H
#define TESTS_NAMES_NOTE_H

#ifdef __cplusplus
extern "C" {
#endif
int printf(const char *format, ...);
int fflush(void *file);
__attribute__((noreturn)) void exit(int status);
extern const char __ImageBase; /* the linker's: where the module begins */
#ifdef __cplusplus
}
#endif

/* gcc makes no second version of such a function, which would have a name of its own; clang makes one where an argument
 * is a constant address. */
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

/* The call of it is the last instruction of its function: the return address lies behind. */
static NOINLINE __attribute__((noreturn, unused)) void note_last(const char *marker)
{
	const char *from = (const char *)__builtin_return_address(0);

	printf("note %s %s %I64x\n", marker, MODULE, (unsigned long long)(from - &__ImageBase));
	fflush(0);
	exit(0);
}

#endif
