/* pairs.c - one model with two lists of providers, both sessions alive in one process, by turns of
 * a few milliseconds: what the host does to one side it does to the other.
 *
 * usage: pairs MODEL.onnx PROVIDERS PROVIDERS WINDOW_MS SECONDS
 *
 * Inputs are those of test_data_set_0 beside the model, else made up. Prints for each pair of
 * windows the milliseconds of a run on either side; the order of sides turns round from pair to
 * pair, and the first run of a window isn't counted where a window has room for several. Exit
 * status 1 where the model doesn't run, 2 where it doesn't with the first list.
 */
#include "../harness.h"
#include "ort_tools.h"

enum { LEAST_PAIRS = 6 };

typedef struct side {
    ort_session *session;
    ort_binding *binding;
} side;

static ort_value *inputs[HARNESS_VALUES];
static harness_values values;

static ort_status give_inputs(const ort_session *session, const char *model, ort_error *err)
{
    char folder[PATH_MAX];
    size_t count = ort_session_input_count(session);
    const char *slash = strrchr(model, '/');
    snprintf(folder, sizeof folder, "%.*s/test_data_set_0", slash ? (int)(slash - model) : 1,
             slash ? model : ".");
    if (count > HARNESS_VALUES)
        return HARNESS_FAIL(err, ORT_ERROR_DATA, "%s has too many inputs", model);
    if (access(folder, F_OK))
        return ort_session_random_inputs(session, 1, inputs, count, err);
    ort_status status = harness_load_values(folder, "input", &values, err);
    return status == ORT_OK ? harness_bind(session, &values, inputs, err) : status;
}

static ort_status open_side(side *s, ort_env *env, const char *model, const char *providers,
                            ort_error *err)
{
    ort_session_options options;
    ort_session_options_init(&options);
    options.providers = providers;
    ort_status status = ort_session_load(env, model, &options, &s->session, err);
    if (status == ORT_OK && !inputs[0])
        status = give_inputs(s->session, model, err);
    if (status == ORT_OK)
        status = ort_binding_new(s->session, &s->binding, err);
    for (size_t i = 0; status == ORT_OK && i < ort_session_input_count(s->session); i++)
        if (inputs[i])
            status = ort_binding_set_input(s->binding, ort_session_input_name(s->session, i),
                                           inputs[i], err);
    for (int i = 0; i < 3 && status == ORT_OK; i++)
        status = ort_binding_run(s->binding, NULL, err);
    return status;
}

/* The mean of a run: what waits for a processor counts. */
static ort_status run_window(side *s, double window, double *mean, ort_error *err)
{
    double begin = harness_now_ms(), now = begin;
    ort_status status = ort_binding_run(s->binding, NULL, err);
    size_t count = 1;
    now = harness_now_ms();
    if (now - begin < window / 4) { /* of the caches that the other side left */
        begin = now;
        count = 0;
    }
    while (status == ORT_OK && now - begin < window) {
        status = ort_binding_run(s->binding, NULL, err);
        now = harness_now_ms();
        count++;
    }
    *mean = (now - begin) / (double)count;
    return status;
}

int main(int argc, char **argv)
{
    side sides[2] = {{0}};
    ort_env *env = NULL;
    ort_error err;
    ort_status status = argc == 6 ? ort_env_new(NULL, &env, &err)
                                  : HARNESS_FAIL(&err, ORT_ERROR_USAGE, "five arguments");
    int failed = 1;
    if (status == ORT_OK && (status = open_side(&sides[0], env, argv[1], argv[2], &err)) != ORT_OK)
        failed = 2;
    if (status == ORT_OK)
        status = open_side(&sides[1], env, argv[1], argv[3], &err);
    double begin = harness_now_ms(), mean[2];
    for (int pair = 0; status == ORT_OK && (pair < LEAST_PAIRS || harness_now_ms() - begin <
                                            strtod(argv[5], NULL) * 1e3); pair++) {
        for (int i = 0; i < 2 && status == ORT_OK; i++) {
            int turn = (pair + i) % 2;
            status = run_window(&sides[turn], strtod(argv[4], NULL), &mean[turn], &err);
        }
        if (status == ORT_OK)
            printf("%.6f %.6f\n", mean[0], mean[1]);
    }
    if (status != ORT_OK)
        fprintf(stderr, "%s\n", err.message);
    for (int i = 0; i < 2; i++) {
        ort_binding_free(sides[i].binding);
        ort_session_free(sides[i].session);
    }
    ort_env_free(env);
    return status == ORT_OK ? 0 : failed;
}
