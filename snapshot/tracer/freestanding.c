/* What the compiler expects of a C library and this DLL, which has none, must bring along. */
#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t len);
void *memset(void *to, int value, size_t len);

void *memcpy(void *restrict to, const void *restrict from, size_t len)
{
	void *start = to;

	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(len) : : "memory");
	return start;
}

void *memset(void *to, int value, size_t len)
{
	void *start = to;

	__asm__ volatile("rep stosb" : "+D"(to), "+c"(len) : "a"(value) : "memory");
	return start;
}
