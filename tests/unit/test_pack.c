/* test_pack.c - pack files: what they hold, that a damaged or foreign one is never believed, and
 * that whatever its bytes say nothing crashes. The model has a convolution, a product and a loop.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/hashmap.h"
#include "exec/packing.h"
#include "io/pack.h"
#include "net.h"
#include "test.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

typedef struct bench { /* a model and its pack in a folder of their own */
    ort_env *env;
    char folder[64], model[96], pack[112];
    uint8_t *bytes; /* of the pack */
    size_t count;
    ort_value *x, *y; /* an input and its result without the pack */
    int ignored;      /* lines of the log that say so */
    char line[512];
} bench;

static void listen(void *arg, ort_log_level level, const char *message)
{
    bench *b = arg;
    if (level == ORT_LOG_WARNING && strstr(message, "ignored")) {
        b->ignored++;
        snprintf(b->line, sizeof b->line, "%s", message);
    }
}

static const float *numbers(size_t count)
{
    static float list[4096];
    for (size_t i = 0; i < count; i++)
        list[i] = (float)((double)((i * 37 + 11) % 101) / 50.0 - 1.0);
    return list;
}

/* [n, 16, 4, 4] -> a convolution of bytes, of which a weight doesn't fit in int8, and its mean, in
 * a layout that has no channels_last -> [n, 16] */
static void build_bytes(net *n, const char *from, const char *to)
{
    const float scale = 0.1f;
    uint8_t codes[256], zero = 60;
    char inputs[64];
    for (int i = 0; i < 256; i++)
        codes[i] = (uint8_t)(i == 77 ? 255 : i % 119);
    net_constant(n, "scale", ORT_DTYPE_FLOAT, 0, NULL, &scale);
    net_constant(n, "zero", ORT_DTYPE_UINT8, 0, NULL, &zero);
    net_constant(n, "codes", ORT_DTYPE_UINT8, 4, DIMS(16, 16, 1, 1), codes);
    snprintf(inputs, sizeof inputs, "%s scale zero", from);
    net_node(n, "QuantizeLinear", inputs, "quantized");
    net_node(n, "QLinearConv", "quantized scale zero codes scale zero scale zero", "convolved");
    net_int(n, net_node_of(n, "com.microsoft", "QLinearGlobalAveragePool",
                           "convolved scale zero scale zero", "mean"), "channels_last", 0);
    net_node(n, "DequantizeLinear", "mean scale zero", "number");
    net_node(n, "Flatten", "number", to);
}

/* x [n, 16, 8, 8] -> Conv -> Flatten -> MatMul -> Loop (three times: MatMul, Relu) -> y [n, 32] */
static void build(net *n)
{
    const int64_t three = 3;
    const bool yes = true;
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(-1, 16, 4, 4));
    net_constant(n, "w", ORT_DTYPE_FLOAT, 4, DIMS(16, 16, 1, 1), numbers(256));
    net_constant(n, "b", ORT_DTYPE_FLOAT, 1, DIMS(16), numbers(16));
    net_constant(n, "m", ORT_DTYPE_FLOAT, 2, DIMS(256, 16), numbers(4096));
    net_constant(n, "inner", ORT_DTYPE_FLOAT, 2, DIMS(16, 16), numbers(256));
    net_constant(n, "trips", ORT_DTYPE_INT64, 0, NULL, &three);
    net_constant(n, "go", ORT_DTYPE_BOOL, 0, NULL, &yes);
    net_node(n, "Conv", "x w b", "c");
    net_node(n, "Relu", "c", "r");
    net_node(n, "Flatten", "r", "f");
    net_node(n, "MatMul", "f m", "p");
    build_bytes(n, "r", "q");
    net_node(n, "Add", "p q", "s");
    ort_node *loop = net_node(n, "Loop", "trips go s", "y");
    net_body(n, loop, "body");
    net_input(n, "i", ORT_DTYPE_INT64, 0, NULL);
    net_input(n, "cond", ORT_DTYPE_BOOL, 0, NULL);
    net_input(n, "carried", ORT_DTYPE_FLOAT, 2, DIMS(-1, 16));
    net_node(n, "Identity", "cond", "again");
    net_node(n, "MatMul", "carried inner", "product");
    net_node(n, "Relu", "product", "next");
    net_output(n, "again");
    net_output(n, "next");
    net_end(n);
    net_output(n, "y");
}

static bool write_file(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    bool ok = file && fwrite(bytes, 1, count, file) == count;
    return file && fclose(file) == 0 && ok;
}

static bool read_pack(bench *b)
{
    FILE *file = fopen(b->pack, "rb");
    if (!file)
        return false;
    fseek(file, 0, SEEK_END);
    b->count = (size_t)ftell(file);
    rewind(file);
    b->bytes = malloc(b->count + 1);
    bool ok = b->bytes && fread(b->bytes, 1, b->count, file) == b->count;
    fclose(file);
    return ok;
}

