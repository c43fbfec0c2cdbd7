/* reach.h - files that a model names: looked for beside the model, links followed, and opened only
 * where they lie below one of the folders that it may reach.
 *
 * A name comes from a hostile file, and the folder around the model may be one that a stranger
 * packed. So nothing is judged by its name: the folder in which a file was found is held open, and
 * must be one of these or lie below one of them, whatever links were put there meanwhile. That
 * takes neither /proc nor a new kernel. (A hard link is a file's own name: it is no matter.)
 *
 * A model may reach the folder of its path as given, that of each file its path leads to when it is
 * a link, and folders that the caller adds. One that lies in a cache of models, where files are
 * links into a store (PREFIX/models--NAME/snapshots/REVISION/... and PREFIX/models--NAME/blobs),
 * may also be led to what lies elsewhere in that cache of this one model.
 */
#ifndef ORT_IO_REACH_H
#define ORT_IO_REACH_H

#include <sys/stat.h>

#include "base/arena.h"
#include "base/vec.h"
#include "ort.h"

typedef struct ort_folder {
    const char *path;
    uint64_t device, inode; /* of the folder that was meant: another of that name is none */
} ort_folder;

typedef struct ort_reach {
    ORT_VEC(ort_folder) folders; /* where names are looked for, in this order; none: nowhere */
    const ort_external_file *files; /* names that stand for the caller's memory. Borrowed */
    size_t file_count;
} ort_reach; /* all zero is valid and empty */

/* Opens the file of a model for reading and adds the folders that are its own. -1: errno says why.
 */
int ort_reach_open_model(ort_reach *reach, const char *path);
/* Adds a folder of the caller's; ORT_ERROR_IO where there is none. */
ort_status ort_reach_add(ort_reach *reach, const char *path, ort_error *err);
/* The caller's memory of that name, or NULL. */
const ort_external_file *ort_reach_given(const ort_reach *reach, const char *name);
/* A copy for the life of an arena, not to be released. */
ort_status ort_reach_copy(const ort_reach *reach, ort_arena *arena, ort_reach *copy,
                          ort_error *err);
void ort_reach_release(ort_reach *reach);

/* Opens the regular file `name`, relative to the folders, for reading. ORT_ERROR_IO: there is none;
 * ORT_ERROR_MODEL: one that may not be reached, or no file. Never waits. */
ort_status ort_reach_open(const ort_reach *reach, const char *name, int *fd, ort_error *err);

#endif
