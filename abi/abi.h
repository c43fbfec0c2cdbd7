/* abi.h - what the files of this folder share: the objects behind the ABI's opaque pointers, and
 * how statuses are made. ort.h is all they know of the library.
 *
 * Each object is made by a Create function and freed by its Release function; what one object
 * needs of another it holds a reference of, or a copy. So the order in which a client releases
 * them doesn't matter, as long as it uses none that it released. Objects that the ABI calls const
 * are never written after they were made: runs of one session may go on in many threads at once.
 */
#ifndef ABI_H
#define ABI_H

#include <ort.h>
#include <pthread.h>
#include <stdarg.h>

/* ------------------------------------------------------------------------------- the border -- */

/* Numbers of the ABI. The first version has the names of ort.h for some of them, with others
 * meant. */
enum abi_code {
    ABI_OK,
    ABI_FAIL,
    ABI_INVALID_ARGUMENT,
    ABI_NO_SUCH_FILE,
    ABI_NO_MODEL,
    ABI_ENGINE_ERROR,
    ABI_RUNTIME_EXCEPTION,
    ABI_INVALID_PROTOBUF,
    ABI_MODEL_LOADED,
    ABI_NOT_IMPLEMENTED,
    ABI_INVALID_GRAPH,
    ABI_EP_FAIL,
    ABI_MODEL_LOAD_CANCELED,
};
enum abi_type {
    ABI_UNKNOWN,
    ABI_TENSOR,
    ABI_SEQUENCE,
    ABI_MAP,
    ABI_OPAQUE,
    ABI_SPARSE,
    ABI_OPTIONAL
};
enum abi_severity { ABI_VERBOSE, ABI_INFO, ABI_WARNING, ABI_ERROR, ABI_FATAL };
enum { ABI_VERSION = 31, ABI_ALIGNMENT = 64, ABI_MAX_RANK = 64 };
#define ABI_VERSION_STRING "1.31.1"

typedef struct OrtStatus OrtStatus;
typedef struct OrtEnv OrtEnv;
typedef struct OrtThreadingOptions OrtThreadingOptions;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtSession OrtSession;
typedef struct OrtRunOptions OrtRunOptions;
typedef struct OrtValue OrtValue;
typedef struct OrtMemoryInfo OrtMemoryInfo;
typedef struct OrtArenaCfg OrtArenaCfg;
typedef struct OrtTypeInfo OrtTypeInfo;
typedef struct OrtTensorTypeAndShapeInfo OrtTensorTypeAndShapeInfo;
typedef struct OrtTypeInfo OrtMapTypeInfo, OrtSequenceTypeInfo, OrtOptionalTypeInfo;
typedef struct OrtIoBinding OrtIoBinding;
typedef struct OrtModelMetadata OrtModelMetadata;
typedef struct OrtKeyValuePairs OrtKeyValuePairs;
typedef struct OrtPrepackedWeightsContainer OrtPrepackedWeightsContainer;
typedef struct OrtSyncStream OrtSyncStream;
typedef struct OrtCustomOp OrtCustomOp;
typedef struct OrtCustomOpDomain OrtCustomOpDomain;
typedef struct OrtKernelInfo OrtKernelInfo;
typedef struct OrtKernelContext OrtKernelContext;
typedef struct OrtShapeInferContext OrtShapeInferContext;
typedef struct OrtOpAttr OrtOpAttr;
typedef struct OrtOp OrtOp;
typedef struct OrtLogger OrtLogger;
typedef struct OrtLoraAdapter OrtLoraAdapter;
typedef struct OrtValueInfo OrtValueInfo;
typedef struct OrtNode OrtNode;
typedef struct OrtGraph OrtGraph;
typedef struct OrtModel OrtModel;
typedef struct OrtModelEditorApi OrtModelEditorApi;
typedef struct OrtEpDevice OrtEpDevice;
typedef struct OrtHardwareDevice OrtHardwareDevice;
typedef struct OrtTrainingApi OrtTrainingApi;
typedef struct OrtApi OrtApi;
typedef struct OrtApiBase OrtApiBase;

