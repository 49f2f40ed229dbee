/* PDBs through llvm-symbolizer. hsym uses only the PDB that the finder found, whatever files lie
 * nearby. The expected results are the marks in the source below, and the function addresses that
 * llvm-pdbutil and objdump report. */
#include "tests/unit/scratch.h"

#include <dirent.h>

#include "symbolize/backend/backend.h"

static const char source_text[] =
	"extern int printf(const char *, ...);\n"
	"int sink;\n"
	"int first(void) { return sink; }\n"
	"static inline __attribute__((always_inline)) int inl_inner(int n)\n"
	"{\n"
	"\tint got;\n"
	"\n"
	"\tgot = printf(\"%d\", n); /* call of printf */\n"
	"\tsink += got;\n"
	"\treturn got + 1;\n"
	"}\n"
	"__attribute__((noinline)) int api(int n)\n"
	"{\n"
	"\tint k = inl_inner(n + 1); /* call of inl_inner */\n"
	"\tsink += k;\n"
	"\treturn k * 2;\n"
	"}\n"
	"int main(void) { return api(3); }\n"
	"int __main(void) { return 0; }\n";

static char exe[340], pdb[340];
static uint32_t api_start, call_rva; /* the byte before the return address */
static struct pe_image pe;

static uint32_t line_of(const char *mark)
{
	const char *at = strstr(source_text, mark);
	uint32_t line = 1;

	assert_non_null(at);
	for (const char *c = source_text; c < at; c++)
		line += *c == '\n';
	return line;
}

/* Builds the program; without the tools exe stays empty. */
static int build(void **state)
{
	char command[1500];

	if (scratch_begin(state))
		return -1;
	scratch_write("s.c", source_text, 0644);
	snprintf(command, sizeof(command),
		"cd '%s' && command -v llvm-symbolizer$LLVM llvm-pdbutil$LLVM >tools && "
		"clang$LLVM --target=x86_64-w64-mingw32 -O1 -g -gcodeview -c s.c && "
		"ld.lld$LLVM -m i386pep --entry=main --pdb=s.pdb s.o -L/usr/x86_64-w64-mingw32/lib "
		"-lmsvcrt -o s.exe 2>tools",
		dir);
	if (system(command) != 0)
		return 0;
	snprintf(exe, sizeof(exe), "%s/s.exe", dir);
	snprintf(pdb, sizeof(pdb), "%s/s.pdb", dir);
	assert_int_equal(scratch_headers(exe, &pe), 0);
	snprintf(command, sizeof(command),
		"llvm-pdbutil$LLVM dump --symbols '%s' | sed -n '/S_GPROC32.*`api`/{n;"
		"s/.*addr = 0001:\\([0-9]*\\),.*/\\1/p;}'",
		pdb);
	api_start = pe.sections[0].rva + (uint32_t)scratch_number(command, 10);
	snprintf(command, sizeof(command),
		"x86_64-w64-mingw32-objdump -d --no-show-raw-insn --start-address=0x%llx '%s' | "
		"awk 'seen { print $1; exit } $2 == \"call\" { seen = 1 }'",
		(unsigned long long)pe.preferred_base + api_start, exe);
	call_rva = (uint32_t)(scratch_number(command, 16) - pe.preferred_base) - 1;
	scratch_use_llvm();
	return 0;
}

static void need_exe(void)
{
	if (!exe[0]) {
		print_message("# no clang, lld and llvm here\n");
		skip();
	}
	assert_true(api_start > pe.sections[0].rva && call_rva > api_start &&
		    call_rva < api_start + 100);
}

static struct {
	struct sym_module subject;
	struct lookup lookup;
	struct arena arena;
	bool is_trouble;
} scene;

static int close_scene(void **state)
{
	(void)state;
	tables_free(scene.subject.tables);
	buf_release(&scene.subject.files.reason);
	arena_release(&scene.arena);
	memset(&scene, 0, sizeof(scene));
	return 0;
}

static void ask(const char *image, const char *debug)
{
	static const struct symbol_options options;
	static struct module module = {.path = "C:\\s.exe"};
	void *backend = llvm_backend.make(&options, NULL);

	close_scene(NULL);
	scene.subject = (struct sym_module){.module = &module,
		.files = {.image = (char *)(uintptr_t)image,
			.pe = image ? &pe : NULL,
			.pdb = (char *)(uintptr_t)debug}};
	scene.subject.tables = tables_new(&scene.subject.files, false);
	scene.lookup = (struct lookup){.rva = call_rva};
	arena_init(&scene.arena);
	llvm_backend.resolve(backend, &scene.subject, &scene.lookup, 1, &scene.arena);
	scene.is_trouble = llvm_backend.trouble(backend) != NULL;
	llvm_backend.release(backend);
}

