/* scratch.h - a model file that is made beside its place, looked at there, and then put in its
 * place or taken away. Weights that a model spills (NAME.data) go the same way, before it. */
#ifndef COMMON_SCRATCH_H
#define COMMON_SCRATCH_H

typedef struct scratch {
    char *folder;
    char *target; /* where the file is to stand, links followed; NULL: it is copied to `output` */
    const char *output;
    char *model, *data; /* in the folder: write the first; the second appears beside it */
} scratch;

/* For an output "-", a device or a pipe the folder lies under TMPDIR. One at a time; a signal that
 * ends the tool removes it. Returns 0 or an exit status after saying why. */
int scratch_open(scratch *s, const char *output);
/* status 0: what was written takes its place; else it goes away. Returns `status`, or why not. */
int scratch_close(scratch *s, int status);
/* What was written goes away in any case. Returns `status`. */
int scratch_drop(scratch *s, int status);

/* Can a file be put there? Asked before long work. 0 or an exit status. */
int scratch_try(const char *output);

#endif
