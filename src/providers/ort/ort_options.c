/* ort_options.c: what stands behind "ort:", and the session options made of it. */
#include <stdio.h>

#include "providers/ort/ort.h"

/* Costs are orders of magnitude: PCIe copies and kernel launches of discrete devices, calls into
 * a driver for the others. What a machine really costs is for `nori bench` to say. */
static const ort_engine engines[] = {
    {"cpu", "CPUExecutionProvider", NULL, "cpu", 0, 0, 5e3},
    {"cuda", "CUDAExecutionProvider", NULL, "gpu", 1e4, 1e10, 3e4},
    {"tensorrt", "TensorrtExecutionProvider", NULL, "gpu", 1e4, 1e10, 3e4},
    {"openvino", "OpenVINOExecutionProvider", NULL, "npu", 1e4, 5e9, 5e4},
    {"coreml", "CoreMLExecutionProvider", "CoreML", "npu", 2e4, 1e10, 1e5},
    {"nnapi", "NnapiExecutionProvider", NULL, "npu", 2e4, 2e9, 2e5},
    {"qnn", "QNNExecutionProvider", "QNN", "npu", 2e4, 2e9, 1e5},
    {"webgpu", "WebGpuExecutionProvider", "WebGPU", "gpu", 2e4, 5e9, 5e4},
    {"xnnpack", "XnnpackExecutionProvider", "XNNPACK", "cpu", 0, 0, 5e3},
};

static const ort_engine *find_engine(const char *name)
{
    for (size_t i = 0; i < NORI__COUNT(engines); i++) {
        if (nori__same(engines[i].name, name)) {
            return &engines[i];
        }
    }
    return NULL;
}

static nori_status no_engine(const char *name, nori_error *err)
{
    char list[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < NORI__COUNT(engines); i++) {
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
                                 engines[i].name);
    }
    nori_status s = nori__fail(err, NORI_ERROR_UNAVAILABLE,
                               "ort:%s: nori knows no execution provider of ONNX Runtime by that "
                               "name; there are: %s",
                               name, list);
    nori__hint(err, "write ort:cpu, or ort:cuda:device_id=1,lib=/opt/libonnxruntime.so");
    return s;
}

/* One key and value: ours, the session's (they have a dot), or the engine's. */
static nori_status take_option(ort_self *self, char *key, char *value, const char **lib,
                               nori_error *err)
{
    if (nori__same(key, "lib")) {
        *lib = value;
        return NORI_OK;
    }
    if (nori__same(key, "whole")) { /* 0: parts only, also where all nodes are taken */
        self->parts_only = nori__same(value, "0");
        return NORI_OK;
    }
    bool config = strchr(key, '.') != NULL;
    if (nori__same(key, "spin")) {
        key = (char *)(uintptr_t) "session.intra_op.allow_spinning";
        config = true;
    }
    if (!config && nori__same(self->engine->name, "cpu")) {
        nori_status s = nori__fail(err, NORI_ERROR_ARGUMENT, "ort:cpu has no option \"%s\"", key);
        nori__hint(err, "there are lib=PATH, spin=0 or 1, whole=0 or 1, and session options by their "
                        "full name, as session.set_denormal_as_zero=1");
        return s;
    }
    size_t *n = config ? &self->n_config : &self->n_options;
    if (*n == ORT_MAX_OPTIONS) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "more than %d options", ORT_MAX_OPTIONS);
    }
    (config ? self->config_keys : self->keys)[*n] = key;
    (config ? self->config_values : self->values)[*n] = value;
    ++*n;
    return NORI_OK;
}

/* Where engines that compile for long keep files of their own, by options of theirs; NULL: the session's
 * folder. */
static const struct {
    const char *engine, *key, *value;
} keeping[] = {
    {"tensorrt", "trt_engine_cache_enable", "1"},
    {"tensorrt", "trt_engine_cache_path", NULL},
    {"openvino", "cache_dir", NULL},
    {"coreml", "ModelCacheDirectory", NULL},
};

