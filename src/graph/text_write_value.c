/* text_write_value.c: types, tensors and attributes as text. */
#include "base/half.h"
#include "graph/text_write.h"

/* ---- types ---- */

static bool no_more(const nori__pb_head *h)
{
    return !h || !h->unknown;
}

static bool shape_has_text(const nori__pb_type *t, bool outermost)
{
    if (!t->shape) {
        return true;
    }
    bool fine = no_more(&t->shape->head);
    for (size_t i = 0; fine && i < t->shape->dims.count; i++) {
        const nori__pb_dim *d = &t->shape->dims.items[i];
        fine = no_more(&d->head) && (outermost || !d->denotation.n) && !(d->has_value && d->has_param) &&
               !(d->has_value && d->value < 0);
    }
    return fine;
}

bool nori__type_has_text(const nori__pb_type *type)
{
    bool fine = true;
    for (const nori__pb_type *t = type; fine && t; t = t->of) {
        bool leaf = t->kind == NORI_KIND_TENSOR || t->kind == NORI_KIND_SPARSE;
        bool keyed = leaf || t->kind == NORI_KIND_MAP;
        fine = no_more(&t->head) && no_more(t->wrapped) && t->kind != NORI_KIND_UNKNOWN &&
               (t == type || !t->denotation.n) && shape_has_text(t, t == type) &&
               (!keyed || nori__text_type_name(t->elem)) && (leaf || t->of);
    }
    return fine;
}

static void put_shape(nori__text_out *o, const nori__pb_shape *shape)
{
    for (size_t i = 0; shape && i < shape->dims.count; i++) {
        const nori__pb_dim *d = &shape->dims.items[i];
        nori__put_word(o, i ? "," : "[");
        if (d->has_value) {
            nori__text_printf(o->text, "%lld", (long long)d->value);
        } else if (d->has_param) {
            nori__put_id(o, d->param);
        } else {
            nori__put_word(o, "?");
        }
    }
    nori__put_word(o, !shape ? "[]" : shape->dims.count ? "]" : "");
}

void nori__put_type(nori__text_out *o, const nori__pb_type *type)
{
    size_t closing = 0;
    for (const nori__pb_type *t = type; t; t = t->of) {
        switch (t->kind) {
        case NORI_KIND_SEQUENCE:
            nori__put_word(o, "seq(");
            break;
        case NORI_KIND_OPTIONAL:
            nori__put_word(o, "optional(");
            break;
        case NORI_KIND_MAP:
            nori__text_printf(o->text, "map(%s, ", nori__text_type_name(t->elem));
            break;
        default:
            nori__text_printf(o->text, "%s%s", t->kind == NORI_KIND_SPARSE ? "sparse_tensor(" : "",
                              nori__text_type_name(t->elem));
            put_shape(o, t->shape);
        }
        closing += t->kind != NORI_KIND_TENSOR;
    }
    while (closing-- > 0) {
        nori__put_word(o, ")");
    }
}

/* ---- tensors ---- */

static void put_element(nori__text_out *o, const nori_tensor *t, int64_t i)
{
    switch (t->type) {
    case NORI_FLOAT:
    case NORI_COMPLEX64:
        nori__put_float(o, ((const float *)t->data)[i], false);
        break;
    case NORI_DOUBLE:
    case NORI_COMPLEX128:
        nori__put_double(o, ((const double *)t->data)[i]);
        break;
    case NORI_STRING: {
        const nori_string *s = (const nori_string *)t->data + i;
        nori__put_quoted(o, (nori__str){s->data, s->size});
        break;
    }
    case NORI_UINT64:
        nori__text_printf(o->text, "%llu", (unsigned long long)((const uint64_t *)t->data)[i]);
        break;
    case NORI_FLOAT16:
    case NORI_BFLOAT16: /* the bits, as the syntax has it */
        nori__text_printf(o->text, "%u", ((const uint16_t *)t->data)[i]);
        break;
    case NORI_INT8:
    case NORI_INT16:
    case NORI_INT32:
    case NORI_INT64:
    case NORI_UINT16:
    case NORI_UINT32:
        nori__text_printf(o->text, "%lld", (long long)nori__tensor_get_i64(t, i));
        break;
    default: /* a byte each: of bits, or of several small elements */
        nori__text_printf(o->text, "%u", ((const uint8_t *)t->data)[i]);
    }
}

