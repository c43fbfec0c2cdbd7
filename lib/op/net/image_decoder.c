/* image_decoder.c - ImageDecoder: the bytes of an image file to pixels, height x width x channels.
 *
 * The codecs are those of the tensor formats (io/image.h). As the specification says, bytes that
 * are no image or a damaged one give an empty result; a format that can't be read here is an error.
 */
#include <stdlib.h>
#include <string.h>

#include "io/image.h"
#include "op/op.h"

typedef enum pixel_format { PIXEL_RGB, PIXEL_BGR, PIXEL_GREY } pixel_format;

typedef struct decoder_state {
    pixel_format format;
} decoder_state;

static const ort_bind decoder_bind[] = {
    ORT_BIND_AS(decoder_state, format, "pixel_format", ORT_WORDS("RGB BGR Grayscale")), {0}};

static ort_status decoder_infer(ort_infer *x, ort_error *err)
{
    decoder_state state = {PIXEL_RGB};
    ORT_TRY(ort_bind_attrs(decoder_bind, x->node, x->arena, &state, err));
    ort_dim channels = ort_dim_of(state.format == PIXEL_GREY ? 1 : 3);
    ort_infer_set_shape(x, 0, 3, (ort_dim[]){ort_dim_unknown(), ort_dim_unknown(), channels});
    return ORT_OK;
}

static void copy_pixels(const ort_image *image, pixel_format format, uint8_t *out)
{
    size_t pixels = (size_t)(image->width * image->height);
    const uint8_t *in = image->pixels;
    for (size_t i = 0; i < pixels; i++, in += 3) {
        if (format == PIXEL_GREY) { /* ITU-R 601 in 16-bit fractions, rounded */
            *out++ = (uint8_t)((in[0] * 19595u + in[1] * 38470u + in[2] * 7471u + 0x8000u) >> 16);
            continue;
        }
        *out++ = in[format == PIXEL_BGR ? 2 : 0];
        *out++ = in[1];
        *out++ = in[format == PIXEL_BGR ? 0 : 2];
    }
}

static ort_status decoder_run(ort_call *call, ort_error *err)
{
    const ort_tensor *in = ort_call_in(call, 0);
    ort_image image = {0};
    pixel_format format = ((const decoder_state *)call->state)->format;
    ort_status status = ort_image_decode(in->data, (size_t)ort_tensor_count(in), &image, err);
    if (status == ORT_ERROR_DATA) {
        image.width = image.height = 0;
        status = ORT_OK;
    }
    ort_shape shape = {3, {image.height, image.width, format == PIXEL_GREY ? 1 : 3}};
    if (status == ORT_OK)
        status = ort_call_output(call, 0, ORT_DTYPE_UINT8, &shape, err);
    if (status == ORT_OK && ort_call_out(call, 0))
        copy_pixels(&image, format, ort_call_out(call, 0)->data);
    free(image.pixels);
    return status;
}

static const ort_op_impl decoder_impl = {
    .state = sizeof(decoder_state), .bind = decoder_bind,
    .infer = decoder_infer, .run = decoder_run,
};

/* ---- rows */

const ort_op ort_ops_image_decoder[] = {
    {ONNX, "ImageDecoder", 20, "encoded_stream:T1 -> image:T2", "T1:u8 T2:u8", "pixel_format:s=RGB",
     ORT_TRAIT_DYNAMIC, &decoder_impl},
    {NULL, NULL, 0, NULL, NULL, NULL, 0, NULL},
};