/* What the caller said himself stays. */
static nori_status keep_in(ort_self *self, const char *folder, nori_error *err)
{
    for (size_t i = 0; i < NORI__COUNT(keeping) && folder; i++) {
        bool said = !nori__same(keeping[i].engine, self->engine->name);
        for (size_t k = 0; k < self->n_options && !said; k++) {
            said = nori__same(self->keys[k], keeping[i].key);
        }
        if (said) {
            continue;
        }
        const char *value = keeping[i].value ? keeping[i].value : nori__arena_text(&self->arena, folder);
        if (!value) {
            return nori__no_memory(err);
        }
        if (self->n_options == ORT_MAX_OPTIONS) {
            return nori__fail(err, NORI_ERROR_ARGUMENT, "more than %d options", ORT_MAX_OPTIONS);
        }
        self->keys[self->n_options] = keeping[i].key;
        self->values[self->n_options++] = value;
        self->keeps = true;
    }
    return NORI_OK;
}

nori_status nori__ort_options(const nori_provider_open *how, ort_self *self, const char **lib,
                              nori_error *err)
{
    self->text_size = strlen(how->options) + 1;
    self->text = nori__alloc(&nori__malloc, self->text_size);
    if (!self->text) {
        return nori__no_memory(err);
    }
    memcpy(self->text, how->options, self->text_size);
    char *rest = strchr(self->text, ':');
    if (rest) {
        *rest++ = 0;
    }
    self->threads = how->threads;
    self->level = how->level;
    self->engine = find_engine(self->text);
    if (!self->engine) {
        return no_engine(self->text, err);
    }
    *lib = NULL;
    while (rest && *rest) {
        char *key = rest, *equals = strchr(rest, '='), *comma = strchr(rest, ',');
        if (!equals || (comma && comma < equals)) {
            return nori__fail(err, NORI_ERROR_ARGUMENT,
                              "ort:%s: option \"%s\": key=value was expected", self->text, key);
        }
        rest = comma ? comma + 1 : NULL;
        *equals = 0;
        if (comma) {
            *comma = 0;
        }
        NORI__TRY(take_option(self, key, equals + 1, lib, err));
    }
    return keep_in(self, how->cache_dir, err);
}

nori_status nori__ort_has_engine(const ort_self *self, nori_error *err)
{
    const ort_api *api = &self->library.api;
    char **names = NULL, list[512] = "";
    int count = 0;
    bool found = false;
    size_t used = 0;
    NORI__TRY(nori__ort_check(api, api->GetAvailableProviders(&names, &count),
                              NORI_ERROR_UNAVAILABLE, err));
    for (int i = 0; i < count; i++) {
        found = found || nori__same(names[i], self->engine->listed);
        used += used < sizeof(list) ? (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
                                                       i ? ", " : "", names[i])
                                    : 0;
    }
    NORI__TRY(nori__ort_check(api, api->ReleaseAvailableProviders(names, count),
                              NORI_ERROR_UNAVAILABLE, err));
    return found ? NORI_OK
                 : nori__fail(err, NORI_ERROR_UNAVAILABLE,
                              "ONNX Runtime %s of %s was built without %s; it has %s",
                              self->library.version, self->library.path, self->engine->listed, list);
}

/* ---- session options ---- */

#define CHECK(call) NORI__TRY(nori__ort_check(api, api->call, NORI_ERROR_UNAVAILABLE, err))

typedef ort_status *(*update_fn)(ort_settings *, ort_texts, ort_texts, size_t);

/* CUDA and TensorRT have settings objects that are filled by key and value. */
static nori_status append_with_settings(const ort_self *self, ort_session_options *o, bool cuda,
                                        nori_error *err)
{
    const ort_api *api = &self->library.api;
    ort_settings *settings = NULL;
    NORI__TRY(nori__ort_check(api,
                              cuda ? api->CreateCUDAProviderOptions(&settings)
                                   : api->CreateTensorRTProviderOptions(&settings),
                              NORI_ERROR_UNAVAILABLE, err));
    update_fn update = cuda ? api->UpdateCUDAProviderOptions : api->UpdateTensorRTProviderOptions;
    nori_status status = NORI_OK;
    if (self->n_options > 0) {
        status = nori__ort_check(api, update(settings, self->keys, self->values, self->n_options),
                                 NORI_ERROR_ARGUMENT, err);
    }
    if (status == NORI_OK) {
        status = nori__ort_check(
            api,
            cuda ? api->SessionOptionsAppendExecutionProvider_CUDA_V2(o, settings)
                 : api->SessionOptionsAppendExecutionProvider_TensorRT_V2(o, settings),
            NORI_ERROR_UNAVAILABLE, err);
    }
    if (cuda) {
        api->ReleaseCUDAProviderOptions(settings);
    } else {
        api->ReleaseTensorRTProviderOptions(settings);
    }
    return status;
}

