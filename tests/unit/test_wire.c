/* test_wire.c - the wire walker, the codec of tensors, tensor files, what isn't a model. */
#include "test.h"

#include <stdlib.h>

#include "io/codec.h"
#include "io/sniff.h"
#include "io/tensor_pb.h"
#include "io/wire.h"

/* Append a nested message and drop it. */
static void nest(ort_strbuf *out, uint32_t field, ort_strbuf *inner)
{
    ort_wire_put_bytes(out, field, inner->data, inner->length);
    ort_strbuf_release(inner);
}

static ort_status keep(void *arg, const void *bytes, size_t count, ort_error *err)
{
    (void)err;
    ort_strbuf_add_bytes(arg, bytes, count);
    return ORT_OK;
}

/* A model with a float initializer of `count` elements, an unknown field, and a name behind it. */
static void make_model(ort_strbuf *model, size_t count)
{
    ort_strbuf tensor = {0}, graph = {0};
    float *data = calloc(count + 1, sizeof *data);
    for (size_t i = 0; i < count; i++)
        data[i] = (float)i;
    ort_wire_put_int(&tensor, 1, (int64_t)count);
    ort_wire_put_int(&tensor, 2, ORT_DTYPE_FLOAT);
    ort_wire_put_bytes(&tensor, 9, data, count * sizeof *data);
    ort_wire_put_bytes(&tensor, 8, "w", 1);
    ort_wire_put_bytes(&tensor, 1000, "unknown", 7);
    nest(&graph, 5, &tensor);
    ort_wire_put_bytes(&graph, 2, "g", 1);
    ort_wire_put_int(model, 1, 8);
    nest(model, 7, &graph);
    free(data);
}

static void split_and_join(test_state *test)
{
    for (size_t count = 0; count < 300; count += 37) {
        ort_strbuf model = {0}, back = {0};
        ort_wire wire;
        make_model(&model, count);
        CHECK(ort_wire_split(ORT_WIRE_MODEL, (uint8_t *)model.data, model.length, false, &wire,
                             NULL) == ORT_OK);
        CHECK(wire.payloads.count == (count >= 16 ? 1 : 0));
        if (wire.payloads.count) {
            CHECK(wire.payloads.data[0].field == ORT_WIRE_RAW_DATA);
            CHECK(wire.payloads.data[0].count == count * 4);
            CHECK(wire.skeleton_count < model.length);
        }
        CHECK(ort_wire_join(ORT_WIRE_MODEL, wire.skeleton, wire.skeleton_count, wire.payloads.data,
                            wire.payloads.count, keep, &back, NULL) == ORT_OK);
        CHECK(back.length == model.length && !memcmp(back.data, model.data, model.length));
        ort_wire_release(&wire);
        ort_strbuf_release(&model);
        ort_strbuf_release(&back);
    }
}

/* Every prefix is refused, with a byte offset, and never read beyond. */
static void truncation(test_state *test)
{
    ort_strbuf model = {0};
    make_model(&model, 40);
    for (size_t n = 1; n < model.length; n++) {
        ort_error err = {0};
        ort_wire wire;
        uint8_t *part = malloc(n);
        memcpy(part, model.data, n);
        ort_status status = ort_wire_split(ORT_WIRE_MODEL, part, n, false, &wire, &err);
        free(part);
        if (n == 2) { /* the end of ir_version: a whole message */
            CHECK(status == ORT_OK);
            ort_wire_release(&wire);
            continue;
        }
        CHECK(status == ORT_ERROR_MODEL && strstr(err.message, "byte "));
    }
    ort_strbuf_release(&model);
}

static void depth(test_state *test)
{
    ort_strbuf type = {0};
    ort_error err = {0};
    ort_wire wire;
    for (int i = 0; i < 20000; i++) { /* TypeProto and TypeProto.Sequence by turns */
        ort_strbuf outer = {0};
        nest(&outer, i % 2 ? 4 : 1, &type);
        type = outer;
    }
    ort_strbuf info = {0}, graph = {0}, model = {0};
    nest(&info, 2, &type);
    nest(&graph, 11, &info);
    nest(&model, 7, &graph);
    CHECK(ort_wire_split(ORT_WIRE_MODEL, (uint8_t *)model.data, model.length, false, &wire, &err) ==
          ORT_ERROR_MODEL);
    CHECK(strstr(err.message, "100 deep"));
    ort_strbuf_release(&model);
}

/* ---- tensors */

static ort_status decode(ort_strbuf *bytes, ort_value **value, ort_error *err)
{
    char name[256];
    return ort_tensor_pb_read(bytes->data, bytes->length, value, name, err);
}