typedef void abi_function(void);
typedef void (*OrtLoggingFunction)(void *param, int severity, const char *category,
                                   const char *log_id, const char *place, const char *message);
typedef void (*RunAsyncCallbackFn)(void *user_data, OrtValue **outputs, size_t count,
                                   OrtStatus *status);

/* Clients call its members, and bring allocators of their own. */
typedef struct OrtAllocator OrtAllocator;
struct OrtAllocator {
    uint32_t version;
    void *(*Alloc)(OrtAllocator *, size_t);
    void (*Free)(OrtAllocator *, void *);
    const OrtMemoryInfo *(*Info)(const OrtAllocator *);
    void *(*Reserve)(OrtAllocator *, size_t);                          /* from version 18 */
    OrtStatus *(*GetStats)(const OrtAllocator *, OrtKeyValuePairs **); /* from 23 */
    void *(*AllocOnStream)(OrtAllocator *, size_t, OrtSyncStream *);
    OrtStatus *(*Shrink)(OrtAllocator *);
};

typedef struct OrtEnvCreationOptions {
    uint32_t version;
    int32_t severity;
    const char *log_id;
    OrtLoggingFunction log;
    void *log_param;
    const OrtThreadingOptions *threading;
    const OrtKeyValuePairs *config;
} OrtEnvCreationOptions;

/* Threads that a client makes. */
typedef void *(*OrtCustomCreateThreadFn)(void *options, void (*work)(void *), void *work_arg);
typedef void (*OrtCustomJoinThreadFn)(const void *thread);

/* Every function that is provided, as slots.def says it. */
#define STATUS OrtStatus *
#define SLOT(number, since, returns, name, parameters) returns abi_##name parameters;
#define GAP(number, since, kind, name)
#include "slots.def"
#undef SLOT
#undef GAP
#undef STATUS

/* ------------------------------------------------------------------------- statuses, memory -- */

__attribute__((format(printf, 2, 3))) OrtStatus *abi_fail(enum abi_code code, const char *format,
                                                          ...);
OrtStatus *abi_from_error(const ort_error *err);
OrtStatus *abi_no_memory(void);
OrtStatus *abi_missing(const char *function);
/* Leaves the function unless `condition` holds. */
#define ABI_CHECK(condition, ...)                                                                  \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return abi_fail(ABI_INVALID_ARGUMENT, __VA_ARGS__);                                    \
    } while (0)
#define ABI_TRY(call)                                                                              \
    do {                                                                                           \
        OrtStatus *failed_ = (call);                                                               \
        if (failed_)                                                                               \
            return failed_;                                                                        \
    } while (0)

/* What is given out: to clients, and to the functions of their operators. */
const OrtApi *abi_table(void);
const OrtApiBase *abi_OrtGetApiBase(void);

/* Room for one element more in a growing list; NULL: no memory, `list` stays as it is. */
void *abi_grow(void *list, size_t count, size_t element);
/* A copy of `text`, or NULL, in place of what `place` had. */
OrtStatus *abi_keep_text(char **place, const char *text);
/* A copy of `text` in memory of a client's allocator. */
OrtStatus *abi_copy_out(OrtAllocator *allocator, const char *text, char **out);

/* ----------------------------------------------------------------------------------- objects -- */

/* Pairs in the order in which their keys came; later values replace earlier ones. */
struct OrtKeyValuePairs {
    char **keys, **values;
    size_t count;
};
bool abi_pairs_set(OrtKeyValuePairs *pairs, const char *key, const char *value);
/* The same for a config entry, whose key and value have bounds. */
OrtStatus *abi_pairs_enter(OrtKeyValuePairs *pairs, const char *key, const char *value);
const char *abi_pairs_get(const OrtKeyValuePairs *pairs, const char *key);
bool abi_pairs_copy(OrtKeyValuePairs *to, const OrtKeyValuePairs *from);
void abi_pairs_clear(OrtKeyValuePairs *pairs);

