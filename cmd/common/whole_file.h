/* whole_file.h - an output file that appears whole or not at all: written under another name,
 * renamed when complete. Standard output, devices and pipes are written directly. */
#ifndef COMMON_WHOLE_FILE_H
#define COMMON_WHOLE_FILE_H

#include <stdio.h>

typedef struct whole_file {
    const char *path;
    char *temporary; /* NULL: written directly */
    FILE *stream;
} whole_file;

/* path NULL or "-": standard output. Returns 0 or an exit status after saying why. */
int whole_file_open(whole_file *f, const char *path);
/* status 0: the file takes its place; else it goes away. Returns `status`, or EXIT_DATA after
 * saying why. */
int whole_file_close(whole_file *f, int status);

#endif
