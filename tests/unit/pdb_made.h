/* Generated PDB files: a container with the few streams that the reader uses. To check the reader,
 * this file describes the layout a second time, from LLVM's description of the format. */
#ifndef TESTS_UNIT_PDB_MADE_H
#define TESTS_UNIT_PDB_MADE_H

#include "tests/unit/scratch.h"

#define MADE_NIL UINT32_MAX /* a missing stream */
enum {
	MADE_STREAMS = 8,
	MADE_INFO = 1,
	MADE_DBI = 3,
	MADE_OBJECT = 4, /* symbols of the only object file, see made_object() */
	MADE_SYMBOLS = 5,
	MADE_SECTIONS = 6,
	MADE_OMAP = 7
};

struct made_bytes {
	unsigned char *bytes;
	size_t len, cap;
};

struct made_stream {
	struct made_bytes content;
	bool is_nil;
};

struct made_pdb {
	struct made_stream streams[MADE_STREAMS];
	uint32_t block_bytes;
	struct made_bytes file; /* filled by made_finish() */
	size_t directory_at, map_at; /* offsets in `file` */
};

static inline void made_add(struct made_bytes *to, const void *bytes, size_t len)
{
	if (to->len + len > to->cap) {
		to->cap = (to->len + len) * 2;
		to->bytes = realloc(to->bytes, to->cap);
		assert_non_null(to->bytes);
	}
	if (len)
		memcpy(to->bytes + to->len, bytes, len);
	to->len += len;
}

static inline void made_set(struct made_bytes *to, size_t at, uint64_t value, size_t len)
{
	assert_true(at + len <= to->len);
	for (size_t i = 0; i < len; i++)
		to->bytes[at + i] = (unsigned char)(value >> 8 * i);
}

static inline void made_number(struct made_bytes *to, uint64_t value, size_t len)
{
	unsigned char zeros[8] = {0};

	made_add(to, zeros, len);
	made_set(to, to->len - len, value, len);
}

static inline void made_fill(struct made_bytes *to, size_t len)
{
	while (to->len < len)
		made_number(to, 0, 1);
}

/* images, as described in "PE Format" */

enum { /* offsets in the file */
	MADE_PE = 64,
	MADE_OPTIONAL = MADE_PE + 24,
	MADE_DIRECTORIES = MADE_OPTIONAL + 112,
	MADE_HEADERS = MADE_OPTIONAL + 240,
};

static inline void made_pe(struct made_bytes *to, uint16_t section_count, uint32_t size_of_image)
{
	made_set(to, 0, 0x5a4d, 2);
	made_set(to, 60, MADE_PE, 4);
	made_set(to, MADE_PE, 0x4550, 4);
	made_set(to, MADE_PE + 4, 0x8664, 2);
	made_set(to, MADE_PE + 6, section_count, 2);
	made_set(to, MADE_PE + 20, 240, 2);
	made_set(to, MADE_OPTIONAL, 0x20b, 2);
	made_set(to, MADE_OPTIONAL + 24, 0x140000000, 8);
	made_set(to, MADE_OPTIONAL + 56, size_of_image, 4);
	made_set(to, MADE_OPTIONAL + 60, 0x400, 4);
	made_set(to, MADE_OPTIONAL + 108, 16, 4);
}

static inline void made_image_section(struct made_bytes *to, unsigned i, const char *name,
	uint32_t rva, uint32_t at, uint32_t bytes)
{
	size_t from = MADE_HEADERS + i * (size_t)40;

	memcpy(to->bytes + from, name, strlen(name));
	made_set(to, from + 8, 0x1000, 4);
	made_set(to, from + 12, rva, 4);
	made_set(to, from + 16, bytes, 4);
	made_set(to, from + 20, at, 4);
	made_set(to, from + 36, i ? 0x40000040 : 0x60000020, 4);
}

/* ---------------------------------------------------------------- streams */

/* The GUID's bytes count up: 00 01 ... 0F, which prints as MADE_GUID. */
#define MADE_GUID                                                                                  \
	"03020100050407060809"                                                                     \
	"0A0B0C0D0E0F"

static inline void made_info(struct made_pdb *pdb, uint32_t age)
{
	struct made_bytes *info = &pdb->streams[MADE_INFO].content;

	made_number(info, 20000404, 4);
	made_number(info, 0x12345678, 4); /* signature */
	made_number(info, age, 4);
	for (unsigned i = 0; i < 16; i++)
		made_number(info, i, 1);
}

/* Makes the DBI stream. modules_bytes: size of the module list, which lies between the header and
 * the list of further streams. */
