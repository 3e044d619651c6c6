/* ort_provider.c: any ONNX Runtime as an execution provider, for whole models and parts. */
#include <stdio.h>

#include "providers/ort/ort.h"

static void ort_close(void *user)
{
    ort_self *self = user;
    if (self->model_session) {
        self->library.api.ReleaseSession(self->model_session);
    }
    if (self->memory) {
        self->library.api.ReleaseMemoryInfo(self->memory);
    }
    if (self->env) {
        self->library.api.ReleaseEnv(self->env);
    }
    nori__map_free(&self->verdicts);
    nori__arena_free(&self->arena);
    nori__release(&nori__malloc, self->text, self->text_size);
    nori__release(&nori__malloc, self, sizeof(*self));
}

static nori_status start(ort_self *self, const nori_provider_open *how, nori_error *err)
{
    const char *lib = NULL;
    const ort_api *api = &self->library.api;
    NORI__TRY(nori__ort_options(how, self, &lib, err));
    NORI__TRY(nori__ort_load(lib, &self->library, err));
    NORI__TRY(nori__ort_check(api, api->CreateEnv(4, "nori", &self->env), NORI_ERROR_UNAVAILABLE,
                              err));
    NORI__TRY(nori__ort_has_engine(self, err));
    /* Appending an engine is what loads its driver: better told now than in the middle. */
    ort_session_options *options = NULL;
    NORI__TRY(nori__ort_session_options(self, NULL, &options, err));
    api->ReleaseSessionOptions(options);
    return nori__ort_check(api, api->CreateCpuMemoryInfo(1, 0, &self->memory),
                           NORI_ERROR_UNAVAILABLE, err);
}

static nori_status ort_open(const nori_provider_open *how, void **user, nori_error *err)
{
    ort_self *self = nori__alloc_zero(&nori__malloc, sizeof(*self));
    if (!self) {
        return nori__no_memory(err);
    }
    nori__arena_init(&self->arena, &nori__malloc);
    nori__map_init(&self->verdicts, &nori__malloc);
    nori_status status = start(self, how, err);
    if (status != NORI_OK) {
        ort_close(self);
        return status;
    }
    *user = self;
    return NORI_OK;
}

static nori_status ort_describe(void *user, nori_provider_info *info, nori_error *err)
{
    ort_self *self = user;
    (void)err;
    bool host = nori__same(self->engine->kind, "cpu");
    self->device = (nori_device){.size = sizeof(self->device),
                                 .name = self->engine->listed,
                                 .kind = self->engine->kind,
                                 .memory = host ? "host" : "device"};
    snprintf(info->label, sizeof(info->label), "ort:%s", self->engine->name);
    snprintf(info->engine, sizeof(info->engine), "ONNX Runtime %s, %.200s", self->library.version,
             self->library.path);
    info->devices = &self->device;
    info->device_count = 1;
    info->copy_in_fixed_ns = info->copy_out_fixed_ns = self->engine->copy_fixed_ns;
    info->copy_in_bytes_per_s = info->copy_out_bytes_per_s = self->engine->copy_bytes_per_s;
    info->launch_ns = self->engine->launch_ns;
    return NORI_OK;
}

/* ---- parts ---- */

typedef struct ort_part {
    ort_session *session;
    const nori_part *part;
    size_t n_in, n_out;
    const char **in_names, **out_names;
    size_t names_bytes;
} ort_part;

static void ort_free_part(void *user, void *compiled)
{
    ort_self *self = user;
    ort_part *p = compiled;
    if (p->session) {
        self->library.api.ReleaseSession(p->session);
    }
    nori__release(&nori__malloc, p->in_names, p->names_bytes);
    nori__release(&nori__malloc, p, sizeof(*p));
}

static nori_status take_names(ort_part *p, nori_error *err)
{
    p->n_in = nori_part_input_count(p->part);
    p->n_out = nori_part_output_count(p->part);
    size_t count;
    if (!nori__add_size(p->n_in, p->n_out + 1, &count) ||
        !nori__mul_size(count, sizeof(*p->in_names), &p->names_bytes) ||
        !(p->in_names = nori__alloc(&nori__malloc, p->names_bytes))) {
        return nori__no_memory(err);
    }
    p->out_names = p->in_names + p->n_in;
    for (size_t i = 0; i < p->n_in; i++) {
        p->in_names[i] = nori_value_name(nori_part_input(p->part, i));
    }
    for (size_t i = 0; i < p->n_out; i++) {
        p->out_names[i] = nori_value_name(nori_part_output(p->part, i));
    }
    return NORI_OK;
}

nori_status nori__ort_session(const ort_self *self, nori_part *part, ort_session **session,
                              nori_error *err)
{
    const ort_api *api = &self->library.api;
    const char *file = nori_part_file(part);
    const void *bytes = NULL;
    size_t size = 0;
    ort_session_options *options = NULL;
    if (!file) {
        NORI__TRY(nori_part_onnx(part, &bytes, &size, err));
    }
    NORI__TRY(nori__ort_session_options(self, part, &options, err));
    ort_status *s = file ? api->CreateSession(self->env, file, options, session)
                         : api->CreateSessionFromArray(self->env, bytes, size, options, session);
    api->ReleaseSessionOptions(options);
    return nori__ort_check(api, s, NORI_ERROR_UNSUPPORTED, err);
}