struct OrtMemoryInfo {
    char name[64];
    int allocator_type, id, mem_type; /* OrtAllocatorType, device, OrtMemType */
    int device_type, device_mem_type;
    uint32_t vendor;
    bool constant; /* belongs to the library: never freed */
};
extern const OrtMemoryInfo abi_cpu_memory;
extern OrtAllocator abi_default_allocator;

/* One for the process, counted: a second CreateEnv gives the first one's, as clients expect. */
struct OrtEnv {
    unsigned users; /* clients and sessions */
    ort_env *env;
    int threads;  /* 0: as many as the machine has for us */
    int severity; /* what is below isn't said */
    char *log_id;
    OrtLoggingFunction log;
    void *log_param;
    struct abi_makers *makers; /* of the threads, or NULL */
};
void abi_env_retain(OrtEnv *env);
const OrtLogger *abi_env_logger(const OrtEnv *env);
/* A line of the environment's log; until the options are NULL again, lines of this thread go where
 * they say, from the severity on that they say. */
__attribute__((format(printf, 3, 4))) void abi_log(const OrtEnv *env, int severity,
                                                   const char *format, ...);
void abi_log_for(const struct OrtSessionOptions *options);
/* An environment that shares the log of `env`: for operators that one session alone knows. */
OrtStatus *abi_env_private(OrtEnv *env, int threads, ort_env **made);

/* Who makes threads (threads.c). */
typedef struct abi_makers {
    ort_threads threads;
    OrtCustomCreateThreadFn create;
    OrtCustomJoinThreadFn join;
    void *options;
} abi_makers;
/* A copy with `threads` made of the others; NULL in *out: the client makes none. */
OrtStatus *abi_makers_new(const abi_makers *from, abi_makers **out);

struct OrtThreadingOptions {
    int intra_threads;
    char *affinity; /* or NULL */
    abi_makers makers;
};
OrtStatus *abi_check_affinity(const OrtThreadingOptions *options);

typedef struct abi_dim {
    char *name; /* of the symbol, or what the axis denotes */
    bool denotes;
    int64_t size;
} abi_dim;
typedef struct abi_named {
    char *name;
    ort_value *value;
    bool external; /* of an initializer: the model must have it */
} abi_named;

/* An entry of session options that a model has as a property, too: passes read it there. */
#define ABI_ACCURACY_ENTRY "session.qdq_matmulnbits_accuracy_level"

struct OrtSessionOptions {
    int level, execution_mode, intra_threads, log_severity, log_verbosity;
    bool mem_pattern, cpu_arena, deterministic, own_threads, cancel_loading;
    abi_makers makers;
    char *log_id, *optimized_path, *profile_prefix; /* NULL: none */
    OrtLoggingFunction log;
    void *log_param;
    OrtKeyValuePairs config;
    abi_dim *dims;
    size_t dim_count;
    abi_named *initializers; /* replace those of the model */
    size_t initializer_count;
    ort_external_file *files; /* external data in memory; names are ours */
    size_t file_count;
    const OrtCustomOpDomain **domains; /* the client's */
    size_t domain_count;
    struct abi_library **libraries; /* that registered some of them */
    size_t library_count;
};
OrtStatus *abi_options_keep(OrtSessionOptions *options, struct abi_library *library);

struct OrtSession {
    OrtEnv *env;
    struct abi_custom *custom; /* operators that the client brought, or NULL */
    abi_makers *makers;        /* of its threads, or NULL */
    ort_session *session;
    ort_model *model; /* what it was made of, or NULL: it keeps its file itself */
    bool entered;     /* it has the property ABI_ACCURACY_ENTRY of the options, not of its own */
    void *bytes;      /* of the model, copied */
    size_t byte_count;
    OrtSessionOptions *edited; /* a model that is edited: what it will be made with; else NULL */
    char *folder;              /* the same: of its external data, or "" */
    size_t *inputs;   /* without defaults, as indices of `session` */
    size_t input_count;
    size_t *defaults; /* inputs with one: overridable initializers */
    size_t default_count, output_count;
    struct abi_profiler *profiler; /* or NULL */
    pthread_mutex_t lock;          /* of jobs */
    struct abi_job *jobs;          /* runs in the background, run.c */
};
void abi_wait_for_jobs(OrtSession *session);
/* A session whose model is edited: of these bytes; of others from now on; made ready for runs. */
OrtStatus *abi_session_edit(const OrtEnv *env, const void *bytes, size_t count, const char *folder,
                            const OrtSessionOptions *options, OrtSession **out);
