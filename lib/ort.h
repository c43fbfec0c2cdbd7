/* ort.h - the public interface of libort: load, check, optimize, run ONNX models.
 *
 * This header reads as a tutorial. A program that runs a model:
 *
 *     ort_error err = {0};
 *     ort_env *env = NULL;
 *     ort_session *session = NULL;
 *     ort_value *x = NULL, *y = NULL;
 *     if (ort_env_new(NULL, &env, &err) ||
 *         ort_session_load(env, "net.onnx", NULL, &session, &err) ||
 *         ort_value_new_tensor(ORT_DTYPE_FLOAT, 4, (int64_t[]){1, 3, 224, 224}, &x, &err) ||
 *         (fill(ort_value_data(x)), 0) ||
 *         ort_session_run(session, &x, &y, NULL, &err))
 *         fprintf(stderr, "%s\n", err.message);
 *     ort_value_free(y); ort_value_free(x); ort_session_free(session); ort_env_free(env);
 *
 * Rules that hold everywhere
 * - Every call that can fail returns an ort_status and takes `ort_error *err` last. err is owned by
 *   the caller, may be NULL, and is only written on failure.
 * - What a `_new` or `_load` call returns is given back with the matching `_free`; `_free(NULL)` is
 *   fine. Arguments are borrowed for the call, unless the function's name says `take`.
 * - The library prints nothing, never exits and opens no network connection. Messages go to the log
 *   callback of the environment.
 * - Sizes are in elements unless a name ends in `_bytes`. Times end in `_ns` or `_ms`.
 * - Names, element types and their numbers are ONNX's own (onnx.proto).
 */
#ifndef ORT_H
#define ORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all that the shared library exports */

#define ORT_VERSION_MAJOR 0
#define ORT_VERSION_MINOR 1
#define ORT_VERSION_PATCH 0
/* "0.1.0" */
const char *ort_version(void);

/* ------------------------------------------------------------------------------------ errors -- */

#define ORT_WARN_UNUSED __attribute__((warn_unused_result))

/* What went wrong, by kind. The tools map each to an exit status (ort_status_exit). */
typedef enum ort_status {
    ORT_OK = 0,
    ORT_ERROR_GATE,        /* 1: a comparison or another gate said no */
    ORT_ERROR_USAGE,       /* 2: a wrong option, or an input or output name that does not exist */
    ORT_ERROR_MODEL,       /* 3: the model is unreadable or invalid */
    ORT_ERROR_UNSUPPORTED, /* 3: the model is valid, but nobody here runs a part of it */
    ORT_ERROR_RUN,         /* 4: an operator failed on these values */
    ORT_ERROR_MEMORY,      /* 4: memory is exhausted, or a limit was reached */
    ORT_ERROR_DEVICE,      /* 4: a provider's device is missing or failed */
    ORT_ERROR_CANCELLED,   /* 4 */
    ORT_ERROR_TIMEOUT,     /* 4 */
    /* 5: a tensor of the wrong type, rank or size; a malformed tensor file */
    ORT_ERROR_DATA,
    ORT_ERROR_IO,          /* 5: a file or stream can't be read or written */
    ORT_STATUS_COUNT
} ort_status;

#define ORT_ERROR_TEXT 2000

typedef struct ort_error {
    ort_status status;
    int count;                    /* findings behind this message (1 for a plain error) */
    char message[ORT_ERROR_TEXT]; /* "node 'conv1' (Conv): input W is 64x3x3, needs rank 4" */
} ort_error;

const char *ort_status_name(ort_status status); /* "model", "usage", ... */
int ort_status_exit(ort_status status);         /* exit status 0..5 of the tools */

/* ------------------------------------------------------------------------------ element types --
 */

typedef enum ort_dtype { /* numbers of onnx.TensorProto.DataType */
    ORT_DTYPE_UNDEFINED = 0,
    ORT_DTYPE_FLOAT = 1,
    ORT_DTYPE_UINT8 = 2,
    ORT_DTYPE_INT8 = 3,
    ORT_DTYPE_UINT16 = 4,
    ORT_DTYPE_INT16 = 5,
    ORT_DTYPE_INT32 = 6,
    ORT_DTYPE_INT64 = 7,
    ORT_DTYPE_STRING = 8,
    ORT_DTYPE_BOOL = 9,
    ORT_DTYPE_FLOAT16 = 10,
    ORT_DTYPE_DOUBLE = 11,
    ORT_DTYPE_UINT32 = 12,
    ORT_DTYPE_UINT64 = 13,
    ORT_DTYPE_COMPLEX64 = 14,
    ORT_DTYPE_COMPLEX128 = 15,
    ORT_DTYPE_BFLOAT16 = 16,
    ORT_DTYPE_FLOAT8E4M3FN = 17,
    ORT_DTYPE_FLOAT8E4M3FNUZ = 18,
    ORT_DTYPE_FLOAT8E5M2 = 19,
    ORT_DTYPE_FLOAT8E5M2FNUZ = 20,
    ORT_DTYPE_UINT4 = 21,
    ORT_DTYPE_INT4 = 22,
    ORT_DTYPE_FLOAT4E2M1 = 23,
    ORT_DTYPE_FLOAT8E8M0 = 24,
    ORT_DTYPE_UINT2 = 25,
    ORT_DTYPE_INT2 = 26,
    ORT_DTYPE_FLOAT6E2M3 = 27,
    ORT_DTYPE_FLOAT6E3M2 = 28,
} ort_dtype;

const char *ort_dtype_name(ort_dtype dtype);      /* "float", "int64", ... (ONNX's names) */
ort_dtype ort_dtype_parse(const char *name);      /* also "float32", "f32"; UNDEFINED if unknown */
int ort_dtype_bits(ort_dtype dtype);              /* per element: 32 for float, 4 for int4 */

/* ------------------------------------------------------------------------------- environment -- */

/* An environment holds the thread pool, the registries and the log; its sessions share them. */
typedef struct ort_env ort_env;

typedef enum ort_log_level {
    ORT_LOG_QUIET = 0,
    ORT_LOG_WARNING = 1,
    ORT_LOG_INFO = 2,
    ORT_LOG_DEBUG = 3,
} ort_log_level;
typedef void ort_log_fn(void *arg, ort_log_level level, const char *message);

#define ORT_DEFAULT_SPIN_US 20

