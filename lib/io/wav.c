/* wav.c - RIFF WAVE: PCM of 8, 16, 24 and 32 bits and IEEE floats of 32 and 64 bits, plain or
 * extensible. Read as float32 in [-1, 1]: frames x channels, or frames when mono. Written by
 * element type: uint8, int16, int32 and float types as they are, without scaling. */
#include <assert.h>
#include <string.h>

#include "io/format.h"

enum { WAVE_PCM = 1, WAVE_FLOAT = 3, WAVE_EXTENSIBLE = 0xfffe };

typedef struct wave {
    unsigned code, channels, bits;
    uint32_t rate;
    const unsigned char *data;
    size_t bytes;
} wave;

static ort_status read_format(const unsigned char *chunk, size_t size, wave *w, ort_error *err)
{
    if (size < 16)
        return ort_error_set(err, ORT_ERROR_DATA, "the fmt chunk has %zu bytes, needs 16", size);
    w->code = ort_load_u16(chunk);
    w->channels = ort_load_u16(chunk + 2);
    w->rate = ort_load_u32(chunk + 4);
    w->bits = ort_load_u16(chunk + 14);
    if (w->code == WAVE_EXTENSIBLE && size >= 26)
        w->code = ort_load_u16(chunk + 24);
    bool pcm = w->code == WAVE_PCM && (w->bits == 8 || w->bits == 16 || w->bits == 24 ||
                                       w->bits == 32);
    bool real = w->code == WAVE_FLOAT && (w->bits == 32 || w->bits == 64);
    if (!pcm && !real)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "encoding %u with %u bits is not read; "
                             "convert it to PCM of 8 to 32 bits or to float", w->code, w->bits);
    if (w->channels == 0)
        return ort_error_set(err, ORT_ERROR_DATA, "has no channels");
    return ORT_OK;
}

static bool matches(const unsigned char *bytes, size_t count)
{
    return count >= 12 && !memcmp(bytes, "RIFF", 4) && !memcmp(bytes + 8, "WAVE", 4);
}

static ort_status find_chunks(const unsigned char *bytes, size_t count, wave *w, ort_error *err)
{
    if (!matches(bytes, count))
        return ort_error_set(err, ORT_ERROR_DATA, "is no RIFF WAVE file");
    for (size_t at = 12; at + 8 <= count;) {
        const unsigned char *chunk = bytes + at + 8;
        size_t size = ort_load_u32(bytes + at + 4), left = count - at - 8;
        bool is_data = !memcmp(bytes + at, "data", 4);
        /* A recorder that writes to a pipe can't know the size: the data goes on to the end. */
        if (is_data && (size == UINT32_MAX || (size == 0 && left > 0)))
            size = left;
        if (size > left)
            return ort_error_set(err, ORT_ERROR_DATA, "truncated at byte %zu: chunk '%.4s' needs "
                                 "%zu more bytes", count, (const char *)bytes + at, size - left);
        if (!memcmp(bytes + at, "fmt ", 4))
            ORT_TRY(read_format(chunk, size, w, err));
        if (is_data) {
            if (w->channels == 0)
                return ort_error_set(err, ORT_ERROR_DATA, "has no fmt chunk before its data");
            w->data = chunk;
            w->bytes = size;
            return ORT_OK;
        }
        if (size == left)
            break;
        at += 8 + size + size % 2;
    }
    return ort_error_set(err, ORT_ERROR_DATA, "truncated at byte %zu: there is no data chunk",
                         count);
}

static float sample(const wave *w, const unsigned char *p)
{
    uint64_t word;
    double real;
    float single;
    switch (w->bits) {
    case 8: return (float)(p[0] - 128) / 128.0f;
    case 16: return (float)(int16_t)ort_load_u16(p) / 32768.0f;
    case 24: return (float)((int32_t)(ort_load_word(p, 3, false) << 8) / 256) / 8388608.0f;
    case 64:
        word = ort_load_u64(p);
        memcpy(&real, &word, sizeof real);
        return (float)real;
    default: break;
    }
    uint32_t bits = ort_load_u32(p);
    if (w->code == WAVE_PCM)
        return (float)((double)(int32_t)bits / 2147483648.0);
    memcpy(&single, &bits, sizeof single);
    return single;
}

