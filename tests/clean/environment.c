/* Frees all its memory. Uses an environment variable, a command, a file, dates and stdout. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <locale.h>
int main(void)
{
	char text[100];
	time_t now = time(NULL);
	FILE *file;
	putenv("HSNAP_A=1");
	putenv("HSNAP_A=22");
	system("exit 0");
	setlocale(LC_ALL, "C");
	strftime(text, sizeof(text), "%Y", localtime(&now));
	file = tmpfile();
	if (file) {
		fprintf(file, "%s\n", text);
		fclose(file);
	}
	fprintf(stderr, "%s", "");
	printf("%s %s\n", text, getenv("HSNAP_A"));
	return 0;
}
