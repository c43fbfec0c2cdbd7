/* ort.h - the public interface of libort: load, check, optimize, run ONNX models.
 *
 * This header reads as a tutorial. A program that runs a model:
 *
 *     ort_error err = ORT_ERROR_INIT;
 *     const char *in = "image", *out = "scores"; // ort-inspect --io net.onnx lists the names
 *     const int64_t dims[] = {1, 3, 224, 224};
 *     ort_env *env = NULL;
 *     ort_session *session = NULL;
 *     ort_value *x = NULL, *y = NULL;
 *     if (ort_env_new(NULL, &env, &err) ||
 *         ort_session_load(env, "net.onnx", NULL, &session, &err) ||
 *         ort_value_new_tensor(ORT_DTYPE_FLOAT, 4, dims, &x, &err) ||
 *         (fill(ort_value_data(x)), 0) ||
 *         ort_session_run(session, &in, &x, 1, &out, &y, 1, NULL, &err))
 *         fprintf(stderr, "%s\n", err.message);
 *     ort_value_free(y); ort_value_free(x); ort_session_free(session); ort_env_free(env);
 *
 * Rules that hold everywhere
 * - Every call that can fail returns an ort_status and takes `ort_error *err` last. err is owned by
 *   the caller, may be NULL, and is only written on failure.
 * - What a `_new` or `_load` call returns is given back with the matching `_free`; `_free(NULL)` is
 *   fine. Arguments are borrowed for the call, unless the function's name says `take`.
 * - The library prints nothing, never exits and opens no network connection. Messages go to the log
 *   callback of the environment. A wrong argument (NULL where something is needed, a number out of
 *   range, a value of another kind) is ORT_ERROR_USAGE or ORT_ERROR_DATA; calls without a status
 *   give NULL, 0, false or NaN then, or do nothing. Only a pointer to what isn't there any more, or
 *   never was, is beyond help.
 * - Options and results that the caller owns open with their size, which says what members they
 *   have: start from ORT_..._INIT, or ..._init in a running program. Later versions add members at
 *   the end, where 0 is what was before, so that a program built with an older header than the
 *   library's is understood, and one with a newer header where members that the library lacks are
 *   0. Structs without a size never change.
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

/* It has no size: it stays as it is in every version. */
typedef struct ort_error {
    ort_status status;
    int count;                    /* findings behind this message (1 for a plain error) */
    char message[ORT_ERROR_TEXT]; /* "node 'conv1' (Conv): input W is 64x3x3, needs rank 4" */
} ort_error;
#define ORT_ERROR_INIT {ORT_OK, 0, ""}

const char *ort_status_name(ort_status status); /* "model", "usage", ... */
int ort_status_exit(ort_status status);         /* exit status 0..5 of the tools */

/* ----------------------------------------------------------------------------- element types -- */

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

/* void TYPE_init(TYPE *): what TYPE's INIT says. Part of the program, so that the size is that of
 * the header which it was built with. */
#define ORT_INIT_(type, start)                                                                     \
    static inline void type##_init(type *object)                                                   \
    {                                                                                              \
        static const type initial = start;                                                         \
        *object = initial;                                                                         \
    }

/* An environment holds the thread pool, the registries and the log; its sessions share them. */
typedef struct ort_env ort_env;

typedef enum ort_log_level {
    ORT_LOG_QUIET = 0,
    ORT_LOG_WARNING = 1,
    ORT_LOG_INFO = 2,
    ORT_LOG_DEBUG = 3,
} ort_log_level;
typedef void ort_log_fn(void *arg, ort_log_level level, const char *message);

/* Threads that the program makes itself, to name them or to place them: `start` gives one that
 * calls work(work_arg) and then ends, or NULL where it can't, which fails what asked for it;
 * `join` waits for one that `start` gave. They are made with what asks for them, an environment or
 * a session with threads of its own, and joined when it goes. */
typedef struct ort_threads {
    void *(*start)(void *arg, void (*work)(void *work_arg), void *work_arg);
    void (*join)(void *arg, void *thread);
    void *arg;
} ort_threads;

#define ORT_DEFAULT_SPIN_US 2000

