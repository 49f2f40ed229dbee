/* One form for names that compilers and tools spell in several ways. The suffixes are those of gcc
 * 12 and 14, and of clang 14 and 19. The decorations of calling conventions are from Microsoft's
 * page "Decorated names". */
#include "tests/unit/t.h"

#include "symbolize/names.h"

static void check(const char *name, const char *expected)
{
	struct arena arena;

	arena_init(&arena);
	assert_string_equal(names_plain(&arena, name), expected);
	/* A plain name stays unchanged. */
	assert_string_equal(names_plain(&arena, expected), expected);
	arena_release(&arena);
}

TEST(clones_have_name_of_their_function)
{
	static const char *const suffixes[] = {".isra.0", ".constprop.0", ".part.12", ".cold",
		".cold.3", ".lto_priv.0", ".specialized.1", ".llvm.12345678901234567890",
		".localalias", ".localalias.1", ".constprop.0.isra.0", ".isra.0.part.0.cold",
		".__uniq.81.llvm.7"};
	static const char *const functions[] = {"f", "fill_map", "app::f(int)",
		"std::map<int, int>::insert(...)", "(anonymous namespace)::f()",
		"f()::{lambda(int)#1}::operator()(int) const"};
	char name[300];

	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		const char *f = functions[i];

		check(f, f);
		for (size_t k = 0; k < sizeof(suffixes) / sizeof(*suffixes); k++) {
			snprintf(name, sizeof(name), "%s%s", f, suffixes[k]);
			check(name, f);
			snprintf(name, sizeof(name), "%s (%s)", f, suffixes[k]); /* LLVM's form */
			check(name, f);
			snprintf(name, sizeof(name), "%s [clone %s]", f,
				suffixes[k]); /* libiberty's form */
			check(name, f);
			snprintf(name, sizeof(name), "%s [clone %s] [clone .part.0]", f,
				suffixes[k]);
			check(name, f);
		}
	}
}

TEST(other_dots_belong_to_name)
{
	static const char *const names[] = {"main.main", "runtime.mallocgc", "main.(*T).part",
		"f.isra", "f.isra.x", "f.isra.0x", "f.avx2", "f.coldest", "f.cold.x", "f (.avx2)",
		"f [clone .avx2]", ".cold", ".isra.0", "f.", "f(...)", "f [clone .isra.0",
		"f (.isra.0", "", ".", " (.cold)", " [clone .cold]"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		check(names[i], names[i]);
}

TEST(calling_conventions_are_no_part_of_name)
{
	static const char *const names[][2] = {{"_f@8", "f"}, {"f@8", "f"}, {"@f@8", "f"},
		{"f@@16", "f"}, {"_f@0", "f"}, {"__f@8", "_f"}, {"f_2@12", "f_2"},
		{"_f@8.part.0", "f"}, {"_f", "_f"}, {"@f", "@f"}, {"f@", "f@"}, {"@8", "@8"},
		{"@@8", "@@8"}, {"_@8", "_@8"}, {"f@x", "f@x"}, {"f@8x", "f@8x"},
		{"a b@8", "a b@8"}, {"f(int)@8", "f(int)@8"}, {"f@a@8", "f@a@8"},
		{"?f@@YAXXZ", "?f@@YAXXZ"}, {"?f@@8", "?f@@8"}};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		check(names[i][0], names[i][1]);
}
