/* continue_text.c - lets a language model over bytes continue a text, its caches as states.
 *
 *     cc continue_text.c $(pkg-config --cflags --libs --static ort) -o continue_text
 *     ./continue_text model.onnx 'The import statement' 100
 *
 * The model takes input_ids and position_ids [batch, tokens] and past_NAME per layer, and gives out
 * logits [batch, tokens, 256] and present_NAME: the usual form of an exported decoder. Declared as
 * states, caches start empty and grow in place: a step computes one token and copies no past.
 */
#include <ort.h>
#include <stdlib.h>
#include <string.h>

/* Each present_NAME is the next value of past_NAME. */
static ort_status declare_states(const ort_session *session, ort_binding *binding, ort_error *err)
{
    for (size_t i = 0; i < ort_session_output_count(session); i++) {
        const char *output = ort_session_output_name(session, i);
        char input[200];
        if (strncmp(output, "present_", 8))
            continue;
        snprintf(input, sizeof input, "past_%s", output + 8);
        if (ort_binding_set_state(binding, input, output, err))
            return err->status;
    }
    return ORT_OK;
}

/* Run `count` tokens at positions from `first` on; *best: the likeliest token behind the last. */
static ort_status step(ort_binding *binding, const unsigned char *tokens, int64_t count,
                       int64_t first, unsigned char *best, ort_error *err)
{
    const int64_t dims[] = {1, count};
    ort_value *ids = NULL, *positions = NULL;
    if (!ort_value_new_tensor(ORT_DTYPE_INT64, 2, dims, &ids, err) &&
        !ort_value_new_tensor(ORT_DTYPE_INT64, 2, dims, &positions, err)) {
        for (int64_t i = 0; i < count; i++) {
            ((int64_t *)ort_value_data(ids))[i] = tokens[i];
            ((int64_t *)ort_value_data(positions))[i] = first + i;
        }
        if (!ort_binding_set_input(binding, "input_ids", ids, err) &&
            !ort_binding_set_input(binding, "position_ids", positions, err) &&
            !ort_binding_run(binding, NULL, err)) {
            ort_value *logits = ort_binding_output(binding, 0);
            int64_t last = ort_value_count(logits) - 256;
            *best = 0;
            for (int c = 1; c < 256; c++)
                if (ort_value_get_double(logits, last + c) >
                    ort_value_get_double(logits, last + *best))
                    *best = (unsigned char)c;
        }
    }
    ort_value_free(positions), ort_value_free(ids); /* the binding holds its own references */
    return err->status;
}

int main(int argc, char **argv)
{
    ort_error err = ORT_ERROR_INIT;
    ort_env *env = NULL;
    ort_session *session = NULL;
    ort_binding *binding = NULL;
    unsigned char token = 0;
    if (argc != 4 || !*argv[2]) {
        fprintf(stderr, "usage: continue_text MODEL TEXT COUNT\n");
        return 2;
    }
    int64_t length = (int64_t)strlen(argv[2]), count = atoi(argv[3]);
    if (ort_env_new(NULL, &env, &err) || ort_session_load(env, argv[1], NULL, &session, &err) ||
        ort_binding_new(session, &binding, &err) || declare_states(session, binding, &err))
        goto done;
    ort_binding_reserve_rows(binding, length + count);
    if (step(binding, (const unsigned char *)argv[2], length, 0, &token, &err))
        goto done;
    for (int64_t i = 0; i < count; i++) {
        putchar(token);
        if (step(binding, &token, 1, length + i, &token, &err))
            goto done;
    }
    putchar('\n');
done:
    if (err.status != ORT_OK)
        fprintf(stderr, "continue_text: %s\n", err.message);
    ort_binding_free(binding), ort_session_free(session), ort_env_free(env);
    return ort_status_exit(err.status);
}
