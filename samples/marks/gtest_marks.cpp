/*
 * GoogleTest: each test is a mark in hsnap's recording. Copy the listener, and append it in main().
 *
 *	hsnap record -o run.hrec -- gtest_marks.exe
 *	hdiff --by-mark run.hrec
 *
 * The other tests keep nothing:
 *
 * truth: Parser.Long keeps 20 blocks of 100 bytes in leak_node
 * truth: Cache.Fill keeps 3 blocks of 5000 bytes in leak_page
 */
#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>

#include <hsnap-mark.h>

class HsnapMarks : public testing::EmptyTestEventListener {
	void OnTestStart(const testing::TestInfo &test) override
	{
		char label[200];

		snprintf(label, sizeof(label), "%s.%s", test.test_suite_name(), test.name());
		hsnap_mark(label);
	}
	void OnTestIterationEnd(const testing::UnitTest &, int) override
	{
		hsnap_mark("(end)");
	}
};

#define NOINLINE __attribute__((noinline))

static void *volatile leaked; /* so that compilers keep the allocations */

static NOINLINE void leak_node()
{
	leaked = malloc(100);
}

static NOINLINE void leak_page()
{
	leaked = malloc(5000);
}

TEST(Parser, Short)
{
	leaked = malloc(77);
	EXPECT_NE(leaked, nullptr);
	free(leaked);
}

TEST(Parser, Long)
{
	for (volatile int i = 0; i < 20; i++)
		leak_node();
}

TEST(Cache, Fill)
{
	for (volatile int i = 0; i < 3; i++)
		leak_page();
}

TEST(Cache, Empty)
{
	free(malloc(1234));
}

int main(int argc, char **argv)
{
	testing::InitGoogleTest(&argc, argv);
	testing::UnitTest::GetInstance()->listeners().Append(new HsnapMarks);
	return RUN_ALL_TESTS();
}
