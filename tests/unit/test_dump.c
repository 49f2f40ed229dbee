/* core/dump: what is written is read back, and nothing that is read is trusted. */
#include "tests/unit/t.h"

#define _XOPEN_SOURCE 700 /* P_tmpdir */
#include <inttypes.h>
#include <unistd.h>

#include "tests/unit/test_dump.h"

#include "core/base/text.h"

/* ---------------------------------------------------------------- round trip */

static const char *text(struct snapshot *snapshot, const char *words)
{
	return arena_text(&snapshot->arena, words, strlen(words));
}

static uint32_t put_stack(struct snapshot *snapshot, const char *id, uint32_t count,
	const uint64_t *frames, uint32_t alias_count, const uint32_t *alias_at)
{
	struct stack wanted = {.id = id,
		.frames = frames,
		.frame_count = count,
		.alias_count = alias_count,
		.alias_at = alias_at};
	uint32_t index;

	assert_int_equal(stackset_put(&snapshot->stacks, &wanted, strlen(id), &index), 0);
	return index;
}

static void put_block(struct snapshot *snapshot, uint32_t heap, uint64_t addr, uint64_t requested,
	uint64_t overhead, uint32_t stack)
{
	struct block *block = snapshot_add_block(snapshot);

	assert_non_null(block);
	*block = (struct block){addr, requested, overhead, heap, stack};
}

static void put_modules(struct snapshot *snapshot)
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
	snapshot->stack_source = "tracer";
	snapshot_warn(snapshot, "%s", "one \\ \"warning\"\r\nof two lines");
	snapshot_lacks(snapshot, "%s", "");
	put_modules(snapshot);
	snapshot->records = (struct stack_records){
		true, 7, 1, 2, UINT64_C(1) << 46, 9, 11, 2, 8, 6, 4096, 65536};
	*snapshot_add_heap(snapshot) = (struct heap){.addr = 0x650000,
		.bits = 32,
		.kind = text(snapshot, "nt"),
		.layout = text(snapshot, "Windows \"7\" x86"),
		.committed_bytes = 65536,
		.reserved_bytes = 1 << 20,
		.stackless = {3, 300, 24}};
	*snapshot_add_heap(snapshot) =
		(struct heap){.addr = 0x10000, .kind = text(snapshot, "unknown"), .unwalked = true};
	one = put_stack(snapshot, "2A", 4, frames, 0, NULL);
	two = put_stack(snapshot, "F0", 3, more, 0, NULL);
	two_again = put_stack(snapshot, "F1", 3, more, 0, NULL); /* equal, another id */
	aliases = put_stack(snapshot, "94C4", 4, frames, 2, alias_at);
	put_block(snapshot, 1, 0x10100, UINT64_C(1) << 40, 0, two_again);
	put_block(snapshot, 0, 0x650200, 0, 16, one);
	put_block(snapshot, 0, 0x650100, 0xABCDEF, 8, two);
	put_block(snapshot, 0, 0x650300, 1, 15, one);
	put_block(snapshot, 1, 0x10000, 7, 9, aliases);
	put_block(snapshot, 1, 0x10200, 5, 5, one); /* its stack stood in the other heap */
}

static void assert_same_text(const char *a, const char *b)
{
	assert_int_equal(!a, !b);
	if (a)
		assert_string_equal(a, b);
}

static void assert_same_modules(const struct snapshot *a, const struct snapshot *b)
{
	assert_int_equal(a->module_count, b->module_count);
	for (size_t i = 0; i < a->module_count; i++) {
		const struct module *x = &a->modules[i], *y = &b->modules[i];

		assert_true(x->base == y->base && x->size_bytes == y->size_bytes);
		assert_string_equal(x->path, y->path);
		assert_int_equal(x->has_identity, y->has_identity);
		assert_int_equal(x->timestamp, y->timestamp);
		assert_int_equal(x->checksum, y->checksum);
		assert_same_text(x->pdb, y->pdb);
		assert_same_text(x->pdb_guid, y->pdb_guid);
		assert_int_equal(x->pdb_age, y->pdb_age);
	}
}