/* NNAPI is appended by an exported function that takes flags: flags=N. */
static nori_status append_nnapi(const ort_self *self, ort_session_options *o, nori_error *err)
{
    unsigned flags = 0;
    for (size_t i = 0; i < self->n_options; i++) {
        if (!nori__same(self->keys[i], "flags") || sscanf(self->values[i], "%u", &flags) != 1) {
            return nori__fail(err, NORI_ERROR_ARGUMENT, "ort:nnapi: flags=N was expected, not %s=%s",
                              self->keys[i], self->values[i]);
        }
    }
    void *symbol = nori__library_symbol(self->library.handle,
                                        "OrtSessionOptionsAppendExecutionProvider_Nnapi", err);
    if (!symbol) {
        return NORI_ERROR_UNAVAILABLE;
    }
    ort_status *(*append)(ort_session_options *, uint32_t);
    memcpy(&append, &symbol, sizeof(append));
    return nori__ort_check(&self->library.api, append(o, flags), NORI_ERROR_UNAVAILABLE, err);
}

static nori_status append_engine(const ort_self *self, ort_session_options *o, nori_error *err)
{
    const ort_api *api = &self->library.api;
    const char *name = self->engine->name;
    if (nori__same(name, "cpu")) {
        return NORI_OK;
    }
    if (nori__same(name, "cuda") || nori__same(name, "tensorrt")) {
        return append_with_settings(self, o, nori__same(name, "cuda"), err);
    }
    if (nori__same(name, "nnapi")) {
        return append_nnapi(self, o, err);
    }
    if (nori__same(name, "openvino")) {
        CHECK(SessionOptionsAppendExecutionProvider_OpenVINO_V2(o, self->keys, self->values,
                                                                self->n_options));
        return NORI_OK;
    }
    CHECK(SessionOptionsAppendExecutionProvider(o, self->engine->append, self->keys, self->values,
                                                self->n_options));
    return NORI_OK;
}

static nori_status fill(const ort_self *self, const nori_part *part, ort_session_options *o,
                        nori_error *err)
{
    static const int levels[] = {0, 1, 99}; /* none, basic, all */
    const ort_api *api = &self->library.api;
    const char *name;
    int64_t value;
    CHECK(SetSessionLogSeverityLevel(o, 4)); /* errors come as statuses: nothing is printed */
    CHECK(SetSessionGraphOptimizationLevel(o, levels[self->level < 0   ? 0
                                                      : self->level > 2 ? 2
                                                                        : self->level]));
    CHECK(SetIntraOpNumThreads(o, self->threads));
    CHECK(SetInterOpNumThreads(o, 1));
    for (size_t i = 0; i < self->n_config; i++) {
        CHECK(AddSessionConfigEntry(o, self->config_keys[i], self->config_values[i]));
    }
    for (size_t i = 0; part && nori_part_fixed_dim(part, i, &name, &value); i++) {
        CHECK(AddFreeDimensionOverrideByName(o, name, value));
    }
    return append_engine(self, o, err);
}

nori_status nori__ort_session_options(const ort_self *self, const nori_part *part,
                                      ort_session_options **options, nori_error *err)
{
    const ort_api *api = &self->library.api;
    *options = NULL;
    CHECK(CreateSessionOptions(options));
    nori_status status = fill(self, part, *options, err);
    if (status != NORI_OK) {
        api->ReleaseSessionOptions(*options);
        *options = NULL;
    }
    return status;
}
