/* pass.h - rewrites of a graph: a const table (passes.def), run in order, each to its own fixed
 * point, all of them again until a round changes nothing.
 *
 * A pass changes the graph through op/edit.h only, so facts are always current. Names of graph
 * inputs and outputs are kept. What a pass folds is computed on the scalar tier, denormals flushed
 * as in runs: the saved model has the same bytes on every machine.
 */
#ifndef ORT_PASS_PASS_H
#define ORT_PASS_PASS_H

#include "base/log.h"
#include "op/op.h"

typedef struct ort_pass ort_pass;
typedef struct ort_rewrite ort_rewrite;
typedef struct ort_near_misses ort_near_misses; /* of one round: pass/note.h */

typedef struct ort_pass_context {
    ort_graph *graph; /* the main graph or a body */
    const ort_registry *registry;
    const ort_kernels *k; /* scalar tier */
    const ort_kernels *target; /* the tier that will run the model, or NULL */
    const ort_log *log;
    const ort_pass *pass;
    bool portable; /* the result is written to a file that other runtimes read... */
    bool contrib;  /* ...which may use com.microsoft */
    bool any_order; /* of ort_pass_options */
    size_t *growth_bytes; /* what folding may still add to the weights */
    const struct ort_growing *growing; /* of ort_pass_options */
    const struct ort_hidden_defaults *hidden; /* of ort_pass_options */
    ort_near_misses *near_misses; /* of ort_pass_note; NULL: nobody asks */
    struct ort_rewrite_table *table; /* the pass's rows, parsed (rewrite.c); NULL: none yet */
} ort_pass_context;

struct ort_pass {
    const char *name;
    int level; /* 0 required, 1 basic, 2 extended, 3 a provider's lowering */
    /* It takes nodes away, joins moves of data or changes what is only chosen among: no result of
     * the model is rounded another way, so verification asks for the same bits. */
    bool exact;
    bool speaks; /* its near-misses are for users: lines of the log at info level */
    bool reassociates; /* sums of products: left out where math is strict */
    const char *doc;
    /* One sweep over the graph; *changes counts rewrites. NULL: the rows of `rewrites` are all. */
    ort_status (*apply)(ort_pass_context *context, int *changes, ort_error *err);
    const ort_rewrite *rewrites; /* rewrite.h; ended by one without `from`. NULL: none */
    const char *const *forms; /* named forms of these texts, ended by NULL; or NULL */
};

/* ORT_EACH_NODE for a pass's walk that visits each node by itself: it ends when the budget is over,
 * and whoever runs the passes says so and drops the model. Asked at every 32nd node, and by what
 * takes longer itself. */
#define ORT_PASS_EACH_NODE(graph, node)                                                            \
    for (size_t node##_k_ = 0;                                                                     \
         node##_k_ < (graph)->order.count &&                                                       \
         (node##_k_ % 32 || !ort_budget_over(ort_budget_current())); node##_k_++)                  \
        if (((node) = (graph)->nodes.data[(graph)->order.data[node##_k_]])->removed) {             \
        } else

/* All passes, those of providers too, in the order they run; NULL past the end. */
const ort_pass *ort_pass_at(int index);
/* The table of these, ended by NULL. */
const ort_pass *const *ort_pass_all(void);

/* What folding may add to the weights of a session, which stay in memory only. */
#define ORT_PASS_SESSION_GROWTH ((size_t)64 << 20)

/* Nodes whose results folding takes whatever their size, since they become smaller behind it. */
typedef struct ort_growing {
    bool (*grows)(const void *arg, const ort_graph *graph, const ort_node *node);
    const void *arg;
} ort_growing;

typedef struct ort_pass_options {
    const ort_pass *const *table; /* NULL-terminated; or NULL: that of passes.def */
    const ort_pass *const *names; /* what `only` and `disable` may name; NULL: those of the table */
    int level;                   /* run passes up to this level */
    const char *const *only;     /* names, NULL-terminated: these, whatever their level; or NULL */
    const char *const *disable;  /* names, NULL-terminated; or NULL */
    int limit;                   /* only the first so many passes; 0: all */
    size_t growth_bytes;         /* of ort_pass_context */
    const ort_growing *growing;  /* or NULL: none */
    const ort_registry *registry;
    const ort_kernels *target;   /* of ort_pass_context */
    const ort_log *log;
    bool portable, contrib; /* of ort_pass_context */
    bool any_order;         /* watched values are taken with their numbers in another order */
    bool keep_denormals;    /* of the environment: what is folded is what a run would compute */
    bool math_strict;       /* of the environment: no pass that reassociates */
    /* What the main graph's inputs are when nobody feeds them, which passes don't see
     * (graph/defaults.h); or NULL. */
    const struct ort_hidden_defaults *hidden;
    /* Called in the end for each pass that ran, with its total; or NULL. */
    void (*report)(void *arg, const ort_pass *pass, uint64_t ns, int changes);
    void *report_arg;
    /* Called in the end for each place that a pass left alone although it almost matches, with the
     * condition that failed; NULL: they are lines of the log at debug level,
     * or as the pass has it. */
    void (*near_miss)(void *arg, const ort_pass *pass, const char *node, const char *condition);
    void *near_miss_arg;
    uint64_t *near_miss_ns; /* what finding them took, which no pass is charged for; or NULL */
} ort_pass_options;

/* The n-th pass of those that these options run; NULL past them. */
const ort_pass *ort_pass_selected(const ort_pass_options *options, int n);

/* Run the table on a model. A name in `only` or `disable` that no pass has is ORT_ERROR_USAGE with
 * the list. */
ort_status ort_passes_run(ort_model *model, const ort_pass_options *options, ort_error *err);

/* The opset version with which a pass may write an operator that began at `since`: the model's; in
 * a session also a later one. 0 when it may not, with a note that says what is missing: a portable
 * file holds ai.onnx operators of its opset, and com.microsoft ones only where `contrib` allows
 * it. */
int ort_pass_opset(const ort_pass_context *context, const ort_node *node, const char *domain,
                   const char *op_type, int since);

/* A near-miss: a place that matches but for one condition, which the text names ("the linear result
 * has another reader"). Every pass says so before it lets go of such a place. They are asked for in
 * a round of its own, when nothing changes any more, and each is told once. */
void ort_pass_note(const ort_pass_context *context, const ort_node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define X(name) extern const ort_pass ort_pass_##name;
#include "pass/passes.def"
#undef X

#endif
