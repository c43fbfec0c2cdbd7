/* ort_tools.h - what the tools do with models beside running them; ort.h includes it.
 *
 * Profiles of runs, reports on models as JSON, values compared, rewrites verified, made-up inputs.
 * A program that only runs models needs none of it. The rules of ort.h hold.
 */
#ifndef ORT_TOOLS_H
#define ORT_TOOLS_H

#include "ort.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ---------------------------------------------------------------------------------- profiles -- */

/* What a session's runs spend their time on. Runs given this profile in their options are recorded;
 * those before ort_profile_start are warm-up and stay out of all figures but "first_ms" and the
 * trace. One recorded run at a time; the session must outlive the profile. */
typedef struct ort_profile_options {
    size_t size;
    size_t max_events; /* executions of nodes kept for trace and percentiles; 0: 1,000,000 */
    bool cycles;       /* count processor cycles too, where the system allows it; costs a system
                          call or two per node */
    uint64_t load_ns;  /* time that loading the model took, for a session made of a model */
} ort_profile_options;
#define ORT_PROFILE_OPTIONS_INIT {sizeof(ort_profile_options), 0, false, 0}
ORT_INIT_(ort_profile_options, ORT_PROFILE_OPTIONS_INIT)

ORT_WARN_UNUSED ort_status ort_profile_new(const ort_session *session,
                                           const ort_profile_options *options,
                                           ort_profile **profile, ort_error *err);
void ort_profile_free(ort_profile *profile);
void ort_profile_start(ort_profile *profile); /* the runs from here on are measured */

/* What the machine reaches: multiply-adds (two operations each) in registers, and streams through a
 * working set of each size, with all threads of an environment together. */
enum { ORT_PEAK_LEVELS = 4 };
typedef struct ort_peak {
    size_t size;
    int threads;
    double gflops;
    double ghz; /* the clock of one core, by a chain of multiplications; 0: not known here */
    int level_count;
    struct {
        size_t bytes;        /* the working set that was measured */
        size_t serves_bytes; /* stands for working sets up to this */
        double gb_per_s;
    } levels[ORT_PEAK_LEVELS]; /* smallest first */
    double int8_gops; /* as gflops, of the instructions that multiply bytes exactly */
    double tile_gflops; /* of floats on tiles, three bfloat16 each; 0: the tier has none */
} ort_peak;
#define ORT_PEAK_INIT {sizeof(ort_peak), 0, 0, 0, 0, {{0, 0, 0}}, 0, 0}
ORT_INIT_(ort_peak, ORT_PEAK_INIT)
/* Takes about a quarter of a second. */
ORT_WARN_UNUSED ort_status ort_env_measure_peak(const ort_env *env, ort_peak *peak,
                                                ort_error *err);

/* JSON text (schema "ort-profile/1", described in ort-profile(1)) that the caller frees with
 * ort_text_free. peak NULL: no comparison with the machine. ORT_ERROR_RUN after a measured run that
 * failed. */
ORT_WARN_UNUSED ort_status ort_profile_report(const ort_profile *profile, const ort_peak *peak,
                                              char **json, ort_error *err);
/* Chrome's trace-event form with the fields of onnxruntime's profiles. */
ORT_WARN_UNUSED ort_status ort_profile_trace(const ort_profile *profile, FILE *stream,
                                             ort_error *err);

/* ------------------------------------------------------------------------- looking at models -- */

/* Reports as JSON text (schema "ort-inspect/1"); the tools print them or a table made from them.
 * The caller frees *json with ort_text_free. */
typedef enum ort_report {
    ORT_REPORT_SUMMARY,
    ORT_REPORT_IO,
    ORT_REPORT_NODES,
    ORT_REPORT_SHAPES,
    ORT_REPORT_INITIALIZERS,
    ORT_REPORT_METADATA,
    ORT_REPORT_FUNCTIONS,
    ORT_REPORT_OPS,      /* operators used, and which provider has each; gaps */
    ORT_REPORT_COST,     /* parameters, multiply-accumulates and bytes per node and in total */
    ORT_REPORT_MEMORY,   /* planned arena, peak, what is alive at the peak */
    ORT_REPORT_OPERATOR_COST, /* costs summed by operator, and in total */
    ORT_REPORT_STORED,        /* initializers without their statistics: no number of them is read */
} ort_report;
ORT_WARN_UNUSED ort_status ort_model_report(ort_model *model, ort_report report, char **json,
                                            ort_error *err);
