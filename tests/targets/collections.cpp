/*
 * collections: a C++ program with strings, maps, lists and vectors of the standard library, and with
 * exceptions that pass through functions that allocate. It states each function's live blocks
 * (stated.h); their sizes follow from the types.
 *
 * Step K: each function has run K times.
 */
#include <cstddef>
#include <list>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "tests/targets/stated.h"

#define STAY() __asm__ volatile("" ::: "memory")

namespace
{
const unsigned NODES = 30, TEXT_LEN = 200, TEXTS = 5, ITEMS = 7, NUMBERS = 50;

struct base {
	virtual ~base() = default;
	virtual NOINLINE void leak_by_virtual() = 0;
};

struct derived : base {
	NOINLINE void leak_by_virtual() override
	{
		step_leak(new char[300]);
		STAY();
	}
};

std::map<unsigned, unsigned> *nodes;
std::vector<std::string> *texts;
std::list<long> *items;

NOINLINE void fill_map(unsigned long step)
{
	for (unsigned i = 0; i < NODES; i++)
		(*nodes)[(unsigned)step * NODES + i] = i;
	STAY();
}

NOINLINE void append_texts(unsigned long step)
{
	for (unsigned i = 0; i < TEXTS; i++)
		texts->at((step - 1) * TEXTS + i) = std::string(TEXT_LEN, 'x');
	STAY();
}

NOINLINE void fill_list()
{
	for (unsigned i = 0; i < ITEMS; i++)
		items->push_back(i);
	STAY();
}

NOINLINE void reserve_vector()
{
	std::vector<int> *numbers = static_cast<std::vector<int> *>(step_leak(new std::vector<int>));

	numbers->reserve(NUMBERS);
	STAY();
}

NOINLINE void throw_deep(unsigned depth)
{
	std::string dies(TEXT_LEN, 'y'); /* freed while the exception passes */

	step_leak(new int[40]);
	if (!depth)
		throw (int)dies.size();
	throw_deep(depth - 1);
	STAY();
}

NOINLINE void catch_it()
{
	try {
		throw_deep(3);
	} catch (int size) {
		step_leak(new char[(size_t)size]);
	}
	STAY();
}

/* FUNCTION is innermost of the program's own; throw_deep's blocks have catch_it on their stacks, too. */
void state_all(unsigned long step)
{
	unsigned node = sizeof(std::_Rb_tree_node<std::pair<const unsigned, unsigned>>);
	unsigned item = sizeof(std::_List_node<long>);

	state("sum fill_map %lu %lu\n", step * NODES * node, step * NODES);
	state("sum append_texts %lu %lu\n", step * TEXTS * (TEXT_LEN + 1), step * TEXTS);
	state("sum fill_list %lu %lu\n", step * ITEMS * item, step * ITEMS);
	state("sum reserve_vector %lu %lu\n",
		step * (unsigned long)(sizeof(std::vector<int>) + NUMBERS * sizeof(int)), step * 2);
	state("sum throw_deep %lu %lu\n", step * 4 * 40 * (unsigned long)sizeof(int), step * 4);
	state("sum catch_it %lu %lu\n", step * (4 * 40 * (unsigned long)sizeof(int) + TEXT_LEN),
		step * 5);
	state("sum leak_by_virtual %lu %lu\n", step * 300, step);
}
} // namespace

int main()
{
	static derived object;
	base *volatile by = &object;

	nodes = new std::map<unsigned, unsigned>;
	items = new std::list<long>;
	texts = new std::vector<std::string>(100);
	for (volatile unsigned long step = 1;; step++) {
		fill_map(step);
		append_texts(step);
		fill_list();
		reserve_vector();
		catch_it();
		by->leak_by_virtual();
		state_all(step);
		if (!state_step(step))
			return 0;
	}
}
