# install.mk - what leaves the build: install, install-debug, uninstall, dist, deb. Included by the Makefile.
#
# DESTDIR stands in front of every path; PREFIX, BINDIR, LIBDIR, INCLUDEDIR, DATADIR and MANDIR are the
# Makefile's. Files are installed stripped; install-debug puts what was stripped where debuggers look by
# build-id. uninstall removes what install and install-debug write, and folders of our own.

DOCDIR   ?= $(DATADIR)/doc/ort-tools
DEBUGDIR ?= $(LIBDIR)/debug
BASHDIR  ?= $(DATADIR)/bash-completion/completions
ZSHDIR   ?= $(DATADIR)/zsh/site-functions
FISHDIR  ?= $(DATADIR)/fish/vendor_completions.d
D        = $(DESTDIR)
EXAMPLES := $(wildcard examples/*)
MANUALS  := $(wildcard man/*.[1-9])

.PHONY: install install-debug uninstall dist deb roots
install: all
	install -d $(D)$(BINDIR) $(D)$(LIBDIR)/pkgconfig $(D)$(INCLUDEDIR) $(D)$(DOCDIR)/examples \
	  $(sort $(foreach m,$(MANUALS),$(D)$(MANDIR)/man$(subst .,,$(suffix $m)))) \
	  $(D)$(BASHDIR) $(D)$(ZSHDIR) $(D)$(FISHDIR)
	for t in $(TOOLS); do $(STRIP) -o $(D)$(BINDIR)/$$t build/bin/$$t && chmod 755 $(D)$(BINDIR)/$$t || exit; done
	$(STRIP) --strip-unneeded -o $(D)$(LIBDIR)/libort.so.$(VERSION) build/lib/libort.so
	chmod 755 $(D)$(LIBDIR)/libort.so.$(VERSION)
	ln -sf libort.so.$(VERSION) $(D)$(LIBDIR)/$(SONAME)
	ln -sf $(SONAME) $(D)$(LIBDIR)/libort.so
	$(STRIP) --strip-debug --enable-deterministic-archives -o $(D)$(LIBDIR)/libort.a build/lib/libort.a
	chmod 644 $(D)$(LIBDIR)/libort.a
	install -m 644 build/lib/pkgconfig/ort.pc $(D)$(LIBDIR)/pkgconfig
	install -m 644 lib/ort.h $(D)$(INCLUDEDIR)
	for m in $(MANUALS); do install -m 644 $$m $(D)$(MANDIR)/man$${m##*.}/ || exit; done
	install -m 644 README.md LICENSE $(wildcard CHANGELOG.md) $(D)$(DOCDIR)
	install -m 644 $(EXAMPLES) $(D)$(DOCDIR)/examples
	for t in $(TOOLS); do \
	  install -m 644 build/completions/$$t.bash $(D)$(BASHDIR)/$$t && \
	  install -m 644 build/completions/$$t.zsh $(D)$(ZSHDIR)/_$$t && \
	  install -m 644 build/completions/$$t.fish $(D)$(FISHDIR)/$$t.fish || exit; done

# The symbols that install strips, found by debuggers through the build-id of each file.
install-debug: all
	for f in $(TOOLS:%=build/bin/%) build/lib/libort.so; do \
	  id=$$(LC_ALL=C readelf -n $$f | sed -n 's/.*Build ID: //p'); \
	  to=$(D)$(DEBUGDIR)/.build-id/$$(printf '%.2s' $$id); mkdir -p $$to; \
	  $(OBJCOPY) --only-keep-debug --compress-debug-sections $$f $$to/$${id#??}.debug || exit; \
	  chmod 644 $$to/$${id#??}.debug; done

uninstall:
	rm -f $(TOOLS:%=$(D)$(BINDIR)/%) $(D)$(LIBDIR)/libort.so.$(VERSION) $(D)$(LIBDIR)/$(SONAME) \
	  $(D)$(LIBDIR)/libort.so $(D)$(LIBDIR)/libort.a $(D)$(LIBDIR)/pkgconfig/ort.pc \
	  $(D)$(INCLUDEDIR)/ort.h $(foreach m,$(MANUALS),$(D)$(MANDIR)/man$(subst .,,$(suffix $m))/$(notdir $m)) \
	  $(TOOLS:%=$(D)$(BASHDIR)/%) $(TOOLS:%=$(D)$(ZSHDIR)/_%) $(TOOLS:%=$(D)$(FISHDIR)/%.fish)
	rm -rf $(D)$(DOCDIR)
	for f in $(TOOLS:%=build/bin/%) build/lib/libort.so; do \
	  [ -f $$f ] || continue; id=$$(LC_ALL=C readelf -n $$f | sed -n 's/.*Build ID: //p'); \
	  rm -f $(D)$(DEBUGDIR)/.build-id/$$(printf '%.2s' $$id)/$${id#??}.debug; done
	-find $(D)$(DEBUGDIR) -depth -type d -empty -delete 2>/dev/null
