/* Frees everything it allocates: std::thread, a mutex, a condition variable and standard output. */
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

static std::mutex lock;
static std::condition_variable ready;
static int done;

int main()
{
	std::vector<std::thread> threads;
	for (int i = 0; i < 4; i++)
		threads.emplace_back([i] {
			std::string text(100, 'x');
			std::lock_guard<std::mutex> hold(lock);
			done += (int)text.size() > i;
			ready.notify_all();
		});
	{
		std::unique_lock<std::mutex> hold(lock);
		ready.wait(hold, [] { return done == 4; });
	}
	for (auto &thread : threads)
		thread.join();
	std::cout << "done " << done << std::endl;
	return done != 4;
}
