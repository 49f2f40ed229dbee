/* Symbol paths, as Microsoft documents _NT_SYMBOL_PATH. */
#include "tests/unit/t.h"

#include "symbolize/files/local_path.h"

/* Places in a text: "F" and "S" are a folder and a store, each with its path. "@" precedes a
 * server, and "!" an invalid element. */
static const char *const truths[][2] = {{"", ""}, {";; ;", ""}, {"C:\\sym", "F[C:\\sym]"},
	{"C:\\a b;/srv/x;..;C:\\a b", "F[C:\\a b]F[/srv/x]F[..]"}, /* the duplicate is removed */
	{" \"C:\\a b\" ; D:\\ ", "F[C:\\a b]F[D:\\]"},
	{"\\\\host\\share\\sym", "F[\\\\host\\share\\sym]"},
	/* stores and servers */
	{"srv*C:\\cache*https://example.org/sym", "S[C:\\cache]@[https://example.org/sym]"},
	{"SRV*A*B*\\\\host\\sym*HTTP://x/", "S[A]S[B]S[\\\\host\\sym]@[HTTP://x/]"},
	{"symsrv*symsrv.dll*C:\\c*https://x", "S[C:\\c]@[https://x]"},
	{"SymSrv*my.dll*C:\\c", "S[C:\\c]"}, {"srv**https://x;C:\\a", "F[C:\\a]@[https://x]"},
	{"srv*https://x", "@[https://x]"}, {"srv*C:\\c", "S[C:\\c]"},
	{"cache*C:\\c;srv*https://x", "S[C:\\c]@[https://x]"}, {"Cache*;D:\\a", "F[D:\\a]"},
	{"C:\\c;cache*C:\\c", "F[C:\\c]S[C:\\c]"}, /* the folder is searched as both */
	{"srv*", "@[srv*]"}, {"symsrv*symsrv.dll", "@[symsrv*symsrv.dll]"},
	{"https://x/y;C:\\a", "F[C:\\a]@[https://x/y]"},
	{"srv*https://first;srv*https://second", "@[https://first]"},
	{"c://x", "F[c://x]"}, /* c: is a drive, not a scheme */
	/* invalid elements */
	{"C:\\a;foo*bar;D:\\b", "F[C:\\a]F[D:\\b]![foo*bar]"}, {"*", "![*]"}, {"*;x*y", "![*]"}};

TEST(test_symbol_path_names_places_in_order)
{
	for (size_t i = 0; i < sizeof(truths) / sizeof(*truths); i++) {
		struct symbol_path path;
		struct buf got;

		symbol_path_init(&path);
		buf_init(&got);
		symbol_path_parse(&path, truths[i][0]);
		buf_add_text(&got, "");
		for (size_t k = 0; k < path.count; k++)
			buf_printf(&got, "%c[%s]", path.places[k].is_store ? 'S' : 'F',
				path.places[k].path);
		if (path.server)
			buf_printf(&got, "@[%s]", path.server);
		if (path.strange)
			buf_printf(&got, "![%s]", path.strange);
		assert_string_equal(got.data, truths[i][1]);
		buf_release(&got);
		symbol_path_release(&path);
	}
}