static ort_status read_wave(const unsigned char *bytes, size_t count,
                            const ort_read_options *options, ort_tensors *tensors, ort_error *err)
{
    wave w = {0};
    ORT_TRY(find_chunks(bytes, count, &w, err));
    assert(w.channels > 0 && w.bits >= 8 && w.data + w.bytes <= bytes + count);
    size_t width = w.bits / 8, frames = w.bytes / (width * w.channels);
    int64_t dims[2] = {(int64_t)frames, w.channels};
    ort_value *value = NULL;
    ORT_TRY(ort_value_new_tensor(ORT_DTYPE_FLOAT, w.channels > 1 ? 2 : 1, dims, &value, err));
    float *out = value->tensor.data;
    for (size_t i = 0; i < frames * w.channels; i++)
        out[i] = sample(&w, w.data + i * width);
    tensors->sample_rate = w.rate <= INT32_MAX ? (int)w.rate : 0;
    return ort_tensors_add_take(tensors, "", value, err);
}

static ort_status write_wave(const ort_tensors *tensors, FILE *stream,
                             const ort_write_options *options, ort_error *err)
{
    const ort_tensor *t;
    ORT_TRY(ort_format_single(tensors, ".wav", &t, err));
    unsigned code = t->dtype == ORT_DTYPE_FLOAT || t->dtype == ORT_DTYPE_DOUBLE ? WAVE_FLOAT
                                                                                : WAVE_PCM;
    if (code == WAVE_PCM && t->dtype != ORT_DTYPE_UINT8 && t->dtype != ORT_DTYPE_INT16 &&
        t->dtype != ORT_DTYPE_INT32)
        return ort_error_set(err, ORT_ERROR_DATA, ".wav has no element type %s; cast to float, "
                             "int16, int32 or uint8", ort_dtype_name(t->dtype));
    int64_t channels = t->shape.rank == 2 ? t->shape.dim[1] : 1;
    size_t bytes = ort_tensor_bytes(t);
    if (t->shape.rank < 1 || t->shape.rank > 2 || channels < 1 || channels > 0xffff)
        return ort_error_set(err, ORT_ERROR_DATA, ".wav needs a tensor of frames, or of frames x "
                             "channels");
    if (bytes > UINT32_MAX - 64)
        return ort_error_set(err, ORT_ERROR_DATA, ".wav holds at most 4 GB of samples, these are "
                             "%zu bytes", bytes);
    unsigned width = (unsigned)ort_dtype_bits(t->dtype) / 8;
    uint32_t rate = options && options->sample_rate > 0 ? (uint32_t)options->sample_rate : 16000;
    unsigned char head[44];
    memcpy(head, "RIFF", 4);
    ort_store_u32(head + 4, (uint32_t)(36 + bytes + bytes % 2));
    memcpy(head + 8, "WAVEfmt ", 8);
    ort_store_u32(head + 16, 16);
    ort_store_u16(head + 20, code);
    ort_store_u16(head + 22, (unsigned)channels);
    ort_store_u32(head + 24, rate);
    ort_store_u32(head + 28, rate * (uint32_t)channels * width);
    ort_store_u16(head + 32, (unsigned)channels * width);
    ort_store_u16(head + 34, width * 8);
    memcpy(head + 36, "data", 4);
    ort_store_u32(head + 40, (uint32_t)bytes);
    fwrite(head, 1, sizeof head, stream);
    if (bytes)
        fwrite(t->data, 1, bytes, stream);
    if (bytes % 2)
        fputc(0, stream);
    return ORT_OK;
}

/* A recorder that writes to a pipe can't know the size: its data goes on to the end. */
static bool is_open_size(uint32_t size)
{
    return size == 0 || size == UINT32_MAX;
}

/* Chunks up to the data, whose own size counts, then the chunks behind it as far as the size of the
 * whole goes. */
static void frame_wave(ort_frame *f)
{
    if (!ort_frame_take(f, 12))
        return;
    uint32_t whole = ort_load_u32(f->bytes + 4);
    for (bool data = false; !data;) {
        size_t at = f->count;
        if (!ort_frame_take(f, 8))
            return;
        uint32_t size = ort_load_u32(f->bytes + at + 4);
        data = !memcmp(f->bytes + at, "data", 4);
        if (data && is_open_size(size) && (size || is_open_size(whole) || whole > f->count - 8)) {
            ort_frame_take_rest(f);
            return;
        }
        if (!ort_frame_take(f, (uint64_t)size + size % 2))
            return;
    }
    uint64_t end = (uint64_t)whole + 8 + whole % 2;
    if (!is_open_size(whole) && end > f->count)
        ort_frame_take(f, end - f->count);
}

const ort_format_row ort_format_row_wav = {
    .format = ORT_FORMAT_WAV,
    .name = "wav",
    .endings = "wav wave",
    .traits = ORT_FORMAT_SINGLE,
    .matches = matches,
    .read = read_wave,
    .frame = frame_wave,
    .write = write_wave,
};
