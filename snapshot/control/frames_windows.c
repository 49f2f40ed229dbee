#include "snapshot/control/frames_windows.h"

#include <stdlib.h>

#include "core/buf.h"
#include "core/pe.h"
#include "snapshot/control/unwind_step.h"

#define FRAMES_MAX 2000
#define FUNCTIONS_BYTES_MAX ((uint32_t)1 << 24)

struct image {
	uint64_t base;
	struct unwind_function *functions; /* by address */
	size_t count;
};

struct frames {
	struct target *target;
	HANDLE process;
	struct image *images;
	size_t count, cap;
};

struct frames *frames_new(struct target *target, HANDLE process)
{
	struct frames *frames = target->bits == 64 ? calloc(1, sizeof(*frames)) : NULL;

	if (frames) {
		frames->target = target;
		frames->process = process;
	}
	return frames;
}

void frames_free(struct frames *frames)
{
	if (!frames)
		return;
	for (size_t i = 0; i < frames->count; i++)
		free(frames->images[i].functions);
	free(frames->images);
	free(frames);
}

#if defined(_WIN64)

/* The base of the image that addr is in; 0: in none. */
static uint64_t image_of(const struct frames *frames, uint64_t addr)
{
	MEMORY_BASIC_INFORMATION info;

	if (VirtualQueryEx(frames->process, (void *)(ULONG_PTR)addr, &info, sizeof(info)) !=
			sizeof(info) ||
		info.State != MEM_COMMIT || info.Type != MEM_IMAGE)
		return 0;
	return (ULONG_PTR)info.AllocationBase;
}

/* Reads an image's table of functions, in the order that it has to have. */
static bool read_functions(const struct frames *frames, struct image *image)
{
	struct target_image at = {frames->target, image->base};
	struct pe_source source = target_image_source(&at);
	struct pe_image *headers = malloc(sizeof(*headers));
	uint32_t bytes = 0;
	bool ok = headers && !pe_read_headers(&source, headers);

	if (ok)
		bytes = headers->exceptions.size_bytes;
	ok = ok && bytes && bytes <= FUNCTIONS_BYTES_MAX;
	image->count = bytes / sizeof(*image->functions);
	image->functions = ok ? malloc(bytes) : NULL;
	ok = image->functions && !target_read(frames->target, image->base + headers->exceptions.rva,
					 image->functions, bytes);
	for (size_t i = 1; ok && i < image->count; i++)
		ok = image->functions[i].begin >= image->functions[i - 1].begin;
	free(headers);
	return ok;
}

/* NULL: it has no such table, or a damaged one, or there is no memory. */
static const struct image *find_image(struct frames *frames, uint64_t addr)
{
	struct image image = {.base = image_of(frames, addr)};

	if (!image.base)
		return NULL;
	for (size_t i = 0; i < frames->count; i++) {
		if (frames->images[i].base == image.base)
			return &frames->images[i];
	}
	if (!read_functions(frames, &image) || array_grow((void **)&frames->images, &frames->cap,
						       frames->count, sizeof(*frames->images))) {
		free(image.functions);
		return NULL;
	}
	frames->images[frames->count] = image;
	return &frames->images[frames->count++];
}

static const struct unwind_function *find_function(const struct image *image, uint64_t addr)
{
	uint64_t rva = addr - image->base;
	size_t low = 0, high = image->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (image->functions[middle].end <= rva)
			low = middle + 1;
		else
			high = middle;
	}
	return low < image->count && image->functions[low].begin <= rva ? &image->functions[low] :
									  NULL;
}

static bool read(void *ctx, uint64_t addr, void *bytes, size_t len)
{
	return !target_read(ctx, addr, bytes, len);
}

static bool get_registers(HANDLE thread, struct unwind_registers *registers)
{
	CONTEXT context = {.ContextFlags = CONTEXT_FULL};
	/* Rax to R15 follow one another, as instructions number them. */
	const DWORD64 *general = &context.Rax;

	if (!GetThreadContext(thread, &context))
		return false;
	registers->ip = context.Rip;
	for (int i = 0; i < 16; i++)
		registers->general[i] = general[i];
	return true;
}

/* One step; false when there is doubt about it. */
static bool step(struct frames *frames, bool is_innermost, struct unwind_registers *registers)
{
	const struct image *image = find_image(frames, registers->ip);
	struct unwind_source source = {.read = read, .ctx = frames->target};

	if (!image)
		return false;
	source.image = image->base;
	return unwind_step(&source, find_function(image, registers->ip), is_innermost, registers);
}

uint64_t frames_walk(struct frames *frames, HANDLE thread, uint64_t end,
	bool (*visit)(void *ctx, uint64_t addr), void *ctx)
{
	struct unwind_registers registers;
	uint64_t known;

	if (!get_registers(thread, &registers))
		return 0;
	known = registers.general[UNWIND_RSP];
	for (int i = 0; i < FRAMES_MAX; i++) {
		uint64_t sp;

		if (!step(frames, i == 0, &registers))
			break;
		sp = registers.general[UNWIND_RSP];
		if (sp <= known || sp > end)
			break;
		known = sp;
		if (visit(ctx, registers.ip))
			break;
		if (!registers.ip) /* the thread began here */
			return end;
	}
	return known;
}

#else

uint64_t frames_walk(struct frames *frames, HANDLE thread, uint64_t end,
	bool (*visit)(void *ctx, uint64_t addr), void *ctx)
{
	(void)frames;
	(void)thread;
	(void)end;
	(void)visit;
	(void)ctx;
	return 0;
}

#endif
