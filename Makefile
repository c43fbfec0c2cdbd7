# Makefile - builds libort and the tools; one file, not recursive.
#
# Objects lie in build/<checksum of the flags>/, so that two sets of flags never mix; whatever the
# flags, the tools end up in build/bin and the library in build/lib.
#
#   make            the tools and the library          make test     everything CI runs
#   make dropin     libonnxruntime.so.1: programs of onnxruntime on this library   make abi  its tests
#   make abi-asan abi-tsan abi-valgrind  its scenarios under sanitizers
#   make bench-abi  what a run through the ABI costs above the library's own
#   make clients    programs of PyPI that were built on onnxruntime, on this library   make bench-clients  their speed
#   make opencl-asan opencl-tsan  values on devices, sessions side by side on one, under sanitizers
#   make DEBUG=1    the same with asserts, graphs checked after every pass
#   make demo       read digits, enlarge a photograph  make check    sanitizers, every tier
#   make models     the real models of MODELS=DIR      make bench    beside onnxruntime
#   make bench-optimize  the optimizer beside the simplifiers and onnxruntime's own files
#   make bench-quant  what quantized models compute beside those of onnxruntime.quantization
#   make bench-quant-dynamic  the same of those whose inputs are quantized in each run
#   make bench-calibrate  time and memory of calibration beside onnxruntime.quantization
#   make bench-agreement  how often quantized classifiers answer as their float models do
#   make bench-weights  4-bit weights of a language model beside onnxruntime's
#   make bench-weights-large  how long they take on 1.1 billion parameters, and how much memory
#   make bench-pack  start-up with and without pack files beside onnxruntime's own files
#   make bench-shared  two threads against one where processors are shared
#   make bench-kernels  kernels beside the machine's peak, goals and OpenBLAS
#   make bench-reads  products of one row beside a loop that reads as many bytes
#   make plugins    providers that aren't built in, each where its library is   make plugin-conformance  their tests
#   make conformance  ONNX's own node tests            make lint     the rules of the house
#   make optimize-conformance opset-sweep opset  the same after the optimizer, here and on onnxruntime
#   make opset-sweep  the same models at every opset from 28 down to 7
#   make released   the tests of ONNX's old releases, here and on onnxruntime
#   make names      values that keep their name through a pass keep their contents
#   make shapes     inferred shapes beside onnx's      make shape-versions  ... of older operators
#   make parity     files that onnxruntime's optimizer and quantizers write, and its results
#   make exact      operators on integers beside 64-bit sums, on every tier
#   make spellings  files of onnxruntime's quantizers in each form, and of NNCF (NNCF=1 installs it): nothing
#                   between Q and DQ in float
#   make quantize-matrix  operators x types x forms, quantized by ort-quantize, here and in onnxruntime
#   make quantize-bytes  the same files of ort-quantize for every tier and number of threads
#   make quantize-digests  the table of their digests, which tests on other processors compare with
#   make quantize-sizes  what the files of ort-quantize take of the float ones, against limits
#   make quantize-failures  the known ways in which int8 fails, planted, and what avoids each
#   make fuzz-ops   random cases of every operator beside onnxruntime, formulas, the reference evaluator
#   make check-models  --check beside onnx.checker and onnxruntime, on 32,500 mutated models
#   make coverage-table  operators, versions, types, providers: build/coverage.md, or OUT=-
#   make install DESTDIR= PREFIX=/usr/local LIBDIR= MANDIR=   make uninstall   make dist   make deb
#   make roots      the release in fresh Debian systems    make musl aarch64   with another C library, processor
#   make same-bytes  two builds of one commit compared  make repeated   code that stands here twice
#   make asserts    asserts in a thousand lines of each room
#
# IMAGES=linked takes the archives of the image libraries into the tools instead of opening them when
# the first image comes; SHARED=1 links the tools' small libraries as shared ones.

CC      ?= gcc
AR      ?= ar
LD_R    ?= $(CC) -nostdlib -r
OBJCOPY ?= $(TARGET_PREFIX)objcopy
STRIP   ?= $(TARGET_PREFIX)strip
CFLAGS  ?= -O2 -g
LDFLAGS ?=
PREFIX  ?= /usr/local
BINDIR  ?= $(PREFIX)/bin
LIBDIR  ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DATADIR ?= $(PREFIX)/share
MANDIR  ?= $(DATADIR)/man
MODELS  ?= ../shared/models
PROTOC_C ?= protoc-c

# What isn't declared C takes for a function of int, of which a bool has but one byte.
WARN     = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wno-unused-parameter \
           -Wno-missing-field-initializers -Werror=implicit-function-declaration
# Column loops ask gcc for its vectorizer by a pragma; clang has it on at -O2.
ifneq ($(findstring clang,$(shell $(CC) --version)),)
WARN    += -Wno-unknown-pragmas
endif
ifeq ($(WERROR),1)
WARN    += -Werror
endif
# What ships returns errors and never aborts; builds for development (DEBUG=1, or with sanitizers) check
# the code's own invariants, and the graph after every pass.
ASSERTS  = $(if $(DEBUG)$(findstring -fsanitize,$(CFLAGS)),,-DNDEBUG)
CPPFLAGS_ALL = -Ilib -Ibuild/gen -Icmd -D_GNU_SOURCE $(ASSERTS) $(CPPFLAGS)
# Paths of the build stay out of what it makes: two builds of one commit are the same bytes.
CFLAGS_ALL   = -std=gnu11 -ffp-contract=off -fno-math-errno -fPIC -fvisibility=hidden \
               -ffunction-sections -fdata-sections -pthread -ffile-prefix-map=$(CURDIR)=. \
               $(WARN) $(CFLAGS)
