#include "tests/unit/test_dump.h"

#include "core/base/text.h"

/* ---------------------------------------------------------------- round trip */

static const char *text(struct snapshot *snapshot, const char *words)
{
	return arena_text(&snapshot->arena, words, strlen(words));
}

static uint32_t write_stack(struct snapshot *snapshot, const char *id, uint32_t count,
	const uint64_t *frames, uint32_t alias_count, const uint32_t *alias_at)
{
	struct stack wanted = {.id = id,
		.frames = frames,
		.frame_count = count,
		.alias_count = alias_count,
		.alias_at = alias_at};
	uint32_t index;

	stackset_add(&snapshot->stacks, &wanted, strlen(id), &index);
	return index;
}

static void write_block(struct snapshot *snapshot, uint32_t heap, uint64_t addr, uint64_t requested,
	uint64_t overhead, uint32_t stack)
{
	struct block *block = snapshot_add_block(snapshot);

	assert_non_null(block);
	*block = (struct block){addr, requested, overhead, heap, stack};
}

static void write_modules(struct snapshot *snapshot)
{
	*snapshot_add_module(snapshot) = (struct module){.base = 0x140000000,
		.size_bytes = 0x24000,
		.path = text(snapshot, "C:\\a b\\\xc3\xa9 app.exe"),
		.pdb = text(snapshot, "D:\\o \"q\"\\app.pdb"),
		.pdb_guid = text(snapshot, "00112233445566778899AABBCCDDEEFF"),
		.pdb_age = 0x1F,
		.timestamp = 0x65A0B1C2,
		.checksum = 0xFFFFFFFF,
		.has_identity = true};
	*snapshot_add_module(snapshot) = (struct module){.base = 0x7FF812340000,
		.size_bytes = 0x200000,
		.path = text(snapshot, "C:\\windows\\ntdll.dll"),
		.timestamp = 1,
		.has_identity = true};
	*snapshot_add_module(snapshot) = (struct module){.base = 0xFFFFFFFFFFFF0000,
		.size_bytes = 0xFFFF,
		.path = text(snapshot, "high.sys")};
}

static void make_snapshot(struct snapshot *snapshot)
{
	static const uint64_t frames[] = {0x7FF812345678, 0x140001234, 0x140001490, UINT64_MAX};
	static const uint64_t more[] = {0x7FF812345678, 0x140001234, 0x140001491};
	static const uint32_t alias_at[] = {1, 3};
	uint32_t one, two, two_again, aliases;

	snapshot_init(snapshot);
	snapshot->pid = 4294967295;
	snapshot->parent_pid = 4294967294;
	snapshot->bits = 64;
	snapshot->time_ms = 1795170348123;
	snapshot->start_ms = -1;
	snapshot->image = text(snapshot, "C:\\a b\\\"app\\\t\x7f.exe");
	snapshot->os = text(snapshot, "10.0.19045");
	snapshot->host = text(snapshot, "b\u00fcro 7");
	snapshot->stack_source = "tracer";
	snapshot_warn(snapshot, "%s", "one \\ \"warning\"\r\nof two lines");
	snapshot_lacks(snapshot, "%s", "");
	write_modules(snapshot);
	snapshot->records = (struct stack_records){
		true, 7, 1, 2, UINT64_C(1) << 46, 9, 11, 2, 8, 6, 4096, 65536};
	*snapshot_add_heap(snapshot) = (struct heap){.addr = 0x650000,
		.bits = 32,
		.kind = text(snapshot, "nt"),
		.layout = text(snapshot, "Windows \"7\" x86"),
		.committed_bytes = 65536,
		.reserved_bytes = 1 << 20,
		.stackless = {3, 300, 24}};
	*snapshot_add_heap(snapshot) = (struct heap){.addr = 0x10000,
		.kind = text(snapshot, "unknown"),
		.unwalked = true,
		.is_complete = true,
		.traced_only = 3};
	one = write_stack(snapshot, "2A", 4, frames, 0, NULL);
	two = write_stack(snapshot, "F0", 3, more, 0, NULL);
	/* Equal frames with a different id. */
	two_again = write_stack(snapshot, "F1", 3, more, 0, NULL);
	aliases = write_stack(snapshot, "94C4", 4, frames, 2, alias_at);
	write_block(snapshot, 1, 0x10100, UINT64_C(1) << 40, 0, two_again);
	write_block(snapshot, 0, 0x650200, 0, 16, one);
	write_block(snapshot, 0, 0x650100, 0xABCDEF, 8, two);
	write_block(snapshot, 0, 0x650300, 1, 15, one);
	write_block(snapshot, 1, 0x10000, 7, 9, aliases);
	write_block(snapshot, 1, 0x10200, 5, 5, one); /* the stack was printed in the other heap */
}

