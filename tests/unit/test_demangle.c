/* C++ names. The expected names come from the ABI's examples and from c++filt. For hostile names
 * the tests check that demangling ends and that the output is small. */
#include "tests/unit/t.h"

#include "symbolize/names.h"

#define TEXT_MAX 4000

/* `expected` is NULL if the name is not supported. */
static const struct {
	const char *name, *expected;
	bool is_mangled;
} truths[] = {{"_ZN3app1fEi", "app::f(int)", true}, {"_ZN3app1fEPc", "app::f(char*)", true},
	{"_ZN3app4PoolIdE4grabEv", "app::Pool<double>::grab()", true},
	{"_ZN1N1fEv", "N::f()", true},
	{"_ZngILi42EEvN1AIXplT_Li2EEE1TE", "void operator-<42>(A<(42)+(2)>::T)", true},
	/* With the additional underscore of 32-bit names. */
	{"_ZSt5state", "std::state", true}, {"__ZN3app1fEi", "app::f(int)", true},
	{"_Z1fM1AKFvvE", "f(void (A::*)() const)", true}, {"_ZN3appE", "app", true},
	{"_ZN3app1fEi.isra.0", "app::f(int) [clone .isra.0]", true}, {"main", NULL, false},
	{"", NULL, false}, {"_main", NULL, false}, {"_Z", NULL, true}, {"__Z", NULL, true},
	{"_Zqq", NULL, true}, {"_ZN99999999999999999999appE", NULL, true},
	{"?f@@YAXXZ", NULL, true}}; /* Microsoft's mangling */

TEST(test_names_are_as_source_has_them)
{
	for (size_t i = 0; i < sizeof(truths) / sizeof(*truths); i++) {
		const char *expected = truths[i].expected;
		struct buf text;

		buf_init(&text);
		buf_add_text(&text, "before ");
		assert_int_equal(demangle_name(truths[i].name, &text), expected != NULL);
		assert_memory_equal(text.data, "before ", 7);
		assert_string_equal(text.data + 7, expected ? expected : "");
		assert_int_equal(strlen(text.data), text.len);
		assert_int_equal(is_mangled(truths[i].name), truths[i].is_mangled);
		buf_release(&text);
	}
}

/* ---------------------------------------------------------------- hostile names */

/* Adds a reference to component `number`: "S_", "S0_", ... "SZ_", "S10_". */
static void add_reference(char *name, unsigned number)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char text[8] = "S_";

	if (number > 36)
		snprintf(text, sizeof(text), "S%c%c_", digits[(number - 1) / 36],
			digits[(number - 1) % 36]);
	else if (number)
		snprintf(text, sizeof(text), "S%c_", digits[number - 1]);
	strcat(name, text);
}

/* Adds Q<a, a>, Q<Q<a, a>, Q<a, a>> and so on. Each is twice as long as the previous one. `from` is
 * the number of the first component. */
static void add_doubling(char *name, unsigned from, unsigned steps)
{
	for (unsigned i = 0; i < steps; i++) {
		add_reference(name, from - 1);
		strcat(name, "I");
		add_reference(name, from + i);
		add_reference(name, from + i);
		strcat(name, "E");
	}
}

/* The text of each name is longer than 2^steps bytes and would fill any disk. In the second name,
 * the demangler must search all of that text for a pack before it can print anything. */
TEST(test_names_that_explode_are_cut_or_refused)
{
	for (unsigned steps = 1; steps < 80; steps++) {
		char name[2000] = "_Z1f1a1QIS_S_E"; /* a, Q and Q<a, a> are components 0 to 2 */
		/* P, a, Q and Q<a, a> are components 0 to 3. */
		char silent[2000] = "_Z1fDp1PI1a1QIS0_S0_E";
		struct buf text;
		int rc;

		add_doubling(name, 2, steps);
		buf_init(&text);
		rc = demangle_name(name, &text);
		assert_true(rc == 1 ? text.len <= TEXT_MAX : text.len == 0);
		if (steps <= 5) /* about 4 * 2^n bytes, which are not too many */
			assert_true(rc == 1 && text.len > 4u << steps);
		if (steps >= 8 && steps < 11)
			assert_true(rc == 1 && text.len == TEXT_MAX);
		if (steps >= 30) {
			assert_int_equal(rc, 0);
			add_doubling(silent, 3, steps);
			strcat(silent, "E");
			assert_int_equal(demangle_name(silent, &text), 0);
			assert_int_equal(text.len, 0);
		}
		buf_release(&text);
	}
}

TEST(test_names_that_nest_deeply_end)
{
	static const char *const parts[] = {"P", "N", "F", "1aI", "Dp", "cv", "A1_", "M1a", "JI",
		"X", "pl", "Z1f", "RT_", "DT", "L_Z", "sr", "U1a", "Dv1_", "Li"};
	static const unsigned counts[] = {100, 250, 500, 1000, 50000};
	struct buf name, text;

	buf_init(&name);
	buf_init(&text);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts) * 5; i++) {
		buf_clear(&name);
		buf_add_text(&name, "_Z1f");
		for (unsigned k = 0; k < counts[i % 5]; k++)
			buf_add_text(&name, parts[i / 5]);
		buf_add_text(&name, "v");
		buf_clear(&text);
		demangle_name(name.data, &text);
		assert_true(text.len <= TEXT_MAX);
	}
	buf_release(&name);
	buf_release(&text);
}

static const char tree[] =
	"_ZNSt8_Rb_treeINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEESt4pairIKS5_iESt10_"
	"Select1stIS8_ESt4lessIS5_ESaIS8_EE8_M_eraseEPSt13_Rb_tree_nodeIS8_E";