typedef struct ort_env_options {
    int threads;          /* for the whole process; 0: affinity mask and cgroup quota decide */
    bool pin;             /* bind workers to processors */
    int spin_us;          /* longest spin inside a run, microseconds; -1: ORT_DEFAULT_SPIN_US */
    const char *isa;      /* "scalar", "avx2", "avx512", "vnni"; NULL: the machine's best */
    bool keep_denormals;  /* default: denormals are flushed in float arithmetic */
    bool math_strict;     /* no Winograd: sums of products as the specification writes them */
    size_t max_memory_bytes; /* arena and scratch limit of a run; 0: none */
    ort_log_fn *log;
    void *log_arg;
    ort_log_level log_level;
} ort_env_options; /* all zero except spin_us = -1: ort_env_options_init */

void ort_env_options_init(ort_env_options *options);
/* options may be NULL. An isa that this machine lacks is ORT_ERROR_USAGE with the list. */
ORT_WARN_UNUSED ort_status ort_env_new(const ort_env_options *options, ort_env **env,
                                       ort_error *err);
void ort_env_free(ort_env *env);
int ort_env_threads(const ort_env *env);
const char *ort_env_isa(const ort_env *env);
/* Names of the kernel tiers this machine can run, best last; returns their number. */
int ort_isa_list(const char **names, int capacity);

/* ------------------------------------------------------------------------------------ values -- */

/* What goes into and comes out of a model: a tensor, a sequence, a map, or an absent optional. */
typedef struct ort_value ort_value;
typedef struct ort_tensor ort_tensor; /* internal view */
typedef struct ort_string ort_string;

typedef enum ort_value_kind {
    ORT_VALUE_NONE = 0,
    ORT_VALUE_TENSOR = 1,
    ORT_VALUE_SEQUENCE = 2,
    ORT_VALUE_MAP = 3,
} ort_value_kind;

/* A zero-filled tensor that owns its memory (64-byte aligned, row-major, contiguous). */
ORT_WARN_UNUSED ort_status ort_value_new_tensor(ort_dtype dtype, int rank, const int64_t *dims,
                                                ort_value **value, ort_error *err);
/* A tensor over the caller's memory, which must stay until the value is freed. */
ORT_WARN_UNUSED ort_status ort_value_new_borrowed(ort_dtype dtype, int rank, const int64_t *dims,
                                                  void *data, size_t bytes, ort_value **value,
                                                  ort_error *err);
ORT_WARN_UNUSED ort_status ort_value_new_sequence(ort_value **value, ort_error *err);
/* Appends a reference to `item`. */
ORT_WARN_UNUSED ort_status ort_value_append(ort_value *sequence, ort_value *item, ort_error *err);
/* keys (int64 or string) and values: one-dimensional tensors of equal length. */
ORT_WARN_UNUSED ort_status ort_value_new_map(ort_value *keys, ort_value *values, ort_value **map,
                                             ort_error *err);
void ort_value_free(ort_value *value);

ort_value_kind ort_value_get_kind(const ort_value *value);
ort_dtype ort_value_dtype(const ort_value *value);
int ort_value_rank(const ort_value *value);
const int64_t *ort_value_dims(const ort_value *value);
int64_t ort_value_count(const ort_value *value);      /* elements; items of a sequence or map */
void *ort_value_data(ort_value *value);               /* packed bytes; not for strings */
size_t ort_value_bytes(const ort_value *value);
const char *ort_value_string(const ort_value *value, int64_t index, size_t *length);
ORT_WARN_UNUSED ort_status ort_value_set_string(ort_value *value, int64_t index, const char *text,
                                                size_t length, ort_error *err);
/* Item of a sequence; of a map: 0 is the key tensor, 1 the value tensor. Borrowed. */
ort_value *ort_value_item(const ort_value *value, size_t index);
/* Element of a numeric or bool tensor as a double (exact up to 2^53). */
double ort_value_get_double(const ort_value *value, int64_t index);
void ort_value_set_double(ort_value *value, int64_t index, double number);
/* 64-bit digest of type, shape and bytes; the same on every machine. */
uint64_t ort_value_digest(const ort_value *value);

/* ------------------------------------------------------------------------------ tensor files -- */

/* Named values in order, as a tensor file or stream holds them. */
typedef struct ort_tensors ort_tensors;

ORT_WARN_UNUSED ort_status ort_tensors_new(ort_tensors **tensors, ort_error *err);
void ort_tensors_free(ort_tensors *tensors);
size_t ort_tensors_count(const ort_tensors *tensors);
const char *ort_tensors_name(const ort_tensors *tensors, size_t index); /* "" when unnamed */
ort_value *ort_tensors_value(const ort_tensors *tensors, size_t index); /* borrowed */
/* Adds a reference; replaces a value of the same non-empty name. */
ORT_WARN_UNUSED ort_status ort_tensors_add(ort_tensors *tensors, const char *name,
                                           ort_value *value, ort_error *err);

typedef enum ort_format {
    ORT_FORMAT_AUTO = 0, /* by content, then by file name */
    ORT_FORMAT_NPY,
    ORT_FORMAT_NPZ,
    ORT_FORMAT_PB, /* ONNX TensorProto (SequenceProto, OptionalProto, MapProto by structure) */
    ORT_FORMAT_SAFETENSORS,
    ORT_FORMAT_JSON,
    ORT_FORMAT_CSV,
    ORT_FORMAT_RAW, /* needs dtype and shape */
    ORT_FORMAT_IMAGE, /* PNG, JPEG, BMP, PNM, WebP: HxWxC uint8, EXIF rotation applied, RGB */
    ORT_FORMAT_WAV,   /* float32 samples in [-1, 1]: frames x channels, or frames when mono */
    ORT_FORMAT_COUNT
} ort_format;

const char *ort_format_name(ort_format format);
ort_format ort_format_parse(const char *name);      /* ORT_FORMAT_COUNT when unknown */
ort_format ort_format_of_path(const char *path);    /* by extension; AUTO when it says nothing */

typedef struct ort_read_options {
    ort_format format;
    ort_dtype dtype;     /* raw; csv and json: convert to this (default float) */
    int rank;            /* raw, json: shape; rank -1: flat */
    const int64_t *dims; /* raw: one dim may be -1 */
    const char *label;   /* what messages call the stream; default the path */
    int sample_rate;     /* OUT wav: filled by the reader */
} ort_read_options;

/* Read a whole file ("-": stdin), or one record of a stream (concatenated .npy or .npz). At a clean
 * end of stream *tensors is NULL and the status ORT_OK. */
ORT_WARN_UNUSED ort_status ort_tensors_load(const char *path, ort_read_options *options,
                                            ort_tensors **tensors, ort_error *err);
