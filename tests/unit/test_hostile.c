/* test_hostile.c - every function of ort.h with arguments that make no sense: NULL where something
 * is needed, values of another kind, places out of range. Each answers with a status, or with what
 * ort.h names for calls without one; none ends the process. `make lint` holds the list complete:
 * a new function of ort.h joins here. */
#include <math.h>
#include <stdlib.h>

#include "ort.h"
#include "ort_provider.h"
#include "test.h"

static bool refuses(ort_status status)
{
    return status == ORT_ERROR_USAGE || status == ORT_ERROR_DATA || status == ORT_ERROR_MODEL ||
           status == ORT_ERROR_IO || status == ORT_ERROR_UNSUPPORTED;
}

#define CHECK_REFUSED(call) CHECK(refuses(call))

typedef struct things {
    ort_env *env;
    ort_model *model;
    ort_session *session;
    ort_binding *binding;
    ort_value *x, *words, *list;
    ort_tensors *tensors;
    ort_out_file *file;
    ort_profile *profile;
    ort_findings *findings;
    ort_cancel *cancel;
    ort_error err;
} things;

static things t;

static bool set_up(void)
{
    const int64_t dims[] = {1, 1, 8, 8}, two[] = {2};
    return !ort_env_new(NULL, &t.env, &t.err) &&
           !ort_model_load(t.env, "models/digits.onnx", NULL, &t.model, &t.err) &&
           !ort_session_new(t.env, t.model, NULL, &t.session, &t.err) &&
           !ort_binding_new(t.session, &t.binding, &t.err) &&
           !ort_value_new_tensor(ORT_DTYPE_FLOAT, 4, dims, &t.x, &t.err) &&
           !ort_value_new_tensor(ORT_DTYPE_STRING, 1, two, &t.words, &t.err) &&
           !ort_value_new_sequence(&t.list, &t.err) && !ort_tensors_new(&t.tensors, &t.err);
}

static void tear_down(void)
{
    ort_tensors_free(t.tensors);
    ort_value_free(t.list);
    ort_value_free(t.words);
    ort_value_free(t.x);
    ort_binding_free(t.binding);
    ort_session_free(t.session);
    ort_model_free(t.model);
    ort_env_free(t.env);
}

static void words_and_numbers(test_state *test)
{
    CHECK(ort_version() && *ort_version());
    CHECK_TEXT(ort_status_name((ort_status)-1), "unknown");
    CHECK(ort_status_exit((ort_status)99) == 4);
    CHECK(ort_dtype_name((ort_dtype)-7) && ort_dtype_name((ort_dtype)1000));
    CHECK(ort_dtype_parse(NULL) == ORT_DTYPE_UNDEFINED);
    CHECK(ort_dtype_bits((ort_dtype)1000) == 0);
    CHECK(ort_isa_list(NULL, 5) == 0 && ort_isa_list(NULL, 0) > 0 && ort_isa_list(NULL, -1) > 0);
    CHECK(ort_format_name((ort_format)-1) && ort_format_name((ort_format)77));
    CHECK(ort_format_at(-1) == ORT_FORMAT_COUNT && ort_format_at(1000) == ORT_FORMAT_COUNT);
    CHECK_TEXT(ort_format_words((ort_format)-1), "");
    CHECK(ort_format_traits((ort_format)77, "x.png") == 0);
    CHECK(ort_format_traits(ORT_FORMAT_IMAGE, "") == ort_format_traits(ORT_FORMAT_IMAGE, NULL));
    CHECK_TEXT(ort_format_list(0, NULL, 9), "");
    CHECK(ort_format_parse(NULL) == ORT_FORMAT_COUNT);
    CHECK(ort_format_of_path(NULL) == ORT_FORMAT_AUTO);
    CHECK(!ort_pass_name(-1, NULL, NULL) && !ort_pass_name(100000, NULL, NULL));
    CHECK(!ort_pass_is_exact(NULL));
    CHECK(ort_provider_name(0) && !ort_provider_name(-1) && !ort_provider_name(1000));
    CHECK(ort_provider_foreign_name(0) && !ort_provider_foreign_name(-1) &&
          !ort_provider_foreign_name(1000));
    CHECK(ort_providers_check(NULL, NULL) == ORT_OK && ort_providers_check("", NULL) == ORT_OK);
    CHECK(ort_providers_check("nobody", NULL) == ORT_ERROR_USAGE);
    CHECK(ort_peak_rss_bytes() > 0 && ort_process_age_ns() > 0);
    char text[100];
    for (size_t size = 0; size < sizeof text; size++) /* a list that is cut stays in its room */
        CHECK(strlen(ort_format_list(0, text, size)) < (size ? size : 1));
    CHECK_TEXT(ort_format_list(1u << 31, text, sizeof text), "");
    CHECK_TEXT(ort_did_you_mean(NULL, NULL, 3, text, sizeof text), "");
    CHECK_TEXT(ort_did_you_mean("a", NULL, 3, text, 0), "");
    CHECK_TEXT(ort_did_you_mean("a", NULL, 3, NULL, 5), "");
    ort_text_free(NULL);
    ort_out_file_discard_all();
}

static void environments(test_state *test)
{
    ort_env_options no_size = {.size = 0, .threads = 1};
    ort_peak peak = ORT_PEAK_INIT, no_place = {.size = 0};
    CHECK_REFUSED(ort_env_new(NULL, NULL, &t.err));
    CHECK_REFUSED(ort_env_new(&no_size, &t.env, NULL));
    ort_env_free(NULL);
    CHECK(ort_env_threads(NULL) == 0);
    CHECK_TEXT(ort_env_isa(NULL), "");
    CHECK_REFUSED(ort_env_measure_peak(NULL, &peak, NULL));
    CHECK_REFUSED(ort_env_measure_peak(t.env, NULL, NULL));
    CHECK_REFUSED(ort_env_measure_peak(t.env, &no_place, NULL));
    CHECK_REFUSED(ort_env_add_ops(NULL, NULL, NULL));
    CHECK_REFUSED(ort_env_add_ops(t.env, NULL, NULL));
    CHECK_REFUSED(ort_env_add_ops_library(t.env, NULL, NULL));
    CHECK_REFUSED(ort_env_add_ops_library(t.env, "not/there.so", NULL));
    CHECK_REFUSED(ort_env_add_providers(NULL, NULL, NULL));
    CHECK_REFUSED(ort_env_add_providers(t.env, NULL, NULL));
    CHECK_REFUSED(ort_env_add_provider_library(NULL, "x.so", NULL));
    CHECK_REFUSED(ort_env_add_provider_library(t.env, NULL, NULL));
    CHECK_REFUSED(ort_env_add_provider_library(t.env, "not/there.so", NULL));
    CHECK_REFUSED(ort_env_find_providers(NULL, "cpu", NULL));
    CHECK(ort_env_find_providers(t.env, NULL, NULL) == ORT_OK);
    CHECK(ort_env_find_providers(t.env, ",:,../x,", NULL) == ORT_OK);
    CHECK(ort_env_provider_name(t.env, 0) && !ort_env_provider_name(t.env, -1) &&
          !ort_env_provider_name(t.env, 1000) && !ort_env_provider_name(NULL, 0));
    CHECK_REFUSED(ort_env_providers_check(NULL, "cpu", NULL));
    CHECK(ort_env_providers_check(t.env, NULL, NULL) == ORT_OK);
    CHECK(ort_env_providers_check(t.env, "nobody", NULL) == ORT_ERROR_USAGE);
    CHECK_REFUSED(ort_cancel_new(NULL, NULL));
    ort_cancel_set(NULL);
    ort_cancel_clear(NULL);
    ort_cancel_free(NULL);
}

