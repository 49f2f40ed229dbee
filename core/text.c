#include "core/text.h"

char *text_harmless(char *text)
{
	for (unsigned char *c = (unsigned char *)text; *c; c++) {
		if (*c < ' ' || *c == 0x7f)
			*c = '?';
		else if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f)
			c[0] = c[1] = '?';
	}
	return text;
}
