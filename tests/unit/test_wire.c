/* test_wire.c - the wire walker, lists that stay in the file, the codec of tensors, tensor files,
 * what isn't a model. */
#include "test.h"

#include <stdlib.h>

#include "io/codec.h"
#include "io/pack.h"
#include "io/sniff.h"
#include "io/tensor_pb.h"
#include "io/wire.h"
#include "io/wire_list.h"

/* Append a nested message and drop it. */
static void nest(ort_strbuf *out, uint32_t field, ort_strbuf *inner)
{
    ort_wire_put_bytes(out, field, inner->data, inner->length);
    ort_strbuf_release(inner);
}

static ort_status keep(void *arg, const void *bytes, size_t count, ort_error *err)
{
    ort_strbuf_add_bytes(arg, bytes, count);
    return ORT_OK;
}

/* Joined, the bytes are the model's again; drops both. */
static void check_joined(test_state *test, ort_wire *wire, ort_strbuf *model)
{
    ort_strbuf back = {0};
    CHECK(ort_wire_join(ORT_WIRE_MODEL, wire->skeleton, wire->skeleton_count, wire->payloads.data,
                        wire->payloads.count, keep, &back, NULL) == ORT_OK);
    CHECK(back.length == model->length && !memcmp(back.data, model->data, model->length));
    ort_wire_release(wire);
    ort_strbuf_release(model);
    ort_strbuf_release(&back);
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
        ort_strbuf model = {0};
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
        check_joined(test, &wire, &model);
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

/* ---- lists of attributes */

enum { INTS = ORT_WIRE_INTS, FLOATS = ORT_WIRE_FLOATS, STRINGS = ORT_WIRE_STRINGS };

/* A model of one attribute with these fields between its name and its type; drops them. */
static void make_attribute(ort_strbuf *model, ort_strbuf *fields)
{
    ort_strbuf attribute = {0}, node = {0}, graph = {0};
    ort_wire_put_bytes(&attribute, 1, "list", 4);
    ort_strbuf_add_bytes(&attribute, fields->data, fields->length);
    ort_wire_put_int(&attribute, 20, 7);
    nest(&node, 5, &attribute);
    nest(&graph, 1, &node);
    ort_wire_put_int(model, 1, 8);
    nest(model, 7, &graph);
    ort_strbuf_release(fields);
}

/* What the lists hold, as text; the bytes come back as they were. */
static void check_lists(test_state *test, ort_strbuf *fields, size_t payloads, const char *expected)
{
    ort_strbuf model = {0}, text = {0};
    ort_wire wire;
    make_attribute(&model, fields);
    CHECK(ort_wire_split(ORT_WIRE_MODEL, (uint8_t *)model.data, model.length, false, &wire, NULL) ==
          ORT_OK);
    CHECK(wire.payloads.count == payloads);
    for (size_t i = 0; i < wire.payloads.count; i++) {
        const ort_wire_payload *p = &wire.payloads.data[i];
        int64_t *ints = calloc(p->elements + 1, sizeof *ints);
        float *floats = calloc(p->elements + 1, sizeof *floats);
        ort_string *strings = calloc(p->elements + 1, sizeof *strings);
        char *room = malloc(p->count + 1);
        CHECK(p->field != INTS || ort_wire_list_numbers(p, ints) == ints + p->elements);
        CHECK(p->field != FLOATS || ort_wire_list_numbers(p, floats) == floats + p->elements);
        CHECK(p->field != STRINGS ||
              ort_wire_list_strings(p, strings, room) == strings + p->elements);
        for (size_t k = 0; k < p->elements; k++)
            if (p->field == STRINGS)
                ort_strbuf_addf(&text, "%zu%.2s,", strings[k].length, strings[k].ptr);
            else
                ort_strbuf_addf(&text, "%g,", p->field == INTS ? (double)ints[k] : floats[k]);
        free(ints);
        free(floats);
        free(strings);
        free(room);
    }
    CHECK_TEXT(ort_strbuf_text(&text), expected);
    check_joined(test, &wire, &model);
    ort_strbuf_release(&text);
}

static void put_float(ort_strbuf *out, float value)
{
    ort_wire_put_varint(out, FLOATS << 3 | 5);
    ort_strbuf_add_bytes(out, &value, sizeof value);
}

static void number_lists(test_state *test)
{
    ort_strbuf list = {0}, packed = {0}, expected = {0};
    for (int i = 0; i < 5; i++) /* a short one stays */
        ort_wire_put_int(&list, INTS, i);
    check_lists(test, &list, 0, "");
    for (int i = 0; i < 100; i++) {
        ort_wire_put_int(&list, INTS, i);
        ort_strbuf_addf(&expected, "%d,", i);
    }
    check_lists(test, &list, 1, ort_strbuf_text(&expected));
    for (int i = 0; i < 100; i++)
        ort_wire_put_varint(&packed, (uint64_t)i);
    nest(&list, INTS, &packed);
    check_lists(test, &list, 1, ort_strbuf_text(&expected));
    ort_strbuf_clear(&expected);
    for (int i = 0; i < 60; i++) { /* of one, two, three and ten bytes, in rows of four and less */
        int64_t value = i % 11 == 5 ? -i : i % 7 == 3 ? 300 * i : i % 13 == 6 ? 20000 + i : i;
        ort_wire_put_int(&list, INTS, value);
        ort_wire_put_varint(&packed, (uint64_t)value);
        ort_strbuf_addf(&expected, "%d,", (int)value);
    }
    check_lists(test, &list, 1, ort_strbuf_text(&expected));
    nest(&list, INTS, &packed);
    check_lists(test, &list, 1, ort_strbuf_text(&expected));
    ort_strbuf_clear(&expected);
    for (int i = 0; i < 20; i++) {
        float value = 0.5F * (float)i;
        put_float(&list, value);
        ort_strbuf_add_bytes(&packed, &value, sizeof value);
        ort_strbuf_addf(&expected, "%g,", (double)value);
    }
    check_lists(test, &list, 1, ort_strbuf_text(&expected));
    nest(&list, FLOATS, &packed);
    check_lists(test, &list, 1, ort_strbuf_text(&expected));
    ort_strbuf_release(&expected);
}

static void string_lists(test_state *test)
{
    static char large[200];
    ort_strbuf list = {0}, expected = {0};
    memset(large, 'x', sizeof large);
    for (size_t i = 0; i < 40; i++) { /* "", one of 200 bytes between short ones */
        size_t length = i == 30 ? sizeof large : i % 4;
        ort_wire_put_bytes(&list, STRINGS, large, length);
        ort_strbuf_addf(&expected, "%zu%.*s,", length, length < 2 ? (int)length : 2, large);
    }
    check_lists(test, &list, 3, ort_strbuf_text(&expected));
    ort_strbuf_release(&expected);
}

/* Pieces of a list behind a long one follow it out of the skeleton, whatever stands between them
 * and however their tags are written: there the skeleton is longer than the message. */
static void list_pieces(test_state *test)
{
    ort_strbuf list = {0}, expected = {0};
    for (int i = 0; i < 40; i++) {
        ort_wire_put_int(&list, INTS, 3);
        ort_strbuf_add(&expected, "3,");
    }
    for (int i = 0; i < 100; i++) {
        ort_wire_put_int(&list, 3, i);
        ort_wire_put_int(&list, INTS, i);
        ort_strbuf_addf(&expected, "%d,", i);
    }
    ort_strbuf_add_bytes(&list, "\xc0\0\x07", 3); /* 7, its tag in two bytes */
    ort_strbuf_add(&expected, "7,");
    ort_wire_put_bytes(&list, INTS, "", 0); /* nothing, packed */
    put_float(&list, 2);                    /* another list, short */
    check_lists(test, &list, 102, ort_strbuf_text(&expected));
    ort_strbuf_release(&expected);
}

static void broken_lists(test_state *test)
{
    ort_strbuf list = {0}, model = {0};
    ort_pack_stamp first = {0}, second = {0};
    ort_error err = {0};
    ort_wire wire;
    for (int i = 0; i < 100; i++)
        ort_wire_put_int(&list, INTS, i);
    make_attribute(&model, &list);
    for (size_t n = 3; n < model.length; n++) {
        uint8_t *part = malloc(n);
        memcpy(part, model.data, n);
        CHECK(ort_wire_split(ORT_WIRE_MODEL, part, n, false, &wire, &err) == ORT_ERROR_MODEL);
        free(part);
    }
    /* A pack file belongs to the numbers of a list, too. */
    CHECK(!ort_pack_stamp_of((uint8_t *)model.data, model.length, &first, NULL));
    model.data[model.length / 2] ^= 1;
    CHECK(!ort_pack_stamp_of((uint8_t *)model.data, model.length, &second, NULL));
    CHECK(first.skeleton != second.skeleton);
    ort_strbuf_release(&model);
    for (int i = 0; i < 100; i++)
        ort_wire_put_int(&list, INTS, i);
    ort_strbuf_add_bytes(&list, "\x40\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13);
    make_attribute(&model, &list);
    CHECK(ort_wire_split(ORT_WIRE_MODEL, (uint8_t *)model.data, model.length, false, &wire, &err) ==
          ORT_ERROR_MODEL);
    CHECK(strstr(err.message, "field ints"));
    ort_strbuf_release(&model);
    ort_wire_put_int(&list, 19, 0); /* what only a skeleton has */
    make_attribute(&model, &list);
    CHECK(ort_wire_split(ORT_WIRE_MODEL, (uint8_t *)model.data, model.length, false, &wire, &err) ==
          ORT_ERROR_MODEL);
    CHECK(strstr(err.message, "reserved"));
    ort_strbuf_release(&model);
}

/* ---- tensors */

static ort_status decode(ort_strbuf *bytes, ort_value **value, ort_error *err)
{
    char name[256];
    return ort_tensor_pb_read(bytes->data, bytes->length, false, value, name, err);
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

/* A scalar has no coordinates: its indices have no data, in whichever field. */
static void sparse_scalar(test_state *test)
{
    ort_strbuf values = {0}, indices = {0}, sparse = {0};
    ort_value *value = NULL;
    const float seven = 7;
    char name[256];
    ort_wire_put_int(&values, 1, 1);
    ort_wire_put_int(&values, 2, ORT_DTYPE_FLOAT);
    ort_wire_put_bytes(&values, 9, &seven, sizeof seven);
    ort_wire_put_int(&indices, 1, 1);
    ort_wire_put_int(&indices, 1, 0);
    ort_wire_put_int(&indices, 2, ORT_DTYPE_INT64);
    ort_wire_put_bytes(&indices, 9, "", 0);
    ort_wire_put_bytes(&sparse, 1, values.data, values.length);
    ort_wire_put_bytes(&sparse, 2, indices.data, indices.length);
    CHECK(ort_tensor_pb_read(sparse.data, sparse.length, false, &value, name, NULL) == ORT_OK);
    CHECK(ort_value_get_double(value, 0) == 7);
    ort_value_free(value);
    ort_strbuf_release(&values);
    ort_strbuf_release(&indices);
    ort_strbuf_release(&sparse);
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
        CHECK(ort_tensor_pb_read(bytes.data, bytes.length, false, &back, name, NULL) == ORT_OK);
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
    RUN(test, number_lists);
    RUN(test, string_lists);
    RUN(test, list_pieces);
    RUN(test, broken_lists);
    RUN(test, typed_data);
    RUN(test, wrong_tensors);
    RUN(test, sparse_scalar);
    RUN(test, files_round);
    RUN(test, sniffing);
    return test->failures != 0;
}
