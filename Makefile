# hsnap, hdiff and hsym. 'make help' lists the targets.
#
#   build/linux   hdiff, hsym and hsnap for this machine
#   build/asan    unit tests, with the address sanitizer
#   build/tsan    hdiff and hsnap with the thread sanitizer
#   build/fuzz    the same code for clang's fuzzer
#   build/win64   everything for Windows, made with mingw
#   build/win32   hsnap and its tracer for 32-bit programs
#   build/deps    libraries for Windows, made from the sources that setup/pins lists
#   build/wine    a Wine prefix of our own, to run build/win64 in
#
# V=1 shows the commands. CI=true turns warnings into errors. SETUP=no installs no tools and builds
# no libraries: DEPS is then the folder of the libraries for Windows.

VERSION := 0.1.0

# Future address of releases, not known yet; the manifests of winget and scoop contain it.
RELEASES := https://example.invalid/hsnap/releases

# As many jobs as processors, unless -j is given.
MAKEFLAGS += -j$(shell nproc)

# Sources, in the order of the data flow. A file *_posix.c is only for Linux, a file *_windows.c
# only for Windows. A file *_x64.c or *_x64_windows.c is only for 64-bit programs, *_x86 likewise
# for 32-bit ones.
CORE := $(wildcard core/*/*.c)
TRACER := $(wildcard snapshot/tracer/*.c)
SNAPSHOT := $(filter-out $(TRACER),$(wildcard snapshot/*.c snapshot/*/*.c snapshot/*/*/*.c))
IMAGES := $(wildcard tests/images/*.c)
WALK := $(wildcard tests/walk/*.c)
RECORD := $(wildcard tests/record/*.c)
SYMBOLIZE := $(wildcard symbolize/*.c symbolize/*/*.c)
# Page, style and script of hdiff -o html, as strings.
PAGE := build/page/page_pieces.c
DIFF := $(wildcard diff/*.c diff/*/*.c) $(PAGE)
MAINS := snapshot/hsnap.c diff/hdiff.c symbolize/hsym/hsym.c
# The part of the tracer that also runs outside a target, in tests.
TRACER_TABLES := $(filter %/blocktable.c %/stacktable.c %/tables_memory.c %/sample.c %/unloads.c %/ranges.c %/rings.c %/threadwords.c %/unwind_call.c %/unwind_fast_x64.c %/unwind_fast_x86.c %/unwind_records_x86.c %/unwind_rules_x86.c %/unwind_runs_x64.c,$(TRACER))
# The unwinder, also linked into its tests.
UNWINDER := $(wildcard snapshot/tracer/unwind*_x64.c)
# The hooks for virtual memory, also linked into tests.
VIRTUAL := snapshot/tracer/hooks_virtual.c

