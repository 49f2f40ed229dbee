/*
 * Functions that only allocate memory for their callers.
 *
 * Sources: names without a leading underscore are public interfaces documented by Microsoft, the C
 * and C++ standards or GNU, as are _strdup, _wcsdup, _recalloc, _aligned_*, _expand, _malloc_dbg
 * and their kin (CRT reference). *_base are exports of ucrtbase. _nh_malloc*, _heap_alloc* and
 * similar names are in published stacks and in the public symbols of debug CRTs. Rtlp*,
 * RtlDebug*Heap and RtlAllocateHeapSlowly are in published UMDH logs and Microsoft's public symbols
 * of ntdll; AVrf* is in the symbols of verifier.dll, CRetailMalloc_* in the symbols of combase,
 * APP_DATA in the symbols of oleaut32. msvcrt_heap_* are in the stacks of 32-bit programs under
 * Wine. Virtual*Alloc*, MapViewOfFile*, and Nt* and Zw* are documented by Microsoft. std::_*,
 * std::__* and __gnu_cxx are in the open sources of Microsoft's, GNU's and LLVM's C++ libraries.
 * _Zn* are C++'s operators in the Itanium ABI, as mingw has them. allocator_*, IMalloc_*,
 * alloc_bstr, heap_alloc and its kin, Alloc, ReAlloc, open_key and create_key are in Wine 8.0's
 * sources. g_* are in GLib's manual. alloc::* are modules of Rust's crate alloc, __rust_* and
 * __rdl_* its allocator's symbols, both in Rust's documentation.
 *
 * Functions of the C++ library are listed if they allocate for the library itself. Functions that
 * call the program back, such as std::sort, std::function and std::thread, are not listed, because
 * the program's function may be inlined into them and have no frame of its own. If the source file
 * is known, the file decides: an inlined function of the program is not in a file of the library.
 */
#include "core/base/text.h"
#include "diff/query/strip.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "diff/query/pattern.h"