static inline void made_dbi(
	struct made_pdb *pdb, uint32_t age, uint16_t machine, uint32_t modules_bytes)
{
	struct made_bytes *dbi = &pdb->streams[MADE_DBI].content;

	made_number(dbi, UINT32_MAX, 4);
	made_number(dbi, 19990903, 4);
	made_number(dbi, age, 4);
	made_fill(dbi, 20);
	made_number(dbi, MADE_SYMBOLS, 2);
	made_fill(dbi, 24);
	made_number(dbi, modules_bytes, 4);
	made_fill(dbi, 48);
	made_number(dbi, 22, 4); /* size of the list of 11 further streams */
	made_fill(dbi, 58);
	made_number(dbi, machine, 2);
	made_fill(dbi, 64 + modules_bytes);
	for (unsigned i = 0; i < 11; i++)
		made_number(dbi, i == 5 ? MADE_SECTIONS : 0xffff, 2);
}

/* Adds the linker's section contributions, each with section, offset, size and flags. Call this
 * function after made_dbi(). */
#define MADE_COMDAT 0x1000
static inline void made_parts(
	struct made_pdb *pdb, uint32_t version, const uint32_t (*parts)[4], size_t count)
{
	struct made_bytes *dbi = &pdb->streams[MADE_DBI].content;
	size_t entry_bytes = version == 0xf12eba2d ? 28 : 32, end;
	unsigned char tail[22];

	dbi->len -= sizeof(tail);
	memcpy(tail, dbi->bytes + dbi->len, sizeof(tail));
	made_set(dbi, 28, 4 + count * entry_bytes, 4);
	made_number(dbi, version, 4);
	for (size_t i = 0; i < count; i++) {
		end = dbi->len + entry_bytes;
		made_number(dbi, parts[i][0], 4);
		made_number(dbi, parts[i][1], 4);
		made_number(dbi, parts[i][2], 4);
		made_number(dbi, parts[i][3], 4);
		made_fill(dbi, end);
	}
	made_add(dbi, tail, sizeof(tail));
}

static inline void made_section(
	struct made_pdb *pdb, const char *name, uint32_t rva, uint32_t bytes)
{
	struct made_bytes *sections = &pdb->streams[MADE_SECTIONS].content;
	char text[8] = {0};

	for (size_t i = 0; *name && i < sizeof(text); i++)
		text[i] = *name++;
	made_add(sections, text, 8);
	made_number(sections, bytes, 4);
	made_number(sections, rva, 4);
	made_number(sections, bytes, 4); /* size in the file */
	made_number(sections, rva, 4);
	made_fill(sections, sections->len + 12);
	/* flags of code, or of writable data */
	made_number(sections, memcmp(text, ".data", 6) ? 0x60000020 : 0xc0000040, 4);
}

static inline void made_record_in(
	struct made_bytes *symbols, uint16_t kind, const void *bytes, size_t len)
{
	size_t padded = (len + 4 + 3) & ~(size_t)3;
	size_t end = symbols->len + padded;

	made_number(symbols, padded - 2, 2);
	made_number(symbols, kind, 2);
	made_add(symbols, bytes, len);
	made_fill(symbols, end);
}

/* Adds a record that is not a public symbol. */
static inline void made_record(struct made_pdb *pdb, uint16_t kind, const void *bytes, size_t len)
{
	made_record_in(&pdb->streams[MADE_SYMBOLS].content, kind, bytes, len);
}

static inline void made_public(
	struct made_pdb *pdb, uint32_t flags, uint16_t section, uint32_t offset, const char *name)
{
	struct made_bytes body = {0};

	made_number(&body, flags, 4);
	made_number(&body, offset, 4);
	made_number(&body, section, 2);
	made_add(&body, name, strlen(name) + 1);
	made_record(pdb, 0x110e, body.bytes, body.len);
	free(body.bytes);
}

struct made_function {
	uint16_t kind;
	uint32_t size;
	uint16_t section;
	uint32_t offset;
	const char *name;
};

/* Adds an object file with these functions. Call this function once, after made_dbi() with
 * modules_bytes of at least 100. */
static inline void made_object(
	struct made_pdb *pdb, const struct made_function *functions, size_t count)
{
	struct made_bytes *dbi = &pdb->streams[MADE_DBI].content;
	struct made_bytes *symbols = &pdb->streams[MADE_OBJECT].content;

