/* test_formats.c - tensor files: round trips through every format, streams, cut files, refusals. */
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/format.h"
#include "ort.h"
#include "test.h"

/* A tensor of every bit pattern in turn (bool: 0 and 1). */
static ort_value *make(ort_dtype dtype, int rank, const int64_t *dims)
{
    ort_value *value = NULL;
    if (ort_value_new_tensor(dtype, rank, dims, &value, NULL) != ORT_OK)
        return NULL;
    unsigned char *data = ort_value_data(value);
    size_t bytes = data ? ort_value_bytes(value) : 0;
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)(dtype == ORT_DTYPE_BOOL ? i % 2 : i * 37 % 101);
    int64_t count = ort_value_count(value);
    for (int64_t i = 0; dtype == ORT_DTYPE_STRING && i < count; i++) {
        static const char *const words[] = {"plain", "", "\xc3\xbcml\xc3\xa4ut", "a,\"b\"\n"};
        if (ort_value_set_string(value, i, words[i % 4], strlen(words[i % 4]), NULL) != ORT_OK)
            return NULL;
    }
    return value;
}

/* One named value through a temporary file and back. */
static ort_status through(ort_value *value, const char *name, ort_format format,
                          ort_read_options *options, ort_tensors **back, ort_error *err)
{
    FILE *file = tmpfile();
    ort_tensors *out = NULL;
    ort_write_options write = {.size = sizeof write, .format = format};
    *back = NULL;
    ort_status status = file ? ort_tensors_new(&out, err) : ORT_ERROR_IO;
    if (status == ORT_OK)
        status = ort_tensors_add(out, name, value, err);
    if (status == ORT_OK)
        status = ort_tensors_write(out, file, &write, err);
    ort_tensors_free(out);
    if (status == ORT_OK) {
        rewind(file);
        ort_read_options read = {.size = sizeof read, .format = format};
        status = ort_tensors_read(file, options ? options : &read, back, err);
    }
    if (file)
        fclose(file);
    return status;
}

static bool survives(ort_value *value, const char *name, ort_format format,
                     ort_read_options *options)
{
    ort_tensors *back;
    if (through(value, name, format, options, &back, NULL) != ORT_OK)
        return false;
    bool same = ort_tensors_count(back) == 1 &&
                ort_value_digest(ort_tensors_value(back, 0)) == ort_value_digest(value);
    ort_tensors_free(back);
    return same;
}

static const struct {
    int rank;
    int64_t dims[4];
} shapes[] = {{0, {0}}, {1, {7}}, {3, {2, 3, 4}}, {2, {2, 0}}};

static void check_all_types(test_state *test, ort_format format, const bool *lacks)
{
    for (int type = 1; type <= ORT_DTYPE_FLOAT6E3M2; type++)
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
            ort_value *value = make((ort_dtype)type, shapes[s].rank, shapes[s].dims);
            CHECK(value != NULL);
            /* Unused bits of the last byte are zero by contract. */
            int bits = ort_dtype_bits((ort_dtype)type);
            size_t used = (size_t)ort_value_count(value) * (size_t)bits % 8;
            if (bits < 8 && used)
                ((unsigned char *)ort_value_data(value))[ort_value_bytes(value) - 1] &=
                    (unsigned char)((1u << used) - 1);
            bool same = survives(value, "name", format, NULL);
            ort_value_free(value);
            snprintf(test->why, sizeof test->why, "%s, shape %zu: %s",
                     ort_dtype_name((ort_dtype)type), s, same ? "carried" : "not carried");
            test->failed = same == lacks[type];
            if (test->failed)
                return;
        }
}

static void npz_carries_every_type(test_state *test)
{
    bool lacks[ORT_DTYPE_FLOAT6E3M2 + 1] = {false};
    check_all_types(test, ORT_FORMAT_NPZ, lacks);
}

static void npy_carries_numpy_types(test_state *test)
{
    bool lacks[ORT_DTYPE_FLOAT6E3M2 + 1] = {false};
    for (int i = ORT_DTYPE_BFLOAT16; i <= ORT_DTYPE_FLOAT6E3M2; i++)
        lacks[i] = true;
    check_all_types(test, ORT_FORMAT_NPY, lacks);
}

