/*
 * Which functions do nothing but hand out memory for whoever calls them.
 *
 * Sources: names without an underscore in front are public interfaces that Microsoft, the C and C++
 * standards or GNU document, as are _strdup, _wcsdup, _recalloc, _aligned_*, _expand, _malloc_dbg
 * and their kin (CRT reference); *_base are exports of ucrtbase; _nh_malloc*, _heap_alloc* and what
 * is like them are in published stacks and in the public symbols of debug CRTs; Rtlp*,
 * RtlDebug*Heap and RtlAllocateHeapSlowly are in
 * published UMDH logs and Microsoft's public symbols of ntdll; AVrf* in those of verifier.dll,
 * CRetailMalloc_* in those of combase, APP_DATA in those of oleaut32; std::_* and __gnu_cxx are in
 * the open sources of Microsoft's and GNU's C++ libraries; _Zn* are C++'s operators in the Itanium
 * ABI, as mingw has them.
 */
#include "diff/ask/strip.h"

const char *const allocators[] = {
	/* NT's heap, and its checkers */
	"ntdll!Rtl*Heap*",
	"ntdll!RtlpAllocate*",
	"ntdll!RtlpHp*",
	"ntdll!RtlpStackTrace*",
	"ntdll!RtlpCallInterceptRoutine*",
	"ntdll!RtlpSetupExtendedBlock*",
	"ntdll!RtlStdLogStackTrace*",
	"ntdll!RtlLogStackBackTrace*",
	"verifier!AVrf*",
	"hsnap-tracer64!*",
	/* Windows' own wrappers */
	"kernel32!Heap*Alloc*",
	"kernel32!Local*Alloc*",
	"kernel32!Global*Alloc*",
	"kernelbase!Heap*Alloc*",
	"kernelbase!Local*Alloc*",
	"kernelbase!Global*Alloc*",
	"combase!CoTaskMem*",
	"combase!CRetailMalloc_*lloc*",
	"ole32!CoTaskMem*",
	"ole32!CRetailMalloc_*lloc*",
	"oleaut32!SysAllocString*",
	"oleaut32!SysReAllocString*",
	"oleaut32!APP_DATA::AllocCachedMem*",
	/* C, in a library or in the program itself */
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
	"*!heap_alloc_dbg*",
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
	/* C++ */
	"*!operator new*",
	"*!std::_Allocate*",
	"*!std::_Default_allocate_traits*",
	"*!std::allocator<*>::allocate",
	"*!std::allocator<*>::allocate(*",
	"*!__gnu_cxx::new_allocator<*>::allocate*",
	"*!std::__new_allocator<*>::allocate*",
	"*!std::allocator_traits<*>::allocate*",
	"*!_Znwy*",
	"*!_Znay*",
	"*!_Znwj*",
	"*!_Znaj*",
	"*!_Znwm*",
	"*!_Znam*",
	NULL,
};
