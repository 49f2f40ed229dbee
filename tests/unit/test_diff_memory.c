#include "tests/unit/t.h"

#include "tests/unit/test_diff.h"

static void write_heading(struct maker *maker, unsigned number, const char *name)
{
	put(maker, "*- - - - - Start of data for heap @ %X - - - - -", number);
	put(maker, "*- - - - - Heap %X Hogs: %s - - - - -", number, name);
}

/* Makes two dumps with a block of 1000 bytes in a heap and with ranges of each kind. The arguments
 * are numbers of bytes in new.txt. */
static void make(uint64_t virtual, uint64_t reserved, uint64_t mapped)
{
	EACH_DUMP (maker, is_new, .is_ours = true) {
		put_block(&maker, 1000, 8, "1", 1);
		write_heading(&maker, 1, "VirtualAlloc");
		put_block(&maker, is_new ? virtual : 4096, 0, "2", 2);
		write_heading(&maker, 2, "VirtualAlloc reserved");
		put_block(&maker, is_new ? reserved : 65536, 0, "3", 3);
		put_block(&maker, 4096, 0, "4", 4);
		write_heading(&maker, 3, "Mapped");
		put_block(&maker, is_new ? mapped : 8192, 0, "2", 2);
	}
}

TEST(address_space_is_distinguished_from_memory)
{
	make(12288, 1073741824, 8192);
	struct result *result = run_expect(0, "", "old.txt", "new.txt");
	assert_int_equal(result->row_count, 1);
	assert_int_equal(growth(row_of(result, 2)), 12288 - 4096);
	assert_int_equal(result->requested, 12288 - 4096);
	assert_non_null(strstr(result->text,
		"\n// reserved but uncommitted address space, not counted here: "
		"+1073676288 ( 1073745920 - 69632); --heap reserved shows its stacks\n"));
}

TEST(reservation_is_no_growth)
{
	make(4096, 1073741824, 8192);
	run_rows(0, "--max-growth", "0", "old.txt", "new.txt");
	run_status(1, "--max-growth", "0", "--heap", "reserved", "old.txt", "new.txt");
}

TEST(leak_of_address_space_is_found_when_it_is_asked_for)
{
	static const char *const names[] = {
		"reserved", "RESERVED", "VirtualAlloc reserved", "virtualalloc Reserved", "2"};

	make(12288, 1073741824, 16384);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct result *result = run_rows(1, "--heap", names[i], "old.txt", "new.txt");
		assert_int_equal(growth(row_of(result, 3)), 1073741824 - 65536);
		assert_int_equal(result->requested, 1073741824 - 65536);
		assert_null(strstr(result->text, "not counted here"));
		/* Selected, suppressed and omitted bytes add up to the total. */
		assert_non_null(strstr(result->text, "  +1073676288 "));
		assert_non_null(strstr(result->text, "    +16384 "));
		assert_non_null(strstr(result->text, "  +1073692672 "));
	}
}

TEST(headings_are_known_by_name)
{
	make(12288, 1073741824, 9192);
	struct result *result = run_hdiff("--heap", "virtual", "old.txt", "new.txt");
	assert_int_equal(result->requested, 12288 - 4096);
	result = run_hdiff("--heap", "Mapped", "--heap", "VirtualAlloc", "old.txt", "new.txt");
	assert_int_equal(result->requested, 12288 - 4096 + 1000);
	run_expect(2, "virtual, reserved, mapped or stack", "--heap", "virtuall", "old.txt",
		"new.txt");
}

/* Returns a report of old.txt and new.txt in another format than text. */
static const char *report_as(const char *format)
{
	struct result *result = run_raw((const char *const[]){
		"--no-symbols", "-o", format, "-f", "out.txt", "old.txt", "new.txt", NULL});

	assert_int_equal(result->status, 0);
	return result->text;
}

TEST(json_has_address_space_separately)
{
	make(4096, 1073741824, 8192);
	const char *text = report_as("json");
	assert_non_null(strstr(text, "\n\"reserved\":{\"old\":{\"bytes\":69632,\"blocks\":2,"));
	assert_non_null(strstr(text, "\"growth\":{\"bytes\":1073676288,\"blocks\":0,"));
}

/* ---------------------------------------------------------------- unloaded modules */

/* Makes a dump of a process with a module that is loaded at `base`, or was loaded there and then
 * unloaded. */
