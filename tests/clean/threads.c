/* Frees all its memory. Uses POSIX threads, thread-specific keys, and locks with static
 * initialisers. */
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int done;
static void init(void)
{
	pthread_key_create(&key, NULL);
}
static void *work(void *unused)
{
	pthread_once(&once, init);
	pthread_setspecific(key, &done);
	pthread_mutex_lock(&lock);
	done++;
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&lock);
	return unused;
}
int main(void)
{
	pthread_t threads[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	pthread_mutex_lock(&lock);
	while (done < 4)
		pthread_cond_wait(&cond, &lock);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	printf("%d\n", done);
	return 0;
}
