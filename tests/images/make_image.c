/* make_image: writes a made Windows process as a minidump, and the truth about the process next to
 * it. */
#include "tests/images/image_inside.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char help_text[] =
	"usage: make_image PROFILE [OPTION...] OUT.dmp\n"
	"       make_image --list-profiles | --list-breaks\n"
	"Writes a made Windows process as a minidump, and the truth about it to OUT.dmp.truth.\n"
	"\n"
	"  --ust              started with +ust: blocks have stacks\n"
	"  --heaps N          so many heaps (2)\n"
	"  --blocks N         about so many live blocks in all (2000)\n"
	"  --stacks N         so many stacks (by the number of blocks)\n"
	"  --segment          segment heaps and NT heaps in turn; the layout of 32-bit ones of\n"
	"                     26100 is not known: they have a signature and no blocks\n"
	"  --page-heap full|light  started with +hpa\n"
	"  --debug-flags      as under a debugger: htc, hfc and hpc\n"
	"  --no-lfh           NT heaps without a low fragmentation front end\n"
	"  --plain-headers    NT heaps whose headers are not coded\n"
	"  --growth G         the G'th later state of the same process (0)\n"
	"  --seed S           another process of the same kind (1); it also chooses between what\n"
	"                     Windows may do, such as the slots of a segment heap of 26100\n"
	"  --depth-slot index|depth  where a trace keeps its count of frames (depth)\n"
	"  --ust-flag-only    the PEB says +ust, but the process was started without\n"
	"  --made-code        some frames are in executable memory of no module\n"
	"  --unloaded         some frames are in a module that was unloaded since\n"
	"  --sparse           most blocks were freed\n"
	"  --memory-list      all memory in a MemoryList, as smaller dumps have it\n"
	"  --no-memory-info   without a MemoryInfoList\n"
	"  --partial          a dump without full memory\n"
	"  --break KIND       with damage; --list-breaks names the kinds\n"
	"\n"
	"Truth, one fact per line; addresses in hexadecimal, sizes in decimal:\n"
	"  process pid=N bits=N build=N flags=HEX\n"
	"  module BASE SIZE PATH\n"
	"  heap ADDR nt|segment|page\n"
	"  heapsize ADDR COMMITTED RESERVED      of those whose memory is known\n"
	"  container HEAP segment|vs|lfh ADDR SIZE FROM-END...   with its committed ranges\n"
	"  stack NUMBER ID FRAME...      ID: address of the first frame's slot\n"
	"  database ENTRIES LOOKUPS FAILURES\n"
	"  block HEAP ADDR REQUESTED OVERHEAD STACK|-\n"
	"  total BLOCKS REQUESTED OVERHEAD\n"
	"  memory PART BYTES             all parts of the balance, as hdump(5) names them\n"
	"  count threads|handles N\n"
	"  handles N TYPE                of those whose type is known\n"
	"Of the 64-bit side of a WOW64 process: heap64, heapsize64, container64, block64, "
	"total64.\n";

struct request {
	struct image_options options;
	const struct profile *profile;
	const char *out;
	const char *kind_of_break;
	unsigned heaps, blocks, growth;
	bool is_segment, is_page_heap;
};

static const struct image_break *next_break(size_t number)
{
	static const struct image_break *const tables[] = {
		dump_breaks, nt_breaks, ust_breaks, segment_breaks, page_breaks};
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		for (const struct image_break *row = tables[i]; row->name; row++)
			if (number-- == 0)
				return row;
	}
	return NULL;
}

static void list_breaks(void)
{
	for (size_t i = 0; next_break(i); i++)
		printf("%s\t%s\n", next_break(i)->name, next_break(i)->says);
}

static void apply_break(struct image *image, const char *kind)
{
	for (size_t i = 0; next_break(i); i++) {
		if (strcmp(next_break(i)->name, kind) == 0) {
			next_break(i)->apply(image);
			return;
		}
	}
	image_die("no such damage: %s", kind);
}

static void make_heap(
	struct image *image, const struct request *request, unsigned number, unsigned blocks)
{
	struct model_request model = {
		.block_count = blocks, .growth = request->growth, .is_process_heap = number == 0};
	image_begin_heap(image, number, request->heaps);
	if (request->is_page_heap)
		page_model_make(image, &model, request->options.is_page_heap_full);
	else if (request->is_segment && number % 2 == 0)
		segment_model_make(image, &model);
	else
		nt_model_make(image, &model);
}

static void make_heaps(struct image *image, const struct request *request)
{
	/* The first heap is the process heap and gets the largest share. */
	unsigned share = request->blocks / (request->heaps + 1);
	for (unsigned i = 0; i < request->heaps; i++) {
		make_heap(image, request, i,
			i ? share : request->blocks - share * (request->heaps - 1));
	}
	if (image_profile(image)->is_wow64 && request->heaps > 0) {
		image_side(image, 64);
		image_begin_heap(image, 0, 1);
		nt_model_make(
			image, &(struct model_request){.block_count = 40, .is_process_heap = true});
		image_side(image, 32);
	}
}