static ort_status run_file(bench *b, bool no_pack, ort_value **y, ort_error *err)
{
    ort_session *session = NULL;
    ort_session_options options;
    /* damage may ask for any number of iterations */
    ort_run_options how = {.size = sizeof how, .timeout_s = 0.25};
    ort_session_options_init(&options);
    options.no_pack = no_pack;
    *y = NULL;
    ORT_TRY(ort_session_load(b->env, b->model, &options, &session, err));
    ort_status status = run_whole(session, &b->x, y, &how, err);
    ort_session_free(session);
    return status;
}

static void bench_close(bench *b)
{
    unlink(b->model);
    unlink(b->pack);
    rmdir(b->folder);
    ort_value_free(b->x);
    ort_value_free(b->y);
    ort_env_free(b->env);
    free(b->bytes);
}

static bool bench_open(bench *b)
{
    net n;
    ort_env_options options;
    ort_env_options_init(&options);
    *b = (bench){.folder = "/tmp/ort-pack-XXXXXX"};
    options.max_memory_bytes = (size_t)64 << 20;
    options.log = listen;
    options.log_arg = b;
    options.log_level = ORT_LOG_WARNING;
    if (!mkdtemp(b->folder) || !net_init(&n, NULL))
        return false;
    snprintf(b->model, sizeof b->model, "%s/m.onnx", b->folder);
    snprintf(b->pack, sizeof b->pack, "%s.pack", b->model);
    build(&n);
    bool ok = ort_model_save_packed(n.env, n.model, b->model, NULL, NULL) == ORT_OK &&
              ort_env_new(&options, &b->env, NULL) == ORT_OK;
    net_free(&n);
    b->x = net_floats(4, DIMS(2, 16, 4, 4), -1, 1);
    return ok && read_pack(b) && run_file(b, true, &b->y, NULL) == ORT_OK;
}

static bool same(const ort_value *a, const ort_value *b)
{
    return a && b && ort_value_digest(a) == ort_value_digest(b);
}

/* ---- cases */

static void holds_blocks(test_state *test)
{
    bench b;
    ort_pack pack;
    ort_value *y;
    CHECK(bench_open(&b));
    CHECK(ort_pack_open(b.pack, &pack, NULL) == ORT_OK);
    CHECK(pack.entry_count >= 3 && ort_pack_verify(&pack, NULL, NULL) == ORT_OK);
    for (size_t i = 0; i < pack.entry_count; i++)
        CHECK(pack.entries[i].bytes < ORT_PACK_PAGE || pack.entries[i].offset % ORT_PACK_PAGE == 0);
    ort_pack_release(&pack);
    CHECK(run_file(&b, false, &y, NULL) == ORT_OK);
    CHECK(same(y, b.y) && b.ignored == 0);
    ort_value_free(y);
    bench_close(&b);
}

static void same_bytes_again(test_state *test)
{
    bench a, b;
    CHECK(bench_open(&a) && bench_open(&b));
    CHECK(a.count == b.count && !memcmp(a.bytes, b.bytes, a.count));
    bench_close(&a);
    bench_close(&b);
}

static void foreign_ones(test_state *test)
{
    bench b;
    ort_value *y;
    ort_env_options options;
    CHECK(bench_open(&b));
    ort_env_options_init(&options);
    options.isa = strcmp(ort_env_isa(b.env), "scalar") ? "scalar" : NULL;
    options.log = listen;
    options.log_arg = &b;
    options.log_level = ORT_LOG_WARNING;
    ort_env *own = b.env;
    if (options.isa && ort_env_new(&options, &b.env, NULL) == ORT_OK) {
        CHECK(run_file(&b, false, &y, NULL) == ORT_OK && y);
        CHECK(b.ignored == 1 && strstr(b.line, "this is scalar"));
        ort_value_free(y);
        ort_env_free(b.env);
    }
    b.env = own;
    /* The pack of one model beside another. */
    net n;
    CHECK(net_init(&n, NULL));
    net_input(&n, "x", ORT_DTYPE_FLOAT, 4, DIMS(-1, 16, 4, 4));
    net_node(&n, "Relu", "x", "y");
    net_output(&n, "y");
    CHECK(ort_model_save(n.model, b.model, NULL, NULL) == ORT_OK);
    net_free(&n);
    b.ignored = 0;
    CHECK(run_file(&b, false, &y, NULL) == ORT_OK && y);
    CHECK(b.ignored == 1 && strstr(b.line, "made for other weights"));
    ort_value_free(y);
    bench_close(&b);
}

/* Where a flip must be noticed by opening: everywhere but in blocks and the gaps around them. */
static bool is_payload(const ort_pack_header *h, size_t at)
{
    return at >= ORT_PACK_PAGE && at < h->graph_offset;
}

static bool put_byte(FILE *file, size_t at, uint8_t byte)
{
    return fseek(file, (long)at, SEEK_SET) == 0 && fputc(byte, file) != EOF && fflush(file) == 0;
}