/* Built-in layers, each as MODULE!FUNCTION. NULL ends the list. */
static const char *const allocators[] = {
	/* NT's heap and its checkers */
	"ntdll!Rtl*Heap*",
	"ntdll!RtlpAllocate*",
	"ntdll!RtlpHp*",
	"ntdll!RtlpStackTrace*",
	"ntdll!RtlpCallInterceptRoutine*",
	"ntdll!RtlpSetupExtendedBlock*",
	"ntdll!RtlStdLogStackTrace*",
	"ntdll!RtlLogStackBackTrace*",
	/* code that the linker moved away from its function: " ?? ::FNODOBFM::`string'" */
	"ntdll!::*",
	"verifier!AVrf*",
	"hsnap-tracer*!*",
	/* Windows' own wrappers */
	"kernel32!Heap*Alloc*",
	"kernel32!HeapCreate*",
	"kernel32!Local*Alloc*",
	"kernel32!Global*Alloc*",
	"kernelbase!Heap*Alloc*",
	"kernelbase!HeapCreate*",
	"kernelbase!Local*Alloc*",
	"kernelbase!Global*Alloc*",
	/* virtual memory */
	"kernel32!Virtual*Alloc*",
	"kernelbase!Virtual*Alloc*",
	"kernel32!MapViewOfFile*",
	"kernelbase!MapViewOfFile*",
	"ntdll!NtAllocateVirtualMemory*",
	"ntdll!ZwAllocateVirtualMemory*",
	"ntdll!NtMapViewOfSection*",
	"ntdll!ZwMapViewOfSection*",
	/* threads, whose stacks are memory too */
	"kernel32!Create*Thread",
	"kernelbase!Create*Thread",
	"kernelbase!CreateRemoteThreadEx*",
	"ntdll!Rtl*CreateUserThread*",
	"ntdll!NtCreateThread*",
	"ntdll!ZwCreateThread*",
	"combase!CoTaskMem*",
	"combase!CRetailMalloc_*lloc*",
	"combase!allocator_*lloc*",
	"combase!IMalloc_*lloc*",
	"ole32!CoTaskMem*",
	"ole32!CRetailMalloc_*lloc*",
	"ole32!allocator_*lloc*",
	"ole32!IMalloc_*lloc*",
	"oleaut32!SysAllocString*",
	"oleaut32!SysReAllocString*",
	"oleaut32!APP_DATA::AllocCachedMem*",
	"oleaut32!alloc_bstr",
	"oleaut32!SAFEARRAY_*lloc*",
	"*!SHAlloc",
	"*!SHStrDup*",
	"comctl32!Alloc",
	"comctl32!ReAlloc",
	/* functions that open handles */
	"kernel*!CreateEvent*",
	"kernel*!CreateFile*",
	"kernel*!CreateIoCompletionPort*",
	"kernel*!CreateJobObject*",
	"kernel*!CreateMutex*",
	"kernel*!CreateNamedPipe*",
	"kernel*!CreatePipe*",
	"kernel*!CreateProcess*",
	"kernel*!CreateSemaphore*",
	"kernel*!CreateWaitableTimer*",
	"kernel*!DuplicateHandle*",
	"kernel*!DuplicateToken*",
	"kernel*!OpenEvent*",
	"kernel*!OpenFile*",
	"kernel*!OpenMutex*",
	"kernel*!OpenProcess*",
	"kernel*!OpenSemaphore*",
	"kernel*!OpenThread*",
	"kernel*!OpenWaitableTimer*",
	"kernel*!Reg*Key*",
	"kernel*!open_key",
	"kernel*!create_key",
	"advapi32!DuplicateToken*",
	"advapi32!OpenProcessToken*",
	"advapi32!OpenThreadToken*",
	"advapi32!Reg*Key*",
	"ntdll!NtCreate*",
	"ntdll!NtDuplicate*",
	"ntdll!NtOpen*",
	"ntdll!ZwCreate*",
	"ntdll!ZwDuplicate*",
	"ntdll!ZwOpen*",
	/* C library functions, in a library or in the program itself */
	"*!malloc",
	"*!calloc",
	"*!realloc",
	"*!reallocf",
	"*!reallocarray",
	"*!aligned_alloc",
	"*!_malloc_base",
	"*!_calloc_base",
	"*!_realloc_base",
	"*!_recalloc_base",
	"*!_expand_base",
	"*!_malloc_dbg",
	"*!_calloc_dbg",
	"*!_realloc_dbg",
	"*!_recalloc_dbg",
	"*!_expand_dbg",
	"*!_recalloc",
	"*!_expand",
	"*!_malloc_crt",
	"*!_calloc_crt",
	"*!_realloc_crt",
	"*!_recalloc_crt",
	"*!_calloc_impl",
	"*!_nh_malloc*",
	"*!_heap_alloc*",
	"*!msvcrt_heap_alloc",
	"*!msvcrt_heap_realloc",
	"*!heap_alloc",
	"*!heap_alloc_*",
	"*!heap_calloc",
	"*!heap_realloc",
	"*!heap_strdup*",
	"*!realloc_dbg_nolock",
	"*!realloc_help",
	"*!_aligned_*alloc*",
	"*!_aligned_offset_*alloc*",
	"*!strdup",
	"*!_strdup",
	"*!_strdup_dbg",
	"*!strndup",
	"*!wcsdup",
	"*!_wcsdup",
	"*!_wcsdup_dbg",
	"*!_mbsdup",
	"*!_mbsdup_dbg",
	/* GLib */
	"*!g_malloc*",
	"*!g_try_malloc*",
	"*!g_realloc*",
	"*!g_try_realloc*",
	"*!g_slice_alloc*",
	"*!g_slice_copy",
	"*!g_strdup*",
	"*!g_strndup",
	"*!g_memdup*",
	/* threads */
	"*!_beginthread",
	"*!_beginthreadex",
	"*!pthread_create",
	"*!thrd_create",
	/* C++: operators and allocators */
	"*!operator new*",
	"*!*::operator new*",
	"*!_Znwy*",
	"*!_Znay*",
	"*!_Znwj*",
	"*!_Znaj*",
	"*!_Znwm*",
	"*!_Znam*",
	"*!std::_Allocate*",
	"*!std::_Default_allocat*",
	"*!std::allocator<*>::*",
	"*!std::allocator_traits<*>::*",
	"*!std::__new_allocator<*>::*",
	"*!__gnu_cxx::new_allocator<*>::*",
	"*!__gnu_cxx::__alloc_traits<*>::*",
	"*!std::__allocat*",
	"*!std::__libcpp_*allocate*",
	"*!std::__libcpp_operator_new*",
	/* strings, containers and owning pointers, and their parts */
	"*!std::string::*",
	"*!std::wstring::*",
	"*!std::basic_string<*>::*",
	"*!std::operator+*",
	"*!std::to_string*",
	"*!std::to_wstring*",
	"*!std::vector<*>::*",
	"*!std::_Vector_*<*>::*",
	"*!std::__split_buffer<*>::*",
	"*!std::deque<*>::*",
	"*!std::_Deque_*<*>::*",
	"*!std::list<*>::*",
	"*!std::_List_*<*>::*",
	"*!std::__list_imp<*>::*",
	"*!std::forward_list<*>::*",
	"*!std::_Fwd_list_base<*>::*",
	"*!std::map<*>::*",
	"*!std::multimap<*>::*",
	"*!std::set<*>::*",
	"*!std::multiset<*>::*",
	"*!std::_Rb_tree<*>::*",
	"*!std::_Tree*<*>::*",
	"*!std::__tree<*>::*",
	"*!std::unordered_*<*>::*",
	"*!std::_Hash*<*>::*",
	"*!std::__detail::_*<*>::*",
	"*!std::__hash_table<*>::*",
	"*!std::queue<*>::*",
	"*!std::priority_queue<*>::*",
	"*!std::stack<*>::*",
	"*!std::pair<*>::pair*",
	"*!std::make_unique<*",
	"*!std::make_shared<*",
	"*!_ZSt11make_shared*",
	"*!std::allocate_shared<*",
	"*!std::shared_ptr<*>::*",
	"*!std::_Sp_counted_*",
	"*!std::__shared_*<*>::*",
	"*!std::_Ref_count*",
	"*!std::function<*>::function*",
	"*!std::function<*>::operator=*",
	"*!std::any::*",
	"*!std::optional<*>::*",
	"*!std::variant<*>::*",
	"*!std::tuple<*>::*",
	"*!std::promise<*>::*",
	"*!std::thread::thread<*",
	"*!std::thread::_Start<*",
	"*!std::thread::_M_start_thread*",
	"*!std::_Function_base::*",
	"*!std::_Func_class<*>::*",
	"*!std::async<*",
	"*!std::_*_state<*>::*",
	"*!std::_Get_associated_state<*",
	"*!std::__future_base::*",
	"*!std::pmr::*",
	"*!std::_Construct*",
	"*!std::construct_at<*",
	"*!std::uninitialized_*",
	"*!std::__uninitialized_*",
	"*!std::__do_uninit_*",
	"*!std::_Uninitialized_*",
	"*!std::back_insert_iterator<*>::*",
	/* streams, paths, regular expressions and numeric arrays */
	"*!std::basic_*buf<*>::*",
	"*!std::basic_*stream<*>::*",
	"*!std::basic_ios<*>::*",
	"*!std::ios_base::*",
	"*!std::istream::*",
	"*!std::ostream::*",
	"*!std::__ostream_*",
	"*!std::operator<<*",
	"*!std::operator>>*",
	"*!std::getline*",
	"*!std::num_get<*>::*",
	"*!std::num_put<*>::*",
	"*!std::locale::*",
	"*!std::use_facet<*",
	"*!std::_Facet_Register*",
	"*!std::filesystem::*",
	"*!std::basic_regex<*>::*",
	"*!std::regex_traits<*>::*",
	"*!std::valarray<*>::*",
	"*!std::__valarray_*",
	/* MFC, ATL and Qt */
	"*!CPlex::*",
	"mfc*!CMap*::*",
	"*!ATL::CAtlStringMgr::*",
	"*!ATL::CSimpleStringT<*>::*",
	"*!ATL::CStringT<*>::*",
	"qt*core*!QArrayData::*",
	"qt*core*!QString::*",
	"qt*core*!QByteArray::*",
	/* Rust */
	"*!__rust_*",
	"*!__rdl_*",
	"*!__rg_*",
	"*!std::sys::alloc::*",
	"*!std::sys::*::alloc::*",
	"*!std::alloc::*",
	"*!std::collections::*",
	"*!alloc::alloc::*",
	"*!alloc::borrow::*",
	"*!alloc::boxed::*",
	"*!alloc::collections::*",
	"*!alloc::fmt::*",
	"*!alloc::raw_vec::*",
	"*!alloc::rc::*",
	"*!alloc::slice::*",
	"*!alloc::str::*",
	"*!alloc::string::*",
	"*!alloc::sync::*",
	"*!alloc::vec::*",
	"*!<alloc::*",
	"*!hashbrown::*",
	NULL,
};