/* ORT_REPORT_MEMORY of the session that these options make of the model; NULL: the default
 * ones. */
ORT_WARN_UNUSED ort_status ort_memory_report(ort_env *env, ort_model *model,
                                             const ort_session_options *options, char **json,
                                             ort_error *err);
/* What this build runs: newest IR, opsets, and every operator with versions, types, providers and
 * the operator library it comes from. */
ORT_WARN_UNUSED ort_status ort_supports_report(const ort_env *env, char **json, ort_error *err);
/* Which provider runs each node of the session that these options make of the model, and why none
 * of those before it does; what a run copies between them. NULL: the default options. */
ORT_WARN_UNUSED ort_status ort_partition_report(ort_env *env, const ort_model *model,
                                                const ort_session_options *options, char **json,
                                                ort_error *err);
/* The providers of this build with their options and devices; of one without devices, why. */
ORT_WARN_UNUSED ort_status ort_providers_report(char **json, ort_error *err);
/* The same of an environment: with those that were added to it. */
ORT_WARN_UNUSED ort_status ort_env_providers_report(const ort_env *env, char **json,
                                                    ort_error *err);
/* A picture of the graph in DOT or SVG. */
ORT_WARN_UNUSED ort_status ort_model_draw(ort_model *model, bool svg, char **text,
                                          ort_error *err);
/* The summary of a model of any size from its wire format alone (weights are never touched). */
ORT_WARN_UNUSED ort_status ort_summary_report(const char *path, char **json, ort_error *err);
/* The pack beside a model file: does it fit, and why not; what it holds. verify: every byte of both
 * is read, and *fits also says that they are what was written. */
ORT_WARN_UNUSED ort_status ort_pack_report(ort_env *env, const char *path, bool verify, bool *fits,
                                           char **json, ort_error *err);
/* The same of a model that is loaded with options: its external data may lie elsewhere. */
ORT_WARN_UNUSED ort_status ort_pack_report_with(ort_env *env, const char *path,
                                                const ort_load_options *options, bool verify,
                                                bool *fits, char **json, ort_error *err);
/* Structural difference, blind to the order of nodes and the names of temporaries. *equal tells;
 * *text lists what differs. */
ORT_WARN_UNUSED ort_status ort_model_diff(const ort_model *a, const ort_model *b, bool *equal,
                                          char **text, ort_error *err);
void ort_text_free(char *text);

/* ----------------------------------------------------------------------- compare and verify -- */

typedef struct ort_compare_options {
    size_t size;
    double rtol, atol; /* |a - b| <= atol + rtol * |b|; NaN equals NaN */
} ort_compare_options;
#define ORT_COMPARE_OPTIONS_INIT {sizeof(ort_compare_options), 0, 0}
ORT_INIT_(ort_compare_options, ORT_COMPARE_OPTIONS_INIT)

typedef struct ort_difference {
    size_t size;
    bool equal;          /* within tolerance, same kind, type and shape */
    double max_abs, max_rel;
    int64_t mismatches;  /* elements out of tolerance */
    int64_t worst;       /* index of the worst element, row-major */
    double worst_actual, worst_expected;
    char text[512];      /* one line that says it all */
} ort_difference;
#define ORT_DIFFERENCE_INIT {sizeof(ort_difference), false, 0, 0, 0, 0, 0, 0, ""}
ORT_INIT_(ort_difference, ORT_DIFFERENCE_INIT)

/* expected is b. Strings and integers compare exactly (integers: rtol and atol apply too). */
ORT_WARN_UNUSED ort_status ort_value_compare(const ort_value *actual, const ort_value *expected,
                                             const ort_compare_options *options,
                                             ort_difference *difference, ort_error *err);

/* How far a sequence of tensors (a quantized model's, say) is from another, its reference: sums
 * over all elements of all samples, x of the reference and y of the other. Start from
 * ORT_DISTANCE_INIT. The sums are formed in one order, the same bits for any number of threads. */
