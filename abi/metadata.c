/* metadata.c - what a model says of itself, as a copy that outlives its session. */
#include "abi.h"

#include <stdlib.h>
#include <string.h>

/* Its documentation is that of the model, its description that of the graph. */
static const ort_model_text_kind kinds[] = {ORT_MODEL_PRODUCER_NAME, ORT_MODEL_GRAPH_NAME,
                                            ORT_MODEL_DOMAIN, ORT_MODEL_DOC, ORT_MODEL_GRAPH_DOC};
enum { PRODUCER, GRAPH, DOMAIN, DOC, GRAPH_DOC, TEXTS };

struct OrtModelMetadata {
    char *texts[TEXTS];
    int64_t version;
    OrtKeyValuePairs properties;
};

void abi_ReleaseModelMetadata(OrtModelMetadata *metadata)
{
    if (!metadata)
        return;
    for (int i = 0; i < TEXTS; i++)
        free(metadata->texts[i]);
    abi_pairs_clear(&metadata->properties);
    free(metadata);
}

static bool fill(OrtModelMetadata *metadata, const ort_session *session, bool entered)
{
    for (int i = 0; i < TEXTS; i++)
        if (!(metadata->texts[i] = strdup(ort_session_text(session, kinds[i]))))
            return false;
    metadata->version = ort_session_number(session);
    if (!metadata->version)
        metadata->version = INT64_MAX; /* the model says none */
    for (size_t i = 0; i < ort_session_property_count(session); i++) {
        const char *key = ort_session_property_key(session, i);
        if (entered && !strcmp(key, ABI_ACCURACY_ENTRY))
            continue;
        if (!abi_pairs_set(&metadata->properties, key, ort_session_property(session, key)))
            return false;
    }
    return true;
}

OrtStatus *abi_SessionGetModelMetadata(const OrtSession *session, OrtModelMetadata **out)
{
    ABI_CHECK(session && out, "session is NULL");
    OrtModelMetadata *metadata = calloc(1, sizeof *metadata);
    if (!metadata || !fill(metadata, session->session, session->entered)) {
        abi_ReleaseModelMetadata(metadata);
        return abi_no_memory();
    }
    *out = metadata;
    return NULL;
}

OrtStatus *abi_ModelMetadataGetProducerName(const OrtModelMetadata *metadata,
                                            OrtAllocator *allocator, char **out)
{
    return abi_copy_out(allocator, metadata->texts[PRODUCER], out);
}

OrtStatus *abi_ModelMetadataGetGraphName(const OrtModelMetadata *metadata, OrtAllocator *allocator,
                                         char **out)
{
    return abi_copy_out(allocator, metadata->texts[GRAPH], out);
}

OrtStatus *abi_ModelMetadataGetDomain(const OrtModelMetadata *metadata, OrtAllocator *allocator,
                                      char **out)
{
    return abi_copy_out(allocator, metadata->texts[DOMAIN], out);
}

OrtStatus *abi_ModelMetadataGetDescription(const OrtModelMetadata *metadata,
                                           OrtAllocator *allocator, char **out)
{
    return abi_copy_out(allocator, metadata->texts[DOC], out);
}

OrtStatus *abi_ModelMetadataGetGraphDescription(const OrtModelMetadata *metadata,
                                                OrtAllocator *allocator, char **out)
{
    return abi_copy_out(allocator, metadata->texts[GRAPH_DOC], out);
}

OrtStatus *abi_ModelMetadataGetVersion(const OrtModelMetadata *metadata, int64_t *out)
{
    *out = metadata->version;
    return NULL;
}

OrtStatus *abi_ModelMetadataLookupCustomMetadataMap(const OrtModelMetadata *metadata,
                                                    OrtAllocator *allocator, const char *key,
                                                    char **out)
{
    const char *value = abi_pairs_get(&metadata->properties, key);
    *out = NULL;
    return value ? abi_copy_out(allocator, value, out) : NULL;
}

OrtStatus *abi_ModelMetadataGetCustomMetadataMapKeys(const OrtModelMetadata *metadata,
                                                     OrtAllocator *allocator, char ***out,
                                                     int64_t *count)
{
    size_t n = metadata->properties.count;
    *out = NULL;
    *count = (int64_t)n;
    if (!n)
        return NULL;
    char **keys = allocator->Alloc(allocator, n * sizeof *keys);
    OrtStatus *status = keys ? NULL : abi_no_memory();
    size_t done = 0;
    while (!status && done < n) {
        status = abi_copy_out(allocator, metadata->properties.keys[done], &keys[done]);
        done += !status;
    }
    if (!status) {
        *out = keys;
        return NULL;
    }
    while (done)
        allocator->Free(allocator, keys[--done]);
    if (keys)
        allocator->Free(allocator, keys);
    return status;
}