/* Log that reading make_snapshot()'s dump must give. */
static const char told[] =
	"note process id=[4294967295] start=[1969-12-31T23:59:59.999Z] bits=[64] "
	"parent=[4294967294] "
	"image=[C:\\a b\\\"app\\\t\x7f.exe] os=[10.0.19045] "
	"host=[b\u00fcro 7]\n"
	"note stacks source=[tracer]\n"
	"note ust records=[7] broken-records=[1] cut-records=[2] database=[400000000000] "
	"entries=[9] "
	"lookups=[11] failures=[2] indexed=[8] chained=[6] used=[4096] reserved=[65536]\n"
	"note warning text=[one \\ \"warning\"\r\nof two lines]\n"
	"note warning text=[]\n"
	"note incomplete missing=[1]\n"
	"module 140000000 24000 C:\\a b\\\xc3\xa9 app.exe\n"
	"module 7FF812340000 200000 C:\\windows\\ntdll.dll\n"
	"module FFFFFFFFFFFF0000 FFFF high.sys\n"
	"note module base=[140000000] timestamp=[65A0B1C2] checksum=[FFFFFFFF] "
	"pdb=[D:\\o \"q\"\\app.pdb] guid=[00112233445566778899AABBCCDDEEFF] age=[1F]\n"
	"note module base=[7FF812340000] timestamp=[1] checksum=[0]\n"
	"note heap addr=[650000] kind=[nt] bits=[32] layout=[Windows \"7\" x86] committed=[65536] "
	"reserved=[1048576] stackless-blocks=[3] stackless-requested=[300] "
	"stackless-overhead=[24]\n"
	"note heap addr=[10000] kind=[unknown] committed=[0] reserved=[0] stackless-blocks=[0] "
	"stackless-requested=[0] stackless-overhead=[0] unwalked=[1] traced-only=[3] "
	"complete=[1]\n"
	"heap 650000\n"
	"heap 650000\n"
	"entry 1 ABCDEF 8 650100 F0 7FF812345678 140001234 140001491\n"
	"entry 1 0 10 650200 2A 7FF812345678 140001234 140001490 FFFFFFFFFFFFFFFF\n"
	"entry 1 1 F 650300 2A\n"
	"heap 10000\n"
	"heap 10000\n"
	"entry 1 7 9 10000 94C4 7FF812345678 140001234 140001490 FFFFFFFFFFFFFFFF @1 @3\n"
	"entry 1 10000000000 0 10100 F1 7FF812345678 140001234 140001491\n"
	"entry 1 5 5 10200 2A\n"
	/* 2^40 + 0xABCDEF + 1 + 7 + 5 + 300, and 16 + 8 + 15 + 9 + 5 + 24 */
	"note end blocks=[9] requested=[1099522887464] overhead=[77]\n";

static struct snapshot made;
static char *dump;
static size_t len;

static int begin(void **state)
{
	(void)state;
	make_snapshot(&made);
	dump = written(&made, &len);
	return 0;
}

static int end(void **state)
{
	(void)state;
	free(dump);
	snapshot_release(&made);
	return 0;
}

#undef TEST_AROUND
#define TEST_AROUND begin, end

TEST(written_facts_reach_reader)
{
	struct scan_log log;
	struct err err;
	const char *first;

	assert_int_equal(load(&log, dump, len, 1000, &err), 0);
	first = strchr(
		log.text.data, '\n'); /* after the dump's own note, which contains its version */
	assert_memory_equal(log.text.data, "note dump format=[1] tool=[", 27);
	assert_memory_equal(first - 32, " time=[2026-11-20T10:25:48.123Z]", 32);
	assert_string_equal(first + 1, told);
	buf_release(&log.text);
}

