/*
 * A steady leak at one call site: every step serves 64 requests, and each of them adds a record of
 * 1024 bytes to a log that is never read or freed.
 *
 * truth: step 1->2 stack grow_log<-serve_request<-main bytes +65536 allocs +64
 * truth: step 2->3 stack grow_log<-serve_request<-main bytes +65536 allocs +64
 * truth: step 1->3 stack grow_log<-serve_request<-main bytes +131072 allocs +128
 */
#include <stdlib.h>

#include "samples/step.h"

struct record {
	struct record *next;
	char text[1024 - sizeof(void *)];
};

static struct record *log_head;

static NOINLINE void grow_log(int number)
{
	struct record *record = step_leak(malloc(sizeof(*record)));

	record->next = log_head;
	record->text[0] = (char)number;
	log_head = record;
}

static NOINLINE int serve_request(int number)
{
	char *reply = step_leak(malloc(200)); /* freed below: no leak */

	reply[0] = (char)number;
	grow_log(reply[0]);
	free(reply);
	return number;
}

int main(void)
{
	unsigned long step = 0;

	do {
		for (volatile int i = 0; i < 64; i++)
			serve_request(i);
	} while (step_done(++step));
	return 0;
}
