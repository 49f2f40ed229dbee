/*
 * Rules of 32-bit code in images, and walks that use them.
 *
 * Rules are read directly from mapped images. Another thread may unmap an image at any moment, so
 * the code that reads it runs under an exception handler.
 */
#include <stddef.h>

#include "snapshot/tracer/hooks.h"
#include "snapshot/tracer/tracer_nt.h"
#include "snapshot/tracer/unwind.h"
#include "snapshot/tracer/unwind_parts_x86.h"
#include "snapshot/tracer/unwind_region.h"

uint64_t unwind_mismatches, unwind_exceptions;

/* ---------------------------------------------------------------- calls that survive exceptions */

/* Calls how(what). Returns false if an exception ended the call. */
bool unwind_guarded(void (*how)(void *), void *what);

extern const char unwind_guard_out[];

/* The handler's registration record is pushed last. It consists of the previous record and the
 * handler. */
#define GUARD_SAVED_BYTES 20 /* bytes from the record up to the saved EBP */

__asm__(".text\n"
	".globl _unwind_guarded\n"
	".def _unwind_guarded; .scl 2; .type 32; .endef\n"
	"_unwind_guarded:\n"
	"	pushl %ebp\n"
	"	movl %esp, %ebp\n"
	"	pushl %ebx\n"
	"	pushl %esi\n"
	"	pushl %edi\n"
	"	pushl $_unwind_guard_handler\n"
	"	pushl %fs:0\n"
	"	movl %esp, %fs:0\n"
	"	pushl 12(%ebp)\n"
	"	call *8(%ebp)\n"
	"	movl $1, %eax\n"
	".globl _unwind_guard_out\n"
	"_unwind_guard_out:\n" /* with 0 in eax after an exception */
	"	leal -20(%ebp), %esp\n"
	"	popl %fs:0\n"
	"	popl %ecx\n"
	"	popl %edi\n"
	"	popl %esi\n"
	"	popl %ebx\n"
	"	popl %ebp\n"
	"	ret\n");

EXCEPTION_DISPOSITION __cdecl unwind_guard_handler(
	EXCEPTION_RECORD *exception, char *frame, CONTEXT *context, void *dispatch);

EXCEPTION_DISPOSITION __cdecl unwind_guard_handler(
	EXCEPTION_RECORD *exception, char *frame, CONTEXT *context, void *dispatch)
{
	(void)dispatch;
	/* The guarded code can only fault while reading. */
	if (exception->ExceptionCode != (DWORD)STATUS_ACCESS_VIOLATION &&
		exception->ExceptionCode != (DWORD)STATUS_IN_PAGE_ERROR &&
		exception->ExceptionCode != (DWORD)STATUS_GUARD_PAGE_VIOLATION)
		return ExceptionContinueSearch;
	context->Eax = 0;
	context->Ebp = (DWORD)(uintptr_t)frame + GUARD_SAVED_BYTES;
	context->Eip = (DWORD)(uintptr_t)unwind_guard_out;
	return ExceptionContinueExecution;
}

/* ---------------------------------------------------------------- images */

#define IMAGES 256
#define PLACES 131072 /* number of functions in all images; `places` takes 1 MiB */

/*
 * Facts about an image. `base` is written last and cleared first. So the facts that a thread has
 * read are correct if unwind32_begin() still returns the same value. The entry of an unloaded image
 * is reused if the same image is loaded again.
 */
struct image {
	uint32_t base; /* 0: the entry is free, or the image is unloaded */
	uint32_t bytes;
	/* offset of .eh_frame from the base, and its size; 0: no .eh_frame */
	uint32_t section, section_bytes;
	uint32_t hash; /* hash of the section's contents */
	uint32_t first, count; /* the image's functions in `places`; 0: not listed */
};

static struct image images[IMAGES];
static uint32_t image_count; /* number of entries ever used */
static struct unwind32_place places[PLACES]; /* elements are never removed */
static uint32_t place_count;
/* nonzero while a thread adds an image; stays nonzero if that thread was terminated */
static uint32_t is_adding;

