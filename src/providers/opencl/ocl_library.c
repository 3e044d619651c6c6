/* ocl_library.c: the OpenCL loader, opened when asked for, and its status codes by word. */
#include <stdio.h>

#include "providers/opencl/opencl.h"

static const char *const usual_names[] = {
#ifdef __APPLE__
    "/System/Library/Frameworks/OpenCL.framework/OpenCL",
#else
    "libOpenCL.so.1", "libOpenCL.so", /* Android's has no version */
#endif
};

const char *nori__ocl_word(int32_t code)
{
    static const struct {
        int32_t code;
        const char *word;
    } words[] = {
        {0, "CL_SUCCESS"},
        {-1, "CL_DEVICE_NOT_FOUND"},
        {-2, "CL_DEVICE_NOT_AVAILABLE"},
        {-3, "CL_COMPILER_NOT_AVAILABLE"},
        {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
        {-5, "CL_OUT_OF_RESOURCES"},
        {-6, "CL_OUT_OF_HOST_MEMORY"},
        {-7, "CL_PROFILING_INFO_NOT_AVAILABLE"},
        {-11, "CL_BUILD_PROGRAM_FAILURE"},
        {-12, "CL_MAP_FAILURE"},
        {-13, "CL_MISALIGNED_SUB_BUFFER_OFFSET"},
        {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
        {-15, "CL_COMPILE_PROGRAM_FAILURE"},
        {-30, "CL_INVALID_VALUE"},
        {-31, "CL_INVALID_DEVICE_TYPE"},
        {-32, "CL_INVALID_PLATFORM"},
        {-33, "CL_INVALID_DEVICE"},
        {-34, "CL_INVALID_CONTEXT"},
        {-36, "CL_INVALID_COMMAND_QUEUE"},
        {-38, "CL_INVALID_MEM_OBJECT"},
        {-42, "CL_INVALID_BINARY"},
        {-43, "CL_INVALID_BUILD_OPTIONS"},
        {-44, "CL_INVALID_PROGRAM"},
        {-45, "CL_INVALID_PROGRAM_EXECUTABLE"},
        {-46, "CL_INVALID_KERNEL_NAME"},
        {-47, "CL_INVALID_KERNEL_DEFINITION"},
        {-48, "CL_INVALID_KERNEL"},
        {-49, "CL_INVALID_ARG_INDEX"},
        {-50, "CL_INVALID_ARG_VALUE"},
        {-51, "CL_INVALID_ARG_SIZE"},
        {-52, "CL_INVALID_KERNEL_ARGS"},
        {-53, "CL_INVALID_WORK_DIMENSION"},
        {-54, "CL_INVALID_WORK_GROUP_SIZE"},
        {-55, "CL_INVALID_WORK_ITEM_SIZE"},
        {-58, "CL_INVALID_EVENT"},
        {-59, "CL_INVALID_OPERATION"},
        {-61, "CL_INVALID_BUFFER_SIZE"},
        {-63, "CL_INVALID_GLOBAL_WORK_SIZE"},
        {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
    };
    for (size_t i = 0; i < NORI__COUNT(words); i++) {
        if (words[i].code == code) {
            return words[i].word;
        }
    }
    return "a status that OpenCL 1.2 does not name";
}

nori_status nori__ocl_check(const ocl_self *self, int32_t code, const char *what,
                            nori_status status, nori_error *err)
{
    if (code == 0) {
        return NORI_OK;
    }
    return nori__fail(err, status, "OpenCL: %s gave %s (%d)%s%s", what, nori__ocl_word(code),
                      (int)code, self->gpu.device_name[0] ? " on " : "", self->gpu.device_name);
}

static nori_status open_library(ocl_self *self, nori_error *err)
{
    char tried[1024] = "";
    size_t used = 0, n = self->lib ? 1 : NORI__COUNT(usual_names);
    for (size_t i = 0; i < n && !self->library; i++) {
        nori_error why = {0};
        snprintf(self->path, sizeof(self->path), "%s", self->lib ? self->lib : usual_names[i]);
        self->library = nori__library_open(self->path, &why);
        if (!self->library && used < sizeof(tried)) {
            used += (size_t)snprintf(tried + used, sizeof(tried) - used, "%s%.300s", i ? "; " : "",
                                     why.message);
        }
    }
    if (self->library) {
        return NORI_OK;
    }
    nori__fail(err, NORI_ERROR_UNAVAILABLE, "OpenCL's loader is not here: %s", tried);
    nori__hint(err, "Debian has it as ocl-icd-libopencl1, or name one by opencl:lib=PATH");
    return NORI_ERROR_UNAVAILABLE;
}

nori_status nori__ocl_load(ocl_self *self, nori_error *err)
{
    nori_error why = {0};
    NORI__TRY(open_library(self, err));
#define OCL_TAKE(name, result, arguments)                                                         \
    {                                                                                             \
        void *symbol = nori__library_symbol(self->library, #name, &why);                          \
        if (!symbol) {                                                                            \
            nori__fail(err, NORI_ERROR_UNAVAILABLE,                                               \
                       "library %s lacks symbol %s, which OpenCL 1.2 has", self->path, #name);    \
            nori__library_close(self->library);                                                   \
            self->library = NULL;                                                                 \
            return NORI_ERROR_UNAVAILABLE;                                                        \
        }                                                                                         \
        memcpy(&self->api.name, &symbol, sizeof(symbol)); /* C casts no data to code */           \
    }
    OCL_CALLS(OCL_TAKE)
#undef OCL_TAKE
    return NORI_OK;
}
