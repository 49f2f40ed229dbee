/* Runs hdiff as a whole. An input is up to three files, separated by form feeds. Its first byte
 * selects the options, and the second byte the report. If the status indicates success, a report
 * must exist and must not contain control characters for terminals. */
#include "tests/fuzz/fuzz.h"

#include "core/base/memory.h"
#include "core/base/os.h"
#include "diff/hdiff.h"

#define FILES_MAX 3

static const char *const formats[] = {"text", "umdh", "json", "csv", "folded", "jsonl", "html",
	"pprof", "speedscope", "dhat", "svg", "markdown"};
#define FORMATS (sizeof(formats) / sizeof(*formats))
static const char *const asked[][3] = {{0}, {"--group", "function"}, {"--group", "module"},
	{"--group", "heap"}, {"--match", "id"}, {"--match", "function"}, {"--match", "address"},
	{"--tree"}, {"--force"}, {"--sizes"}, {"--age"}, {"--lost"}, {"--across-restarts"},
	{"--sum"}, {"--include", "a"}, {"--suppress", "runtime"}, {"--max-growth", "1K"},
	{"--group", "file"}, {"--sort", "name"}, {"--strip", "--invert"}, {"--heaps"}, {"--pinned"},
	{"--heap", "handles"}};
#define ASKED (sizeof(asked) / sizeof(*asked))

static void check_report(const char *path, const char *format)
{
	bool is_text = strcmp(format, "pprof") != 0; /* pprof's format is compressed */
	struct os_file file;
	char *text;
	size_t len;

	HOLDS(!os_open(&file, path, NULL));
	len = (size_t)os_size(&file);
	text = xcalloc(1, len + 1);
	HOLDS(!os_read_at(&file, 0, text, len));
	HOLDS(!is_text || fuzz_is_harmless(text, len));
	free(text);
	os_close(&file);
}

static void run(const char *const *paths, size_t count, unsigned option, const char *format)
{
	const char *argv[20] = {"hdiff", "--no-local-files", "--no-cache", "-f"};
	char out[60], *said = NULL;
	size_t said_len;
	int argc = 5, status;
	FILE *messages;

	/* hdiff renames a finished report into place, so the report needs a named file. */
	snprintf(out, sizeof(out), "/dev/shm/fuzz-hdiff-%lu", os_pid());
	argv[4] = out;
	argv[argc++] = "-o";
	argv[argc++] = format;
	for (size_t i = 0; asked[option % ASKED][i]; i++)
		argv[argc++] = asked[option % ASKED][i];
	for (size_t i = 0; i < count; i++)
		argv[argc++] = paths[i];
	messages = open_memstream(&said, &said_len);
	HOLDS(messages);
	status = hdiff_run(argc, (char **)(uintptr_t)argv, messages);
	(void)fclose(messages);
	HOLDS(fuzz_is_harmless(said, said_len));
	HOLDS(status == 0 || said_len > 0);
	if (status == 0)
		check_report(out, format);
	os_remove(out);
	free(said);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fuzz_input input = {bytes, bytes + len};
	unsigned option = (unsigned)fuzz_number(&input, 1),
		 format = (unsigned)fuzz_number(&input, 1);
	const char *paths[FILES_MAX];
	size_t count = 0;

	setenv("HSYM_LLVM", "/nowhere", 1);
	while (count < FILES_MAX && fuzz_left(&input)) {
		const uint8_t *end = memchr(input.at, '\f', fuzz_left(&input));

		end = end ? end : input.end;
		paths[count] = fuzz_file((unsigned)count, input.at, (size_t)(end - input.at));
		count++;
		input.at = end + (end < input.end);
	}
	if (count)
		run(paths, count, option, formats[format % FORMATS]);
	return 0;
}
