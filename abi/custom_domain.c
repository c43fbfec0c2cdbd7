/* custom_domain.c - domains of operators, and the libraries that register them.
 *
 * A domain holds no operator: the client keeps domain and operators until the sessions that use
 * them are released. A library is a shared object whose function RegisterCustomOps adds domains to
 * the options that it is given.
 */
#include "custom.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

OrtStatus *abi_CreateCustomOpDomain(const char *name, OrtCustomOpDomain **out)
{
    ABI_CHECK(name && out, "domain is NULL");
    OrtCustomOpDomain *domain = calloc(1, sizeof *domain);
    if (domain)
        domain->name = strdup(name);
    if (!domain || !domain->name) {
        free(domain);
        return abi_no_memory();
    }
    *out = domain;
    return NULL;
}

void abi_ReleaseCustomOpDomain(OrtCustomOpDomain *domain)
{
    if (!domain)
        return;
    free(domain->ops);
    free(domain->name);
    free(domain);
}

OrtStatus *abi_CustomOpDomain_Add(OrtCustomOpDomain *domain, const OrtCustomOp *op)
{
    ABI_CHECK(domain && op, "custom_op_domain or op is NULL");
    const OrtCustomOp **ops = abi_grow(domain->ops, domain->count, sizeof *ops);
    if (!ops)
        return abi_no_memory();
    domain->ops = ops;
    ops[domain->count++] = op;
    return NULL;
}

OrtStatus *abi_AddCustomOpDomain(OrtSessionOptions *options, OrtCustomOpDomain *domain)
{
    ABI_CHECK(options && domain, "options or custom_op_domain is NULL");
    const OrtCustomOpDomain **domains =
        abi_grow(options->domains, options->domain_count, sizeof *domains);
    if (!domains)
        return abi_no_memory();
    options->domains = domains;
    domains[options->domain_count++] = domain;
    return NULL;
}

/* ----------------------------------------------------------------------------------- libraries */

typedef OrtStatus *register_fn(OrtSessionOptions *, const OrtApiBase *);

void abi_library_release(abi_library *library)
{
    if (__atomic_sub_fetch(&library->users, 1, __ATOMIC_ACQ_REL))
        return;
    dlclose(library->handle);
    free(library);
}

static register_fn *find(void *handle, const char *name)
{
    union {
        void *object;
        register_fn *function;
    } entry = {dlsym(handle, name)};
    return entry.function;
}

static OrtStatus *open_library(const char *path, void **handle, register_fn **entry)
{
    *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*handle)
        return abi_fail(ABI_FAIL, "Failed to load library %s with error: %s", path, dlerror());
    *entry = find(*handle, "RegisterCustomOps");
    if (*entry)
        return NULL;
    OrtStatus *status =
        abi_fail(ABI_FAIL, "Failed to get symbol RegisterCustomOps with error: %s", dlerror());
    dlclose(*handle);
    return status;
}

/* The handle is the client's to close. */
OrtStatus *abi_RegisterCustomOpsLibrary(OrtSessionOptions *options, const char *path, void **handle)
{
    register_fn *entry;
    ABI_CHECK(options && path && handle, "options or library_path is NULL");
    ABI_TRY(open_library(path, handle, &entry));
    return entry(options, abi_OrtGetApiBase());
}

OrtStatus *abi_options_keep(OrtSessionOptions *options, abi_library *library)
{
    abi_library **libraries =
        abi_grow(options->libraries, options->library_count, sizeof *libraries);
    if (!libraries)
        return abi_no_memory();
    options->libraries = libraries;
    libraries[options->library_count++] = library;
    __atomic_add_fetch(&library->users, 1, __ATOMIC_RELAXED);
    return NULL;
}

/* The library stays loaded as long as the options, and the sessions made with them. */
OrtStatus *abi_RegisterCustomOpsLibrary_V2(OrtSessionOptions *options, const char *path)
{
    register_fn *entry;
    void *handle;
    ABI_CHECK(options && path, "options or library_name is NULL");
    ABI_TRY(open_library(path, &handle, &entry));
    abi_library *library = calloc(1, sizeof *library);
    if (!library) {
        dlclose(handle);
        return abi_no_memory();
    }
    *library = (abi_library){1, handle};
    OrtStatus *status = abi_options_keep(options, library);
    if (!status)
        status = entry(options, abi_OrtGetApiBase());
    abi_library_release(library);
    return status;
}

OrtStatus *abi_RegisterCustomOpsUsingFunction(OrtSessionOptions *options, const char *name)
{
    ABI_CHECK(options && name, "options or registration_func_name is NULL");
    ABI_CHECK(*name, "RegisterCustomOpsUsingFunction: Registration function name must be "
                     "specified.");
    register_fn *entry = find(RTLD_DEFAULT, name);
    if (!entry)
        return abi_fail(ABI_FAIL, "Failed to get symbol %s with error: %s", name, dlerror());
    return entry(options, abi_OrtGetApiBase());
}

/* It stands for onnxruntime-extensions linked in, which stock builds haven't either. */
OrtStatus *abi_EnableOrtCustomOps(OrtSessionOptions *options)
{
    return abi_fail(ABI_FAIL, "EnableOrtCustomOps: Custom operators in onnxruntime-extensions are "
                              "not enabled");
}