static const void *at(uint32_t addr)
{
	return (const void *)(uintptr_t)addr;
}

static struct unwind32_section section_of(const struct image *image)
{
	return (struct unwind32_section){
		.image = image->base,
		.image_end = image->base + image->bytes,
		.addr = image->base + image->section,
		.len = image->section_bytes,
		.bytes = at(image->base + image->section),
	};
}

#define SECTIONS_MAX 96
#define HEADERS_MAX 65536

/* Finds .eh_frame by its contents. Its name cannot be used: it is truncated, or is only in the
 * file. */
static void find_section(struct image *image)
{
	const IMAGE_DOS_HEADER *dos = at(image->base);
	const IMAGE_NT_HEADERS32 *nt;
	const IMAGE_SECTION_HEADER *header;
	uint32_t count;

	if (dos->e_magic != IMAGE_DOS_SIGNATURE || (uint32_t)dos->e_lfanew > HEADERS_MAX)
		return;
	nt = at(image->base + (uint32_t)dos->e_lfanew);
	if (nt->Signature != IMAGE_NT_SIGNATURE ||
		nt->OptionalHeader.Magic != IMAGE_NT_OPTIONAL_HDR32_MAGIC)
		return;
	image->bytes = nt->OptionalHeader.SizeOfImage;
	header = (const IMAGE_SECTION_HEADER *)((const char *)&nt->OptionalHeader +
						nt->FileHeader.SizeOfOptionalHeader);
	count = nt->FileHeader.NumberOfSections;
	for (uint32_t i = 0; i < count && i < SECTIONS_MAX; i++, header++) {
		uint32_t start = header->VirtualAddress, len = header->Misc.VirtualSize;
		struct unwind32_section section;

		if (!(header->Characteristics & IMAGE_SCN_CNT_INITIALIZED_DATA) ||
			header->Characteristics & (IMAGE_SCN_MEM_WRITE | IMAGE_SCN_MEM_EXECUTE) ||
			start > image->bytes || len > image->bytes - start)
			continue;
		image->section = start;
		image->section_bytes = len;
		section = section_of(image);
		if (unwind32_is_eh_frame(&section))
			return;
		image->section = image->section_bytes = 0;
	}
}

/* Computes FNV-1a over words instead of bytes. */
static uint32_t hash_section(const struct image *image)
{
	const volatile uint32_t *word = at(image->base + image->section);
	uint32_t hash = 2166136261u;

	for (uint32_t i = 0; i < image->section_bytes / sizeof(*word); i++)
		hash = (hash ^ word[i]) * 16777619u;
	return hash;
}

/* Returns the entry of the same image if it was unloaded before; otherwise a new entry. Returns
 * NULL if there is no room. */
static struct image *room_for(const struct image *image)
{
	for (uint32_t i = 0; i < image_count; i++) {
		if (!images[i].base && images[i].hash == image->hash &&
			images[i].section == image->section &&
			images[i].section_bytes == image->section_bytes)
			return &images[i];
	}
	return image_count < IMAGES ? &images[image_count] : NULL;
}

static void list_functions(struct image *image)
{
	struct unwind32_section section = section_of(image);
	uint32_t room = PLACES - place_count;
	uint32_t count = unwind32_list(&section, places + place_count, room);

	if (count > room)
		return;
	image->first = place_count;
	image->count = count;
	place_count += count;
}

/* Request for the rule of an address. */
struct question {
	uint32_t addr, begun;
	struct unwind32_rule rule;
	/* the rule is valid as long as the module that contains the address is loaded */
	bool is_kept;
	bool is_adding; /* this thread holds the lock of `images` */
};

static void end_adding(struct question *question)
{
	question->is_adding = false;
	__atomic_store_n(&is_adding, 0, __ATOMIC_RELEASE);
}

/* Stores the facts about an image. Only one thread stores facts at a time. Other threads return
 * without storing. */