static void release_nothing(void *arg, void *data)
{
}

static void new_values(test_state *test)
{
    ort_value *v = NULL;
    ort_device *device = NULL;
    const int64_t bad[] = {-1}, huge[] = {INT64_MAX, INT64_MAX}, two[] = {2};
    float four[4] = {0};
    CHECK_REFUSED(ort_value_new_tensor(ORT_DTYPE_FLOAT, 1, two, NULL, NULL));
    CHECK_REFUSED(ort_value_new_tensor(ORT_DTYPE_FLOAT, 1, NULL, &v, NULL));
    CHECK_REFUSED(ort_value_new_tensor(ORT_DTYPE_FLOAT, -1, two, &v, NULL));
    CHECK_REFUSED(ort_value_new_tensor(ORT_DTYPE_FLOAT, 1000, two, &v, NULL));
    CHECK_REFUSED(ort_value_new_tensor(ORT_DTYPE_FLOAT, 1, bad, &v, NULL));
    CHECK(ort_value_new_tensor(ORT_DTYPE_FLOAT, 2, huge, &v, NULL) != ORT_OK);
    CHECK_REFUSED(ort_value_new_tensor((ort_dtype)-3, 1, two, &v, NULL));
    CHECK_REFUSED(ort_value_new_borrowed(ORT_DTYPE_FLOAT, 1, two, NULL, 8, &v, NULL));
    CHECK_REFUSED(ort_value_new_borrowed(ORT_DTYPE_FLOAT, 1, two, four, 9, &v, NULL));
    CHECK_REFUSED(ort_value_new_borrowed(ORT_DTYPE_FLOAT, 1, two, (char *)four + 1, 8, &v, NULL));
    CHECK_REFUSED(ort_value_new_borrowed(ORT_DTYPE_STRING, 1, two, four, 8, &v, NULL));
    CHECK_REFUSED(ort_value_new_borrowed(ORT_DTYPE_FLOAT, 1, two, four, 8, NULL, NULL));
    CHECK_REFUSED(ort_value_new_taking(ORT_DTYPE_FLOAT, 1, two, four, 8, NULL, NULL, &v, NULL));
    CHECK_REFUSED(ort_value_new_taking(ORT_DTYPE_FLOAT, 1, two, four, 7, release_nothing, NULL, &v,
                                       NULL));
    CHECK_REFUSED(ort_device_open(NULL, "opencl", &device, NULL));
    CHECK_REFUSED(ort_device_open(t.env, NULL, &device, NULL));
    CHECK_REFUSED(ort_device_open(t.env, "opencl", NULL, NULL));
    CHECK_REFUSED(ort_device_open(t.env, "", &device, NULL));
    ort_device_free(NULL);
    CHECK(!*ort_device_name(NULL) && !ort_device_alignment(NULL) && !ort_value_device(NULL));
    CHECK_REFUSED(ort_value_new_on_device(NULL, ORT_DTYPE_FLOAT, 1, two, &v, NULL));
    CHECK_REFUSED(ort_value_new_part(NULL, 0, ORT_DTYPE_FLOAT, 1, two, &v, NULL));
    CHECK_REFUSED(ort_value_new_part(t.x, 0, ORT_DTYPE_FLOAT, 1, two, &v, NULL));
    CHECK_REFUSED(ort_value_copy(NULL, t.x, NULL));
    CHECK_REFUSED(ort_value_copy(t.x, NULL, NULL));
    CHECK_REFUSED(ort_value_to_host(NULL, &v, NULL));
    CHECK_REFUSED(ort_value_to_host(t.x, NULL, NULL));
    CHECK_REFUSED(ort_value_new_sequence(NULL, NULL));
    CHECK_REFUSED(ort_value_new_map(NULL, NULL, &v, NULL));
    CHECK_REFUSED(ort_value_new_map(t.words, t.words, NULL, NULL));
    CHECK_REFUSED(ort_value_new_map(t.x, t.words, &v, NULL));
    CHECK(!v && !ort_value_retain(NULL));
    ort_value_free(NULL);
}

static void sequences(test_state *test)
{
    ort_value *inner = NULL, *outer = NULL;
    CHECK_REFUSED(ort_value_append(NULL, t.x, NULL));
    CHECK_REFUSED(ort_value_append(t.list, NULL, NULL));
    CHECK_REFUSED(ort_value_append(t.list, t.list, NULL));
    CHECK_REFUSED(ort_value_append(t.x, t.words, NULL));
    CHECK(!ort_value_new_sequence(&inner, NULL) && !ort_value_new_sequence(&outer, NULL));
    CHECK(!ort_value_append(outer, inner, NULL));
    CHECK_REFUSED(ort_value_append(inner, outer, NULL)); /* a circle */
    ort_value_free(inner);
    for (int depth = 1; depth < 64; depth++) {
        CHECK(!ort_value_new_sequence(&inner, NULL) && !ort_value_append(inner, outer, NULL));
        ort_value_free(outer);
        outer = inner;
    }
    CHECK(!ort_value_new_sequence(&inner, NULL));
    CHECK_REFUSED(ort_value_append(inner, outer, NULL));
    ort_value_free(inner);
    ort_value_free(outer);
}

static void elements(test_state *test)
{
    char *text = NULL;
    CHECK(ort_value_get_kind(NULL) == ORT_VALUE_NONE);
    CHECK(ort_value_dtype(NULL) == ORT_DTYPE_UNDEFINED && ort_value_rank(NULL) == 0);
    CHECK(!ort_value_dims(NULL) && !ort_value_dims(t.list) && ort_value_count(NULL) == 0);
    CHECK(!ort_value_data(NULL) && !ort_value_data(t.words) && !ort_value_data(t.list));
    CHECK(ort_value_bytes(NULL) == 0 && ort_value_bytes(t.list) == 0);
    CHECK_TEXT(ort_value_string(NULL, 0, NULL), "");
    CHECK_TEXT(ort_value_string(t.words, -1, NULL), "");
    CHECK_TEXT(ort_value_string(t.words, 2, NULL), "");
    CHECK_TEXT(ort_value_string(t.x, 0, NULL), "");
    CHECK_REFUSED(ort_value_set_string(NULL, 0, "a", 1, NULL));
    CHECK_REFUSED(ort_value_set_string(t.words, 0, NULL, 1, NULL));
    CHECK_REFUSED(ort_value_set_string(t.words, 2, "a", 1, NULL));
    CHECK_REFUSED(ort_value_set_string(t.x, 0, "a", 1, NULL));
    CHECK_REFUSED(ort_value_resize_string(NULL, 0, 1, &text, NULL));
    CHECK_REFUSED(ort_value_resize_string(t.words, 0, 1, NULL, NULL));
    CHECK_REFUSED(ort_value_resize_string(t.words, -1, 1, &text, NULL));
    CHECK_REFUSED(ort_value_resize_string(t.x, 0, 1, &text, NULL));
    CHECK(ort_value_resize_string(t.words, 0, SIZE_MAX, &text, NULL) == ORT_ERROR_MEMORY);
    CHECK(ort_value_resize_string(t.words, 0, SIZE_MAX - 1, &text, NULL) == ORT_ERROR_MEMORY);
    CHECK(!text);
    CHECK(!ort_value_item(NULL, 0) && !ort_value_item(t.list, 0) && !ort_value_item(t.x, 0));
    CHECK(isnan(ort_value_get_double(NULL, 0)) && isnan(ort_value_get_double(t.words, 0)));
    CHECK(isnan(ort_value_get_double(t.x, -1)) && isnan(ort_value_get_double(t.x, 64)));
    CHECK(isnan(ort_value_get_double(t.list, 0)) && ort_value_get_double(t.x, 63) == 0);
    ort_value_set_double(NULL, 0, 1);
    ort_value_set_double(t.words, 0, 1);
    ort_value_set_double(t.x, 64, 1);
    ort_value_set_double(t.x, INT64_MIN, 1);
    CHECK(ort_value_digest(NULL) == ort_value_digest(NULL));
    CHECK_REFUSED(ort_value_print(t.x, "x", 3, NULL, NULL));
}