static void make_plug(const char *path, uint64_t base, bool is_gone)
{
	struct maker maker = dump_new((struct maker){.is_ours = true});
	put_lines(&maker, "// hsnap: process id=7 start=2026-11-20T10:00:00.000Z\n"
			  "// Loaded modules: \n");
	put(&maker, "//    %16" PRIX64 " 20000 C:\\app\\plug.dll", base);
	if (is_gone)
		put(&maker, "//           180000000 20000 C:\\app\\other.dll");
	put(&maker, "// Process modules enumerated.");
	put(&maker, "// hsnap: module base=%" PRIX64 " timestamp=5EED checksum=1%s", base,
		is_gone ? " unloaded=1 at=180000000" : "");
	write_entry(&maker, is_gone ? 300 : 100, 8, is_gone ? "9" : "1");
	put(&maker, "\t%" PRIX64, base + 0x123);
	put(&maker, "\t%" PRIX64, APP_BASE + 0x800);
	put(&maker, "%s", "");
	if (is_gone) {
		write_entry(&maker, 64, 8, "A");
		put(&maker, "\t180000123");
		put(&maker, "%s", "");
	}
	dump_end(&maker, path);
}

TEST(module_is_same_before_and_after_it_was_unloaded)
{
	const struct shown *row;

	make_plug("old.txt", 0x180000000, false);
	make_plug("new.txt", 0x800000000000, true);
	struct result *result = run_expect(0, "", "old.txt", "new.txt");
	assert_int_equal(result->row_count, 2);
	row = row_named(result, "9");
	assert_int_equal(growth(row), 200);
	assert_int_equal(row->old_bytes, 100);
	assert_non_null(strstr(row->frames, "plug+123 : 800000000123"));
	assert_non_null(strstr(row_named(result, "A")->frames, "other+123 : 180000123"));
}

/* ---------------------------------------------------------------- estimates */

static void make_sample(const char *path, const char *sample, unsigned count)
{
	struct maker maker = dump_new((struct maker){.is_ours = true});
	if (sample)
		put(&maker, "// hsnap: sample bytes=%s", sample);
	put(&maker, "%X bytes in 0x%X allocations (@ 0x40 + 0x8) by: BackTrace1", count * 0x40,
		count);
	put_stack(&maker, 1);
	put(&maker, "%s", "");
	maker.sum = (struct block_totals){count, (uint64_t)count * 0x40, (uint64_t)count * 8};
	dump_end(&maker, path);
}

TEST(estimates_are_called_so)
{
	make_sample("old.txt", "4096", 10);
	make_sample("new.txt", "4096", 30);
	struct result *result = run_expect(0, "", "old.txt", "new.txt");
	assert_int_equal(result->requested, 20 * 64);
	assert_int_equal(times(result->text, ", ESTIMATES: one in 4096 bytes was recorded\n"), 2);
	const char *text = report_as("json");
	assert_int_equal(times(text, "\"sample_bytes\":4096,"), 2);
	text = report_as("csv");
	assert_non_null(strstr(text, ",stack,sample_bytes\r\n1280,1920,640,20,30,10,"));
	assert_int_equal(times(text, ",4096\r\n"), 1);
}

TEST(sample_and_what_is_none_are_not_compared_silently)
{
	static const char *const samples[] = {NULL, "8192"};

	for (size_t i = 0; i < 2; i++) {
		make_sample("old.txt", samples[i], 10);
		make_sample("new.txt", "4096", 10);
		struct result *result = run_status(0, "old.txt", "new.txt");
		assert_int_equal(times(result->words,
					 "hdiff: new.txt: warning: sampled at a different rate"),
			1);
		assert_int_equal(times(result->text, "// warning: new.txt: sampled"), 1);
	}
}

TEST(blocks_from_before_attaching_are_counted_unless_sampled)
{
	struct maker maker = dump_new((struct maker){.is_ours = true});
	put(&maker, "// hsnap: tracer version=2 attached=1 before-blocks=12 before-requested=345");
	put_block(&maker, 1000, 8, "1", 1);
	dump_end(&maker, "new.txt");
	struct result *result = run_hdiff("new.txt");
	/* The dumps have no reserved address space. */
	assert_null(strstr(result->text, "address space"));
	assert_non_null(strstr(result->text, ", traced only since hsnap attached: 12 older blocks "
					     "of 345 bytes have no stack\n"));
	maker = dump_new((struct maker){.is_ours = true});
	put(&maker, "// hsnap: tracer version=2 attached=1");
	put(&maker, "// hsnap: sample bytes=4096");
	dump_end(&maker, "old.txt");
	result = run_hdiff("old.txt");
	assert_non_null(strstr(result->text, ", traced only since hsnap attached, ESTIMATES"));
	assert_null(strstr(result->text, "from before"));
}