/* Modules of the system heap, of its checkers and recorders, and of C libraries. C libraries are
 * included because a program that uses a C library's DLL contains its own operator new, which calls
 * the DLL. */
static const char *const heap_modules[] = {
	"ntdll",
	"kernelbase",
	"kernel32",
	"verifier",
	"vfbasics",
	"vrfcore",
	"hsnap-tracer*",
	"ucrtbase*",
	"msvcr*",
	"vcruntime*",
	NULL,
};

/* Modules that allocate for others. Their frames without a name are also layers. */
static const char *const allocator_modules[] = {
	"msvcp*",
	"libstdc++*",
	"libc++*",
	"combase",
	"ole32",
	"oleaut32",
	NULL,
};

/* Source folders of the C++ libraries of GNU, LLVM and Microsoft. */
static const char *const library_folders[] = {
	"*/include/c++/*",
	"*/libstdc++-v3/*",
	"*/libcxx/*",
	"*/libcxxabi/*",
	"*/vc/include/*",
	"*/vc/tools/msvc/*/include/*",
	"*/vctools/crt/*",
	"*/stl/inc/*",
	NULL,
};

struct strip_glob {
	const char *module, *function;
	bool is_of_user; /* from a file; matches any spelling of a name */
};

void strip_init(struct strip *strip)
{
	*strip = (struct strip){0};
	arena_init(&strip->arena);
	table_init(&strip->known);
	buf_init(&strip->name);
}