static void put_content(nori__text_out *o, const nori_tensor *t)
{
    int64_t count = t->count;
    unsigned bits = nori_type_bits((nori_type)t->type);
    if (t->type == NORI_COMPLEX64 || t->type == NORI_COMPLEX128) {
        count *= 2;
    } else if (bits < 8 && t->type != NORI_STRING) {
        count = (int64_t)t->bytes;
    }
    nori__put_word(o, "{");
    for (int64_t i = 0; i < count && !o->text->failed; i++) {
        nori__put_word(o, i == 0 ? "" : i % 16 ? ", " : ",");
        if (i > 0 && i % 16 == 0) {
            nori__put_line(o);
            nori__put_word(o, "    ");
        }
        put_element(o, t, i);
    }
    nori__put_word(o, "}");
}

static void put_external(nori__text_out *o, const nori__pb_tensor *t)
{
    nori__put_word(o, "[");
    for (size_t i = 0; i < t->external.count; i++) {
        nori__put_word(o, i ? ", " : "");
        nori__put_quoted(o, t->external.items[i].key);
        nori__put_word(o, ": ");
        nori__put_quoted(o, t->external.items[i].value);
    }
    nori__put_word(o, "]");
}

void nori__put_tensor(nori__text_out *o, const nori__pb_tensor *t, bool equals, bool may_leave)
{
    const char *type = nori__text_type_name(t->data_type);
    nori_tensor *content = NULL;
    nori__put_word(o, type ? type : "undefined");
    for (size_t i = 0; i < t->dims.count; i++) {
        nori__text_printf(o->text, "%s%lld", i ? "," : "[", (long long)t->dims.items[i]);
    }
    nori__put_word(o, t->dims.count ? "]" : "");
    if (t->name.n || equals) {
        nori__put_word(o, " ");
        nori__put_id(o, t->name);
    }
    nori__put_word(o, equals ? " = " : " ");
    if (t->data_location == 1) {
        put_external(o, t);
        return;
    }
    nori_status s = nori__tensor_from_pb(o->a, t, NULL, &content, o->err);
    if (s != NORI_OK) {
        o->status = o->status == NORI_OK ? s : o->status;
        return;
    }
    if (may_leave && content->count > o->most && content->type != NORI_STRING) {
        nori__put_word(o, "{...}");
        o->left.tensors++;
        o->left.elements += (uint64_t)content->count;
        o->left.bytes += content->bytes;
    } else {
        put_content(o, content);
    }
    nori_tensor_free(content);
}

void nori__put_sparse(nori__text_out *o, const nori__pb_sparse *s)
{
    const char *type = s->values ? nori__text_type_name(s->values->data_type) : NULL;
    nori__text_printf(o->text, "sparse_tensor(%s", type ? type : "undefined");
    for (size_t i = 0; i < s->dims.count; i++) {
        nori__text_printf(o->text, "%s%lld", i ? "," : "[", (long long)s->dims.items[i]);
    }
    nori__put_word(o, s->dims.count ? "])" : ")");
    if (!s->values || !s->indices) {
        o->status = nori__fail(o->err, NORI_ERROR_UNSUPPORTED,
                               "a sparse tensor without values or indices has no textual form");
        return;
    }
    if (s->values->name.n) {
        nori__put_word(o, " ");
        nori__put_id(o, s->values->name);
    }
    nori__pb_tensor values = *s->values;
    values.name = (nori__str){NULL, 0};
    nori__put_word(o, " = ");
    nori__put_tensor(o, &values, false, false);
    nori__put_word(o, " at ");
    nori__put_tensor(o, s->indices, false, false);
}

/* ---- attributes ---- */

static bool tensor_has_text(const nori__pb_tensor *t)
{
    return nori__text_type_name(t->data_type) && t->data_type > 0;
}

static bool sparse_has_text(const nori__pb_sparse *s)
{
    return s->values && s->indices && no_more(&s->head) && tensor_has_text(s->values) &&
           tensor_has_text(s->indices) && no_more(&s->values->head) && !s->values->doc.n &&
           !s->values->metadata.count && no_more(&s->indices->head) && !s->indices->doc.n &&
           !s->indices->metadata.count;
}

bool nori__attr_has_text(const nori__pb_attr *a)
{
    bool fine = nori__text_kind_name(a->kind) != NULL;
    if (a->ref_name.n) {
        return fine;
    }
    switch (a->kind) {
    case NORI__ATTR_TENSOR:
        fine = a->t && tensor_has_text(a->t);
        break;
    case NORI__ATTR_GRAPH:
        fine = a->g != NULL;
        break;
    case NORI__ATTR_TYPE:
        fine = a->tp && nori__type_has_text(a->tp) && !a->tp->denotation.n &&
               shape_has_text(a->tp, false);
        break;
    case NORI__ATTR_SPARSE:
        fine = a->sparse && sparse_has_text(a->sparse);
        break;
    default:
        break;
    }
    for (size_t i = 0; a->kind == NORI__ATTR_TENSORS && i < a->tensors.count; i++) {
        fine = fine && tensor_has_text(&a->tensors.items[i]);
    }
    for (size_t i = 0; a->kind == NORI__ATTR_SPARSES && i < a->sparses.count; i++) {
        fine = fine && sparse_has_text(&a->sparses.items[i]);
    }
    for (size_t i = 0; a->kind == NORI__ATTR_TYPES && i < a->types.count; i++) {
        const nori__pb_type *t = &a->types.items[i];
        fine = fine && nori__type_has_text(t) && !t->denotation.n && shape_has_text(t, false);
    }
    return fine || !a->head.bytes.p;
}

