/* device.c - the devices of an environment on which values lie: found, opened, counted. */
#include "provider/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

ort_devices *ort_devices_new(void)
{
    ort_devices *devices = calloc(1, sizeof *devices);
    if (devices)
        pthread_mutex_init(&devices->lock, NULL);
    return devices;
}

void ort_devices_free(ort_devices *devices)
{
    if (!devices)
        return;
    pthread_mutex_destroy(&devices->lock);
    free(devices);
}

/* As a list of providers would have it. */
static void write_name(ort_device *d, const ort_provider_setup *setup)
{
    snprintf(d->name, sizeof d->name, "%s", d->row->name);
    for (int i = 0; i < setup->option_count; i++) {
        size_t used = strlen(d->name);
        snprintf(d->name + used, sizeof d->name - used, ":%s=%s", setup->options[i].key,
                 setup->options[i].value);
    }
}

static ort_status open_device(ort_devices *devices, const ort_provider *row,
                              const ort_provider_setup *setup, ort_device **device,
                              ort_error *err)
{
    ort_device *d = calloc(1, sizeof *d);
    if (!d)
        return ort_error_memory(err, sizeof *d);
    *d = (ort_device){.next = devices->first, .all = devices, .references = 1, .row = row};
    write_name(d, setup);
    ort_status status = row->open(setup, &d->device, err);
    if (status != ORT_OK) {
        free(d);
        return status;
    }
    devices->first = *device = d;
    return ORT_OK;
}

ort_status ort_devices_get(ort_devices *devices, const ort_provider *row,
                           const ort_provider_setup *setup, ort_device **device, ort_error *err)
{
    ort_status status = ORT_OK;
    *device = NULL;
    if (!devices || !ort_provider_has_memory(row))
        return ORT_OK;
    pthread_mutex_lock(&devices->lock);
    for (ort_device *d = devices->first; d && !*device; d = d->next)
        if (d->row == row && row->shares(d->device, setup))
            *device = d;
    if (*device)
        (*device)->references++;
    else
        status = open_device(devices, row, setup, device, err);
    pthread_mutex_unlock(&devices->lock);
    return status;
}

ort_device *ort_device_retain(ort_device *device)
{
    pthread_mutex_lock(&device->all->lock);
    device->references++;
    pthread_mutex_unlock(&device->all->lock);
    return device;
}

void ort_device_free(ort_device *device)
{
    if (!device)
        return;
    ort_devices *all = device->all;
    pthread_mutex_lock(&all->lock);
    if (--device->references == 0) {
        ort_device **at = &all->first;
        while (*at != device)
            at = &(*at)->next;
        *at = device->next;
        device->row->close(device->device);
        free(device);
    }
    pthread_mutex_unlock(&all->lock);
}