static void safetensors_carries_its_types(test_state *test)
{
    bool lacks[ORT_DTYPE_FLOAT6E3M2 + 1] = {false};
    lacks[ORT_DTYPE_STRING] = lacks[ORT_DTYPE_COMPLEX128] = true;
    lacks[ORT_DTYPE_UINT4] = lacks[ORT_DTYPE_INT4] = true;
    lacks[ORT_DTYPE_UINT2] = lacks[ORT_DTYPE_INT2] = true;
    check_all_types(test, ORT_FORMAT_SAFETENSORS, lacks);
}

static void json_carries_every_type(test_state *test)
{
    for (int type = 1; type <= ORT_DTYPE_FLOAT6E3M2; type++) {
        int64_t dims[2] = {3, 2};
        ort_value *value = NULL;
        if (type == ORT_DTYPE_STRING || type == ORT_DTYPE_COMPLEX64 ||
            type == ORT_DTYPE_COMPLEX128) {
            value = make((ort_dtype)type, 2, dims);
        } else {
            CHECK(ort_value_new_tensor((ort_dtype)type, 2, dims, &value, NULL) == ORT_OK);
            for (int i = 0; i < 6; i++)
                ort_value_set_double(value, i, type == ORT_DTYPE_FLOAT8E8M0 ? 1 << i : i % 2);
        }
        bool same = survives(value, "x", ORT_FORMAT_JSON, NULL);
        ort_value_free(value);
        snprintf(test->why, sizeof test->why, "%s is not carried", ort_dtype_name((ort_dtype)type));
        test->failed = !same;
        if (!same)
            return;
    }
}

static void raw_and_csv(test_state *test)
{
    int64_t dims[2] = {3, 4};
    ort_value *value = make(ORT_DTYPE_INT16, 2, dims);
    ort_read_options raw = {.size = sizeof raw, .format = ORT_FORMAT_RAW,
                            .dtype = ORT_DTYPE_INT16, .rank = 2,
                            .dims = (int64_t[]){-1, 4}};
    ort_read_options csv = {.size = sizeof csv, .format = ORT_FORMAT_CSV, .dtype = ORT_DTYPE_INT16};
    CHECK(survives(value, "", ORT_FORMAT_RAW, &raw));
    CHECK(survives(value, "", ORT_FORMAT_CSV, &csv));
    raw.dims = (int64_t[]){5, 5};
    CHECK(!survives(value, "", ORT_FORMAT_RAW, &raw));
    ort_value_free(value);
}

static void sequences_and_maps(test_state *test)
{
    int64_t two = 2, one = 1;
    ort_value *keys = make(ORT_DTYPE_STRING, 1, &two), *values = make(ORT_DTYPE_FLOAT, 1, &two);
    ort_value *item = make(ORT_DTYPE_INT64, 1, &one), *map, *sequence;
    CHECK(ort_value_new_map(keys, values, &map, NULL) == ORT_OK);
    CHECK(ort_value_new_sequence(&sequence, NULL) == ORT_OK);
    CHECK(ort_value_append(sequence, map, NULL) == ORT_OK);
    CHECK(ort_value_append(sequence, item, NULL) == ORT_OK);
    CHECK(survives(sequence, "s", ORT_FORMAT_JSON, NULL));
    CHECK(survives(map, "", ORT_FORMAT_JSON, NULL) && survives(map, "data", ORT_FORMAT_JSON, NULL));
    CHECK(survives(values, "map", ORT_FORMAT_JSON, NULL));
    CHECK(survives(sequence, "s", ORT_FORMAT_NPZ, NULL));
    CHECK(!survives(sequence, "s", ORT_FORMAT_NPY, NULL));
    ort_value *all[] = {keys, values, item, map, sequence};
    for (int i = 0; i < 5; i++)
        ort_value_free(all[i]);
}

/* Maps as people and other tools write them. */
static void plain_maps(test_state *test)
{
    static const struct {
        const char *text;
        ort_value_kind kind;
        ort_dtype keys;
    } cases[] = {
        {"[{\"0\": 0.25, \"1\": 0.75}]", ORT_VALUE_SEQUENCE, ORT_DTYPE_INT64},
        {"[{\"a\": 1, \"b\": 2}, {\"a\": 3, \"b\": 4}]", ORT_VALUE_SEQUENCE, ORT_DTYPE_STRING},
        {"{\"0\": 2.5, \"1\": 5}", ORT_VALUE_MAP, ORT_DTYPE_INT64},
        {"{\"map\": {\"01\": 2.5}}", ORT_VALUE_MAP, ORT_DTYPE_STRING},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[128];
        ort_tensors *back;
        snprintf(text, sizeof text, "%s", cases[i].text);
        FILE *file = fmemopen(text, strlen(text), "rb");
        CHECK(ort_tensors_read(file, NULL, &back, NULL) == ORT_OK);
        fclose(file);
        const ort_value *value = ort_tensors_value(back, 0);
        CHECK(ort_tensors_count(back) == 1 && ort_value_get_kind(value) == cases[i].kind);
        const ort_value *map = cases[i].kind == ORT_VALUE_MAP ? value : ort_value_item(value, 0);
        CHECK(ort_value_get_kind(map) == ORT_VALUE_MAP);
        CHECK(ort_value_dtype(ort_value_item(map, 0)) == cases[i].keys);
        CHECK(ort_value_dtype(ort_value_item(map, 1)) == ORT_DTYPE_FLOAT);
        ort_tensors_free(back);
    }
}

