/*
 * The records of .eh_frame: CIEs, which several functions share, and FDEs, one for each function.
 * Given an address, they identify the function that contains it, and its program of rules. The
 * format is described in "DWARF Debugging Information Format", version 4, section 6.4. The Linux
 * Standard Base, "Exception Frames", describes how .eh_frame differs.
 *
 * All data read here may be damaged, and may change while it is read. Each read is checked, and
 * each loop consumes bytes.
 */
#include <stddef.h>

#include "snapshot/tracer/unwind_parts_x86.h"

const uint8_t *unwind32_skip(struct unwind32_cursor *cursor, uint32_t len)
{
	const uint8_t *at = cursor->at;

	if (cursor->is_bad || len > (size_t)(cursor->end - at)) {
		cursor->is_bad = true;
		cursor->at = cursor->end;
		return NULL;
	}
	cursor->at = at + len;
	return at;
}

uint32_t unwind32_bytes(struct unwind32_cursor *cursor, uint32_t len)
{
	const volatile uint8_t *at = unwind32_skip(cursor, len);
	uint32_t value = 0;

	for (uint32_t i = 0; at && i < len; i++)
		value |= (uint32_t)at[i] << 8 * i;
	return value;
}

/* Reads a LEB128 number. Bits above the low 32 are ignored. */
static uint32_t read_leb(struct unwind32_cursor *cursor, bool is_signed)
{
	uint32_t value = 0, byte = 0x80;
	unsigned shift = 0;

	while (byte & 0x80 && !cursor->is_bad) {
		byte = unwind32_bytes(cursor, 1);
		if (shift < 32)
			value |= (byte & 0x7f) << shift;
		shift += 7;
	}
	if (is_signed && byte & 0x40 && shift < 32)
		value |= UINT32_MAX << shift;
	return value;
}

uint32_t unwind32_uleb(struct unwind32_cursor *cursor)
{
	return read_leb(cursor, false);
}

int32_t unwind32_sleb(struct unwind32_cursor *cursor)
{
	return (int32_t)read_leb(cursor, true);
}

/* Pointer encodings: the low four bits are the form, the next three bits are the base. */
#define ENCODING_WORD 0x00
#define ENCODING_UDATA4 0x03
#define ENCODING_SDATA4 0x0b
#define ENCODING_PCREL 0x10
#define ENCODING_OMIT 0xff

/* A CIE or an FDE. `body` is the part after its length and id. */
struct record {
	uint32_t offset;
	uint32_t id; /* 0 for a CIE; in an FDE, the number of bytes from the id back to the CIE */
	struct unwind32_cursor body;
};

/* Reads the record at *offset, and advances *offset. A terminator has no body. Returns false at the
 * end. */
static bool read_record(
	const struct unwind32_section *section, uint32_t *offset, struct record *record)
{
	struct unwind32_cursor cursor = {
		section->bytes + *offset, section->bytes + section->len, false};
	uint32_t len = unwind32_bytes(&cursor, 4);

	*record = (struct record){.offset = *offset};
	if (cursor.is_bad)
		return false;
	*offset += 4;
	if (!len)
		return true;
	record->body.at = cursor.at;
	/* A length of 0xffffffff introduces the 64-bit form. It is rejected, because it is too
	 * large for any section. */
	if (len < 4 || !unwind32_skip(&cursor, len))
		return false;
	record->body.end = cursor.at;
	record->id = unwind32_bytes(&record->body, 4);
	*offset += len;
	return true;
}

/* Returns a pointer's size in bytes, or 0 for an unknown form. */
static uint32_t pointer_bytes(uint8_t encoding)
{
	switch (encoding & 0x0f) {
	case ENCODING_WORD:
	case ENCODING_UDATA4:
	case ENCODING_SDATA4: return UNWIND32_WORD_BYTES;
	default: return 0;
	}
}

/* Reads the augmentation data, whose items are identified by letters. "R": encoding; "P":
 * personality; "L": encoding of the language-specific data; "S": signal frame. */
static bool read_augmentation(
	struct unwind32_cie *cie, const uint8_t *letters, struct unwind32_cursor data)
{
	for (; *letters; letters++) {
		if (*letters == 'R')
			cie->encoding = (uint8_t)unwind32_bytes(&data, 1);
		else if (*letters == 'P')
			unwind32_skip(&data, pointer_bytes((uint8_t)unwind32_bytes(&data, 1)));
		else if (*letters == 'L')
			unwind32_bytes(&data, 1);
		else if (*letters == 'S')
			cie->is_signal = true;
		else
			return false;
	}
	return !data.is_bad && cie->encoding != ENCODING_OMIT && pointer_bytes(cie->encoding) &&
	       !(cie->encoding & ~(ENCODING_PCREL | 0x0f));
}

#define LETTERS_MAX 8

