/* image_jp2.c - JPEG 2000 (boxed, or a bare codestream) through libopenjp2, opened at first use.
 * Grey becomes three equal channels, further channels are dropped, sYCC is turned to RGB,
 * subsampled channels are repeated, and samples are brought to 8 bits. */
#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <openjpeg-2.5/openjpeg.h>

#include "io/image.h"

#define JP2_FUNCTIONS(X)                                                                           \
    X(opj_stream_default_create) X(opj_stream_destroy) X(opj_stream_set_read_function)             \
    X(opj_stream_set_skip_function) X(opj_stream_set_seek_function)                                \
    X(opj_stream_set_user_data) X(opj_stream_set_user_data_length) X(opj_create_decompress)        \
    X(opj_destroy_codec) X(opj_set_default_decoder_parameters) X(opj_setup_decoder)                \
    X(opj_set_error_handler) X(opj_read_header) X(opj_decode) X(opj_end_decompress)                \
    X(opj_image_destroy)

ORT_IMAGE_LIBRARY(jp2_library, JP2_FUNCTIONS, "JPEG 2000", {"libopenjp2.so.7"}, "libopenjp2-7",
                  "openjpeg2", "openjpeg")

typedef struct jp2_source {
    const unsigned char *bytes;
    size_t count, at;
} jp2_source;

/* ---- the bytes, as the library asks for them */

static OPJ_SIZE_T read_bytes(void *buffer, OPJ_SIZE_T count, void *arg)
{
    jp2_source *s = arg;
    assert(s->at <= s->count);
    size_t left = s->count - s->at;
    if (left == 0)
        return (OPJ_SIZE_T)-1;
    count = count < left ? count : left;
    memcpy(buffer, s->bytes + s->at, count);
    s->at += count;
    return count;
}

static OPJ_BOOL seek_bytes(OPJ_OFF_T to, void *arg)
{
    jp2_source *s = arg;
    if (to < 0 || (uint64_t)to > s->count)
        return OPJ_FALSE;
    s->at = (size_t)to;
    return OPJ_TRUE;
}

static OPJ_OFF_T skip_bytes(OPJ_OFF_T count, void *arg)
{
    jp2_source *s = arg;
    assert(s->at <= s->count);
    size_t left = s->count - s->at;
    if (count < 0 || left == 0)
        return -1;
    count = (uint64_t)count < left ? count : (OPJ_OFF_T)left;
    s->at += (size_t)count;
    return count;
}

/* ---- pixels */

/* Sample of component c at pixel (x, y) of the picture, in 0..255. */
static int sample(const opj_image_t *image, unsigned c, uint64_t x, uint64_t y)
{
    assert(c < image->numcomps && image->comps[c].data); /* is_readable */
    const opj_image_comp_t *comp = &image->comps[c];
    int64_t column = (int64_t)((image->x0 + x) / comp->dx) - comp->x0;
    int64_t row = (int64_t)((image->y0 + y) / comp->dy) - comp->y0;
    column = column < 0 ? 0 : column < comp->w ? column : comp->w - 1;
    row = row < 0 ? 0 : row < comp->h ? row : comp->h - 1;
    int64_t value = comp->data[row * comp->w + column];
    int64_t most = ((int64_t)1 << comp->prec) - 1;
    value += comp->sgnd ? (int64_t)1 << (comp->prec - 1) : 0;
    value = value < 0 ? 0 : value < most ? value : most;
    return (int)(comp->prec >= 8 ? value >> (comp->prec - 8) : value * 255 / most);
}

static uint8_t clamp(double value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value + 0.5);
}

/* ITU-R 601 over the full range. */
static void to_rgb(uint8_t *pixel)
{
    double y = pixel[0], cb = pixel[1] - 128.0, cr = pixel[2] - 128.0;
    pixel[0] = clamp(y + 1.402 * cr);
    pixel[1] = clamp(y - 0.344136 * cb - 0.714136 * cr);
    pixel[2] = clamp(y + 1.772 * cb);
}