typedef struct ort_env_options {
    size_t size;
    int threads;          /* for the whole process; 0: affinity mask and cgroup quota decide */
    bool pin;             /* bind workers to processors; without, they avoid their caller's */
    int spin_us;          /* longest spin between loops, microseconds; -1: ORT_DEFAULT_SPIN_US */
    const char *isa;      /* "scalar", "avx2", "avxvnni", "avx512", "vnni", "amx"; NULL: the best */
    bool keep_denormals;  /* default: denormals are flushed in float arithmetic */
    bool math_strict;     /* sums of products as specified: neither Winograd's nor Strassen's */
    /* What a run may take with its results, and what loading, checking, rewriting a model or making
     * a session may take beside the weights of its files. 0: no limit of runs and of what sessions
     * hold for them, and one of loading, checking and rewriting that keeps them below 1 GB for a
     * file below 1 MB. ORT_ERROR_MEMORY beyond it. */
    size_t max_memory_bytes;
    ort_log_fn *log;
    void *log_arg;
    ort_log_level log_level;
    /* max_memory_bytes is one limit of all models, sessions, runs and results of the environment
     * together, not of each: what a tool that holds several of them keeps to. */
    bool limit_all;
    /* Rows multiply weights of a few bits in 8 bits an element, also where accuracy_level doesn't
     * ask for it; the log says what that may cost. */
    bool math_fast;
    const ort_threads *own_threads; /* the program's, read while the environment lives; or NULL */
} ort_env_options;
#define ORT_ENV_OPTIONS_INIT \
    {sizeof(ort_env_options), 0, false, -1, NULL, false, false, 0, NULL, NULL, ORT_LOG_WARNING, \
     false, false, NULL}
ORT_INIT_(ort_env_options, ORT_ENV_OPTIONS_INIT)

/* options may be NULL. An isa that this machine lacks is ORT_ERROR_USAGE with the list. */
ORT_WARN_UNUSED ort_status ort_env_new(const ort_env_options *options, ort_env **env,
                                       ort_error *err);
void ort_env_free(ort_env *env);
/* A token with which another thread stops runs, and the making ready of models. */
typedef struct ort_cancel ort_cancel;
ORT_WARN_UNUSED ort_status ort_cancel_new(ort_cancel **cancel, ort_error *err);
void ort_cancel_set(ort_cancel *cancel);
void ort_cancel_clear(ort_cancel *cancel);
void ort_cancel_free(ort_cancel *cancel);
/* From now on each call that loads a model of this environment, checks, reports or rewrites it,
 * makes a session of it or makes up inputs for one ends with ORT_ERROR_TIMEOUT after so many
 * seconds (0: never) and with ORT_ERROR_CANCELLED once the token is set (NULL: none; it must
 * outlive the environment's models and sessions). A model keeps the limits that it was loaded
 * under. Not while such a call is in progress. */
void ort_env_limit_loading(ort_env *env, double timeout_s, const ort_cancel *cancel);
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
/* A tensor over the caller's memory, aligned for its elements, which must stay until the value is
 * freed. Not of strings. */
ORT_WARN_UNUSED ort_status ort_value_new_borrowed(ort_dtype dtype, int rank, const int64_t *dims,
                                                  void *data, size_t bytes, ort_value **value,
                                                  ort_error *err);
/* The same, and release(arg, data) is called when the last reference goes, by whatever thread has
 * it. After a failure the memory is still the caller's. */
typedef void ort_release_fn(void *arg, void *data);
ORT_WARN_UNUSED ort_status ort_value_new_taking(ort_dtype dtype, int rank, const int64_t *dims,
                                                void *data, size_t bytes, ort_release_fn *release,
                                                void *release_arg, ort_value **value,
                                                ort_error *err);
ORT_WARN_UNUSED ort_status ort_value_new_sequence(ort_value **value, ort_error *err);
/* Appends a reference to `item`, which grows no more from then on if it is a sequence itself. */
ORT_WARN_UNUSED ort_status ort_value_append(ort_value *sequence, ort_value *item, ort_error *err);
/* keys (int64 or string) and values: one-dimensional tensors of equal length. */
ORT_WARN_UNUSED ort_status ort_value_new_map(ort_value *keys, ort_value *values, ort_value **map,
                                             ort_error *err);
/* One more reference, to be given back by ort_value_free; returns `value`. */
ort_value *ort_value_retain(ort_value *value);
void ort_value_free(ort_value *value);

ort_value_kind ort_value_get_kind(const ort_value *value);
ort_dtype ort_value_dtype(const ort_value *value);
int ort_value_rank(const ort_value *value);
const int64_t *ort_value_dims(const ort_value *value);
int64_t ort_value_count(const ort_value *value);      /* elements; items of a sequence or map */
void *ort_value_data(ort_value *value);               /* packed bytes; not for strings */
size_t ort_value_bytes(const ort_value *value);
/* Strings are bytes with a length (NULL: not wanted), which may have NULs among them. Those of a
 * value stay until the element is set again; their memory is given back with the value. */
const char *ort_value_string(const ort_value *value, int64_t index, size_t *length);
ORT_WARN_UNUSED ort_status ort_value_set_string(ort_value *value, int64_t index, const char *text,
                                                size_t length, ort_error *err);
/* The same for a string that the caller writes: the element becomes `length` zero bytes, at *text.
 */
