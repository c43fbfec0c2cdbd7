/* bisect.c - which pass changed what a model computes. Prefixes of the list of passes are tried:
 * the first that differs names the pass. */
#include "verify/bisect.h"

#include "base/options.h"

typedef struct bisection {
    ort_env *env;
    const ort_model *original;
    ort_pass_options passes;
    bool keep_functions;
    const ort_verify_options *verify;
} bisection;

static ort_status differs_after(const bisection *b, int count, bool *differs, ort_error *err)
{
    ort_model *copy = NULL;
    ort_verification result = ORT_VERIFICATION_INIT;
    ort_pass_options passes = b->passes;
    passes.limit = count;
    ORT_TRY(ort_model_clone(b->original, &copy, err));
    ort_status status = ort_model_rewrite(copy, &passes, b->keep_functions, err);
    if (status == ORT_OK)
        status = ort_models_verify(b->env, b->original, copy, b->verify, &result, err);
    *differs = status == ORT_OK && result.verdict == ORT_DIFFERENT;
    ort_model_free(copy);
    return status;
}

ort_status ort_bisect_passes(ort_env *env, const ort_model *original,
                             const ort_pass_options *options, bool keep_functions,
                             const ort_verify_options *verify, const ort_pass **pass,
                             ort_error *err)
{
    bisection b = {env, original, *options, keep_functions, verify};
    int low = 0, high = 0; /* the same after low passes, different after high */
    bool differs = false;
    *pass = NULL;
    while (ort_pass_selected(&b.passes, high))
        high++;
    if (high)
        ORT_TRY(differs_after(&b, high, &differs, err));
    if (!differs)
        return ORT_OK;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        ORT_TRY(differs_after(&b, middle, &differs, err));
        *(differs ? &high : &low) = middle;
    }
    *pass = ort_pass_selected(&b.passes, high - 1);
    return ORT_OK;
}

ort_status ort_model_bisect(ort_env *env, const ort_model *original,
                            const ort_optimize_options *options,
                            const ort_verify_options *verify, const char **pass, ort_error *err)
{
    if (!env || !original || !pass)
        return ort_error_null(err, __func__);
    ort_optimize_options own = ORT_OPTIMIZE_OPTIONS_INIT;
    options = ORT_OPTIONS_KNOWN(options, &own, err);
    if (!options)
        return ORT_ERROR_USAGE;
    ort_pass_options passes = ort_rewrite_options(original, options, env->registry, NULL);
    const ort_pass *found = NULL;
    passes.keep_denormals = env->options.keep_denormals;
    ORT_TRY(ort_bisect_passes(env, original, &passes, options->keep_functions, verify, &found,
                              err));
    *pass = found ? found->name : "";
    return ORT_OK;
}
