/* bad_ops.c - operator libraries that must be refused, one by each value of CASE. */
#include "ort.h"

static ort_status run(ort_ops_node *node, void *state, ort_error *err)
{
    (void)state;
    return node->api->fail(err, ORT_ERROR_RUN, "not meant to run");
}

#if CASE == 1 /* an operator that is built in */
#define ROW .domain = "ai.onnx", .name = "Relu", .since = 14, .signature = "X:f32 -> Y:f32"
#elif CASE == 2 /* a type that doesn't exist */
#define ROW .domain = "acme", .name = "Whirl", .since = 1, .signature = "X:float -> Y:float"
#elif CASE == 3 /* one of the example library */
#define ROW .domain = "example", .name = "Clip", .since = 1, .signature = "X:f32 -> Y:f32"
#else
#define ROW .domain = "acme", .name = "Whirl", .since = 1, .signature = "X:f32 -> Y:f32"
#endif

static const ort_ops_row rows[] = {{ROW, .run = run}};

#if CASE == 4 /* no table under the name that is looked for */
#define ort_ops_entry another_name
extern const ort_ops_library ort_ops_entry;
#endif
#if CASE == 5 /* of a runtime to come */
#define ABI (ORT_OPS_ABI + 1)
#else
#define ABI 1
#endif
#if CASE == 6 /* needs a symbol that nobody has */
int nobody_has_this(void);
int (*need)(void) = nobody_has_this;
#endif

const ort_ops_library ort_ops_entry = {
    .abi = ABI, .row_bytes = sizeof *rows, .name = "bad", .rows = rows, .row_count = 1};