ORT_WARN_UNUSED ort_status ort_tensors_read(FILE *stream, ort_read_options *options,
                                            ort_tensors **tensors, ort_error *err);
/* A folder test_data_set_N: prefix "input" or "output"; files input_0.pb or input0.pb, or .json. */
ORT_WARN_UNUSED ort_status ort_tensors_load_folder(const char *path, const char *prefix,
                                                   ort_tensors **tensors, ort_error *err);

typedef struct ort_write_options {
    ort_format format;  /* AUTO: by path */
    int quality;        /* jpeg, webp: 1..100; 0: default */
    int sample_rate;    /* wav; 0: 16000 */
    const char *image;  /* "png", "jpeg", "bmp", "ppm", "webp"; NULL: by path, else png */
} ort_write_options;

/* The file appears whole or not at all. "-" writes to stdout. */
ORT_WARN_UNUSED ort_status ort_tensors_save(const ort_tensors *tensors, const char *path,
                                            const ort_write_options *options, ort_error *err);
ORT_WARN_UNUSED ort_status ort_tensors_write(const ort_tensors *tensors, FILE *stream,
                                             const ort_write_options *options, ort_error *err);
/* What a person wants to read: dtype, shape, min, max, mean, first elements. */
ORT_WARN_UNUSED ort_status ort_value_print(const ort_value *value, const char *name, int max_items,
                                           FILE *stream, ort_error *err);

/* ------------------------------------------------------------------------------------ models -- */

typedef struct ort_model ort_model;

typedef struct ort_load_options {
    const char *external_dir; /* folder of external data for models from memory or a stream */
    size_t max_bytes;         /* refuse larger models; 0: no limit */
    bool skeleton;            /* weights are not needed: bytes of bulk fields are never touched */
    /* Weights that the file doesn't align stay as they lie until a pass computes with them: for
     * models that are rewritten and saved. A session of such a model aligns them first. */
    bool as_stored;
    const char *label;        /* what messages call the model; default the path */
} ort_load_options;           /* all zero is the default */

/* From a file; "-" reads stdin to its end. Weights stay in the mapping. */
ORT_WARN_UNUSED ort_status ort_model_load(ort_env *env, const char *path,
                                          const ort_load_options *options, ort_model **model,
                                          ort_error *err);
/* From memory that must outlive the model. */
ORT_WARN_UNUSED ort_status ort_model_load_memory(ort_env *env, const void *bytes, size_t count,
                                                 const ort_load_options *options,
                                                 ort_model **model, ort_error *err);
void ort_model_free(ort_model *model);

typedef struct ort_save_options {
    const char *external_data;   /* file name for weights, beside the model; NULL: by size */
    size_t external_threshold_bytes; /* tensors at least this large go there; 0: 1024 */
    bool inline_all;             /* never spill */
} ort_save_options;

/* Saving an untouched model loses no field and no value. Appears whole or not at all; above 1.9 GB
 * weights spill to PATH.data. "-" writes to stdout. */
ORT_WARN_UNUSED ort_status ort_model_save(const ort_model *model, const char *path,
                                          const ort_save_options *options, ort_error *err);
/* The same, and PATH.pack beside it: what sessions with default options on this machine's kernel
 * tier are made of (packed weights, the graph of level 3). The pack appears first. The model gets
 * a metadata property, ort.weights, by which the two know each other. */
ORT_WARN_UNUSED ort_status ort_model_save_packed(ort_env *env, ort_model *model, const char *path,
                                                 const ort_save_options *options, ort_error *err);
ORT_WARN_UNUSED ort_status ort_model_write(const ort_model *model, FILE *stream, ort_error *err);
/* What ort_model_write would write; of weights that one file can't hold, these alone. */
ORT_WARN_UNUSED ort_status ort_model_written_bytes(const ort_model *model, size_t *bytes,
                                                   ort_error *err);
/* Is one of the model's own functions called by two nodes or more? (Without memory to tell, no.) */
bool ort_model_repeats_functions(const ort_model *model);

/* An output file as ort_model_save makes them, whole or not at all, for what a program writes
 * itself. Devices and pipes are written directly; a symbolic link stays. */
typedef struct ort_out_file {
    FILE *stream;    /* write here */
    char *path;      /* of the finished file; NULL for stdout */
    char *temporary; /* what opens the unfinished file meanwhile; NULL: written directly */
    int nameless;    /* a descriptor of the unfinished file, which has no name yet; or -1 */
} ort_out_file;

ORT_WARN_UNUSED ort_status ort_out_file_open(ort_out_file *file, const char *path, /* "-": stdout */
                                             ort_error *err);
/* Flush (`sync`: to the disk), put in place, release; a failure leaves no file. */
ORT_WARN_UNUSED ort_status ort_out_file_commit(ort_out_file *file, bool sync, ort_error *err);
/* Give up: no file appears. */
void ort_out_file_abort(ort_out_file *file);
/* For the handler of a signal that ends the program (it is safe there): where a file system knows
 * only files with names, remove those of all unfinished files, of these calls and of every `_save`.
 * Nothing may be written or saved after it. */
void ort_out_file_discard_all(void);

/* A list of findings: every problem with its place. */
typedef struct ort_findings ort_findings;
typedef enum ort_severity { ORT_FINDING_NOTE, ORT_FINDING_WARNING, ORT_FINDING_ERROR } ort_severity;
void ort_findings_free(ort_findings *findings);
size_t ort_findings_count(const ort_findings *findings);
size_t ort_findings_errors(const ort_findings *findings);
const char *ort_findings_message(const ort_findings *findings, size_t index);
ort_severity ort_findings_severity(const ort_findings *findings, size_t index);

/* Structure, types, arity, attributes, versions: all findings at once. The status is ORT_OK even
 * when there are findings; it is an error only when checking itself failed. */
ORT_WARN_UNUSED ort_status ort_model_check(const ort_model *model, ort_findings **findings,
                                           ort_error *err);
/* Fix a symbolic dimension everywhere, or declare a graph input's shape (rank -1 dims: keep). */
ORT_WARN_UNUSED ort_status ort_model_set_dim(ort_model *model, const char *name, int64_t size,
                                             ort_error *err);
ORT_WARN_UNUSED ort_status ort_model_set_shape(ort_model *model, const char *input, int rank,
                                               const int64_t *dims, ort_error *err);

/* Take out what no runtime needs: documentation, names of nodes; initializers that nothing reads,
 * functions that are not called and imports of domains without a node. */