static void every_byte_flipped(test_state *test)
{
    bench b;
    ort_pack pack;
    ort_pack_header header;
    CHECK(bench_open(&b));
    memcpy(&header, b.bytes, sizeof header);
    FILE *file = fopen(b.pack, "r+b");
    CHECK(file);
    for (size_t at = 0; at < b.count; at++) {
        /* Blocks are long: a byte of each cache line. */
        if (is_payload(&header, at) && at % 64 != at / 64 % 64)
            continue;
        CHECK(put_byte(file, at, (uint8_t)(b.bytes[at] ^ 1u << at % 8)));
        ort_status status = ort_pack_open(b.pack, &pack, NULL);
        size_t table_end = header.table_offset + header.table_count * sizeof(ort_pack_entry);
        bool between = at >= header.graph_offset + header.graph_bytes && at < header.table_offset;
        if (!is_payload(&header, at) && !between && at < table_end)
            CHECK(status != ORT_OK);
        else
            CHECK(status == ORT_OK && ort_pack_verify(&pack, NULL, NULL) == ORT_ERROR_MODEL);
        ort_pack_release(&pack);
        CHECK(put_byte(file, at, b.bytes[at]));
    }
    fclose(file);
    bench_close(&b);
}

static void every_length(test_state *test)
{
    bench b;
    ort_pack pack;
    ort_value *y;
    CHECK(bench_open(&b));
    for (size_t count = 0; count < b.count; count += count < 64 ? 1 : 61) {
        CHECK(write_file(b.pack, b.bytes, count));
        CHECK(ort_pack_open(b.pack, &pack, NULL) != ORT_OK && !pack.blob);
    }
    b.ignored = 0;
    CHECK(run_file(&b, false, &y, NULL) == ORT_OK);
    CHECK(same(y, b.y) && b.ignored == 1);
    ort_value_free(y);
    bench_close(&b);
}

/* Damage with the digests made right again, as an attacker would: graph, table and header fields.
 * Whatever a session then computes, it is refused or runs. */
static void refresh(uint8_t *bytes, size_t count)
{
    ort_pack_page page;
    memcpy(&page, bytes, sizeof page);
    ort_pack_header *h = &page.header;
    size_t table = h->table_count * sizeof(ort_pack_entry);
    if (h->graph_offset <= count && h->graph_bytes <= count - h->graph_offset)
        h->graph_digest = ort_hash_bytes(bytes + h->graph_offset, h->graph_bytes, 0);
    if (h->table_count < count && h->table_offset <= count && table <= count - h->table_offset)
        h->table_digest = ort_hash_bytes(bytes + h->table_offset, table, 0);
    h->digest = ort_pack_page_digest(&page);
    memcpy(bytes, &page, sizeof page);
}

static void damage_with_digests(test_state *test)
{
    static const uint8_t masks[] = {1, 0x80, 0xff};
    bench b;
    ort_pack_header header;
    CHECK(bench_open(&b));
    memcpy(&header, b.bytes, sizeof header);
    uint8_t *bytes = malloc(b.count);
    CHECK(bytes);
    for (size_t at = 0, k = 0; at < b.count; at += 3, k++) {
        ort_value *y = NULL;
        ort_error err = {0};
        if (is_payload(&header, at) || (at >= sizeof header && at < ORT_PACK_PAGE))
            continue;
        memcpy(bytes, b.bytes, b.count);
        bytes[at] ^= masks[k % sizeof masks];
        refresh(bytes, b.count);
        CHECK(write_file(b.pack, bytes, b.count));
        ort_status status = run_file(&b, false, &y, &err);
        CHECK(status == ORT_OK ? y != NULL : err.message[0] != '\0');
        ort_value_free(y);
    }
    free(bytes);
    bench_close(&b);
}

/* An operator of several stages names its blocks in memory that it soon uses again. */
static void kinds_are_copied(test_state *test)
{
    static const float packed[2] = {1, 2};
    ort_packing packing;
    char kind[ORT_PACK_KIND] = "filter0";
    ort_packing_init(&packing, NULL);
    CHECK(ort_packing_made(&packing, kind, packed, 4));
    memcpy(kind, "filter1", 8);
    CHECK(ort_packing_made(&packing, kind, packed + 1, 4));
    memset(kind, 'x', sizeof kind - 1);
    CHECK(packing.made.count == 2);
    CHECK_TEXT(packing.made.data[0].kind, "filter0");
    CHECK_TEXT(packing.made.data[1].kind, "filter1");
    ort_packing_release(&packing);
}

static void options_that_differ(test_state *test)
{
    bench b;
    ort_error err = {0};
    ort_session *session = NULL;
    const char *const extra[] = {"f", NULL};
    ort_session_options options;
    CHECK(bench_open(&b));
    ort_session_options_init(&options);
    options.extra_outputs = extra;
    CHECK(ort_session_load(b.env, b.model, &options, &session, &err) == ORT_OK);
    CHECK(ort_session_output_count(session) == 2 && b.ignored == 0);
    ort_session_free(session);
    bench_close(&b);
}

int main(void)
{
    test_state test = {0};
    RUN(&test, holds_blocks);
    RUN(&test, same_bytes_again);
    RUN(&test, foreign_ones);
    RUN(&test, every_byte_flipped);
    RUN(&test, every_length);
    RUN(&test, damage_with_digests);
    RUN(&test, options_that_differ);
    RUN(&test, kinds_are_copied);
    return test.failures != 0;
}