static void typed_data(test_state *test)
{
    /* int8 in int32_data, some of it negative (ten bytes each), in two pieces. */
    ort_strbuf tensor = {0}, packed = {0};
    ort_value *value = NULL;
    ort_wire_put_int(&tensor, 1, 40);
    ort_wire_put_int(&tensor, 2, ORT_DTYPE_INT8);
    ort_wire_put_int(&tensor, 5, 7);
    for (int i = 1; i < 40; i++)
        ort_wire_put_varint(&packed, (uint64_t)(int64_t)(i % 3 ? i : -i));
    nest(&tensor, 5, &packed);
    CHECK(decode(&tensor, &value, NULL) == ORT_OK);
    const int8_t *data = ort_value_data(value);
    CHECK(data[0] == 7 && data[1] == 1 && data[3] == -3 && data[39] == -39);
    ort_value_free(value);
    ort_strbuf_release(&tensor);

    /* int4: two elements per stored number. */
    ort_wire_put_int(&tensor, 1, 3);
    ort_wire_put_int(&tensor, 2, ORT_DTYPE_INT4);
    ort_wire_put_int(&tensor, 5, 0x21);
    ort_wire_put_int(&tensor, 5, 0x0f);
    CHECK(decode(&tensor, &value, NULL) == ORT_OK);
    CHECK(ort_value_get_double(value, 0) == 1 && ort_value_get_double(value, 1) == 2);
    CHECK(ort_value_get_double(value, 2) == -1);
    ort_value_free(value);
    ort_strbuf_release(&tensor);
}

static void wrong_tensors(test_state *test)
{
    ort_strbuf tensor = {0};
    ort_error err = {0};
    ort_value *value = NULL;
    float one = 1;
    ort_wire_put_int(&tensor, 1, 2);
    ort_wire_put_int(&tensor, 2, ORT_DTYPE_FLOAT);
    ort_wire_put_bytes(&tensor, 8, "half", 4);
    ort_wire_put_bytes(&tensor, 9, &one, sizeof one);
    CHECK(decode(&tensor, &value, &err) == ORT_ERROR_DATA && strstr(err.message, "half"));
    ort_strbuf_release(&tensor);
    /* 2^62 elements: refused before anything is allocated. */
    ort_wire_put_int(&tensor, 1, (int64_t)1 << 31);
    ort_wire_put_int(&tensor, 1, (int64_t)1 << 31);
    ort_wire_put_int(&tensor, 2, ORT_DTYPE_FLOAT);
    CHECK(decode(&tensor, &value, &err) != ORT_OK && value == NULL);
    ort_strbuf_release(&tensor);
}

static void files_round(test_state *test)
{
    ort_value *x = NULL, *strings = NULL, *sequence = NULL, *keys = NULL, *map = NULL, *back = NULL;
    char name[256];
    CHECK(!ort_value_new_tensor(ORT_DTYPE_FLOAT, 2, (int64_t[]){2, 3}, &x, NULL));
    CHECK(!ort_value_new_tensor(ORT_DTYPE_STRING, 1, (int64_t[]){2}, &strings, NULL));
    CHECK(!ort_value_new_tensor(ORT_DTYPE_INT64, 1, (int64_t[]){2}, &keys, NULL));
    CHECK(!ort_value_set_string(strings, 1, "a\0b", 3, NULL));
    ort_value_set_double(x, 4, 2.5);
    ort_value_set_double(keys, 1, 9);
    CHECK(!ort_value_new_sequence(&sequence, NULL));
    CHECK(!ort_value_append(sequence, x, NULL) && !ort_value_append(sequence, strings, NULL));
    CHECK(!ort_value_new_map(keys, strings, &map, NULL));
    ort_value *const all[] = {x, strings, sequence, map};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        ort_strbuf bytes = {0};
        CHECK(ort_tensor_pb_write(all[i], "some name", &bytes, NULL) == ORT_OK);
        CHECK(ort_tensor_pb_read(bytes.data, bytes.length, &back, name, NULL) == ORT_OK);
        CHECK(ort_value_get_kind(back) == ort_value_get_kind(all[i]));
        CHECK(ort_value_digest(back) == ort_value_digest(all[i]));
        CHECK_TEXT(name, "some name");
        ort_value_free(back);
        ort_strbuf_release(&bytes);
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        ort_value_free(all[i]);
    ort_value_free(keys);
}

static void sniffing(test_state *test)
{
    static const struct {
        const char *bytes, *says;
    } cases[] = {
        {"version https://git-lfs.github.com/spec/v1\n", "git-lfs"},
        {"<!DOCTYPE html>", "HTML"},
        {"\n <html><body>", "HTML"},
        {"PK\3\4........foo.txt", "zip"},
        {"PK\3\4........model/data.pkl", "PyTorch"},
        {"\x1f\x8b........", "gzip"},
        {"\x80\x02}q....", "pickle"},
        {"GGUF........", "GGUF"},
        {"\x08\x07\x12\x04ORTM....", NULL}, /* a producer of that name */
        {"\x08\x08\x12\x07pytorch", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *says =
            ort_sniff_model((const uint8_t *)cases[i].bytes, strlen(cases[i].bytes));
        CHECK(!says == !cases[i].says);
        CHECK(!says || strstr(says, cases[i].says));
    }
    CHECK(ort_sniff_model((const uint8_t *)"\x1c\0\0\0TFL3....", 12));
    CHECK(ort_sniff_model(NULL, 0));
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, split_and_join);
    RUN(test, truncation);
    RUN(test, depth);
    RUN(test, typed_data);
    RUN(test, wrong_tensors);
    RUN(test, files_round);
    RUN(test, sniffing);
    return test->failures != 0;
}