static void strings_of_any_bytes(test_state *test)
{
    int64_t one = 1;
    ort_value *value = make(ORT_DTYPE_STRING, 1, &one);
    CHECK(ort_value_set_string(value, 0, "\xff\xfe", 2, NULL) == ORT_OK);
    CHECK(survives(value, "x", ORT_FORMAT_NPZ, NULL));
    CHECK(!survives(value, "x", ORT_FORMAT_JSON, NULL));
    CHECK(!survives(value, "x", ORT_FORMAT_NPY, NULL));
    CHECK(ort_value_set_string(value, 0, "ends\0", 5, NULL) == ORT_OK);
    CHECK(survives(value, "x", ORT_FORMAT_NPZ, NULL) && survives(value, "", ORT_FORMAT_JSON, NULL));
    ort_value_free(value);
}

static void images_round_trip(test_state *test)
{
    static const char *const lossless[] = {"png", "bmp", "ppm"};
    int64_t dims[3] = {5, 7, 3};
    ort_value *value = make(ORT_DTYPE_UINT8, 3, dims);
    ort_tensors *one, *back;
    ort_error err = {0};
    CHECK(ort_tensors_new(&one, NULL) == ORT_OK);
    CHECK(ort_tensors_add(one, "", value, NULL) == ORT_OK);
    for (int i = 0; i < 3; i++) {
        FILE *file = tmpfile();
        ort_write_options write = {.size = sizeof write, .format = ORT_FORMAT_IMAGE,
                                   .image = lossless[i]};
        CHECK(ort_tensors_write(one, file, &write, &err) == ORT_OK);
        rewind(file);
        CHECK(ort_tensors_read(file, NULL, &back, &err) == ORT_OK);
        fclose(file);
        CHECK(ort_value_digest(ort_tensors_value(back, 0)) == ort_value_digest(value));
        ort_tensors_free(back);
    }
    ort_tensors_free(one);
    ort_value_free(value);
}

static void wav_round_trip(test_state *test)
{
    int64_t dims[2] = {9, 2};
    ort_value *value;
    CHECK(ort_value_new_tensor(ORT_DTYPE_FLOAT, 2, dims, &value, NULL) == ORT_OK);
    for (int i = 0; i < 18; i++)
        ort_value_set_double(value, i, i / 18.0 - 0.5);
    ort_read_options read = {.size = sizeof read, .format = ORT_FORMAT_WAV};
    ort_tensors *back = NULL;
    CHECK(survives(value, "", ORT_FORMAT_WAV, &read));
    CHECK(through(value, "", ORT_FORMAT_WAV, &read, &back, NULL) == ORT_OK);
    CHECK(ort_tensors_sample_rate(back) == 16000);
    ort_tensors_free(back);
    ort_value_free(value);
}

/* Records of a stream are read one by one, without touching the next one. */
static void check_stream(test_state *test, ort_format format)
{
    FILE *file = tmpfile();
    ort_tensors *out, *back;
    ort_error err = {0};
    ort_write_options write = {.size = sizeof write, .format = format};
    for (int64_t n = 1; n <= 4; n++) {
        ort_value *value = make(ORT_DTYPE_FLOAT, 1, &n);
        CHECK(ort_tensors_new(&out, NULL) == ORT_OK && ort_tensors_add(out, "x", value, NULL) == 0);
        CHECK(ort_tensors_write(out, file, &write, &err) == ORT_OK);
        ort_value_free(value);
        ort_tensors_free(out);
    }
    rewind(file);
    for (int64_t n = 1; n <= 4; n++) {
        CHECK(ort_tensors_read(file, NULL, &back, &err) == ORT_OK && back);
        CHECK(ort_value_count(ort_tensors_value(back, 0)) == n);
        ort_tensors_free(back);
    }
    CHECK(ort_tensors_read(file, NULL, &back, &err) == ORT_OK && back == NULL);
    fclose(file);
}

