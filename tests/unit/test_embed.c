/* test_embed.c - what programs ask that hold a model in their own memory: types and words of a
 * model without a session, its weights from memory, strings of any bytes. */
#include <unistd.h>

#include "net.h"
#include "onnx.pb-c.h"
#include "test.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

/* The input x declares what its axes stand for: y = x + w, z = sequence of y. */
static bool image_net(net *n)
{
    static const float w[] = {1, 2, 3, 4, 5};
    static Onnx__TensorShapeProto__Dimension axes[2];
    static Onnx__TensorShapeProto__Dimension *list[] = {&axes[0], &axes[1]};
    static Onnx__TensorShapeProto shape;
    static Onnx__TypeProto__Tensor tensor;
    static Onnx__TypeProto type;
    static Onnx__ValueInfoProto info;
    static char name[] = "x", batch[] = "n", image[] = "IMAGE", data_batch[] = "DATA_BATCH";
    if (!net_init(n, NULL))
        return false;
    onnx__tensor_shape_proto__dimension__init(&axes[0]);
    onnx__tensor_shape_proto__dimension__init(&axes[1]);
    onnx__tensor_shape_proto__init(&shape);
    onnx__type_proto__tensor__init(&tensor);
    onnx__type_proto__init(&type);
    onnx__value_info_proto__init(&info);
    axes[0].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
    axes[0].dim_param = batch;
    axes[0].denotation = data_batch;
    axes[1].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
    axes[1].dim_value = 5;
    shape.n_dim = 2;
    shape.dim = list;
    tensor.has_elem_type = true;
    tensor.elem_type = ORT_DTYPE_FLOAT;
    tensor.shape = &shape;
    type.value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type.tensor_type = &tensor;
    type.denotation = image;
    info.name = name;
    info.type = &type;
    ort_id x = net_input(n, "x", ORT_DTYPE_FLOAT, 2, DIMS(-1, 5));
    n->graph->values.data[x]->info_proto = &info;
    net_constant(n, "w", ORT_DTYPE_FLOAT, 1, DIMS(5), w);
    net_node(n, "Add", "x w", "y");
    net_node(n, "Exp", "y", "inner");
    net_node(n, "SequenceConstruct", "inner", "list");
    net_output(n, "y");
    net_output(n, "list");
    return true;
}

/* As bytes that a program was given. */
static char *to_bytes(const ort_model *model, size_t *count)
{
    char *bytes = NULL;
    FILE *stream = open_memstream(&bytes, count);
    bool failed = !stream || ort_model_write(model, stream, NULL);
    if (stream)
        fclose(stream);
    if (failed) {
        free(bytes);
        bytes = NULL;
    }
    return bytes;
}

static void types_without_a_session(test_state *test)
{
    net n;
    ort_error err = {0};
    ort_model *model = NULL;
    ort_types *in = NULL, *out = NULL, *weights = NULL, *all = NULL;
    size_t count = 0;
    CHECK(image_net(&n));
    char *bytes = to_bytes(n.model, &count);
    CHECK(bytes && !ort_model_load_memory(n.env, bytes, count, NULL, &model, &err));
    CHECK(!ort_model_types(model, ORT_TYPES_INPUTS, &in, &err));
    CHECK(!ort_model_types(model, ORT_TYPES_OUTPUTS, &out, &err));
    CHECK(!ort_model_types(model, ORT_TYPES_INITIALIZERS, &weights, &err));
    CHECK(!ort_model_types(model, ORT_TYPES_ALL, &all, &err));
    ort_model_free(model); /* and the bytes: the lists need neither */
    memset(bytes, 'x', count);
    free(bytes);
    CHECK(ort_types_count(in) == 1 && ort_types_count(weights) == 1);
    CHECK_TEXT(ort_types_name(in, 0), "x");
    const ort_type_info *x = ort_types_info(in, 0);
    CHECK(x->kind == ORT_TYPE_TENSOR && x->rank == 2 && x->dims[1] == 5);
    CHECK_TEXT(x->symbols[0], "n");
    CHECK_TEXT(x->denotation, "IMAGE");
    CHECK_TEXT(x->denotations[0], "DATA_BATCH");
    CHECK(!x->denotations[1]);
    CHECK_TEXT(ort_types_find(weights, "w")->text, "float[5]");
    CHECK(ort_types_count(out) == 2);
    CHECK_TEXT(ort_types_name(out, 1), "list");
    CHECK_TEXT(ort_types_info(out, 1)->text, "seq(float[n,5])");
    CHECK(!ort_types_info(out, 1)->denotation && !ort_types_info(out, 1)->element->denotation);
    CHECK(ort_types_count(all) == 5 && !ort_types_find(all, "nobody"));
    CHECK_TEXT(ort_types_find(all, "inner")->text, "float[n,5]");
    ort_types_free(in);
    ort_types_free(out);
    ort_types_free(weights);
    ort_types_free(all);
    net_free(&n);
}

