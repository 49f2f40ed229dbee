/* Answers of llvm-symbolizer and llvm-undname. No process is started: a stand-in for the helper
 * returns the input, whose first byte is the number of bytes per answer. In the input, a byte 1
 * stands for the address or name that is requested next. A byte 2 ends the helper; the next helper
 * continues after that byte. */
#include "tests/fuzz/fuzz.h"

#include "core/base/memory.h"
#include "symbolize/backend/backend.h"
#include "symbolize/backend/helper.h"
#include "symbolize/backend/llvm.h"
#include "symbolize/backend/undname.h"
#include "symbolize/names.h"

enum { ADDRESS = 1, DIES = 2 };
#define LOOKUPS 6

struct helper {
	struct buf questions; /* questions that the stand-in has not repeated yet */
	size_t at;
};

static struct fuzz_input answer_bytes;
static size_t step;

struct helper *helper_start(const char *program, const char *const *args)
{
	(void)program;
	(void)args;
	return fuzz_left(&answer_bytes) ? xcalloc(1, sizeof(struct helper)) : NULL;
}

static void print_question(struct helper *helper, struct buf *to)
{
	char *line = helper->questions.data + helper->at, *end, *word;

	end = helper->questions.len > helper->at ? strchr(line, '\n') : NULL;
	if (!end)
		return;
	*end = '\0';
	word = strrchr(line, ' ');
	buf_add_text(to, word ? word + 1 : line);
	helper->at = (size_t)(end + 1 - helper->questions.data);
}

int64_t helper_exchange(
	struct helper *helper, const char *bytes, size_t len, struct buf *answers, unsigned wait_ms)
{
	(void)wait_ms;
	buf_add(&helper->questions, bytes, len);
	if (!fuzz_left(&answer_bytes))
		return -ERR_READ;
	for (size_t i = 0; i < step && fuzz_left(&answer_bytes); i++) {
		char byte = (char)fuzz_number(&answer_bytes, 1);

		if (byte == DIES)
			return -ERR_READ;
		if (byte == ADDRESS)
			print_question(helper, answers);
		else
			buf_add(answers, &byte, 1);
	}
	return (int64_t)len;
}

void helper_stop(struct helper *helper)
{
	if (helper)
		buf_release(&helper->questions);
	free(helper);
}

void llvm_program_list(struct buf *list)
{
	buf_add(list, "/llvm-symbolizer", sizeof("/llvm-symbolizer"));
}

static void check_symbols(const struct symbols *found)
{
	HOLDS(found->count <= SYMBOL_CHAIN_MAX);
	for (size_t i = 0; i < found->count; i++) {
		const struct symbol *symbol = &found->list[i];

		HOLDS(symbol->function && strlen(symbol->function) <= SYMBOL_TEXT_MAX);
		HOLDS(fuzz_is_harmless(symbol->function, strlen(symbol->function)));
		HOLDS(!symbol->file || fuzz_is_harmless(symbol->file, strlen(symbol->file)));
	}
}

static void ask_symbolizer(struct arena *arena)
{
	static const struct symbol_options options = {.patience_ms = 20000};
	static struct pe_image pe = {.preferred_base = UINT64_C(0x140000000), .bits = 64};
	struct module module = {.path = "C:\\m.exe"};
	struct sym_module subject = {
		.module = &module, .files = {.image = (char[]){"/no/m.exe"}, .pe = &pe}};
	void *backend = llvm_backend.make(&options, NULL);
	struct lookup lookups[LOOKUPS] = {0};

	subject.tables = tables_new(&subject.files, false);
	for (uint32_t i = 0; i < LOOKUPS; i++)
		lookups[i].rva = 0x1000 * i;
	llvm_backend.resolve(backend, &subject, lookups, LOOKUPS, arena);
	for (size_t i = 0; i < LOOKUPS; i++)
		check_symbols(&lookups[i].found);
	llvm_backend.release(backend);
	tables_free(subject.tables);
	buf_release(&subject.files.reason);
}

static void ask_undname(struct arena *arena)
{
	static const char *const names[] = {
		"?f@app@@YAXH@Z", "?g@@YAHXZ", "no such", "??0Pool@@QEAA@H@Z"};
	static const struct symbol_options options = {.patience_ms = 20000};
	const char *texts[4];

	undname_find(names, texts, 4, arena, &options);
	for (size_t i = 0; i < 4; i++)
		HOLDS(!texts[i] || *texts[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct arena arena;

	answer_bytes = (struct fuzz_input){bytes, bytes + len};
	step = 1 + (size_t)fuzz_number(&answer_bytes, 1);
	arena_init(&arena);
	if (step % 2)
		ask_symbolizer(&arena);
	else
		ask_undname(&arena);
	arena_release(&arena);
	return 0;
}