static void files_of_tensors(test_state *test)
{
    ort_tensors *read = NULL;
    ort_read_options raw = ORT_READ_OPTIONS_INIT, no_size = {.size = 0};
    ort_write_options format = ORT_WRITE_OPTIONS_INIT;
    raw.format = (ort_format)55;
    format.format = (ort_format)-5;
    CHECK_REFUSED(ort_tensors_new(NULL, NULL));
    ort_tensors_free(NULL);
    CHECK(ort_tensors_count(NULL) == 0 && ort_tensors_sample_rate(NULL) == 0);
    CHECK_TEXT(ort_tensors_name(NULL, 0), "");
    CHECK_TEXT(ort_tensors_name(t.tensors, 7), "");
    CHECK(!ort_tensors_value(NULL, 0) && !ort_tensors_value(t.tensors, SIZE_MAX));
    CHECK_REFUSED(ort_tensors_add(NULL, "x", t.x, NULL));
    CHECK_REFUSED(ort_tensors_load(NULL, NULL, &read, NULL));
    CHECK_REFUSED(ort_tensors_load("models/images/digit_7_008.png", NULL, NULL, NULL));
    CHECK_REFUSED(ort_tensors_load("models/images/digit_7_008.png", &no_size, &read, NULL));
    CHECK_REFUSED(ort_tensors_load("not/there.npy", NULL, &read, NULL));
    CHECK_REFUSED(ort_tensors_read(NULL, NULL, &read, NULL));
    CHECK_REFUSED(ort_tensors_add_source(NULL, "a", NULL));
    CHECK_REFUSED(ort_tensors_add_source(t.tensors, NULL, NULL));
    CHECK(ort_tensors_source_count(NULL) == 0);
    CHECK_TEXT(ort_tensors_source(NULL, 0), "");
    CHECK_TEXT(ort_tensors_source(t.tensors, SIZE_MAX), "");
    CHECK_REFUSED(ort_tensors_add_column(NULL, "a", t.list, NULL));
    CHECK_REFUSED(ort_tensors_add_column(t.tensors, NULL, t.list, NULL));
    CHECK_REFUSED(ort_tensors_add_column(t.tensors, "a", NULL, NULL));
    CHECK(ort_tensors_column_count(NULL) == 0);
    CHECK_TEXT(ort_tensors_column_name(NULL, 0), "");
    CHECK_TEXT(ort_tensors_column_name(t.tensors, SIZE_MAX), "");
    CHECK(ort_tensors_column(NULL, 0) == NULL);
    CHECK(ort_tensors_column(t.tensors, SIZE_MAX) == NULL);
    CHECK_REFUSED(ort_tensors_load_set(NULL, "input", NULL, &read, NULL));
    CHECK_REFUSED(ort_tensors_load_set("not/there", NULL, NULL, &read, NULL));
    CHECK_REFUSED(ort_tensors_load_set("not/there", "input", NULL, &read, NULL));
    CHECK_REFUSED(ort_tensors_check_path(NULL, NULL, NULL));
    CHECK_REFUSED(ort_tensors_load_folder(NULL, "input", &read, NULL));
    CHECK_REFUSED(ort_tensors_load_folder("not/there", "input", &read, NULL));
    CHECK_REFUSED(ort_tensors_save(NULL, "x.npy", NULL, NULL));
    CHECK_REFUSED(ort_tensors_save(t.tensors, NULL, NULL, NULL));
    CHECK_REFUSED(ort_tensors_save(t.tensors, "not/there.npy", NULL, NULL));
    CHECK_REFUSED(ort_tensors_write(t.tensors, NULL, NULL, NULL));
    CHECK_REFUSED(ort_tensors_write(t.tensors, stdout, &format, NULL));
    CHECK_REFUSED(ort_tensors_load("models/images/digit_7_008.png", &raw, &read, NULL));
    CHECK(!read);
}

/* Options of readers that count what isn't there, or name types that don't exist. */
static void options_of_readers(test_state *test)
{
    const char *path = "models/images/digit_7_008.png";
    static const ort_format formats[] = {ORT_FORMAT_RAW, ORT_FORMAT_JSON, ORT_FORMAT_CSV,
                                         ORT_FORMAT_NPY, ORT_FORMAT_AUTO};
    const int64_t negative[] = {-3, -1}, huge[] = {INT64_MAX, INT64_MAX};
    ort_tensors *read = NULL;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const ort_read_options base = {.size = sizeof base, .format = formats[i],
                                       .dtype = ORT_DTYPE_FLOAT};
        ort_read_options no_dims = base, no_type = base, wide = base, odd = base, vast = base;
        ort_read_options no_purposes = base;
        no_dims.rank = 2;
        no_type.dtype = (ort_dtype)99;
        no_type.rank = -1;
        wide.rank = 1000;
        wide.dims = huge;
        odd.rank = vast.rank = 2;
        odd.dims = negative;
        vast.dims = huge;
        no_purposes.purpose_count = 2;
        CHECK_REFUSED(ort_tensors_load(path, &no_dims, &read, NULL));
        CHECK_REFUSED(ort_tensors_load(path, &no_type, &read, NULL));
        CHECK_REFUSED(ort_tensors_load(path, &no_purposes, &read, NULL));
        CHECK_REFUSED(ort_tensors_load_set("not/there", "input", &no_purposes, &read, NULL));
        if (formats[i] == ORT_FORMAT_RAW) { /* others have shapes of their own */
            CHECK_REFUSED(ort_tensors_load(path, &wide, &read, NULL));
            CHECK_REFUSED(ort_tensors_load(path, &odd, &read, NULL));
            CHECK_REFUSED(ort_tensors_load(path, &vast, &read, NULL));
        }
        CHECK(!read);
    }
}