TEST(written_dump_has_lines_of_umdh)
{
	static const char *const lines[] = {
		"\r\n// Loaded modules: \r\n//     Base Size Module\r\n",
		"\r\n//           140000000    24000 C:\\a b\\",
		"\r\n// Process modules enumerated.\r\n",
		"\r\n*- - - - - - - - - - Start of data for heap @ 650000 - - - - - - - - - -\r\n",
		"\r\n*- - - - - - - - - - Heap 650000 Hogs - - - - - - - - - -\r\n",
		"\r\n*- - - - - - - - - - End of data for heap @ 10000 - - - - - - - - - -\r\n",
		"\r\n0 bytes + 10 at 650200 by BackTrace2A\r\n\t7FF812345678\r\n\t140001234\r\n",
		"\r\n1 bytes + F at 650300 by BackTrace2A\r\n\r\n*-",
		" by BackTrace94C4\r\n\t7FF812345678\r\n\tAlias\r\n\t140001234\r\n",
	};

	for (size_t i = 0; i < COUNT(lines); i++) {
		if (!strstr(dump, lines[i]))
			fail_msg("not there: %s", lines[i]);
	}
	for (size_t i = 0; i < len; i++) /* CR LF everywhere, and no other control characters */
		assert_true((unsigned char)dump[i] >= ' ' || dump[i] == '\t' ||
			    (dump[i] == '\r' && dump[i + 1] == '\n') ||
			    (dump[i] == '\n' && dump[i - 1] == '\r'));
}

/* A file name may contain anything. Dumps escape control characters and invalid UTF-8, and the
 * notes' readers restore them. */
TEST(names_of_files_come_out_as_harmless_text)
{
	static const char *const names[][2] = {
		{"C:\\a\xc2\x9b"
		 "31mx.dll",
			"C:\\a??31mx.dll"},
		{"C:\\b\xc2\x85\x7f.dll", "C:\\b???.dll"},
		{"C:\\c\xff\xc3", "C:\\c??"},
		{"C:\\d\xc3\xa9\xf0\x9f\x90\x9b.dll", "C:\\d\xc3\xa9\xf0\x9f\x90\x9b.dll"},
	};
	struct scan_log log;
	char line[200];
	struct err err;

	end(NULL);
	snapshot_init(&made);
	made.image = names[0][0];
	for (size_t i = 0; i < COUNT(names); i++)
		*snapshot_add_module(&made) = (struct module){.base = 0x10000 * (i + 1),
			.size_bytes = 0x1000,
			.path = names[i][0],
			.pdb = names[i][0],
			.has_identity = true};
	snapshot_warn(&made, "no %s", names[2][0]);
	dump = written(&made, &len);
	for (const char *at = dump; *at; at += text_unfit(at) ? text_unfit(at) : 1) {
		if (*at != '\r' && *at != '\n' && ((unsigned char)*at & 0xc0) != 0x80)
			assert_int_equal(text_unfit(at), 0);
	}
	assert_int_equal(load(&log, dump, len, SIZE_MAX, &err), 0);
	snprintf(line, sizeof(line), " image=[%s]\n", names[0][0]);
	assert_non_null(strstr(log.text.data, line));
	snprintf(line, sizeof(line), "note warning text=[no %s]\n", names[2][0]);
	assert_non_null(strstr(log.text.data, line));
	for (size_t i = 0; i < COUNT(names); i++) {
		snprintf(line, sizeof(line), "\nmodule %zX0000 1000 %s\n", i + 1, names[i][1]);
		assert_non_null(strstr(log.text.data, line));
		snprintf(line, sizeof(line), " pdb=[%s]\n", names[i][0]);
		assert_non_null(strstr(log.text.data, line));
	}
	buf_release(&log.text);
}

