/* A program in C++ whose return addresses and their names are known. */
#define MODULE "names_cpp.exe"

#include "tests/symbols/names_note.h"

extern "C" int _fltused; /* what MSVC's C library says when there are fractions */
int _fltused;

namespace app
{

NOINLINE int turn(int value)
{
	note("turn-int"); /* frame turn-int 1 app::turn(int) */
	return value + 7;
}

NOINLINE int turn(double value)
{
	note("turn-double"); /* frame turn-double 1 app::turn(double) */
	return (int)value + 11;
}

NOINLINE int turn(const char *value)
{
	note("turn-text"); /* frame turn-text 1 app::turn(char const*) */
	return *value + 13;
}

template <class T> struct Pool {
	T kept;

	NOINLINE int grab(T value)
	{
		/* clang-format off */
		note(mark(value)); /* frame grab-int 1 app::Pool<int>::grab(int) */ /* frame grab-double 1 app::Pool<double>::grab(double) */
		/* clang-format on */
		kept = value;
		return (int)kept + 17;
	}

	static const char *mark(int)
	{
		return "grab-int";
	}
	static const char *mark(double)
	{
		return "grab-double";
	}
};

template <class T> NOINLINE int fill(T value)
{
	note("fill"); /* frame fill 1 app::fill<long>(long) */
	return (int)value + 19;
}

struct Number {
	int value;

	NOINLINE int operator+(const Number &other) const
	{
		note("plus"); /* frame plus 1 app::Number::operator+(app::Number const&) const */
		return value + other.value;
	}

	NOINLINE ~Number()
	{
		note("gone"); /* frame gone 1 app::Number::~Number() */
	}
};

/* Two levels, one of them a method. */
struct Gate {
	int passed;

	__attribute__((always_inline)) inline int enter(int value)
	{
		note("gate"); /* frame gate 1 app::Gate::enter(int) */
		return passed += value;
	}
};

__attribute__((always_inline)) inline int open_gate(Gate &gate, int value)
{
	int sum = gate.enter(value + 1); /* frame gate 2 app::open_gate(app::Gate&, int) */

	return sum * 3;
}

static volatile int last_sum;

NOINLINE int pass(int value)
{
	Gate gate = {value};
	int sum = open_gate(gate, value); /* frame gate 3 app::pass(int) */

	/* Not the end of what was inlined and the call at one address: Wine takes the first line there. */
	last_sum = sum;
	note("passed"); /* frame passed 1 app::pass(int) */
	return sum + gate.passed;
}

namespace
{
NOINLINE int lurk(int value)
{
	note("lurk"); /* frame lurk 1 app::(anonymous namespace)::lurk(int) */
	return value + 23;
}
} // namespace

/* clang-format off */
NOINLINE int a_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more(int value)
{
	note("long"); /* frame long 1 app::a_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more(int) */
	return value + 29;
}
/* clang-format on */

} // namespace app

int main(int argc, char **)
{
	app::Pool<int> ints;
	app::Pool<double> doubles;
	const char *volatile text = "text";
	int sum = app::turn(argc) + app::turn(argc + 0.5) + app::turn(text);

	sum += ints.grab(argc) + doubles.grab(argc + 0.5) + app::fill((long)argc);
	{
		app::Number one = {argc}, two = {argc + 1};
		sum += one + two;
	}
	sum += app::pass(argc) + app::lurk(argc);
	sum += app::
		a_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more_name_of_two_hundred_letters_and_more(
			argc);
	return sum == 0;
}
