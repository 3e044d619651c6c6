/* text.h: models as text, in the textual syntax of ONNX (onnx/docs/Syntax.md): small models can live in
 * tests, reviews and mails. Built on nori.h; the same conventions. docs/text.md says what is written. */
#ifndef NORI_TEXT_H
#define NORI_TEXT_H

#include "nori/nori.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct nori_text_options {
    size_t size;            /* sizeof, set by _default */
    int64_t inline_elements; /* tensors of the main graph with more elements (initializers, values of
                               Constant) are left out and "..." stands in their place; 0: all are.
                               Below 0, as by default: none is where they have 65536 together at
                               most, else those with more than 64 */
} nori_text_options;
NORI_API void nori_text_options_default(nori_text_options *options);

/* What was left out of a text. */
typedef struct nori_text_left {
    size_t size; /* sizeof, set by the caller */
    size_t tensors;
    uint64_t elements, bytes;
} nori_text_left;

/* The model as text that nori_model_from_text reads back to the same meaning, but for what was left
 * out; with the terminator not counted in *size. External data stays a reference. The text is freed by
 * nori_text_free. options and left may be NULL. Errors: UNSUPPORTED (something the text has no form
 * for; where says which), MEMORY. */
NORI_API nori_status nori_model_text(const nori_model *model, const nori_text_options *options,
                                     char **text, size_t *size, nori_text_left *left,
                                     nori_error *error);
NORI_API void nori_text_free(char *text);

typedef struct nori_text_read_options {
    size_t size;          /* sizeof, set by _default */
    const char *base_dir; /* where external data the text names is looked for; NULL refuses it */
    int allow_outside;    /* 1: it may lie outside of base_dir */
    /* The content of a tensor that was left out, by the name of the initializer or of the Constant's
     * output; retained for the caller. NULL: there is none. May itself be NULL. */
    nori_tensor *(*fill)(void *user, const char *name);
    void *fill_user;
} nori_text_read_options;
NORI_API void nori_text_read_options_default(nori_text_read_options *options);

/* A model from its text. Errors say line and column, what was expected and what was found: FORMAT (the
 * syntax), MODEL (what it says is no valid model), LIMIT (nesting), UNSUPPORTED (a tensor was left out
 * and nothing fills it), MEMORY. The text may be freed afterwards. options may be NULL. */
NORI_API nori_status nori_model_from_text(nori_env *env, const char *text, size_t size,
                                          const nori_text_read_options *options, nori_model **model,
                                          nori_error *error);

#ifdef __cplusplus
}
#endif
#endif