/* Windows paths have up to 32767 units; a reader keeps 4096 bytes of them. U+00E9 has two bytes. */
TEST(of_path_longer_than_readers_keep_end_is_written)
{
	static const char before[] = "module 10000 1000 ";
	struct scan_log log;
	char path[6000], *line;
	struct err err;

	end(NULL);
	snapshot_init(&made);
	for (size_t i = 0; i < sizeof(path) - 6; i += 2)
		memcpy(path + i, "\xc3\xa9", 2);
	memcpy(path + sizeof(path) - 6, "a.dll", 6);
	*snapshot_add_module(&made) =
		(struct module){.base = 0x10000, .size_bytes = 0x1000, .path = path};
	dump = written(&made, &len);
	assert_int_equal(load(&log, dump, len, SIZE_MAX, &err), 0);
	line = strstr(log.text.data, before);
	assert_non_null(line);
	line = strtok(line + strlen(before), "\n");
	assert_int_equal(strlen(line), 4095);
	assert_string_equal(line, path + sizeof(path) - 1 - 4095);
	buf_release(&log.text);
}

TEST(empty_snapshot_is_dump)
{
	struct scan_log log;
	struct err err;

	end(NULL);
	snapshot_init(&made);
	dump = written(&made, &len);
	assert_int_equal(load(&log, dump, len, SIZE_MAX, &err), 0);
	for (const char *at = log.text.data; *at; at = strchr(at, '\n') + 1)
		assert_memory_equal(at, "note ", 5);
	buf_release(&log.text);
	for (size_t cut = 0; cut < len - 2; cut++)
		assert_true(verdict_of(dump, cut) < 0);
}

/* ---------------------------------------------------------------- cut and damaged */

TEST(dump_of_ours_cut_anywhere_is_known_as_cut)
{
	assert_int_equal(verdict_of(dump, len), 0);
	for (size_t cut = 0; cut < len; cut++) {
		int rc = verdict_of(dump, cut);

		if (cut >= len - 2 && rc == 0)
			continue;
		if (rc != -ERR_CUT && rc != -ERR_EMPTY && rc != -ERR_NOT_DUMP &&
			rc != -ERR_BAD_LINE)
			fail_msg("cut at %zu of %zu: %d", cut, len, rc);
	}
}

/* Bytes are changed, lost and duplicated. The reader may accept or refuse the dump. */
TEST(damaged_dump_harms_nobody)
{
	static const char *const words[] = {"\t", "\r\n", "\n", "//", "*-", "Alias",
		"FFFFFFFFFFFFFFFFF", " by BackTrace", "// hsnap: ", "=\"", "\\x", "\xff\xfe",
		"// Loaded modules"};
	uint32_t seed = 12345;
	char *copy = malloc(len + 100);

	for (int round = 0; round < 6000; round++) {
		size_t now = len;

		memcpy(copy, dump, len);
		for (int i = 0; i <= round % 3; i++) {
			size_t at = (seed = seed * 1103515245 + 12345) % now;
			const char *word = words[(seed >> 20) % COUNT(words)];
			size_t word_len = strlen(word), gone = (seed >> 24) % 9;

			gone = at + gone > now ? now - at : gone;
			memmove(copy + at + word_len, copy + at + gone, now - at - gone);
			for (size_t k = 0; k < word_len; k++)
				copy[at + k] = word[k];
			now += word_len - gone;
			copy[(seed >> 8) % now] ^= (char)(1 << (seed >> 28) % 8);
		}
		verdict_of(copy, now);
	}
	free(copy);
}

/* ---------------------------------------------------------------- facts of a tracer */

static void make_traced(struct snapshot *snapshot)
{
	static const uint64_t frames[] = {0x800000000123, 0x140001490};
	const struct tracer_facts facts = {2, 11, 12, 13, 14, 15, true, {16, 17, 18}, 19, 20, 4096};

	snapshot_init(snapshot);
	snapshot->tracer = facts;
	*snapshot_add_module(snapshot) = (struct module){.base = 0x800000000000,
		.size_bytes = 0x20000,
		.path = "C:\\plug.dll",
		.timestamp = 0x5EED,
		.has_identity = true,
		.unloaded_at = 0x180000000};
	*snapshot_add_heap(snapshot) = (struct heap){.addr = 0x650000,
		.kind = "nt",
		.has_exact = true,
		.exact = {100, 200, 300},
		.stackless = {1, 2, 3}};
	*snapshot_add_heap(snapshot) = (struct heap){.addr = HEAP_RESERVED, .kind = "reserved"};
	*snapshot_add_sum(snapshot) = (struct block_sum){20, 20 * 0x428, 20 * 0x10, 0,
		write_stack(snapshot, "2A", 2, frames, 0, NULL), BLOCK_HELD};
	*snapshot_add_sum(snapshot) = (struct block_sum){
		3, 0, 3 * 8, 0, write_stack(snapshot, "2B", 2, frames, 0, NULL), BLOCK_HELD};
	*snapshot_add_block(snapshot) = (struct block){
		0x50000, 0x10000, 0, 1, write_stack(snapshot, "2A", 2, frames, 0, NULL)};
}

