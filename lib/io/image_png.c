/* image_png.c - PNG through libpng, opened at first use.
 *
 * libpng leaves by longjmp: what a jump may change lives in the `png_job` of the caller, never in
 * locals. */
#include <assert.h>
#include <png.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "io/image.h"

/* Everything of the library that is called, by its own declarations. */
#define PNG_FUNCTIONS(X)                                                                           \
    X(png_create_read_struct) X(png_create_write_struct) X(png_create_info_struct)                 \
    X(png_destroy_read_struct) X(png_destroy_write_struct) X(png_set_read_fn) X(png_read_info)     \
    X(png_get_IHDR) X(png_set_expand) X(png_set_strip_16) X(png_set_strip_alpha)                   \
    X(png_set_gray_to_rgb) X(png_set_interlace_handling) X(png_read_update_info)                   \
    X(png_get_rowbytes) X(png_read_image) X(png_read_end) X(png_get_eXIf_1) X(png_set_write_fn)    \
    X(png_set_IHDR) X(png_write_info) X(png_write_row) X(png_write_end)

ORT_IMAGE_LIBRARY(png_library, PNG_FUNCTIONS, "PNG", {"libpng16.so.16", "libpng16.so"},
                  "libpng16-16", "libpng", "libpng")

typedef struct png_job {
    png_library lib;
    png_structp png;
    png_infop info;
    jmp_buf escape;
    char message[200];
    const unsigned char *bytes; /* reading */
    size_t count, at;
    bool truncated;
    png_bytep *rows;
    FILE *stream;               /* writing */
} png_job;

/* libpng hands its callbacks a png_struct whose getters are in the library itself: the job that is
 * under way on this thread is simpler to find here. */
static _Thread_local png_job *current;

static void on_error(png_structp png, png_const_charp message)
{
    snprintf(current->message, sizeof current->message, "%s", message ? message : "");
    longjmp(current->escape, 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
}

static void pull(png_structp png, png_bytep out, size_t length)
{
    assert(current->at <= current->count);
    if (length > current->count - current->at) {
        current->truncated = true;
        on_error(png, "data ends");
    }
    memcpy(out, current->bytes + current->at, length);
    current->at += length;
}

static void push(png_structp png, png_bytep data, size_t length)
{
    fwrite(data, 1, length, current->stream); /* the stream remembers its errors */
}

static void flush(png_structp png)
{
}

/* Up to the pixels: the transformations to 8-bit RGB. Size in `image`. */
static bool read_header(png_job *job, ort_image *image)
{
    const png_library *lib = &job->lib;
    png_uint_32 width, height;
    int depth, type;
    if (setjmp(job->escape))
        return false;
    lib->png_set_read_fn(job->png, job, pull);
    lib->png_read_info(job->png, job->info);
    lib->png_get_IHDR(job->png, job->info, &width, &height, &depth, &type, NULL, NULL, NULL);
    lib->png_set_expand(job->png);
    lib->png_set_strip_16(job->png);
    lib->png_set_strip_alpha(job->png);
    lib->png_set_gray_to_rgb(job->png);
    lib->png_set_interlace_handling(job->png);
    lib->png_read_update_info(job->png, job->info);
    image->width = (int64_t)width;
    image->height = (int64_t)height;
    if (lib->png_get_rowbytes(job->png, job->info) != (size_t)width * 3)
        on_error(job->png, "unexpected row size");
    return true;
}

static bool read_pixels(png_job *job, ort_image *image)
{
    const png_library *lib = &job->lib;
    png_uint_32 length = 0;
    png_bytep exif = NULL;
    if (setjmp(job->escape))
        return false;
    lib->png_read_image(job->png, job->rows);
    lib->png_read_end(job->png, job->info);
    if (lib->png_get_eXIf_1(job->png, job->info, &length, &exif) && exif)
        image->orientation = ort_image_orientation(exif, length);
    return true;
}

static ort_status damaged(const png_job *job, ort_error *err)
{
    if (job->truncated)
        return ort_image_truncated(job->count, "PNG", err);
    return ort_error_set(err, ORT_ERROR_DATA, "the PNG data is damaged near byte %zu: %s", job->at,
                         job->message);
}

static ort_status decode(png_job *job, ort_image *image, ort_error *err)
{
    if (!read_header(job, image))
        return damaged(job, err);
    ORT_TRY(ort_image_alloc(image, (uint64_t)image->width, (uint64_t)image->height, err));
    job->rows = malloc((size_t)image->height * sizeof *job->rows);
    if (!job->rows)
        return ort_error_memory(err, (size_t)image->height * sizeof *job->rows);
    for (int64_t y = 0; y < image->height; y++)
        job->rows[y] = image->pixels + y * image->width * 3;
    return read_pixels(job, image) ? ORT_OK : damaged(job, err);
}

ort_status ort_png_decode(const unsigned char *bytes, size_t count, ort_image *image,
                          ort_error *err)
{
    png_job job = {.bytes = bytes, .count = count};
    ORT_TRY(open_library(&job.lib, err));
    current = &job;
    ort_status status = ORT_ERROR_MEMORY;
    job.png = job.lib.png_create_read_struct(PNG_LIBPNG_VER_STRING, &job, on_error, on_warning);
    job.info = job.png ? job.lib.png_create_info_struct(job.png) : NULL;
    if (job.info)
        status = decode(&job, image, err);
    else
        ort_error_memory(err, sizeof job);
    if (job.png)
        job.lib.png_destroy_read_struct(&job.png, &job.info, NULL);
    free(job.rows);
    return status;
}

static bool write_image(png_job *job, const ort_image *image)
{
    const png_library *lib = &job->lib;
    int type = image->channels == 1   ? PNG_COLOR_TYPE_GRAY
               : image->channels == 4 ? PNG_COLOR_TYPE_RGB_ALPHA
                                      : PNG_COLOR_TYPE_RGB;
    if (setjmp(job->escape))
        return false;
    lib->png_set_write_fn(job->png, job, push, flush);
    lib->png_set_IHDR(job->png, job->info, (png_uint_32)image->width, (png_uint_32)image->height, 8,
                      type, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                      PNG_FILTER_TYPE_DEFAULT);
    lib->png_write_info(job->png, job->info);
    for (int64_t y = 0; y < image->height; y++)
        lib->png_write_row(job->png, image->pixels + y * image->width * image->channels);
    lib->png_write_end(job->png, job->info);
    return true;
}

ort_status ort_png_encode(const ort_image *image, int quality, FILE *stream, ort_error *err)
{
    png_job job = {.stream = stream};
    ORT_TRY(open_library(&job.lib, err));
    current = &job;
    ort_status status = ORT_OK;
    job.png = job.lib.png_create_write_struct(PNG_LIBPNG_VER_STRING, &job, on_error, on_warning);
    job.info = job.png ? job.lib.png_create_info_struct(job.png) : NULL;
    if (!job.info)
        status = ort_error_memory(err, sizeof job);
    else if (!write_image(&job, image))
        status = ort_error_set(err, ORT_ERROR_RUN, "can't encode PNG: %s", job.message);
    if (job.png)
        job.lib.png_destroy_write_struct(&job.png, &job.info);
    return status;
}