# A tool that runs for milliseconds takes its small libraries along, where their archives are
# installed: finding and relocating them costs a tenth of its time. SHARED=1 links them as ever.
archive  = $(if $(SHARED)$(filter-out /%,$(shell $(CC) -print-file-name=lib$(1).a)),-l$(1),-l:lib$(1).a)
ifeq ($(IMAGES),linked)
CPPFLAGS_ALL += -DORT_IMAGES_LINKED
has_archive = $(filter /%,$(shell $(CC) -print-file-name=lib$(1).a))
IMAGE_LIBS := $(foreach l,png jpeg webp $(if $(call has_archive,sharpyuv),sharpyuv) openjp2,$(call archive,$l))
endif
LIBS     = $(IMAGE_LIBS:-l:lib%.a=-l%) -lprotobuf-c -ljson-c -lz -ldl -lm -pthread
TOOL_LIBS := $(IMAGE_LIBS) $(call archive,protobuf-c) $(call archive,json-c) $(call archive,z) -ldl -lm -pthread

# The provider for OpenCL devices needs the headers alone: OPENCL=0 leaves it out, as does a system
# without them.
OPENCL ?= $(shell printf '\043include <CL/cl.h>\n' | $(CC) -E -x c - >/dev/null 2>&1 && echo 1 || echo 0)

# Tables of operators and kernels are pointers by the thousand, each of them 24 bytes to relocate; packed they take a bit
# (DT_RELR). Only where linker and C library both know it: without the library's part a program would start unrelocated.
# Sanitizers have so many tables of their own that ld takes tens of gigabytes to pack those of a library.
PACKED := $(if $(findstring -fsanitize,$(CFLAGS) $(LDFLAGS)),,$(shell f=$$(mktemp) && \
              printf 'int main(void){return 0;}' | $(CC) -pie -fPIE -Wl,-z,pack-relative-relocs -x c - -o $$f 2>/dev/null && \
              grep -q GLIBC_ABI_DT_RELR $$f && echo -Wl,-z,pack-relative-relocs; rm -f $$f))

# Programs of the tests, a hundred with all of the library: 75 MB each with what debuggers read of it, 7 without.
BARE = $(if $(DEBUG)$(findstring -fsanitize,$(CFLAGS)),,-Wl,-S)

