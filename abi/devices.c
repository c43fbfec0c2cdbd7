/* devices.c - the devices that there are: one processor, which one provider runs; and copies
 * between them, which are copies of memory.
 */
#include "abi.h"

#include <string.h>

struct OrtHardwareDevice {
    OrtKeyValuePairs metadata;
};
struct OrtEpDevice {
    OrtKeyValuePairs metadata, options;
};

static const OrtHardwareDevice processor;
static const OrtEpDevice device;

OrtStatus *abi_GetEpDevices(const OrtEnv *env, const OrtEpDevice *const **out, size_t *count)
{
    static const OrtEpDevice *const all[] = {&device};
    ABI_CHECK(env && out && count, "env is NULL");
    *out = all;
    *count = 1;
    return NULL;
}

const char *abi_EpDevice_EpName(const OrtEpDevice *ep) { return "CPUExecutionProvider"; }

const char *abi_EpDevice_EpVendor(const OrtEpDevice *ep) { return "Microsoft"; }

const OrtKeyValuePairs *abi_EpDevice_EpMetadata(const OrtEpDevice *ep) { return &ep->metadata; }

const OrtKeyValuePairs *abi_EpDevice_EpOptions(const OrtEpDevice *ep) { return &ep->options; }

const OrtHardwareDevice *abi_EpDevice_Device(const OrtEpDevice *ep) { return &processor; }

const OrtMemoryInfo *abi_EpDevice_MemoryInfo(const OrtEpDevice *ep, int memory_type)
{
    return &abi_cpu_memory;
}

/* 0 is the ABI's number of processors. Nothing is told of this one. */
int abi_HardwareDevice_Type(const OrtHardwareDevice *hardware) { return 0; }

/* Who made the processor: a name, and the number that PCI gives the maker. */
typedef struct maker {
    const char *name;
    uint32_t id;
} maker;

static maker made_by(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_is("intel"))
        return (maker){"Intel", 0x8086};
    if (__builtin_cpu_is("amd"))
        return (maker){"AMD", 0x1022};
#endif
    return (maker){"", 0};
}

uint32_t abi_HardwareDevice_VendorId(const OrtHardwareDevice *hardware) { return made_by().id; }

const char *abi_HardwareDevice_Vendor(const OrtHardwareDevice *hardware) { return made_by().name; }

uint32_t abi_HardwareDevice_DeviceId(const OrtHardwareDevice *hardware) { return 0; }

const OrtKeyValuePairs *abi_HardwareDevice_Metadata(const OrtHardwareDevice *hardware)
{
    return &hardware->metadata;
}

OrtStatus *abi_GetNumHardwareDevices(const OrtEnv *env, size_t *out)
{
    ABI_CHECK(env && out, "env is NULL");
    *out = 1;
    return NULL;
}

OrtStatus *abi_GetHardwareDevices(const OrtEnv *env, const OrtHardwareDevice **out, size_t count)
{
    ABI_CHECK(env && (out || !count), "env or devices is NULL");
    if (count)
        out[0] = &processor;
    return NULL;
}

OrtStatus *abi_SessionOptionsAppendExecutionProvider_V2(OrtSessionOptions *options, OrtEnv *env,
                                                        const OrtEpDevice *const *devices,
                                                        size_t count, const char *const *keys,
                                                        const char *const *values,
                                                        size_t option_count)
{
    ABI_CHECK(options && env, "options or env is NULL");
    ABI_CHECK(devices && count, "Must provide one or more OrtEpDevice instances.");
    for (size_t i = 0; i < count; i++)
        ABI_CHECK(devices[i] == &device, "device %zu is none of GetEpDevices", i);
    return NULL;
}

static OrtStatus *give_devices(const OrtSession *session, const OrtEpDevice **out, size_t count,
                               size_t wanted)
{
    ABI_CHECK(session && (out || !count), "session or ep_devices is NULL");
    ABI_CHECK(count == wanted, "%zu devices asked for, there are %zu values", count, wanted);
    for (size_t i = 0; i < count; i++)
        out[i] = &device;
    return NULL;
}

OrtStatus *abi_SessionGetEpDeviceForInputs(const OrtSession *session, const OrtEpDevice **out,
                                           size_t count)
{
    return give_devices(session, out, count, session ? session->input_count : 0);
}

OrtStatus *abi_SessionGetEpDeviceForOutputs(const OrtSession *session, const OrtEpDevice **out,
                                            size_t count)
{
    return give_devices(session, out, count, session ? session->output_count : 0);
}

static OrtStatus *copy_tensor(const OrtValue *from, const OrtValue *to)
{
    ABI_TRY(abi_check_tensor(from));
    ABI_TRY(abi_check_tensor(to));
    ort_error err = ORT_ERROR_INIT;
    const ort_value *source = from->value;
    size_t rank = (size_t)ort_value_rank(source);
    bool same = ort_value_dtype(source) == ort_value_dtype(to->value) &&
                ort_value_rank(source) == ort_value_rank(to->value);
    for (size_t i = 0; same && i < rank; i++)
        same = ort_value_dims(source)[i] == ort_value_dims(to->value)[i];
    ABI_CHECK(same, "CopyTensors: source and destination have different types or shapes");
    if (ort_value_dtype(source) != ORT_DTYPE_STRING) {
        if (ort_value_bytes(source))
            memmove(ort_value_data(to->value), ort_value_data(from->value),
                    ort_value_bytes(source));
        return NULL;
    }
    for (int64_t i = 0; i < ort_value_count(source); i++) {
        size_t length;
        const char *text = ort_value_string(source, i, &length);
        if (ort_value_set_string(to->value, i, text, length, &err) != ORT_OK)
            return abi_from_error(&err);
    }
    return NULL;
}

OrtStatus *abi_CopyTensors(const OrtEnv *env, const OrtValue *const *from, OrtValue *const *to,
                           OrtSyncStream *stream, size_t count)
{
    ABI_CHECK(env && ((from && to) || !count), "env or tensors are NULL");
    ABI_CHECK(count, "Invalid arguments provided to CopyTensors.");
    for (size_t i = 0; i < count; i++)
        ABI_TRY(copy_tensor(from[i], to[i]));
    return NULL;
}