#define STACK " 800000000123 140001490\n"
static const char traced_told[] =
	"note tracer version=[2] dropped-blocks=[11] dropped-stacks=[12] dropped-ranges=[13] "
	"dropped-unloads=[14] mismatches=[15] limit=[19] committed=[20] attached=[1]\n"
	"note sample bytes=[4096]\n"
	"module 800000000000 20000 C:\\plug.dll\n"
	"note module base=[800000000000] timestamp=[5EED] checksum=[0] unloaded=[1] "
	"at=[180000000]\n"
	"note heap addr=[650000] kind=[nt] committed=[0] reserved=[0] stackless-blocks=[1] "
	"stackless-requested=[2] stackless-overhead=[3] exact-blocks=[100] exact-requested=[200] "
	"exact-overhead=[300]\n"
	"note heap addr=[2] kind=[reserved] committed=[0] reserved=[0] stackless-blocks=[0] "
	"stackless-requested=[0] stackless-overhead=[0]\n"
	"heap 650000\n"
	"heap 650000\n"
	"entry 20 5320 140 0 2A" STACK "entry 3 0 18 0 2B" STACK "heap 2\n"
	"heap 2\n"
	"entry 1 10000 0 50000 2A\n"
	/* 20 + 3 + 1 + 1; 20 * 0x428 + 0x10000 + 2; 20 * 0x10 + 3 * 8 + 3 */
	"note end blocks=[25] requested=[86818] overhead=[347]\n";

/* The lines of the example in hdump.5. */
TEST(facts_and_sums_are_written_and_read)
{
	struct scan_log log;
	const char *at;

	end(NULL);
	make_traced(&made);
	dump = written(&made, &len);
	assert_non_null(strstr(dump,
		"\r\n5320 bytes in 0x14 allocations (@ 0x428 + 0x10) by: BackTrace2A\r\n"
		"\t800000000123\r\n\t140001490\r\n"));
	assert_non_null(
		strstr(dump, "\r\n0 bytes in 0x3 allocations (@ 0x0 + 0x8) by: BackTrace2B\r\n"));
	assert_non_null(strstr(dump, " Heap 2 Hogs: VirtualAlloc reserved - "));
	assert_int_equal(load(&log, dump, len, 7, NULL), 0);
	at = strstr(log.text.data, "note tracer");
	assert_non_null(at);
	assert_string_equal(at, traced_told);
	buf_release(&log.text);
	free(dump);
	made.tracer.sample_bytes = 0;
	made.clock_ms = 123456;
	dump = written(&made, &len);
	assert_non_null(strstr(
		dump, " attached=1 before-blocks=16 before-requested=17 before-overhead=18\r\n"));
	assert_non_null(strstr(dump, " clock=123456\r\n"));
}

TEST(headings_have_names)
{
	assert_string_equal(heap_name(1), "VirtualAlloc");
	assert_string_equal(heap_name(2), "VirtualAlloc reserved");
	assert_string_equal(heap_name(3), "Mapped");
	assert_null(heap_name(0));
	assert_string_equal(heap_name(4), "Thread stacks");
	assert_null(heap_name(5));
	assert_null(heap_name(UINT64_MAX));
	assert_int_equal(heap_by_name("virtualalloc"), 1);
	assert_int_equal(heap_by_name("Reserved"), 2);
	assert_int_equal(heap_by_name("MAPPED"), 3);
	assert_int_equal(heap_by_name("stack"), 4);
	assert_int_equal(heap_by_name("VirtualAlloc "), 0);
	assert_int_equal(heap_by_name("virtua"), 0);
	assert_int_equal(heap_by_name(""), 0);
}
