#include <string.h>

#include "snapshot/live/live_windows.h"

#define SECTION_OF_FILE                                                                            \
	0x01800000u /* SEC_FILE, SEC_IMAGE: one that may lose bytes that are mapped */

void shared_view_release(struct shared_view *view)
{
	if (view->bytes)
		UnmapViewOfFile(view->bytes);
	*view = (struct shared_view){0};
}

static const unsigned char *map(HANDLE section, uint64_t len)
{
	struct nt_section_basic info = {0};

	if (len > SIZE_MAX ||
		NtQuerySection(section, NT_SECTION_BASIC, &info, sizeof(info), NULL) < 0 ||
		info.attributes & SECTION_OF_FILE || (uint64_t)info.bytes.QuadPart < len)
		return NULL;
	return MapViewOfFile(section, FILE_MAP_READ, 0, 0, (SIZE_T)len);
}

void shared_view_set(
	struct shared_view *view, HANDLE process, uint64_t handle, uint64_t addr, uint64_t len)
{
	HANDLE section = NULL;

	if (view->handle == handle && view->addr == addr && view->len == len)
		return;
	shared_view_release(view);
	*view = (struct shared_view){.handle = handle, .addr = addr, .len = len};
	if (!DuplicateHandle(process, (HANDLE)(ULONG_PTR)handle, GetCurrentProcess(), &section,
		    SECTION_MAP_READ | SECTION_QUERY, FALSE, 0))
		return;
	view->bytes = map(section, len);
	CloseHandle(section);
}

static bool is_known(const struct shared_view *view, uint64_t from, uint64_t end)
{
	for (unsigned i = 0; i < SHARED_KNOWN; i++) {
		if (from >= view->known[i].from && end <= view->known[i].end)
			return true;
	}
	return false;
}

/* Whether all of it can be read. The system is asked once: what is committed of such a section stays so, and an
 * answer takes as long as copying a megabyte. */
static bool is_there(struct shared_view *view, uint64_t from, uint64_t end)
{
	MEMORY_BASIC_INFORMATION info;
	uint64_t start;

	if (is_known(view, from, end))
		return true;
	if (VirtualQuery(view->bytes + from, &info, sizeof(info)) != sizeof(info) ||
		info.State != MEM_COMMIT || info.Protect != PAGE_READONLY)
		return false;
	start = (uint64_t)((const unsigned char *)info.BaseAddress - view->bytes);
	view->known[view->next].from = start;
	view->known[view->next].end = start + info.RegionSize;
	view->next = (view->next + 1) % SHARED_KNOWN;
	return from >= start && end <= start + info.RegionSize;
}

bool shared_view_read(struct shared_view *view, uint64_t addr, void *bytes, size_t len)
{
	uint64_t from = addr - view->addr;

	if (!view->bytes || addr < view->addr || from > view->len || len > view->len - from ||
		!is_there(view, from, from + len))
		return false;
	memcpy(bytes, view->bytes + from, len);
	return true;
}