static void streams_of_records(test_state *test)
{
    check_stream(test, ORT_FORMAT_NPY);
    if (!test->failed)
        check_stream(test, ORT_FORMAT_NPZ);
}

/* Every prefix of a file is refused as data that ends too early, naming the byte. */
static void check_truncation(test_state *test, ort_format format, const char *image)
{
    int64_t dims[3] = {6, 5, 3};
    ort_value *value = make(ORT_DTYPE_UINT8, 3, dims);
    ort_tensors *out, *back;
    FILE *file = tmpfile();
    ort_write_options write = {.size = sizeof write, .format = format, .image = image};
    CHECK(ort_tensors_new(&out, NULL) == ORT_OK && ort_tensors_add(out, "x", value, NULL) == 0);
    CHECK(ort_tensors_write(out, file, &write, NULL) == ORT_OK);
    long size = ftell(file);
    char bytes[4096];
    CHECK(size > 0 && size < (long)sizeof bytes);
    rewind(file);
    CHECK(fread(bytes, 1, (size_t)size, file) == (size_t)size);
    fclose(file);
    size -= format == ORT_FORMAT_JSON; /* its last byte is only the line's end */
    for (long cut = 1; cut < size; cut++) {
        ort_error err = {0};
        ort_read_options read = {.size = sizeof read, .format = format};
        FILE *part = fmemopen(bytes, (size_t)cut, "rb");
        CHECK(part && ort_tensors_read(part, &read, &back, &err) == ORT_ERROR_DATA && !back);
        fclose(part);
        if (format == ORT_FORMAT_NPY || format == ORT_FORMAT_NPZ)
            CHECK(strstr(err.message, "truncated at byte") != NULL);
    }
    ort_tensors_free(out);
    ort_value_free(value);
}

static void truncated_files(test_state *test)
{
    static const ort_format formats[] = {ORT_FORMAT_NPY, ORT_FORMAT_NPZ, ORT_FORMAT_SAFETENSORS,
                                         ORT_FORMAT_JSON};
    for (int i = 0; i < 4 && !test->failed; i++)
        check_truncation(test, formats[i], NULL);
    if (!test->failed)
        check_truncation(test, ORT_FORMAT_IMAGE, "bmp");
    if (!test->failed)
        check_truncation(test, ORT_FORMAT_IMAGE, "ppm");
}

/* Of a file, what follows is refused; of a stream, it is the next record, and refused as that. */
static void text_behind_a_record(test_state *test)
{
    char text[] = "[1, 2] x";
    ort_error err = {0};
    ort_tensors *back = NULL, *next = NULL;
    FILE *file = fmemopen(text, strlen(text), "rb");
    CHECK(ort_tensors_read(file, NULL, &back, &err) == ORT_OK && ort_tensors_count(back) == 1);
    CHECK(ort_tensors_read(file, NULL, &next, &err) == ORT_ERROR_DATA && next == NULL);
    fclose(file);
    ort_tensors_free(back);
}

static void refused_content(test_state *test)
{
    static const struct {
        const char *text, *says;
        ort_status status;
    } cases[] = {
        {"version https://git-lfs.github.com/spec/v1\n", "git-lfs", ORT_ERROR_DATA},
        {"<!DOCTYPE html><html>", "HTML", ORT_ERROR_DATA},
        {"[[1, 2], [3]]", "ragged", ORT_ERROR_DATA},
        {"{\"dtype\": \"int8\", \"data\": [300]}", "no int8", ORT_ERROR_DATA},
        {"{\"dtype\": \"float\", \"shape\": [3], \"data\": [1]}", "1 elements", ORT_ERROR_DATA},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ort_error err = {0};
        ort_tensors *back;
        char text[128];
        snprintf(text, sizeof text, "%s", cases[i].text);
        FILE *file = fmemopen(text, strlen(text), "rb");
        CHECK(ort_tensors_read(file, NULL, &back, &err) == cases[i].status);
        fclose(file);
        snprintf(test->why, sizeof test->why, "case %zu: %.300s", i, err.message);
        test->failed = strstr(err.message, cases[i].says) == NULL;
        if (test->failed)
            return;
    }
}

