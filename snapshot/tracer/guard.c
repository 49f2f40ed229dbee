/*
 * The tracer's words in each thread. One of them is the guard. Usually a word is a TLS slot in the
 * thread's TEB. If the program has used all slots of the TEB, the word is in threadwords.c. If
 * threadwords.c has no room for the thread, the thread uses `shared_words`, whose contents are
 * never evaluated. This file also contains the functions of tracer_memory.h that read a thread's
 * words.
 */
#include "snapshot/tracer/guard.h"

#include "snapshot/tracer/tables.h"
#include "snapshot/tracer/tracer_memory.h"

/* number of slots in the TEB; further slots are in memory that the system allocates when needed */
#define TLS_SLOT_COUNT 64
#define WHAT_MASK ((uintptr_t)3)

uint32_t guard_offset;

/* Shared words for threads that have no words of their own. guard_now() recognizes them. */
static uintptr_t shared_words[THREADWORDS_COUNT];

uint32_t guard_new_slot(void)
{
	static uint32_t far_count;
	DWORD slot = TlsAlloc();

	if (slot < TLS_SLOT_COUNT)
		return guard_teb_slots + slot * (uint32_t)sizeof(void *);
	if (slot != TLS_OUT_OF_INDEXES)
		TlsFree(slot);
	return far_count++;
}

uintptr_t *guard_far_slot(uint32_t offset)
{
	uintptr_t *words = threadwords_find((uintptr_t)NtCurrentTeb(), GetCurrentThreadId());

	return (words ? words : shared_words) + offset;
}

static bool is_shared(const uintptr_t *slot)
{
	return slot >= shared_words && slot < shared_words + THREADWORDS_COUNT;
}

void guard_init(void)
{
	guard_offset = guard_new_slot();
}

static uint32_t ring_slot;

void memory_thread_word_init(void)
{
	ring_slot = guard_new_slot();
}

uintptr_t *memory_thread_word(void)
{
	uintptr_t *word = guard_slot(ring_slot);

	return is_shared(word) ? NULL : word;
}

/* Limit for a stack that is not recorded in the thread's TEB, such as a coroutine's. If the guard
 * began more bytes than this above the current stack address, it began on another stack. */
#define GUARD_DEPTH_MAX 65536

/* Returns true if the guard began on the thread's current stack. */
static bool is_of_this_stack(uintptr_t here, uintptr_t began)
{
	const NT_TIB *tib = (const NT_TIB *)NtCurrentTeb();

	if (here >= (uintptr_t)tib->StackLimit && here < (uintptr_t)tib->StackBase)
		return began <= (uintptr_t)tib->StackBase;
	return began - here <= GUARD_DEPTH_MAX;
}

enum guard guard_now(void)
{
	const uintptr_t *slot = guard_slot(guard_offset);
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), guard = *slot;
	uintptr_t began = guard & ~WHAT_MASK;

	if (is_shared(slot)) /* unknown activity: an incomplete record is better than a wrong one */
		return GUARD_HEAP;
	if (!guard || here >= began || !is_of_this_stack(here, began))
		return GUARD_NONE;
	return (enum guard)(guard & WHAT_MASK);
}

bool memory_is_in_heap(void)
{
	return guard_now() == GUARD_HEAP;
}