static void add_image(struct image *image, struct question *question)
{
	uint32_t begun = question->begun;
	struct image *room;

	if (__atomic_exchange_n(&is_adding, 1, __ATOMIC_ACQUIRE))
		return;
	question->is_adding = true;
	image->hash = hash_section(image);
	room = room_for(image);
	if (room && unwind32_begin() == begun) {
		uint32_t base = image->base;

		if (room < images + image_count) {
			image->first = room->first;
			image->count = room->count;
		} else {
			list_functions(image);
		}
		image->base = 0;
		*room = *image;
		image->base = base;
		if (room == images + image_count)
			__atomic_store_n(&image_count, image_count + 1, __ATOMIC_RELEASE);
		__atomic_store_n(&room->base, base, __ATOMIC_SEQ_CST);
		/* unwind_forget() increments the counter, then clears images. So at least one of
		 * the two threads sees the other's change. */
		if (unwind32_begin() != begun)
			__atomic_store_n(&room->base, 0, __ATOMIC_SEQ_CST);
	}
	end_adding(question);
}

static bool find_image(uint32_t base, struct image *image)
{
	uint32_t count = __atomic_load_n(&image_count, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < count; i++) {
		if (__atomic_load_n(&images[i].base, __ATOMIC_ACQUIRE) == base) {
			*image = images[i];
			image->base = base;
			return true;
		}
	}
	return false;
}

