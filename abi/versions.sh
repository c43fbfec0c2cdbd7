#!/bin/sh
# versions.sh map|symbols - the symbol versions at which both functions are exported.
#
# A program that is linked to a release of onnxruntime asks for OrtGetApiBase at that release's version
# (VERS_1.28.2; Debian's builds: VERS_1.21), and the loader refuses a library without it. So there is a
# node for each, up to some that don't exist yet. dlsym and new programs get the default, VERS_1.31.1.
#   map       the version script of the linker
#   symbols   the aliases, as an assembler statement of C
set -eu

default=VERS_1.31.1
functions='OrtGetApiBase OrtSessionOptionsAppendExecutionProvider_CPU'
releases=$(for minor in $(seq 0 40); do
    echo "VERS_1.$minor"
    for patch in 0 1 2 3 4; do echo "VERS_1.$minor.$patch"; done
done)

case $1 in
map)
    echo "$default { global: $(echo "$functions" | tr ' ' ';'); local: *; };"
    for release in $releases; do
        [ "$release" = $default ] || echo "$release { };"
    done
    ;;
symbols)
    for release in $releases; do
        at=@
        [ "$release" != $default ] || at=@@
        for function in $functions; do
            alias=$(echo "${function}_$release" | tr . _)
            echo "__asm__(\".globl $alias; .set $alias, abi_$function; .symver $alias, $function$at$release\");"
        done
    done
    ;;
esac