enum { ORT_STRIP_DOCS = 1, ORT_STRIP_NAMES = 2, ORT_STRIP_UNUSED = 4 };
void ort_model_strip(ort_model *model, unsigned what);
/* Axis `axis` of an input, of a fixed size so far, becomes the symbolic dimension `symbol`. Shapes
 * of computed values are inferred anew, and constant targets of Reshape that repeat the old size
 * follow the input's. Whether the model then runs at other sizes, ort_models_verify tells. */
ORT_WARN_UNUSED ort_status ort_model_make_dynamic(ort_env *env, ort_model *model,
                                                  const char *input, int axis, const char *symbol,
                                                  ort_error *err);

/* --------------------------------------------------------------------------------- optimizer -- */

/* A session optimizes for itself. These rewrite a model for a file: the result is ONNX of the
 * model's own opset, for any runtime. */
typedef struct ort_optimize_options {
    int level;                  /* 0 none, 1 basic, 2 extended; -1: default (2) */
    const char *const *passes;  /* only these, NULL-terminated; NULL: all of the level */
    const char *const *disable; /* not these, NULL-terminated; or NULL */
    int limit;                  /* only the first so many passes of that list; 0: all */
    bool contrib;               /* operators of com.microsoft may be written */
    bool keep_functions; /* calls of the model's own functions stay calls, as at level 0 without
                            `passes` */
    double max_growth;          /* folding may bring the weights to this multiple; 0: 1.0 */
    size_t growth_bytes;        /* and add so many bytes to that */
    /* After each pass, with the number of rewrites and its time; or NULL. */
    void (*on_pass)(void *arg, const char *pass, int changes, uint64_t ns);
    /* In the end, for each place that a pass left alone although it almost matches, with the
     * condition that failed; NULL: they go to the log, at debug level. Strings live as long as the
     * call. */
    void (*on_near_miss)(void *arg, const char *pass, const char *node, const char *condition);
    uint64_t *near_miss_ns; /* set to the time it took to find them; or NULL */
    void *arg; /* of both */
} ort_optimize_options;

void ort_optimize_options_init(ort_optimize_options *options);
/* Rewrites the model in place. Names of inputs and outputs, metadata and unknown fields stay; but
 * weights are no inputs any more where all of them are listed as such (pass weight_inputs). A pass
 * name that doesn't exist is ORT_ERROR_USAGE with the list; an invalid model ORT_ERROR_MODEL.
 * After a failure the model can only be freed. */
ORT_WARN_UNUSED ort_status ort_model_optimize(ort_env *env, ort_model *model,
                                              const ort_optimize_options *options,
                                              ort_error *err);
/* Float weights and what computes with them in 16 bits, where the operators allow it; inputs and
 * outputs of the graph keep their types, Casts stand at the borders. What is inside of bodies and
 * of functions that were kept stays float. */
typedef struct ort_narrow_options {
    ort_dtype dtype; /* FLOAT16, or BFLOAT16 (from opset 13) */
    /* Operators, nodes or values by name, NULL-terminated, or NULL: a node that is one, or touches
     * one, or was made by passes from one, stays float (from an operator, an expanded function or
     * one of equal nodes: if ort_model_follow came before the passes). So does one with a constant
     * beyond 65504, for FLOAT16. A name that is none of these, and of no operator known, is
     * ORT_ERROR_USAGE. */
    const char *const *keep;
    /* Each node that could be narrowed and isn't; or NULL. */
    void (*on_kept)(void *arg, const char *node, const char *why);
    void *arg;
} ort_narrow_options;
ORT_WARN_UNUSED ort_status ort_model_narrow(ort_env *env, ort_model *model,
                                            const ort_narrow_options *options, ort_error *err);
/* Before any pass: from here on what is made of nodes that bear one of these names, or are of such
 * an operator (NULL-terminated, or NULL), is known as such to ort_model_narrow. */
ORT_WARN_UNUSED ort_status ort_model_follow(ort_model *model, const char *const *names,
                                            ort_error *err);
/* Rewrites the model for version `opset` (7 to 28) of ai.onnx, up or down: bodies are rewritten,
 * functions expanded (or kept, where no operator in them changes), the IR version becomes the one
 * that opset was released with, unless something in the model needs a newer. What has no form in
 * that version is a blocker. With any, the status is ORT_ERROR_UNSUPPORTED, *blockers (freed by the
 * caller; or NULL) lists all of them and *reach (or NULL) is the version nearest to `opset` that
 * has none. After a failure the model can only be freed. */
ORT_WARN_UNUSED ort_status ort_model_set_opset(ort_env *env, ort_model *model, int opset,
                                               bool keep_functions, ort_findings **blockers,
                                               int *reach, ort_error *err);
/* The table of passes in the order they run: name (NULL past the end), level (3: sessions only) and
 * what it does. */
const char *ort_pass_name(int index, int *level, const char **doc);
/* Does a model compute the same to the bit after this pass? False for a name that no pass has. */
bool ort_pass_is_exact(const char *name);
/* An independent copy; weights are shared. */
ORT_WARN_UNUSED ort_status ort_model_copy(const ort_model *model, ort_model **copy,
                                          ort_error *err);

/* ---------------------------------------------------------------------------------- sessions -- */

/* A session is a model made ready to run; immutable, concurrent runs are safe. */
typedef struct ort_session ort_session;

typedef struct ort_session_options {
    int level;                /* 0 none, 1 basic, 2 extended, 3 layout; -1: default (3) */
    const char *const *disable; /* names of passes to leave out, NULL-terminated; or NULL */
    const char *providers;    /* "cpu"; NULL: cpu */
    bool strict;              /* an unsupported provider request is an error */
    const char *const *extra_outputs; /* names of intermediate values to keep, or NULL */
    bool keep_all;            /* keep every value (dumping): no node is fused; slower */
    bool keep_computed;       /* keep every value that the optimized graph still computes */
    bool no_pack;             /* ort_session_load: leave PATH.pack alone */
} ort_session_options;

void ort_session_options_init(ort_session_options *options);
/* When PATH.pack lies beside the model, was made by this library for it and for this kernel tier
 * (ort_model_save_packed), and the options are the default ones, the session is mapped from there.
 * Otherwise a line of the log says why not. */
ORT_WARN_UNUSED ort_status ort_session_load(ort_env *env, const char *path,
                                            const ort_session_options *options,
                                            ort_session **session, ort_error *err);
/* The model is borrowed and must outlive the session (its weights are used where they lie); it is
 * not changed: passes work on a copy of the graph. */
ORT_WARN_UNUSED ort_status ort_session_new(ort_env *env, ort_model *model,
                                           const ort_session_options *options,
                                           ort_session **session, ort_error *err);