static void forget_images(uint64_t from, uint64_t to)
{
	uint32_t count = __atomic_load_n(&image_count, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < count; i++) {
		uint32_t base = __atomic_load_n(&images[i].base, __ATOMIC_SEQ_CST);

		if (base && base >= from && base < to)
			__atomic_compare_exchange_n(&images[i].base, &base, 0, false,
				__ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
	}
}

/* Records the base of an image that has no unwind rules but occurs on a stack. */
static void note_bare(uint32_t base)
{
	for (uint32_t i = 0; i < TRACER_BARE_IMAGES; i++) {
		uint32_t *place = &hsnap_tracer.bare_images[i], there = 0;

		if (__atomic_compare_exchange_n(
			    place, &there, base, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
			there == base)
			return;
	}
}

/* ---------------------------------------------------------------- rules */

#define EXECUTABLE                                                                                 \
	(PAGE_EXECUTE | PAGE_EXECUTE_READ | PAGE_EXECUTE_READWRITE | PAGE_EXECUTE_WRITECOPY)

NTSYSAPI void NTAPI KiUserApcDispatcher(
	PVOID function, PVOID a, PVOID b, PVOID c, CONTEXT *interrupted);
NTSYSAPI void NTAPI KiUserExceptionDispatcher(EXCEPTION_RECORD *exception, CONTEXT *interrupted);

/* Returns true for a function that the system enters at any instruction of a thread. If such a
 * function has rules, they are wrong. */
static bool is_entered(uint32_t begin)
{
	return begin == (uint32_t)(uintptr_t)KiUserApcDispatcher ||
	       begin == (uint32_t)(uintptr_t)KiUserExceptionDispatcher;
}

/* Finds the rule of code in an image. Uses the rules of the image, or the rule of an EBP frame if
 * the image has none. */
static void ask_image(struct question *question, uint32_t base)
{
	struct image image = {.base = base};
	struct unwind32_section section;
	enum unwind32_answer answer;
	uint32_t begin = 0;

	if (!find_image(base, &image)) {
		find_section(&image);
		add_image(&image, question);
	}
	if (!image.section_bytes) {
		note_bare(base);
		return;
	}
	section = section_of(&image);
	answer = unwind32_read(&section, image.count ? places + image.first : NULL, image.count,
		question->addr, &question->rule, &begin);
	if (answer == UNWIND32_NOT_UNDERSTOOD || is_entered(begin))
		question->rule = (struct unwind32_rule){.kind = UNWIND32_END};
}

/* Finds the rule of a return address. The address must be in executable memory and follow a
 * call. */
static void ask(void *what)
{
	static const struct unwind32_rule frame = UNWIND32_FRAME;
	struct question *question = what;
	MEMORY_BASIC_INFORMATION info;

	if (NtQueryVirtualMemory(THIS_PROCESS, at(question->addr), NT_MEMORY_BASIC_INFORMATION,
		    &info, sizeof(info), NULL) < 0 ||
		info.State != MEM_COMMIT)
		return;
	question->is_kept = info.Type == MEM_IMAGE;
	if (!(info.Protect & EXECUTABLE) ||
		!unwind_is_after_call(at(question->addr),
			question->addr - (uint32_t)(uintptr_t)info.AllocationBase))
		return;
	question->rule = frame;
	question->is_kept = true;
	if (info.Type == MEM_IMAGE)
		ask_image(question, (uint32_t)(uintptr_t)info.AllocationBase);
}

static struct unwind32_rule learn(uint32_t addr)
{
	struct question question = {.addr = addr, .begun = unwind32_begin()};

	question.rule.kind = UNWIND32_NO_CODE;
	if (!unwind_guarded(ask, &question)) {
		__atomic_fetch_add(&unwind_exceptions, 1, __ATOMIC_RELAXED);
		question.rule = (struct unwind32_rule){.kind = UNWIND32_END};
		if (question.is_adding)
			end_adding(&question);
	}
	if (question.is_kept)
		unwind32_add(addr, &question.rule, question.begun);
	return question.rule;
}

void unwind_forget(uint64_t from, uint64_t to)
{
	unwind32_forget(from, to);
	forget_images(from, to);
}

void unwind_forget_all(void)
{
	unwind_forget(0, UINT64_MAX);
}

/* ---------------------------------------------------------------- walks */

/* Lowest address of the stack's memory: DeallocationStack in struct _TEB, from ntdll's public
 * symbols, x86, Windows 7 to 11, and from Wine's winternl.h. */
#define TEB_DEALLOCATION_STACK 0xe0c

/* Stack bytes that finding a rule may need, including an exception dispatch. */
#define LEARN_STACK_BYTES 16384

#define WALKERS_LOG2 6
#define TRAILS_LOG2 2
#define TRAILS (1 << TRAILS_LOG2)

/* State of a thread. If the TEBs of several threads hash to the same index, these threads share one
 * state. A single state for all threads would be contended. */
static struct walker {
	/* TEB of the thread that owns the trails. The owner never changes: the next thread with
	 * this TEB inherits the trails. */
	__attribute__((aligned(64))) const void *owner;
	struct unwind32_trail *last; /* trail of the owner's last walk */
	/* region of the owner's last stack that was not recorded in the TEB */
	struct unwind_region region;
	struct unwind32_trail trails[TRAILS];
	struct unwind32_walked walked[UNWIND32_MARKS];
} walkers[1 << WALKERS_LOG2];

static inline struct walker *walker_of(const NT_TIB *teb)
{
	return &walkers[(uint32_t)(uintptr_t)teb * 0x9e3779b1u >> (32 - WALKERS_LOG2)];
}

/* Chooses a trail by the value and the slot of the first return address. So two calls that
 * alternate usually have different trails. */
static inline struct unwind32_trail *trail_from(struct walker *walker, uint32_t slot)
{
	uint32_t addr = *(const uint32_t *)at(slot);

	return &walker->trails[(slot + addr) * 0x9e3779b1u >> (32 - TRAILS_LOG2)];
}

static struct unwind32_trail *trail_of(struct walker *walker, const NT_TIB *teb, uint32_t slot)
{
	const void *owner = __atomic_load_n(&walker->owner, __ATOMIC_RELAXED);
	/* A value that is not the address of a TEB. If the thread is terminated before the trails
	 * are initialized, this value remains the owner. */
	const void *no_owner = walker;

	if (__builtin_expect(owner == teb, 1))
		return trail_from(walker, slot);
	if (owner || !__atomic_compare_exchange_n(&walker->owner, &owner, no_owner, false,
			     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return NULL;
	for (int i = 0; i < TRAILS; i++)
		unwind32_trail_init(&walker->trails[i], walker->walked);
	__atomic_store_n(&walker->owner, teb, __ATOMIC_RELEASE);
	return trail_from(walker, slot);
}

struct unwind_note *unwind_note(void)
{
	const NT_TIB *teb = (const NT_TIB *)NtCurrentTeb();
	struct walker *walker = walker_of(teb);

	return walker->owner == teb && walker->last && walker->last->is_whole ?
		       &walker->last->note :
		       NULL;
}

static bool is_in_stack(const NT_TIB *tib, uint64_t slot)
{
	return slot >= (uintptr_t)tib->StackLimit && slot < (uintptr_t)tib->StackBase &&
	       !(slot & 3) && !((uintptr_t)tib->StackBase & 3);
}

const struct unwind_note *unwind_reuse(uint64_t slot, uint64_t rbp)
{
	const NT_TIB *tib = (const NT_TIB *)NtCurrentTeb();
	struct walker *walker = walker_of(tib);
	const struct unwind32_stack stack = {.high = (uint32_t)(uintptr_t)tib->StackBase};
	const struct unwind32_start start = {.slot = (uint32_t)slot, .ebp = (uint32_t)rbp};
	struct unwind32_trail *trail;

	if (walker->owner != tib || !is_in_stack(tib, slot))
		return NULL;
	trail = trail_from(walker, start.slot);
	if (!unwind32_is_same(trail, &stack, &start))
		return NULL;
	return &trail->note;
}

/* Returns true if the target's stack has enough room to find a rule. The tracer must not cause a
 * stack overflow. */
static bool has_room(void)
{
	const char *teb = (const char *)NtCurrentTeb();
	uint32_t here = (uint32_t)(uintptr_t)__builtin_frame_address(0);

	return here - *(const uint32_t *)(teb + TEB_DEALLOCATION_STACK) > LEARN_STACK_BYTES;
}

/* Finds the rule of an address. `region` is the current stack, or NULL if the stack is the thread's
 * own. Returns false if the stack has too little room. */
static bool find_rule(uint32_t addr, const struct unwind_region *region, struct unwind32_rule *rule)
{
	NT_TIB before;

	if (region ? !unwind_region_has_room(region) : !has_room())
		return false;
	if (region)
		before = unwind_region_enter(region);
	*rule = learn(addr);
	if (region)
		unwind_region_leave(&before);
	return true;
}

uint32_t unwind_from(
	uint64_t *frames, uint32_t max, const struct unwind_skip *skip, uint64_t slot, uint64_t rbp)
{
	const NT_TIB *tib = (const NT_TIB *)NtCurrentTeb();
	struct unwind32_stack stack = {.high = (uint32_t)(uintptr_t)tib->StackBase};
	struct unwind32_start start = {.slot = (uint32_t)slot, .ebp = (uint32_t)rbp};
	struct walker *walker = walker_of(tib);
	struct unwind32_trail *trail = NULL;
	struct unwind_region region = {0};
	bool is_own = is_in_stack(tib, slot);
	uint32_t found;

	if (slot & 3)
		return 0;
	trail = trail_of(walker, tib, start.slot);
	if (trail)
		walker->last = trail;
	if (__builtin_expect(!is_own, 0)) {
		if (trail)
			region = walker->region;
		if (!unwind_region_find(&region, slot))
			return 0;
		if (trail)
			walker->region = region;
		stack.high = (uint32_t)region.high;
	}
	for (;;) {
		struct unwind32_rule rule;

		found = unwind32_walk(frames, max, skip, &stack, &start, &start, trail);
		if (found != UNWIND32_MISS)
			return found;
		if (!find_rule(*(const uint32_t *)at(start.slot), is_own ? NULL : &region, &rule))
			return start.count;
		if (rule.kind == UNWIND32_NO_CODE)
			return start.count - 1;
		if (!unwind32_step_on(&stack, &start, &rule))
			return start.count;
	}
}

__attribute__((noinline)) uint32_t unwind_stack(
	uint64_t *frames, uint32_t max, const struct unwind_skip *skip)
{
	const uintptr_t *frame = __builtin_frame_address(0);

	return unwind_from(frames, max, skip, (uintptr_t)(frame + 1), *frame);
}
