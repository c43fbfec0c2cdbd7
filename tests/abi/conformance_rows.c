/* conformance_rows.c - models of ONNX's node tests as scenarios: each is described and run with its
 * own inputs through both libraries. Every sixth is taken, of all kinds of operators.
 */
#include "differ.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { STEP = 6, ROOM = 400, MOST = 16 };

/* 24 to 26 are in another order than in ONNX. */
static int type_number(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_FLOAT8E8M0  ? 26
           : dtype > ORT_DTYPE_FLOAT8E8M0 ? (int)dtype - 1
                                          : (int)dtype;
}

static OrtValue *copy(side *s, const ort_value *from)
{
    OrtValue *value = NULL;
    ort_dtype dtype = ort_value_dtype(from);
    if (!GOOD(s, CreateTensorAsOrtValue, s->allocator, ort_value_dims(from),
              (size_t)ort_value_rank(from), type_number(dtype), &value))
        return NULL;
    for (int64_t i = 0; dtype == ORT_DTYPE_STRING && i < ort_value_count(from); i++) {
        size_t length;
        char *room = NULL;
        const char *text = ort_value_string(from, i, &length);
        if (GOOD(s, GetResizedStringTensorElementBuffer, value, (size_t)i, length, &room) && length)
            memcpy(room, text, length);
    }
    void *data = NULL;
    if (dtype != ORT_DTYPE_STRING && ort_value_bytes(from) &&
        GOOD(s, GetTensorMutableData, value, &data))
        memcpy(data, ort_value_data((ort_value *)from), ort_value_bytes(from));
    return value;
}

static void run_all(side *s, OrtSession *session, const ort_tensors *inputs)
{
    size_t in_count = 0, out_count = 0, fed = ort_tensors_count(inputs);
    char *in[MOST], *out[MOST];
    OrtValue *feeds[MOST] = {0}, *results[MOST] = {0};
    GOOD(s, SessionGetInputCount, session, &in_count);
    GOOD(s, SessionGetOutputCount, session, &out_count);
    if (in_count > MOST || out_count > MOST || fed > in_count)
        return;
    for (size_t i = 0; i < fed; i++) {
        GOOD(s, SessionGetInputName, session, i, s->allocator, &in[i]);
        feeds[i] = copy(s, ort_tensors_value(inputs, i));
    }
    for (size_t i = 0; i < out_count; i++)
        GOOD(s, SessionGetOutputName, session, i, s->allocator, &out[i]);
    if (GOOD(s, Run, session, NULL, (const char *const *)in, (const OrtValue *const *)feeds, fed,
             (const char *const *)out, out_count, results))
        for (size_t i = 0; i < out_count; i++)
            say_value(s, results[i]);
    for (size_t i = 0; i < fed; i++) {
        s->api->AllocatorFree(s->allocator, in[i]);
        s->api->ReleaseValue(feeds[i]);
    }
    for (size_t i = 0; i < out_count; i++) {
        s->api->AllocatorFree(s->allocator, out[i]);
        s->api->ReleaseValue(results[i]);
    }
}

static bool only_tensors(const ort_tensors *inputs)
{
    for (size_t i = 0; i < ort_tensors_count(inputs); i++)
        if (ort_value_get_kind(ort_tensors_value(inputs, i)) != ORT_VALUE_TENSOR)
            return false;
    return true;
}

static void node_test(side *s, const row *r)
{
    char path[4096];
    ort_tensors *inputs = NULL;
    snprintf(path, sizeof path, "%s/model.onnx", r->a);
    OrtSession *session = open_model(s, path, NULL);
    if (!session)
        return;
    say_session(s, session);
    snprintf(path, sizeof path, "%s/test_data_set_0", r->a);
    if (ort_tensors_load_folder(path, "input", &inputs, NULL) == ORT_OK && only_tensors(inputs))
        run_all(s, session, inputs);
    ort_tensors_free(inputs);
    s->api->ReleaseSession(session);
}

static const char *why_known(const char *name)
{
    static const struct {
        const char *begins, *why;
    } known[] = {
        {"test_densenet121", "the file states version 0, which is none here"},
        {"test_inception_v", "the file states version 0, which is none here"},
        {"test_resnet50", "the file states version 0, which is none here"},
        {"test_squeezenet", "the file states version 0, which is none here"},
        {"test_split_to_sequence", "shapes of items that aren't declared are inferred here alone"},
        {"test_sequence_map_add_2_seq", "sizes of items are inferred here alone"},
        {"test_sequence_map_identity_1_sequence_expanded",
         "sizes of items are inferred here alone"},
        {"test_training_dropout_mask", "random draws are others"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strncmp(name, known[i].begins, strlen(known[i].begins)))
            return known[i].why;
    return NULL;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

void set_conformance(const char *folder, const table **found);

void set_conformance(const char *folder, const table **found)
{
    static row rows[ROOM];
    static table all = {"conformance", rows, 0};
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, by_name);
    for (int i = 0; i < count; i++) {
        char *path;
        if (!strncmp(entries[i]->d_name, "test_", 5) && i % STEP == 0 && all.count < ROOM &&
            asprintf(&path, "%s/%s", folder, entries[i]->d_name) > 0)
            rows[all.count++] = (row){.name = strrchr(path, '/') + 1,
                                      .run = node_test,
                                      .a = path,
                                      .models = true,
                                      .known = why_known(strrchr(path, '/') + 1)};
        free(entries[i]);
    }
    free(entries);
    *found = &all;
}