ORT_WARN_UNUSED ort_status ort_value_resize_string(ort_value *value, int64_t index, size_t length,
                                                   char **text, ort_error *err);
/* Item of a sequence; of a map: 0 is the key tensor, 1 the value tensor. Borrowed. */
ort_value *ort_value_item(const ort_value *value, size_t index);
/* Element of a numeric or bool tensor as a double (exact up to 2^53); NaN where there is none. */
double ort_value_get_double(const ort_value *value, int64_t index);
void ort_value_set_double(ort_value *value, int64_t index, double number);
/* 64-bit digest of type, shape and bytes; the same on every machine. */
uint64_t ort_value_digest(const ort_value *value);

/* ---- values on devices. A device is one of a provider's; memory on it is common to all sessions
 * of the environment whose lists name the device, so that what one of them gives the next one takes
 * where it lies. Everything here goes before the environment does. */
typedef struct ort_device ort_device;
/* One of a list of providers, as "opencl:device=1"; other options say nothing of memory.
 * ORT_ERROR_DEVICE: it is missing. ORT_ERROR_UNSUPPORTED: the provider keeps no memory for callers.
 * Values and sessions hold it by themselves: it may be freed while they are there. */
ORT_WARN_UNUSED ort_status ort_device_open(ort_env *env, const char *provider, ort_device **device,
                                           ort_error *err);
void ort_device_free(ort_device *device);
const char *ort_device_name(const ort_device *device); /* what it was opened as first */
/* A tensor on the device, of unset elements; not of strings. It is an input or output of runs as
 * any other value. ort_value_data is NULL, and only the functions here reach its elements. */
ORT_WARN_UNUSED ort_status ort_value_new_on_device(ort_device *device, ort_dtype dtype, int rank,
                                                   const int64_t *dims, ort_value **value,
                                                   ort_error *err);
/* A tensor over a part of one on a device, from byte `offset` on: a multiple of
 * ort_device_alignment. It holds the whole one. */
ORT_WARN_UNUSED ort_status ort_value_new_part(ort_value *whole, size_t offset, ort_dtype dtype,
                                              int rank, const int64_t *dims, ort_value **part,
                                              ort_error *err);
size_t ort_device_alignment(const ort_device *device);
/* Where a value lies: borrowed from it; NULL: on the host. */
ort_device *ort_value_device(const ort_value *value);
/* Elements of a tensor into another of the same type and number of them, wherever both lie. */
ORT_WARN_UNUSED ort_status ort_value_copy(ort_value *to, const ort_value *from, ort_error *err);
/* A copy on the host; of a value that is there, too. */
ORT_WARN_UNUSED ort_status ort_value_to_host(const ort_value *value, ort_value **host,
                                             ort_error *err);

/* What a model says of a value. Made and owned by the library, which may add members at the end. */
typedef enum ort_type_kind {
    ORT_TYPE_UNKNOWN = 0,
    ORT_TYPE_TENSOR,
    ORT_TYPE_SPARSE,
    ORT_TYPE_SEQUENCE,
    ORT_TYPE_OPTIONAL,
    ORT_TYPE_MAP,
    ORT_TYPE_OPAQUE,
} ort_type_kind;

typedef struct ort_type_info {
    ort_type_kind kind;
    ort_dtype dtype;            /* element of a tensor, key of a map; UNDEFINED: not known */
    int rank;                   /* of a tensor; -1: not known */
    const int64_t *dims;        /* [rank]; -1: not a number */
    const char *const *symbols; /* [rank]: "batch", "2*n+3"; NULL: a number, or nameless */
    const struct ort_type_info *element; /* of a sequence or optional, value of a map; or NULL */
    const char *text;           /* "float[batch,3,224,224]", "seq(map(string,float))" */
    /* What the file says it stands for, in ONNX's words, or NULL: "IMAGE"; of each axis
     * "DATA_BATCH", "DATA_CHANNEL". A shape set by ort_model_set_shape has none. */
    const char *denotation;
    const char *const *denotations; /* [rank] */
} ort_type_info;

/* ------------------------------------------------------------------------------ tensor files -- */

/* Named values in order, as a tensor file or stream holds them. */
typedef struct ort_tensors ort_tensors;

ORT_WARN_UNUSED ort_status ort_tensors_new(ort_tensors **tensors, ort_error *err);
void ort_tensors_free(ort_tensors *tensors);
size_t ort_tensors_count(const ort_tensors *tensors);
const char *ort_tensors_name(const ort_tensors *tensors, size_t index); /* "" when unnamed */
ort_value *ort_tensors_value(const ort_tensors *tensors, size_t index); /* borrowed */
int ort_tensors_sample_rate(const ort_tensors *tensors); /* of the sound it was read from; or 0 */
/* Adds a reference; replaces a value of the same non-empty name. */
ORT_WARN_UNUSED ort_status ort_tensors_add(ort_tensors *tensors, const char *name,
                                           ort_value *value, ort_error *err);

