/* same_message.h: whether two messages of a model mean the same, field by field of their tables. */
#ifndef NORI_TESTS_SAME_MESSAGE_H
#define NORI_TESTS_SAME_MESSAGE_H

#include "graph/tensor.h"
#include "onnx/fields.h"

/* Set: tensors are the same when name, texts, type, shape and content are, however it is stored, and
 * a list that was left out is an empty one. */
static bool same_tensors_by_content;

static bool same_str(nori__str a, nori__str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static bool same_unknown(const nori__pb_head *a, const nori__pb_head *b)
{
    nori__text x, y;
    nori__text_init(&x, &nori__malloc);
    nori__text_init(&y, &nori__malloc);
    for (const struct nori__pb_unknown *u = a->unknown; u; u = u->next) {
        nori__text_add(&x, u->bytes.p, u->bytes.n);
    }
    for (const struct nori__pb_unknown *u = b->unknown; u; u = u->next) {
        nori__text_add(&y, u->bytes.p, u->bytes.n);
    }
    bool same = same_str((nori__str){x.data, x.size}, (nori__str){y.data, y.size});
    nori__text_free(&x);
    nori__text_free(&y);
    return same;
}

static bool same_message(const nori__pb_message *m, const char *a, const char *b);

static bool same_numbers(const nori__pb_any_list *a, const nori__pb_any_list *b)
{
    nori__pb_cursor x = nori__pb_numbers_of(a), y = nori__pb_numbers_of(b);
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++) {
        same = nori__pb_number(&x) == nori__pb_number(&y);
    }
    return same;
}

static bool same_list(const nori__pb_field *field, const nori__pb_any_list *a,
                      const nori__pb_any_list *b)
{
    if (nori__pb_is_numbers(field)) {
        return same_numbers(a, b);
    }
    size_t size = nori__pb_item_size(field);
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++) {
        const char *x = (const char *)a->items + i * size, *y = (const char *)b->items + i * size;
        switch (field->kind) {
        case F_STRS:
            same =
                same_str(*(const nori__str *)(const void *)x, *(const nori__str *)(const void *)y);
            break;
        case F_MESSAGES:
            same = same_message(field->message, x, y);
            break;
        case F_POINTERS:
            same = same_message(field->message, *(char *const *)(const void *)x,
                                *(char *const *)(const void *)y);
            break;
        default:
            same = memcmp(x, y, size) == 0;
        }
    }
    return same;
}

static bool same_field(const nori__pb_field *field, const char *a, const char *b)
{
    const char *x = a + field->offset, *y = b + field->offset;
    if (field->has >= 0 && *(const bool *)(a + field->has) != *(const bool *)(b + field->has)) {
        return false;
    }
    switch (field->kind) {
    case F_I64:
        return memcmp(x, y, sizeof(int64_t)) == 0;
    case F_I32:
    case F_ENUM:
    case F_FLOAT:
        return memcmp(x, y, sizeof(int32_t)) == 0;
    case F_STR:
        return same_str(*(const nori__str *)(const void *)x, *(const nori__str *)(const void *)y);
    case F_MESSAGE: {
        const char *p = *(char *const *)(const void *)x, *q = *(char *const *)(const void *)y;
        return (p == NULL) == (q == NULL) && (!p || same_message(field->message, p, q));
    }
    case F_ONEOF: {
        const nori__pb_type *p = (const void *)a, *q = (const void *)b;
        if (p->kind != q->kind || p->kind != (nori_kind)field->code) {
            return p->kind == q->kind;
        }
        bool same = same_unknown(p->wrapped, q->wrapped);
        for (uint16_t i = 0; same && i < field->message->count; i++) {
            same = same_field(&field->message->fields[i], a, b);
        }
        return same;
    }
    default:
        return same_list(field, (const void *)x, (const void *)y);
    }
}

static bool same_entries(const nori__pb_entry *a, size_t n, const nori__pb_entry *b, size_t m)
{
    bool same = n == m;
    for (size_t i = 0; same && i < n; i++) {
        same = same_str(a[i].key, b[i].key) && same_str(a[i].value, b[i].value);
    }
    return same;
}

static bool same_elements(const nori_tensor *a, const nori_tensor *b)
{
    const nori_string *x = a->data, *y = b->data;
    bool same = a->bytes == b->bytes;
    for (int64_t i = 0; same && a->type == NORI_STRING && i < a->count; i++) {
        same = x[i].size == y[i].size && (x[i].size == 0 || memcmp(x[i].data, y[i].data, x[i].size) == 0);
    }
    for (int64_t i = 0; same && a->type == NORI_FLOAT && i < a->count; i++) { /* any NaN is a NaN */
        float p = ((const float *)a->data)[i], q = ((const float *)b->data)[i];
        same = (p != p && q != q) || memcmp(&p, &q, sizeof(p)) == 0;
    }
    if (same && a->type != NORI_STRING && a->type != NORI_FLOAT && a->bytes) {
        same = memcmp(a->data, b->data, a->bytes) == 0;
    }
    return same;
}

static bool same_tensor(const nori__pb_tensor *a, const nori__pb_tensor *b)
{
    nori_tensor *x = NULL, *y = NULL;
    bool same = same_str(a->name, b->name) && same_str(a->doc, b->doc) && a->data_type == b->data_type &&
                a->data_location == b->data_location && a->dims.count == b->dims.count &&
                same_entries(a->metadata.items, a->metadata.count, b->metadata.items, b->metadata.count) &&
                same_entries(a->external.items, a->external.count, b->external.items, b->external.count) &&
                same_unknown(&a->head, &b->head);
    for (size_t i = 0; same && i < a->dims.count; i++) {
        same = a->dims.items[i] == b->dims.items[i];
    }
    if (same && a->data_location != 1) {
        same = nori__tensor_from_pb(&nori__malloc, a, NULL, &x, NULL) == NORI_OK &&
               nori__tensor_from_pb(&nori__malloc, b, NULL, &y, NULL) == NORI_OK && same_elements(x, y);
    }
    nori_tensor_free(x);
    nori_tensor_free(y);
    return same;
}

static bool same_message(const nori__pb_message *m, const char *a, const char *b)
{
    if (same_tensors_by_content && m == &nori__pb_tensor_message) {
        return same_tensor((const void *)a, (const void *)b);
    }
    if (!same_unknown((const void *)a, (const void *)b)) {
        print_error("unknown fields of a %s differ\n", m->name);
        return false;
    }
    for (uint16_t i = 0; i < m->count; i++) {
        if (!same_field(&m->fields[i], a, b)) {
            print_error("%s.%s differs\n", m->name, m->fields[i].name);
            return false;
        }
    }
    return true;
}

#endif