typedef struct ort_distance {
    size_t size;
    double margin;         /* yours: how far the best of a row is above its second to be clear;
                              NaN: no row is looked at */
    int64_t samples;       /* pairs of tensors added */
    int64_t count;         /* elements that are finite in both: those of the sums */
    int64_t odd_alike;     /* NaN in both, or the same infinity */
    int64_t odd_unlike;    /* not finite in one of them, or in both and not the same */
    double signal, other;  /* sums of x^2, of y^2 */
    double product, noise; /* of x y, of (x - y)^2 */
    double worst;          /* largest |x - y|, where, and of what */
    int64_t worst_sample, worst_index; /* from 0; row-major */
    double worst_reference, worst_other;
    int64_t rows;     /* along the last axis, of two elements and more, without NaN in x */
    int64_t agreeing; /* of them, those whose best is the same; of equal ones the first counts */
    int64_t clear_rows, clear_agreeing; /* of rows whose best is clear in x */
} ort_distance;
#define ORT_DISTANCE_INIT \
    {sizeof(ort_distance), 0.1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
ORT_INIT_(ort_distance, ORT_DISTANCE_INIT)

/* Tensors of one shape, of any types of real numbers, bools among them (64-bit integers count as
 * doubles). ORT_ERROR_DATA for others; nothing is added then. */
ORT_WARN_UNUSED ort_status ort_distance_add(ort_distance *distance, const ort_value *reference,
                                            const ort_value *other, ort_error *err);
/* The ratio of signal to quantization noise in decibels, 10 log10(sum x^2 / sum (x - y)^2) (Jayant
 * and Noll, Digital Coding of Waveforms, 1984, chapter 4): infinite where all are equal, -infinity
 * where a number is not finite in one alone, or x is 0 and y not; NaN: nothing to compare. */
double ort_distance_sqnr_db(const ort_distance *distance);
/* The cosine of the angle between them, sum x y / sqrt(sum x^2 sum y^2) (Salton and McGill,
 * Introduction to Modern Information Retrieval, 1983): 1 where all are equal, 0 where one of
 * them is 0; NaN: nothing to compare, or a number that is not finite in one alone. */
double ort_distance_cosine(const ort_distance *distance);
/* The share of rows that agree, and of those whose best is clear; NaN: there is none. */
double ort_distance_top1(const ort_distance *distance);
double ort_distance_clear_top1(const ort_distance *distance);

/* Does a rewritten model compute what the original computes? Both run, unoptimized, on the samples
 * or on made-up inputs (several sizes where dimensions are open), and their outputs are compared:
 * |a - b| <= tolerance * (max |b| of that output + |b|), b the original's; integers, strings and
 * bools exactly. */
typedef struct ort_verify_options {
    size_t size;
    const ort_tensors *const *samples; /* inputs by name, one set each; NULL: made up */
    size_t sample_count;
    uint64_t seed;
    double tolerance; /* of float and double; 0: to the bit. 16-bit types get 1024 times as
                       * much, up to 0.1024 unless it is more itself */
    /* Instead of it, and for 8-bit integers too (of their 255 steps), where the rewritten model has
     * operators on codes in place of float ones: a code may flip, and flips add up. Beyond it, both
     * agree still when sessions of both do, and the difference is below a tenth of the signal. */
    double code_tolerance;
    double timeout_s; /* of the whole; 0: none */
    /* Before each pair of runs, for progress; or NULL. */
    void (*on_run)(void *arg, int run, int runs);
    void *arg;
} ort_verify_options;
#define ORT_VERIFY_OPTIONS_INIT {sizeof(ort_verify_options), NULL, 0, 1, 1e-4, 0.03, 0, NULL, NULL}
ORT_INIT_(ort_verify_options, ORT_VERIFY_OPTIONS_INIT)

typedef enum ort_verdict { ORT_VERIFIED, ORT_DIFFERENT, ORT_NOT_VERIFIED } ort_verdict;

typedef struct ort_verification {
    size_t size;
    ort_verdict verdict;
    int runs;              /* pairs of runs that were compared */
    int sizes;             /* of made-up inputs among them */
    double max_abs;        /* largest difference seen, and relative to its output's max |b| */
    double max_scaled;
    char output[256];      /* the output where that was, or the first that differs */
    char text[600];        /* what differs, why nothing could be verified, or "" */
} ort_verification;
#define ORT_VERIFICATION_INIT {sizeof(ort_verification), ORT_VERIFIED, 0, 0, 0, 0, "", ""}
ORT_INIT_(ort_verification, ORT_VERIFICATION_INIT)

/* The status is an error only when verifying itself failed. */
ORT_WARN_UNUSED ort_status ort_models_verify(ort_env *env, const ort_model *original,
                                             const ort_model *changed,
                                             const ort_verify_options *options,
                                             ort_verification *result, ort_error *err);
/* The pass after which the rewritten model first differs from the original; "" when it is none
 * of them. *pass points into the table of passes. */
ORT_WARN_UNUSED ort_status ort_model_bisect(ort_env *env, const ort_model *original,
                                            const ort_optimize_options *optimize,
                                            const ort_verify_options *options,
                                            const char **pass, ort_error *err);

/* Where two sessions part on the same inputs: both run, and the values that they compute are
 * compared in the order of a's graph. A value is matched by how it is computed, else by name;
 * outputs by name (by place when the models share no name). Sessions made with keep_computed show
 * all they compute, others their outputs only. */
typedef struct ort_locate_options {
    size_t size;
    /* |a - b| <= atol + rtol * (max |a| of that value + |a|), a the first session's; 16-bit types
     * get 1024 times rtol, up to 0.1024 unless it is more itself; integers, strings and bools agree
     * exactly. */
    double rtol, atol;
    const ort_run_options *run; /* of both; callbacks are not used. Or NULL */
} ort_locate_options;
#define ORT_LOCATE_OPTIONS_INIT {sizeof(ort_locate_options), 1e-4, 0, NULL}
ORT_INIT_(ort_locate_options, ORT_LOCATE_OPTIONS_INIT)

typedef struct ort_first_difference {
    size_t size;
    bool differs, is_output;
    char name[256], other[256]; /* the first value that differs: in a, in b */
    char node[320];             /* of a, that computes it: "node 'conv1' (Conv)" */
    char text[512];             /* how */
    int compared, by_structure, alone; /* values matched, of these by structure; only in a */
    double max_abs;             /* largest difference seen, differing or not */
    char worst[256];            /* where */
    int telling;     /* outputs that showed something: neither empty nor all NaN or infinite */
    char blank[256]; /* an output that was NaN or infinite all over, "" without one */
} ort_first_difference;
#define ORT_FIRST_DIFFERENCE_INIT \
    {sizeof(ort_first_difference), false, false, "", "", "", "", 0, 0, 0, 0, "", 0, ""}
ORT_INIT_(ort_first_difference, ORT_FIRST_DIFFERENCE_INIT)

/* inputs: all of a's, in order (NULL: its default); b takes those of the same name. */
ORT_WARN_UNUSED ort_status ort_sessions_compare(const ort_session *a, const ort_session *b,
                                                ort_value *const *inputs, size_t input_count,
                                                const ort_locate_options *options,
                                                ort_first_difference *result, ort_error *err);

/* ------------------------------------------------------------------------------- quantizing -- */

/* Which part of what a value held on samples its codes cover: all of it; all but the outermost
 * numbers; that whose clipped distribution differs least from what codes make of it; that with the
 * least squared error; from the mean least to the mean largest number of a sample, in which each
 * sample weighs a hundredth and what came before the rest, so that the order of samples counts;
 * that with the least sum of |error|^2.5, ^3 or ^4, which cut off less than squares do. */
typedef enum ort_observer {
    ORT_OBSERVE_MIN_MAX,
    ORT_OBSERVE_PERCENTILE,
    ORT_OBSERVE_ENTROPY,
    ORT_OBSERVE_MSE,
    ORT_OBSERVE_AVERAGE,
    ORT_OBSERVE_L25,
    ORT_OBSERVE_L3,
    ORT_OBSERVE_L4,
} ort_observer;
/* "min-max" and so on; NULL: there is no such one. *doc (may be NULL): what it does, in a line. */
const char *ort_observer_name(ort_observer observer, const char **doc);

/* For progress, by the caller's thread: so much of a stage of the work is done, 0 to 1. Stages
 * follow each other; their names live as long as the call. */
typedef void ort_share_fn(void *arg, const char *stage, double share);

/* A float model becomes one whose products, and what lies between them, compute on codes of
 * integers: QuantizeLinear and DequantizeLinear around them (ONNX, opset 13). */
typedef struct ort_quantizer ort_quantizer;
typedef struct ort_quantize_options {
    size_t size;
    ort_dtype activations, weights; /* INT8, UINT8; 16-bit and narrower types from opset 21 */
    bool symmetric;                 /* activations: the zero point is the middle of the codes */
    bool asymmetric_weights;
    bool per_tensor;                /* one scale a weight, not one an output channel */
    bool plain_weights;             /* grids of weights span their range, whatever the error */
    bool reduce_range;              /* 7 bits of 8: for processors whose sums saturate */
    bool full_range;                /* weights of int8 side by side may be so large that these do */
    ort_observer observer;
    double percentile;              /* of ORT_OBSERVE_PERCENTILE */
    int threads;                    /* of calibration; 0: as an environment's */
    /* Nodes by name or operator, '*' and '?' standing for any text and any letter,
     * NULL-terminated, or NULL: these stay float; only these don't. Borrowed for the call. */
    const char *const *exclude, *const *include;
    const char *overrides;          /* JSON of "ort-overrides/1" (ort-quantize(1)), or NULL */
    bool qoperator;                 /* operators on codes (QLinearConv, ...) where there are */
    bool contrib;                   /* com.microsoft's QuantizeLinear, not another opset */
    bool without_passes;            /* the model is taken as it is: no pass of level 1 before */
    bool keep_fused;                /* nodes that an optimizer fused stay, and are no error */
    /* More effort; samples run once more, up to 32 of them. */
    bool correct_biases;            /* what errors of codes add on average goes out of biases */
    bool adaptive_rounding;         /* codes of weights by what products read on samples */
    const char *folder; /* where results too large for memory are kept meanwhile; NULL: memory */
    /* Channels that reach equally far, so that one scale serves them. */
    bool equalize;                  /* between products, by their weights (Nagel et al. 2019) */
    double smooth;                  /* before products of matrices, by samples: the exponent alpha
                                     * of SmoothQuant, 0 to 1; 0: not. See ort_quantizer_smooth. */
    ort_share_fn *on_share;         /* of ort_quantizer_apply, or NULL */
    void *share_arg;
    bool *overrides_refused;        /* becomes true where an error is of overrides; or NULL */
} ort_quantize_options;
#define ORT_QUANTIZE_OPTIONS_INIT \
    {sizeof(ort_quantize_options), ORT_DTYPE_UINT8, ORT_DTYPE_INT8, false, false, false, false, \
     false, false, ORT_OBSERVE_MSE, 99.999, 0, NULL, NULL, NULL, false, false, false, false,    \
     false, false, NULL, false, 0, NULL, NULL, NULL}
ORT_INIT_(ort_quantize_options, ORT_QUANTIZE_OPTIONS_INIT)

/* The model is borrowed for the call; it is not changed. */
ORT_WARN_UNUSED ort_status ort_quantizer_new(ort_env *env, const ort_model *model,
                                             const ort_quantize_options *options,
                                             ort_quantizer **quantizer, ort_error *err);
void ort_quantizer_free(ort_quantizer *quantizer);
/* One sample: all inputs of the model, in order (NULL: its default). What is seen doesn't depend on
 * the order of samples, nor on how they are batched; of ORT_OBSERVE_AVERAGE it does, and a sample
 * is one call. */
ORT_WARN_UNUSED ort_status ort_quantizer_calibrate(ort_quantizer *quantizer,
                                                   ort_value *const *inputs, size_t input_count,
                                                   ort_error *err);

/* With the option smooth: samples so far said how far channels reach; from here on they say ranges,
 * so all of them come once more. Once, and before ort_quantizer_apply. */
ORT_WARN_UNUSED ort_status ort_quantizer_smooth(ort_quantizer *quantizer, ort_error *err);

/* What values held on samples: of a model, by their names. As text they are JSON ("ort-ranges/1"),
 * which gives the same ranges again, bit for bit. Ranges of equal models merge to what one run over
 * all samples gives, so that several machines share the work; averages don't merge. */
typedef struct ort_ranges ort_ranges;
/* Empty; it takes on the model of what is read or collected first. */
ORT_WARN_UNUSED ort_status ort_ranges_new(ort_ranges **ranges, ort_error *err);
void ort_ranges_free(ort_ranges *ranges);
/* Merges text into the ranges. name: of its file, for messages; NULL: "ranges". After an error the
 * ranges are fit for nothing but ort_ranges_free. */
ORT_WARN_UNUSED ort_status ort_ranges_read(ort_ranges *ranges, const char *text, size_t size,
                                           const char *name, ort_error *err);
/* The caller frees *json with ort_text_free. */
ORT_WARN_UNUSED ort_status ort_ranges_write(const ort_ranges *ranges, char **json, ort_error *err);
/* How many samples they come of; *made_up (may be NULL) of these aren't real ones. */
uint64_t ort_ranges_samples(const ort_ranges *ranges, uint64_t *made_up);
/* The kernel tier of the runs that showed them; NULL: none yet. */
const char *ort_ranges_tier(const ort_ranges *ranges);
/* All samples so far were made up. */
void ort_ranges_set_made_up(ort_ranges *ranges);
/* What the quantizer has seen is merged into `into`. Of ORT_OBSERVE_MIN_MAX and _AVERAGE these are
 * the ends of ranges; of the others a histogram each, which serves all but ORT_OBSERVE_AVERAGE. */
ORT_WARN_UNUSED ort_status ort_quantizer_ranges(const ort_quantizer *quantizer, ort_ranges *into,
                                                ort_error *err);
/* As if the quantizer had seen these samples, too. Ranges of another model are refused. name: of
 * their file, for messages; NULL: "ranges". */
ORT_WARN_UNUSED ort_status ort_quantizer_use_ranges(ort_quantizer *quantizer,
                                                    const ort_ranges *ranges, const char *name,
                                                    ort_error *err);

/* The model on codes; the caller frees it. It shares weights that stay float with the original. */
ORT_WARN_UNUSED ort_status ort_quantizer_apply(ort_quantizer *quantizer, ort_model **model,
                                               ort_error *err);

/* Other overrides (or NULL) from here on; what was observed stays. A rule that names nothing, or is
 * none, is ORT_ERROR_USAGE. */
ORT_WARN_UNUSED ort_status ort_quantizer_override(ort_quantizer *quantizer, const char *json,
                                                  ort_error *err);
/* What becomes of a node: "product" (multiplies codes), "step" (from codes to codes), "move" (only
 * moves them), "folded" (belongs to the node before it), "table" (looks up rows of codes), or
 * "float", and then why. Texts live as long as the quantizer. */
typedef struct ort_quantizer_node_info {
    size_t size;
    const char *name, *op_type, *part, *why; /* why: NULL unless it stays float */
} ort_quantizer_node_info;
#define ORT_QUANTIZER_NODE_INFO_INIT \
    {sizeof(ort_quantizer_node_info), NULL, NULL, NULL, NULL}
ORT_INIT_(ort_quantizer_node_info, ORT_QUANTIZER_NODE_INFO_INIT)
/* In the order in which they run, constants not; false past the last one. */
bool ort_quantizer_node(const ort_quantizer *quantizer, size_t index,
                        ort_quantizer_node_info *info);
/* What codes of that node may cost, by what samples showed: *work, its multiply-adds on all of them
 * (of a step the numbers that it reads), and *noise, the squared errors of what it reads over the
 * squared numbers. Zeros where nothing is known, or it stays float; false past the last node. */
bool ort_quantizer_node_harm(const ort_quantizer *quantizer, size_t index, double *work,
                             double *noise);
/* How many pairs of products the option equalize gave factors. */
size_t ort_quantizer_equalized(const ort_quantizer *quantizer);
/* A node by that index stays float from here on, or no longer does so; other overrides make all of
 * these void. */
ORT_WARN_UNUSED ort_status ort_quantizer_keep_float(ort_quantizer *quantizer, size_t index,
                                                    bool stays, ort_error *err);
/* The same, in float16, with weights of two bytes; ort_quantizer_keep_float makes that void. */
ORT_WARN_UNUSED ort_status ort_quantizer_keep_half(ort_quantizer *quantizer, size_t index,
                                                   ort_error *err);
/* The model in which this node alone reads codes, which shows what that costs. Only what "float"
 * is for another reason than these options and overrides is refused. */
ORT_WARN_UNUSED ort_status ort_quantizer_apply_alone(ort_quantizer *quantizer, size_t index,
                                                     ort_model **model, ort_error *err);

/* What became of a node that multiplies, or that looks up rows. Nodes of bodies have the names of
 * those around them in front, "loop1/matmul". */
typedef struct ort_quantize_note {
    const char *node, *op_type;
    const char *became; /* the operator on codes; NULL: it stays float */
    const char *why;    /* it stays; or NULL */
    double saturating;  /* of its sums of two products, the share in [0, 1] that may leave 16 bits,
                         * which some processors clip: bytes of either kind by int8 weights */
} ort_quantize_note;
typedef struct ort_quantize_notes ort_quantize_notes;
ORT_WARN_UNUSED ort_status ort_quantize_notes_new(ort_quantize_notes **notes, ort_error *err);
void ort_quantize_notes_free(ort_quantize_notes *notes);
size_t ort_quantize_notes_count(const ort_quantize_notes *notes);
/* NULL past the end. */
const ort_quantize_note *ort_quantize_notes_get(const ort_quantize_notes *notes, size_t index);

/* Products on bytes whose range is found in each run, and weights as bytes: no sample is needed.
 * The file is the same on every machine. */
typedef struct ort_dynamic_options {
    size_t size;
    ort_dtype weights;       /* UINT8, which no processor saturates in onnxruntime, or INT8 */
    bool symmetric_weights;  /* their zero points are the middle of the codes; of convolutions, LSTM
                              * and Attention they always are */
    bool per_tensor;         /* one scale a weight, not one an output channel */
    bool plain_weights;      /* grids of weights span their range, whatever the error */
    bool reduce_range;       /* 7 bits of 8: for processors whose sums saturate */
    bool computed;           /* products of two computed matrices, too (attention's scores) */
    bool small;              /* nodes too small to gain, too */
    bool float_tables;       /* embedding tables stay float */
    bool convs;              /* convolutions too: ConvInteger, which onnxruntime runs slower than
                              * float ones */
    /* Why a node stays float (its text is copied), or NULL. path: as in notes. */
    const char *(*stays)(void *arg, const char *path, const char *op_type);
    void *arg;
    const char *folder; /* where results too large for memory are kept meanwhile; NULL: memory */
    const char *choice; /* what lists or `stays` say, for the stamp; NULL: that there are some */
    ort_share_fn *on_share; /* or NULL */
    void *share_arg;
    const char *const *include, *const *exclude; /* as of ort_quantize_options */
} ort_dynamic_options;
#define ORT_DYNAMIC_OPTIONS_INIT \
    {sizeof(ort_dynamic_options), ORT_DTYPE_UINT8, false, false, false, false, false, false, \
     false, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL}
ORT_INIT_(ort_dynamic_options, ORT_DYNAMIC_OPTIONS_INIT)

/* The model is borrowed for the call; the result, which the caller frees, shares the weights that
 * stay float with it. notes: of nodes that multiply or look up, or NULL. */
ORT_WARN_UNUSED ort_status ort_model_quantize_dynamic(ort_env *env, const ort_model *model,
                                                      const ort_dynamic_options *options,
                                                      ort_model **result,
                                                      ort_quantize_notes *notes, ort_error *err);

/* `count` bytes of a value from `begin` on won't be read again: memory that maps a file is given
 * back, other memory stays as it is. */
void ort_value_forget(const ort_value *value, size_t begin, size_t count);

/* The kernels of every float run that decides about a file, whatever tier runs otherwise: "common",
 * the same bits on every x86 machine with AVX2, or scalar where a machine lacks that. */
const char *ort_quantize_tier(void);

/* Its property "ort.quantize.VERB" says how a model was quantized: the library's version, options
 * as they are written, the samples and the tier of float runs that decided. NULL: none did, which
 * all but the verb may be. */
ORT_WARN_UNUSED ort_status ort_model_stamp_quantized(ort_model *model, const char *verb,
                                                     const char *options, const char *samples,
                                                     const char *tier, ort_error *err);

/* Made-up inputs for a session: draws by name and role (ort-formats(5)); strings need a sample. */
ORT_WARN_UNUSED ort_status ort_session_random_inputs(const ort_session *session, uint64_t seed,
                                                     ort_value **inputs, size_t input_count,
                                                     ort_error *err);

/* " (did you mean 'a', 'b' or 'c'?)" of the names that a mistyped word may have meant, the nearest
 * first; "" when none is near. 300 bytes hold it. Returns text. */
const char *ort_did_you_mean(const char *word, const char *const *names, size_t count, char *text,
                             size_t size);

/* Weights of 2, 4 or 8 bits in blocks, each with a scale, and a zero point where asymmetric; what
 * is multiplied by them stays float. Matrices of MatMul and Gemm, and tables of Gather.
 *
 * How codes are chosen: NEAREST takes the grid of least squared error; HQQ goes on to a small
 * sum of |error|^(3/4) (Badri & Shaji 2023); GPTQ takes samples and makes up for the error of each
 * row of a matrix in those that follow (Frantar et al. 2022); AWQ takes samples and scales rows by
 * what they are multiplied with (Lin et al. 2024), which may put a Mul before products. Tables, and
 * products that no sample reaches, have the nearest codes then. */
typedef enum ort_weights_method {
    ORT_WEIGHTS_NEAREST,
    ORT_WEIGHTS_HQQ,
    ORT_WEIGHTS_GPTQ,
    ORT_WEIGHTS_AWQ,
} ort_weights_method;

/* Nodes that read codes: MatMulNBits and GatherBlockQuantized of com.microsoft; or
 * DequantizeLinear with block_size before the nodes as they were (ONNX, opset 21; 25 of 2 bits). */
typedef enum ort_weights_form {
    ORT_WEIGHTS_NBITS,
    ORT_WEIGHTS_QDQ,
} ort_weights_form;

typedef struct ort_weights ort_weights;
typedef struct ort_weights_options {
    size_t size;
    int bits;            /* 2, 4 or 8 */
    int64_t block_size;  /* 16, 32, 64, 128 or 256; 0: whole columns (QDQ) */
    bool asymmetric;     /* a zero point a block */
    ort_weights_method method;
    ort_weights_form form;
    int accuracy_level;  /* of MatMulNBits, 0 to 4; 4 allows 8 bits for what is multiplied */
    bool tables;         /* also tables of Gather that no product reads */
    const char *const *include, *const *exclude; /* as of ort_quantize_options */
    const char *folder;  /* where results too large for memory are kept meanwhile; NULL: memory */
    double damping;      /* GPTQ: added to the diagonal of the moments, in means of it */
    bool ordered;        /* GPTQ: rows by falling moments, not as they lie */
    int threads;         /* of samples' runs and GPTQ; 0: as an environment's */
    const char *choice;  /* what include and exclude say, for the stamp; NULL: that there is one */
    ort_share_fn *on_share; /* of ort_weights_apply, or NULL */
    void *share_arg;
} ort_weights_options;
#define ORT_WEIGHTS_OPTIONS_INIT \
    {sizeof(ort_weights_options), 4, 32, false, ORT_WEIGHTS_NEAREST, ORT_WEIGHTS_NBITS, 0, false, \
     NULL, NULL, NULL, 0.01, false, 0, NULL, NULL, NULL}
ORT_INIT_(ort_weights_options, ORT_WEIGHTS_OPTIONS_INIT)

/* The model is borrowed as long as the object and what it makes; it is not changed. */
ORT_WARN_UNUSED ort_status ort_weights_new(ort_env *env, const ort_model *model,
                                           const ort_weights_options *options,
                                           ort_weights **weights, ort_error *err);
void ort_weights_free(ort_weights *weights);
/* One sample for GPTQ: all inputs of the model, in order (NULL: its default). */
ORT_WARN_UNUSED ort_status ort_weights_observe(ort_weights *weights, ort_value *const *inputs,
                                               size_t input_count, ort_error *err);
/* The model on codes, once; the caller frees it. */
ORT_WARN_UNUSED ort_status ort_weights_apply(ort_weights *weights, ort_model **model,
                                             ort_error *err);
/* What became of each node that reads weights or codes: known before ort_weights_apply but for the
 * bytes, and for weights that then turn out to be no finite numbers. */
typedef struct ort_weights_node {
    size_t size;
    const char *name, *op_type;
    const char *why;        /* it stays as it is; NULL: it reads codes */
    int64_t rows, columns;  /* of its matrix: K, N */
    size_t bytes_before, bytes_after; /* 0 where another node reads the same weight before it */
} ort_weights_node;
size_t ort_weights_node_count(const ort_weights *weights);
ORT_WARN_UNUSED ort_status ort_weights_node_at(const ort_weights *weights, size_t index,
                                               ort_weights_node *node, ort_error *err);

/* High-water mark of resident memory of this process, bytes. */
size_t ort_peak_rss_bytes(void);
/* Nanoseconds since this process started (exec to now). */
uint64_t ort_process_age_ns(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
