/* Frees everything it allocates: Windows threads, strings, a vector and standard output. */
#include <windows.h>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>
static DWORD WINAPI work(void *text) { static_cast<std::string *>(text)->append(1000, 'x'); return 0; }
int main()
{
	std::vector<std::string> texts(4);
	for (auto &text : texts) {
		HANDLE thread = CreateThread(NULL, 0, work, &text, 0, NULL);
		WaitForSingleObject(thread, INFINITE);
		CloseHandle(thread);
	}
	std::cout << texts[3].size() << "\n";
	return 0;
}