static nori_status ort_compile(void *user, nori_part *part, void **compiled, nori_error *err)
{
    ort_part *p = nori__alloc_zero(&nori__malloc, sizeof(*p));
    if (!p) {
        return nori__no_memory(err);
    }
    p->part = part;
    nori_status status = take_names(p, err);
    ort_self *self = user;
    if (status == NORI_OK && nori_part_is_model(part) && self->model_session) {
        p->session = self->model_session;
        self->model_session = NULL;
    } else if (status == NORI_OK) {
        status = nori__ort_session(self, part, &p->session, err);
    }
    if (status != NORI_OK) {
        ort_free_part(user, p);
        return status;
    }
    if (part->cache_dir) {
        nori__part_tell(part,
                        self->keeps ? "left to ONNX Runtime: %s keeps what it compiles in %s; whether "
                                      "it found it there it does not say"
                                    : "not kept: ONNX Runtime has %s keep nothing in %s",
                        self->engine->listed, part->cache_dir);
    }
    *compiled = p;
    return NORI_OK;
}

/* ---- running ---- */

/* Values of one run: inputs that are fed, with their names, then outputs. */
typedef struct feed {
    const ort_value **in;
    ort_value **out;
    const char **names;
    size_t n_in, n_out;
} feed;

static nori_status feed_inputs(ort_self *self, const ort_part *p, nori_call *call, feed *f)
{
    for (size_t i = 0; i < p->n_in; i++) {
        const nori_tensor *t = nori_call_input(call, i);
        ort_value *v = NULL;
        bool own = nori_part_is_model(p->part); /* it has the defaults of its inputs */
        if (!t || (own && t == nori_value_initializer(nori_part_input(p->part, i)))) {
            continue;
        }
        NORI__TRY(nori__ort_value_in(self, t, &v, nori_call_error(call)));
        f->names[f->n_in] = p->in_names[i];
        f->in[f->n_in++] = v;
    }
    for (size_t i = 0; i < p->n_out; i++) {
        const nori_tensor *t = nori_call_output(call, i);
        if (t) { /* written where it is wanted */
            NORI__TRY(nori__ort_value_in(self, t, &f->out[i], nori_call_error(call)));
        }
    }
    return NORI_OK;
}

static nori_status take_outputs(ort_self *self, const ort_part *p, nori_call *call, feed *f)
{
    for (size_t i = 0; i < p->n_out; i++) {
        nori_tensor *t = NULL;
        if (nori_call_output(call, i)) {
            continue;
        }
        ort_value *v = f->out[i];
        f->out[i] = NULL;
        NORI__TRY(nori__ort_value_out(self, v, &t, nori_call_error(call)));
        nori_status status = nori_call_set(call, i, t);
        nori_tensor_free(t);
        NORI__TRY(status);
    }
    return NORI_OK;
}

static nori_status ort_run(void *user, void *compiled, nori_call *call)
{
    ort_self *self = user;
    const ort_part *p = compiled;
    const ort_api *api = &self->library.api;
    size_t count = 2 * p->n_in + p->n_out + 1;
    void *few[32], **room = few;
    if (count > NORI__COUNT(few) &&
        !(room = nori__alloc(&nori__malloc, count * sizeof(*room)))) {
        return nori__no_memory(nori_call_error(call));
    }
    memset(room, 0, count * sizeof(*room));
    feed f = {.in = (const ort_value **)room,
              .names = (const char **)(room + p->n_in),
              .out = (ort_value **)(room + 2 * p->n_in)};
    nori_status status = feed_inputs(self, p, call, &f);
    if (status == NORI_OK) {
        status = nori__ort_check(api,
                                 api->Run(p->session, NULL, f.names, f.in, f.n_in, p->out_names,
                                          p->n_out, f.out),
                                 NORI_ERROR_DATA, nori_call_error(call));
    }
    if (status == NORI_OK) {
        status = take_outputs(self, p, call, &f);
    }
    for (size_t i = 0; i < f.n_in; i++) {
        api->ReleaseValue((ort_value *)(uintptr_t)f.in[i]);
    }
    for (size_t i = 0; i < p->n_out; i++) {
        if (f.out[i]) {
            api->ReleaseValue(f.out[i]);
        }
    }
    if (room != few) {
        nori__release(&nori__malloc, room, count * sizeof(*room));
    }
    return status;
}

/* Only making a session tells; compiling then takes it. */
static nori_status ort_claim_model(void *user, nori_part *model, nori_claim *claim, nori_error *err)
{
    ort_self *self = user;
    nori_error why = {0};
    if (self->parts_only) {
        snprintf(claim->reason, sizeof(claim->reason), "whole=0 was asked for");
        return NORI_OK;
    }
    if (nori_part_node_count(model) == 0) { /* it makes nothing: ONNX Runtime runs no such session */
        snprintf(claim->reason, sizeof(claim->reason), "the model has no node");
        return NORI_OK;
    }
    nori_status status = nori__ort_session(self, model, &self->model_session, &why);
    claim->taken = status == NORI_OK;
    if (status == NORI_ERROR_UNSUPPORTED) {
        snprintf(claim->reason, sizeof(claim->reason), "%.*s", (int)sizeof(claim->reason) - 1,
                 why.message);
        return NORI_OK;
    }
    return status == NORI_OK ? NORI_OK : nori__fail(err, status, "%s", why.message);
}

const nori_provider nori__ort_provider = {
    .size = sizeof(nori_provider),
    .name = "ort",
    .description = "ONNX Runtime, loaded when asked for: ort:cpu, ort:cuda, ort:tensorrt, "
                   "ort:openvino, ort:coreml, ort:nnapi, ort:qnn, ort:webgpu, ort:xnnpack",
    .open = ort_open,
    .close = ort_close,
    .describe = ort_describe,
    .claim_model = ort_claim_model,
    .claim = nori__ort_claim,
    .compile = ort_compile,
    .run = ort_run,
    .free_part = ort_free_part,
};
