/* input.c - counting reads over a pull function. */
#include "io/input.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"

static size_t pull_stream(void *arg, void *bytes, size_t count)
{
    return fread(bytes, 1, count, arg);
}

void ort_input_init(ort_input *in, ort_input_fn *pull, void *arg)
{
    *in = (ort_input){.pull = pull, .arg = arg};
}

void ort_input_init_stream(ort_input *in, FILE *stream)
{
    ort_input_init(in, pull_stream, stream);
}

size_t ort_input_peek(ort_input *in, size_t count)
{
    if (count > sizeof in->peeked)
        count = sizeof in->peeked;
    assert(in->peeked_count <= sizeof in->peeked);
    if (in->peeked_count < count)
        in->peeked_count += in->pull(in->arg, in->peeked + in->peeked_count,
                                     count - in->peeked_count);
    return in->peeked_count;
}

size_t ort_input_read(ort_input *in, void *bytes, size_t count)
{
    size_t done = in->peeked_count < count ? in->peeked_count : count;
    if (done) {
        memcpy(bytes, in->peeked, done);
        memmove(in->peeked, in->peeked + done, in->peeked_count - done);
        in->peeked_count -= done;
    }
    if (done < count)
        done += in->pull(in->arg, (char *)bytes + done, count - done);
    assert(done <= count); /* a pull function gives no more than was asked for */
    in->offset += done;
    return done;
}

void *ort_input_map(const ort_input *in, size_t count, size_t *before)
{
    struct stat st;
    if (in->pull != pull_stream || in->peeked_count > 0)
        return NULL;
    const int fd = fileno(in->arg);
    const off_t at = ftello(in->arg);
    if (fd < 0 || at < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < at ||
        (uint64_t)(st.st_size - at) < count)
        return NULL;
    *before = (size_t)(at % sysconf(_SC_PAGESIZE));
    void *map = mmap(NULL, *before + count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd,
                     at - (off_t)*before);
    return map == MAP_FAILED ? NULL : map;
}

bool ort_input_skip_mapped(ort_input *in, size_t count)
{
    if (fseeko(in->arg, (off_t)count, SEEK_CUR) != 0)
        return false;
    in->offset += count;
    return true;
}

uint64_t ort_input_left(const ort_input *in)
{
    struct stat info;
    const uint64_t most = (uint64_t)1 << 47;
    FILE *stream = in->pull == pull_stream ? in->arg : NULL;
    if (!stream || fstat(fileno(stream), &info) != 0 || !S_ISREG(info.st_mode))
        return most;
    off_t at = ftello(stream);
    return at < 0 ? most : (uint64_t)(at < info.st_size ? info.st_size - at : 0) + in->peeked_count;
}

ort_status ort_input_need(ort_input *in, void *bytes, size_t count, const char *what,
                          ort_error *err)
{
    size_t done = ort_input_read(in, bytes, count);
    if (done == count)
        return ORT_OK;
    return ort_error_set(err, ORT_ERROR_DATA,
                         "truncated at byte %llu: %s needs %zu more bytes; the file or stream was "
                         "cut off, make it again", (unsigned long long)in->offset, what,
                         count - done);
}

ort_status ort_input_all(ort_input *in, unsigned char **bytes, size_t *count, ort_error *err)
{
    size_t capacity = 1 << 16, used = 0;
    unsigned char *buffer = malloc(capacity);
    while (buffer) {
        size_t got = ort_input_read(in, buffer + used, capacity - used);
        used += got;
        assert(used <= capacity);
        if (used < capacity) {
            *bytes = buffer;
            *count = used;
            return ORT_OK;
        }
        unsigned char *larger = ort_mul_size(capacity, 2, &capacity) ? realloc(buffer, capacity)
                                                                     : NULL;
        if (!larger)
            free(buffer);
        buffer = larger;
    }
    return ort_error_memory(err, capacity);
}
