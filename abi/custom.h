/* custom.h - operators that a client brings: what stands behind OrtCustomOpDomain and behind the
 * objects that a kernel's functions are given.
 *
 * A session with such operators has an environment of its own, to which they are added as a library
 * of operators (ort_ops.h): a row for each name and version, whose callbacks call those of the
 * client. Several OrtCustomOps may share a name, each for other element types; the first that takes
 * the types of a node's inputs is its kernel.
 */
#ifndef ABI_CUSTOM_H
#define ABI_CUSTOM_H

#include "abi.h"

enum { ABI_REQUIRED, ABI_OPTIONAL_SLOT, ABI_VARIADIC };

/* The version that a client was built with tells how many members there are. */
struct OrtCustomOp {
    uint32_t version;
    void *(*CreateKernel)(const OrtCustomOp *, const OrtApi *, const OrtKernelInfo *);
    const char *(*GetName)(const OrtCustomOp *);
    const char *(*GetExecutionProviderType)(const OrtCustomOp *);
    int (*GetInputType)(const OrtCustomOp *, size_t index);
    size_t (*GetInputTypeCount)(const OrtCustomOp *);
    int (*GetOutputType)(const OrtCustomOp *, size_t index);
    size_t (*GetOutputTypeCount)(const OrtCustomOp *);
    void (*KernelCompute)(void *kernel, OrtKernelContext *);
    void (*KernelDestroy)(void *kernel);
    int (*GetInputCharacteristic)(const OrtCustomOp *, size_t index); /* from version 8 */
    int (*GetOutputCharacteristic)(const OrtCustomOp *, size_t index);
    int (*GetInputMemoryType)(const OrtCustomOp *, size_t index); /* 13; all memory is the CPU's */
    int (*GetVariadicInputMinArity)(const OrtCustomOp *);         /* 14 */
    int (*GetVariadicInputHomogeneity)(const OrtCustomOp *);
    int (*GetVariadicOutputMinArity)(const OrtCustomOp *);
    int (*GetVariadicOutputHomogeneity)(const OrtCustomOp *);
    OrtStatus *(*CreateKernelV2)(const OrtCustomOp *, const OrtApi *, const OrtKernelInfo *,
                                 void **kernel); /* 16 */
    OrtStatus *(*KernelComputeV2)(void *kernel, OrtKernelContext *);
    OrtStatus *(*InferOutputShapeFn)(const OrtCustomOp *, OrtShapeInferContext *); /* 17 */
    int (*GetStartVersion)(const OrtCustomOp *);
    int (*GetEndVersion)(const OrtCustomOp *);
    /* 18: which output may lie over which input. The library never lays them so. */
    size_t (*GetMayInplace)(int **inputs, int **outputs);
    void (*ReleaseMayInplace)(int *inputs, int *outputs);
    size_t (*GetAliasMap)(int **inputs, int **outputs);
    void (*ReleaseAliasMap)(int *inputs, int *outputs);
};

struct OrtCustomOpDomain {
    char *name;
    const OrtCustomOp **ops; /* the client's */
    size_t count;
};

/* A shared object that stays loaded while options or sessions refer to it. */
typedef struct abi_library {
    unsigned users; /* atomic */
    void *handle;
} abi_library;
void abi_library_release(abi_library *library);

/* The kernels of one name from one version on. */
typedef struct abi_family {
    struct abi_custom *custom;
    const char *domain, *name;
    int since;
    const OrtCustomOp **ops;
    size_t count;
    char *signature, *types;
} abi_family;

/* The operators of one session. */
typedef struct abi_custom {
    OrtEnv *shared;
    ort_env *env; /* of the session alone */
    ort_ops_library library;
    ort_ops_row *rows;
    abi_family *families;
    size_t count;
    abi_library **libraries;
    size_t library_count;
    OrtKeyValuePairs config; /* of the session's options */
    int code;                /* of the last callback that failed; atomic */
} abi_custom;
/* NULL in *out: the options have no operators. */
OrtStatus *abi_custom_new(OrtEnv *env, const OrtSessionOptions *options, abi_custom **out);
void abi_custom_free(abi_custom *custom);
/* Once the session is gone: nothing of the operators may be used any more. */
extern const ort_ops_row abi_custom_functions;

/* How many outputs and inputs an operator has, and what each is. */
size_t abi_op_slots(const OrtCustomOp *op, bool input);
int abi_op_type(const OrtCustomOp *op, size_t index, bool input);
int abi_op_characteristic(const OrtCustomOp *op, size_t index, bool input);
int abi_op_min_arity(const OrtCustomOp *op, bool input);
bool abi_op_homogeneous(const OrtCustomOp *op, bool input);

/* An attribute: of a node, or made by a client. */
struct OrtOpAttr {
    ort_attribute_spec spec; /* what it points at is its own */
    bool inside;             /* part of another object: not to be freed */
};
enum {
    ABI_ATTR_UNDEFINED,
    ABI_ATTR_INT,
    ABI_ATTR_INTS,
    ABI_ATTR_FLOAT,
    ABI_ATTR_FLOATS,
    ABI_ATTR_STRING,
    ABI_ATTR_STRINGS,
    ABI_ATTR_GRAPH,
    ABI_ATTR_TENSOR
};
OrtStatus *abi_attr_copy(const ort_attribute_spec *from, bool inside, OrtOpAttr **out);
void abi_attr_free(OrtOpAttr *attr);
/* Attribute `name` of the node that a callback works for; NULL in *out: it has none. */
OrtStatus *abi_attr_of(ort_ops_node *node, const char *name, OrtOpAttr **out);

typedef struct abi_slot {
    char *name;
    OrtTypeInfo *type; /* NULL: left out */
    OrtValue constant; /* of an input, or all NULL */
} abi_slot;

/* What a kernel may ask of its node while it is made, and through a copy as long as it likes. */
struct OrtKernelInfo {
    unsigned users; /* atomic */
    const abi_family *family;
    char *node;
    abi_slot *slots; /* inputs, then outputs */
    size_t input_count, output_count;
    OrtOpAttr **attrs;
    size_t attr_count;
};
OrtStatus *abi_kernel_info(const abi_family *family, ort_ops_node *node, OrtKernelInfo **out);

/* What a kernel may ask during a run. */
struct OrtKernelContext {
    ort_ops_node *node;
    const abi_family *family;
    size_t input_count, output_count;
    OrtValue *inputs, *outputs; /* made when they are asked for */
};

/* What shape inference may ask and say. */
struct OrtShapeInferContext {
    ort_ops_node *node;
    size_t input_count, output_count;
    OrtTypeInfo **inputs; /* made when they are asked for */
    OrtTensorTypeAndShapeInfo **outputs; /* what was said; or NULL */
    OrtOpAttr **attrs;
    size_t attr_count;
};
void abi_infer_release(OrtShapeInferContext *context);
/* A shape with its symbols, as a callback sees it. */
OrtStatus *abi_view_type(ort_ops_node *node, const ort_ops_tensor *view, OrtTypeInfo **out);
#endif
