/* For the tests of hsym: a dump goes in, and what comes out is compared. */
#ifndef TESTS_UNIT_TEST_ADDNAMES_H
#define TESTS_UNIT_TEST_ADDNAMES_H

#include "core/dump/dump.h"
#include "symbolize/hsym/hsym.h"

#define MODULES                                                                                    \
	"// Loaded modules: \n//     Base Size Module\n"                                           \
	"//            400000     1000 C:\\none\\a.exe\n"                                          \
	"//\n// Process modules enumerated.\n"
#define STACK "\n10 bytes + 8 at 20000 by BackTrace1\n\t400010\n\t400020\n\t7\n\n"
#define OURS "// hsnap: dump format=1\n" MODULES STACK
#define END "// hsnap: end blocks=1 requested=16 overhead=8\n"
#define NAME_10 "// hsnap: name addr=400010 function=\"f\" offset=1\n"
#define NAME_20 "// hsnap: name addr=400020 function=\"g\" offset=2 file=\"s.c\" line=3\n"

static const struct symbol_options no_cache = {.no_cache = true};
static char dir[300], in_path[340], out_path[340];

static inline int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "%s/test_addnames.XXXXXX",
		getenv("TMPDIR") ? getenv("TMPDIR") : "build");
	if (!mkdtemp(dir))
		return -1;
	snprintf(in_path, sizeof(in_path), "%s/in", dir);
	snprintf(out_path, sizeof(out_path), "%s/out", dir);
	return 0;
}

static inline int remove_dir(void **state)
{
	(void)state;
	unlink(in_path);
	unlink(out_path);
	return rmdir(dir);
}

static inline void write_in(const char *text, size_t len)
{
	FILE *file = fopen(in_path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, len, file), len);
	(void)fclose(file);
}

/* As if a backend knew the first two addresses. */
static inline void name_by_hand(struct addnames *work)
{
	static const struct symbol f = {"f", 1, NULL, 0}, g = {"g", 2, "s.c", 3};

	for (size_t i = 0; i < work->count; i++) {
		struct symbol_query *query = &work->queries[i];

		if (query->found.count)
			continue;
		if (query->addr == 0x400010)
			query->found = (struct symbols){&f, 1};
		if (query->addr == 0x400020)
			query->found = (struct symbols){&g, 1};
	}
}

/* What hsym does; the error of the reading. */
static inline int add_names(bool accept_cut)
{
	struct addnames work;
	struct input input;
	struct out out;
	struct err err;
	int rc;

	assert_int_equal(input_open(&input, in_path, &err), 0);
	assert_int_equal(addnames_init(&work, &no_cache, &err), 0);
	rc = addnames_read(&work, &input, accept_cut, &err);
	if (!rc) {
		addnames_resolve(&work);
		name_by_hand(&work);
		assert_int_equal(input_rewind(&input, &err), 0);
		assert_int_equal(out_open(&out, out_path, &err), 0);
		assert_int_equal(addnames_copy(&work, &input, &out, &err), 0);
		assert_int_equal(out_commit(&out, &err), 0);
	}
	addnames_release(&work);
	input_close(&input);
	return rc;
}

static inline void expect_bytes(const char *wanted, size_t len)
{
	char *text = malloc(len + 2);
	FILE *file = fopen(out_path, "rb");

	assert_non_null(text);
	assert_non_null(file);
	assert_int_equal(fread(text, 1, len + 2, file), len);
	assert_memory_equal(text, wanted, len);
	(void)fclose(file);
	free(text);
}

static inline void expect(const char *in, const char *wanted)
{
	write_in(in, strlen(in));
	assert_int_equal(add_names(false), 0);
	expect_bytes(wanted, strlen(wanted));
	write_in(wanted, strlen(wanted)); /* its own output stays as it is */
	assert_int_equal(add_names(false), 0);
	expect_bytes(wanted, strlen(wanted));
}

#endif