/* The files that a record was made of: one, or one per row of a batch; .npz carries the names. */
ORT_WARN_UNUSED ort_status ort_tensors_add_source(ort_tensors *tensors, const char *name,
                                                  ort_error *err);
size_t ort_tensors_source_count(const ort_tensors *tensors);
const char *ort_tensors_source(const ort_tensors *tensors, size_t index);

/* Columns of a table that are no values, and go with the rows from what is read to what is made of
 * it (ort_read_options.keep): strings, one per row. .csv, .json and .npz carry them. */
ORT_WARN_UNUSED ort_status ort_tensors_add_column(ort_tensors *tensors, const char *name,
                                                  ort_value *value, ort_error *err);
size_t ort_tensors_column_count(const ort_tensors *tensors);
const char *ort_tensors_column_name(const ort_tensors *tensors, size_t index);
ort_value *ort_tensors_column(const ort_tensors *tensors, size_t index); /* borrowed */

/* The formats that programs name. The library may have more: one without a name here has a number
 * above ORT_FORMAT_COUNT, for this build of the library: ort_format_parse tells it, ort_format_at
 * those of all. What is named here keeps its number within a major version. */
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

/* What a file of a format holds, and which options it takes. */
enum {
    ORT_FORMAT_MANY = 1,           /* several values, each under its name */
    ORT_FORMAT_NESTED = 2,         /* sequences and maps */
    ORT_FORMAT_COLUMNS = 4,        /* columns beside the values (ort_tensors_add_column) */
    ORT_FORMAT_ROWS = 8,           /* a table: values are rows, and may go on (goes_on, sources) */
    ORT_FORMAT_LINES = 16,         /* records on lines of their own, one behind the other */
    ORT_FORMAT_SINGLE = 32,        /* one picture, one sound: never the records of several runs */
    ORT_FORMAT_UNTYPED = 64,       /* neither element type nor shape: whoever reads it says them */
    ORT_FORMAT_TAKES_PLAIN = 128,  /* ort_write_options.plain */
    ORT_FORMAT_TAKES_QUALITY = 256, /* ort_write_options.quality */
    ORT_FORMAT_TAKES_DTYPE = 512,  /* ort_read_options.dtype; files of others say their own */
    ORT_FORMAT_TAKES_DIMS = 1024   /* ort_read_options.rank and dims; likewise */
};

/* All formats, in the order of lists: ORT_FORMAT_COUNT behind the last. */
ort_format ort_format_at(int index);
const char *ort_format_name(ort_format format);     /* "auto" when unknown */
/* What a choice of it for writing is called, words separated by spaces: "npy", "csv tsv". */
const char *ort_format_words(ort_format format);
ort_format ort_format_parse(const char *name);      /* name, word or extension; ORT_FORMAT_COUNT */
ort_format ort_format_of_path(const char *path);    /* by extension; AUTO when it says nothing */
/* ORT_FORMAT_MANY and so on. `path`: of a file, or a word: some hold of one extension; or NULL. */
unsigned ort_format_traits(ort_format format, const char *path);
/* Those with all of these traits, for a message: ".npz, .safetensors and .json". Returns `text`. */
const char *ort_format_list(unsigned traits, char *text, size_t size);

/* What a value of a file is for: name and type (ort_session_input_type) decide where the file says
 * nothing: numbers in text, protobuf bytes that could be a sequence or an optional value. */
typedef struct ort_purpose {
    const char *name;
    const ort_type_info *type; /* or NULL */
} ort_purpose;

typedef struct ort_read_options {
    size_t size;
    ort_format format;
    ort_dtype dtype;     /* raw, and raw elements of npy and npz; csv and json: convert to this
                          * (default: as purposes say, else float) */
    int rank;            /* raw, json: shape; rank -1: flat */
    const int64_t *dims; /* raw: one dim may be -1 */
    const char *label;   /* what messages call the stream; default the path */
    const ort_purpose *purposes; /* by name, or in order for values without one; or NULL */
    size_t purpose_count;
    bool resume;         /* a bad record whose end is known leaves *tensors empty beside its error:
                          * the next one can be read */
    /* csv: columns by the header's name or by number from 1, ended by NULL; or NULL. */
    const char *const *keep; /* pass through, as ort_tensors_column */
    const char *const *drop; /* are left out */
} ort_read_options;
#define ORT_READ_OPTIONS_INIT                                                                      \
    {sizeof(ort_read_options), ORT_FORMAT_AUTO, ORT_DTYPE_UNDEFINED, 0, NULL, NULL, NULL, 0,       \
     false, NULL, NULL}
