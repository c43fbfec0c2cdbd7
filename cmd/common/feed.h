/* feed.h - one set of model inputs per run, from options, files, folders, a stream or a seed. */
#ifndef COMMON_FEED_H
#define COMMON_FEED_H

#include "common/operations.h"

typedef struct feed_options {
    const string_list *inputs; /* -i */
    const char *random;        /* --random, or NULL */
    bool stream, stack;
    ort_format format;         /* --from, or AUTO */
    const string_list *ids, *drops; /* --id, --drop: columns of tables; or NULL */
    /* Each file is a run, however many there are; what can't be read twice is copied (spool.h). */
    bool samples;
    operations *operations; /* run over what files hold; or NULL */
    int64_t part, parts; /* the runs number part, part + parts, ... alone (from 1); parts 0: all */
} feed_options;

/* -i NAME=FOLDER: a file for each run. */
typedef struct feed_column {
    size_t input;
    string_list files;
    ort_tensors *record; /* of the present run */
} feed_column;

typedef struct feed {
    const feed_options *options;
    const ort_session *session;
    size_t count;           /* inputs of the session */
    ort_purpose *purposes;  /* of inputs: those that have no default, in order, then the others */
    size_t *order;          /* [count] their indices among the inputs */
    size_t required;        /* how many have none */
    ort_value **fixed;      /* [count] the same in every run; NULL: comes from the source */
    ort_tensors *held;      /* what keeps those alive */
    string_list sources;    /* folders of files that -i named */
    string_list files;      /* one run per file */
    size_t next_file;
    int target;             /* the input that they are for; -1: their values tell */
    feed_column *columns;
    size_t column_count, taken;
    ort_value **changed;    /* [count] what operations made of values of the present run */
    FILE *stream;           /* one run per record */
    string_list streams;    /* the files of records that follow */
    size_t next_stream;
    ort_tensors *ahead;     /* of the first of several files: looked at before it is used */
    ort_tensors *record;    /* holds the values of the present run */
    uint64_t seed;
    bool random;            /* fill what nobody gave */
    bool once;              /* everything is fixed: a single run */
    bool done;
    bool tables;            /* --id and --drop were heard */
    const char *label;      /* of the stream, for messages */
    size_t in_stream;       /* records of it so far */
    int64_t number;         /* of the present run among all, those of other parts too; from 1 */
    char *place;            /* of the present record */
} feed;

/* Sort the options and positional files into fixed inputs and a source of runs. The options are
 * read until the feed is closed. */
int feed_open(feed *f, const feed_options *o, const ort_session *session,
              const string_list *files);
/* Inputs of the next run (borrowed; NULL where nobody gave one). *end: there is none. */
int feed_next(feed *f, ort_value **inputs, bool *end);
void feed_close(feed *f);
/* What the present run was made of: its record, else what all runs share. Or NULL. */
const ort_tensors *feed_record(const feed *f);
/* Where the present run comes from, for messages: a file, "standard input, record 3". */
const char *feed_place(const feed *f);
/* Is it a table, whose rows are many inputs? Of a stream without --from: by its first bytes. */
bool feed_is_table(const feed *f);
/* How much of what there is has been taken, 0 to 1: by files, and by the bytes of a stream. */
double feed_share(const feed *f);
/* Index of a session input by name; complains with the list of valid names. -1. */
int feed_input_index(const ort_session *session, const char *name);

#endif
