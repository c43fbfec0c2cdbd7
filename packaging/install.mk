# install.mk - what leaves the build: install, install-debug, uninstall, dist, deb. Included by the Makefile.
#
# DESTDIR stands in front of every path; PREFIX, BINDIR, LIBDIR, INCLUDEDIR, DATADIR and MANDIR are the
# Makefile's. Files are installed stripped; install-debug puts what was stripped where debuggers look by
# build-id. uninstall removes what install and install-debug write, and the folders below share/ and
# pkgconfig/ that are empty then.

DOCDIR   ?= $(DATADIR)/doc/ort-tools
DEBUGDIR ?= $(LIBDIR)/debug
BASHDIR  ?= $(DATADIR)/bash-completion/completions
ZSHDIR   ?= $(DATADIR)/zsh/site-functions
FISHDIR  ?= $(DATADIR)/fish/vendor_completions.d
D        = $(DESTDIR)
# stripped FILE,TARGET,MODE,WHAT: UNSTRIPPED=1 leaves that to a packager's own tools.
stripped = $(if $(UNSTRIPPED),cp $1 $2,$(STRIP) $4 -o $2 $1) && chmod $3 $2
HEADERS  := ort.h ort_ops.h ort_tools.h ort_provider.h
EXAMPLES := $(wildcard examples/*) plugins/example/example.c
PICTURES := $(wildcard doc/*)
MANUALS  := $(wildcard man/*.[1-9])

# Made by asking the tools; RUN is the emulator where they are another machine's.
COMPLETIONS := $(foreach s,bash zsh fish,$(TOOLS:%=build/completions/%.$s))
build/completions/%: packaging/completions.sh $(TOOLS:%=build/bin/%)
	@mkdir -p $(@D)
	@$(RUN) build/bin/$(basename $*) --help=table | \
	  sh packaging/completions.sh $(subst .,,$(suffix $*)) $(basename $*) > $@.new && mv $@.new $@

.PHONY: completions install install-debug uninstall dist deb same-bytes roots musl aarch64
completions: $(COMPLETIONS)
install: all completions
	install -d $(D)$(BINDIR) $(D)$(LIBDIR)/pkgconfig $(D)$(INCLUDEDIR) $(D)$(DOCDIR)/examples $(D)$(DOCDIR)/doc \
	  $(sort $(foreach m,$(MANUALS),$(D)$(MANDIR)/man$(subst .,,$(suffix $m)))) \
	  $(D)$(BASHDIR) $(D)$(ZSHDIR) $(D)$(FISHDIR)
	for t in $(TOOLS); do $(call stripped,build/bin/$$t,$(D)$(BINDIR)/$$t,755) || exit; done
	$(call stripped,build/lib/libort.so,$(D)$(LIBDIR)/libort.so.$(VERSION),644,--strip-unneeded)
	ln -sf libort.so.$(VERSION) $(D)$(LIBDIR)/$(SONAME)
	ln -sf $(SONAME) $(D)$(LIBDIR)/libort.so
	install -d $(D)$(LIBDIR)/ort-tools/onnxruntime
	$(call stripped,build/lib/onnxruntime/libonnxruntime.so.1,$(D)$(LIBDIR)/ort-tools/onnxruntime/libonnxruntime.so.1,644,--strip-unneeded)
	ln -sf libonnxruntime.so.1 $(D)$(LIBDIR)/ort-tools/onnxruntime/libonnxruntime.so
	$(call stripped,build/lib/libort.a,$(D)$(LIBDIR)/libort.a,644,--strip-debug -D)
	install -m 644 build/lib/pkgconfig/ort.pc $(D)$(LIBDIR)/pkgconfig
	install -m 644 $(HEADERS:%=lib/%) $(D)$(INCLUDEDIR)
	for m in $(MANUALS); do install -m 644 $$m $(D)$(MANDIR)/man$${m##*.}/ || exit; done
	install -m 644 README.md BENCHMARKS.md CHANGELOG.md LICENSE $(D)$(DOCDIR)
	install -m 644 $(PICTURES) $(D)$(DOCDIR)/doc
	install -m 644 $(EXAMPLES) $(D)$(DOCDIR)/examples
	for t in $(TOOLS); do \
	  install -m 644 build/completions/$$t.bash $(D)$(BASHDIR)/$$t && \
	  install -m 644 build/completions/$$t.zsh $(D)$(ZSHDIR)/_$$t && \
	  install -m 644 build/completions/$$t.fish $(D)$(FISHDIR)/$$t.fish || exit; done

# Providers that aren't built in, where PROVIDERDIR of ort.pc says; those that this build has, or PLUGINS=.
.PHONY: install-plugins
install-plugins: plugins
	install -d $(D)$(LIBDIR)/ort-tools/providers
	for p in $(PLUGINS); do $(call stripped,build/lib/providers/ort-provider-$$p.so,$(D)$(LIBDIR)/ort-tools/providers/ort-provider-$$p.so,644,--strip-unneeded) || exit; done

# The symbols that install strips, found by debuggers through the build-id of each file.
install-debug: all
	for f in $(TOOLS:%=build/bin/%) build/lib/libort.so build/lib/onnxruntime/libonnxruntime.so.1; do \
	  id=$$(LC_ALL=C readelf -n $$f | sed -n 's/.*Build ID: //p'); \
	  to=$(D)$(DEBUGDIR)/.build-id/$$(printf '%.2s' $$id); mkdir -p $$to; \
	  $(OBJCOPY) --only-keep-debug --compress-debug-sections $$f $$to/$${id#??}.debug || exit; \
	  chmod 644 $$to/$${id#??}.debug; done

uninstall:
	rm -f $(TOOLS:%=$(D)$(BINDIR)/%) $(D)$(LIBDIR)/libort.so.$(VERSION) $(D)$(LIBDIR)/$(SONAME) \
	  $(D)$(LIBDIR)/libort.so $(D)$(LIBDIR)/libort.a $(D)$(LIBDIR)/pkgconfig/ort.pc \
	  $(HEADERS:%=$(D)$(INCLUDEDIR)/%) $(foreach m,$(MANUALS),$(D)$(MANDIR)/man$(subst .,,$(suffix $m))/$(notdir $m)) \
	  $(TOOLS:%=$(D)$(BASHDIR)/%) $(TOOLS:%=$(D)$(ZSHDIR)/_%) $(TOOLS:%=$(D)$(FISHDIR)/%.fish)
	rm -rf $(D)$(DOCDIR) $(D)$(LIBDIR)/ort-tools/onnxruntime $(D)$(LIBDIR)/ort-tools/providers
	for f in $(TOOLS:%=build/bin/%) build/lib/libort.so build/lib/onnxruntime/libonnxruntime.so.1; do \
	  [ -f $$f ] || continue; id=$$(LC_ALL=C readelf -n $$f | sed -n 's/.*Build ID: //p'); \
	  rm -f $(D)$(DEBUGDIR)/.build-id/$$(printf '%.2s' $$id)/$${id#??}.debug; done
	if [ -d $(D)$(DEBUGDIR) ]; then find $(D)$(DEBUGDIR) -depth -type d -empty -delete; fi
	for d in $(BASHDIR) $(DATADIR)/bash-completion $(ZSHDIR) $(DATADIR)/zsh $(FISHDIR) $(DATADIR)/fish \
	  $(foreach n,1 3 5 7,$(MANDIR)/man$n) $(LIBDIR)/ort-tools $(LIBDIR)/pkgconfig $(dir $(DOCDIR)); do \
	  [ ! -d $(D)$$d ] || rmdir --ignore-fail-on-non-empty $(D)$$d; done

# ---- releases

DIST = ort-tools-$(VERSION)

# The tree of the last commit; the same commit gives the same bytes.
dist:
	@mkdir -p build/dist
	git archive --format=tar --prefix=$(DIST)/ HEAD | gzip -9n > build/dist/$(DIST).tar.gz
	@cd build/dist && sha256sum $(DIST).tar.gz

# Packages for the Debian at hand, from the last commit, without a signature: build/deb/*.deb, looked at by
# lintian. The project has no mail host of its own; DEBEMAIL names who makes the packages.
MAINTAINER = $(or $(DEBFULLNAME),the ort-tools authors) <$(or $(DEBEMAIL),ort-tools@localhost)>
LINTIAN    = lintian --info --fail-on error,warning \
  $(if $(DEBEMAIL),,--suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog)
deb: dist
	@rm -rf build/deb && mkdir -p build/deb
	cp build/dist/$(DIST).tar.gz build/deb/ort-tools_$(VERSION).orig.tar.gz
	tar -xf build/dist/$(DIST).tar.gz -C build/deb
	cp -r packaging/debian build/deb/$(DIST)/debian
	sed -i 's|@MAINTAINER@|$(MAINTAINER)|; s|@VERSION@|$(VERSION)|; s|@DATE@|$(shell git log -1 --format=%aD)|' \
	  build/deb/$(DIST)/debian/control build/deb/$(DIST)/debian/changelog
	cd build/deb/$(DIST) && dpkg-buildpackage -us -uc
	@ls -l build/deb/*.deb
	@if command -v lintian >/dev/null; then cd build/deb && $(LINTIAN) ort-tools_$(VERSION)-*.changes; \
	  else echo "lintian is not here: the packages were not looked at"; fi

# Two builds of the last commit give the same bytes: what is installed and released, with SAME=deb the packages.
same-bytes:
	@bash tests/tools/run_same_bytes.sh $(SAME)

# The tree in fresh Debian 12 and 13: ROOTS="bookworm trixie", ROOTS_TEST=1 runs make test there too.
roots: dist
	@MODELS='$(abspath $(MODELS))' bash tests/tools/run_roots.sh $(ROOTS)

# The model set with another C library, and on another processor under emulation.
musl aarch64:
	@bash tests/tools/run_cross.sh $@ $(MODELS)