ORT_INIT_(ort_read_options, ORT_READ_OPTIONS_INIT)

/* Read a whole file ("-": stdin), or one record of a stream: files one after another, of formats
 * that say where they end (pb and csv are one record). At a clean end *tensors is NULL and the
 * status ORT_OK. */
ORT_WARN_UNUSED ort_status ort_tensors_load(const char *path, const ort_read_options *options,
                                            ort_tensors **tensors, ort_error *err);
ORT_WARN_UNUSED ort_status ort_tensors_read(FILE *stream, const ort_read_options *options,
                                            ort_tensors **tensors, ort_error *err);
/* A folder test_data_set_N: prefix "input" or "output"; files input_0.pb or input0.pb, or .json. */
ORT_WARN_UNUSED ort_status ort_tensors_load_folder(const char *path, const char *prefix,
                                                   ort_tensors **tensors, ort_error *err);

/* The same for purposes in the model's order: every value gets the name of one, by its own name,
 * else by the number of its file. */
ORT_WARN_UNUSED ort_status ort_tensors_load_set(const char *path, const char *prefix,
                                                const ort_read_options *options,
                                                ort_tensors **tensors, ort_error *err);

typedef struct ort_write_options {
    size_t size;
    ort_format format;  /* AUTO: by path */
    int quality;        /* jpeg, webp: 1..100; 0: default */
    int sample_rate;    /* wav; 0: 16000 */
    const char *image;  /* "png", "jpeg", "bmp", "ppm", "webp"; NULL: by path, else png */
    bool plain;         /* json: bare lists and objects, which say no element types */
    bool sources;       /* csv: a first column "file" with the names of the sources */
    bool goes_on;       /* csv: rows of a table that was begun: no header */
    char separator;     /* csv: between cells; 0: a tab in files called .tsv, else a comma */
    const char *as;     /* a word of ort_format_words, or an extension: picture and separator are
                         * what files called so have, with AUTO the format too; NULL: by path */
} ort_write_options;
#define ORT_WRITE_OPTIONS_INIT                                                                     \
    {sizeof(ort_write_options), ORT_FORMAT_AUTO, 0, 0, NULL, false, false, false, 0, NULL}
ORT_INIT_(ort_write_options, ORT_WRITE_OPTIONS_INIT)

/* Can a file of that name be written, in a known format? To be asked before the work. */
ORT_WARN_UNUSED ort_status ort_tensors_check_path(const char *path,
                                                  const ort_write_options *options,
                                                  ort_error *err);
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

/* The bytes of a file of external data, which must stay until the model is freed. */
typedef struct ort_external_file {
    const char *name; /* as the model says it: "location" of the weights that lie there */
    const void *data;
    size_t bytes;
} ort_external_file;

typedef struct ort_load_options {
    size_t size;
    const char *external_dir; /* folder of external data for models from memory or a stream */
    size_t max_bytes;         /* refuse larger models; 0: no limit */
    bool skeleton;            /* weights are not needed: bytes of bulk fields are never touched */
    /* Weights that the file doesn't align stay as they lie until a pass computes with them: for
     * models that are rewritten and saved. A session of such a model aligns them first. */
    bool as_stored;
    const char *label;        /* what messages call the model; default the path */
    /* A model of a newer IR or opset than this library knows is refused, since what changed there
     * can't be known; true reads it as if it were of the newest that is. */
    bool allow_newer;
    /* External data lies below the model's folder, or where links from there lead: below the folder
     * of the file that a linked model is, or in the same cache of models (models--NAME, with
     * snapshots and blobs). It may also lie below this folder, where it is looked for last; links
     * may lead there. NULL: no further folder. */
    const char *external_root;
    /* Files of external data that are in memory: no file of these names is looked for. */
    const ort_external_file *external_files;
    size_t external_file_count;
    /* Weights will be gone through one after the other: pages of files come into memory in small
     * pieces, and nothing around them. Sessions pack weights faster without it. */
    bool in_pieces;
} ort_load_options;
#define ORT_LOAD_OPTIONS_INIT \
    {sizeof(ort_load_options), NULL, 0, false, false, NULL, false, NULL, NULL, 0, false}
ORT_INIT_(ort_load_options, ORT_LOAD_OPTIONS_INIT)

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
    size_t size;
    const char *external_data;   /* file name for weights, beside the model; NULL: by size */
    size_t external_threshold_bytes; /* tensors at least this large go there; 0: 1024 */
    bool inline_all;             /* never spill */
} ort_save_options;
#define ORT_SAVE_OPTIONS_INIT {sizeof(ort_save_options), NULL, 0, false}
ORT_INIT_(ort_save_options, ORT_SAVE_OPTIONS_INIT)

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
typedef struct ort_out_file ort_out_file;