static void put_list(nori__text_out *o, const nori__pb_attr *a, size_t count)
{
    nori__put_word(o, "[");
    for (size_t i = 0; i < count; i++) {
        nori__put_word(o, i ? ", " : "");
        switch (a->kind) {
        case NORI__ATTR_FLOATS:
            nori__put_float(o, a->floats.items[i], true);
            break;
        case NORI__ATTR_INTS:
            nori__text_printf(o->text, "%lld", (long long)a->ints.items[i]);
            break;
        case NORI__ATTR_STRINGS:
            nori__put_quoted(o, a->strings.items[i]);
            break;
        case NORI__ATTR_TENSORS: {
            const nori__pb_tensor *t = &a->tensors.items[i];
            nori__put_note(o, &(nori__note_out){.doc = t->doc, .metadata = t->metadata.items,
                                                .n_metadata = t->metadata.count, .head = &t->head});
            nori__put_tensor(o, t, false, false);
            break;
        }
        case NORI__ATTR_GRAPHS:
            nori__put_graph(o, a->graphs.items[i]);
            break;
        case NORI__ATTR_SPARSES:
            nori__put_sparse(o, &a->sparses.items[i]);
            break;
        default:
            nori__put_type(o, &a->types.items[i]);
        }
    }
    nori__put_word(o, "]");
}

static void put_value(nori__text_out *o, const nori__pb_attr *a, bool may_leave)
{
    switch (a->kind) {
    case NORI__ATTR_FLOAT:
        nori__put_float(o, a->f, true);
        break;
    case NORI__ATTR_INT:
        nori__text_printf(o->text, "%lld", (long long)a->i);
        break;
    case NORI__ATTR_STRING:
        nori__put_quoted(o, a->s);
        break;
    case NORI__ATTR_TENSOR:
        nori__put_note(o, &(nori__note_out){.doc = a->t->doc, .metadata = a->t->metadata.items,
                                            .n_metadata = a->t->metadata.count,
                                            .head = &a->t->head});
        nori__put_tensor(o, a->t, false, may_leave);
        break;
    case NORI__ATTR_GRAPH:
        nori__put_graph(o, a->g);
        break;
    case NORI__ATTR_SPARSE:
        nori__put_sparse(o, a->sparse);
        break;
    case NORI__ATTR_TYPE:
        nori__put_type(o, a->tp);
        break;
    case NORI__ATTR_FLOATS:
        put_list(o, a, a->floats.count);
        break;
    case NORI__ATTR_INTS:
        put_list(o, a, a->ints.count);
        break;
    case NORI__ATTR_STRINGS:
        put_list(o, a, a->strings.count);
        break;
    case NORI__ATTR_TENSORS:
        put_list(o, a, a->tensors.count);
        break;
    case NORI__ATTR_GRAPHS:
        put_list(o, a, a->graphs.count);
        break;
    case NORI__ATTR_SPARSES:
        put_list(o, a, a->sparses.count);
        break;
    default:
        put_list(o, a, a->types.count);
    }
}

void nori__put_attr(nori__text_out *o, const nori__pb_attr *a, bool may_leave)
{
    const char *kind = nori__text_kind_name(a->kind);
    nori__put_note(o, &(nori__note_out){.doc = a->doc, .head = &a->head});
    nori__put_id(o, a->name);
    if (a->ref_name.n) {
        nori__text_printf(o->text, kind ? ": %s = @" : "%s = @", kind ? kind : "");
        nori__put_id(o, a->ref_name);
    } else if (!kind || !nori__attr_has_text(a)) {
        o->status = nori__fail(o->err, NORI_ERROR_UNSUPPORTED,
                               "attribute %.*s has no kind that the textual form knows",
                               (int)(a->name.n < 100 ? a->name.n : 100), a->name.n ? a->name.p : "");
    } else {
        nori__text_printf(o->text, ": %s = ", kind);
        put_value(o, a, may_leave);
    }
}