SAMPLES := $(wildcard samples/*.c samples/*.cpp)
UNIT_TESTS := $(wildcard tests/unit/test_*.c)
# Tests of code that depends on how it is compiled: also built without the sanitizers.
UNIT_PLAIN := $(foreach of,entry tracer unwind ranges,$(wildcard tests/unit/test_$(of)_*.c))
WIN_TESTS := $(wildcard tests/win/test_*.c)
# Programs that scripts run to test one part alone.
WIN_ASKS := $(wildcard tests/win/ask_*.c)
# Programs that tests run under hsnap; frames.c is for FRAMES32.
WIN_TARGETS := $(filter-out tests/targets/frames.c,$(wildcard tests/targets/*.c tests/targets/*.cpp))
# One program per reader, for clang's fuzzer and, with feed.c, for make check.
FUZZ_TARGETS := $(wildcard tests/fuzz/fuzz_*.c)
# DLLs loaded by the targets.
WIN_PLUGS := $(wildcard tests/plugs/*.c)
# Programs whose names are looked up, and the ways to build them.
NAMED := names_c.exe names_cpp.exe names_dll.dll
NAMED_KINDS := dwarf4 dwarf5 pdb_gnu pdb_msvc stripped lld
NAMED_PROGRAMS := $(foreach kind,$(NAMED_KINDS),$(NAMED:%=build/win64/symbols/$(kind)/%)) \
	build/win64/symbols/pdb_other/names_c.exe
# Programs with very many names.
MANY_NAMES := build/win64/bench/dwarf5/names_many.exe build/win64/bench/pdb_gnu/names_many.exe

# ---------------------------------------------------------------- compilers

CC := gcc
CXX := g++
AR := ar
MINGW := x86_64-w64-mingw32-
MINGW32 := i686-w64-mingw32-
# Compiler and linker that write PDBs, unlike gcc's. Expanded at use, after they were installed.
LLVM = $(shell setup/llvm)
CLANG = clang$(LLVM)
LLD = lld$(LLVM)
DEPS := build/deps/win64
DEPS32 := build/deps/win32

WARN := -Wall -Wextra -Wshadow -Wvla -Wpointer-arith -Wwrite-strings \
	-Wstrict-prototypes -Wmissing-prototypes
ifeq ($(CI),true)
WARN += -Werror
endif

CFLAGS := -O2 -g
CPPFLAGS :=
OURS = -std=c11 -I. -DHSNAP_VERSION='"$(VERSION)"' $(WARN) -MMD -MP

linux_FLAGS = $(OURS) -D_XOPEN_SOURCE=700 $(CPPFLAGS) $(CFLAGS)
asan_FLAGS = $(linux_FLAGS) $(asan_SPEED) -fno-omit-frame-pointer \
	-fsanitize=address,undefined -fno-sanitize-recover=all
asan_SPEED = -O1
tsan_FLAGS = $(linux_FLAGS) -O1 -fsanitize=thread
# Instrumented for clang's fuzzer.
fuzz_FLAGS = $(linux_FLAGS) -O1 -fno-omit-frame-pointer \
	-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
# count_avx2.c's pragma is for gcc.
build/fuzz/obj/diff/read/count_avx2.o: fuzz_FLAGS += -mavx2 -mbmi -mbmi2 -Wno-unknown-pragmas
# Unit tests themselves compile in a third of the time without optimization.
build/asan/obj/tests/unit/%.o: asan_SPEED = -O0
# Must equal the switches in setup/zydis.
zydis_FLAGS = -DZYDIS_STATIC_BUILD -DZYCORE_STATIC_BUILD -DZYAN_NO_LIBC \
	-DZYDIS_DISABLE_FORMATTER -DZYDIS_DISABLE_ENCODER -DZYDIS_DISABLE_SEGMENT
# DWARF 4 because Wine's DbgHelp reads no later version. min-pagesize because gcc 12 otherwise
# reports a read at gs:[offset] as out of bounds.
windows_FLAGS = $(OURS) --param=min-pagesize=0 -isystem $(DEPS)/include -D_WIN32_WINNT=0x0601 -DUNICODE -D_UNICODE \
	-D__USE_MINGW_ANSI_STDIO=1 -DPCRE2_STATIC $(zydis_FLAGS) $(CPPFLAGS)
win64_FLAGS = $(windows_FLAGS) $(CFLAGS) -gdwarf-4
# Samples and tests are read by their stacks: every call must leave a frame. Wine's DbgHelp keeps
# the first of two lines at one address; without statement frontiers there are no such pairs.
sample_FLAGS = $(windows_FLAGS) -Isnapshot -O1 -gdwarf-4 -gno-statement-frontiers -fno-optimize-sibling-calls
# 32-bit frames are found through EBP.
sample32_FLAGS = $(sample_FLAGS) -fno-omit-frame-pointer
cpp_of = $(filter-out -std=% %-prototypes,$(1)) -std=c++17 -fno-rtti
# The tracer runs in a foreign process: no C library, no start-up code.
tracer_FLAGS = $(windows_FLAGS) -O2 -gdwarf-4 -ffreestanding -fno-stack-protector
# Target addresses have 64 bits in every build; those of a 32-bit target fit into a pointer.
win32_FLAGS = $(win64_FLAGS) -Wno-int-to-pointer-cast
# Windows aligns the stack to 4 bytes, and frames are found through EBP.
tracer32_FLAGS = $(tracer_FLAGS) -Wno-int-to-pointer-cast -mpreferred-stack-boundary=2 -fno-omit-frame-pointer

# gcc's C++ library, for its demangler; static because loading a C++ runtime would slow down every
# start.
DEMANGLER := -l:libsupc++.a
linux_hdiff_LIBS := -lpcre2-8 -lz -lzstd $(DEMANGLER)
linux_hsym_LIBS := -lz $(DEMANGLER)
linux_hsnap_LIBS := -lz -lzstd
win64_hdiff_LIBS := -lpcre2-8 -lz -lzstd $(DEMANGLER)
win64_hsym_LIBS := -lz $(DEMANGLER)
win64_hsnap_LIBS := -lz -lzstd -lzydis -lntdll
win64_LDFLAGS := -static -static-libgcc -L$(DEPS)/lib
win32_LDFLAGS := -static -static-libgcc -L$(DEPS32)/lib -Wl,--large-address-aware

# Reproducible builds: no time stamps.
REPRODUCIBLE := -Wl,--no-insert-timestamp

# ---------------------------------------------------------------- programs and their parts

linux_of = $(filter-out %_windows.c,$(1))
win64_of = $(filter-out %_posix.c %_x86.c %_x86_windows.c,$(1))
win32_of = $(filter-out %_posix.c %_x64.c %_x64_windows.c,$(1))
LIBRARY := $(filter-out $(MAINS),$(CORE) $(SYMBOLIZE) $(DIFF) $(SNAPSHOT)) $(TRACER_TABLES)

linux_objects = $(patsubst %.c,build/linux/obj/%.o,$(linux_of))
asan_objects = $(patsubst %.c,build/asan/obj/%.o,$(linux_of))
fuzz_objects = $(patsubst %.c,build/fuzz/obj/%.o,$(linux_of))
win64_objects = $(patsubst %.c,build/win64/obj/%.o,$(win64_of))
win32_objects = $(patsubst %.c,build/win32/obj/%.o,$(win32_of))

linux_hdiff := $(call linux_objects,$(CORE) $(filter-out $(MAINS),$(SYMBOLIZE)) $(DIFF))
linux_hsym := $(call linux_objects,$(filter-out core/record/% core/etw/%,$(CORE)) $(SYMBOLIZE))
win64_hdiff := $(call win64_objects,$(CORE) $(filter-out $(MAINS),$(SYMBOLIZE)) $(DIFF))
win64_hsym := $(call win64_objects,$(filter-out core/record/% core/etw/%,$(CORE)) $(SYMBOLIZE))
# The control of a tracer is only for Windows.
linux_hsnap := $(call linux_objects,$(CORE) $(filter-out snapshot/control/%,$(SNAPSHOT)))
win64_hsnap := $(call win64_objects,$(CORE) $(SNAPSHOT))
win64_tracer := $(patsubst snapshot/tracer/%.c,build/win64/tracer/%.o,$(call win64_of,$(TRACER)))
win32_hsnap := $(call win32_objects,$(CORE) $(SNAPSHOT))
win32_tracer := $(patsubst snapshot/tracer/%.c,build/win32/tracer/%.o,$(call win32_of,$(TRACER)))

LINUX_PROGRAMS := $(if $(wildcard diff/hdiff.c),build/linux/hdiff) \
	$(if $(wildcard symbolize/hsym/hsym.c),build/linux/hsym) \
	$(if $(wildcard snapshot/hsnap.c),build/linux/hsnap)
WIN64_PROGRAMS := $(if $(wildcard snapshot/hsnap.c),build/win64/hsnap.exe) \
	$(if $(TRACER),build/win64/hsnap-tracer64.dll build/win64/hsnap32.exe build/win64/hsnap-tracer32.dll) \
	$(if $(wildcard diff/hdiff.c),build/win64/hdiff.exe) \
	$(if $(wildcard symbolize/hsym/hsym.c),build/win64/hsym.exe)
WIN32_PROGRAMS := build/win32/hsnap.exe build/win32/hsnap-tracer32.dll
# Tests that mark their recording. GoogleTest is a package with sources, which may be missing.
GTEST := /usr/src/googletest/googletest
MARKED_PROGRAMS := build/win64/samples/marks/plain_marks.exe \
	$(if $(wildcard $(GTEST)/src/gtest-all.cc),build/win64/samples/marks/gtest_marks.exe)
SAMPLE_PROGRAMS := $(patsubst samples/%,build/win64/samples/%.exe,$(basename $(SAMPLES)))
# One 32-bit program, built with each kind of frames.
FRAMES32 := $(foreach kind,o0 fp fpo bare,build/win32/targets/frames_$(kind).exe)
# Programs that prove.cmd tests with.
PROVE_PROGRAMS := build/win64/targets/stepper.exe \
	$(foreach sample,leak_steady leak_heaps memory_test,build/win64/samples/$(sample).exe build/win32/samples/$(sample).exe)
# Targets and samples of tests/live, for 64 and 32 bits.
LIVE_NAMES := $(foreach name,bypass chains chains_fpo collections crash destroyed dumper every_block exit_locked grows handles holds kinds lost marks no_slots overrun own_stack parent sparse thread_stacks unload,targets/$(name).exe) \
	targets/plug.dll \
	$(foreach name,leak_heaps leak_realloc leak_steady leak_threads memory_test,samples/$(name).exe)
LIVE_PROGRAMS := $(foreach bits,64 32,$(LIVE_NAMES:%=build/win$(bits)/%))
# Programs of tests on Windows, except NAMED_PROGRAMS, which need clang.
WIN_TEST_PROGRAMS := build/win64/images/make_image.exe \
	$(WALK:tests/%.c=build/win64/%.exe) \
	$(RECORD:tests/%.c=build/win64/%.exe) \
	$(foreach name,gen_dump gen_etl maps,build/win64/bench/$(name).exe) \
	$(WIN_TESTS:tests/win/%.c=build/win64/tests/%.exe) \
	$(WIN_ASKS:tests/win/%.c=build/win64/tests/%.exe) \
	$(patsubst tests/targets/%,build/win64/targets/%.exe,$(basename $(WIN_TARGETS))) \
	$(LIVE_PROGRAMS) \
	$(WIN_PLUGS:tests/plugs/%.c=build/win64/targets/%.dll)
# Includes hsnap with the sanitizers, for tests with damaged files.
TEST_PROGRAMS := $(if $(wildcard snapshot/hsnap.c),build/asan/hsnap) build/tsan/hdiff build/tsan/hsnap \
	$(if $(IMAGES),build/linux/images/make_image) \
	$(WALK:tests/%.c=build/linux/%) \
	$(RECORD:tests/%.c=build/linux/%) \
	$(UNIT_PLAIN:tests/unit/%.c=build/linux/tests/%) \
	$(UNIT_TESTS:tests/unit/%.c=build/asan/tests/%) \
	$(FUZZ_TARGETS:tests/fuzz/%.c=build/asan/fuzz/%) build/fuzz/images/made \
	$(WIN_TEST_PROGRAMS) \
	$(FRAMES32) build/win64/fail/hsnap.exe build/linux/fail/fail_posix.so \
	build/linux/bench/maps \
	$(NAMED_PROGRAMS) $(MARKED_PROGRAMS)

BENCH_PROGRAMS := build/linux/bench/gen_dump build/linux/bench/gen_recording build/linux/bench/gen_etl build/linux/bench/time_reach build/linux/images/make_image build/win64/bench/pairs.exe build/win64/bench/mixed.exe build/win64/targets/gaps.exe \
	build/win64/bench/stacks.exe build/win32/bench/stacks.exe \
	build/linux/bench/maps build/win64/bench/maps.exe \
	build/win64/bench/system/hsnap.exe build/win64/bench/system/hsnap-tracer64.dll $(MANY_NAMES)

# ---------------------------------------------------------------- targets

ifndef V
.SILENT:
endif
.DELETE_ON_ERROR:
.SECONDARY:
.SUFFIXES:
FOLDERS := core snapshot symbolize diff
.PHONY: $(FOLDERS:%=check-%) all linux win64 win32 samples tests win-tests packages deps deps32 prefix demo check check-data fuzz fuzz-packages check-fuzz check-viewers check-packages picture bench soak install uninstall dist deb lint lint-quick clean help live check-platforms check-clean

all: linux win64 ## both sides (the default)
linux: $(LINUX_PROGRAMS) ## hdiff, hsym and hsnap for this machine
win64: $(WIN64_PROGRAMS) ## everything for Windows
win32: $(WIN32_PROGRAMS) ## hsnap and its tracer for 32-bit programs
samples: $(SAMPLE_PROGRAMS) ## leaky programs to practise on
tests: $(TEST_PROGRAMS)
win-tests: $(WIN_TEST_PROGRAMS)

demo: all samples prefix ## find a leak, from start to end
	samples/demo

check: all win32 samples $(PROVE_PROGRAMS) tests prefix $(addprefix build/linux/bench/gen_,dump etl recording) ## build everything and run every test
	echo "== running tests"
	tests/run

check-data: all samples tests prefix ## the tests that need data of other projects: the folder HSNAP_TEST_DATA (../shared/data)
	HSNAP_TEST_DATA="$${HSNAP_TEST_DATA:-../shared/data}" tests/run $$(tests/run --list data)

live: all win32 prefix $(LIVE_PROGRAMS) ## what tests/live needs, for 64 and 32 bits

check-platforms: ## as root: Debian 12 and 13 in build/platforms, the demo and tests/live in each Wine and bitness
	setup/packages platforms
	tests/platforms

fuzz: $(FUZZ_TARGETS:tests/fuzz/%.c=build/fuzz/%) build/fuzz/images/made ## programs for clang's fuzzer, in build/fuzz

check-fuzz: fuzz ## run each of them for FUZZ_SECONDS (60)
	tests/fuzz/run-fuzz

check-viewers: all ## install what opens reports (browsers, Go, databases), and test with it
	setup/packages viewers
	setup/step viewers "getting DuckDB, speedscope and ajv" setup/viewers
	HSNAP_VIEWERS=required tests/run tests/viewers/*.t

check-packages: ## install what makes a Debian package, make one twice, and test it
	setup/packages deb
	HSNAP_PACKAGES=required tests/run tests/packages/*.t

fuzz-packages:
	setup/packages fuzz

picture: all samples prefix ## docs/report*.png, the pages of hdiff -o html in a browser
	setup/packages viewers
	setup/picture

check-core: ## the quick tests of one folder; also check-snapshot, check-symbolize, check-diff
bench: all samples prefix $(BENCH_PROGRAMS) ## what it costs, as ratios
	setup/packages bench
	tests/bench/bench

check-clean: win64 linux prefix ## both gates of docs/ci.md, 20 times on each of eight programs that lose nothing
	HSNAP_CLEAN_ROUNDS=20 tests/e2e_clean.t

soak: win64 linux prefix build/win64/targets/busy.exe build/win64/targets/peek.exe ## an hour of snapshots, attach and detach, at programs that never rest
	tests/soak

install: all ## put hdiff, hsym and hsnap, their manuals and completion under PREFIX (/usr/local)
	DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' WINDOWS=yes setup/install install

uninstall: ## take them away again
	DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' WINDOWS=yes setup/install uninstall

dist: win64 win32 $(PROVE_PROGRAMS) ## a tarball, a zip for Windows and manifests for it, in build/dist
	setup/dist $(VERSION) $(RELEASES)

deb: ## a Debian package of the last commit, in build/deb
	setup/packages deb
	setup/deb $(VERSION)

deps: $(DEPS)/lib/libpcre2-8.a $(DEPS)/lib/libzydis.a $(DEPS)/lib/libzstd.a $(DEPS)/include/uthash.h ## libraries for Windows
deps32: deps $(DEPS32)/lib/libzydis.a $(DEPS32)/lib/libzstd.a ## and for its 32-bit programs
prefix: build/wine/system.reg ## the Wine prefix

clean: ## remove build/
	rm -rf build

help: ## this list
	sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1	\2/p' Makefile

# ---------------------------------------------------------------- set-up
# Order-only prerequisites: a step that ran makes nothing out of date.

ifeq ($(SETUP),no)
packages:
else
packages:
	setup/packages

$(DEPS)/lib/libpcre2-8.a: setup/pcre2 setup/pins | packages
	setup/step pcre2 "building PCRE2 for Windows" setup/pcre2

$(DEPS)/lib/libzydis.a: setup/zydis setup/pins | packages
	setup/step zydis "building Zydis for Windows" setup/zydis

$(DEPS)/lib/libzstd.a: setup/zstd setup/pins | packages
	setup/step zstd "building zstd for Windows" setup/zstd

$(DEPS)/include/uthash.h: | packages
	mkdir -p $(@D)
	cp /usr/include/uthash.h $@

# After the win64 builds, because they unpack the same sources.
$(DEPS32)/lib/libzydis.a: setup/zydis setup/pins | packages $(DEPS)/lib/libzydis.a
	setup/step zydis32 "building Zydis for 32-bit Windows" setup/zydis win32

$(DEPS32)/lib/libzstd.a: setup/zstd setup/pins | packages $(DEPS)/lib/libzstd.a
	setup/step zstd32 "building zstd for 32-bit Windows" setup/zstd win32

build/wine/system.reg: setup/prefix | packages
	setup/step prefix "creating a Wine prefix" setup/prefix
endif

# ---------------------------------------------------------------- building

build/linux/obj/%.o: %.c Makefile | packages
	mkdir -p $(@D)
	$(CC) $(linux_FLAGS) -c $< -o $@

build/asan/obj/%.o: %.c Makefile | packages
	mkdir -p $(@D)
	$(CC) $(asan_FLAGS) -c $< -o $@

build/tsan/obj/%.o: %.c Makefile | packages
	mkdir -p $(@D)
	$(CC) $(tsan_FLAGS) -c $< -o $@

build/fuzz/obj/%.o: %.c Makefile | packages fuzz-packages
	mkdir -p $(@D)
	$(CLANG) $(fuzz_FLAGS) -c $< -o $@

build/win64/obj/%.o: %.c Makefile setup/pins | deps
	mkdir -p $(@D)
	$(MINGW)gcc $(win64_FLAGS) -c $< -o $@

build/win64/tracer/%.o: snapshot/tracer/%.c Makefile setup/pins | deps
	mkdir -p $(@D)
	$(MINGW)gcc $(tracer_FLAGS) -c $< -o $@

build/win32/obj/%.o: %.c Makefile setup/pins | deps32
	mkdir -p $(@D)
	$(MINGW32)gcc $(win32_FLAGS) -c $< -o $@

build/win32/tracer/%.o: snapshot/tracer/%.c Makefile setup/pins | deps32
	mkdir -p $(@D)
	$(MINGW32)gcc $(tracer32_FLAGS) -c $< -o $@

$(PAGE): setup/page $(wildcard diff/report/html/*)
	mkdir -p $(@D)
	setup/page $@

.SECONDEXPANSION:

build/linux/hdiff build/linux/hsym build/linux/hsnap: build/linux/%: $$(linux_$$*)
	echo "== $@"
	$(CC) $(CFLAGS) $(LDFLAGS) $^ $(linux_$*_LIBS) -o $@

build/asan/hsnap: $$(patsubst build/linux/%,build/asan/%,$$(linux_hsnap))
	echo "== $@"
	$(CC) -fsanitize=address,undefined $^ $(linux_hsnap_LIBS) -o $@

build/tsan/hdiff: $$(subst build/linux/,build/tsan/,$$(linux_hdiff))
build/tsan/hsnap: $$(subst build/linux/,build/tsan/,$$(linux_hsnap))
build/tsan/hdiff build/tsan/hsnap:
	echo "== $@"
	$(CC) -fsanitize=thread $^ $(linux_$(@F)_LIBS) -o $@

# Makes one of hsnap's calls fail, for tests/fail-every.
build/linux/fail/fail_posix.so: tests/fail/fail_posix.c Makefile | packages
	mkdir -p $(@D)
	echo "== $@"
	$(CC) $(linux_FLAGS) -fPIC -shared $< -o $@

# Minidumps of synthetic processes, and the truth about them.
build/linux/images/make_image: $(IMAGES:%.c=build/linux/obj/%.o)
	mkdir -p $(@D)
	echo "== $@"
	$(CC) $(CFLAGS) $^ -o $@

# Version resource of a file: FILE.version.o for FILE.
comma := ,
build/%.version.o: setup/version.rc Makefile | packages
	mkdir -p $(@D)
	$(if $(filter win32/%,$*),$(MINGW32),$(MINGW))windres -DFILE=$(notdir $*) -DTYPE=VFT_$(if $(filter %.dll,$*),DLL,APP) \
		-DVERSION=$(VERSION) -DNUMBERS=$(subst .,$(comma),$(VERSION)),0 $< $@

build/win64/hsnap.exe build/win64/hdiff.exe build/win64/hsym.exe: build/win64/%.exe: $$(win64_$$*) build/win64/%.exe.version.o
	echo "== $@"
	$(MINGW)gcc $(REPRODUCIBLE) $^ $(win64_LDFLAGS) $(win64_$*_LIBS) -o $@

# hsnap with one failing call, for tests/fail-every.
build/win64/fail/hsnap.exe: $(win64_hsnap) build/win64/obj/tests/fail/fail_windows.o build/win64/fail/hsnap-tracer64.dll
	mkdir -p $(@D)
	echo "== $@"
	$(MINGW)gcc $(filter %.o,$^) $(win64_LDFLAGS) $(win64_hsnap_LIBS) -o $@

build/win64/fail/hsnap-tracer64.dll: build/win64/hsnap-tracer64.dll
	mkdir -p $(@D)
	cp $< $@

build/win64/hsnap-tracer64.dll: $(win64_tracer) build/win64/hsnap-tracer64.dll.version.o
	echo "== $@"
	$(MINGW)gcc $(REPRODUCIBLE) -shared -nostdlib -Wl,-e,DllMain $^ -lkernel32 -lntdll -o $@

# The tracer with the system's unwinder, and an hsnap beside it, for comparison.
system_tracer := $(filter-out build/win64/tracer/unwind%,$(win64_tracer)) build/win64/bench/unwind_system_windows.o

build/win64/bench/%.o: tests/bench/%.c Makefile | deps
	mkdir -p $(@D)
	$(MINGW)gcc $(tracer_FLAGS) -c $< -o $@

build/win64/bench/system/hsnap-tracer64.dll: $(system_tracer)
	mkdir -p $(@D)
	echo "== $@"
	$(MINGW)gcc -shared -nostdlib -Wl,-e,DllMain $^ -lkernel32 -lntdll -o $@

build/win64/bench/system/hsnap.exe: build/win64/hsnap.exe
	mkdir -p $(@D)
	cp $< $@

build/win32/hsnap.exe: $(win32_hsnap) build/win32/hsnap.exe.version.o
	echo "== $@"
	$(MINGW32)gcc $(REPRODUCIBLE) $^ $(win32_LDFLAGS) $(win64_hsnap_LIBS) -o $@

build/win32/hsnap-tracer32.dll: $(win32_tracer) build/win32/hsnap-tracer32.dll.version.o
	echo "== $@"
	$(MINGW32)gcc $(REPRODUCIBLE) -shared -nostdlib -Wl,-e,_DllMain@12 $^ -lkernel32 -lntdll -o $@

# The 64-bit hsnap delegates 32-bit programs to the 32-bit one beside it.
build/win64/hsnap32.exe: build/win32/hsnap.exe
	cp $< $@

build/win64/hsnap-tracer32.dll: build/win32/hsnap-tracer32.dll
	cp $< $@

build/win64/samples/%.exe: samples/%.c Makefile | deps
	mkdir -p $(@D)
	echo "== $@"
	$(MINGW)gcc $(sample_FLAGS) $(REPRODUCIBLE) $< $(win64_LDFLAGS) -o $@

build/win64/samples/%.exe: samples/%.cpp Makefile | deps
	mkdir -p $(@D)
	echo "== $@"
	$(MINGW)g++ $(call cpp_of,$(sample_FLAGS)) -fno-exceptions $(REPRODUCIBLE) $< $(win64_LDFLAGS) -o $@

build/win64/samples/marks/gtest_marks.exe: samples/marks/gtest_marks.cpp snapshot/hsnap-mark.h tests/targets/gtest_notification.hpp Makefile | deps
	mkdir -p $(@D)
	echo "== $@"
	$(MINGW)g++ -std=gnu++17 -O1 -gdwarf-4 -Isnapshot -I$(GTEST) -isystem $(GTEST)/include \
		-DGTEST_HAS_NOTIFICATION_=1 -include tests/targets/gtest_notification.hpp \
		$(REPRODUCIBLE) $< $(GTEST)/src/gtest-all.cc -static -o $@

build/win32/samples/%.exe: samples/%.c Makefile | deps
	mkdir -p $(@D)
	echo "== $@"
	$(MINGW32)gcc $(sample32_FLAGS) $(REPRODUCIBLE) $< -static -o $@

build/win32/samples/%.exe: samples/%.cpp Makefile | deps
	mkdir -p $(@D)
	echo "== $@"
	$(MINGW32)g++ $(call cpp_of,$(sample32_FLAGS)) -fno-exceptions $(REPRODUCIBLE) $< -static -o $@

# Keeps equal functions separate and calls as calls. In "bare", the C library's .eh_frame section
# becomes data.
frames_o0 := -O0
frames_fp := -O2 -fno-omit-frame-pointer
frames_fpo := -O2 -fomit-frame-pointer
frames_bare := -O2 -fno-omit-frame-pointer -fno-asynchronous-unwind-tables -fno-unwind-tables
$(FRAMES32): build/win32/targets/frames_%.exe: tests/targets/frames.c Makefile | deps32
	mkdir -p $(@D)
	echo "== $@"
	$(MINGW32)gcc $(windows_FLAGS) $(frames_$*) -fno-ipa-icf -fno-optimize-sibling-calls -gdwarf-4 $(REPRODUCIBLE) $< -static -lntdll -o $@
	$(if $(filter bare,$*),$(MINGW32)objcopy --set-section-flags .eh_frame=alloc$(comma)load$(comma)data $@)

build/win64/targets/%.exe: tests/targets/%.c Makefile | deps
	mkdir -p $(@D)
	echo "== $@"
	$(MINGW)gcc $(sample_FLAGS) $(REPRODUCIBLE) $< $(win64_LDFLAGS) -o $@

build/win64/targets/%.exe: tests/targets/%.cpp Makefile | deps
	mkdir -p $(@D)
	echo "== $@"
	$(MINGW)g++ $(call cpp_of,$(sample_FLAGS)) $(REPRODUCIBLE) $< $(win64_LDFLAGS) -o $@

build/win32/targets/%.exe: tests/targets/%.c Makefile | deps
	mkdir -p $(@D)
	echo "== $@"
	$(MINGW32)gcc $(sample32_FLAGS) $(REPRODUCIBLE) $< -static -o $@

build/win32/targets/%.exe: tests/targets/%.cpp Makefile | deps
	mkdir -p $(@D)
	echo "== $@"
	$(MINGW32)g++ $(call cpp_of,$(sample32_FLAGS)) $(REPRODUCIBLE) $< -static -o $@

# Optimized like ordinary programs.
build/win64/targets/%_fpo.exe: tests/targets/%.c Makefile | deps
	mkdir -p $(@D)
	echo "== $@"
	$(MINGW)gcc $(sample_FLAGS) -O2 -fomit-frame-pointer $(REPRODUCIBLE) $< $(win64_LDFLAGS) -o $@

build/win32/targets/%_fpo.exe: tests/targets/%.c Makefile | deps
	mkdir -p $(@D)
	echo "== $@"
	$(MINGW32)gcc $(sample_FLAGS) -O2 -fomit-frame-pointer $(REPRODUCIBLE) $< -static -o $@

# A fixed base address, known to the tests.
build/win64/targets/%.dll: tests/plugs/%.c Makefile | deps
	mkdir -p $(@D)
	echo "== $@"
	$(MINGW)gcc $(sample_FLAGS) -shared -nostdlib -Wl,-e,DllMain,--image-base=0x6a0000000,--disable-dynamicbase $< -lkernel32 -o $@

build/win32/targets/%.dll: tests/plugs/%.c Makefile | deps
	mkdir -p $(@D)
	echo "== $@"
	$(MINGW32)gcc $(sample32_FLAGS) -shared -nostdlib -Wl,-e,_DllMain@12,--image-base=0x68000000,--disable-dynamicbase $< -lkernel32 -o $@

# One program, built in several ways. The PDB path in MSVC images is C:\made\KIND\NAME.pdb, in
# others a bare name: never a path of this machine.
named_FLAGS = -I. -O2 $(filter-out %-prototypes,$(WARN)) -fno-optimize-sibling-calls -fno-exceptions
named_gcc = $(MINGW)$(if $(filter %.cpp,$<),g++,gcc) $(named_FLAGS) $< $(if $(filter %.dll,$@),-shared) $(win64_LDFLAGS)
named_clang = $(CLANG) --target=x86_64-w64-mingw32 $(named_FLAGS) $< $(if $(filter %.dll,$@),-shared) -static \
	-fuse-ld=$(LLD) -L$$(dirname $$($(MINGW)gcc -print-libgcc-file-name))
named_pdb = -g -gcodeview -Wl,--pdb=$(basename $@).pdb,-Xlink=-pdbaltpath:$(notdir $(basename $@)).pdb
named_dwarf4 = $(named_gcc) -gdwarf-4 -gno-statement-frontiers -o $@
named_dwarf5 = $(named_gcc) -gdwarf-5 -o $@
named_stripped = $(named_gcc) -s -o $@
named_lld = $(named_clang) -gdwarf-4 -o $@
named_pdb_gnu = $(named_clang) $(named_pdb) -o $@
named_pdb_other = $(named_pdb_msvc)
named_pdb_msvc = $(CLANG) --target=x86_64-pc-windows-msvc $(named_FLAGS) $(if $(filter %/pdb_other/,$(@D)/),-DOTHER_BUILD) -DOWN_ENTRY -g -gcodeview -c $< -o $(basename $@).obj && \
	lld-link$(LLD:lld%=%) /nologo /debug /pdb:$(basename $@).pdb '/pdbaltpath:C:\made\pdb_msvc\$(notdir $(basename $@)).pdb' \
		/subsystem:console $(if $(filter %.dll,$@),/dll /entry:DllMainCRTStartup,/entry:main) /out:$@ $(basename $@).obj \
		$$($(MINGW)gcc -print-file-name=libmsvcrt.a) $$($(MINGW)gcc -print-file-name=libkernel32.a)

$(NAMED_PROGRAMS): build/win64/symbols/%: $$(wildcard tests/symbols/$$(basename $$(notdir $$*)).c*) $(wildcard tests/symbols/*.h) Makefile | packages
	mkdir -p $(@D)
	echo "== $@"
	$(named_$(notdir $(@D)))

build/win64/bench/sources/names_main.c: tests/bench/gen_program
	mkdir -p $(@D)
	rm -f $(@D)/*.c
	$< $(@D)

$(MANY_NAMES): build/win64/bench/sources/names_main.c Makefile | packages
	mkdir -p $(@D)
	echo "== $@"
	$(subst $<,$(<D)/*.c,$(named_$(notdir $(@D))))

build/win64/bench/%.exe: tests/bench/%.c Makefile | deps
	mkdir -p $(@D)
	echo "== $@"
	$(MINGW)gcc $(sample_FLAGS) $< $(win64_LDFLAGS) -o $@

build/win64/bench/%.exe: tests/bench/%.cpp Makefile | deps
	mkdir -p $(@D)
	echo "== $@"
	$(MINGW)g++ $(call cpp_of,$(sample_FLAGS)) $< $(win64_LDFLAGS) -o $@

build/win32/bench/%.exe: tests/bench/%.cpp Makefile | deps
	mkdir -p $(@D)
	echo "== $@"
	$(MINGW32)g++ $(call cpp_of,$(sample32_FLAGS)) $< -static -o $@

build/linux/bench/%: tests/bench/%.c Makefile | packages
	mkdir -p $(@D)
	echo "== $@"
	$(CC) $(linux_FLAGS) $< -o $@

# These link the product's code.
build/linux/bench/gen_recording build/linux/bench/time_reach: build/linux/bench/%: build/linux/obj/tests/bench/%.o build/linux/library.a
	mkdir -p $(@D)
	echo "== $@"
	$(CC) $(CFLAGS) $^ -lz -lzstd -lpthread -o $@

build/linux/bench/%: tests/bench/%.cpp Makefile | packages
	mkdir -p $(@D)
	echo "== $@"
	$(CXX) $(call cpp_of,$(linux_FLAGS)) $< -o $@

# Tests link against everything except the main programs.
build/linux/library.a: $(call linux_objects,$(LIBRARY)) | packages
build/asan/library.a: $(call asan_objects,$(LIBRARY)) | packages
build/fuzz/library.a: $(call fuzz_objects,$(LIBRARY)) | packages
build/win64/library.a: $(call win64_objects,$(LIBRARY) $(UNWINDER) $(VIRTUAL)) | deps
%/library.a:
	mkdir -p $(@D)
	rm -f $@
	$(if $(filter build/win64/%,$@),$(MINGW))$(AR) rcs $@ $^

# Synthetic processes in tests use the image maker's own layout tables, which are not part of the
# product.
MADE_LAYOUTS := $(patsubst %.c,obj/%.o,$(wildcard tests/images/*_layout.c))

build/linux/tests/%: build/linux/obj/tests/unit/%.o $(MADE_LAYOUTS:%=build/linux/%) build/linux/library.a
	mkdir -p $(@D)
	echo "== $@"
	$(CC) $^ -lcmocka -lpcre2-8 -lZydis -lz -lzstd -lpthread -lm $(DEMANGLER) -o $@

# Prints the walkers' results, for comparison with that truth.
build/linux/walk/%: build/linux/obj/tests/walk/%.o build/linux/library.a
	mkdir -p $(@D)
	echo "== $@"
	$(CC) $^ -lpcre2-8 -lZydis -lz -lzstd -lpthread -o $@

# Recordings of synthetic processes.
build/linux/record/%: build/linux/obj/tests/record/%.o build/linux/library.a
	mkdir -p $(@D)
	echo "== $@"
	$(CC) $^ -lpcre2-8 -lZydis -lz -lzstd -lpthread -o $@

build/asan/tests/%: build/asan/obj/tests/unit/%.o $(MADE_LAYOUTS:%=build/asan/%) build/asan/library.a
	mkdir -p $(@D)
	echo "== $@"
	$(CC) -fsanitize=address,undefined $^ -lcmocka -lpcre2-8 -lZydis -lz -lzstd -lpthread -lm $(DEMANGLER) -o $@

# os_end() would end the program; fuzz.c replaces it by a failure.
FUZZ_LIBS := -Wl,--wrap=os_end -lpcre2-8 -lZydis -lz -lzstd -lpthread -lm $(DEMANGLER)

build/asan/fuzz/%: build/asan/obj/tests/fuzz/%.o build/asan/obj/tests/fuzz/fuzz.o build/asan/obj/tests/fuzz/feed.o build/asan/library.a
	mkdir -p $(@D)
	echo "== $@"
	$(CC) -fsanitize=address,undefined $^ $(FUZZ_LIBS) -o $@

build/fuzz/fuzz_%: build/fuzz/obj/tests/fuzz/fuzz_%.o build/fuzz/obj/tests/fuzz/fuzz.o build/fuzz/library.a
	echo "== $@"
	$(CLANG) -fsanitize=fuzzer,address,undefined $^ $(FUZZ_LIBS) -o $@

# Processes that fuzz_minidump.c modifies.
build/fuzz/images/made: tests/fuzz/images build/linux/images/make_image
	tests/fuzz/images
	touch $@

build/win64/tests/%.exe: build/win64/obj/tests/win/%.o build/win64/library.a
	mkdir -p $(@D)
	echo "== $@"
	$(MINGW)gcc $^ $(win64_LDFLAGS) -lpcre2-8 -lz -lzstd -lzydis -lntdll $(DEMANGLER) -o $@

# The makers of images and recordings, and the walkers, as on Linux.
build/win64/images/make_image.exe: $(IMAGES:%.c=build/win64/obj/%.o)
	mkdir -p $(@D)
	echo "== $@"
	$(MINGW)gcc $^ $(win64_LDFLAGS) -o $@

$(patsubst tests/%.c,build/win64/%.exe,$(WALK) $(RECORD)): build/win64/%.exe: build/win64/obj/tests/%.o build/win64/library.a
	mkdir -p $(@D)
	echo "== $@"
	$(MINGW)gcc $^ $(win64_LDFLAGS) -lpcre2-8 -lz -lzstd -lzydis -lntdll -o $@

-include $(shell [ ! -d build ] || find build/linux build/asan build/tsan build/fuzz build/win64 build/win32 -name '*.d' 2>/dev/null)

# The tests of one folder, in less than a minute once they are built.
$(FOLDERS:%=check-%): check-%: linux build/linux/images/make_image $$(filter build/%,$$(shell tests/run --list $$*))
	tests/run $$(tests/run --list $*)

# ---------------------------------------------------------------- lint

# The layout differs slightly between versions.
CLANG_FORMAT := clang-format-14
ALL_C = $(shell find . -path ./build -prune -o -name '*.[ch]' -print | sed 's,^\./,,' | sort)
ALL_SCRIPTS = $(shell grep -lE '^\#!/bin/(ba)?sh' .ci/* setup/* samples/* tests/* tests/fuzz/* tests/windows/* 2>/dev/null)
LINT_WINDOWS = $(filter %_windows.c snapshot/tracer/% samples/% tests/win/% tests/bench/pairs.c tests/bench/mixed.c tests/targets/% tests/plugs/% tests/symbols/%,$(filter %.c,$(ALL_C)))
LINT_LINUX = $(filter-out $(LINT_WINDOWS),$(filter %.c,$(ALL_C)))
# clang-tidy accepts gcc's flags, except -MMD and others that control the output
tidy = $(if $(2),clang-tidy --quiet $(2) -- $(filter-out -M% -O% -g% -Werror,$(1)),true)

YAML_RULES := {extends: default, rules: {line-length: {max: 120}, document-start: disable, truthy: disable}}

lint-quick: packages ## the part of lint that takes seconds
	setup/packages lint-quick
	status=0; \
	if command -v $(CLANG_FORMAT) >/dev/null; then \
		echo "== clang-format"; $(CLANG_FORMAT) --dry-run -Werror $(ALL_C) || status=1; \
	else echo "== clang-format: skipped, it takes version 14"; fi; \
	echo "== shellcheck"; shellcheck $(ALL_SCRIPTS) || status=1; \
	echo "== mandoc"; mandoc -Tlint -W warning man/* || status=1; \
	echo "== yamllint"; yamllint -s -d '$(YAML_RULES)' .github || status=1; \
	exit $$status

# cppcheck 2.10 reports passing a pointer to an uninitialized local as a read of it
lint: lint-quick deps ## style and static analysis
	setup/packages lint
	status=0; \
	echo "== cppcheck"; cppcheck -q --std=c11 -I. --inline-suppr --error-exitcode=1 \
		--enable=warning,performance,portability --suppress=uninitvar \
		$(filter %.c,$(ALL_C)) || status=1; \
	echo "== clang-tidy"; \
	$(call tidy,$(linux_FLAGS),$(LINT_LINUX)) || status=1; \
	$(call tidy,$(tracer_FLAGS) --target=x86_64-w64-mingw32,$(LINT_WINDOWS)) || status=1; \
	exit $$status
