/* string.c - tensors of strings, which clients read and write by copies: they hold bytes with a
 * length, that no NUL ends.
 */
#include "abi.h"

#include <string.h>

static OrtStatus *check_strings(const OrtValue *value)
{
    ABI_TRY(abi_check_tensor(value));
    ABI_CHECK(ort_value_dtype(value->value) == ORT_DTYPE_STRING, "Argument is not a tensor of "
                                                                 "strings");
    return NULL;
}

static OrtStatus *check_index(const OrtValue *value, size_t index, const char *words)
{
    ABI_TRY(check_strings(value));
    ABI_CHECK(index < (size_t)ort_value_count(value->value), "%sindex is out of bounds", words);
    return NULL;
}

OrtStatus *abi_FillStringTensor(OrtValue *value, const char *const *texts, size_t count)
{
    ABI_TRY(check_strings(value));
    ABI_CHECK(count == (size_t)ort_value_count(value->value), "input array doesn't equal tensor "
                                                              "size");
    for (size_t i = 0; i < count; i++)
        ABI_TRY(abi_FillStringTensorElement(value, texts[i], i));
    return NULL;
}

OrtStatus *abi_FillStringTensorElement(OrtValue *value, const char *text, size_t index)
{
    ort_error err = ORT_ERROR_INIT;
    ABI_TRY(check_index(value, index, "element "));
    ABI_CHECK(text, "s is NULL");
    return ort_value_set_string(value->value, (int64_t)index, text, strlen(text), &err) == ORT_OK
               ? NULL
               : abi_from_error(&err);
}

OrtStatus *abi_GetResizedStringTensorElementBuffer(OrtValue *value, size_t index, size_t length,
                                                   char **out)
{
    ort_error err = ORT_ERROR_INIT;
    ABI_TRY(check_index(value, index, "element "));
    return ort_value_resize_string(value->value, (int64_t)index, length, out, &err) == ORT_OK
               ? NULL
               : abi_from_error(&err);
}

OrtStatus *abi_GetStringTensorDataLength(const OrtValue *value, size_t *out)
{
    ABI_TRY(check_strings(value));
    size_t sum = 0;
    for (int64_t i = 0; i < ort_value_count(value->value); i++) {
        size_t length;
        ort_value_string(value->value, i, &length);
        sum += length;
    }
    *out = sum;
    return NULL;
}

OrtStatus *abi_GetStringTensorContent(const OrtValue *value, void *buffer, size_t size,
                                      size_t *offsets, size_t count)
{
    size_t need, at = 0;
    ABI_TRY(abi_GetStringTensorDataLength(value, &need));
    if (count != (size_t)ort_value_count(value->value))
        return abi_fail(ABI_FAIL, "offsets buffer is not equal to tensor size");
    if (size < need)
        return abi_fail(ABI_FAIL, "output buffer is too small. Use GetStringTensorDataLength.");
    for (size_t i = 0; i < count; i++) {
        size_t length;
        const char *text = ort_value_string(value->value, (int64_t)i, &length);
        offsets[i] = at;
        if (length)
            memcpy((char *)buffer + at, text, length);
        at += length;
    }
    return NULL;
}

OrtStatus *abi_GetStringTensorElementLength(const OrtValue *value, size_t index, size_t *out)
{
    ABI_TRY(check_index(value, index, ""));
    ort_value_string(value->value, (int64_t)index, out);
    return NULL;
}

OrtStatus *abi_GetStringTensorElement(const OrtValue *value, size_t size, size_t index,
                                      void *buffer)
{
    size_t length;
    ABI_TRY(check_index(value, index, ""));
    const char *text = ort_value_string(value->value, (int64_t)index, &length);
    if (size < length)
        return abi_fail(ABI_FAIL, "buffer size is too small for string element");
    if (length)
        memcpy(buffer, text, length);
    return NULL;
}
