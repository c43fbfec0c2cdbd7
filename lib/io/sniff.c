/* sniff.c - recognizing files that are not ONNX models (sniff.h). A row per kind; the first match
 * wins. An ONNX file has no magic: rows must not match bytes that a ModelProto can begin with. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* memmem */
#endif
#include "io/sniff.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

typedef struct magic {
    size_t offset, length;
    const char *bytes;
    const char *says;
} magic;

static const magic magics[] = {
    {0, 24, "version https://git-lfs.", "is a git-lfs pointer, not the model: run `git lfs pull`"},
    {4, 4, "TFL3", "is a TensorFlow Lite model: convert it to ONNX (tf2onnx --tflite)"},
    {4, 4, "ORTM", "is a model in onnxruntime's ORT format: use the .onnx file it was made from"},
    {0, 8, "\x89HDF\r\n\x1a\n", "is an HDF5 file (Keras?): convert it to ONNX (tf2onnx --keras)"},
    {0, 2, "\x1f\x8b", "is compressed with gzip: unpack it with `gunzip` first"},
    {0, 6, "\xfd" "7zXZ\0", "is compressed with xz: unpack it with `unxz` first"},
    {0, 4, "\x28\xb5\x2f\xfd", "is compressed with zstd: unpack it with `unzstd` first"},
    {0, 3, "BZh", "is compressed with bzip2: unpack it with `bunzip2` first"},
    {257, 5, "ustar", "is a tar archive: unpack it with `tar xf` first"},
    {0, 6, "\x93NUMPY", "is a numpy array, not a model"},
    {0, 8, "\x89PNG\r\n\x1a\n", "is a PNG image, not a model"},
    {0, 3, "\xff\xd8\xff", "is a JPEG image, not a model"},
    {0, 4, "GGUF", "is a GGUF file: export the model to ONNX from its source framework"},
    {0, 4, "%PDF", "is a PDF document, not a model"},
    {0, 4, "\x7f" "ELF", "is a program or shared library, not a model"},
};

static bool has(const uint8_t *bytes, size_t count, const char *needle)
{
    size_t length = strlen(needle);
    return memmem(bytes, count < 4096 ? count : 4096, needle, length) != NULL;
}

static const char *sniff_zip(const uint8_t *bytes, size_t count)
{
    if (count < 4 || memcmp(bytes, "PK\3\4", 4))
        return NULL;
    if (has(bytes, count, "/data.pkl") || has(bytes, count, "archive/") ||
        has(bytes, count, "/version"))
        return "is a PyTorch checkpoint (zip): export the model with torch.onnx.export";
    if (has(bytes, count, ".npy"))
        return "is an .npz archive of arrays, not a model";
    return "is a zip archive: unpack it first";
}

static const char *sniff_text(const uint8_t *bytes, size_t count)
{
    size_t at = 0;
    while (at < count && at < 256 && isspace(bytes[at]))
        at++;
    const char *text = (const char *)bytes + at;
    size_t left = count - at;
    if ((left >= 9 && !strncasecmp(text, "<!doctype", 9)) ||
        (left >= 5 && (!strncasecmp(text, "<html", 5) || !strncasecmp(text, "<?xml", 5))))
        return "is an HTML or XML page, not a model: the download went to a web page";
    if (left >= 2 && text[0] == '{' && (text[1] == '"' || isspace((unsigned char)text[1])))
        return "is JSON text, not a binary ONNX model";
    return NULL;
}

/* safetensors: 8 bytes of header length, then a JSON object. */
static const char *sniff_safetensors(const uint8_t *bytes, size_t count)
{
    if (count < 10 || bytes[8] != '{' || (bytes[9] != '"' && bytes[9] != '}'))
        return NULL;
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--)
        length = length << 8 | bytes[i];
    return length >= 2 && length <= count - 8
               ? "is a safetensors file: it has weights but no graph; export the model to ONNX"
               : NULL;
}

const char *ort_sniff_model(const uint8_t *bytes, size_t count)
{
    if (count == 0)
        return "is empty: a failed download or export?";
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++) {
        const magic *m = &magics[i];
        /* A flatbuffer's root offset is small; a ModelProto may begin 08 07 12 04 "ORTM". */
        if (m->offset == 4 && count > 4 && bytes[3] != 0)
            continue;
        if (count >= m->offset + m->length && !memcmp(bytes + m->offset, m->bytes, m->length))
            return m->says;
    }
    const char *says = sniff_zip(bytes, count);
    if (!says)
        says = sniff_text(bytes, count);
    if (!says)
        says = sniff_safetensors(bytes, count);
    /* pickle protocol 2 to 5: 0x80, version, then an opcode; field 16 of a ModelProto isn't used.
     */
    if (!says && count > 2 && bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5)
        says = "is a Python pickle (PyTorch checkpoint?): export the model with torch.onnx.export";
    if (!says && count > 64 && has(bytes, count, "saved_model_schema_version"))
        says = "is a TensorFlow saved model: convert it to ONNX (tf2onnx --saved-model)";
    return says;
}
