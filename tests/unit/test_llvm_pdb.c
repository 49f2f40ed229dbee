/* PDBs through llvm-symbolizer: only the one that was found is asked, whatever lies around it. The truth is
 * in the marks of the source below; where its functions are, llvm-pdbutil and objdump say. */
#include "tests/unit/scratch.h"

#include <dirent.h>

#include "core/base/memory.h"
#include "core/base/os.h"
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
static uint32_t api_start, call_rva; /* the byte before the one that the call returns to */
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

static int read_file(void *ctx, uint64_t offset, void *bytes, size_t len)
{
	return os_read_at(ctx, offset, bytes, len);
}

static void read_exe(void)
{
	struct os_file file;
	struct pe_source source = {.read = read_file, .ctx = &file};

	assert_int_equal(os_open(&file, exe, NULL), 0);
	assert_int_equal(pe_read_headers(&source, &pe), 0);
	os_close(&file);
}

/* Builds the program; without the tools there is no exe. */
static int build(void **state)
{
	char command[1500];

	if (scratch_begin(state))
		return -1;
	scratch_write("s.c", source_text, 0644);
	snprintf(command, sizeof(command),
		"cd %s && command -v llvm-symbolizer-16 llvm-pdbutil-16 >tools && "
		"clang-16 --target=x86_64-w64-mingw32 -O1 -g -gcodeview -c s.c && "
		"ld.lld-16 -m i386pep --entry=main --pdb=s.pdb s.o -L/usr/x86_64-w64-mingw32/lib "
		"-lmsvcrt -o s.exe 2>tools",
		dir);
	if (system(command) != 0)
		return 0;
	snprintf(exe, sizeof(exe), "%s/s.exe", dir);
	snprintf(pdb, sizeof(pdb), "%s/s.pdb", dir);
	read_exe();
	snprintf(command, sizeof(command),
		"llvm-pdbutil-16 dump --symbols %s | sed -n '/S_GPROC32.*`api`/{n;"
		"s/.*addr = 0001:\\([0-9]*\\),.*/\\1/p;}'",
		pdb);
	api_start = pe.sections[0].rva + (uint32_t)scratch_number(command, 10);
	snprintf(command, sizeof(command),
		"x86_64-w64-mingw32-objdump -d --no-show-raw-insn --start-address=0x%llx %s | "
		"awk 'seen { print $1; exit } $2 == \"call\" { seen = 1 }'",
		(unsigned long long)pe.preferred_base + api_start, exe);
	call_rva = (uint32_t)(scratch_number(command, 16) - pe.preferred_base) - 1;
	setenv("HSYM_LLVM", "/usr/bin/llvm-symbolizer-16", 1);
	return 0;
}

static void need_exe(void)
{
	if (!exe[0]) {
		print_message("# no clang-16, lld-16 and llvm-16 here\n");
		skip();
	}
	assert_true(api_start > pe.sections[0].rva && call_rva > api_start &&
		    call_rva < api_start + 100);
}

/* What one question came to. */
struct scene {
	struct symbol_options options;
	struct module module;
	struct sym_module subject;
	struct lookup lookup;
	struct arena arena;
	bool is_trouble;
};

/* Asks for the call, with these files; the scene is to be closed. */
static void ask(struct scene *scene, const char *image, const char *debug)
{
	struct backend *backend = llvm_backend.make(&scene->options, NULL);

	scene->module.path = (char *)"C:\\s.exe";
	scene->subject = (struct sym_module){.module = &scene->module,
		.files = {.image = (char *)(uintptr_t)image,
			.pe = image ? &pe : NULL,
			.pdb = (char *)(uintptr_t)debug}};
	scene->subject.tables = tables_new(&scene->subject.files, scene->options.no_demangle);
	scene->lookup = (struct lookup){.rva = call_rva};
	arena_init(&scene->arena);
	assert_int_equal(
		llvm_backend.resolve(backend, &scene->subject, &scene->lookup, 1, &scene->arena),
		0);
	scene->is_trouble = llvm_backend.trouble(backend) != NULL;
	llvm_backend.release(backend);
}

static void close_scene(struct scene *scene)
{
	tables_free(scene->subject.tables);
	buf_release(&scene->subject.files.reason);
	arena_release(&scene->arena);
}

static void check_names(const struct scene *scene, bool has_inlined_line, bool has_offset)
{
	const struct symbol *list = scene->lookup.found.list;

	assert_true(scene->lookup.is_answered);
	assert_int_equal(scene->lookup.found.count, 2);
	assert_string_equal(list[0].function, "inl_inner");
	assert_int_equal(list[0].line, has_inlined_line ? line_of("call of printf") : 0);
	assert_int_equal(list[0].file != NULL, has_inlined_line);
	assert_string_equal(list[1].function, "api");
	assert_int_equal(list[1].line, line_of("call of inl_inner"));
	assert_non_null(strstr(list[1].file, "s.c"));
	if (has_offset)
		assert_int_equal(list[1].offset_bytes, call_rva + 1 - api_start);
}