FLAGS_ID := $(shell printf '%s' '$(CC) $(CFLAGS) $(ASSERTS) $(CPPFLAGS) $(LDFLAGS) $(WERROR)$(filter 0,$(OPENCL))$(PLAIN_KERNELS:1=plain) $(TOOL_LIBS)' | cksum | cut -d' ' -f1)
OBJ      := build/$(FLAGS_ID)
VERSION  := $(shell sed -n 's/^\#define ORT_VERSION_[A-Z]* //p' lib/ort.h | paste -sd.)
SONAME   := libort.so.$(firstword $(subst ., ,$(VERSION)))
TOOLS    := $(patsubst cmd/%/,%,$(filter-out cmd/common/,$(wildcard cmd/*/)))
TARGET   := $(shell $(CC) -dumpmachine)
MACHINE  := $(firstword $(subst -, ,$(TARGET)))
# A compiler for another machine brings its own binutils.
TARGET_PREFIX := $(if $(filter $(shell uname -m),$(MACHINE)),,$(TARGET)-)

ISA_avx2   = -mavx2 -mfma -mf16c
ISA_avx512 = $(ISA_avx2) -mavx512f -mavx512bw -mavx512dq -mavx512vl
ISA_vnni   = $(ISA_avx512) -mavx512vnni

KERNEL_DIRS = scalar
ifeq ($(MACHINE),x86_64)
KERNEL_DIRS += avx2 avx512 vnni avxvnni
# Assemblers before binutils 2.34 don't know its instructions: such a build lacks the tier.
ifeq ($(shell echo 'void f(void) {__asm__("tilerelease");}' | $(CC) -c -x c - -o /dev/null 2>&1),)
KERNEL_DIRS  += amx
CPPFLAGS_ALL += -DORT_KERNEL_AMX
endif
endif

# A room may have rooms inside (lib/op/net/); the folders of kernels are tiers, those of the machine alone.
LIB_SRC := $(filter-out lib/kernel/% $(if $(filter 0,$(OPENCL)),lib/provider/opencl/%),$(wildcard lib/*.c lib/*/*.c lib/*/*/*.c lib/*/*/*/*.c)) \
           $(wildcard lib/kernel/*.c $(foreach d,$(KERNEL_DIRS),lib/kernel/$(d)/*.c))
LIB_TEXT := $(sort $(foreach d,lib lib/* lib/*/* lib/*/*/*,$(wildcard $(d)/*.[ch] $(d)/*.inc $(d)/*.def \
             $(d)/*.proto $(d)/*.cl)))
LIB_OBJ := $(LIB_SRC:%.c=$(OBJ)/%.o) $(OBJ)/gen/onnx.pb-c.o
COMMON_OBJ := $(patsubst %.c,$(OBJ)/%.o,$(wildcard cmd/common/*.c))
UNIT    := $(patsubst tests/unit/%.c,%,$(wildcard tests/unit/test_*.c))

# Short lines unless V=1.
Q = $(if $(V),,@)
say = $(if $(V),,@printf '  %-4s %s\n' '$(1)' '$(2)')

.PHONY: all demo test check models conformance optimize-conformance contrib schema types coverage-table shapes shape-versions parity bench bench-optimize bench-kernels bench-figures lint install clean unit tools fuzz fault
# Objects of tests are kept. (.SECONDARY would leave what was built with other flags for up to date.)
.PRECIOUS: $(OBJ)/tests/%.o $(OBJ)/%_ops.so
all: build/lib/libort.a build/lib/libort.so build/lib/$(SONAME) build/lib/pkgconfig/ort.pc \
     $(TOOLS:%=build/bin/%) build/lib/example_ops.so dropin

# ---- library

build/gen/onnx.pb-c.c build/gen/onnx.pb-c.h &: lib/io/onnx.proto
	@mkdir -p build/gen
	$(call say,GEN,$@)
	$(Q)$(PROTOC_C) --c_out=build/gen -Ilib/io $<

# What a pack file is stamped with: a digest of the library's own sources. Two of make may be here at once (suites of `make
# test` side by side), so each writes a file of its own and the header changes in one step.
build/gen/source_id.h: FORCE
	@mkdir -p build/gen
	@LC_ALL=C; export LC_ALL; new=$@.$$$$; cat $(LIB_TEXT) | cksum | \
	  sed 's/\([0-9]*\) .*/#define ORT_SOURCE_ID "\1"/' > $$new && \
	  if cmp -s $$new $@; then rm -f $$new; else mv -f $$new $@; fi
$(OBJ)/lib/io/pack.o: build/gen/source_id.h

$(OBJ)/gen/onnx.pb-c.o: build/gen/onnx.pb-c.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(filter-out -W%,$(CFLAGS_ALL)) -w -c $< -o $@

# Texts of programs for OpenCL devices, as strings.
CL_COMMON := lib/provider/opencl/cl/common.cl
CL_TEXTS := $(CL_COMMON) $(filter-out $(CL_COMMON),$(wildcard lib/provider/opencl/cl/*.cl))
CL_STRINGS := lib/provider/opencl/cl/strings.awk
build/gen/cl_texts.inc: $(CL_TEXTS) $(CL_STRINGS) Makefile
	@mkdir -p build/gen
	$(call say,GEN,$@)
	$(Q)for f in $(CL_TEXTS); do echo "{\"$$(basename $$f .cl)\","; \
	  awk -f $(CL_STRINGS) $$f; echo "},"; done > $@
$(OBJ)/lib/provider/opencl/opencl_text.o: build/gen/cl_texts.inc
# The table of providers alone asks which there are.
$(OBJ)/lib/provider/partition.o: ISA_FLAGS = $(if $(filter 0,$(OPENCL)),,-DORT_OPENCL)

# ISA flags reach only the folder of that ISA.
$(OBJ)/lib/kernel/avx2/%.o: ISA_FLAGS = $(ISA_avx2)
# Its one instruction is named to the assembler alone.
$(OBJ)/lib/kernel/avxvnni/%.o: ISA_FLAGS = $(ISA_avx2)
$(OBJ)/lib/kernel/avx512/%.o: ISA_FLAGS = $(ISA_avx512)
$(OBJ)/lib/kernel/vnni/%.o: ISA_FLAGS = $(ISA_vnni)
$(OBJ)/lib/kernel/amx/%.o: ISA_FLAGS = $(ISA_vnni) # tiles are named to the assembler alone
# Sanitizers take minutes for the unrolled kernels at -O3; ThreadSanitizer at any level, so it sees what calls them and not
# the loops themselves, which share nothing. PLAIN_KERNELS=1 leaves them out for what isn't about them.
$(OBJ)/lib/kernel/%.o: CFLAGS_ALL += $(if $(PLAIN_KERNELS)$(findstring -fsanitize=thread,$(CFLAGS)),-fno-sanitize=all)
# Kernels, operators that compute, passes and what writes graphs and reports call nobody who could throw or unwind through
# them; debuggers read .debug_frame.
CALLS_NOBODY = kernel pass op/blocked op/check op/math op/ml op/moves op/net op/quant op/sequence op/shared op/text \
	emit gradient opset provider/cpu report
$(CALLS_NOBODY:%=$(OBJ)/lib/%/%.o): CFLAGS_ALL += -fno-asynchronous-unwind-tables
$(OBJ)/lib/kernel/%.o: OPT_FLAGS = $(if $(findstring -fsanitize,$(CFLAGS)),,-O3) -fno-trapping-math
# These bodies unroll themselves: -O3 makes the portable tier's of floats a fifth larger and no faster, those of bytes nearly
# twice as large, in each tool, and 5 % faster.
$(OBJ)/lib/kernel/scalar/blocked_%.o $(OBJ)/lib/kernel/scalar/bytes_%.o: \
	OPT_FLAGS = $(if $(findstring -fsanitize,$(CFLAGS)),,-O2 -ftree-vectorize) -fno-trapping-math
# Loops whose tiles are written out whole gain nothing by these, and take a tenth more of each tool.
$(OBJ)/lib/kernel/avx2/gemm_%.o $(OBJ)/lib/kernel/avx2/bytes_%.o $(OBJ)/lib/kernel/avx2/vmath_%.o: \
	OPT_FLAGS = $(if $(findstring -fsanitize,$(CFLAGS)),,-O3) -fno-trapping-math \
	            -fno-unswitch-loops -fno-split-loops -fno-peel-loops
# Blocks of 16 on 8 lanes are for calibration and files of other runtimes.
$(OBJ)/lib/kernel/avx2/blocked16_%.o: OPT_FLAGS = $(if $(findstring -fsanitize,$(CFLAGS)),,-O2) -fno-trapping-math

# What runs once for a model, in reports, or only between kernels, is small instead: -O2 inlines it for nothing in every tool.
SMALL = emit gradient op/check op/generation opset profile quantize/place report verify
SMALL_FILES = op/blocked/chain/blocked_chain op/blocked/blocked_conv op/blocked/blocked_pack op/shared/matrix_crossed
$(SMALL:%=$(OBJ)/lib/%/%.o) $(SMALL_FILES:%=$(OBJ)/lib/%.o): \
	OPT_FLAGS = $(if $(findstring -O2,$(CFLAGS)),-Os)

$(OBJ)/%.o: %.c | build/gen/onnx.pb-c.h
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(OPT_FLAGS) $(ISA_FLAGS) -MMD -MP -c $< -o $@

$(OBJ)/libort.a: $(LIB_OBJ)
	@rm -f $@
	$(call say,AR,$@)
	$(Q)$(AR) rcsD $@ $^

# What programs link: one object in which only the names of ort.h are left, so that neither our own names
# nor those of the ONNX messages meet a program's.
$(OBJ)/public/libort.o: $(LIB_OBJ)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(LD_R) -o $@ $^ && $(OBJCOPY) --localize-hidden $@
$(OBJ)/public/libort.a: $(OBJ)/public/libort.o
	@rm -f $@
	$(call say,AR,$@)
	$(Q)$(AR) rcsD $@ $<

$(OBJ)/libort.so: $(LIB_OBJ) lib/libort.map
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) $(PACKED) -shared -Wl,-soname,$(SONAME) -Wl,--build-id=sha1 \
	  -Wl,--version-script,lib/libort.map -o $@ $(LIB_OBJ) $(LIBS)

# An operator library takes nothing of libort but its header.
$(OBJ)/%_ops.so: examples/%_ops.c lib/ort.h lib/ort_ops.h lib/ort_tools.h
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -Ilib $(WARN) $(CFLAGS) $(LDFLAGS) -shared -fPIC -o $@ $<

# Providers that aren't built in (ort_provider.h), each where the library that it stands on is: oneDNN 2 from
# Debian's libdnnl-dev, OpenVINO's headers from its wheel. DNNL=0 and OPENVINO= leave them out.
DNNL ?= $(shell printf '\043include <oneapi/dnnl/dnnl.h>\nv=DNNL_VERSION_MAJOR\n' | $(CC) -E -P -x c - 2>/dev/null | grep -q '^v=2' && echo 1 || echo 0)
OPENVINO ?= $(firstword $(wildcard build/venv-bench/lib/python3*/site-packages/openvino))
OPENVINO_LIB := $(firstword $(wildcard $(OPENVINO)/libs/libopenvino_c.so*))
PLUGINS := example $(if $(filter 1,$(DNNL)),onednn) $(if $(OPENVINO_LIB),openvino)
PLUGIN_onednn = -fopenmp -ldnnl
PLUGIN_openvino = -isystem $(OPENVINO)/include -DOPENVINO_FILE='"$(notdir $(OPENVINO_LIB))"' -ldl
define PLUGIN_RULE
$(OBJ)/providers/ort-provider-$(1).so: $$(wildcard plugins/$(1)/*.[ch]) lib/ort_provider.h lib/ort.h
	@mkdir -p $$(@D)
	$$(call say,LD,$$@)
	$$(Q)$$(CC) -std=gnu11 -D_GNU_SOURCE -Ilib $$(WARN) -Wno-shadow $$(CFLAGS) $$(LDFLAGS) -shared -fPIC -o $$@ $$(filter %.c,$$^) \
	  $$(PLUGIN_$(1)) -lm
endef
$(foreach p,$(PLUGINS),$(eval $(call PLUGIN_RULE,$(p))))
.PHONY: plugins plugin-conformance
plugins: $(PLUGINS:%=build/lib/providers/ort-provider-%.so)
ifneq ($(DNNL),1)
	@echo "skip onednn: no oneDNN 2 here (Debian 12: libdnnl-dev)"
endif
ifeq ($(OPENVINO_LIB),)
	@echo "skip openvino: no headers of OpenVINO here (its wheel in build/venv-bench, or OPENVINO=FOLDER)"
endif

# The drop-in: the ABI of onnxruntime over this library, and nothing that its functions don't reach.
# ImageDecoder, which onnxruntime lacks too, would bring the image codecs: another registry leaves it out.
ABI_OBJ := $(patsubst %.c,$(OBJ)/%.o,$(wildcard abi/*.c)) $(OBJ)/abi/lib/op/registry.o
$(OBJ)/abi/lib/op/registry.o: CPPFLAGS_ALL += -DORT_WITHOUT_IMAGES
$(OBJ)/abi/%.o: %.c | build/gen/onnx.pb-c.h
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c $< -o $@
build/gen/abi.map build/gen/abi_symbols.inc &: abi/versions.sh
	@mkdir -p build/gen
	$(call say,GEN,$@)
	$(Q)sh abi/versions.sh map > build/gen/abi.map && sh abi/versions.sh symbols > build/gen/abi_symbols.inc
$(OBJ)/abi/table.o: build/gen/abi_symbols.inc
$(OBJ)/onnxruntime/libonnxruntime.so.1: $(ABI_OBJ) $(OBJ)/libort.a build/gen/abi.map
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) $(PACKED) -shared -Wl,-soname,libonnxruntime.so.1 -Wl,--build-id=sha1 \
	  -Wl,--gc-sections -Wl,--exclude-libs,ALL -Wl,--version-script,build/gen/abi.map -Wl,-Map,$@.txt \
	  -o $@ $(ABI_OBJ) $(OBJ)/libort.a $(TOOL_LIBS)
.PHONY: dropin
dropin: build/lib/onnxruntime/libonnxruntime.so.1

# The finished files are copied into place when their content changed, whatever the flags were.
build/lib/libort.a: $(OBJ)/public/libort.a FORCE
	@mkdir -p $(@D); cmp -s $< $@ || cp $< $@
build/lib/$(SONAME): build/lib/libort.so
	@ln -sf libort.so $@
build/lib/%: $(OBJ)/% FORCE
	@mkdir -p $(@D); cmp -s $< $@ || cp $< $@
build/bin/%: $(OBJ)/bin/% FORCE
	@mkdir -p $(@D); cmp -s $< $@ || cp $< $@
.PHONY: FORCE
FORCE:

# Rewritten when a folder of the installation is another.
build/lib/pkgconfig/ort.pc: lib/ort.pc.in FORCE
	@mkdir -p $(@D)
	@sed -e 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR:$(PREFIX)/%=$${prefix}/%)|' \
	  -e 's|@INCLUDEDIR@|$(INCLUDEDIR:$(PREFIX)/%=$${prefix}/%)|; s|@VERSION@|$(VERSION)|' \
	  -e 's|@LIBS@|$(LIBS)|' $< > $@.$$$$ && \
	  if cmp -s $@.$$$$ $@; then rm -f $@.$$$$; else mv -f $@.$$$$ $@; fi

# ---- tools

define TOOL_RULE
$(OBJ)/bin/$(1): $$(patsubst %.c,$(OBJ)/%.o,$$(wildcard cmd/$(1)/*.c)) $(COMMON_OBJ) $(OBJ)/libort.a
	@mkdir -p $$(@D)
	$$(call say,LD,$$@)
	$$(Q)$$(CC) $$(CFLAGS_ALL) $$(LDFLAGS) $$(PACKED) -Wl,--gc-sections -Wl,--build-id=sha1 -o $$@ $$^ $$(TOOL_LIBS)
endef
$(foreach t,$(TOOLS),$(eval $(call TOOL_RULE,$(t))))

# What OPENCL=0 builds, out of the objects that are there: only the table of providers is another. No file
# outside of lib/provider/opencl may see OpenCL's headers (tests/cli/without_opencl.bats looks).
WITHOUT_OBJ := $(filter-out $(OBJ)/lib/provider/opencl/% $(OBJ)/lib/provider/partition.o,$(LIB_OBJ)) \
               $(OBJ)/without/lib/provider/partition.o
$(OBJ)/without/%.o: %.c | build/gen/onnx.pb-c.h
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c $< -o $@
define WITHOUT_RULE
$(OBJ)/without/bin/$(1): $$(patsubst %.c,$(OBJ)/%.o,$$(wildcard cmd/$(1)/*.c)) $(COMMON_OBJ) $(WITHOUT_OBJ)
	@mkdir -p $$(@D)
	$$(call say,LD,$$@)
	$$(Q)$$(CC) $$(CFLAGS_ALL) $$(LDFLAGS) $$(PACKED) $$(BARE) -Wl,--gc-sections -o $$@ $$^ $$(TOOL_LIBS)
endef
$(foreach t,ort-run ort-inspect ort-tensor,$(eval $(call WITHOUT_RULE,$(t))))
.PHONY: without-opencl
without-opencl: $(foreach t,ort-run ort-inspect ort-tensor,$(OBJ)/without/bin/$(t))
	@echo $(CURDIR)/$(OBJ)/without/bin

# ---- tests

$(OBJ)/tests/%: $(OBJ)/tests/%.o $(OBJ)/libort.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) $(BARE) $(WRAP_FLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIBS)

# The benchmark is several files, and starts as the tools do.
$(OBJ)/tests/bench/bench: LIBS = $(PACKED) -Wl,--gc-sections $(TOOL_LIBS)
$(OBJ)/tests/bench/bench: $(patsubst %.c,$(OBJ)/%.o,$(filter-out tests/bench/bench.c, \
  $(wildcard tests/bench/*.c)))

# The drop-in's scenarios; like its clients they know the table alone.
$(OBJ)/tests/abi/differ: $(patsubst %.c,$(OBJ)/%.o,$(filter-out %/differ.c %/lifetimes.c %/ready.c %/run_cost.c,$(wildcard tests/abi/*.c)))
$(OBJ)/tests/abi/differ: LIBS += -ldl -rdynamic
$(OBJ)/tests/abi/differ: $(OBJ)/tests/abi/custom_ops.so
# A library of a client's operators, which says what it is told through the program; one that tells when the first
# session is ready.
$(OBJ)/tests/abi/custom_ops.so $(OBJ)/tests/abi/ready.so: $(OBJ)/tests/abi/%.so: tests/abi/%.c
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -Iabi $(LDFLAGS) -shared -fPIC -o $@ $< -ldl
$(OBJ)/tests/abi/custom_ops.so: tests/abi/custom_ops.h
$(OBJ)/tests/abi/%.o: CPPFLAGS_ALL += -Iabi
$(OBJ)/tests/abi/run_cost: LIBS = $(TOOL_LIBS) -ldl

# It counts allocations.
$(OBJ)/tests/unit/test_state: WRAP_FLAGS = -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc \
  -Wl,--wrap=aligned_alloc,--wrap=posix_memalign
# It lets each fail.
$(OBJ)/tests/unit/test_table_memory: WRAP_FLAGS = \
  -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc

unit: $(or $(T:%=$(OBJ)/tests/unit/%),$(UNIT:%=$(OBJ)/tests/unit/%))
	@sh tests/tools/run_unit.sh $^

# The same sets from the shell, a process each: SETS=GLOB.
.PHONY: shell-sets
shell-sets: all
	@python3 tests/tools/check_shell.py build/bin/ort-run build/conformance tests/onnx/shell.txt $(SETS)

conformance: all $(OBJ)/tests/onnx/conformance
	@sh tests/tools/run_conformance.sh $(OBJ)/tests/onnx/conformance

# The tests as ONNX's old releases carried them, out of their wheels (320 MB to download once).
.PHONY: released
released: all $(OBJ)/tests/onnx/conformance
	@sh tests/tools/run_released.sh $(OBJ)/tests/onnx/conformance

# The same models after the optimizer, here and on onnxruntime; then the real ones.
optimize-conformance: all $(OBJ)/tests/onnx/conformance
	@MODELS='$(abspath $(MODELS))' sh tests/tools/run_optimize_conformance.sh \
	  $(OBJ)/tests/onnx/conformance

# Models converted to other opsets: all of them, or (opset) some, for make test.
opset-sweep: all $(OBJ)/tests/onnx/conformance
	@MODELS='$(abspath $(MODELS))' sh tests/tools/run_opset_sweep.sh $(OBJ)/tests/onnx/conformance

opset: all $(OBJ)/tests/onnx/conformance
	@OPSETS='28 11' sh tests/tools/run_opset_sweep.sh $(OBJ)/tests/onnx/conformance 'test_[l-q]*'

# ONNX's node tests, and those of com.microsoft, on OpenCL: ONLY=GLOB, OPTIONS=:KEY=VALUE
.PHONY: opencl-conformance
opencl-conformance: all $(OBJ)/tests/onnx/conformance provider-cases
	@build/venv/bin/python -u tests/tools/check_provider.py $(ONLY:%=--only '%') $(OPTIONS:%=--options '%') \
	  $(if $(ONLY)$(OPTIONS),,--types tests/onnx/opencl.txt) opencl build/bin $(OBJ)/tests/onnx/conformance build/conformance tests/onnx/contrib build/provider-cases

# What ONNX's tests can't ask: constants where they have inputs, operators of com.microsoft. And the part of
# opencl-conformance that make test runs: these, with both forms of kernels, and what share of models goes there.
.PHONY: provider-cases opencl opencl-share
provider-cases: $(OBJ)/tests/onnx/conformance
	@sh tests/tools/setup_venv.sh && { test -d build/conformance || build/venv/bin/python tests/tools/make_conformance.py; }
	@build/venv/bin/python tests/tools/make_provider_cases.py build/conformance build/provider-cases
opencl: all provider-cases
	@sh tests/tools/run_opencl.sh build/bin $(OBJ)/tests/onnx/conformance
# All models with test data, and the filled topologies, with all that is claimed there. make opencl runs some of them.
.PHONY: opencl-models
opencl-models: all
	@sh tests/tools/run_opencl_models.sh build/bin $(patsubst %/model.onnx,%,$(wildcard $(MODELS)/*/model.onnx build/topologies/*/model.onnx))
# Values on devices, sessions side by side on one, devices that fail, under sanitizers.
.PHONY: opencl-asan opencl-tsan opencl-alone
opencl-alone: $(OBJ)/libort.so
	@sh tests/tools/run_opencl_alone.sh $(OBJ)/libort.so '$(CC)' '$(CFLAGS)'
opencl-asan:
	@$(MAKE) --no-print-directory opencl-alone PLAIN_KERNELS=1 LDFLAGS="-fsanitize=address,undefined" \
	  CFLAGS="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined"
opencl-tsan:
	@$(MAKE) --no-print-directory opencl-alone CFLAGS="-O1 -g -fsanitize=thread" LDFLAGS="-fsanitize=thread"
# Products and convolutions on OpenCL beside the peak and CLBlast, and what the provider costs.
.PHONY: bench-opencl
bench-opencl: all
	@build/venv/bin/python -u tests/tools/bench_opencl.py build/bin build/bench-opencl \
	  $(wildcard $(foreach m,resnet50 mobilenet_v2 bert_base vit_tiny_patch16_224,build/topologies/$(m)/model.onnx) \
	  $(foreach m,mlperf_tiny_kws_fp32 ppocrv2_cls yolox_nano,$(MODELS)/$(m)/model.onnx))
# Sessions with the cost model on beside the processor alone, on nets that are hard to divide and on models;
# COST=off judges the division that moves all it can.
.PHONY: bench-partition
bench-partition: all $(OBJ)/tests/providers/pairs
	@build/venv/bin/python -u tests/tools/bench_partition.py build/bin $(OBJ)/tests/providers/pairs build/bench-partition \
	  $(wildcard $(MODELS)/*/model.onnx build/topologies/*/model.onnx)
# Runs and starts of this build's ort-run beside another's on the processor: BEFORE=ORT_RUN
.PHONY: bench-before
bench-before: all
	@build/venv/bin/python -u tests/tools/bench_before.py '$(BEFORE)' build/bin/ort-run $(wildcard $(MODELS)/*/model.onnx)
# Multiply-adds of each model that OpenCL takes: WHY=1 tells what is left out.
opencl-share: all
	@build/venv/bin/python tests/tools/provider_share.py $(WHY:%=--why) opencl build/bin $(MODELS) \
	  $(wildcard $(MODELS)/topologies build/topologies)

# The same on each plugin, then the models: ONLY=GLOB, PLUGIN=NAME
plugin-conformance: all plugins
	@ORT_PROVIDER_PATH='$(CURDIR)/build/lib/providers' ORT_OPENVINO_LIB='$(abspath $(OPENVINO_LIB))' \
	  sh tests/tools/run_plugins.sh '$(filter $(or $(PLUGIN),%),$(PLUGINS))' '$(MODELS)' '$(ONLY)'

contrib: $(OBJ)/tests/onnx/conformance
	@$< --ignore /dev/null tests/onnx/contrib

schema: $(OBJ)/tests/onnx/schema_dump
	@build/venv/bin/python tests/tools/check_schema.py $<

# Inferred types and shapes beside onnx's own inference and the recorded outputs.
shapes: $(OBJ)/tests/onnx/shape_dump
	@build/venv/bin/python tests/tools/check_shapes.py $< build/conformance tests/onnx/contrib \
	  $(wildcard $(MODELS) $(MODELS)/topologies) $(if $(wildcard $(MODELS)),--all)

# Every element type of every version that ONNX lists makes a session.
types: $(OBJ)/tests/onnx/shape_dump
	@build/venv/bin/python tests/tools/check_types.py $<

shape-versions: $(OBJ)/tests/onnx/shape_dump
	@build/venv/bin/python tests/tools/check_shape_versions.py $< build/conformance

OUT ?= build/coverage.md
coverage-table: build/bin/ort-inspect
	@build/bin/ort-inspect --supports --markdown -o $(OUT)
	$(if $(filter -,$(OUT)),,@sed -n 's/.*\. \([0-9]* operators,.*\)/$(subst /,\/,$(OUT)): \1/p' $(OUT))

# --check beside onnx.checker and onnxruntime's load: CHECK_MODELS="--count N --kinds GLOB --list NAME"
# Under sanitizers: the same with CFLAGS="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined"
# LDFLAGS="-fsanitize=address,undefined"; what they find counts as a crash of the model at which it came.
.PHONY: check-models check-models-sample
check-models: all $(OBJ)/tests/models/verdicts
	@build/venv/bin/python tests/tools/check_models.py --tool build/bin/ort-inspect $(CHECK_MODELS) \
	  $(OBJ)/tests/models/verdicts $(MODELS)
check-models-sample: $(OBJ)/tests/models/verdicts
	@build/venv/bin/python tests/tools/check_models.py --sample --count 8 $< $(MODELS)

models: all $(OBJ)/tests/models/models
	@$(OBJ)/tests/models/models $(MODELS)

# Real models after each pass alone and after all: what has the name that it had holds what it held.
.PHONY: names
names: all
	@build/venv/bin/python tests/tools/check_names.py $(wildcard $(MODELS)) models

parity: all $(OBJ)/tests/models/models
	@sh tests/tools/run_parity.sh $(OBJ)/tests/models/models $(MODELS) $(PARITY)

# ONLY="PATTERN ..." THREADS=LIST BENCH="--patience SECONDS --rounds N --limit SECONDS"
bench: all $(OBJ)/tests/bench/bench
	@sh tests/tools/run_bench.sh $(OBJ)/tests/bench/bench $(MODELS) $(BENCH)
.PHONY: bench-program
bench-program: $(OBJ)/tests/bench/bench
	@echo $<

# ort-optimize beside onnxslim, onnxsim and onnxruntime's offline files: BENCH_OPTIMIZE="--only GLOB"
bench-optimize: all $(OBJ)/tests/bench/bench
	@sh tests/tools/run_bench_optimize.sh $(OBJ)/tests/bench/bench $(MODELS) $(BENCH_OPTIMIZE)
# 4-bit weights beside onnxruntime's, on a language model of bytes.
.PHONY: bench-weights
bench-weights: all
	@sh tests/tools/run_bench_weights.sh $(MODELS)
# Time and memory of 4-bit weights on 1.1 billion parameters: BENCH_LARGE="--folder DIR --only hqq --layers 2"
.PHONY: bench-weights-large
bench-weights-large: all
	@build/venv/bin/python tests/tools/bench_weights_large.py $(BENCH_LARGE) build/bin
# SQNR of ort-quantize static beside onnxruntime.quantization: BENCH_QUANT="--only GLOB --effort"
.PHONY: bench-quant
bench-quant: all
	@sh tests/tools/run_bench_quant.sh $(MODELS) $(BENCH_QUANT)
# SQNR of ort-quantize dynamic beside onnxruntime.quantization: BENCH_QUANT="--only GLOB"
.PHONY: bench-quant-dynamic
bench-quant-dynamic: all
	@sh tests/tools/run_bench_quant.sh $(MODELS) --dynamic $(BENCH_QUANT)
# Time and memory of calibration beside onnxruntime.quantization: BENCH_CALIBRATE="--only GLOB"
.PHONY: bench-calibrate
bench-calibrate: all
	@sh tests/tools/run_bench_calibrate.sh $(MODELS) $(BENCH_CALIBRATE)
# Peak memory of each process of ort-quantize on 750 MB of weights, QUANTIZE_MEMORY="--layers 10": 2.2 GB, "--model FILE"
.PHONY: quantize-memory
quantize-memory: all
	@build/venv/bin/python tests/tools/check_quantize_memory.py $(QUANTIZE_MEMORY) build/bin
# Sizes of the files of ort-quantize against their limits, or QUANTIZE_SIZES="--times FACTOR"
.PHONY: quantize-sizes
quantize-sizes: all
	@ONLY="mobilenet_v2 resnet50 bert_base minilm_l6_v2" sh tests/tools/fill_topologies.sh $(MODELS) \
	    build/venv/bin/python >/dev/null
	@build/venv/bin/python tests/tools/check_quantize_sizes.py --models $(MODELS) $(QUANTIZE_SIZES) build/bin
# Quantized classifiers beside their float models: BENCH_AGREEMENT="--only GLOB --options ..."
.PHONY: bench-agreement
bench-agreement: all
	@sh tests/tools/run_bench_agreement.sh $(MODELS) $(BENCH_AGREEMENT)
# Start-up with and without pack files beside onnxruntime: BENCH_PACK="--only GLOB --launches N"
.PHONY: bench-pack
bench-pack: all $(OBJ)/tests/bench/bench
	@sh tests/tools/run_bench_pack.sh $(OBJ)/tests/bench/bench $(MODELS) $(BENCH_PACK)
# Two threads against one beside another process: BENCH_SHARED="--only GLOB --scene alone --rounds N"
.PHONY: bench-shared
bench-shared: all $(OBJ)/tests/bench/bench
	@sh tests/tools/run_bench_shared.sh $(OBJ)/tests/bench/bench $(MODELS) $(BENCH_SHARED)
bench-kernels: all
	@sh tests/tools/run_bench_kernels.sh $(MODELS)

# One row of products beside a loop that reads as many bytes: BENCH_READS="--isa avx2 --only '4 bits*'"
.PHONY: bench-reads
bench-reads: all $(OBJ)/tests/bench/reads/read_share
	@mkdir -p build/bench
	@build/venv/bin/python tests/tools/bench_reads.py $(OBJ)/tests/bench/reads/read_share build/bench $(BENCH_READS)

bench-figures: all
	@python3 tests/tools/bench_figures.py build/bin build/bench

# Damaged models, and allocations that fail; best with CFLAGS and LDFLAGS of -fsanitize=address,undefined.
FUZZ ?= --seed 1 --count 500
fuzz: $(OBJ)/tests/fuzz/mutate
	@$< $(FUZZ) models $(wildcard $(MODELS) build/conformance)

# Values, attributes, files and options that mean harm, on every tool, through fork servers around the
# tools' own mains: ATTACK="--seed N --minutes M --only KIND --sweep values". Best with sanitizers, as above.
define ATTACK_RULE
$(OBJ)/attack/$(1): $(OBJ)/tests/fuzz/attack/server.o $$(patsubst %.c,$(OBJ)/%.o,$$(wildcard cmd/$(1)/*.c)) \
  $(COMMON_OBJ) $(OBJ)/libort.a
	@mkdir -p $$(@D)
	$$(call say,LD,$$@)
	$$(Q)objcopy --redefine-sym main=tool_main $(OBJ)/cmd/$(1)/main.o $$@.o
	$$(Q)$$(CC) $$(CFLAGS_ALL) $$(LDFLAGS) $$(PACKED) -Wl,--gc-sections -o $$@ $$@.o \
	  $$(filter-out %/cmd/$(1)/main.o,$$^) $$(TOOL_LIBS)
endef
ATTACKED = ort-run ort-optimize ort-inspect ort-tensor ort-profile ort-draw
$(foreach t,$(ATTACKED),$(eval $(call ATTACK_RULE,$(t))))
.PHONY: attack
attack: $(ATTACKED:%=$(OBJ)/attack/%)
	@ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=16:allocator_may_return_null=1 \
	  build/venv/bin/python tests/fuzz/attack/attack.py $(OBJ)/attack $(ATTACK)

WRAPPED = malloc calloc realloc aligned_alloc posix_memalign strdup strndup free
$(OBJ)/tests/fault/alloc: WRAP_FLAGS = $(WRAPPED:%=-Wl,--wrap=%)
fault: $(OBJ)/tests/fault/alloc
	@$< $(FAULT) models

# Random cases of every operator beside onnxruntime, formulas and the reference evaluator: OPS= SEED= CASES=
SEED ?= 1
CASES ?= 200
# Extreme attributes and values under limits of memory and time: EXTREMES="--seed N --count N --only GLOB"
.PHONY: extremes
extremes: all
	@build/venv/bin/python tests/tools/extremes.py build/bin build/conformance tests/onnx/contrib $(EXTREMES)

# The drop-in's symbols, slots and size; its scenarios beside onnxruntime's own library.
.PHONY: abi
abi: all $(OBJ)/tests/abi/differ $(OBJ)/tests/abi/lifetimes
	@sh tests/tools/run_abi.sh $(OBJ)/tests/abi $(OBJ)/onnxruntime/libonnxruntime.so.1.txt $(MODELS)

# The same under sanitizers and Valgrind, ours alone: scenarios, eight threads on one session, a thousand
# environments, the library unloaded and loaded again.
.PHONY: abi-asan abi-tsan abi-valgrind abi-programs abi-alone
abi-programs: $(OBJ)/onnxruntime/libonnxruntime.so.1 $(OBJ)/tests/abi/differ $(OBJ)/tests/abi/lifetimes
abi-alone: abi-programs
	@sh tests/tools/run_abi_alone.sh $(OBJ)/tests/abi $(OBJ)/onnxruntime/libonnxruntime.so.1 $(RUNNER)
abi-asan:
	@$(MAKE) --no-print-directory abi-alone PLAIN_KERNELS=1 LDFLAGS="-fsanitize=address,undefined" \
	  CFLAGS="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined"
abi-tsan:
	@$(MAKE) --no-print-directory abi-alone CFLAGS="-O1 -g -fsanitize=thread" LDFLAGS="-fsanitize=thread"
abi-valgrind:
	@$(MAKE) --no-print-directory abi-alone RUNNER=valgrind

# Programs of PyPI that were built on onnxruntime, on the drop-in (250 MB to download once).
# bench-clients: rounds until it is decided, and whoever isn't ahead in time, start and peak memory fails:
# BENCH_CLIENTS="--only GLOB"
.PHONY: clients bench-clients
clients bench-clients: all $(OBJ)/tests/abi/ready.so
	@sh tests/tools/run_clients.sh $(OBJ)/tests/abi/ready.so $(MODELS) $(if $(filter bench-%,$@),--gates) $(BENCH_CLIENTS)

# What a run through the drop-in costs above ort_session_run, at most 0.5 us: BENCH_ABI="--rounds N --delay NS"
.PHONY: bench-abi
bench-abi: all $(OBJ)/tests/abi/run_cost
	@build/venv/bin/python tests/tools/make_abi_models.py build/abi
	@$(OBJ)/tests/abi/run_cost build/lib/onnxruntime/libonnxruntime.so.1 build/abi $(BENCH_ABI)

# Scoring on several machines with GNU parallel, Slurm and Dask, each with a worker that is killed.
.PHONY: recipes
recipes: all
	@sh tests/tools/run_recipes.sh

# Operators on integers beside their specification in 64 bits, on every tier: OPS= SEED=
.PHONY: exact
exact: all
	@build/venv/bin/python tests/tools/exact_operators.py --seed $(SEED) $(OPS)

# Files of onnxruntime's quantizers in each form: nothing between Q and DQ in float.
# Operators x types x forms, quantized by ort-quantize, here and in onnxruntime: QUANTIZE="--full --models DIR"
.PHONY: quantize-matrix
quantize-matrix: all
	@build/venv/bin/python tests/tools/check_quantize.py --full $(QUANTIZE) build/bin
	@build/venv/bin/python tests/tools/check_quantize_more.py --full $(QUANTIZE) \
	    --openvino build/venv-bench/bin/python build/bin

# The known ways in which int8 fails, planted: what ort-quantize says, and what avoids each.
.PHONY: quantize-failures
quantize-failures: all
	@build/venv/bin/python tests/tools/check_failures.py build/bin

# Files of ort-quantize for each tier and number of threads, also where float runs take another machine's tier.
$(OBJ)/planted/ort-quantize: $(OBJ)/tests/planted/own_tier.o $(patsubst %.c,$(OBJ)/%.o,$(wildcard cmd/ort-quantize/*.c)) \
    $(COMMON_OBJ) $(OBJ)/libort.a
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) $(PACKED) $(BARE) -Wl,--gc-sections -o $@ $^ $(TOOL_LIBS)
.PHONY: quantize-bytes
quantize-bytes: all $(OBJ)/planted/ort-quantize
	@build/venv/bin/python tests/tools/check_same_bytes.py --planted $(OBJ)/planted/ort-quantize build/bin models

# The digests of such files, for other processors to compare theirs with: after a change that is meant to choose other codes.
.PHONY: quantize-digests
quantize-digests: all
	@build/venv/bin/python tests/tools/check_quantize_digests.py --renew tests/tools/quantize_digests.json build/bin models

.PHONY: spellings
spellings: all
	@[ -z "$(NNCF)" ] || sh tests/tools/setup_venv.sh --nncf
	@build/venv/bin/python tests/tools/check_spellings.py --python-of-nncf build/venv-nncf/bin/python build/bin

.PHONY: fuzz-ops
fuzz-ops: all
	@build/venv/bin/python tests/tools/fuzz_ops.py --seed $(SEED) --cases $(CASES) $(OPS)

test:
	@sh tests/tools/run_tests.sh

demo:
	@sh tests/tools/run_demo.sh

check:
	@sh tests/tools/run_check.sh

lint: $(LIB_OBJ) $(patsubst %.c,$(OBJ)/%.o,$(wildcard cmd/*/*.c))
	@python3 tests/lint/lint.py $(OBJ)

# The share of tokens in runs of 40 that stand in lib/ and cmd/ twice: REPEATED="--longest N --limit PERCENT"
.PHONY: repeated
repeated:
	@python3 tests/tools/repeated.py $(REPEATED)

.PHONY: asserts
asserts:
	@python3 tests/tools/asserts.py

include packaging/install.mk

clean:
	rm -rf build/[0-9]* build/bin build/lib build/gen

-include $(wildcard $(OBJ)/abi/*.d $(OBJ)/lib/*.d $(OBJ)/lib/*/*.d $(OBJ)/lib/*/*/*.d $(OBJ)/lib/*/*/*/*.d $(OBJ)/cmd/*/*.d $(OBJ)/tests/*/*.d)
