/* test_file_memory.c - what of mapped files stays in memory: weights leave it when they are packed,
 * and what a range reaches of several files leaves each of them.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "io/blob.h"
#include "net.h"
#include "test.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

enum { MB = 1 << 20 };

/* Bytes of files that this process has in memory. */
static long mapped_bytes(void)
{
    long size, resident, shared = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (!statm || fscanf(statm, "%ld %ld %ld", &size, &resident, &shared) != 3)
        shared = -1;
    if (statm)
        fclose(statm);
    return shared * sysconf(_SC_PAGESIZE);
}

static int sum_pages(const unsigned char *from, size_t bytes)
{
    int sum = 0;
    for (size_t i = 0; i < bytes; i += 4096)
        sum += *(const volatile unsigned char *)(from + i);
    return sum;
}

/* A file of so many bytes, each the number of its megabyte. */
static int make_file(size_t bytes)
{
    char path[] = "/tmp/ort-memory-XXXXXX";
    static unsigned char block[MB];
    int fd = mkstemp(path);
    unlink(path);
    for (size_t i = 0; i < bytes / MB; i++) {
        memset(block, (int)i, MB);
        if (write(fd, block, MB) != MB)
            return -1;
    }
    return fd;
}

/* Two maps that touch; the range begins in the one and ends in the other. */
static void across_files(test_state *test)
{
    enum { BYTES = 16 * MB };
    int fd = make_file(BYTES);
    unsigned char *room = mmap(NULL, 2 * BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(fd >= 0 && room != MAP_FAILED);
    ort_blob *blobs[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        void *map = mmap(room + i * BYTES, BYTES, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0);
        CHECK(map != MAP_FAILED && !ort_blob_new(ORT_BLOB_MAPPED, map, BYTES, &blobs[i], NULL));
    }
    ort_blobs_forget(blobs, 2, room, 2 * BYTES);
    long none = mapped_bytes();
    int sum = sum_pages(room, 2 * BYTES);
    CHECK(mapped_bytes() - none >= 2 * BYTES - MB);
    ort_blobs_forget(blobs, 2, room + BYTES / 2, BYTES);
    long half = mapped_bytes() - none;
    CHECK(half <= BYTES + MB && half >= BYTES / 2);
    ort_blobs_forget(blobs, 2, room + BYTES - 1, 0);
    CHECK(mapped_bytes() - none >= half - MB);
    CHECK(sum_pages(room, 2 * BYTES) == sum);
    ort_blob_release(blobs[0]);
    ort_blob_release(blobs[1]);
    close(fd);
}

enum { PRODUCTS = 40, FEW = 3, WIDTH = 512 }; /* a megabyte each */

/* Weights that nodes read in the order in which they lie in the file, or from its end. */
static bool save_products(const char *path, int count, bool backwards)
{
    static float weight[WIDTH * WIDTH];
    net n;
    bool ok = net_init(&n, NULL);
    char from[32] = "x", inputs[64], w[16], to[16];
    if (ok)
        net_input(&n, "x", ORT_DTYPE_FLOAT, 2, DIMS(1, WIDTH));
    for (int i = 0; ok && i < count; i++) {
        for (int k = 0; k < WIDTH * WIDTH; k++)
            weight[k] = (float)((k * 37 + i) % 101) / 5000;
        snprintf(w, sizeof w, "w%d", i);
        net_constant(&n, w, ORT_DTYPE_FLOAT, 2, DIMS(WIDTH, WIDTH), weight);
    }
    for (int i = 0; ok && i < count; i++) {
        snprintf(to, sizeof to, "y%d", i);
        snprintf(inputs, sizeof inputs, "%s w%d", from, backwards ? count - 1 - i : i);
        net_node(&n, "MatMul", inputs, to);
        snprintf(from, sizeof from, "%s", to);
    }
    if (ok)
        net_output(&n, from);
    ok = ok && ort_model_save(n.model, path, NULL, NULL) == ORT_OK;
    net_free(&n);
    return ok;
}

static void packed(test_state *test, int count, bool backwards, long most)
{
    char folder[] = "/tmp/ort-memory-XXXXXX", path[64];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    CHECK(save_products(path, count, backwards));
    net n;
    ort_session *session = NULL;
    CHECK(net_init(&n, NULL));
    long before = mapped_bytes();
    CHECK(ort_session_load(n.env, path, NULL, &session, NULL) == ORT_OK);
    CHECK(before > 0 && mapped_bytes() - before < most);
    ort_session_free(session);
    net_free(&n);
    unlink(path);
    rmdir(folder);
}

static void packed_weights(test_state *test) { packed(test, PRODUCTS, false, 12 * MB); }

static void packed_from_the_end(test_state *test) { packed(test, PRODUCTS, true, 12 * MB); }

/* The last ones go, too. */
static void packed_few(test_state *test) { packed(test, FEW, false, 2 * MB); }

int main(void)
{
    test_state test = {.failures = 0};
    RUN(&test, across_files);
    RUN(&test, packed_weights);
    RUN(&test, packed_from_the_end);
    RUN(&test, packed_few);
    return test.failures != 0;
}