static void sessions_say_what_models_say(test_state *test)
{
    net n;
    ort_error err = {0};
    char folder[] = "/tmp/ort_embed_XXXXXX", path[64], pack[80];
    CHECK(mkdtemp(folder) && image_net(&n));
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    snprintf(pack, sizeof pack, "%s.pack", path);
    n.model->producer_name = "unit tests";
    n.model->model_version = 12;
    CHECK(!ort_model_set_property(n.model, "labels", "cat,dog", &err));
    (void)!ort_model_save_packed(n.env, n.model, path, NULL, &err);
    CHECK_TEXT(err.message, "");
    for (int packed = 1; packed >= 0; packed--) {
        ort_session_options options = ORT_SESSION_OPTIONS_INIT;
        ort_session *s = NULL;
        options.no_pack = !packed;
        CHECK(!ort_session_load(n.env, path, &options, &s, &err));
        CHECK_TEXT(ort_session_text(s, ORT_MODEL_PRODUCER_NAME), "unit tests");
        CHECK(ort_session_number(s) == 12);
        CHECK_TEXT(ort_session_property_key(s, 0), "labels");
        CHECK_TEXT(ort_session_property(s, "labels"), "cat,dog");
        CHECK(!ort_session_property(s, "nothing") && ort_session_property_count(s) >= 1);
        CHECK_TEXT(ort_session_input_type(s, 0)->denotation, "IMAGE");
        CHECK_TEXT(ort_session_input_type(s, 0)->denotations[0], "DATA_BATCH");
        ort_session_free(s);
    }
    unlink(pack);
    unlink(path);
    rmdir(folder);
    net_free(&n);
}

static char *read_file(const char *path, size_t *count)
{
    FILE *stream = fopen(path, "rb");
    const long size = stream && !fseek(stream, 0, SEEK_END) ? ftell(stream) : -1;
    char *bytes = size >= 0 ? malloc((size_t)size + 1) : NULL;
    if (bytes) {
        rewind(stream);
        *count = fread(bytes, 1, (size_t)size, stream);
    }
    if (stream)
        fclose(stream);
    return bytes;
}

static double second_of_y(net *n, ort_model *model, ort_error *err)
{
    ort_session *s = NULL;
    ort_value *x = net_floats(2, DIMS(1, 5), 10, 0), *y = NULL;
    const char *in = "x", *out = "y";
    bool ran = !ort_session_new(n->env, model, NULL, &s, err) &&
               !ort_session_run(s, &in, &x, 1, &out, &y, 1, NULL, err);
    double number = ran ? ort_value_get_double(y, 1) : -1;
    ort_value_free(x);
    ort_value_free(y);
    ort_session_free(s);
    return number;
}

static void weights_from_memory(test_state *test)
{
    net n;
    ort_error err = {0};
    char folder[] = "/tmp/ort_embed_XXXXXX", path[64], data[64];
    ort_save_options save = {.size = sizeof save, .external_data = "w.bin",
                             .external_threshold_bytes = 1};
    size_t count = 0, data_count = 0;
    ort_model *model = NULL;
    CHECK(mkdtemp(folder) && image_net(&n));
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    snprintf(data, sizeof data, "%s/w.bin", folder);
    CHECK(!ort_model_save(n.model, path, &save, &err));
    char *bytes = read_file(path, &count), *weights = read_file(data, &data_count);
    CHECK(bytes && weights);
    unlink(data);
    /* nobody has them */
    CHECK(ort_model_load_memory(n.env, bytes, count, NULL, &model, &err) == ORT_ERROR_MODEL);
    CHECK(ort_model_load(n.env, path, NULL, &model, &err) == ORT_ERROR_MODEL);
    /* the caller has them, among others; as long as the model lives */
    ort_external_file files[] = {{"other", NULL, 0}, {"w.bin", weights, data_count}};
    ort_load_options load = {.size = sizeof load, .external_files = files,
                             .external_file_count = 2};
    for (int from_file = 0; from_file < 2; from_file++) {
        CHECK(!(from_file ? ort_model_load(n.env, path, &load, &model, &err)
                          : ort_model_load_memory(n.env, bytes, count, &load, &model, &err)));
        err.message[0] = '\0';
        files[1].name = "gone"; /* the list itself may go */
        double got = second_of_y(&n, model, &err);
        CHECK_TEXT(err.message, "");
        CHECK(got == 12);
        files[1].name = "w.bin";
        ort_model_free(model);
    }
    /* too few bytes, another name, no bytes */
    files[1].bytes = 8;
    CHECK(ort_model_load_memory(n.env, bytes, count, &load, &model, &err) == ORT_ERROR_MODEL);
    CHECK(strstr(err.message, "external data 'w.bin' has 8 bytes"));
    files[1] = (ort_external_file){"W.bin", weights, data_count};
    CHECK(ort_model_load_memory(n.env, bytes, count, &load, &model, &err) == ORT_ERROR_MODEL);
    files[1] = (ort_external_file){"w.bin", NULL, data_count};
    CHECK(ort_model_load_memory(n.env, bytes, count, &load, &model, &err) == ORT_ERROR_USAGE);
    files[1] = (ort_external_file){NULL, weights, data_count};
    CHECK(ort_model_load_memory(n.env, bytes, count, &load, &model, &err) == ORT_ERROR_USAGE);
    load.external_files = NULL;
    CHECK(ort_model_load_memory(n.env, bytes, count, &load, &model, &err) == ORT_ERROR_USAGE);
    CHECK(!model);
    free(bytes);
    free(weights);
    unlink(path);
    rmdir(folder);
    net_free(&n);
}