/* As deep as values may be: every format writes what it reads back, or says that it can't. */
static void deep_values_in_files(test_state *test)
{
    static const ort_format formats[] = {ORT_FORMAT_NPY, ORT_FORMAT_NPZ, ORT_FORMAT_PB,
                                         ORT_FORMAT_SAFETENSORS, ORT_FORMAT_JSON, ORT_FORMAT_CSV,
                                         ORT_FORMAT_RAW, ORT_FORMAT_IMAGE, ORT_FORMAT_WAV};
    static const int depths[] = {1, 10, 20, 24, 25, 30, 31, 40, 64};
    for (size_t d = 0; d < sizeof depths / sizeof *depths; d++) {
        ort_value *deep = ort_value_retain(t.x), *outer = NULL;
        ort_tensors *all = NULL, *back = NULL;
        for (int i = 0; i < depths[d]; i++) {
            CHECK(!ort_value_new_sequence(&outer, NULL) && !ort_value_append(outer, deep, NULL));
            ort_value_free(deep);
            deep = outer;
        }
        CHECK(!ort_tensors_new(&all, NULL) && !ort_tensors_add(all, "deep", deep, NULL));
        CHECK(ort_value_digest(deep) != ort_value_digest(t.x));
        for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
            ort_write_options write = {.size = sizeof write, .format = formats[f]};
            ort_read_options read = {.size = sizeof read, .format = formats[f]};
            FILE *file = tmpfile();
            ort_status status = ort_tensors_write(all, file, &write, &t.err);
            CHECK(status == ORT_OK || refuses(status));
            rewind(file);
            if (status == ORT_OK) {
                CHECK(!ort_tensors_read(file, &read, &back, &t.err));
                CHECK(ort_value_digest(ort_tensors_value(back, 0)) == ort_value_digest(deep));
            }
            ort_tensors_free(back);
            back = NULL;
            fclose(file);
        }
        ort_tensors_free(all);
        ort_value_free(deep);
    }
}

static void files_that_appear_whole(test_state *test)
{
    CHECK_REFUSED(ort_out_file_open(NULL, &t.file, NULL));
    CHECK_REFUSED(ort_out_file_open("x", NULL, NULL));
    CHECK_REFUSED(ort_out_file_open("not/there", &t.file, NULL));
    CHECK_REFUSED(ort_out_file_open("models", &t.file, NULL));
    CHECK(!t.file && !ort_out_file_stream(NULL));
    CHECK_REFUSED(ort_out_file_commit(NULL, true, NULL));
    CHECK_REFUSED(ort_out_file_wait(NULL, true, NULL));
    ort_out_file_abort(NULL);
}

static void models(test_state *test)
{
    ort_model *m = NULL;
    ort_load_options no_size = {.size = 3};
    size_t bytes;
    const int64_t dims[] = {-5, 0, 1, 1};
    CHECK_REFUSED(ort_model_load(NULL, "models/digits.onnx", NULL, &m, NULL));
    CHECK_REFUSED(ort_model_load(t.env, NULL, NULL, &m, NULL));
    CHECK_REFUSED(ort_model_load(t.env, "models/digits.onnx", NULL, NULL, NULL));
    CHECK_REFUSED(ort_model_load(t.env, "models/digits.onnx", &no_size, &m, NULL));
    CHECK_REFUSED(ort_model_load_memory(t.env, NULL, 4, NULL, &m, NULL));
    CHECK_REFUSED(ort_model_load_memory(t.env, "bad", 3, NULL, &m, NULL));
    CHECK_REFUSED(ort_model_load_memory(NULL, "bad", 3, NULL, &m, NULL));
    ort_model_free(NULL);
    CHECK_REFUSED(ort_model_save(NULL, "x.onnx", NULL, NULL));
    CHECK_REFUSED(ort_model_save(t.model, NULL, NULL, NULL));
    CHECK_REFUSED(ort_model_save_packed(NULL, t.model, "x.onnx", NULL, NULL));
    CHECK_REFUSED(ort_model_save_packed(t.env, NULL, "x.onnx", NULL, NULL));
    CHECK_REFUSED(ort_model_write(NULL, stdout, NULL));
    CHECK_REFUSED(ort_model_write(t.model, NULL, NULL));
    CHECK_REFUSED(ort_model_written_bytes(NULL, &bytes, NULL));
    CHECK_REFUSED(ort_model_written_bytes(t.model, NULL, NULL));
    CHECK(!ort_model_repeats_functions(NULL));
    CHECK_REFUSED(ort_model_check(NULL, &t.findings, NULL));
    CHECK_REFUSED(ort_model_check(t.model, NULL, NULL));
    CHECK_REFUSED(ort_model_set_dim(NULL, "n", 1, NULL));
    CHECK_REFUSED(ort_model_set_dim(t.model, NULL, 1, NULL));
    CHECK_REFUSED(ort_model_set_dim(t.model, "nosuch", 1, NULL));
    CHECK_REFUSED(ort_model_set_shape(NULL, "image", 1, dims, NULL));
    CHECK_REFUSED(ort_model_set_shape(t.model, "nosuch", 1, dims, NULL));
    CHECK_REFUSED(ort_model_set_shape(t.model, "image", 4, NULL, NULL));
    CHECK_REFUSED(ort_model_set_shape(t.model, "image", 4000, dims, NULL));
    ort_model_strip(NULL, ORT_STRIP_DOCS);
    CHECK_TEXT(ort_model_text(NULL, ORT_MODEL_DOC), "");
    CHECK_TEXT(ort_model_text(t.model, (ort_model_text_kind)44), "");
    CHECK(ort_model_number(NULL) == 0 && ort_model_ir_version(NULL) == 0);
    CHECK(ort_model_opset(NULL, "") == 0 && ort_model_opset(t.model, NULL) == 0);
    CHECK(ort_model_property_count(NULL) == 0 && !ort_model_property_key(NULL, 0));
    CHECK(!ort_model_property_key(t.model, SIZE_MAX) && !ort_model_property(t.model, NULL));
    CHECK(!ort_model_property(NULL, "a") && !ort_model_property(t.model, "nosuch"));
    CHECK_REFUSED(ort_model_set_property(NULL, "a", "b", NULL));
    CHECK_REFUSED(ort_model_set_property(t.model, NULL, "b", NULL));
    CHECK_REFUSED(ort_model_set_initializer(NULL, "w", t.x, NULL));
    CHECK_REFUSED(ort_model_set_initializer(t.model, NULL, t.x, NULL));
    CHECK_REFUSED(ort_model_set_initializer(t.model, "nosuch", t.x, NULL));
    CHECK_REFUSED(ort_model_set_initializer(t.model, "image", NULL, NULL));
    CHECK_REFUSED(ort_model_set_initializer(t.model, "image", t.list, NULL));
    CHECK_REFUSED(ort_model_copy(NULL, &m, NULL));
    CHECK_REFUSED(ort_model_copy(t.model, NULL, NULL));
    CHECK(!m);
}

static void types_of_models(test_state *test)
{
    ort_types *types = NULL;
    CHECK_REFUSED(ort_model_types(NULL, ORT_TYPES_ALL, &types, NULL));
    CHECK_REFUSED(ort_model_types(t.model, ORT_TYPES_ALL, NULL, NULL));
    CHECK_REFUSED(ort_model_types(t.model, (ort_types_of)9, &types, NULL));
    CHECK(!types && ort_types_count(NULL) == 0);
    CHECK(!ort_types_name(NULL, 0) && !ort_types_info(NULL, 0) && !ort_types_find(NULL, "x"));
    CHECK(!ort_model_types(t.model, ORT_TYPES_INPUTS, &types, NULL));
    CHECK(!ort_types_name(types, SIZE_MAX) && !ort_types_info(types, 1));
    CHECK(!ort_types_find(types, NULL) && !ort_types_find(types, "nobody"));
    ort_types_free(types);
    ort_types_free(NULL);
}