/* "-": standard output */
ORT_WARN_UNUSED ort_status ort_out_file_open(const char *path, ort_out_file **file,
                                             ort_error *err);
FILE *ort_out_file_stream(const ort_out_file *file); /* write here */
/* Flush (`sync`: to the disk), put in place, free; a failure leaves no file. */
ORT_WARN_UNUSED ort_status ort_out_file_commit(ort_out_file *file, bool sync, ort_error *err);
/* Of several files that appear together: flush (`sync`: to the disk) and close this one, which then
 * waits under a temporary name, without a descriptor, for its commit. Its stream is NULL then. */
ORT_WARN_UNUSED ort_status ort_out_file_wait(ort_out_file *file, bool sync, ort_error *err);
/* Give up, free: no file appears. NULL is fine. */
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

/* An initializer gets other data (copied), of the element type and shape that it has. Sessions made
 * before keep theirs. ORT_ERROR_USAGE: the main graph has no such initializer. */
ORT_WARN_UNUSED ort_status ort_model_set_initializer(ort_model *model, const char *name,
                                                     const ort_value *value, ort_error *err);

/* What a model says of itself. Texts stay until it is changed or freed; "": it says nothing. */
typedef enum ort_model_text_kind {
    ORT_MODEL_PRODUCER_NAME,
    ORT_MODEL_PRODUCER_VERSION,
    ORT_MODEL_DOMAIN,
    ORT_MODEL_DOC,
    ORT_MODEL_GRAPH_NAME,
    ORT_MODEL_GRAPH_DOC,
} ort_model_text_kind;
const char *ort_model_text(const ort_model *model, ort_model_text_kind what);
int64_t ort_model_number(const ort_model *model); /* ModelProto.model_version */
int64_t ort_model_ir_version(const ort_model *model);
/* Version of a domain ("" and "ai.onnx" are one); 0: not imported. */
int64_t ort_model_opset(const ort_model *model, const char *domain);
/* Its properties (ModelProto.metadata_props): keys by place (NULL past the end), values by key
 * (NULL: there is none). Set to NULL, one goes. */
size_t ort_model_property_count(const ort_model *model);
const char *ort_model_property_key(const ort_model *model, size_t index);
const char *ort_model_property(const ort_model *model, const char *key);
ORT_WARN_UNUSED ort_status ort_model_set_property(ort_model *model, const char *key,
                                                  const char *value, ort_error *err);

/* The values of a model's main graph by name and type, without a session: what the file declares,
 * completed by inference. They hold of the model as it was then, and need it no more. */
typedef struct ort_types ort_types;
typedef enum ort_types_of {
    ORT_TYPES_INPUTS, /* those with a default, which are initializers too, among them */
    ORT_TYPES_OUTPUTS,
    ORT_TYPES_INITIALIZERS,
    ORT_TYPES_ALL, /* and what nodes compute */
} ort_types_of;
ORT_WARN_UNUSED ort_status ort_model_types(const ort_model *model, ort_types_of which,
                                           ort_types **types, ort_error *err);
void ort_types_free(ort_types *types);
size_t ort_types_count(const ort_types *types);
const char *ort_types_name(const ort_types *types, size_t index);          /* NULL past the end */
const ort_type_info *ort_types_info(const ort_types *types, size_t index); /* NULL past the end */
const ort_type_info *ort_types_find(const ort_types *types, const char *name); /* NULL: none */

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

/* A new model that computes `outputs` from `inputs` (names of any values of the main graph). */
ORT_WARN_UNUSED ort_status ort_model_extract(const ort_model *model, const char *const *inputs,
                                             size_t input_count, const char *const *outputs,
                                             size_t output_count, ort_model **part,
                                             ort_error *err);
/* A constant of the model by name (initializer or Constant node), as a new value. */
ORT_WARN_UNUSED ort_status ort_model_constant(const ort_model *model, const char *name,
                                              ort_value **value, ort_error *err);

/* --------------------------------------------------------------------------------- optimizer -- */

/* A session optimizes for itself. These rewrite a model for a file: the result is ONNX of the
 * model's own opset, for any runtime. */