void ort_session_free(ort_session *session);

size_t ort_session_input_count(const ort_session *session);
size_t ort_session_output_count(const ort_session *session); /* graph outputs, then extra ones */
const char *ort_session_input_name(const ort_session *session, size_t index);
const char *ort_session_output_name(const ort_session *session, size_t index);
/* "float[batch,3,224,224]", "seq(map(string,float))" */
const char *ort_session_input_type(const ort_session *session, size_t index);
const char *ort_session_output_type(const ort_session *session, size_t index);
/* Element type and dims (-1: symbolic or unknown) of a tensor input; rank -1 when unknown. */
ort_dtype ort_session_input_dtype(const ort_session *session, size_t index);
int ort_session_input_dims(const ort_session *session, size_t index, int64_t *dims, int capacity);
/* True when an input has a default (an initializer of the same name) and may be left out. */
bool ort_session_input_optional(const ort_session *session, size_t index);

/* A token with which another thread stops runs. */
typedef struct ort_cancel ort_cancel;
ORT_WARN_UNUSED ort_status ort_cancel_new(ort_cancel **cancel, ort_error *err);
void ort_cancel_set(ort_cancel *cancel);
void ort_cancel_clear(ort_cancel *cancel);
void ort_cancel_free(ort_cancel *cancel);

typedef void ort_node_fn(void *arg, const char *name, const char *op_type, const char *provider,
                         uint64_t begin_ns, uint64_t end_ns);
typedef void ort_value_fn(void *arg, const char *name, const ort_value *value);

typedef struct ort_profile ort_profile; /* below: profiles */

typedef struct ort_run_options {
    ort_cancel *cancel;   /* or NULL */
    double timeout_s;     /* 0: none */
    ort_node_fn *on_node; /* called after each node, in order; or NULL */
    ort_value_fn *on_value; /* called with each value when the session keeps all; or NULL */
    void *callback_arg;
    uint64_t seed;        /* of random operators without a seed attribute */
    /* All random operators draw in turn, whatever their seed attributes, from one generator as the
     * lines of a numpy script do: RandomState(seed), its first stream_skip numbers dropped. */
    bool one_stream;
    uint64_t stream_skip;
    ort_profile *profile; /* records this run; or NULL */
} ort_run_options;

/* inputs: one per session input, in order (NULL: use the default). outputs: filled with new values
 * in order of the session's outputs; an entry that is not NULL on entry is a tensor whose memory
 * receives the result without a copy (its type and shape must match). */
ORT_WARN_UNUSED ort_status ort_session_run(const ort_session *session, ort_value *const *inputs,
                                           ort_value **outputs, const ort_run_options *options,
                                           ort_error *err);

/* A binding keeps inputs, outputs and all working memory of one caller between runs: with repeated
 * shapes a run allocates nothing. One run at a time per binding. */
typedef struct ort_binding ort_binding;
ORT_WARN_UNUSED ort_status ort_binding_new(const ort_session *session, ort_binding **binding,
                                           ort_error *err);
void ort_binding_free(ort_binding *binding);
/* Takes a reference; the data is read in place at each run. NULL unbinds. */
ORT_WARN_UNUSED ort_status ort_binding_set_input(ort_binding *binding, const char *name,
                                                 ort_value *value, ort_error *err);
/* Results are written into this tensor's memory. NULL: the binding keeps its own. Memory that an
 * input reads is written when the run ends, but for a cache that is past and present at once (of
 * GroupQueryAttention and others of com.microsoft): its new rows are written in place. */
ORT_WARN_UNUSED ort_status ort_binding_set_output(ort_binding *binding, const char *name,
                                                  ort_value *value, ort_error *err);
ORT_WARN_UNUSED ort_status ort_binding_run(ort_binding *binding, const ort_run_options *options,
                                           ort_error *err);
/* Output of the last run; borrowed, valid until the next run or ort_binding_free. The output of a
 * state that grows in place is gathered into a plain tensor when it is first asked for after a run:
 * a copy of all its rows, NULL when there is no memory for it. */
ort_value *ort_binding_output(const ort_binding *binding, size_t index);

/* A state is an input and the output that is its next value: each run takes what the run before
 * gave out, by reference. Keys and values of a model that generates (past_key_values.0.key,
 * present.0.key) grow in place: they lie in memory of the binding that has room for more rows, a
 * run writes its new rows and copies none, and while the room suffices it neither allocates nor
 * plans. That takes an input which only the attention reads, as passes leave it (level 2 and up,
 * nothing kept for dumps), and an output that only the caller does; any other state is handed over
 * whole. Room doubles when it is used up.
 *
 * A state starts with the value that ort_binding_set_input gives or gave its input, which is copied
 * where the state grows, and otherwise read in place by the first run. Without one it starts as
 * zeros of the declared shape, in which an axis that grows has 0 rows, other symbolic axes take the
 * size of the same symbol in an input that is given (0: there is none) and unnamed ones 1.
 * ORT_ERROR_USAGE: no such names, types that don't fit, one of both belongs to a state already, or
 * the output is bound to the caller's memory. A run that fails leaves all states as they were. */
ORT_WARN_UNUSED ort_status ort_binding_set_state(ort_binding *binding, const char *input,
                                                 const char *output, ort_error *err);
/* From the next start on, states that grow have room for at least so many rows at once. */
void ort_binding_reserve_rows(ort_binding *binding, int64_t rows);
/* The next run starts all states over; ort_binding_set_input does so for one. Memory is kept. */
void ort_binding_restart(ort_binding *binding);
/* Does the state of this input grow in place? Settled by the first run; false for other names. */
bool ort_binding_state_grows(const ort_binding *binding, const char *input);

/* Times of the phases of session creation, in order: load, import, check, infer, each pass, plan,
 * prepack. Returns the number of phases; name and ns of phase `index`. */
size_t ort_session_phase_count(const ort_session *session);
const char *ort_session_phase(const ort_session *session, size_t index, uint64_t *ns,
                              int *changes);
/* Save the graph as it stands after the portable passes (levels 1 and 2). */
ORT_WARN_UNUSED ort_status ort_session_save_optimized(const ort_session *session, const char *path,
                                                      ort_error *err);

/* ---------------------------------------------------------------------------------- profiles -- */

/* What a session's runs spend their time on. Runs given this profile in their options are recorded;
 * those before ort_profile_start are warm-up and stay out of all figures but "first_ms" and the
 * trace. One recorded run at a time; the session must outlive the profile. */