static void findings(test_state *test)
{
    ort_findings_free(NULL);
    CHECK(ort_findings_count(NULL) == 0 && ort_findings_errors(NULL) == 0);
    CHECK_TEXT(ort_findings_message(NULL, 0), "");
    CHECK(ort_findings_severity(NULL, 0) == ORT_FINDING_NOTE);
    CHECK(!ort_model_check(t.model, &t.findings, NULL));
    CHECK_TEXT(ort_findings_message(t.findings, SIZE_MAX), "");
    CHECK(ort_findings_severity(t.findings, SIZE_MAX) == ORT_FINDING_NOTE);
    ort_findings_free(t.findings);
}

static void rewriting(test_state *test)
{
    static const char *const nosuch[] = {"nosuch", NULL};
    ort_optimize_options only = ORT_OPTIMIZE_OPTIONS_INIT;
    ort_narrow_options narrow = ORT_NARROW_OPTIONS_INIT;
    const char *pass = NULL;
    only.passes = nosuch;
    narrow.dtype = ORT_DTYPE_STRING;
    CHECK_REFUSED(ort_model_optimize(NULL, t.model, NULL, NULL));
    CHECK_REFUSED(ort_model_optimize(t.env, NULL, NULL, NULL));
    CHECK_REFUSED(ort_model_optimize(t.env, t.model, &only, NULL));
    CHECK_REFUSED(ort_model_narrow(NULL, t.model, &narrow, NULL));
    CHECK_REFUSED(ort_model_narrow(t.env, t.model, &narrow, NULL));
    CHECK_REFUSED(ort_model_follow(NULL, NULL, NULL));
    CHECK_REFUSED(ort_model_set_opset(NULL, t.model, 17, false, NULL, NULL, NULL));
    CHECK_REFUSED(ort_model_set_opset(t.env, NULL, 17, false, NULL, NULL, NULL));
    CHECK_REFUSED(ort_model_set_opset(t.env, t.model, -1, false, NULL, NULL, NULL));
    CHECK_REFUSED(ort_model_make_dynamic(t.env, t.model, NULL, 0, "n", NULL));
    CHECK_REFUSED(ort_model_make_dynamic(t.env, t.model, "nosuch", 0, "n", NULL));
    CHECK_REFUSED(ort_model_make_dynamic(NULL, t.model, "image", 0, "n", NULL));
    CHECK_REFUSED(ort_model_bisect(NULL, t.model, NULL, NULL, &pass, NULL));
    CHECK_REFUSED(ort_model_bisect(t.env, t.model, NULL, NULL, NULL, NULL));
}

static void sessions(test_state *test)
{
    ort_session *s = NULL;
    ort_session_options no_size = {.size = 0};
    int64_t dim;
    CHECK_REFUSED(ort_session_load(NULL, "models/digits.onnx", NULL, &s, NULL));
    CHECK_REFUSED(ort_session_load(t.env, NULL, NULL, &s, NULL));
    CHECK_REFUSED(ort_session_load(t.env, "not/there.onnx", NULL, &s, NULL));
    CHECK_REFUSED(ort_session_load(t.env, "models/digits.onnx", &no_size, &s, NULL));
    CHECK_REFUSED(ort_session_new(NULL, t.model, NULL, &s, NULL));
    CHECK_REFUSED(ort_session_new(t.env, NULL, NULL, &s, NULL));
    CHECK_REFUSED(ort_session_new(t.env, t.model, NULL, NULL, NULL));
    ort_session_free(NULL);
    CHECK(ort_session_input_count(NULL) == 0 && ort_session_output_count(NULL) == 0);
    CHECK(!ort_session_input_name(NULL, 0) && !ort_session_output_name(NULL, 0));
    CHECK(!ort_session_input_name(t.session, 9) && !ort_session_output_name(t.session, SIZE_MAX));
    CHECK(!ort_session_input_type(NULL, 0) && !ort_session_output_type(NULL, 0));
    CHECK(!ort_session_input_type(t.session, 9) && !ort_session_output_type(t.session, 9));
    CHECK(ort_session_input_dtype(NULL, 0) == ORT_DTYPE_UNDEFINED);
    CHECK(ort_session_input_dims(NULL, 0, &dim, 1) == -1);
    CHECK(ort_session_input_dims(t.session, 0, NULL, 4) == -1);
    CHECK(ort_session_input_dims(t.session, 0, NULL, -4) == 4);
    CHECK_TEXT(ort_session_text(NULL, ORT_MODEL_DOC), "");
    CHECK_TEXT(ort_session_text(t.session, (ort_model_text_kind)-1), "");
    CHECK(ort_session_number(NULL) == 0 && ort_session_property_count(NULL) == 0);
    CHECK(!ort_session_property_key(NULL, 0) && !ort_session_property_key(t.session, SIZE_MAX));
    CHECK(!ort_session_property(NULL, "a") && !ort_session_property(t.session, NULL));
    CHECK(!ort_session_input_optional(NULL, 0) && !ort_session_input_optional(t.session, 9));
    CHECK(ort_session_phase_count(NULL) == 0 && !ort_session_phase(NULL, 0, NULL, NULL));
    CHECK(!ort_session_phase(t.session, SIZE_MAX, NULL, NULL));
    CHECK_REFUSED(ort_session_random_inputs(NULL, 1, &t.x, 1, NULL));
    CHECK_REFUSED(ort_session_random_inputs(t.session, 1, NULL, 1, NULL));
    CHECK_REFUSED(ort_session_random_inputs(t.session, 1, &t.x, 2, NULL));
}

static void runs(test_state *test)
{
    ort_value *y = NULL, *two[2] = {t.x, t.x}, *none = NULL;
    const char *in = "nosuch", *null = NULL;
    const char *twice[2] = {ort_session_input_name(t.session, 0),
                            ort_session_input_name(t.session, 0)};
    ort_run_options no_size = {.size = 0};
    CHECK_REFUSED(ort_session_run(NULL, NULL, &t.x, 1, NULL, &y, 1, NULL, NULL));
    CHECK_REFUSED(ort_session_run(t.session, NULL, NULL, 1, NULL, &y, 1, NULL, NULL));
    CHECK_REFUSED(ort_session_run(t.session, NULL, &t.x, 1, NULL, NULL, 1, NULL, NULL));
    CHECK_REFUSED(ort_session_run(t.session, NULL, two, 2, NULL, &y, 1, NULL, NULL));
    CHECK_REFUSED(ort_session_run(t.session, NULL, &t.x, 1, NULL, &y, 0, NULL, NULL));
    CHECK_REFUSED(ort_session_run(t.session, NULL, &none, 1, NULL, &y, 1, NULL, NULL));
    CHECK_REFUSED(ort_session_run(t.session, &in, &t.x, 1, NULL, &y, 1, NULL, NULL));
    CHECK_REFUSED(ort_session_run(t.session, &null, &t.x, 1, NULL, &y, 1, NULL, NULL));
    CHECK_REFUSED(ort_session_run(t.session, twice, two, 2, NULL, &y, 1, NULL, NULL));
    CHECK_REFUSED(ort_session_run(t.session, NULL, &t.x, 1, &in, &y, 1, NULL, NULL));
    CHECK_REFUSED(ort_session_run(t.session, NULL, &t.words, 1, NULL, &y, 1, NULL, NULL));
    CHECK_REFUSED(ort_session_run(t.session, NULL, &t.list, 1, NULL, &y, 1, NULL, NULL));
    CHECK_REFUSED(ort_session_run(t.session, NULL, &t.x, 1, NULL, &t.list, 1, NULL, NULL));
    CHECK_REFUSED(ort_session_run(t.session, NULL, &t.x, 1, NULL, &y, 1, &no_size, NULL));
    CHECK(!y);
}