void strip_release(struct strip *strip)
{
	free(strip->globs);
	arena_release(&strip->arena);
	table_release(&strip->known);
	buf_release(&strip->name);
	strip_init(strip);
}

/* Adds MODULE!FUNCTION. Returns false if `text` does not have that form. */
static bool strip_add(struct strip *strip, const char *text)
{
	size_t len = strcspn(text, "!");

	if (!len || !text[len] || !text[len + 1])
		return false;
	array_grow((void **)&strip->globs, &strip->cap, strip->count, sizeof(*strip->globs));
	strip->globs[strip->count++] = (struct strip_glob){
		.module = arena_text(&strip->arena, text, len),
		.function = arena_text(&strip->arena, text + len + 1, strlen(text + len + 1))};
	return true;
}

static const char *const starting[] = {
	"*!mainCRTStartup",
	"*!wmainCRTStartup",
	"*!WinMainCRTStartup",
	"*!wWinMainCRTStartup",
	"*!__tmainCRTStartup",
	"*!__scrt_common_main*",
	"*!invoke_main",
	"*!_threadstart*",
	"*!_callthreadstart*",
	"ucrtbase!thread_start*",
	"kernel32!BaseThreadInitThunk",
	"kernel32!BaseProcessStart*",
	"ntdll!RtlUserThreadStart*",
	"ntdll!_RtlUserThreadStart*",
	"ntdll!__RtlUserThreadStart*",
	NULL,
};

void strip_add_known(struct strip *strip)
{
	for (const char *const *at = allocators; *at; at++)
		strip_add(strip, *at);
	strip->is_known = true;
}

void strip_add_start_up(struct strip *strip)
{
	for (const char *const *at = starting; *at; at++)
		strip_add(strip, *at);
}

static int add_line(void *ctx, const char *text, const char *place, struct err *err)
{
	struct strip *strip = ctx;
	char *line = arena_text(&strip->arena, text, strlen(text));

	pattern_drop_extensions(line);
	if (!strip_add(strip, line))
		return err_set(
			err, ERR_USAGE, place, "expected a line of the form MODULE!FUNCTION");
	strip->globs[strip->count - 1].is_of_user = true;
	return 0;
}

int strip_add_file(struct strip *strip, const char *path, struct err *err)
{
	return pattern_list_read(path, add_line, strip, err);
}

static bool matches_spelling(const struct strip_glob *glob, const struct frame *frame)
{
	return text_glob(glob->module, frame->module ? frame->module : "", GLOB_FOLD) &&
	       text_glob(glob->function, frame->function ? frame->function : "", 0);
}

static bool is_listed(const struct strip *strip, const struct frame *frame)
{
	struct frame own = *frame, spelt;

	/* A template function's name begins with its return type, which may be a type of the
	 * library. */
	if (frame->function)
		own.function = function_own(frame->function);
	for (size_t i = 0; i < strip->count; i++) {
		const struct strip_glob *glob = &strip->globs[i];

		if (matches_spelling(glob, &own))
			return true;
		for (size_t k = 0; glob->is_of_user && k < FRAME_SPELLINGS; k++) {
			if (frame_spelling(frame, k, &spelt) && matches_spelling(glob, &spelt))
				return true;
		}
	}
	return false;
}

static bool is_in(const char *const *globs, const char *text)
{
	while (*globs && !text_glob(*globs, text, GLOB_FOLD))
		globs++;
	return *globs;
}