typedef struct ort_profile_options {
    size_t max_events; /* executions of nodes kept for trace and percentiles; 0: 1,000,000 */
    bool cycles;       /* count processor cycles too, where the system allows it; costs a system
                          call or two per node */
    uint64_t load_ns;  /* time that loading the model took, for a session made of a model */
} ort_profile_options; /* all zero is the default */

ORT_WARN_UNUSED ort_status ort_profile_new(const ort_session *session,
                                           const ort_profile_options *options,
                                           ort_profile **profile, ort_error *err);
void ort_profile_free(ort_profile *profile);
void ort_profile_start(ort_profile *profile); /* the runs from here on are measured */

/* What the machine reaches: multiply-adds (two operations each) in registers, and streams through a
 * working set of each size, with all threads of an environment together. */
enum { ORT_PEAK_LEVELS = 4 };
typedef struct ort_peak {
    int threads;
    double gflops;
    double ghz; /* the clock of one core, by a chain of multiplications; 0: not known here */
    int level_count;
    struct {
        size_t bytes;        /* the working set that was measured */
        size_t serves_bytes; /* stands for working sets up to this */
        double gb_per_s;
    } levels[ORT_PEAK_LEVELS]; /* smallest first */
} ort_peak;
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

/* --------------------------------------------------------------------------- custom operators --
 */

/* An operator library adds operators of its own: a shared object that exports one const table named
 * ort_ops_entry. The tools load it with --ops-lib LIB.so, a program with ort_env_add_ops_library,
 * or with ort_env_add_ops when the table is linked in. It needs this header and no symbol of
 * libort: all it asks of the runtime goes through node->api. From then on check, inference,
 * reports, constant folding, plans and bodies of control flow treat its rows as they treat
 * built-in ones. A whole library (cc -shared -fPIC acme.c -o acme.so):
 *
 *     #include <ort.h>
 *     static ort_status infer(ort_ops_node *node, ort_error *err)
 *     {
 *         const ort_ops_tensor *x = node->api->input(node, 0);
 *         return node->api->set_type(node, 0, x->dtype, x->rank, x->dims, err);
 *     }
 *     static ort_status run(ort_ops_node *node, void *state, ort_error *err)
 *     {
 *         const ort_ops_tensor *x = node->api->input(node, 0);
 *         ort_ops_tensor *y = node->api->output(node, 0, x->rank, x->dims, err);
 *         float factor = node->api->attr_float(node, "factor");
 *         if (!y)
 *             return err->status;
 *         for (int64_t i = 0; i < x->count; i++)
 *             ((float *)y->data)[i] = factor * ((const float *)x->data)[i];
 *         return ORT_OK;
 *     }
 *     static const ort_ops_row rows[] = {
 *         {.domain = "acme", .name = "Scale", .since = 1, .signature = "X:T -> Y:T",
 *          .types = "T:f32", .attributes = "factor:f=1", .infer = infer, .run = run},
 *     };
 *     const ort_ops_library ort_ops_entry = {
 *         .abi = 1, .row_bytes = sizeof *rows, .name = "acme", .rows = rows, .row_count = 1};
 *
 * examples/example_ops.c shows the rest: several types, threads, constant, optional and variadic
 * inputs, strings, state, output shapes that depend on data.
 *
 * Rules
 * - err is never NULL in a callback. What it returns but ORT_OK ends the load or the run, with the
 *   node's name in front of its message.
 * - A `node` and what node->api gives from it are good until the callback returns. What create sees
 *   in attributes and in the data of constant inputs, and its memory from alloc, stay as long as
 *   the state.
 * - infer and create may be called for several nodes and sessions at once, run for one node at once
 *   by concurrent runs of a session: what run changes in the state, the library must guard. In a
 *   task of parallel, node->api must not be called (views fetched before are fine).
 * - Results must depend on inputs, attributes and creation only, unless the row says
 *   ORT_OPS_IMPURE: the runtime computes nodes with constant inputs once, while loading.
 * - The table and all that it refers to must stay until the environment is freed.
 */
#define ORT_OPS_ABI 1 /* goes up when members are added, always at the end of a struct */

/* A tensor as a callback sees it: row-major without gaps. Elements of less than 8 bits are packed
 * as in ONNX (the first in the low bits), strings are reached by get_string and set_string. */
typedef struct ort_ops_tensor {
    ort_dtype dtype;     /* ORT_DTYPE_UNDEFINED: not known (infer only) */
    int rank;            /* -1: not known (infer only) */
    const int64_t *dims; /* infer: a negative entry is a size not known yet. Equal entries other
                            than -1 are certainly equal sizes; copy them to outputs */
    int64_t count;       /* elements; -1: not known */
    void *data;          /* aligned to the element, 64 bytes where the runtime allocates. Inputs are
                            not to be written. infer, create: NULL unless the value is a constant
                            that is known by then */
} ort_ops_tensor;

typedef struct ort_ops_api ort_ops_api;

/* The node that a callback works for. */
typedef struct ort_ops_node {
    const ort_ops_api *api; /* what lies behind is the runtime's */
} ort_ops_node;

/* task: its number; thread: 0..threads-1, for scratch memory. */
typedef void ort_ops_task(void *arg, size_t task, int thread);

/* What a callback may ask for. A question that makes no sense (an attribute that the row does not
 * list, an output in infer) gives NULL or 0, and fails the callback with a message that says so. */
struct ort_ops_api {
    uint32_t abi;        /* of the runtime: members of later numbers are not there */
    const char *(*version)(void); /* of the runtime, as "0.1.0" */

