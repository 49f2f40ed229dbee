/*
 * Two leaks through one allocator of the program's own: the line that calls malloc() is the same
 * for both, so only the callers distinguish them. Every step loads ten textures of 3000 bytes and
 * seven sounds of 500, and forgets them; text that it loads is freed.
 *
 * truth: step 1->2 stack xmalloc<-load_texture<-load_level<-main bytes +30000 allocs +10
 * truth: step 1->2 stack xmalloc<-load_sound<-load_level<-main bytes +3500 allocs +7
 * truth: step 1->3 stack xmalloc<-load_texture<-load_level<-main bytes +60000 allocs +20
 * truth: step 1->3 stack xmalloc<-load_sound<-load_level<-main bytes +7000 allocs +14
 */
#include <stdlib.h>

#include "samples/step.h"

static NOINLINE void *xmalloc(size_t bytes)
{
	void *block = malloc(bytes);

	return step_leak(block);
}

static NOINLINE void load_texture(void)
{
	char *texture = xmalloc(3000);

	texture[0] = 'x';
}

static NOINLINE void load_sound(void)
{
	char *sound = xmalloc(500);

	sound[0] = 'x';
}

static NOINLINE void load_text(void)
{
	char *text = xmalloc(100);

	text[0] = 'x';
	free(text);
}

static NOINLINE void load_level(void)
{
	for (volatile int i = 0; i < 10; i++)
		load_texture();
	for (volatile int i = 0; i < 7; i++)
		load_sound();
	for (volatile int i = 0; i < 50; i++)
		load_text();
}

int main(void)
{
	unsigned long step = 0;

	for (;;) {
		step++;
		load_level();
		if (!step_done(step))
			return 0;
	}
}
