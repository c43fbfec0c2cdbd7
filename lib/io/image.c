/* image.c - image files as tensors: which codec, EXIF rotation, HxWxC bytes in and out.
 *
 * Read: height x width x 3, uint8, RGB; transparency is dropped and 16-bit samples keep their upper
 * byte, as PIL's convert("RGB") has it. Written: uint8 of H x W, H x W x 1, x 3 or x 4. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "io/format.h"
#include "io/image.h"

/* Pixel (y, x) of the upright picture comes from here in the stored one of w x h pixels. */
static int64_t source_of(int orientation, int64_t y, int64_t x, int64_t w, int64_t h)
{
    switch (orientation) {
    case 2: return y * w + (w - 1 - x);
    case 3: return (h - 1 - y) * w + (w - 1 - x);
    case 4: return (h - 1 - y) * w + x;
    case 5: return x * w + y;
    case 6: return (h - 1 - x) * w + y;
    case 7: return (h - 1 - x) * w + (w - 1 - y);
    case 8: return x * w + (w - 1 - y);
    default: return y * w + x;
    }
}

static void copy_upright(const ort_image *image, uint8_t *out)
{
    bool turned = image->orientation >= 5;
    int64_t width = turned ? image->height : image->width;
    int64_t height = turned ? image->width : image->height;
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++, out += 3)
            memcpy(out, image->pixels + 3 * source_of(image->orientation, y, x, image->width,
                                                      image->height), 3);
}

static ort_status to_value(const ort_image *image, ort_value **value, ort_error *err)
{
    assert(image->channels == 3 && image->orientation >= 0 && image->orientation <= 8);
    bool turned = image->orientation >= 5;
    int64_t dims[3] = {turned ? image->width : image->height,
                       turned ? image->height : image->width, 3};
    ORT_TRY(ort_value_new_tensor(ORT_DTYPE_UINT8, 3, dims, value, err));
    if (image->orientation > 1)
        copy_upright(image, (*value)->tensor.data);
    else
        memcpy((*value)->tensor.data, image->pixels, ort_tensor_bytes(&(*value)->tensor));
    return ORT_OK;
}

/* ------------------------------------------------------------------------------- the codecs -- */

typedef struct codec_row {
    const char *names; /* space-separated; the first is used when nothing is said */
    const char *magic;
    size_t decisive, whole; /* bytes of it: that make a file one for this codec; that all have */
    ort_image_read_fn *read;
    ort_frame_fn *frame;
    ort_image_write_fn *write;
    bool quality; /* the encoder takes one */
} codec_row;

static const codec_row codecs[] = {
    {"png", "\x89PNG\r\n\x1a\n", 4, 8, ort_png_decode, ort_frame_png, ort_png_encode, false},
    {"jpeg jpg", "\xff\xd8\xff", 2, 3, ort_jpeg_decode, ort_frame_jpeg, ort_jpeg_encode, true},
    {"webp", "RIFF", 4, 4, ort_webp_decode, ort_frame_riff, ort_webp_encode, true},
    {"bmp", "BM", 2, 2, ort_bmp_decode, ort_frame_bmp, ort_bmp_encode, false},
    {"ppm pgm pnm pbm", "P", 1, 1, ort_pnm_decode, ort_frame_pnm, ort_pnm_encode, false},
    {"tiff tif", "II*\0", 4, 4, ort_tiff_decode, ort_frame_tiff, NULL, false},
    {"tiff tif", "MM\0*", 4, 4, ort_tiff_decode, ort_frame_tiff, NULL, false},
    {"jp2", "\0\0\0\x0cjP  ", 8, 8, ort_jp2_decode, ort_frame_jp2, NULL, false},
    {"j2k", "\xff\x4f\xff\x51", 4, 4, ort_jp2_decode, ort_frame_j2k, NULL, false},
};
enum { CODEC_COUNT = sizeof codecs / sizeof codecs[0] };

static const codec_row *find_codec(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < CODEC_COUNT; i++)
        if (ort_starts_with(bytes, count, codecs[i].magic, codecs[i].decisive))
            return &codecs[i];
    return NULL;
}

ort_status ort_image_decode(const unsigned char *bytes, size_t count, ort_image *image,
                            ort_error *err)
{
    const codec_row *codec = find_codec(bytes, count);
    return codec ? codec->read(bytes, count, image, err)
                 : ort_error_set(err, ORT_ERROR_DATA, "is no PNG, JPEG, JPEG 2000, WebP, BMP, PNM "
                                 "or TIFF image");
}

/* Where an image of a stream ends: `cat *.jpg`, a camera. */
static void frame_image(ort_frame *f)
{
    const codec_row *codec = find_codec(f->in->peeked, ort_input_peek(f->in, 8));
    (codec ? codec->frame : ort_frame_take_rest)(f);
}

static ort_status add_picture(const ort_image *image, const char *name, ort_tensors *tensors,
                              ort_error *err)
{
    ort_value *value = NULL;
    ORT_TRY(to_value(image, &value, err));
    return ort_tensors_add_take(tensors, name, value, err);
}

/* Scanners write a page each: several are values page1, page2, ..., one alone has no name. All
 * together are no larger than one picture may be. */
