/* test_table_memory.c - a table of which an allocation fails: it is read right or there was no
 * memory. Its header is never taken for data, nor the table for no table.
 */
#include "ort.h"
#include "test.h"

/* The linker sends the library's allocations here (Makefile). */
static long count, fail_at;
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t items, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t items, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

static bool fails(void) { return ++count == fail_at; }

void *__wrap_malloc(size_t bytes) { return fails() ? NULL : __real_malloc(bytes); }

void *__wrap_calloc(size_t items, size_t bytes)
{
    return fails() ? NULL : __real_calloc(items, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return fails() ? NULL : __real_realloc(memory, bytes);
}

/* Columns of `b` before that of the name `a"`, which is read through a copy. */
static ort_status read_table(ort_format format, ort_tensors **tensors, ort_error *err)
{
    static char text[] = "b,\"a\"\"\"\n1,2\n3,4\n";
    static const ort_purpose purposes[] = {{"a\"", NULL}, {"b", NULL}};
    const ort_read_options options = {.size = sizeof options, .format = format,
                                      .purposes = purposes, .purpose_count = 2};
    FILE *stream = fmemopen(text, sizeof text - 1, "rb");
    *tensors = NULL;
    if (stream == NULL)
        return ORT_ERROR_IO;
    count = 0;
    ort_status status = ort_tensors_read(stream, &options, tensors, err);
    fclose(stream);
    return status;
}

static bool is_right(const ort_tensors *tensors)
{
    bool right = ort_tensors_count(tensors) == 2;
    for (size_t i = 0; i < 2 && right; i++) {
        const bool is_a = !strcmp(ort_tensors_name(tensors, i), "a\"");
        const ort_value *v = ort_tensors_value(tensors, i);
        right = ort_value_count(v) == 2 && ort_value_get_double(v, 0) == (is_a ? 2 : 1) &&
                ort_value_get_double(v, 1) == (is_a ? 4 : 3);
    }
    return right;
}

static void each_allocation(test_state *test, ort_format format)
{
    ort_error err = {0};
    ort_tensors *tensors;
    fail_at = 0;
    CHECK(read_table(format, &tensors, &err) == ORT_OK && is_right(tensors));
    ort_tensors_free(tensors);
    for (long n = 1, all = count; n <= all; n++) {
        fail_at = n;
        ort_status status = read_table(format, &tensors, &err);
        fail_at = 0;
        if (status == ORT_OK ? !is_right(tensors) : status != ORT_ERROR_MEMORY)
            printf("allocation %ld of %ld: %s\n", n, all,
                   status != ORT_OK ? err.message : "another table");
        CHECK(status == ORT_OK ? is_right(tensors) : status == ORT_ERROR_MEMORY);
        ort_tensors_free(tensors);
    }
}

static void of_a_known_format(test_state *test) { each_allocation(test, ORT_FORMAT_CSV); }

static void of_no_known_format(test_state *test) { each_allocation(test, ORT_FORMAT_AUTO); }

int main(void)
{
    test_state test = {.failures = 0};
    RUN(&test, of_a_known_format);
    RUN(&test, of_no_known_format);
    return test.failures != 0;
}