    /* In every callback. */
    int (*opset)(const ort_ops_node *node); /* version of the domain that the model imports */
    int (*input_count)(const ort_ops_node *node); /* slots that the node names, "" among them */
    int (*output_count)(const ort_ops_node *node);
    const ort_ops_tensor *(*input)(const ort_ops_node *node, int index); /* NULL: left out */
    bool (*wanted)(const ort_ops_node *node, int output); /* false: left out */
    /* Attributes by name; the row's default when the node has none, else 0, NULL or an empty list.
     * Lists give their element count. Strings end with a NUL that is not counted. */
    bool (*attr_given)(const ort_ops_node *node, const char *name);
    int64_t (*attr_int)(const ort_ops_node *node, const char *name);
    float (*attr_float)(const ort_ops_node *node, const char *name);
    const char *(*attr_string)(const ort_ops_node *node, const char *name, size_t *length);
    const ort_ops_tensor *(*attr_tensor)(const ort_ops_node *node, const char *name);
    const int64_t *(*attr_ints)(const ort_ops_node *node, const char *name, size_t *count);
    const float *(*attr_floats)(const ort_ops_node *node, const char *name, size_t *count);
    size_t (*attr_count)(const ort_ops_node *node, const char *name); /* of any list */
    const char *(*attr_strings_at)(const ort_ops_node *node, const char *name, size_t index,
                                   size_t *length);
    const ort_ops_tensor *(*attr_tensors_at)(const ort_ops_node *node, const char *name,
                                             size_t index);
    /* Element of a string tensor, row-major: its bytes (no NUL behind them). */
    const char *(*get_string)(const ort_ops_tensor *tensor, int64_t index, size_t *length);
    /* Zeroed bytes, 64-byte aligned, given back by the runtime: what create took with the state,
     * else when the callback returns. NULL: memory is exhausted. */
    void *(*alloc)(ort_ops_node *node, size_t bytes);
    /* Fills err and returns `status`: `return node->api->fail(err, ORT_ERROR_RUN, "...", ...)`. */
    ort_status (*fail)(ort_error *err, ort_status status, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

    /* In infer. */
    /* dtype UNDEFINED: what the signature says. rank -1: not known. dims: sizes, negative entries
     * of inputs or of `dim`, -1. */
    ort_status (*set_type)(ort_ops_node *node, int output, ort_dtype dtype, int rank,
                           const int64_t *dims, ort_error *err);
    /* a op b for sizes that may not be known yet: '+', '-', '*', '/' (rounds down), '^' (divides,
     * rounds up), 'm' (min), 'M' (max). */
    int64_t (*dim)(ort_ops_node *node, char op, int64_t a, int64_t b);

    /* In run. */
    /* Memory of output `index` for this shape, of the element type that was inferred; not zeroed,
     * never the memory of an input. Every output that the node names must be asked for. One that is
     * left out gets memory that nobody reads. NULL on failure. */
    ort_ops_tensor *(*output)(ort_ops_node *node, int index, int rank, const int64_t *dims,
                              ort_error *err);
    /* Element of a string output; the bytes are copied. An element never set is "". */
    ort_status (*set_string)(ort_ops_node *node, ort_ops_tensor *output, int64_t index,
                             const char *text, size_t length, ort_error *err);
    int (*threads)(const ort_ops_node *node); /* that parallel may use, the caller included */
    /* Run task(arg, t, thread) for t in [0, count), return when all are done. What a task computes
     * may depend on its number only: results must be the same for every number of threads. */
    void (*parallel)(const ort_ops_node *node, size_t count, ort_ops_task *task, void *arg);
    bool (*cancelled)(const ort_ops_node *node); /* then clean up and return ORT_ERROR_CANCELLED */
    uint64_t (*seed)(const ort_ops_node *node);  /* of an IMPURE row: one draw per node and run */
};

/* What else holds for a row. */
enum {
    /* Another result each run (random numbers, state that run changes, the world outside): never
     * computed while loading, never merged with its like. */
    ORT_OPS_IMPURE = 1 << 0,
    /* Output shapes depend on data: they are settled by what run asks of `output`. infer may still
     * say types, ranks and some of the sizes. Implied when infer is NULL. Without it infer must say
     * every shape once those of the inputs are known, and the runtime plans the memory. */
    ORT_OPS_DYNAMIC = 1 << 1,
};

/* One version of one operator. */
typedef struct ort_ops_row {
    const char *domain; /* "acme". "" or "ai.onnx": a name that ONNX does not have */
    const char *name;
    int since;          /* first version of the domain that this row is for, from 1 */
    unsigned flags;     /* ORT_OPS_... */
    /* "X:T,W:T,B?:T,Rest*:T -> Y:T,Z?:i64". Name, then '?' (may be left out), '*' (last; one or
     * more of one type), '**' (of mixed types), '*0' (zero or more), then a type: a variable, or a
     * code: f16 f32 f64 bf16 i8 i16 i32 i64 u8 u16 u32 u64 bool str c64 c128 f8e4m3fn f8e4m3fnuz
     * f8e5m2 f8e5m2fnuz f8e8m0 f6e2m3 f6e3m2 f4e2m1 i4 u4 i2 u2. */
    const char *signature;
    /* "T:F,bf16 I:i32,i64": each variable's codes or groups (F = f16 f32 f64, I = i8..i64, U =
     * u8..u64, C, F8, F6, Q4, Q2). A variable has one type in all its slots. NULL: none. */
    const char *types;
    /* "alpha:f=0.5 axis:i! pads:is=[0,0] names:ss table:t": kinds i f s t is fs ss ts; '!' must be
     * given; '=' a default (of i f s is fs). NULL: none. */
    const char *attributes;
    /* Types and shapes of outputs. Called when a model is loaded (sizes may be open) and when the
     * shapes of a run are known. NULL: element types follow from the signature or from what the
     * model declares, shapes from the run. */
    ort_status (*infer)(ort_ops_node *node, ort_error *err);
    /* Once per node and session: attributes and constant inputs into *state. NULL: no state. */
    ort_status (*create)(ort_ops_node *node, void **state, ort_error *err);
    void (*destroy)(void *state); /* after a create that succeeded; may be NULL */
    ort_status (*run)(ort_ops_node *node, void *state, ort_error *err);
} ort_ops_row;

typedef struct ort_ops_library {
    uint32_t abi;       /* lowest ORT_OPS_ABI that has all it uses: 1 */
    uint32_t row_bytes; /* sizeof(ort_ops_row) */
    const char *name, *version; /* for messages and reports; version may be NULL */
    const ort_ops_row *rows;
    size_t row_count;
} ort_ops_library;

/* What an operator library defines (libort does not). */
extern const ort_ops_library ort_ops_entry;

/* Add an operator library to an environment: all of its rows or, after an error, none. A file that
 * can't be opened or is no shared object is ORT_ERROR_IO. Without the table, with an ABI newer than
 * ORT_OPS_ABI, a string that doesn't parse, an operator that is built in or already added, it is
 * ORT_ERROR_USAGE. Not while another thread uses the environment; models loaded before see it when
 * a session is made. */
ORT_WARN_UNUSED ort_status ort_env_add_ops_library(ort_env *env, const char *path, ort_error *err);
ORT_WARN_UNUSED ort_status ort_env_add_ops(ort_env *env, const ort_ops_library *library,
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
} ort_report;
ORT_WARN_UNUSED ort_status ort_model_report(ort_model *model, ort_report report, char **json,
                                            ort_error *err);
/* What this build runs: newest IR, opsets, and every operator with versions, types, providers and
 * the operator library it comes from. */
ORT_WARN_UNUSED ort_status ort_supports_report(const ort_env *env, char **json, ort_error *err);
/* A picture of the graph in DOT or SVG. */
ORT_WARN_UNUSED ort_status ort_model_draw(ort_model *model, bool svg, char **text,
                                          ort_error *err);
/* The summary of a model of any size from its wire format alone (weights are never touched). */
ORT_WARN_UNUSED ort_status ort_summary_report(const char *path, char **json, ort_error *err);
/* The pack beside a model file: does it fit, and why not; what it holds. verify: every byte of both
 * is read, and *fits also says that they are what was written. */
ORT_WARN_UNUSED ort_status ort_pack_report(ort_env *env, const char *path, bool verify, bool *fits,
                                           char **json, ort_error *err);
/* Structural difference, blind to the order of nodes and the names of temporaries. *equal tells;
 * *text lists what differs. */
ORT_WARN_UNUSED ort_status ort_model_diff(const ort_model *a, const ort_model *b, bool *equal,
                                          char **text, ort_error *err);
/* A new model that computes `outputs` from `inputs` (names of any values of the main graph). */
ORT_WARN_UNUSED ort_status ort_model_extract(const ort_model *model, const char *const *inputs,
                                             size_t input_count, const char *const *outputs,
                                             size_t output_count, ort_model **part,
                                             ort_error *err);
/* A constant of the model by name (initializer or Constant node), as a new value. */
ORT_WARN_UNUSED ort_status ort_model_constant(const ort_model *model, const char *name,
                                              ort_value **value, ort_error *err);
void ort_text_free(char *text);

/* ------------------------------------------------------------------- single operators, compare --
 */

typedef struct ort_attribute_spec { /* one attribute of a single-operator call */
    const char *name;
    char kind; /* 'i' int, 'f' float, 's' string, 'I' ints, 'F' floats */
    int64_t i;
    float f;
    const char *s;
    const int64_t *ints;
    const float *floats;
    size_t count;
} ort_attribute_spec;

/* Run one operator (domain "" is ai.onnx; opset 0: the newest) on values. outputs are new values.
 */
ORT_WARN_UNUSED ort_status ort_op_run(ort_env *env, const char *domain, const char *op_type,
                                      int opset, const ort_attribute_spec *attributes,
                                      size_t attribute_count, ort_value *const *inputs,
                                      size_t input_count, ort_value **outputs,
                                      size_t output_count, ort_error *err);

typedef struct ort_compare_options {
    double rtol, atol; /* |a - b| <= atol + rtol * |b|; NaN equals NaN */
} ort_compare_options;

typedef struct ort_difference {
    bool equal;          /* within tolerance, same kind, type and shape */
    double max_abs, max_rel;
    int64_t mismatches;  /* elements out of tolerance */
    int64_t worst;       /* index of the worst element, row-major */
    double worst_actual, worst_expected;
    char text[512];      /* one line that says it all */
} ort_difference;

/* expected is b. Strings and integers compare exactly (integers: rtol and atol apply too). */
ORT_WARN_UNUSED ort_status ort_value_compare(const ort_value *actual, const ort_value *expected,
                                             const ort_compare_options *options,
                                             ort_difference *difference, ort_error *err);

/* Does a rewritten model compute what the original computes? Both run, unoptimized, on the samples
 * or on made-up inputs (several sizes where dimensions are open), and their outputs are compared:
 * |a - b| <= tolerance * (max |b| of that output + |b|), b the original's; integers, strings and
 * bools exactly. */
typedef struct ort_verify_options {
    const ort_tensors *const *samples; /* inputs by name, one set each; NULL: made up */
    size_t sample_count;
    uint64_t seed;
    double tolerance; /* of float and double; 0: to the bit. 16-bit types get 1024 times as
                       * much, up to 0.1024 unless it is more itself */
    /* Instead of it, and for 8-bit integers too (of their 255 steps), where the rewritten model has
     * operators on codes in place of float ones: a code may flip, and flips add up. */
    double code_tolerance;
    double timeout_s; /* of each run; 0: none */
    /* Before each pair of runs, for progress; or NULL. */
    void (*on_run)(void *arg, int run, int runs);
    void *arg;
} ort_verify_options;

typedef enum ort_verdict { ORT_VERIFIED, ORT_DIFFERENT, ORT_NOT_VERIFIED } ort_verdict;

typedef struct ort_verification {
    ort_verdict verdict;
    int runs;              /* pairs of runs that were compared */
    int sizes;             /* of made-up inputs among them */
    double max_abs;        /* largest difference seen, and relative to its output's max |b| */
    double max_scaled;
    char output[256];      /* the output where that was, or the first that differs */
    char text[600];        /* what differs, or why nothing could be verified */
} ort_verification;

void ort_verify_options_init(ort_verify_options *options);
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
    /* |a - b| <= atol + rtol * (max |a| of that value + |a|), a the first session's; 16-bit types
     * get 1024 times rtol, up to 0.1024 unless it is more itself; integers, strings and bools agree
     * exactly. */
    double rtol, atol;
    const ort_run_options *run; /* of both; callbacks are not used. Or NULL */
} ort_locate_options;

