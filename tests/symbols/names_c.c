/* A C program with known return addresses and names. It loads the DLL next to it. The build with
 * OTHER_BUILD has the same code with other names. If a reader uses the files of that build for the
 * program without OTHER_BUILD, it shows the wrong names. */
#define MODULE "names_c.exe"

#include "tests/symbols/names_note.h"

#include "tests/symbols/names_inline.h"

#ifdef OTHER_BUILD
#define plain_call other_plain_call
#define hidden_call other_hidden_call
#define chain_of_two other_chain_of_two
#endif

typedef int run_dll(int value);
__declspec(dllimport) void *LoadLibraryA(const char *file);
__declspec(dllimport) run_dll *GetProcAddress(void *module, const char *name);

int plain_call(int value);
int chain_of_two(int value);
int a_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more(
	int value);
__attribute__((noreturn)) void ends_here(int value);

NOINLINE int plain_call(int value)
{
	note("plain"); /* frame plain 1 plain_call */
	return value + 7;
}

static NOINLINE int hidden_call(int value)
{
	note("static"); /* frame static 1 hidden_call */
	return value + 11;
}

NOINLINE int chain_of_two(int value)
{
	int sum = outer_step(value + 1); /* frame inlined 3 chain_of_two */

	note("behind"); /* frame behind 1 chain_of_two */
	return sum + 13;
}

/* clang-format off */
NOINLINE int a_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more(int value)
{
	note("long"); /* frame long 1 a_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more */
	return value + 17;
}
/* clang-format on */

NOINLINE void ends_here(int value)
{
	printf("%d\n", value);
	note_last("last"); /* frame last 1 ends_here */
}

/* The next function in the file must not get the last return address of the function above. */
int main(int argc, char **argv)
{
	void *dll = LoadLibraryA("names_dll.dll");
	run_dll *run = dll ? GetProcAddress(dll, "dll_run") : 0;
	int sum = plain_call(argc) + hidden_call(argc) + chain_of_two(argc);

	(void)argv;
	sum += a_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more(
		argc);
	if (run)
		sum += run(argc);
	note("main"); /* frame main 1 main */
	ends_here(sum);
}