static void ask_through(const char *program)
{
	char path[400];

	snprintf(path, sizeof(path), "%s/llvm", dir);
	scratch_write("llvm", program, 0755);
	setenv("HSYM_LLVM", path, 1);
	ask(exe, pdb);
	scratch_use_llvm();
}

#undef TEST_AROUND
#define TEST_AROUND NULL, close_scene

static void check_names(bool has_inlined_line, bool has_offset)
{
	const struct symbol *list = scene.lookup.found.list;

	assert_true(scene.lookup.is_answered);
	assert_int_equal(scene.lookup.found.count, 2);
	assert_string_equal(list[0].function, "inl_inner");
	assert_int_equal(list[0].line, has_inlined_line ? line_of("call of printf") : 0);
	assert_int_equal(list[0].file != NULL, has_inlined_line);
	assert_string_equal(list[1].function, "api");
	assert_int_equal(list[1].line, line_of("call of inl_inner"));
	assert_non_null(strstr(list[1].file, "s.c"));
	if (has_offset)
		assert_int_equal(list[1].offset_bytes, call_rva + 1 - api_start);
}

TEST(test_pdb_is_asked_with_and_without_its_image)
{
	need_exe();
	ask(exe, pdb);
	check_names(true, true);
	ask(NULL, pdb);
	check_names(true, false);
}

/* The image refers to s.pdb next to it, but the finder has not approved that file. */
TEST(test_pdb_that_was_not_found_is_not_asked)
{
	need_exe();
	assert_true(pe.pdb[0]);
	ask(exe, NULL);
	assert_int_equal(scene.lookup.found.count, 0);
	assert_false(scene.lookup.is_answered);
}

TEST(test_any_path_of_pdb_can_be_asked)
{
	static const char *const names[] = {
		"with blanks.pdb", "\xc3\xa4\xe6\x97\xa5.pdb", "q\"uote.pdb", "new\nline.pdb", "7"};
	char path[400];

	need_exe();
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		assert_int_equal(rename(pdb, path), 0);
		ask(exe, path);
		check_names(true, true);
		assert_int_equal(rename(path, pdb), 0);
	}
}

TEST(test_lines_that_version_has_wrong_are_left_out)
{
	static const char *const versions[] = {"Debian LLVM version 14.0.6", "LLVM version 15.0.0"};
	char script[300];

	need_exe();
	for (int i = 0; i < 2; i++) {
		snprintf(script, sizeof(script),
			"#!/bin/sh\n[ \"$1\" != --version ] || { echo '%s'; exit; }\n"
			"exec llvm-symbolizer$LLVM \"$@\"\n",
			versions[i]);
		ask_through(script);
		check_names(i, true);
	}
}

/* A function from a PDB has its own line, even without inlined functions. */
TEST(test_where_it_dies_over_inlined_functions_function_has_its_line)
{
	need_exe();
	ask_through(
		"#!/bin/sh\ncase $* in *--no-inlines*) exec llvm-symbolizer$LLVM \"$@\";; esac\n"
		"read -r line\nexit 1\n");
	assert_true(scene.lookup.is_answered);
	assert_int_equal(scene.lookup.found.count, 1);
	assert_string_equal(scene.lookup.found.list[0].function, "api");
	assert_int_equal(scene.lookup.found.list[0].line, line_of("call of inl_inner"));
	assert_int_equal(scene.lookup.found.list[0].offset_bytes, call_rva + 1 - api_start);
	assert_false(scene.is_trouble);
}

TEST(test_truncated_pdb_gives_no_wrong_names)
{
	static const size_t parts[] = {0, 1, 40, 4096, 20000, 60000};
	char path[400], command[1000];

	need_exe();
	snprintf(path, sizeof(path), "%s/cut.pdb", dir);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		snprintf(command, sizeof(command), "head -c %zu '%s' >'%s'", parts[i], pdb, path);
		assert_int_equal(system(command), 0);
		ask(exe, path);
		if (scene.lookup.found.count && scene.lookup.found.list[0].line)
			check_names(true, true);
	}
}

static unsigned open_files(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

TEST(test_nothing_stays_behind)
{
	unsigned before = open_files();

	need_exe();
	ask(exe, pdb);
	close_scene(NULL);
	assert_int_equal(open_files(), before);
}

GROUP(build, scratch_end)