TEST(test_a_pdb_is_asked_with_and_without_its_image)
{
	struct scene scene = {0};

	need_exe();
	ask(&scene, exe, pdb);
	check_names(&scene, true, true);
	close_scene(&scene);
	ask(&scene, NULL, pdb);
	check_names(&scene, true, false);
	close_scene(&scene);
}

/* The image names s.pdb, which lies beside it: but nobody has found that to be the right one. */
TEST(test_a_pdb_that_was_not_found_is_not_asked)
{
	struct scene scene = {0};

	need_exe();
	assert_true(pe.pdb[0]);
	ask(&scene, exe, NULL);
	assert_int_equal(scene.lookup.found.count, 0);
	assert_false(scene.lookup.is_answered);
	close_scene(&scene);
}

TEST(test_any_path_of_a_pdb_can_be_asked)
{
	static const char *const names[] = {
		"with blanks.pdb", "\xc3\xa4\xe6\x97\xa5.pdb", "q\"uote.pdb", "new\nline.pdb", "7"};
	struct scene scene = {0};
	char path[400];

	need_exe();
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		assert_int_equal(rename(pdb, path), 0);
		ask(&scene, exe, path);
		check_names(&scene, true, true);
		close_scene(&scene);
		assert_int_equal(rename(path, pdb), 0);
	}
}

TEST(test_lines_that_a_version_has_wrong_are_left_out)
{
	struct scene scene = {0};
	char path[400];

	need_exe();
	snprintf(path, sizeof(path), "%s/llvm", dir);
	scratch_write("llvm",
		"#!/bin/sh\n[ \"$1\" != --version ] || { echo 'Debian LLVM version 14.0.6'; exit; "
		"}\n"
		"exec llvm-symbolizer-16 \"$@\"\n",
		0755);
	setenv("HSYM_LLVM", path, 1);
	ask(&scene, exe, pdb);
	check_names(&scene, false, true);
	close_scene(&scene);
	scratch_write("llvm",
		"#!/bin/sh\n[ \"$1\" != --version ] || { echo 'LLVM version 15.0.0'; exit; }\n"
		"exec llvm-symbolizer-16 \"$@\"\n",
		0755);
	ask(&scene, exe, pdb);
	check_names(&scene, true, true);
	close_scene(&scene);
	setenv("HSYM_LLVM", "/usr/bin/llvm-symbolizer-16", 1);
}

/* The line of a function in a PDB is its own, also when nothing inlined is looked for. */
TEST(test_where_it_dies_over_inlined_functions_the_function_has_its_line)
{
	struct scene scene = {0};
	char path[400];

	need_exe();
	snprintf(path, sizeof(path), "%s/llvm", dir);
	scratch_write("llvm",
		"#!/bin/sh\ncase $* in *--no-inlines*) exec llvm-symbolizer-16 \"$@\";; esac\n"
		"read -r line\nexit 1\n",
		0755);
	setenv("HSYM_LLVM", path, 1);
	ask(&scene, exe, pdb);
	assert_true(scene.lookup.is_answered);
	assert_int_equal(scene.lookup.found.count, 1);
	assert_string_equal(scene.lookup.found.list[0].function, "api");
	assert_int_equal(scene.lookup.found.list[0].line, line_of("call of inl_inner"));
	assert_int_equal(scene.lookup.found.list[0].offset_bytes, call_rva + 1 - api_start);
	assert_false(scene.is_trouble);
	close_scene(&scene);
	setenv("HSYM_LLVM", "/usr/bin/llvm-symbolizer-16", 1);
}

/* Cut anywhere, its names may be missing. */
TEST(test_a_truncated_pdb_gives_no_wrong_names)
{
	static const size_t parts[] = {0, 1, 40, 4096, 20000, 60000};
	struct scene scene = {0};
	char path[400], command[1000];

	need_exe();
	snprintf(path, sizeof(path), "%s/cut.pdb", dir);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		snprintf(command, sizeof(command), "head -c %zu %s >%s", parts[i], pdb, path);
		assert_int_equal(system(command), 0);
		ask(&scene, exe, path);
		if (scene.lookup.found.count && scene.lookup.found.list[0].line)
			check_names(&scene, true, true);
		close_scene(&scene);
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
	struct scene scene = {0};
	unsigned before = open_files();

	need_exe();
	ask(&scene, exe, pdb);
	close_scene(&scene);
	assert_int_equal(open_files(), before);
}

GROUP(build, scratch_end)
