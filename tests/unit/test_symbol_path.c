/* Symbol paths, as Microsoft documents _NT_SYMBOL_PATH. */
#include "tests/unit/t.h"

#include "core/base/memory.h"
#include "symbolize/files/find_parts.h"

/* The places of text: "F" for a folder, "S" for a store, each with its path; "@" and the server; "!"
 * and what makes no sense. */
static void check(const char *text, const char *places)
{
	struct symbol_path path;
	struct buf got;

	symbol_path_init(&path);
	buf_init(&got);
	assert_int_equal(symbol_path_parse(&path, text), 0);
	assert_int_equal(buf_add_text(&got, ""), 0);
	for (size_t i = 0; i < path.count; i++)
		assert_int_equal(buf_printf(&got, "%c[%s]", path.places[i].is_store ? 'S' : 'F',
					 path.places[i].path),
			0);
	if (path.server)
		assert_int_equal(buf_printf(&got, "@[%s]", path.server), 0);
	if (path.strange)
		assert_int_equal(buf_printf(&got, "![%s]", path.strange), 0);
	assert_string_equal(got.data, places);
	buf_release(&got);
	symbol_path_release(&path);
}

TEST(test_folders_are_taken_in_order_each_once)
{
	check("", "");
	check(";; ;", "");
	check("C:\\sym", "F[C:\\sym]");
	check("C:\\a b;/srv/x;..;C:\\a b", "F[C:\\a b]F[/srv/x]F[..]");
	check(" \"C:\\a b\" ; D:\\ ", "F[C:\\a b]F[D:\\]");
	check("\\\\host\\share\\sym", "F[\\\\host\\share\\sym]");
}

TEST(test_stores_stand_behind_srv)
{
	check("srv*C:\\cache*https://example.org/sym", "S[C:\\cache]@[https://example.org/sym]");
	check("SRV*A*B*\\\\host\\sym*HTTP://x/", "S[A]S[B]S[\\\\host\\sym]@[HTTP://x/]");
	check("symsrv*symsrv.dll*C:\\c*https://x", "S[C:\\c]@[https://x]");
	check("SymSrv*my.dll*C:\\c", "S[C:\\c]");
	check("srv**https://x;C:\\a", "F[C:\\a]@[https://x]");
	check("srv*https://x", "@[https://x]");
	check("srv*C:\\c", "S[C:\\c]");
}

TEST(test_caches_are_stores)
{
	check("cache*C:\\c;srv*https://x", "S[C:\\c]@[https://x]");
	check("Cache*;D:\\a", "F[D:\\a]");
	/* A folder that is both is searched as both. */
	check("C:\\c;cache*C:\\c", "F[C:\\c]S[C:\\c]");
}

TEST(test_servers_are_named_even_when_nobody_names_them)
{
	check("srv*", "@[srv*]");
	check("symsrv*symsrv.dll", "@[symsrv*symsrv.dll]");
	check("https://x/y;C:\\a", "F[C:\\a]@[https://x/y]");
	check("srv*https://first;srv*https://second", "@[https://first]");
	check("c://x", "F[c://x]"); /* a drive */
}

TEST(test_what_makes_no_sense_is_told)
{
	check("C:\\a;foo*bar;D:\\b", "F[C:\\a]F[D:\\b]![foo*bar]");
	check("*", "![*]");
	check("*;x*y", "![*]");
}

/* 100,000 elements, and 100,000 times the same: no matter. */
TEST(test_long_paths_are_read_in_no_time)
{
	enum { COUNT = 100000 };
	struct symbol_path path;
	struct buf text;

	buf_init(&text);
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(buf_printf(&text, "f%d;srv*same*s%d;", i, i), 0);
	symbol_path_init(&path);
	assert_int_equal(symbol_path_parse(&path, text.data), 0);
	assert_int_equal(path.count, 2 * COUNT + 1);
	assert_string_equal(path.places[2 * COUNT].path, "s99999");
	assert_string_equal(path.places[1].path, "same");
	symbol_path_release(&path);
	buf_release(&text);
}