OrtStatus *abi_session_change(OrtSession *session, const void *bytes, size_t count, bool ready);
bool abi_session_has(const OrtSession *session, const char *name, bool input);

/* What runs write into a profile, one at a time. */
struct abi_profiler *abi_profiler_new(const ort_session *session, const char *prefix);
OrtStatus *abi_profiler_free(struct abi_profiler *profiler); /* writes what isn't written yet */
ort_profile *abi_profiler_begin(struct abi_profiler *profiler);
void abi_profiler_end(struct abi_profiler *profiler);

struct OrtRunOptions {
    int log_verbosity, log_severity;
    char *tag;
    char *profile_prefix; /* of a trace of its own, or NULL */
    ort_cancel *cancel;
    OrtKeyValuePairs config;
    abi_named *adapted; /* inputs that LoRA adapters give */
    size_t adapted_count;
};

/* ort.h has no sparse tensors; they live here, and can't be fed to a model. */
typedef struct abi_sparse {
    int format; /* OrtSparseFormat */
    int dtype;
    size_t rank;
    int64_t dims[ABI_MAX_RANK];
    ort_value *values;
    ort_value *indices[2]; /* COO: one; CSR: inner, outer; blocks: one of int32 */
} abi_sparse;

struct OrtValue {
    ort_value *value; /* a reference; NULL: sparse */
    abi_sparse *sparse;
    const OrtMemoryInfo *memory;
};
/* Takes the reference, also when it fails. */
OrtStatus *abi_wrap(ort_value *value, OrtValue **out);
void abi_sparse_free(abi_sparse *sparse);
OrtStatus *abi_check_tensor(const OrtValue *value);
/* Element types have other numbers where the ABI's came before ONNX's. -1: unknown. */
int abi_dtype_out(ort_dtype dtype);
ort_dtype abi_dtype_in(int type);

struct OrtTensorTypeAndShapeInfo {
    int dtype;
    bool has_shape, inside; /* part of an OrtTypeInfo: not to be freed */
    size_t rank;
    int64_t *dims;
    char **symbols; /* [rank]; "" where there is none */
};
struct OrtTypeInfo {
    enum abi_type type;
    bool inside;
    OrtTensorTypeAndShapeInfo tensor; /* of tensors, sparse ones too */
    int key;                          /* of a map */
    OrtTypeInfo *element;             /* of a sequence or optional, value of a map */
    char *denotation;
};
OrtStatus *abi_type_of(const ort_type_info *info, OrtTypeInfo **out);
OrtStatus *abi_type_copy(const OrtTypeInfo *from, OrtTypeInfo **out);
/* A shape that belongs to another object, and what frees it. */
OrtStatus *abi_shape_copy(const OrtTensorTypeAndShapeInfo *from, OrtTensorTypeAndShapeInfo **out);
void abi_shape_free(OrtTensorTypeAndShapeInfo *info);
OrtStatus *abi_tensor_type(int dtype, size_t rank, const int64_t *dims,
                           OrtTensorTypeAndShapeInfo **out);

/* The words of the ABI for a run that the library refused; NULL: it has none of its own. */
OrtStatus *abi_explain_run(const OrtSession *session, const char *const *input_names,
                           const OrtValue *const *inputs, size_t input_count,
                           const char *const *output_names, size_t output_count,
                           OrtValue *const *outputs);
/* The same where a node's run failed, and where a model's operator is unknown. */
OrtStatus *abi_explain_node(enum abi_code code, const ort_error *err);
OrtStatus *abi_explain_operator(const char *place, const ort_error *err);
#endif
