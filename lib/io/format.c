/* format.c - the table of tensor formats, and what is asked of it by name, path and content. */
#include "io/format.h"

#include <string.h>
#include <strings.h>

#include "io/purpose.h"
#include "io/tensor_pb.h"

static bool starts_with(const unsigned char *bytes, size_t count, const char *magic, size_t length)
{
    return count >= length && memcmp(bytes, magic, length) == 0;
}

static bool is_npy(const unsigned char *bytes, size_t count)
{
    return starts_with(bytes, count, "\x93NUMPY", 6);
}

static bool is_npz(const unsigned char *bytes, size_t count)
{
    return starts_with(bytes, count, "PK\x03\x04", 4) || starts_with(bytes, count, "PK\x05\x06", 4);
}

/* A 64-bit length, then JSON. */
static bool is_safetensors(const unsigned char *bytes, size_t count)
{
    return count >= 9 && bytes[8] == '{' && ort_load_u64(bytes) < UINT32_MAX;
}

static bool is_json(const unsigned char *bytes, size_t count)
{
    size_t at = starts_with(bytes, count, "\xef\xbb\xbf", 3) ? 3 : 0;
    while (at < count && strchr(" \t\r\n", bytes[at]) && bytes[at])
        at++;
    if (count > 0 && memchr(bytes, '\0', count)) /* the length in front of .safetensors */
        return false;
    return at < count && (bytes[at] == '{' || bytes[at] == '[');
}

static bool is_image(const unsigned char *bytes, size_t count)
{
    if (starts_with(bytes, count, "\x89PNG\r\n\x1a\n", 8) ||
        starts_with(bytes, count, "\xff\xd8\xff", 3) || starts_with(bytes, count, "BM", 2) ||
        starts_with(bytes, count, "II*\0", 4) || starts_with(bytes, count, "MM\0*", 4) ||
        starts_with(bytes, count, "\0\0\0\x0cjP  ", 8) ||
        starts_with(bytes, count, "\xff\x4f\xff\x51", 4))
        return true;
    if (starts_with(bytes, count, "RIFF", 4) && count >= 12)
        return memcmp(bytes + 8, "WEBP", 4) == 0;
    return count >= 3 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6' &&
           strchr(" \t\r\n#", bytes[2]) && bytes[2];
}

static bool is_wav(const unsigned char *bytes, size_t count)
{
    return starts_with(bytes, count, "RIFF", 4) && count >= 12 &&
           memcmp(bytes + 8, "WAVE", 4) == 0;
}

static ort_status read_pb(const unsigned char *bytes, size_t count, const ort_read_options *options,
                          ort_tensors *tensors, ort_error *err)
{
    ort_value *value = NULL;
    char name[256] = "";
    const ort_purpose *purpose = ort_purpose_find(options, "", 0);
    bool optional = purpose && ort_purpose_parse(purpose->type).optional;
    ORT_TRY(ort_tensor_pb_read(bytes, count, optional, &value, name, err));
    return ort_tensors_add_take(tensors, name, value, err);
}

static ort_status write_pb(const ort_tensors *tensors, FILE *stream,
                           const ort_write_options *options, ort_error *err)
{
    if (tensors->list.count != 1)
        return ort_error_set(err, ORT_ERROR_DATA, ".pb holds one value, there are %zu; .npz and "
                             ".safetensors hold many", tensors->list.count);
    const ort_tensors_entry *entry = &tensors->list.data[0];
    ort_strbuf bytes = {0};
    ort_status status = ort_tensor_pb_write(entry->value, entry->name, &bytes, err);
    if (status == ORT_OK && bytes.failed)
        status = ort_error_memory(err, bytes.length);
    if (status == ORT_OK && bytes.length)
        fwrite(bytes.data, 1, bytes.length, stream);
    ort_strbuf_release(&bytes);
    return status;
}

static const ort_format_row rows[] = {
    {ORT_FORMAT_NPY, "npy", "npy", is_npy, ort_npy_read, NULL, NULL, ort_npy_write},
    {ORT_FORMAT_NPZ, "npz", "npz", is_npz, ort_npz_read, NULL, NULL, ort_npz_write},
    {ORT_FORMAT_PB, "pb", "pb", NULL, NULL, read_pb, NULL, write_pb},
    {ORT_FORMAT_IMAGE, "image", "png jpg jpeg bmp ppm pgm pbm pnm webp tif tiff jp2 j2k j2c",
     is_image, NULL, ort_image_read, ort_frame_image, ort_image_write},
    {ORT_FORMAT_WAV, "wav", "wav wave", is_wav, NULL, ort_wav_read, ort_frame_wav, ort_wav_write},
    {ORT_FORMAT_SAFETENSORS, "safetensors", "safetensors", is_safetensors, NULL,
     ort_safetensors_read, ort_frame_safetensors, ort_safetensors_write},
    {ORT_FORMAT_JSON, "json", "json jsonl ndjson", is_json, NULL, ort_tensor_json_read,
     ort_frame_json, ort_tensor_json_write},
    {ORT_FORMAT_CSV, "csv", "csv tsv", NULL, NULL, ort_csv_read, NULL, ort_csv_write},
    {ORT_FORMAT_RAW, "raw", "raw bin", NULL, NULL, ort_raw_read, NULL, ort_raw_write},
};
enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

const ort_format_row *ort_format_get(ort_format format)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (rows[i].format == format)
            return &rows[i];
    return NULL;
}

const ort_format_row *ort_format_detect(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (rows[i].matches && rows[i].matches(bytes, count))
            return &rows[i];
    return NULL;
}

const char *ort_format_name(ort_format format)
{
    const ort_format_row *row = ort_format_get(format);
    return row ? row->name : "auto";
}

ort_format ort_format_parse(const char *name)
{
    if (!name)
        return ORT_FORMAT_COUNT;
    if (strcasecmp(name, "auto") == 0)
        return ORT_FORMAT_AUTO;
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (strcasecmp(rows[i].name, name) == 0)
            return rows[i].format;
    ort_format by_extension = ORT_FORMAT_AUTO;
    char path[32];
    if (snprintf(path, sizeof path, "x.%s", name) < (int)sizeof path)
        by_extension = ort_format_of_path(path);
    return by_extension == ORT_FORMAT_AUTO ? ORT_FORMAT_COUNT : by_extension;
}

const char *ort_path_extension(const char *path)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    return dot ? dot + 1 : "";
}

static bool has_word(const char *words, const char *word)
{
    size_t length = strlen(word);
    while (*words && length > 0) {
        size_t span = strcspn(words, " ");
        if (span == length && strncasecmp(words, word, length) == 0)
            return true;
        words += span + strspn(words + span, " ");
    }
    return false;
}

ort_format ort_format_of_path(const char *path)
{
    if (!path)
        return ORT_FORMAT_AUTO;
    const char *extension = ort_path_extension(path);
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (has_word(rows[i].extensions, extension))
            return rows[i].format;
    return ORT_FORMAT_AUTO;
}
