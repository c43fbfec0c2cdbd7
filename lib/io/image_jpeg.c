/* image_jpeg.c - JPEG through libjpeg(-turbo), opened at first use: the accurate integer transform
 * and smooth chroma upsampling, as PIL decodes. CMYK files of Adobe programs are inverted and are
 * turned to RGB. The library leaves by longjmp; what it may change lives in the job. */
#include <assert.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "io/image.h"

#define JPEG_FUNCTIONS(X)                                                                          \
    X(jpeg_std_error) X(jpeg_CreateDecompress) X(jpeg_destroy_decompress) X(jpeg_mem_src)          \
    X(jpeg_save_markers) X(jpeg_read_header) X(jpeg_start_decompress) X(jpeg_read_scanlines)       \
    X(jpeg_finish_decompress) X(jpeg_CreateCompress) X(jpeg_destroy_compress) X(jpeg_stdio_dest)   \
    X(jpeg_set_defaults) X(jpeg_set_quality) X(jpeg_start_compress) X(jpeg_write_scanlines)        \
    X(jpeg_finish_compress)

/* The structures must be those of the header: its number is part of the library's name. */
ORT_IMAGE_LIBRARY(jpeg_library, JPEG_FUNCTIONS, "JPEG",
                  {JPEG_LIB_VERSION >= 80 ? "libjpeg.so.8" : "libjpeg.so.62"},
                  "libjpeg62-turbo, libjpeg8", "libjpeg-turbo", "libjpeg-turbo")

typedef struct jpeg_job {
    struct jpeg_error_mgr errors; /* first: the library hands back a pointer to it */
    jmp_buf escape;
    char message[JMSG_LENGTH_MAX];
    bool truncated;
    jpeg_library lib;
    struct jpeg_decompress_struct in;
    struct jpeg_compress_struct out;
    unsigned char *row; /* of a CMYK picture */
    ort_image *image;
    ort_error *err;
    ort_status status;
} jpeg_job;

enum { JPEG_DEFAULT_QUALITY = 75, APP1_LENGTH = 0xffff };

static void on_error(j_common_ptr info)
{
    jpeg_job *job = (jpeg_job *)info->err;
    info->err->format_message(info, job->message);
    longjmp(job->escape, 1);
}

/* Messages below errors; the one that counts is the premature end, which the library would paint
 * over in gray. */
static void on_message(j_common_ptr info, int level)
{
    jpeg_job *job = (jpeg_job *)info->err;
    if (level >= 0)
        return;
    info->err->num_warnings++;
    info->err->format_message(info, job->message);
    if (strstr(job->message, "remature end"))
        job->truncated = true;
}

static void on_output(j_common_ptr info)
{
}

static ort_status open_job(jpeg_job **made, ort_error *err)
{
    jpeg_job *job = *made = calloc(1, sizeof *job);
    if (!job)
        return ort_error_memory(err, sizeof *job);
    ort_status status = open_library(&job->lib, err);
    if (status != ORT_OK) {
        free(job);
        return status;
    }
    job->lib.jpeg_std_error(&job->errors);
    job->errors.error_exit = on_error;
    job->errors.emit_message = on_message;
    job->errors.output_message = on_output;
    job->in.err = job->out.err = &job->errors;
    job->err = err;
    return ORT_OK;
}

static void find_orientation(const jpeg_job *job, ort_image *image)
{
    for (jpeg_saved_marker_ptr m = job->in.marker_list; m; m = m->next) {
        int orientation = m->marker == JPEG_APP0 + 1
                              ? ort_image_orientation(m->data, m->data_length) : 0;
        if (orientation) {
            image->orientation = orientation;
            return;
        }
    }
}

/* Inverted CMYK, as Adobe writes it: what is stored is the share of light that passes. */
static void cmyk_to_rgb(const unsigned char *from, unsigned char *to, size_t pixels, bool inverted)
{
    for (size_t i = 0; i < pixels; i++, from += 4, to += 3) {
        unsigned black = inverted ? from[3] : 255u - from[3];
        for (int c = 0; c < 3; c++) {
            unsigned light = inverted ? from[c] : 255u - from[c];
            to[c] = (unsigned char)((light * black + 127) / 255);
        }
    }
}

