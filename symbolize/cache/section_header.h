/* The header of the file of the cache of names: one text, twice, so that a file is known for ours when
 * one of them is damaged. Another format gets another file name. */
#ifndef SYMBOLIZE_CACHE_SECTION_HEADER_H
#define SYMBOLIZE_CACHE_SECTION_HEADER_H

#define HEADER_TEXT "hsnap's names 1\n"
#define HEADER_TEXT_BYTES 16
#define HEADER_BYTES 32

#endif
