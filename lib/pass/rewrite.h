/* rewrite.h - passes as tables: what a row finds (emit/match.h) and what it writes instead
 * (emit/write.h), both as text (emit/notation.h).
 *
 *     {"x * (Tanh (Softplus x))", "(Mish x)"},
 *
 * A row is written where the model may hold what it writes: in a file ai.onnx operators of its
 * opset, and those of com.microsoft if it may have them; in a session, of any opset. Of several
 * texts that `to` has, the first that may be written is:
 *
 *     "file? (Swish x alpha=$a) | float? (ms.QuickGelu x alpha=$a)"
 *
 *     file?      of a model that is written to a file    session?  of one that runs here
 *     float?     of a result in float32                  real?     of any floating point
 *
 * The root's name and outputs, and the origin of all nodes that go, are given to what stands for
 * them; `to` may take another node's name (n:(Op a)).
 * tests/unit/test_rewrites.c builds every row and compares both sides.
 */
#ifndef ORT_PASS_REWRITE_H
#define ORT_PASS_REWRITE_H

#include "emit/write.h"
#include "pass/pass.h"

struct ort_rewrite {
    const char *from, *to;
    /* Why a place that matches is left alone, which is noted as a near-miss ("": as something
     * else altogether, without a note); NULL: it isn't. May give names to numbers that `to` has
     * (ort_match_let). */
    const char *(*unless)(const ort_pass_context *context, ort_match *match);
    /* What `to` needs besides, made when it is going to be written: constants. */
    ort_status (*prepare)(ort_pass_context *context, ort_match *match, ort_error *err);
    /* Instead of `to`: writes by itself, and counts what it changed. */
    ort_status (*write)(ort_pass_context *context, ort_match *match, int *changes, ort_error *err);
    unsigned flags; /* of the row, for its functions: ort_match.flags */
    /* For the test: what random values of the names don't reach, "x:2,3,4 b:4 e=0.001 x.i64". */
    const char *example;
};

/* One sweep with the rows of context->pass, from the results of the graph to its inputs, so that of
 * two roots the one that covers more comes first; at a node the first row that fits and may be
 * written is. When none is, the near-miss is noted: a row whose operators are all there, but one
 * constant or attribute is another, or an inner value has another reader. */
ort_status ort_rewrites_apply(ort_pass_context *context, int *changes, ort_error *err);

/* The matched nodes go (those with '+' stay); returns their joined origin, NULL without memory. */
const char *ort_match_remove(ort_match *match);
/* The same, and a node with the root's name and outputs, origin set, takes their place. name,
 * outputs, output_count and origin of the spec are filled in. */
ort_status ort_match_replace(ort_match *match, ort_node_spec *spec, ort_error *err);

/* For pass.c: what a pass's rows were parsed to, kept from round to round. */
void ort_rewrite_table_free(struct ort_rewrite_table *table);

#endif