static unsigned number_of(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 0);
	if (*end || end == text || value > 100000000)
		image_die("not a number: %s", text);
	return (unsigned)value;
}

static bool is_first_word(const char *text, const char *first, const char *second)
{
	if (strcmp(text, first) != 0 && strcmp(text, second) != 0)
		image_die("%s or %s, not %s", first, second, text);
	return strcmp(text, first) == 0;
}

static const struct option long_options[] = {
	{"ust", no_argument, NULL, 'u'},
	{"heaps", required_argument, NULL, 'n'},
	{"blocks", required_argument, NULL, 'b'},
	{"stacks", required_argument, NULL, 'k'},
	{"segment", no_argument, NULL, 's'},
	{"page-heap", required_argument, NULL, 'p'},
	{"debug-flags", no_argument, NULL, 'd'},
	{"no-lfh", no_argument, NULL, 'l'},
	{"ust-flag-only", no_argument, NULL, 'f'},
	{"made-code", no_argument, NULL, 'j'},
	{"unloaded", no_argument, NULL, 'o'},
	{"memory-list", no_argument, NULL, 'm'},
	{"no-memory-info", no_argument, NULL, 'y'},
	{"plain-headers", no_argument, NULL, 'c'},
	{"growth", required_argument, NULL, 'g'},
	{"seed", required_argument, NULL, 'r'},
	{"depth-slot", required_argument, NULL, 'i'},
	{"sparse", no_argument, NULL, 'z'},
	{"partial", no_argument, NULL, 'q'},
	{"break", required_argument, NULL, 'x'},
	{"list-breaks", no_argument, NULL, 'X'},
	{"list-profiles", no_argument, NULL, 'P'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static void list_profiles(void)
{
	for (size_t i = 0; profile_at(i); i++)
		puts(profile_at(i)->name);
}

static void take_option(struct request *request, int option)
{
	struct image_options *options = &request->options;
	switch (option) {
	case 'u': options->nt_global_flag |= FLAG_STACK_TRACES; break;
	case 'n': request->heaps = number_of(optarg); break;
	case 'b': request->blocks = number_of(optarg); break;
	case 'k': options->stack_count = number_of(optarg); break;
	case 's': request->is_segment = true; break;
	case 'p':
		request->is_page_heap = true;
		options->is_page_heap_full = is_first_word(optarg, "full", "light");
		options->nt_global_flag |= FLAG_PAGE_HEAP;
		break;
	case 'd':
		options->nt_global_flag |=
			FLAG_HEAP_TAIL_CHECK | FLAG_HEAP_FREE_CHECK | FLAG_HEAP_VALIDATE;
		break;
	case 'l': options->has_lfh = false; break;
	case 'f':
		options->is_flag_only = true;
		options->nt_global_flag |= FLAG_STACK_TRACES;
		break;
	case 'j': options->has_made_code = true; break;
	case 'o': options->has_unloaded = true; break;
	case 'm': options->is_memory_list = true; break;
	case 'y': options->has_no_infos = true; break;
	case 'c': options->is_plain = true; break;
	case 'g': request->growth = number_of(optarg); break;
	case 'r': options->seed = number_of(optarg); break;
	case 'i': options->is_depth_in_index_slot = is_first_word(optarg, "index", "depth"); break;
	case 'z': options->is_sparse = true; break;
	case 'q': options->is_partial = true; break;
	case 'x': request->kind_of_break = optarg; break;
	case 'X': list_breaks(); exit(0);
	case 'P': list_profiles(); exit(0);
	case 'h': fputs(help_text, stdout); exit(0);
	default: fputs(help_text, stderr); exit(2);
	}
}

static struct request parse(int argc, char **argv)
{
	struct request request = {
		.options = {.seed = 1, .has_lfh = true}, .heaps = 2, .blocks = 2000};
	int option;
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		take_option(&request, option);
	if (argc - optind != 2) {
		fputs(help_text, stderr);
		exit(2);
	}
	request.profile = profile_find(argv[optind]);
	request.out = argv[optind + 1];
	if (!request.profile)
		image_die("no such profile: %s", argv[optind]);
	/* A page heap also has a normal heap. */
	request.options.most_heaps = 2 * request.heaps;
	if (request.options.stack_count == 0) {
		unsigned count = 64 + request.blocks / 100;
		request.options.stack_count = count < 20000 ? count : 20000;
	}
	return request;
}

int main(int argc, char **argv)
{
	struct request request = parse(argc, argv);
	struct image *image = image_new(request.profile, &request.options);
	make_heaps(image, &request);
	image_make_rings(image);
	size_t path_bytes = strlen(request.out) + sizeof(".truth");
	char *truth = malloc(path_bytes);
	if (!truth)
		image_die("out of memory");
	snprintf(truth, path_bytes, "%s.truth", request.out);
	image_write_truth(image, truth);
	if (request.kind_of_break)
		apply_break(image, request.kind_of_break);
	image_write_minidump(image, request.out);
	free(truth);
	image_free(image);
	return 0;
}
