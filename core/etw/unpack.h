/* What RtlCompressBuffer packed, by the published algorithms (MS-XCA). */
#ifndef CORE_ETW_UNPACK_H
#define CORE_ETW_UNPACK_H

#include <stdbool.h>
#include <stddef.h>

enum { ETW_LZNT1 = 2, ETW_XPRESS = 3, ETW_XPRESS_HUFFMAN = 4 };

/* Unpacks from into to: true when exactly to_bytes came out. Nothing outside of both is read or written. */
bool etw_unpack(unsigned format, const unsigned char *from, size_t from_bytes, unsigned char *to,
	size_t to_bytes);

#endif
