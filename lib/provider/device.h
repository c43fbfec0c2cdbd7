/* device.h - devices as values lie on them. Of each, an environment has one open while a session, a
 * value or a caller holds it; sessions open theirs beside it (ort_provider_setup), so that its
 * memory serves all of them.
 */
#ifndef ORT_PROVIDER_DEVICE_H
#define ORT_PROVIDER_DEVICE_H

#include <pthread.h>

#include "ort_provider.h"

typedef struct ort_devices { /* of an environment and those that derive from it */
    pthread_mutex_t lock;
    ort_device *first;
} ort_devices;

struct ort_device { /* declared in ort.h */
    ort_device *next;
    ort_devices *all;
    int references; /* under the lock */
    const ort_provider *row;
    void *device;
    char name[512]; /* "opencl:device=0" */
};

ort_devices *ort_devices_new(void); /* NULL: no memory */
void ort_devices_free(ort_devices *devices);
/* The one whose memory serves a device that is opened by `setup`; opened when there is none. A
 * reference; NULL where the provider has no memory for values. */
ort_status ort_devices_get(ort_devices *devices, const ort_provider *row,
                           const ort_provider_setup *setup, ort_device **device, ort_error *err);
static inline bool ort_provider_has_memory(const ort_provider *row)
{
    return row->memory != NULL;
}
ort_device *ort_device_retain(ort_device *device);

#endif