static void pickles_are_refused(test_state *test)
{
    static const char dict[] = "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n";
    char bytes[128] = "\x93NUMPY\x01\x00";
    ort_tensors *back;
    ort_error err = {0};
    bytes[8] = (char)(sizeof dict - 1);
    memcpy(bytes + 10, dict, sizeof dict);
    FILE *file = fmemopen(bytes, sizeof bytes, "rb");
    CHECK(ort_tensors_read(file, NULL, &back, &err) == ORT_ERROR_DATA);
    fclose(file);
    CHECK(strstr(err.message, "never loaded") != NULL);
}

static void full_disk_and_whole_files(test_state *test)
{
    int64_t n = 5000;
    ort_value *value = make(ORT_DTYPE_FLOAT, 1, &n), *text = make(ORT_DTYPE_BFLOAT16, 1, &n);
    ort_tensors *good, *bad;
    ort_error err = {0};
    char path[64];
    ort_write_options npy = {.size = sizeof npy, .format = ORT_FORMAT_NPY};
    CHECK(ort_tensors_new(&good, NULL) == ORT_OK && ort_tensors_add(good, "", value, NULL) == 0);
    CHECK(ort_tensors_new(&bad, NULL) == ORT_OK && ort_tensors_add(bad, "", text, NULL) == 0);
    CHECK(ort_tensors_save(good, "/dev/full", &npy, &err) == ORT_ERROR_IO);
    CHECK(strstr(err.message, "No space left") != NULL);
    snprintf(path, sizeof path, "/tmp/ort_test_formats_%ld.npy", (long)getpid());
    CHECK(ort_tensors_save(bad, path, NULL, &err) == ORT_ERROR_DATA);
    CHECK(access(path, F_OK) != 0);
    CHECK(ort_tensors_save(good, path, NULL, &err) == ORT_OK && access(path, F_OK) == 0);
    CHECK(ort_tensors_save(bad, path, NULL, &err) == ORT_ERROR_DATA);
    ort_tensors *back;
    CHECK(ort_tensors_load(path, NULL, &back, &err) == ORT_OK);
    CHECK(ort_value_digest(ort_tensors_value(back, 0)) == ort_value_digest(value));
    unlink(path);
    ort_tensors *all[] = {good, bad, back};
    for (int i = 0; i < 3; i++)
        ort_tensors_free(all[i]);
    ort_value_free(value);
    ort_value_free(text);
}

static void names_and_extensions(test_state *test)
{
    CHECK(ort_format_of_path("a/b.c/x.NPY") == ORT_FORMAT_NPY);
    CHECK(ort_format_of_path("a.png/x") == ORT_FORMAT_AUTO);
    CHECK(ort_format_of_path("photo.JPG") == ORT_FORMAT_IMAGE);
    CHECK(ort_format_parse("npz") == ORT_FORMAT_NPZ && ort_format_parse("png") == ORT_FORMAT_IMAGE);
    CHECK(ort_format_parse("nonsense") == ORT_FORMAT_COUNT);
    CHECK_TEXT(ort_format_name(ORT_FORMAT_SAFETENSORS), "safetensors");
}

/* Each format of the table is found by its name and its words, and those of ort.h are all there. */
static void table_of_formats(test_state *test)
{
    int index = 0, named = 0;
    for (ort_format f; (f = ort_format_at(index)) != ORT_FORMAT_COUNT; index++) {
        char word[20] = "";
        CHECK(f != ORT_FORMAT_AUTO && ort_format_parse(ort_format_name(f)) == f);
        sscanf(ort_format_words(f), "%19s", word);
        CHECK(ort_format_parse(word) == f);
        named += f < ORT_FORMAT_COUNT;
    }
    CHECK(named == ORT_FORMAT_COUNT - 1);
    char text[100];
    CHECK_TEXT(ort_format_list(ORT_FORMAT_MANY, text, sizeof text),
               ".npz, .safetensors and .json");
    CHECK_TEXT(ort_format_list(ORT_FORMAT_ROWS, text, sizeof text), ".csv");
    CHECK(ort_format_traits(ORT_FORMAT_IMAGE, "a.jpg") & ORT_FORMAT_TAKES_QUALITY);
    CHECK(!(ort_format_traits(ORT_FORMAT_IMAGE, "png") & ORT_FORMAT_TAKES_QUALITY));
    CHECK(ort_format_traits(ORT_FORMAT_JSON, "ndjson") & ORT_FORMAT_LINES);
}