static void assert_same_heaps(const struct snapshot *a, const struct snapshot *b)
{
	assert_int_equal(a->heap_count, b->heap_count);
	for (size_t i = 0; i < a->heap_count; i++) {
		const struct heap *x = &a->heaps[i], *y = &b->heaps[i];

		assert_true(x->addr == y->addr);
		assert_int_equal(x->bits, y->bits);
		assert_string_equal(x->kind, y->kind);
		assert_same_text(x->layout, y->layout);
		assert_true(x->committed_bytes == y->committed_bytes);
		assert_true(x->reserved_bytes == y->reserved_bytes);
		assert_memory_equal(&x->stackless, &y->stackless, sizeof(x->stackless));
		assert_int_equal(x->unwalked, y->unwalked);
	}
}

/* Every block of one is in the other, with its stack; a dump orders them by heap and address. */
static void assert_same_blocks(const struct snapshot *a, const struct snapshot *b)
{
	assert_int_equal(a->block_count, b->block_count);
	for (size_t i = 0; i < a->block_count; i++) {
		const struct block *x = &a->blocks[i], *y = NULL;
		const struct stack *s = &a->stacks.stacks[x->stack], *t;

		for (size_t k = 0; k < b->block_count; k++) {
			if (b->blocks[k].addr == x->addr)
				y = &b->blocks[k];
		}
		if (!y) {
			fail_msg("the block at %" PRIX64 " is lost", x->addr);
			return;
		}
		assert_int_equal(x->heap, y->heap);
		assert_true(x->requested_bytes == y->requested_bytes);
		assert_true(x->overhead_bytes == y->overhead_bytes);
		t = &b->stacks.stacks[y->stack];
		assert_string_equal(s->id, t->id);
		assert_int_equal(s->frame_count, t->frame_count);
		assert_memory_equal(s->frames, t->frames, s->frame_count * sizeof(*s->frames));
		assert_int_equal(s->alias_count, t->alias_count);
		for (uint32_t k = 0; k < s->alias_count; k++)
			assert_int_equal(s->alias_at[k], t->alias_at[k]);
	}
}

TEST(what_is_written_is_read_back)
{
	struct snapshot made, read;
	char *first, *second;
	size_t len, len2;
	struct err err;

	make_snapshot(&made);
	first = written(&made, &len);
	assert_int_equal(load(&read, first, len, 1000, &err), 0);
	assert_int_equal(read.pid, made.pid);
	assert_int_equal(read.parent_pid, made.parent_pid);
	assert_int_equal(read.bits, made.bits);
	assert_true(read.time_ms == made.time_ms && read.start_ms == made.start_ms);
	assert_same_text(read.image, made.image);
	assert_same_text(read.os, made.os);
	assert_same_text(read.stack_source, made.stack_source);
	assert_true(read.records.is_known && read.records.database == made.records.database);
	assert_int_equal(read.records.failure_count, 2);
	assert_int_equal(read.records.chained_count, 6);
	assert_int_equal(read.records.reserved_bytes, 65536);
	assert_int_equal(read.warning_count, made.warning_count);
	assert_int_equal(read.missing_count, 1);
	for (size_t i = 0; i < made.warning_count; i++)
		assert_string_equal(read.warnings[i], made.warnings[i]);
	assert_same_modules(&made, &read);
	assert_same_heaps(&made, &read);
	assert_same_blocks(&made, &read);
	second = written(&read, &len2); /* the same bytes again */
	assert_int_equal(len, len2);
	assert_string_equal(first, second);
	free(first);
	free(second);
	snapshot_release(&made);
	snapshot_release(&read);
}