static void copy_pixels(const opj_image_t *from, ort_image *image)
{
    bool grey = from->numcomps < 3, ycc = !grey && from->color_space == OPJ_CLRSPC_SYCC;
    uint8_t *out = image->pixels;
    for (int64_t y = 0; y < image->height; y++)
        for (int64_t x = 0; x < image->width; x++, out += 3) {
            for (unsigned c = 0; c < 3; c++)
                out[c] = (uint8_t)sample(from, grey ? 0 : c, (uint64_t)x, (uint64_t)y);
            if (ycc)
                to_rgb(out);
        }
}

static bool is_readable(const opj_image_t *image)
{
    for (unsigned c = 0; c < image->numcomps && c < 3; c++) {
        const opj_image_comp_t *comp = &image->comps[c];
        if (!comp->data || comp->w < 1 || comp->h < 1 || comp->dx < 1 || comp->dy < 1 ||
            comp->prec < 1 || comp->prec > 31)
            return false;
    }
    return image->numcomps > 0;
}

/* ---- decoding */

/* The library's first message, without its line end. */
static void on_error(const char *message, void *arg)
{
    char *text = arg;
    if (!*text)
        snprintf(text, 200, "%.*s", (int)strcspn(message, "\n"), message);
}

static bool begin(const jp2_library *lib, opj_codec_t *codec, opj_stream_t *stream,
                  jp2_source *source, char *message)
{
    opj_dparameters_t parameters;
    lib->opj_set_default_decoder_parameters(&parameters);
    lib->opj_set_error_handler(codec, on_error, message);
    lib->opj_stream_set_read_function(stream, read_bytes);
    lib->opj_stream_set_skip_function(stream, skip_bytes);
    lib->opj_stream_set_seek_function(stream, seek_bytes);
    lib->opj_stream_set_user_data(stream, source, NULL);
    lib->opj_stream_set_user_data_length(stream, source->count);
    return lib->opj_setup_decoder(codec, &parameters);
}

static ort_status damaged(const char *message, ort_error *err)
{
    return ort_error_set(err, ORT_ERROR_DATA, "the JPEG 2000 data is damaged: %s",
                         *message ? message : "no reason is given");
}

ort_status ort_jp2_decode(const unsigned char *bytes, size_t count, ort_image *image,
                          ort_error *err)
{
    jp2_library lib;
    jp2_source source = {bytes, count, 0};
    char message[200] = "";
    opj_image_t *picture = NULL;
    ORT_TRY(open_library(&lib, err));
    opj_codec_t *codec = lib.opj_create_decompress(*bytes == 0xff ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
    opj_stream_t *stream = lib.opj_stream_default_create(OPJ_TRUE);
    ort_status status = ORT_OK;
    if (!codec || !stream)
        status = ort_error_memory(err, sizeof(opj_dparameters_t));
    else if (!begin(&lib, codec, stream, &source, message) ||
             !lib.opj_read_header(stream, codec, &picture))
        status = damaged(message, err);
    else if (picture->x1 <= picture->x0 || picture->y1 <= picture->y0)
        status = damaged("the picture is empty", err);
    else /* before the library reserves its own memory for as many */
        status = ort_image_alloc(image, picture->x1 - picture->x0, picture->y1 - picture->y0, err);
    if (status == ORT_OK &&
        (!lib.opj_decode(codec, stream, picture) || !lib.opj_end_decompress(codec, stream)))
        status = damaged(message, err);
    if (status == ORT_OK && !is_readable(picture))
        status = damaged("its channels are of no use", err);
    if (status == ORT_OK)
        copy_pixels(picture, image);
    if (picture)
        lib.opj_image_destroy(picture);
    if (stream)
        lib.opj_stream_destroy(stream);
    if (codec)
        lib.opj_destroy_codec(codec);
    return status;
}