typedef struct ort_optimize_options {
    size_t size;
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
#define ORT_OPTIMIZE_OPTIONS_INIT \
    {sizeof(ort_optimize_options), -1, NULL, NULL, 0, false, false, 0, 0, NULL, NULL, NULL, \
     NULL}
ORT_INIT_(ort_optimize_options, ORT_OPTIMIZE_OPTIONS_INIT)

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
    size_t size;
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
#define ORT_NARROW_OPTIONS_INIT {sizeof(ort_narrow_options), ORT_DTYPE_FLOAT16, NULL, NULL, NULL}
ORT_INIT_(ort_narrow_options, ORT_NARROW_OPTIONS_INIT)
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
    size_t size;
    int level;                /* 0 none, 1 basic, 2 extended, 3 layout; -1: default (3) */
    const char *const *disable; /* names of passes to leave out, NULL-terminated; or NULL */
    /* In order of preference, with commas, each with its options behind colons:
     * "opencl:device=0:fp16=1,cpu"; names as of ort_provider_name. The first of the table runs what
     * the others don't. NULL: it alone. A device that is missing is an error where the list names
     * nobody else, and a warning otherwise. */
    const char *providers;
    bool strict;              /* an unsupported provider request is an error */
    const char *const *extra_outputs; /* names of intermediate values to keep, or NULL */
    bool keep_all;            /* keep every value (dumping): no node is fused; slower */
    bool keep_computed;       /* keep every value that the optimized graph still computes */
    bool no_pack;             /* ort_session_load: leave PATH.pack alone */
    int threads;              /* of its own for this session; 0: those of the environment */
    bool allow_newer;         /* ort_session_load: as in ort_load_options */
    const char *external_root; /* ort_session_load: as in ort_load_options */
    /* Names of values that runs show to on_value when they are computed, NULL-terminated, or NULL:
     * no pass takes them away, and their memory is used again within the run. Values of bodies of
     * control flow too, at each of their runs: those of all bodies that have one of the name. */
    const char *const *watched;
    const ort_threads *own_threads; /* with `threads`: those of ort_env_options for this session */
} ort_session_options;
#define ORT_SESSION_OPTIONS_INIT \
    {sizeof(ort_session_options), -1, NULL, NULL, false, NULL, false, false, false, 0, false, \
     NULL, NULL, NULL}
ORT_INIT_(ort_session_options, ORT_SESSION_OPTIONS_INIT)

/* When PATH.pack lies beside the model, was made by this library for it and for this kernel tier
 * (ort_model_save_packed), and the options are the default ones, the session is mapped from there.
 * Otherwise a line of the log says why not. */
ORT_WARN_UNUSED ort_status ort_session_load(ort_env *env, const char *path,
                                            const ort_session_options *options,
                                            ort_session **session, ort_error *err);
/* Add a library of providers (ort_provider.h) to an environment: all of them or, after an error,
 * none. A file that can't be opened or is no shared object is ORT_ERROR_IO. Without the table, with
 * a version newer than this library's, a size that doesn't fit, or a name that is there already, it
 * is ORT_ERROR_USAGE. Not while another thread uses the environment; its code runs in this
 * process. */
ORT_WARN_UNUSED ort_status ort_env_add_provider_library(ort_env *env, const char *path,
                                                        ort_error *err);
/* The same for each name of a list (ort_session_options.providers) that the environment lacks and
 * one of the folders of ORT_PROVIDER_PATH (FOLDER:FOLDER) has as ort-provider-NAME.so. */
ORT_WARN_UNUSED ort_status ort_env_find_providers(ort_env *env, const char *list, ort_error *err);
/* As ort_provider_name and ort_providers_check, with those that were added. */
const char *ort_env_provider_name(const ort_env *env, int index);
ORT_WARN_UNUSED ort_status ort_env_providers_check(const ort_env *env, const char *list,
                                                   ort_error *err);
/* The providers of this build, first the one that runs where none is named; NULL past the end. */
const char *ort_provider_name(int index);
/* Those of other runtimes that this build lacks ("cuda"), so that a message can say so. */
const char *ort_provider_foreign_name(int index);
/* Is the list in order: names of this build, each with its options? ORT_ERROR_USAGE says what
 * isn't. Opens no device. */
ORT_WARN_UNUSED ort_status ort_providers_check(const char *list, ort_error *err);
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
const ort_type_info *ort_session_input_type(const ort_session *session, size_t index);
const ort_type_info *ort_session_output_type(const ort_session *session, size_t index);
/* Element type and dims (-1: symbolic or unknown) of a tensor input; rank -1 when unknown. */
ort_dtype ort_session_input_dtype(const ort_session *session, size_t index);
int ort_session_input_dims(const ort_session *session, size_t index, int64_t *dims, int capacity);
/* True when an input has a default (an initializer of the same name) and may be left out. */
bool ort_session_input_optional(const ort_session *session, size_t index);
/* What the session's model says of itself, as ort_model_text and its like. */
const char *ort_session_text(const ort_session *session, ort_model_text_kind what);
int64_t ort_session_number(const ort_session *session);
size_t ort_session_property_count(const ort_session *session);
const char *ort_session_property_key(const ort_session *session, size_t index);
const char *ort_session_property(const ort_session *session, const char *key);