static void strings_of_any_bytes(test_state *test)
{
    ort_error err = {0};
    ort_value *v = NULL, *w = NULL;
    char *text = NULL;
    size_t length = 0;
    CHECK(!ort_value_new_tensor(ORT_DTYPE_STRING, 1, DIMS(3), &v, &err));
    CHECK(!ort_value_set_string(v, 0, "a\0b", 3, &err));
    CHECK(!ort_value_resize_string(v, 1, 4, &text, &err) && !memcmp(text, "\0\0\0\0", 4));
    memcpy(text, "\0two", 4);
    CHECK(!ort_value_resize_string(v, 2, 0, &text, &err) && text);
    CHECK(!memcmp(ort_value_string(v, 0, &length), "a\0b", 3) && length == 3);
    CHECK(!memcmp(ort_value_string(v, 1, &length), "\0two", 4) && length == 4);
    CHECK(*ort_value_string(v, 2, &length) == '\0' && length == 0);
    CHECK(ort_value_resize_string(v, 0, SIZE_MAX, &text, &err) == ORT_ERROR_MEMORY && !text);
    CHECK(!ort_value_new_tensor(ORT_DTYPE_STRING, 1, DIMS(3), &w, &err));
    CHECK(!ort_value_set_string(w, 0, "a\0c", 3, &err));
    ort_difference d = ORT_DIFFERENCE_INIT;
    CHECK(!ort_value_compare(v, w, NULL, &d, &err) && d.mismatches == 2);
    ort_value_free(v);
    ort_value_free(w);
}

/* LabelEncoder finds "a\0b", which is not "a". */
static void attributes_of_any_bytes(test_state *test)
{
    ort_error err = {0};
    ort_env *env = NULL;
    ort_value *x = NULL, *y = NULL;
    const char keys[] = {'a', '\0', 'b', 'a'}, unknown[] = {'?', '\0', '!'};
    const char *const list[] = {keys, keys + 3};
    const size_t lengths[] = {3, 1}, three = 3;
    const int64_t numbers[] = {7, 8};
    const ort_attribute_spec to_numbers[] = {
        {.name = "keys_strings", .kind = 'S', .strings = list, .count = 2, .lengths = lengths},
        {.name = "values_int64s", .kind = 'I', .ints = numbers, .count = 2},
    };
    const ort_attribute_spec to_words[] = {
        {.name = "keys_int64s", .kind = 'I', .ints = numbers, .count = 2},
        {.name = "values_strings", .kind = 'S', .strings = list, .count = 2, .lengths = lengths},
        {.name = "default_string", .kind = 's', .s = unknown, .lengths = &three},
    };
    size_t length = 0;
    CHECK(!ort_env_new(NULL, &env, &err));
    CHECK(!ort_value_new_tensor(ORT_DTYPE_STRING, 1, DIMS(2), &x, &err));
    CHECK(!ort_value_set_string(x, 0, "a\0b", 3, &err));
    CHECK(!ort_value_set_string(x, 1, "a", 1, &err));
    CHECK(!ort_op_run(env, "ai.onnx.ml", "LabelEncoder", 2, to_numbers, 2, &x, 1, &y, 1, &err));
    CHECK(ort_value_get_double(y, 0) == 7 && ort_value_get_double(y, 1) == 8);
    ort_value_free(x);
    ort_value_set_double(y, 1, 99);
    x = y;
    y = NULL;
    CHECK(!ort_op_run(env, "ai.onnx.ml", "LabelEncoder", 2, to_words, 3, &x, 1, &y, 1, &err));
    CHECK(!memcmp(ort_value_string(y, 0, &length), "a\0b", 3) && length == 3);
    CHECK(!memcmp(ort_value_string(y, 1, &length), "?\0!", 3) && length == 3);
    ort_value_free(x);
    ort_value_free(y);
    ort_env_free(env);
}

int main(void)
{
    test_state test = {.failures = 0};
    RUN(&test, types_without_a_session);
    RUN(&test, sessions_say_what_models_say);
    RUN(&test, weights_from_memory);
    RUN(&test, strings_of_any_bytes);
    RUN(&test, attributes_of_any_bytes);
    return test.failures != 0;
}