/* A word says what a file's name would: the separator, the picture. */
static void written_as(test_state *test)
{
    ort_tensors *tensors = NULL;
    ort_value *value = NULL;
    ort_error err = {0};
    char *bytes = NULL;
    size_t size = 0;
    CHECK(!ort_tensors_new(&tensors, &err));
    CHECK(!ort_value_new_tensor(ORT_DTYPE_UINT8, 2, (const int64_t[]){1, 2}, &value, &err));
    CHECK(!ort_tensors_add(tensors, "", value, &err));
    static const struct {
        const char *as, *start;
    } cases[] = {{"tsv", "0\t0\n"}, {"csv", "0,0\n"}, {"bmp", "BM"}, {"JPG", "\xff\xd8"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ort_write_options options = {.size = sizeof options, .as = cases[i].as};
        FILE *stream = open_memstream(&bytes, &size);
        CHECK(ort_tensors_write(tensors, stream, &options, &err) == ORT_OK);
        fclose(stream);
        CHECK(!strncmp(bytes, cases[i].start, strlen(cases[i].start)));
        free(bytes);
    }
    ort_write_options tif = {.size = sizeof tif, .as = "tif"};
    CHECK(ort_tensors_write(tensors, stdout, &tif, &err) == ORT_ERROR_USAGE);
    CHECK(strstr(err.message, "tif images are read, not written; png, jpeg") != NULL);
    ort_value_free(value);
    ort_tensors_free(tensors);
}

/* What is read as a column is no value any more, and its name is free for one. */
static void names_after_columns(test_state *test)
{
    FILE *file = tmpfile();
    ort_tensors *out = NULL, *back = NULL;
    ort_value *value = NULL;
    ort_error err = {0};
    ort_write_options write = {.size = sizeof write, .format = ORT_FORMAT_NPZ};
    ort_read_options read = {.size = sizeof read, .format = ORT_FORMAT_NPZ};
    CHECK(file && !ort_tensors_new(&out, &err));
    CHECK(!ort_value_new_tensor(ORT_DTYPE_INT64, 1, (const int64_t[]){2}, &value, &err));
    for (int i = 0; i < 20; i++) {
        char name[8];
        snprintf(name, sizeof name, "v%d", i);
        CHECK(!ort_tensors_add(out, name, value, &err));
    }
    CHECK(!ort_tensors_add_column(out, "id", value, &err));
    CHECK(!ort_tensors_write(out, file, &write, &err));
    rewind(file);
    CHECK(!ort_tensors_read(file, &read, &back, &err));
    CHECK(ort_tensors_count(back) == 20 && ort_tensors_column_count(back) == 1);
    CHECK(!ort_tensors_add(back, "id", value, &err) && ort_tensors_count(back) == 21);
    CHECK(!ort_tensors_add(back, "v19", value, &err) && ort_tensors_count(back) == 21);
    CHECK(ort_tensors_value(back, 20) == value && ort_tensors_value(back, 19) == value);
    CHECK_TEXT(ort_tensors_name(back, 20), "id");
    ort_value_free(ort_tensors_take_at(back, 5)); /* those behind it have other places */
    CHECK(!ort_tensors_add(back, "v19", value, &err) && ort_tensors_count(back) == 20);
    CHECK(ort_tensors_value(back, 18) == value);
    CHECK(!ort_tensors_add(back, "v5", value, &err) && ort_tensors_count(back) == 21);
    ort_tensors_free(back);
    ort_tensors_free(out);
    ort_value_free(value);
    fclose(file);
}

int main(void)
{
    test_state test = {.failures = 0};
    RUN(&test, npz_carries_every_type);
    RUN(&test, npy_carries_numpy_types);
    RUN(&test, safetensors_carries_its_types);
    RUN(&test, json_carries_every_type);
    RUN(&test, raw_and_csv);
    RUN(&test, sequences_and_maps);
    RUN(&test, plain_maps);
    RUN(&test, strings_of_any_bytes);
    RUN(&test, images_round_trip);
    RUN(&test, wav_round_trip);
    RUN(&test, streams_of_records);
    RUN(&test, truncated_files);
    RUN(&test, text_behind_a_record);
    RUN(&test, refused_content);
    RUN(&test, pickles_are_refused);
    RUN(&test, full_disk_and_whole_files);
    RUN(&test, names_and_extensions);
    RUN(&test, table_of_formats);
    RUN(&test, written_as);
    RUN(&test, names_after_columns);
    return test.failures != 0;
}
