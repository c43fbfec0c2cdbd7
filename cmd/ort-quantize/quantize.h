/* quantize.h - the pieces of ort-quantize: options, one file a verb, and what all of them end with.
 *
 * A verb makes a model of a model. Closing writes it beside its place, opens that file again, runs
 * it on the samples, and only then puts it in place.
 */
#ifndef ORT_QUANTIZE_TOOL_H
#define ORT_QUANTIZE_TOOL_H

#include "common/progress.h"
#include "common/settings.h"
#include "samples.h"

typedef struct quantize_options {
    settings settings;
    const char *verb; /* NULL: what suits the model */
#define OPTION OPTION_MEMBER /* a member for each option that has a value */
#define GROUP OPTION_NO_MEMBER
#define ROWS OPTION_NO_MEMBER
#include "options.def"
    operations operations; /* on samples */
} quantize_options;

/* Nodes by ort_quantizer_node that stay float because their codes would cost too much. */
typedef struct kept_nodes {
    size_t *index, count;
} kept_nodes;

typedef struct quantizing {
    quantize_options options;
    const option_row *rows; /* of the options */
    const char *path; /* of the model */
    string_list files; /* MODEL, and what stands behind it */
    ort_env *env;
    ort_model *original, *made;
    char *folder; /* where weights are kept meanwhile that memory shouldn't hold */
    char ranges_of[80]; /* what --ranges come of, for the stamp; "": none */
    char tier[16]; /* of the runs that they come of */
    char *choice; /* of nodes and codes, for the stamp; NULL: none was made */
    samples samples; /* opened by the first that is asked for */
    FILE *sample_file; /* samples that are no files of the caller: of --random, steps of --carry;
                        * NULL: not made yet */
    size_t sample_count;
    bool unrolling, unrolled; /* of --carry: first steps are read; steps are there */
    int64_t part, parts; /* of --shard; 0 without */
    progress progress, whole; /* whole: of choosing among several models */
    size_t fold, folds; /* ranges and layers don't learn from every folds-th sample, from number
                         * fold on; folds 0: from all */
    kept_nodes kept;
    struct json_object *kept_float; /* of these, for the report: names, their share */
    struct json_object *frontier; /* of --auto, for the report; or NULL */
} quantizing;

/* Is the sample that a pass is at one of those? */
static inline bool is_held_out(const quantizing *q, size_t at)
{
    return q->folds > 0 && at % q->folds == q->fold;
}

static inline bool is_quiet(const quantizing *q)
{
    return q->options.settings.no_progress || q->options.settings.quiet;
}

/* --keep-sensitive, or its default: percent of the model's multiply-adds. */
double keep_sensitive(const quantizing *q);

/* q->original, unless it is there. */
int load_original(quantizing *q, load_weights weights);

/* One thing at most comes from stdin, and goes to stdout: 0, or an exit status (streams.c). */
int check_streams(const quantizing *q);
/* Does a file go to stdout, where reports go else? */
bool takes_stdout(const quantize_options *o);

/* Is there a gate that the report of the result has to pass? (judged.c) */
bool gates_asked(const quantize_options *o);

/* Verbs: 0 or an exit status. */
int verb_dynamic(quantizing *q);
int verb_static(quantizing *q);
int verb_calibrate(quantizing *q);
int verb_weights(quantizing *q);
int verb_evaluate(quantizing *q);
int verb_suggest(quantizing *q);

/* Where none is given: q->options.verb becomes the one that suits the model, which stderr tells. A
 * model from standard input is q->original then. */
int suggest_verb(quantizing *q);

/* Before the first sample is asked for: all of the three below. 0 or an exit status. */
int prepare_samples(quantizing *q);
/* Samples of --random, if they aren't there: processes made of this one share them. */
int make_up_samples(quantizing *q);
/* With --carry: each step of the float model's runs over the samples becomes a sample. */
int unroll_samples(quantizing *q);
/* What -i reads of streams becomes files that several processes can read. */
int spool_samples(quantizing *q);
/* The next of q->samples. */
int next_sample(quantizing *q, bool *end);

/* Each sample, in order. fn gets `arg`, and the inputs of q->original in order (NULL: its default).
 * `what` stands in the progress. */
typedef ort_status sample_fn(void *arg, ort_value *const *inputs, size_t count, ort_error *err);
int each_sample(quantizing *q, const char *what, sample_fn *fn, void *arg);

/* Metadata of q->made: its verb's options, and the samples. */
int stamp_made(quantizing *q);

/* q->made written, opened again, run on the samples, and in place. */
int closing_save(quantizing *q);

#endif