static bool decode(jpeg_job *job, const unsigned char *bytes, size_t count)
{
    const jpeg_library *lib = &job->lib;
    struct jpeg_decompress_struct *in = &job->in;
    if (setjmp(job->escape))
        return false;
    lib->jpeg_CreateDecompress(in, JPEG_LIB_VERSION, sizeof *in);
    lib->jpeg_mem_src(in, bytes, (unsigned long)count);
    lib->jpeg_save_markers(in, JPEG_APP0 + 1, APP1_LENGTH);
    lib->jpeg_read_header(in, TRUE);
    find_orientation(job, job->image);
    bool cmyk = in->jpeg_color_space == JCS_CMYK || in->jpeg_color_space == JCS_YCCK;
    in->out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
    job->status = ort_image_alloc(job->image, in->image_width, in->image_height, job->err);
    if (job->status != ORT_OK)
        return true;
    lib->jpeg_start_decompress(in);
    assert((int64_t)in->output_width == job->image->width); /* not scaled: rows fit the pixels */
    assert((int64_t)in->output_height == job->image->height);
    if (cmyk && !(job->row = malloc((size_t)in->output_width * 4))) {
        job->status = ort_error_memory(job->err, (size_t)in->output_width * 4);
        return true;
    }
    while (in->output_scanline < in->output_height) {
        unsigned char *target = job->image->pixels + (size_t)in->output_scanline *
                                                         in->output_width * 3;
        JSAMPROW row = cmyk ? job->row : target;
        lib->jpeg_read_scanlines(in, &row, 1);
        if (cmyk)
            cmyk_to_rgb(job->row, target, in->output_width, in->saw_Adobe_marker);
    }
    lib->jpeg_finish_decompress(in);
    return true;
}

ort_status ort_jpeg_decode(const unsigned char *bytes, size_t count, ort_image *image,
                           ort_error *err)
{
    jpeg_job *job;
    ORT_TRY(open_job(&job, err));
    job->image = image;
    if (!decode(job, bytes, count))
        job->status = ort_error_set(err, ORT_ERROR_DATA, "the JPEG data is damaged: %s",
                                    job->message);
    else if (job->status == ORT_OK && job->truncated)
        job->status = ort_image_truncated(count, "JPEG", err);
    job->lib.jpeg_destroy_decompress(&job->in);
    ort_status status = job->status;
    free(job->row);
    free(job);
    return status;
}

static bool encode(jpeg_job *job, const ort_image *image, int quality, FILE *stream)
{
    const jpeg_library *lib = &job->lib;
    struct jpeg_compress_struct *out = &job->out;
    if (setjmp(job->escape))
        return false;
    lib->jpeg_CreateCompress(out, JPEG_LIB_VERSION, sizeof *out);
    lib->jpeg_stdio_dest(out, stream);
    out->image_width = (JDIMENSION)image->width;
    out->image_height = (JDIMENSION)image->height;
    out->input_components = image->channels;
    out->in_color_space = image->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    lib->jpeg_set_defaults(out);
    lib->jpeg_set_quality(out, quality > 0 ? quality : JPEG_DEFAULT_QUALITY, TRUE);
    lib->jpeg_start_compress(out, TRUE);
    while (out->next_scanline < out->image_height) {
        JSAMPROW row = image->pixels + (size_t)out->next_scanline * out->image_width *
                                           (size_t)image->channels;
        lib->jpeg_write_scanlines(out, &row, 1);
    }
    lib->jpeg_finish_compress(out);
    return true;
}

ort_status ort_jpeg_encode(const ort_image *image, int quality, FILE *stream, ort_error *err)
{
    if (image->channels == 4)
        return ort_error_set(err, ORT_ERROR_DATA, "JPEG has no transparency; write PNG or WebP, or "
                             "slice off the fourth channel");
    jpeg_job *job;
    ORT_TRY(open_job(&job, err));
    ort_status status = ORT_OK;
    /* A full disk is the stream's error and reported as such by whoever owns it. */
    if (!encode(job, image, quality, stream) && !ferror(stream))
        status = ort_error_set(err, ORT_ERROR_RUN, "can't encode JPEG: %s", job->message);
    job->lib.jpeg_destroy_compress(&job->out);
    free(job);
    return status;
}
