/* library.c - shared objects that add something to an environment: opened with dlopen, known by the
 * one table that they export, so that no code of theirs runs before its version was read.
 */
#include "exec/library.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

/* What dlopen says opens with the path, which stands in front of our message already. */
static const char *reason(const char *path)
{
    const char *text = dlerror();
    size_t length = strlen(path);
    if (!text)
        return "unknown reason";
    return !strncmp(text, path, length) && text[length] == ':' ? text + length + 2 : text;
}

/* Was it cut off? The dynamic loader maps what the headers promise, and dies of a signal where the
 * file ends before. What is no 64-bit ELF file at all is left to its own message. */
static bool is_cut(const char *path)
{
    struct stat info;
    Elf64_Ehdr head;
    Elf64_Phdr part;
    FILE *file = fopen(path, "rbe");
    if (!file)
        return false;
    bool cut = false, elf = fread(&head, sizeof head, 1, file) == 1 &&
                            !memcmp(head.e_ident, ELFMAG, SELFMAG) &&
                            head.e_ident[EI_CLASS] == ELFCLASS64 &&
                            fstat(fileno(file), &info) == 0 && S_ISREG(info.st_mode);
    for (size_t i = 0; elf && !cut && i < head.e_phnum; i++) {
        uint64_t size = (uint64_t)info.st_size, at = head.e_phoff + i * sizeof part;
        cut = head.e_phentsize != sizeof part || at > size ||
              fseeko(file, (off_t)at, SEEK_SET) != 0 || fread(&part, sizeof part, 1, file) != 1 ||
              (part.p_type == PT_LOAD &&
               (part.p_offset > size || part.p_filesz > size - part.p_offset));
    }
    fclose(file);
    return cut;
}

/* A bare name is a file of this folder, as for every other argument, not one of the search path. */
static ort_status open_object(const char *path, void **handle, ort_error *err)
{
    char local[4200];
    if (access(path, R_OK) != 0)
        return ort_error_set(err, ORT_ERROR_IO, "%s: can't be opened: %s", path, strerror(errno));
    const char *found = path;
    if (!strchr(path, '/') && snprintf(local, sizeof local, "./%s", path) < (int)sizeof local)
        found = local;
    if (is_cut(found))
        return ort_error_set(err, ORT_ERROR_IO, "%s: the file ends before what its headers promise "
                             "(a truncated download?)", path);
    *handle = dlopen(found, RTLD_NOW | RTLD_LOCAL);
    if (!*handle)
        return ort_error_set(err, ORT_ERROR_IO, "%s: can't be loaded as a shared object: %s", path,
                             reason(found));
    return ORT_OK;
}

ort_status ort_library_open(const char *path, const char *entry, const char *what, void **handle,
                            const void **table, ort_error *err)
{
    ORT_TRY(open_object(path, handle, err));
    *table = dlsym(*handle, entry);
    if (*table)
        return ORT_OK;
    dlclose(*handle);
    return ort_error_set(err, ORT_ERROR_USAGE, "%s: is no %s library: it exports no '%s' (%s)",
                         path, what, entry,
                         *what == 'o' ? "ort.h, custom operators" : "ort_provider.h");
}

void ort_library_close(void *handle)
{
    dlclose(handle);
}