static void bindings(test_state *test)
{
    ort_binding *b = NULL;
    const char *in = ort_session_input_name(t.session, 0);
    const char *out = ort_session_output_name(t.session, 0);
    CHECK_REFUSED(ort_binding_new(NULL, &b, NULL));
    CHECK_REFUSED(ort_binding_new(t.session, NULL, NULL));
    ort_binding_free(NULL);
    CHECK_REFUSED(ort_binding_set_input(NULL, in, t.x, NULL));
    CHECK_REFUSED(ort_binding_set_input(t.binding, NULL, t.x, NULL));
    CHECK_REFUSED(ort_binding_set_input(t.binding, out, t.x, NULL));
    CHECK_REFUSED(ort_binding_set_output(NULL, out, t.x, NULL));
    CHECK_REFUSED(ort_binding_set_output(t.binding, NULL, t.x, NULL));
    CHECK_REFUSED(ort_binding_set_output(t.binding, in, t.x, NULL));
    CHECK_REFUSED(ort_binding_set_output_device(NULL, out, NULL, NULL));
    CHECK_REFUSED(ort_binding_set_output_device(t.binding, NULL, NULL, NULL));
    CHECK_REFUSED(ort_binding_set_output_device(t.binding, in, NULL, NULL));
    CHECK(ort_binding_set_output_device(t.binding, out, NULL, NULL) == ORT_OK);
    CHECK_REFUSED(ort_binding_run(NULL, NULL, NULL));
    CHECK_REFUSED(ort_binding_run(t.binding, NULL, NULL)); /* nothing bound */
    CHECK(!ort_binding_output(NULL, 0) && !ort_binding_output(t.binding, 9));
    CHECK_REFUSED(ort_binding_set_state(NULL, in, out, NULL));
    CHECK_REFUSED(ort_binding_set_state(t.binding, NULL, out, NULL));
    CHECK_REFUSED(ort_binding_set_state(t.binding, in, NULL, NULL));
    CHECK_REFUSED(ort_binding_set_state(t.binding, in, out, NULL)); /* other types */
    ort_binding_reserve_rows(NULL, 5);
    ort_binding_reserve_rows(t.binding, INT64_MIN);
    ort_binding_restart(NULL);
    CHECK(!ort_binding_state_grows(NULL, in) && !ort_binding_state_grows(t.binding, NULL));
}

static void profiles(test_state *test)
{
    char *json = NULL;
    ort_peak no_size = {.size = 0};
    CHECK_REFUSED(ort_profile_new(NULL, NULL, &t.profile, NULL));
    CHECK_REFUSED(ort_profile_new(t.session, NULL, NULL, NULL));
    ort_profile_free(NULL);
    ort_profile_start(NULL);
    CHECK_REFUSED(ort_profile_report(NULL, NULL, &json, NULL));
    CHECK_REFUSED(ort_profile_trace(NULL, stdout, NULL));
    CHECK(!ort_profile_new(t.session, NULL, &t.profile, NULL));
    CHECK_REFUSED(ort_profile_report(t.profile, NULL, NULL, NULL));
    CHECK_REFUSED(ort_profile_report(t.profile, &no_size, &json, NULL));
    CHECK_REFUSED(ort_profile_trace(t.profile, NULL, NULL));
    ort_profile_free(t.profile);
    CHECK(!json);
}

static void reports(test_state *test)
{
    char *text = NULL;
    bool flag;
    ort_model *part = NULL;
    ort_value *v = NULL;
    const char *name = "nosuch", *null = NULL;
    CHECK_REFUSED(ort_model_report(NULL, ORT_REPORT_IO, &text, NULL));
    CHECK_REFUSED(ort_model_report(t.model, ORT_REPORT_IO, NULL, NULL));
    CHECK_REFUSED(ort_model_report(t.model, (ort_report)99, &text, NULL));
    CHECK_REFUSED(ort_memory_report(NULL, t.model, NULL, &text, NULL));
    CHECK_REFUSED(ort_memory_report(t.env, NULL, NULL, &text, NULL));
    CHECK_REFUSED(ort_memory_report(t.env, t.model, NULL, NULL, NULL));
    ort_env_limit_loading(NULL, 1, NULL);
    CHECK_REFUSED(ort_supports_report(NULL, &text, NULL));
    CHECK_REFUSED(ort_supports_report(t.env, NULL, NULL));
    CHECK_REFUSED(ort_partition_report(NULL, t.model, NULL, &text, NULL));
    CHECK_REFUSED(ort_partition_report(t.env, NULL, NULL, &text, NULL));
    CHECK_REFUSED(ort_partition_report(t.env, t.model, NULL, NULL, NULL));
    CHECK_REFUSED(ort_providers_report(NULL, NULL));
    CHECK_REFUSED(ort_env_providers_report(NULL, &text, NULL));
    CHECK_REFUSED(ort_env_providers_report(t.env, NULL, NULL));
    CHECK_REFUSED(ort_model_draw(NULL, true, &text, NULL));
    CHECK_REFUSED(ort_model_draw(t.model, true, NULL, NULL));
    CHECK_REFUSED(ort_summary_report(NULL, &text, NULL));
    CHECK_REFUSED(ort_summary_report("not/there.onnx", &text, NULL));
    CHECK_REFUSED(ort_pack_report(t.env, NULL, false, &flag, &text, NULL));
    CHECK_REFUSED(ort_pack_report_with(t.env, NULL, NULL, false, &flag, &text, NULL));
    CHECK_REFUSED(ort_pack_report(NULL, "models/digits.onnx", false, &flag, &text, NULL));
    CHECK_REFUSED(ort_model_diff(NULL, t.model, &flag, &text, NULL));
    CHECK_REFUSED(ort_model_diff(t.model, NULL, &flag, &text, NULL));
    CHECK_REFUSED(ort_model_diff(t.model, t.model, NULL, &text, NULL));
    CHECK_REFUSED(ort_model_extract(NULL, NULL, 0, NULL, 0, &part, NULL));
    CHECK_REFUSED(ort_model_extract(t.model, NULL, 1, NULL, 1, &part, NULL));
    CHECK_REFUSED(ort_model_extract(t.model, &name, 1, &name, 1, &part, NULL));
    CHECK_REFUSED(ort_model_extract(t.model, &null, 1, &null, 1, &part, NULL));
    CHECK_REFUSED(ort_model_constant(NULL, name, &v, NULL));
    CHECK_REFUSED(ort_model_constant(t.model, NULL, &v, NULL));
    CHECK_REFUSED(ort_model_constant(t.model, name, &v, NULL));
    CHECK(!text && !part && !v);
}

