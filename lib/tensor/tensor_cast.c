/* tensor_cast.c - ONNX Cast between any two element types: numbers are converted (convert.c),
 * strings are parsed and printed (text.c). */
#include <assert.h>
#include <string.h>

#include "tensor/tensor.h"
#include "tensor/text.h"

static ort_status print_elements(ort_tensor *dst, const ort_tensor *src,
                                 const ort_cast_options *options, ort_error *err)
{
    if (!options || !options->alloc)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED,
                             "conversion to strings needs an allocator for their bytes");
    int64_t count = ort_tensor_count(src);
    ort_string *strings = dst->data;
    ort_strbuf text = {0};
    ort_status status = ORT_OK;
    for (int64_t i = 0; i < count && status == ORT_OK; i++) {
        ort_strbuf_clear(&text);
        ort_text_add_element(&text, src, i);
        char *copy = text.failed ? NULL : options->alloc(options->alloc_arg, text.length + 1);
        if (!copy) {
            status = ort_error_memory(err, text.length + 1);
        } else {
            memcpy(copy, ort_strbuf_text(&text), text.length + 1);
            strings[i] = (ort_string){copy, text.length};
        }
    }
    ort_strbuf_release(&text);
    return status;
}

static ort_status parse_elements(ort_tensor *dst, const ort_tensor *src,
                                 const ort_cast_options *options, ort_error *err)
{
    int64_t count = ort_tensor_count(src);
    const ort_string *strings = src->data;
    for (int64_t i = 0; i < count; i++) {
        const ort_string *s = &strings[i];
        if (!ort_text_parse_element(dst, i, s->ptr, s->length, options))
            return ort_error_set(err, ORT_ERROR_RUN,
                                 "element %lld, '%.*s', is not a number that can become %s",
                                 (long long)i, s->length < 60 ? (int)s->length : 60,
                                 s->ptr ? s->ptr : "", ort_dtype_name(dst->dtype));
    }
    return ORT_OK;
}

ort_status ort_tensor_cast(ort_tensor *dst, const ort_tensor *src, const ort_cast_options *options,
                           ort_error *err)
{
    int64_t count = ort_tensor_count(src);
    assert(ort_tensor_count(dst) == count && !src->stride && !dst->stride);
    ort_dtype_class to = ort_dtype_get(dst->dtype)->class_;
    ort_dtype_class from = ort_dtype_get(src->dtype)->class_;
    if (to == ORT_CLASS_NONE || from == ORT_CLASS_NONE)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "no conversion from %s to %s",
                             ort_dtype_name(src->dtype), ort_dtype_name(dst->dtype));
    if (count == 0)
        return ORT_OK;
    if (to == ORT_CLASS_STRING)
        return print_elements(dst, src, options, err);
    if (from == ORT_CLASS_STRING)
        return parse_elements(dst, src, options, err);
    ort_tensor_convert(dst, src, options);
    return ORT_OK;
}