typedef struct ort_first_difference {
    bool differs, is_output;
    char name[256], other[256]; /* the first value that differs: in a, in b */
    char node[320];             /* of a, that computes it: "node 'conv1' (Conv)" */
    char text[512];             /* how */
    int compared, by_structure, alone; /* values matched, of these by structure; only in a */
    double max_abs;             /* largest difference seen, differing or not */
    char worst[256];            /* where */
} ort_first_difference;

void ort_locate_options_init(ort_locate_options *options); /* rtol 1e-4 */
/* inputs: as of ort_session_run for a; b takes those of the same name. */
ORT_WARN_UNUSED ort_status ort_sessions_compare(const ort_session *a, const ort_session *b,
                                                ort_value *const *inputs,
                                                const ort_locate_options *options,
                                                ort_first_difference *result, ort_error *err);

/* Made-up inputs for a session: draws by name and role (ort-formats(5)); strings need a sample. */
ORT_WARN_UNUSED ort_status ort_session_random_inputs(const ort_session *session, uint64_t seed,
                                                     ort_value **inputs, ort_error *err);

/* High-water mark of resident memory of this process, bytes. */
size_t ort_peak_rss_bytes(void);
/* Nanoseconds since this process started (exec to now). */
uint64_t ort_process_age_ns(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
