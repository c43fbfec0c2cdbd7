/* samples.h - the sets of inputs that calibration and checks run on, one after the other, in as
 * many passes as are wanted. One of them is in memory at a time, with the file that it lies in. */
#ifndef ORT_QUANTIZE_SAMPLES_H
#define ORT_QUANTIZE_SAMPLES_H

#include <stdio.h>

#include "common/feed.h"
#include "rows.h"

enum { SAMPLES_MADE_UP = 8 }; /* of --random, unless --samples says how many */

typedef struct sample_options {
    feed_options from;
    int64_t most; /* --samples; 0: all */
    /* Samples that another process left here (made_up.c, steps.c), and how many; or NULL. */
    FILE *kept;
    size_t kept_count;
    bool partial; /* a sample may lack inputs: those of a recurrence, whose first steps they are */
    int64_t rows; /* --rows: of a value's first axis, in each sample; 0: as the model and the
                   * kind of file say */
    bool verbose;
    int64_t part, parts; /* --shard: samples number part, part + parts, ... alone; parts 0: all */
} sample_options;

typedef struct samples {
    sample_options options;
    ort_session *session; /* of the model's inputs alone, for their names and types */
    string_list named, files; /* of -i: NAME=..., and the others */
    string_list defaults;     /* inputs of the model that keep theirs: none of the session */
    feed_options from;
    feed feed;
    row_cutter rows;
    ort_value **inputs; /* of the present sample, for the session; borrowed, NULL: its default */
    ort_value **whole;  /* of the record that it is cut out of */
    ort_value **given;  /* of the present sample, for the model: NULL where it has a default */
    ort_value **made;   /* read from what was kept, owned */
    size_t *at_model;   /* by input of the session: its place among the model's */
    FILE *kept;         /* open for this pass */
    bool random;        /* for reports: they were made up */
    bool fresh;         /* the present one is the first of its file or stream */
    size_t count;       /* of inputs of the session */
    size_t given_count; /* of the model */
    size_t at;          /* samples of this pass so far */
    int64_t passed;     /* ... and with those of other parts */
    bool open, ended;
    char *place;
    long known;         /* samples of a pass; -1: none has ended */
    uint64_t hash;      /* of this pass so far */
    char digest[17];
    size_t odd;         /* samples of the first pass that hold NaN or infinity */
    char *odd_place;
} samples;

/* For the inputs of a model, which `path` names in messages. The options are read until the samples
 * are closed. 0 or an exit status. */
int samples_open(samples *s, const sample_options *o, ort_env *env, ort_model *model,
                 const char *path);
/* s->inputs become those of the next sample. *end: there is none, and the next pass begins anew. */
int samples_next(samples *s, bool *end);
/* A sample with all inputs of the model, for the samples of other processes (options.kept). */
bool samples_keep(FILE *file, const char *place, ort_value *const *values, size_t count);
/* ---- strangers.c */
/* Names of arrays in the present record that are no inputs; false where nothing is to be told. */
bool strangers_tell(const samples *s);
/* The error of a record without a value for an input, which may have it by another name. */
int strangers_lack(const samples *s, size_t input);

/* ---- samples.c */
/* What failed with the present sample, as an error that names it, and what would help. */
int samples_fail(const samples *s, const char *path, ort_error *err);
/* How much of this pass is done, 0 to 1, as far as that can be told. */
double samples_share(const samples *s);
/* Of types, shapes and bytes of all samples, after a pass: 16 hexadecimal digits; else NULL. */
const char *samples_digest(const samples *s);
/* What a pass found (number, digest, whether it warned), from the process that made it to the one
 * that goes on. False: it isn't there. */
void samples_write(const samples *s, FILE *file);
bool samples_read(samples *s, FILE *file);
/* What the first pass warns of, another process has said. */
void samples_mute(void);
void samples_close(samples *s);

#endif