static void single_operators(test_state *test)
{
    ort_value *y = NULL;
    ort_attribute_spec list = {.name = "axes", .kind = 'I', .count = 3};
    ort_attribute_spec nameless = {.kind = 'i'}, odd = {.name = "a", .kind = '?'};
    ort_attribute_spec no_tensor = {.name = "value", .kind = 't'};
    CHECK_REFUSED(ort_op_run(NULL, "", "Relu", 0, NULL, 0, &t.x, 1, &y, 1, NULL));
    CHECK_REFUSED(ort_op_run(t.env, NULL, "Relu", 0, NULL, 0, &t.x, 1, &y, 1, NULL));
    CHECK_REFUSED(ort_op_run(t.env, "", NULL, 0, NULL, 0, &t.x, 1, &y, 1, NULL));
    CHECK_REFUSED(ort_op_run(t.env, "", "Relu", 0, NULL, 1, &t.x, 1, &y, 1, NULL));
    CHECK_REFUSED(ort_op_run(t.env, "", "Relu", -1, NULL, 0, &t.x, 1, &y, 1, NULL));
    CHECK_REFUSED(ort_op_run(t.env, "", "Relu", 0, NULL, 0, NULL, 1, &y, 1, NULL));
    CHECK_REFUSED(ort_op_run(t.env, "", "Relu", 0, NULL, 0, &t.words, 1, &y, 1, NULL));
    CHECK_REFUSED(ort_op_run(t.env, "", "Relu", 0, NULL, 0, NULL, 0, &y, 1, NULL));
    CHECK_REFUSED(ort_op_run(t.env, "", "Squeeze", 11, &list, 1, &t.x, 1, &y, 1, NULL));
    CHECK_REFUSED(ort_op_run(t.env, "", "Squeeze", 11, &nameless, 1, &t.x, 1, &y, 1, NULL));
    CHECK_REFUSED(ort_op_run(t.env, "", "Squeeze", 11, &odd, 1, &t.x, 1, &y, 1, NULL));
    CHECK_REFUSED(ort_op_run(t.env, "", "Constant", 0, &no_tensor, 1, NULL, 0, &y, 1, NULL));
    CHECK_REFUSED(ort_op_run(t.env, "", "If", 0, NULL, 0, &t.x, 1, &y, 1, NULL));
    CHECK(!y);
}

static void comparing_distances(test_state *test)
{
    ort_distance d = ORT_DISTANCE_INIT, no_size = {.size = 0};
    CHECK_REFUSED(ort_distance_add(NULL, t.x, t.x, NULL));
    CHECK_REFUSED(ort_distance_add(&no_size, t.x, t.x, NULL));
    CHECK_REFUSED(ort_distance_add(&d, NULL, t.x, NULL));
    CHECK_REFUSED(ort_distance_add(&d, t.x, NULL, NULL));
    CHECK_REFUSED(ort_distance_add(&d, t.list, t.x, NULL));
    CHECK(d.samples == 0 && isnan(ort_distance_sqnr_db(&d)));
    CHECK(isnan(ort_distance_sqnr_db(NULL)) && isnan(ort_distance_sqnr_db(&no_size)));
    CHECK(isnan(ort_distance_cosine(NULL)) && isnan(ort_distance_cosine(&no_size)));
    CHECK(isnan(ort_distance_top1(NULL)) && isnan(ort_distance_top1(&no_size)));
    CHECK(isnan(ort_distance_clear_top1(NULL)) && isnan(ort_distance_clear_top1(&no_size)));
}

static void comparing(test_state *test)
{
    ort_difference d = ORT_DIFFERENCE_INIT, no_size = {.size = 0};
    ort_verification v = ORT_VERIFICATION_INIT;
    ort_first_difference f = ORT_FIRST_DIFFERENCE_INIT;
    ort_locate_options no_run = ORT_LOCATE_OPTIONS_INIT;
    ort_run_options bare = {.size = 0};
    no_run.run = &bare;
    CHECK_REFUSED(ort_value_compare(t.x, t.x, NULL, NULL, NULL));
    CHECK_REFUSED(ort_value_compare(t.x, t.x, NULL, &no_size, NULL));
    CHECK(!ort_value_compare(NULL, t.x, NULL, &d, NULL) && !d.equal);
    CHECK(!ort_value_compare(t.list, t.x, NULL, &d, NULL) && !d.equal);
    CHECK(!ort_value_compare(NULL, NULL, NULL, &d, NULL) && d.equal);
    comparing_distances(test);
    CHECK_REFUSED(ort_models_verify(NULL, t.model, t.model, NULL, &v, NULL));
    CHECK_REFUSED(ort_models_verify(t.env, NULL, t.model, NULL, &v, NULL));
    CHECK_REFUSED(ort_models_verify(t.env, t.model, t.model, NULL, NULL, NULL));
    CHECK_REFUSED(ort_sessions_compare(NULL, t.session, &t.x, 1, NULL, &f, NULL));
    CHECK_REFUSED(ort_sessions_compare(t.session, t.session, &t.x, 2, NULL, &f, NULL));
    CHECK_REFUSED(ort_sessions_compare(t.session, t.session, NULL, 1, NULL, &f, NULL));
    CHECK_REFUSED(ort_sessions_compare(t.session, t.session, &t.x, 1, NULL, NULL, NULL));
    CHECK_REFUSED(ort_sessions_compare(t.session, t.session, &t.x, 1, &no_run, &f, NULL));
}

static void quantizing_dynamically(test_state *test)
{
    ort_model *m = (ort_model *)&t;
    ort_quantize_notes *notes = NULL;
    ort_dynamic_options no_size = {0}, odd = ORT_DYNAMIC_OPTIONS_INIT;
    odd.weights = ORT_DTYPE_INT16;
    CHECK_REFUSED(ort_quantize_notes_new(NULL, NULL));
    CHECK(!ort_quantize_notes_new(&notes, NULL));
    CHECK_REFUSED(ort_model_quantize_dynamic(NULL, t.model, NULL, &m, notes, NULL));
    CHECK_REFUSED(ort_model_quantize_dynamic(t.env, NULL, NULL, &m, notes, NULL));
    CHECK_REFUSED(ort_model_quantize_dynamic(t.env, t.model, NULL, NULL, notes, NULL));
    CHECK_REFUSED(ort_model_quantize_dynamic(t.env, t.model, &no_size, &m, notes, NULL));
    CHECK(!m);
    CHECK_REFUSED(ort_model_quantize_dynamic(t.env, t.model, &odd, &m, notes, NULL));
    CHECK(!m && ort_quantize_notes_count(notes) == 0 && ort_quantize_notes_count(NULL) == 0);
    CHECK(!ort_quantize_notes_get(notes, 0) && !ort_quantize_notes_get(NULL, 0));
    ort_quantize_notes_free(notes);
    ort_quantize_notes_free(NULL);
}

static void weights(test_state *test)
{
    ort_weights *w = (ort_weights *)&t, *kept = NULL;
    ort_model *m = (ort_model *)&t;
    ort_weights_options no_size = {0}, odd = ORT_WEIGHTS_OPTIONS_INIT;
    ort_weights_node node = {.size = sizeof node}, no_node = {0};
    odd.bits = 3;
    CHECK_REFUSED(ort_weights_new(NULL, t.model, NULL, &w, NULL));
    CHECK_REFUSED(ort_weights_new(t.env, NULL, NULL, &w, NULL));
    CHECK_REFUSED(ort_weights_new(t.env, t.model, NULL, NULL, NULL));
    CHECK_REFUSED(ort_weights_new(t.env, t.model, &no_size, &w, NULL));
    CHECK(!w);
    CHECK_REFUSED(ort_weights_new(t.env, t.model, &odd, &w, NULL));
    CHECK(!w);
    CHECK(!ort_weights_new(t.env, t.model, NULL, &kept, NULL));
    CHECK(ort_weights_node_count(NULL) == 0);
    CHECK_REFUSED(ort_weights_node_at(NULL, 0, &node, NULL));
    CHECK_REFUSED(ort_weights_node_at(kept, 0, NULL, NULL));
    CHECK_REFUSED(ort_weights_node_at(kept, 0, &no_node, NULL));
    CHECK_REFUSED(ort_weights_node_at(kept, ort_weights_node_count(kept), &node, NULL));
    CHECK_REFUSED(ort_weights_observe(NULL, &t.x, 1, NULL));
    CHECK_REFUSED(ort_weights_observe(kept, NULL, 1, NULL));
    CHECK_REFUSED(ort_weights_observe(kept, &t.x, 1, NULL)); /* of a method without samples */
    CHECK_REFUSED(ort_weights_apply(NULL, &m, NULL));
    CHECK_REFUSED(ort_weights_apply(kept, NULL, NULL));
    ort_weights_free(kept);
    ort_weights_free(NULL);
}

