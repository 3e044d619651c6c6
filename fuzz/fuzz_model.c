/* fuzz_model.c: model files: their messages, and all that is done before a run. */
#include "fuzz.h"

#include <stdbool.h>
#include <string.h>

#include "nori/convert.h"
#include "nori/text.h"
#include "nori/tools.h"
#include "onnx/onnx.h"

/* What was read can be written; what was written reads back, and writes the same bytes again. */
void fuzz_wire(const uint8_t *data, size_t size)
{
    nori__arena arena;
    nori__pb_model *model = NULL;
    nori__pb_report report = {0};
    nori_error err = {0};
    nori__text once, twice;
    nori__arena_init(&arena, &nori__malloc);
    nori__text_init(&once, &nori__malloc);
    nori__text_init(&twice, &nori__malloc);
    nori_status s = nori__pb_read_model(&arena, data, size, &model, &report, &err);
    fuzz_error_holds(s, &err);
    if (s == NORI_OK) {
        FUZZ_HOLDS(nori__pb_write_model(model, &once, &err) == NORI_OK);
        s = nori__pb_read_model(&arena, (const uint8_t *)once.data, once.size, &model, &report, &err);
        /* Messages that take much memory for their bytes are refused; both sides count alike but for
         * fields that stood there more than once. */
        FUZZ_HOLDS(s == NORI_OK || s == NORI_ERROR_LIMIT);
        if (s == NORI_OK) {
            FUZZ_HOLDS(nori__pb_write_model(model, &twice, &err) == NORI_OK);
            FUZZ_HOLDS(once.size == twice.size &&
                       (once.size == 0 || memcmp(once.data, twice.data, once.size) == 0));
        }
    }
    nori__text_free(&once);
    nori__text_free(&twice);
    nori__arena_free(&arena);
}

enum { MOST = 16, INPUT_BYTES = 1 << 18 };

/* Ones of the declared type and shape, free sizes taken as 1; NULL: not of that kind, or large. */
static nori_tensor *ones(const nori_value_info *info)
{
    int64_t dims[NORI_MAX_RANK], count = 1;
    nori_tensor *t = NULL;
    if (info->kind != NORI_KIND_TENSOR || info->rank < 0 || nori_type_bits(info->type) < 8) {
        return NULL;
    }
    for (int d = 0; d < info->rank; d++) {
        dims[d] = info->dims[d] < 0 ? 1 : info->dims[d];
        if (dims[d] > INPUT_BYTES || (count *= dims[d] ? dims[d] : 1) > INPUT_BYTES) {
            return NULL;
        }
    }
    if (nori_tensor_create(fuzz_env(), info->type, info->rank, dims, &t, NULL) == NORI_OK) {
        uint8_t *p = nori_tensor_data(t);
        for (size_t i = 0; i < nori_tensor_bytes(t); i += nori_type_bits(info->type) / 8) {
            p[i] = 1;
        }
    }
    return t;
}

/* As the options of any user might be, and run once where inputs can be made up. */
static void compile(const nori_model *model, int level)
{
    nori_session_options o;
    nori_session *session = NULL;
    nori_error err = {0};
    nori_tensor *in[MOST] = {NULL}, *out[MOST] = {NULL};
    nori_session_options_default(&o);
    o.level = level;
    nori_status s = nori_session_create(model, &o, &session, &err);
    fuzz_error_holds(s, &err);
    size_t n_in = s == NORI_OK ? nori_session_input_count(session) : MOST + 1;
    size_t n_out = s == NORI_OK ? nori_session_output_count(session) : 0;
    bool made = n_in <= MOST && n_out <= MOST;
    for (size_t i = 0; made && i < n_in; i++) {
        const nori_value_info *info = nori_session_input(session, i);
        in[i] = info->optional ? NULL : ones(info);
        made = in[i] || info->optional;
    }
    if (made) {
        s = nori_session_run(session, (const nori_tensor *const *)in, n_in, out, n_out, &err);
        fuzz_error_holds(s, &err);
    }
    for (size_t i = 0; i < MOST; i++) {
        nori_tensor_free(in[i]);
        nori_tensor_free(out[i]);
    }
    nori_session_free(session);
}

static void convert(const nori_model *model)
{
    nori_convert_options o;
    nori_convert_report *report = NULL;
    nori_opset_report *found = NULL;
    nori_model *converted = NULL;
    nori_error err = {0};
    fuzz_error_holds(nori_opset_find(model, &found, &err), &err);
    nori_opset_report_free(found);
    nori_convert_options_default(&o);
    o.opset = 18;
    err = (nori_error){0};
    nori_convert(model, &o, &converted, &report, &err);
    nori_convert_report_free(report);
    nori_model_free(converted);
}

void fuzz_load(const uint8_t *data, size_t size)
{
    nori_model *model = NULL;
    nori_error err = {0};
    nori_findings *findings = NULL;
    nori_status s = nori_model_load_memory(fuzz_env(), data, size, NULL, NULL, &model, &err);
    fuzz_error_holds(s, &err);
    if (s != NORI_OK) {
        return;
    }
    fuzz_error_holds(nori_check(model, NULL, &findings, &err), &err);
    nori_findings_free(findings);
    compile(model, 0);
    compile(model, 2);
    convert(model);
    nori_model_free(model);
}

void fuzz_text(const uint8_t *data, size_t size)
{
    nori_model *model = NULL, *again = NULL;
    nori_text_options o;
    nori_error err = {0};
    char *text = NULL;
    size_t length = 0;
    nori_status s = nori_model_from_text(fuzz_env(), (const char *)data, size, NULL, &model, &err);
    fuzz_error_holds(s, &err);
    if (s != NORI_OK) {
        return;
    }
    nori_text_options_default(&o);
    o.inline_elements = INT64_MAX;
    s = nori_model_text(model, &o, &text, &length, NULL, &err);
    fuzz_error_holds(s, &err);
    if (s == NORI_OK) {
        s = nori_model_from_text(fuzz_env(), text, length, NULL, &again, &err);
        FUZZ_HOLDS(s == NORI_OK);
    }
    nori_text_free(text);
    nori_model_free(model);
    nori_model_free(again);
}
