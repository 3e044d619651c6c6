/* model_text.c: a model as text and back: the textual form of graph/ around what loading does. */
#include "graph/text_form.h"
#include "base/given.h"
#include "nori/text.h"
#include "run/run.h"

void nori_text_options_default(nori_text_options *options)
{
    NORI__ASKED(options, );
    *options = (nori_text_options){.size = sizeof(*options), .inline_elements = -1};
}

void nori_text_read_options_default(nori_text_read_options *options)
{
    NORI__ASKED(options, );
    *options = (nori_text_read_options){.size = sizeof(*options)};
}

nori_status nori_model_text(const nori_model *model, const nori_text_options *options, char **out,
                            size_t *size, nori_text_left *left, nori_error *err)
{
    nori_text_options o;
    nori__text text;
    nori__text_left gone = {0};
    if (!model || !out || !size) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "model, text and size must not be NULL");
    }
    *out = NULL;
    nori_text_options_default(&o);
    if (options) {
        memcpy(&o, options, options->size < sizeof(o) ? options->size : sizeof(o));
    }
    nori__text_init(&text, &nori__malloc);
    nori_status s = nori__pb_to_text(model->source->pb, o.inline_elements, &text, &gone, err);
    /* The caller gives back a pointer alone: what is given is an allocation of exactly that. */
    char *copy = s == NORI_OK ? nori__alloc(&nori__malloc, text.size + 1) : NULL;
    if (s == NORI_OK && !copy) {
        s = nori__no_memory(err);
    }
    if (s == NORI_OK) {
        memcpy(copy, text.data, text.size + 1);
        *out = copy;
        *size = text.size;
        if (left) {
            nori_text_left l = {.size = sizeof(l), .tensors = gone.tensors,
                                .elements = gone.elements, .bytes = gone.bytes};
            size_t n = left->size < sizeof(l) ? left->size : sizeof(l);
            memcpy(left, &l, n);
            left->size = n;
        }
    }
    nori__text_free(&text);
    return s;
}

void nori_text_free(char *text)
{
    nori__release(&nori__malloc, text, text ? strlen(text) + 1 : 0);
}

nori_status nori_model_from_text(nori_env *env, const char *text, size_t size,
                                 const nori_text_read_options *options, nori_model **model,
                                 nori_error *err)
{
    nori_text_read_options o;
    nori__arena arena;
    nori__vec kept;
    nori__text bytes;
    nori__pb_model *pb = NULL;
    if (!model || (!text && size)) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "text and model must not be NULL");
    }
    *model = NULL;
    nori_text_read_options_default(&o);
    if (options) {
        memcpy(&o, options, options->size < sizeof(o) ? options->size : sizeof(o));
    }
    const nori_allocator *a = nori__env_allocator(env);
    nori__arena_init(&arena, a);
    nori__vec_init(&kept, a);
    nori__text_init(&bytes, a);
    nori__text_fill fill = {.find = o.fill, .user = o.fill_user, .kept = &kept};
    nori_status s = nori__pb_from_text(&arena, text ? text : "", size, &fill, &pb, err);
    s = s == NORI_OK ? nori__pb_write_model(pb, &bytes, err) : s;
    if (s == NORI_OK) {
        nori_load_options load;
        nori_load_options_default(&load);
        load.allow_outside = o.allow_outside;
        s = nori__model_from_bytes(env, &bytes, o.base_dir, &load, model, err);
    }
    for (size_t i = 0; i < kept.count; i++) {
        nori_tensor_free(kept.items[i]);
    }
    nori__vec_free(&kept);
    nori__text_free(&bytes);
    nori__arena_free(&arena);
    return s;
}