typedef void ort_node_fn(void *arg, const char *name, const char *op_type, const char *provider,
                         uint64_t begin_ns, uint64_t end_ns);
typedef void ort_value_fn(void *arg, const char *name, const ort_value *value);

typedef struct ort_profile ort_profile; /* below: profiles */

typedef struct ort_run_options {
    size_t size;
    ort_cancel *cancel;   /* or NULL */
    double timeout_s;     /* 0: none */
    ort_node_fn *on_node; /* called after each node, in order; or NULL */
    /* Called with each value at the end of a run when the session keeps all, with watched ones and
     * outputs when they are computed (the value is good during the call); or NULL. */
    ort_value_fn *on_value;
    void *callback_arg;
    uint64_t seed;        /* of random operators without a seed attribute */
    /* All random operators draw in turn, whatever their seed attributes, from one generator as the
     * lines of a numpy script do: RandomState(seed), its first stream_skip numbers dropped. */
    bool one_stream;
    uint64_t stream_skip;
    ort_profile *profile; /* records this run; or NULL */
    /* Which of the session's outputs are wanted, for runs that name none; NULL: all. What only the
     * others need is not computed. wanted_count: ort_session_output_count. */
    const bool *wanted;
    size_t wanted_count;
} ort_run_options;
#define ORT_RUN_OPTIONS_INIT \
    {sizeof(ort_run_options), NULL, 0, NULL, NULL, NULL, 0, false, 0, NULL, NULL, 0}
ORT_INIT_(ort_run_options, ORT_RUN_OPTIONS_INIT)

/* Inputs by name; one that is not named, or NULL, takes its default. Outputs by name: only these
 * are computed, in any order. outputs[i] is filled with a new value; one that is not NULL on entry
 * is a tensor whose memory receives the result without a copy (its type and shape must match), also
 * on a device of the session. An input on one is read there; what else needs it gets a copy.
 * Names NULL: all of the session, in order, and the count must be that of the session; outputs that
 * options->wanted leaves out stay as they were. A name that doesn't exist or comes twice, and a
 * count that doesn't fit, is ORT_ERROR_USAGE. After a failure every entry of `outputs` is what it
 * was on entry (the memory of one that was given may have been written). */
ORT_WARN_UNUSED ort_status ort_session_run(const ort_session *session,
                                           const char *const *input_names,
                                           ort_value *const *inputs, size_t input_count,
                                           const char *const *output_names, ort_value **outputs,
                                           size_t output_count, const ort_run_options *options,
                                           ort_error *err);

/* A binding keeps inputs, outputs and all working memory of one caller between runs: with repeated
 * shapes, and results of the same shapes, a run allocates nothing of its own but for: the values
 * that a body of If, Loop or Scan is given and gives back, each round; strings that are made;
 * sequences and maps; scratch of operators whose sizes depend on values. All of it is given back
 * before the next run ends. One run at a time per binding. */
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
/* The binding keeps its own result there, a value on the device; NULL: on the host. */
ORT_WARN_UNUSED ort_status ort_binding_set_output_device(ort_binding *binding, const char *name,
                                                         ort_device *device, ort_error *err);
ORT_WARN_UNUSED ort_status ort_binding_run(ort_binding *binding, const ort_run_options *options,
                                           ort_error *err);
/* Output of the last run, NULL if that didn't want it; borrowed, valid until the next run or
 * ort_binding_free. The output of a state that grows in place is gathered into a plain tensor when
 * it is first asked for after a run: a copy of all its rows, NULL when there is no memory for it.
 */
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

/* -------------------------------------------------------------------------- single operators -- */

/* One attribute of a single-operator call, of any kind but graphs. */
typedef struct ort_attribute_spec {
    const char *name;
    char kind; /* 'i' int, 'f' float, 's' string, 't' tensor; 'I', 'F', 'S', 'T' lists of them */
    int64_t i;
    float f;
    const char *s;
    ort_value *t;
    const int64_t *ints;
    const float *floats;
    const char *const *strings;
    ort_value *const *tensors;
    size_t count; /* of a list */
    const size_t *lengths; /* of s or of each of strings, in bytes; NULL: they end with a NUL */
} ort_attribute_spec;

/* Run one operator (domain "" is ai.onnx; opset 0: the newest) on values. outputs are new values.
 */
ORT_WARN_UNUSED ort_status ort_op_run(ort_env *env, const char *domain, const char *op_type,
                                      int opset, const ort_attribute_spec *attributes,
                                      size_t attribute_count, ort_value *const *inputs,
                                      size_t input_count, ort_value **outputs,
                                      size_t output_count, ort_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#include "ort_tools.h" /* profiles, reports, comparing and verifying */
#include "ort_ops.h"   /* operators of one's own: ort_env_add_ops, ort_env_add_ops_library */
#endif