static ort_status read_pages(const unsigned char *bytes, size_t count, ort_tensors *tensors,
                             ort_error *err)
{
    size_t at = 0, next, page = 0;
    int64_t pixels = 0;
    int seen = 0;
    ORT_TRY(ort_tiff_next(bytes, count, &at, &seen, err));
    do {
        char name[32] = "";
        ort_image image = {0};
        next = at; /* 0: previews only, of which the first is taken */
        ort_status status = at ? ort_tiff_next(bytes, count, &next, &seen, err) : ORT_OK;
        if (next || page > 0)
            snprintf(name, sizeof name, "page%zu", ++page);
        if (status == ORT_OK)
            status = ort_tiff_decode_page(bytes, count, at, &image, err);
        if (status == ORT_OK && (pixels += image.width * image.height) > ORT_IMAGE_MOST_PIXELS)
            status = ort_error_set(err, ORT_ERROR_DATA, "the pages have more than %d pixels",
                                   ORT_IMAGE_MOST_PIXELS);
        if (status == ORT_OK)
            status = add_picture(&image, name, tensors, err);
        free(image.pixels);
        if (status != ORT_OK)
            return page > 1 ? ort_error_wrap(err, status, "page %zu", page) : status;
        at = next;
    } while (next);
    return ORT_OK;
}

static ort_status read_file(const unsigned char *bytes, size_t count,
                            const ort_read_options *options, ort_tensors *tensors, ort_error *err)
{
    const codec_row *codec = find_codec(bytes, count);
    if (codec && codec->read == ort_tiff_decode)
        return read_pages(bytes, count, tensors, err);
    ort_image image = {0};
    ort_status status = ort_image_decode(bytes, count, &image, err);
    if (status == ORT_OK)
        status = add_picture(&image, "", tensors, err);
    free(image.pixels);
    return status;
}

/* The first words of the codecs that write. */
#define WRITTEN(comma) "png" comma "jpeg" comma "bmp" comma "ppm" comma "webp"

static const codec_row *find_encoder(const char *name)
{
    for (size_t i = 0; i < CODEC_COUNT; i++)
        if (codecs[i].write && ort_format_has_word(codecs[i].names, name))
            return &codecs[i];
    return NULL;
}

static ort_status check_written(const char *name, ort_error *err)
{
    return find_encoder(name) ? ORT_OK
                              : ort_error_set(err, ORT_ERROR_USAGE, "%s images are read, not "
                                              "written; " WRITTEN(", ") " are", name);
}

static ort_status write_file(const ort_tensors *tensors, FILE *stream,
                             const ort_write_options *options, ort_error *err)
{
    const ort_tensor *t;
    char shape[160];
    ORT_TRY(ort_format_single(tensors, "an image", &t, err));
    const char *name = options && options->image ? options->image : "png";
    ORT_TRY(check_written(name, err));
    ort_image image = {.channels = 1, .pixels = t->data};
    if (t->shape.rank == 3)
        image.channels = t->shape.dim[2] < 5 ? (int)t->shape.dim[2] : 0;
    if (t->dtype != ORT_DTYPE_UINT8 || t->shape.rank < 2 || t->shape.rank > 3 ||
        (image.channels != 1 && image.channels != 3 && image.channels != 4))
        return ort_error_set(err, ORT_ERROR_DATA, "an image is uint8 of height x width x 1, 3 or "
                             "4, this is %s %s; convert it with --layout hwc and --cast uint8",
                             ort_dtype_name(t->dtype),
                             ort_shape_format(&t->shape, shape, sizeof shape));
    image.height = t->shape.dim[0];
    image.width = t->shape.dim[1];
    if (image.width < 1 || image.height < 1 || image.width > 65535 || image.height > 65535)
        return ort_error_set(err, ORT_ERROR_DATA, "an image of %s pixels can't be written; 1 to "
                             "65535 in each direction",
                             ort_shape_format(&t->shape, shape, sizeof shape));
    assert(ort_tensor_bytes(t) == (size_t)(image.height * image.width * image.channels));
    int quality = options ? options->quality : 0;
    return find_encoder(name)->write(&image, quality, stream, err);
}

static bool matches(const unsigned char *bytes, size_t count)
{
    const codec_row *codec = find_codec(bytes, count);
    if (!codec || !ort_starts_with(bytes, count, codec->magic, codec->whole))
        return false;
    if (codec->read == ort_webp_decode)
        return count >= 12 && !memcmp(bytes + 8, "WEBP", 4);
    return codec->read != ort_pnm_decode ||
           (count >= 3 && bytes[1] >= '1' && bytes[1] <= '6' && memchr(" \t\r\n#", bytes[2], 5));
}

static unsigned traits_of(const char *ending)
{
    const codec_row *encoder = find_encoder(ending);
    return encoder && encoder->quality ? ORT_FORMAT_TAKES_QUALITY : 0;
}

static ort_status settle(const char *ending, ort_write_options *options, ort_error *err)
{
    if (!options->image && *ending)
        options->image = ending;
    return options->image ? check_written(options->image, err) : ORT_OK;
}

const ort_format_row ort_format_row_image = {
    .format = ORT_FORMAT_IMAGE,
    .name = "image",
    .endings = "png jpg jpeg bmp ppm pgm pbm pnm webp tif tiff jp2 j2k j2c",
    .words = WRITTEN(" "),
    .traits = ORT_FORMAT_SINGLE,
    .traits_of = traits_of,
    .matches = matches,
    .read = read_file,
    .frame = frame_image,
    .settle = settle,
    .write = write_file,
};