static void quantizing(test_state *test)
{
    ort_quantizer *q = (ort_quantizer *)&t, *kept = NULL;
    ort_model *m = (ort_model *)&t;
    ort_quantize_options no_size = {0}, odd = ORT_QUANTIZE_OPTIONS_INIT;
    odd.weights = ORT_DTYPE_STRING;
    CHECK_REFUSED(ort_quantizer_new(NULL, t.model, NULL, &q, NULL));
    CHECK_REFUSED(ort_quantizer_new(t.env, NULL, NULL, &q, NULL));
    CHECK_REFUSED(ort_quantizer_new(t.env, t.model, NULL, NULL, NULL));
    CHECK_REFUSED(ort_quantizer_new(t.env, t.model, &no_size, &q, NULL));
    CHECK(!q);
    CHECK_REFUSED(ort_quantizer_new(t.env, t.model, &odd, &q, NULL));
    CHECK(!q);
    CHECK(!ort_quantizer_new(t.env, t.model, NULL, &kept, NULL));
    CHECK_REFUSED(ort_quantizer_calibrate(NULL, &t.x, 1, NULL));
    CHECK_REFUSED(ort_quantizer_calibrate(kept, NULL, 1, NULL));
    CHECK_REFUSED(ort_quantizer_calibrate(kept, &t.x, 2, NULL));
    CHECK_REFUSED(ort_quantizer_smooth(NULL, NULL));
    CHECK_REFUSED(ort_quantizer_override(NULL, NULL, NULL));
    CHECK_REFUSED(ort_quantizer_override(kept, "{}", NULL));
    CHECK(!ort_quantizer_override(kept, NULL, NULL));
    ort_quantizer_node_info info = ORT_QUANTIZER_NODE_INFO_INIT;
    CHECK(!ort_quantizer_node(NULL, 0, &info) && !ort_quantizer_node(kept, 0, NULL));
    CHECK(!ort_quantizer_node(kept, SIZE_MAX, &info));
    CHECK_REFUSED(ort_model_stamp_quantized(NULL, "static", NULL, NULL, NULL, NULL));
    CHECK_REFUSED(ort_model_stamp_quantized(t.model, NULL, NULL, NULL, NULL, NULL));
    CHECK_REFUSED(ort_quantizer_keep_float(NULL, 0, true, NULL));
    CHECK_REFUSED(ort_quantizer_keep_float(kept, SIZE_MAX, true, NULL));
    CHECK_REFUSED(ort_quantizer_keep_half(NULL, 0, NULL));
    CHECK_REFUSED(ort_quantizer_keep_half(kept, SIZE_MAX, NULL));
    double work, noise;
    CHECK(!ort_quantizer_node_harm(NULL, 0, &work, &noise));
    CHECK(!ort_quantizer_node_harm(kept, SIZE_MAX, &work, &noise));
    CHECK(!ort_quantizer_node_harm(kept, 0, NULL, &noise));
    CHECK(ort_quantizer_equalized(NULL) == 0);
    CHECK_REFUSED(ort_quantizer_apply_alone(NULL, 0, &m, NULL));
    CHECK_REFUSED(ort_quantizer_apply_alone(kept, 0, NULL, NULL));
    CHECK_REFUSED(ort_quantizer_apply_alone(kept, SIZE_MAX, &m, NULL));
    CHECK_REFUSED(ort_quantizer_apply(NULL, &m, NULL));
    CHECK_REFUSED(ort_quantizer_apply(kept, NULL, NULL));
    CHECK_REFUSED(ort_quantizer_apply(kept, &m, NULL)); /* no sample was seen */
    CHECK(!m);
    ort_ranges *ranges = NULL;
    char *json = NULL;
    CHECK(!ort_observer_name((ort_observer)99, NULL) && !ort_observer_name((ort_observer)-1, NULL));
    CHECK_REFUSED(ort_ranges_new(NULL, NULL));
    CHECK(!ort_ranges_new(&ranges, NULL));
    CHECK_REFUSED(ort_ranges_read(NULL, "{}", 2, NULL, NULL));
    CHECK_REFUSED(ort_ranges_read(ranges, NULL, 2, NULL, NULL));
    CHECK(ort_ranges_read(ranges, "", 0, NULL, NULL) == ORT_ERROR_DATA);
    CHECK_REFUSED(ort_ranges_write(NULL, &json, NULL));
    CHECK_REFUSED(ort_ranges_write(ranges, NULL, NULL));
    CHECK_REFUSED(ort_ranges_write(ranges, &json, NULL)); /* of nothing */
    CHECK(!json && ort_ranges_samples(NULL, NULL) == 0 && !ort_ranges_tier(NULL));
    CHECK(ort_quantize_tier() != NULL);
    ort_value_forget(NULL, 0, 8);
    CHECK_REFUSED(ort_quantizer_ranges(NULL, ranges, NULL));
    CHECK_REFUSED(ort_quantizer_ranges(kept, NULL, NULL));
    CHECK_REFUSED(ort_quantizer_use_ranges(NULL, ranges, NULL, NULL));
    CHECK_REFUSED(ort_quantizer_use_ranges(kept, NULL, NULL, NULL));
    CHECK_REFUSED(ort_quantizer_use_ranges(kept, ranges, NULL, NULL));
    ort_ranges_set_made_up(NULL);
    ort_ranges_free(ranges);
    ort_ranges_free(NULL);
    ort_quantizer_free(kept);
    ort_quantizer_free(NULL);
}

int main(void)
{
    test_state test = {.failures = 0};
    if (!set_up()) {
        printf("not ok set_up: %s\n", t.err.message);
        return 1;
    }
    RUN(&test, words_and_numbers);
    RUN(&test, environments);
    RUN(&test, new_values);
    RUN(&test, sequences);
    RUN(&test, elements);
    RUN(&test, files_of_tensors);
    RUN(&test, options_of_readers);
    RUN(&test, deep_values_in_files);
    RUN(&test, files_that_appear_whole);
    RUN(&test, models);
    RUN(&test, types_of_models);
    RUN(&test, findings);
    RUN(&test, rewriting);
    RUN(&test, sessions);
    RUN(&test, runs);
    RUN(&test, bindings);
    RUN(&test, profiles);
    RUN(&test, reports);
    RUN(&test, single_operators);
    RUN(&test, comparing);
    RUN(&test, weights);
    RUN(&test, quantizing);
    RUN(&test, quantizing_dynamically);
    tear_down();
    return test.failures != 0;
}