static const char *const seeds[] = {tree, "_ZngILi42EEvN1AIXplT_Li2EEE1TE", "_Z1fIJicdEEvDpT_",
	"_ZN3app1fIZNS_1gEvEUlvE_EEvT_", "_ZZN3app1gIiEEvT_ENKUlS1_E_clEi",
	"_Z1fM1AKFvvEPFiDpRT_EA3_c.cold"};
static const char *const tokens[] = {"S_", "S0_", "S1_", "S5_", "T_", "T0_", "Dp", "J", "I", "E",
	"1a", "1QI", "N", "P", "R", "K", "F", "v", "Z", "Li3E", "X", "sp", "sZ", "cv", "DpT_",
	"A3_", "M", "RT_", "sr", "L_Z", "Ul", "fr", "fp_", "DT", "\x80", "9"};

static unsigned next_random(unsigned *state, unsigned below)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) % below;
}

/* Inserts one token, once or several times, or removes a few bytes. */
static void mutate(char *name, size_t size, unsigned *random)
{
	size_t len = strlen(name), at = 2 + next_random(random, (unsigned)len - 2);
	const char *token = tokens[next_random(random, sizeof(tokens) / sizeof(*tokens))];
	unsigned times = next_random(random, 8) ? 1 : next_random(random, 60);
	size_t gone = next_random(random, 6);

	if (!next_random(random, 3) && at + gone < len) {
		memmove(name + at, name + at + gone, len - at - gone + 1);
		return;
	}
	while (times-- && len + strlen(token) + 1 < size) {
		memmove(name + at + strlen(token), name + at, len - at + 1);
		for (size_t i = 0; token[i]; i++)
			name[at + i] = token[i];
		len += strlen(token);
	}
}

/* Names found by fuzzing. gcc 12's demangler loops forever on the first names. The other names have
 * similar letters and c++filt's results. */
TEST(test_names_that_no_demangler_comes_to_end_of_are_refused)
{
	static const char *const names[] = {"_Z1fDTsr1aDpE", "_Z1fDTsr1aCpE", "_Z1fDTsrCpE",
		"_ZssssAsssssrssssDpsss", "_Z1fDTsr1aC1CpE", "_Z1fDTsr1aD3E", "_Z1fDTsr1aUE",
		"_Z1fDTsr1aC", "_ZssssAsrssssD", "_Z1fDTsr1aLCp", "_Z1fDTsr1aBCp",
		"_Z1fDTsr1aIiEDpE", "_Z1fDTsr1aLi7E1aCpE", "_Z1fDTcl1LLNS_E9E1asr1aCpE",
		"_Z1fDTsrS_CpE", "_ZssssAsssssssssssssssssssss3srssssssssssssssssssDpsss",
		"_Z1fDTsr1aIT_E1bDpE", "_Z1fDTsr1aIT_C", "_Z1fDTsrSt1aEsrSt1bDpE",
		"_Z1fDTsr99aIT_E1bEDpE"};
	static const char *const sound[][2] = {
		{"_Z1fIiENSt9enable_ifIXsrSt7is_sameIT_iE5valueEiE4typeES2_",
			"std::enable_if<std::is_same<int, int>::value, int>::type f<int>(int)"},
		{"_Z1fIiLi0EENSt9enable_ifIXsr8isDoubleIT_E6CValueEiE4typeE6CClass",
			"std::enable_if<isDouble<int>::CValue, int>::type f<int, 0>(CClass)"},
		{"_ZSt11make_sharedI3BigJEESt10shared_ptrINSt9enable_ifIXntsrSt8is_arrayIT_"
		 "E5valueES4_E4typeEEDpOT0_",
			"std::shared_ptr<std::enable_if<!std::is_array<Big>::value, Big>::type> "
			"std::make_shared<Big>()"},
		{"_ZSt11make_sharedISt6vectorIiSaIiEEJiEESt10shared_ptrINSt9enable_ifIXntsrSt8is_"
		 "arrayIT_E5valueES6_E4typeEEDpOT0_",
			"std::shared_ptr<std::enable_if<!std::is_array<std::vector<int, "
			"std::allocator<int> > >::value, std::vector<int, std::allocator<int> > "
			">::type> std::make_shared<std::vector<int, std::allocator<int> >, "
			"int>(int&&)"},
		{"_ZN3src10CodeDomain5UsingEv", "src::CodeDomain::Using()"}};
	struct buf text;

	buf_init(&text);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_int_equal(demangle_name(names[i], &text), 0);
	for (size_t i = 0; i < sizeof(sound) / sizeof(*sound); i++) {
		buf_clear(&text);
		assert_int_equal(demangle_name(sound[i][0], &text), 1);
		assert_string_equal(text.data, sound[i][1]);
	}
	buf_release(&text);
}

TEST(test_damaged_names_end_within_bounds)
{
	unsigned random = 7, good = 0;
	struct buf text;

	buf_init(&text);
	for (unsigned i = 0; i < 20000; i++) {
		char name[1200];

		strcpy(name, seeds[i % (sizeof(seeds) / sizeof(*seeds))]);
		for (unsigned times = next_random(&random, 4); times; times--)
			mutate(name, sizeof(name), &random);
		buf_clear(&text);
		good += demangle_name(name, &text) == 1;
		assert_true(text.len <= TEXT_MAX);
	}
	assert_true(good > 2000); /* many damaged names must still be parsed */
	buf_release(&text);
}
