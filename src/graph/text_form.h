/* text_form.h: the textual form of a model from the inside: messages to text and back.
 *
 * The grammar is that of onnx/docs/Syntax.md. What it has no words for stands in comments that begin
 * with "#:" in front of the thing they are about; other readers pass over them:
 *
 *     #: doc_string: "..." metadata_props: ["key": "value"] bytes: "0a03..."
 *
 * Their strings have the escapes \n \t \" \\ \xHH, so that a note stays in its line. bytes are fields
 * in protobuf's own form: unknown ones and those no text was thought of for. */
#ifndef NORI_GRAPH_TEXT_FORM_H
#define NORI_GRAPH_TEXT_FORM_H

#include "graph/tensor.h"
#include "onnx/onnx.h"

/* "float", "int64", "float8e4m3fn" ...; NULL: there is no such type. */
const char *nori__text_type_name(int32_t type);
int32_t nori__text_type_find(const char *name, size_t size); /* 0: none */
const char *nori__text_kind_name(nori__pb_attr_kind kind);   /* "ints"; NULL */
nori__pb_attr_kind nori__text_kind_find(const char *name, size_t size);

/* text_write.c */
typedef struct nori__text_left {
    size_t tensors;
    uint64_t elements, bytes;
} nori__text_left;
/* inline_elements: as nori_text_options has it. */
nori_status nori__pb_to_text(const nori__pb_model *model, int64_t inline_elements, nori__text *out,
                             nori__text_left *left, nori_error *err);

/* text_read.c */
typedef struct nori__text_fill {
    nori_tensor *(*find)(void *user, const char *name); /* NULL: nothing fills */
    void *user;
    nori__vec *kept; /* what find gave: the messages point into it */
} nori__text_fill;
/* The messages point into text and live in arena. */
nori_status nori__pb_from_text(nori__arena *arena, const char *text, size_t size,
                               const nori__text_fill *fill, nori__pb_model **model,
                               nori_error *err);
/* A graph alone: "name (inputs) => (outputs) <initializers> { nodes }". */
nori_status nori__graph_from_text(nori__arena *arena, const char *text, size_t size,
                                  nori__pb_graph **graph, nori_error *err);

#endif