	made_number(symbols, 4, 4); /* signature of the stream */
	for (size_t i = 0; i < count; i++) {
		struct made_bytes body = {0};

		made_fill(&body, 12);
		made_number(&body, functions[i].size, 4);
		made_fill(&body, 28);
		made_number(&body, functions[i].offset, 4);
		made_number(&body, functions[i].section, 2);
		made_number(&body, 0, 1);
		made_add(&body, functions[i].name, strlen(functions[i].name) + 1);
		made_record_in(symbols, functions[i].kind, body.bytes, body.len);
		free(body.bytes);
	}
	made_set(dbi, 64 + 34, MADE_OBJECT, 2);
	made_set(dbi, 64 + 36, symbols->len, 4);
	memcpy(dbi->bytes + 64 + 64, "a.obj\0b.lib", 12);
	made_fill(symbols, symbols->len + 40); /* line information, which the reader ignores */
	/* The other object file has no stream. */
	for (uint32_t at = 64 + 76; at + 34 < 164; at += 68)
		made_set(dbi, at + 34, 0xffff, 2);
}

/* ---------------------------------------------------------------- container */

static inline size_t made_blocks(const struct made_pdb *pdb, size_t bytes)
{
	return (bytes + pdb->block_bytes - 1) / pdb->block_bytes;
}

/* Stores bytes in new blocks at the end of the file, and lists the blocks' numbers. The numbers
 * descend. */
static inline void made_place(
	struct made_pdb *pdb, const struct made_bytes *content, struct made_bytes *list)
{
	size_t count = made_blocks(pdb, content->len), first = pdb->file.len / pdb->block_bytes;

	made_fill(&pdb->file, pdb->file.len + count * pdb->block_bytes);
	for (size_t i = 0; i < count; i++) {
		size_t from = i * pdb->block_bytes, left = content->len - from;
		size_t number = first + count - 1 - i;

		memcpy(pdb->file.bytes + number * pdb->block_bytes, content->bytes + from,
			left < pdb->block_bytes ? left : pdb->block_bytes);
		made_number(list, number, 4);
	}
}

static inline void made_super(struct made_pdb *pdb, size_t directory_bytes)
{
	static const char magic[32] = "Microsoft C/C++ MSF 7.00\r\n\032DS";

	memcpy(pdb->file.bytes, magic, 32);
	made_set(&pdb->file, 32, pdb->block_bytes, 4);
	made_set(&pdb->file, 36, 1, 4); /* blocks of the free block map */
	made_set(&pdb->file, 40, pdb->file.len / pdb->block_bytes, 4);
	made_set(&pdb->file, 44, directory_bytes, 4);
}

/* Finishes the file. The map lists the directory's blocks. The directory lists the blocks of the
 * streams. */
static inline void made_finish(struct made_pdb *pdb)
{
	struct made_bytes lists = {0}, directory = {0}, map = {0}, maps = {0};

	pdb->block_bytes = pdb->block_bytes ? pdb->block_bytes : 4096;
	made_fill(&pdb->file, (size_t)pdb->block_bytes * 3);
	made_number(&directory, MADE_STREAMS, 4);
	for (size_t i = 0; i < MADE_STREAMS; i++) {
		const struct made_stream *stream = &pdb->streams[i];

		made_number(&directory, stream->is_nil ? MADE_NIL : stream->content.len, 4);
		made_place(pdb, &stream->content, &lists);
	}
	made_add(&directory, lists.bytes, lists.len);
	pdb->directory_at = pdb->file.len;
	made_place(pdb, &directory, &map);
	pdb->map_at = pdb->file.len;
	made_place(pdb, &map, &maps);
	made_super(pdb, directory.len);
	memcpy(pdb->file.bytes + 52, maps.bytes, maps.len);
	free(lists.bytes);
	free(directory.bytes);
	free(map.bytes);
	free(maps.bytes);
}

static inline void made_free(struct made_pdb *pdb)
{
	for (size_t i = 0; i < MADE_STREAMS; i++)
		free(pdb->streams[i].content.bytes);
	free(pdb->file.bytes);
	*pdb = (struct made_pdb){0};
}

/* Makes a PDB with a few symbols of a made image. The tests state which. */
static inline struct made_pdb made_small(uint32_t block_bytes)
{
	struct made_pdb pdb = {.block_bytes = block_bytes};

	made_info(&pdb, 7);
	pdb.streams[2].is_nil = true;
	made_dbi(&pdb, 3, 0x8664, 100);
	made_section(&pdb, ".text", 0x1000, 0x2000);
	made_section(&pdb, ".data", 0x3000, 0x1000);
	made_section(&pdb, ".code2", 0x4000, 0x1000);
	return pdb;
}

#endif