/* Returns true if the source file belongs to the C++ library. Microsoft's library may be in folders
 * of any name. Therefore, a header without an extension that is directly in a folder "include" also
 * counts as the library's. */
static bool is_in_library(const struct frame *frame)
{
	struct buf path;
	char *base, *folder;
	bool is;

	buf_init(&path);
	buf_printf(&path, "/%s", frame->file);
	for (char *at = path.data; *at; at++)
		*at = *at == '\\' ? '/' : *at;
	is = is_in(library_folders, path.data);
	base = strrchr(path.data, '/');
	*base++ = '\0';
	folder = strrchr(path.data, '/');
	is |= folder && text_glob("/include", folder, GLOB_FOLD) && !strchr(base, '.');
	buf_release(&path);
	return is;
}

enum strip_by { BY_NAME, BY_MODULE, BY_FILE };

static bool is_layer(const struct strip *strip, const struct frame *frame, enum strip_by by)
{
	if (by == BY_FILE)
		return is_in_library(frame);
	return is_listed(strip, frame) || (by == BY_MODULE && strip->is_known && frame->module &&
						  (is_in(heap_modules, frame->module) ||
							  is_in(allocator_modules, frame->module)));
}

/* Returns the result of is_layer(). Caches results, because most frames have the name, module and
 * file of another frame. */
static bool ask(struct strip *strip, const struct frame *frame, enum strip_by by)
{
	const uint64_t *known;
	struct frame spelt;
	bool is;

	if (by == BY_NAME) {
		spelt = *frame;
		frame_spelling(frame, 1, &spelt); /* implies the spelling that is shown */
		frame_name(&spelt, &strip->name);
	} else {
		buf_clear(&strip->name);
		buf_printf(&strip->name, "%c%s", by == BY_FILE ? '\n' : '\t',
			by == BY_FILE ? frame->file :
			frame->module ? frame->module :
					"");
	}
	known = table_find(&strip->known, strip->name.data, strip->name.len);
	if (known)
		return *known;
	is = is_layer(strip, frame, by);
	table_add(&strip->known, strip->name.data, strip->name.len, is);
	return is;
}

bool strip_is_heap(const struct frame *frame)
{
	return frame->module && is_in(heap_modules, frame->module);
}

void strip_add_nameless(struct strip *strip, const char *name)
{
	if (!table_find(&strip->known, name, strlen(name)))
		table_add(&strip->known, name, strlen(name), true);
	strip->has_nameless = true;
}

bool strip_is_nameless(struct strip *strip, const struct frame *frame)
{
	if (!strip->has_nameless || !frame->module || frame->function)
		return false;
	frame_name(frame, &strip->name);
	return table_find(&strip->known, strip->name.data, strip->name.len);
}

bool strip_matches(struct strip *strip, const struct frame *frame)
{
	if (!frame->function)
		return ask(strip, frame, BY_MODULE) || strip_is_nameless(strip, frame);
	return ask(strip, frame, BY_NAME) ||
	       (strip->is_known && frame->file && ask(strip, frame, BY_FILE));
}

void strip_frames(struct strip *strip, struct frames *frames)
{
	size_t left = 0, at = 0;

	for (size_t part = 0; part <= frames->part_count; part++) {
		size_t to = part < frames->part_count ? frames->part_at[part] : frames->count;

		while (at + 1 < to && strip_matches(strip, &frames->items[at]))
			at++;
		if (part)
			frames->part_at[part - 1] = left;
		while (at < to)
			frames->items[left++] = frames->items[at++];
	}
	frames->count = left;
}

void strip_start_up(struct strip *strip, struct frames *frames, bool is_inverted)
{
	size_t first = 0;

	if (frames->part_count || !frames->count)
		return;
	while (!is_inverted && frames->count > 1 &&
		strip_matches(strip, &frames->items[frames->count - 1]))
		frames->count--;
	while (is_inverted && first + 1 < frames->count &&
		strip_matches(strip, &frames->items[first]))
		first++;
	frames->count -= first;
	memmove(frames->items, frames->items + first, frames->count * sizeof(*frames->items));
}

const struct frame *strip_caller(
	struct strip *strip, struct strip *start_up, const struct frames *frames)
{
	size_t count = frames->part_count ? frames->part_at[0] : frames->count;

	for (size_t i = 1; i < count && !frames->items[0].function; i++) {
		const struct frame *frame = &frames->items[i];

		if (frame->function && !strip_matches(strip, frame) &&
			!strip_matches(start_up, frame))
			return frame;
	}
	return NULL;
}