static bool parse_cie(const struct record *record, struct unwind32_cie *cie)
{
	struct unwind32_cursor body = record->body, data;
	uint8_t letters[LETTERS_MAX + 1] = {0};
	uint32_t version = unwind32_bytes(&body, 1), count = 0, len, reg;

	*cie = (struct unwind32_cie){.offset = record->offset};
	while (count < LETTERS_MAX && (letters[count] = (uint8_t)unwind32_bytes(&body, 1)))
		count++;
	cie->code_align = unwind32_uleb(&body);
	cie->data_align = unwind32_sleb(&body);
	reg = version == 1 ? unwind32_bytes(&body, 1) : unwind32_uleb(&body);
	if ((version != 1 && version != 3) || *letters != 'z' || count == LETTERS_MAX ||
		reg != UNWIND32_REGISTER_RETURN)
		return false;
	len = unwind32_uleb(&body);
	data.at = unwind32_skip(&body, len);
	if (!data.at)
		return false;
	data.end = body.at;
	data.is_bad = false;
	cie->program = body;
	return read_augmentation(cie, letters + 1, data);
}

/* Reads an FDE's CIE, unless *cie is that CIE already. */
static bool read_cie(const struct unwind32_section *section, const struct record *record,
	struct unwind32_cie *cie)
{
	uint32_t id_offset = record->offset + 4, offset = id_offset - record->id;
	struct record of_cie;

	if (record->id > id_offset)
		return false;
	if (cie->program.at && cie->offset == offset)
		return true;
	cie->program.at = NULL;
	return read_record(section, &offset, &of_cie) && of_cie.body.at && !of_cie.id &&
	       parse_cie(&of_cie, cie);
}

static bool parse_fde(const struct unwind32_section *section, const struct record *record,
	struct unwind32_cie *cie, struct unwind32_fde *fde)
{
	struct unwind32_cursor body = record->body;
	uint32_t at = section->addr + (uint32_t)(body.at - section->bytes);

	if (!read_cie(section, record, cie))
		return false;
	fde->begin = unwind32_bytes(&body, UNWIND32_WORD_BYTES);
	if (cie->encoding & ENCODING_PCREL)
		fde->begin += at;
	fde->end = fde->begin + unwind32_bytes(&body, UNWIND32_WORD_BYTES);
	unwind32_skip(&body, unwind32_uleb(&body)); /* augmentation data */
	fde->program = body;
	return !body.is_bad && fde->end > fde->begin;
}

bool unwind32_is_eh_frame(const struct unwind32_section *section)
{
	struct record record;
	struct unwind32_cie cie;
	uint32_t offset = 0;

	return read_record(section, &offset, &record) && record.body.at && !record.id &&
	       parse_cie(&record, &cie);
}

/* Moves a place down in a heap. The top of the heap is the place with the highest address. */
static void sink(struct unwind32_place *places, uint32_t at, uint32_t count)
{
	struct unwind32_place moved = places[at];
	uint32_t child;

	while ((child = 2 * at + 1) < count) {
		if (child + 1 < count && places[child + 1].begin > places[child].begin)
			child++;
		if (places[child].begin <= moved.begin)
			break;
		places[at] = places[child];
		at = child;
	}
	places[at] = moved;
}

static void sort(struct unwind32_place *places, uint32_t count)
{
	for (uint32_t i = count / 2; i--;)
		sink(places, i, count);
	for (uint32_t i = count; i-- > 1;) {
		struct unwind32_place highest = places[0];

		places[0] = places[i];
		places[i] = highest;
		sink(places, 0, i);
	}
}

uint32_t unwind32_list(
	const struct unwind32_section *section, struct unwind32_place *places, uint32_t room)
{
	struct record record;
	struct unwind32_cie cie = {0};
	struct unwind32_fde fde;
	uint32_t offset = 0, count = 0;

	while (count <= room && read_record(section, &offset, &record)) {
		if (!record.id || !parse_fde(section, &record, &cie, &fde) ||
			fde.begin < section->image || fde.end > section->image_end)
			continue;
		if (count < room)
			places[count] =
				(struct unwind32_place){fde.begin - section->image, record.offset};
		count++;
	}
	if (count <= room)
		sort(places, count);
	return count;
}

static bool covers(const struct unwind32_fde *fde, uint32_t addr)
{
	return addr - 1 >= fde->begin && addr - 1 < fde->end;
}

/* Finds the last listed function that begins at or before an address. Returns NULL if all
 * begin after it. */
static const struct unwind32_place *find_place(
	const struct unwind32_place *places, uint32_t count, uint32_t begin)
{
	uint32_t from = 0, to = count;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (places[middle].begin <= begin)
			from = middle + 1;
		else
			to = middle;
	}
	return from ? &places[from - 1] : NULL;
}

bool unwind32_function(const struct unwind32_section *section, const struct unwind32_place *places,
	uint32_t count, uint32_t addr, struct unwind32_cie *cie, struct unwind32_fde *fde)
{
	const struct unwind32_place *place = NULL;
	struct record record;
	uint32_t offset = 0;

	if (places) {
		place = find_place(places, count, addr - 1 - section->image);
		offset = place ? place->offset : section->len;
		if (offset > section->len)
			return false;
	}
	while (offset <= section->len && read_record(section, &offset, &record)) {
		if (record.id && parse_fde(section, &record, cie, fde) && covers(fde, addr))
			return true;
		if (place)
			break;
	}
	return false;
}