TEST(a_written_dump_has_the_lines_of_umdh)
{
	static const char ust_note[] =
		"\r\n// hsnap: ust records=7 broken-records=1 cut-records=2 database=400000000000 "
		"entries=9 lookups=11 failures=2 indexed=8 chained=6 used=4096 reserved=65536\r\n";
	static const char heap_note[] =
		"\r\n// hsnap: heap addr=650000 kind=nt bits=32 layout=\"Windows \\\"7\\\" x86\" "
		"committed=65536 reserved=1048576 stackless-blocks=3 ";
	static const char *const lines[] = {
		"\r\n// Loaded modules: \r\n//     Base Size Module\r\n",
		"\r\n//           140000000    24000 C:\\a b\\",
		"\r\n// Process modules enumerated.\r\n",
		ust_note,
		heap_note,
		"\r\n// hsnap: heap addr=10000 kind=unknown committed=0 reserved=0 ",
		"\r\n*- - - - - - - - - - Start of data for heap @ 650000 - - - - - - - - - -\r\n",
		"\r\n*- - - - - - - - - - Heap 650000 Hogs - - - - - - - - - -\r\n",
		"\r\n*- - - - - - - - - - End of data for heap @ 10000 - - - - - - - - - -\r\n",
		"\r\n0 bytes + 10 at 650200 by BackTrace2A\r\n\t7FF812345678\r\n\t140001234\r\n",
		"\r\n1 bytes + F at 650300 by BackTrace2A\r\n\r\n*-",
		" by BackTrace94C4\r\n\t7FF812345678\r\n\tAlias\r\n\t140001234\r\n",
	};
	struct snapshot made;
	char end[200], *dump;
	size_t len;

	make_snapshot(&made);
	dump = written(&made, &len);
	for (size_t i = 0; i < COUNT(lines); i++) {
		if (!strstr(dump, lines[i]))
			fail_msg("not there: %s", lines[i]);
	}
	snprintf(end, sizeof(end),
		"\r\n// hsnap: end blocks=%d requested=%" PRIu64 " overhead=%d\r\n", 6 + 3,
		(UINT64_C(1) << 40) + 0xABCDEF + 1 + 7 + 5 + 300, 16 + 8 + 15 + 9 + 5 + 24);
	assert_non_null(strstr(dump, end));
	for (size_t i = 0; i < len; i++) /* CR LF everywhere, and nothing else below a blank */
		assert_true((unsigned char)dump[i] >= ' ' || dump[i] == '\t' ||
			    (dump[i] == '\r' && dump[i + 1] == '\n') ||
			    (dump[i] == '\n' && dump[i - 1] == '\r'));
	free(dump);
	snapshot_release(&made);
}

/* Names of files may hold anything: what a terminal obeys and what is no UTF-8 does not get out, and
 * notes bring it back. */
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
	struct snapshot made, read;
	struct err err;
	char *dump;
	size_t len;

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
	assert_int_equal(load(&read, dump, len, SIZE_MAX, &err), 0);
	assert_string_equal(read.image, made.image);
	assert_string_equal(read.warnings[0], made.warnings[0]);
	for (size_t i = 0; i < COUNT(names); i++) {
		assert_string_equal(read.modules[i].path, names[i][1]);
		assert_string_equal(read.modules[i].pdb, names[i][0]);
	}
	free(dump);
	snapshot_release(&made);
	snapshot_release(&read);
}

TEST(an_empty_snapshot_is_a_dump)
{
	struct snapshot made, read;
	char *dump;
	size_t len;
	struct err err;

	snapshot_init(&made);
	dump = written(&made, &len);
	assert_int_equal(load(&read, dump, len, SIZE_MAX, &err), 0);
	assert_int_equal(read.block_count + read.module_count + read.heap_count, 0);
	snapshot_release(&read);
	for (size_t cut = 0; cut < len - 2; cut++)
		assert_true(verdict_of(dump, cut) < 0);
	free(dump);
	snapshot_release(&made);
}

/* ---------------------------------------------------------------- cut and damaged */

TEST(a_dump_of_ours_cut_anywhere_is_known_as_cut)
{
	struct snapshot made;
	char *dump;
	size_t len;

	make_snapshot(&made);
	dump = written(&made, &len);
	assert_int_equal(verdict_of(dump, len), 0);
	for (size_t cut = 0; cut < len; cut++) {
		int rc = verdict_of(dump, cut);

		/* without the last line's end everything is there */
		if (cut >= len - 2 && rc == 0)
			continue;
		if (rc != -ERR_CUT && rc != -ERR_EMPTY && rc != -ERR_NOT_DUMP &&
			rc != -ERR_BAD_LINE)
			fail_msg("cut at %zu of %zu: %d", cut, len, rc);
	}
	free(dump);
	snapshot_release(&made);
}

/* Bytes changed, lost, doubled: any verdict will do, but there must be one. */
TEST(a_damaged_dump_harms_nobody)
{
	static const char *const words[] = {"\t", "\r\n", "\n", "//", "*-", "Alias",
		"FFFFFFFFFFFFFFFFF", " by BackTrace", "// hsnap: ", "=\"", "\\x", "\xff\xfe",
		"// Loaded modules"};
	struct snapshot made;
	uint32_t seed = 12345;
	char *dump, *copy;
	size_t len;

	make_snapshot(&made);
	dump = written(&made, &len);
	copy = malloc(len + 100);
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
	free(dump);
	snapshot_release(&made);
}
