/* check_whole.c - all that is wrong with a model as one error, for who goes no further then. */
#include "base/error.h"
#include "op/check/check.h"

ort_status ort_check_whole(ort_model *model, const ort_registry *registry, ort_error *err)
{
    ort_findings *findings = NULL;
    ort_status status = ort_findings_new(&findings, err);
    if (status == ORT_OK)
        status = ort_graph_check(model, registry, findings, err);
    if (status == ORT_OK)
        status = ort_findings_to_error(findings, ORT_ERROR_MODEL, err);
    if (status == ORT_ERROR_MODEL && model->refixed)
        status = ort_error_recast(err, ORT_ERROR_USAGE, "other sizes than the model's were given");
    ort_findings_free(findings);
    return status;
}

ort_status ort_check_copy(const ort_model *model, const ort_registry *registry, ort_error *err)
{
    ort_model *copy = NULL;
    ort_status status = ort_model_clone(model, &copy, err);
    if (status == ORT_OK)
        status = ort_check_whole(copy, registry, err);
    ort_model_free(copy);
    return status;
}
