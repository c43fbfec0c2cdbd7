/* as_run.c - see as_run.h. */
#include "verify/as_run.h"

#include <stdlib.h>
#include <string.h>

#include "verify/agree.h"

static bool make_sessions(ort_as_run *r)
{
    ort_session_options options = ORT_SESSION_OPTIONS_INIT;
    for (int k = 0; k < 2; k++)
        if (!r->sessions[k] &&
            ort_exec_session_new(r->env, r->models[k], &options, &r->sessions[k], NULL) != ORT_OK)
            return false;
    return true;
}

static int find_output(const ort_session *session, const char *name)
{
    for (int i = 0; i < session->output_count; i++)
        if (!strcmp(session->outputs[i].name, name))
            return i;
    return -1;
}

/* Is the noise, the difference of both, less than a tenth of the signal? Of tensors of floats; of
 * others nothing is asked. */
static bool is_near(const ort_value *a, const ort_value *b)
{
    const double least_db = 10;
    ort_distance d = ORT_DISTANCE_INIT;
    if (!ort_agree_is_float(a) || a->kind != ORT_KIND_TENSOR || ort_agree_is_empty(a))
        return true;
    return ort_distance_add(&d, a, b, NULL) == ORT_OK && ort_distance_sqnr_db(&d) >= least_db;
}

static bool outputs_agree(const ort_as_run *r, ort_value *const *a, ort_value *const *b,
                          ort_value *const *const unoptimized[2], double tolerance)
{
    const ort_agreement how = {.tolerance = tolerance, .codes = tolerance};
    for (int i = 0; i < r->sessions[0]->output_count; i++) {
        ort_difference difference;
        int at = find_output(r->sessions[1], r->sessions[0]->outputs[i].name);
        if (at < 0 || !unoptimized[0][i] || !unoptimized[1][at] ||
            ort_agree_compare(a[i], b[at], &how, &difference, NULL) != ORT_OK ||
            !difference.equal || !is_near(unoptimized[0][i], unoptimized[1][at]))
            return false;
    }
    return true;
}

bool ort_as_run_agree(ort_as_run *r, ort_value *const *const inputs[2],
                      ort_value *const *const unoptimized[2], double tolerance)
{
    ort_value **outputs[2] = {NULL, NULL};
    ort_run_options options = ORT_RUN_OPTIONS_INIT;
    bool ok = make_sessions(r);
    for (int k = 0; k < 2 && ok; k++) {
        const size_t count = (size_t)r->sessions[k]->output_count;
        outputs[k] = calloc(count + 1, sizeof *outputs[k]);
        ok = outputs[k] && ort_session_run_all(r->sessions[k], inputs[k], outputs[k], &options,
                                               NULL) == ORT_OK;
    }
    ok = ok && outputs_agree(r, outputs[0], outputs[1], unoptimized, tolerance);
    for (int k = 0; k < 2; k++) {
        for (int i = 0; outputs[k] && i < r->sessions[k]->output_count; i++)
            ort_value_free(outputs[k][i]);
        free(outputs[k]);
    }
    return ok;
}

void ort_as_run_release(ort_as_run *r)
{
    for (int k = 0; k < 2; k++)
        ort_exec_session_release(r->sessions[k]);
}
