/* text_read_value.c: types, tensors and attributes from text. */
#include "base/byte_order.h"
#include "base/half.h"
#include "graph/text_read.h"

void nori__text_entries(nori__text_in *r, void *list)
{
    NORI__PB_LIST(nori__pb_entry) entries = {0};
    while (r->status == NORI_OK && !nori__text_match(r, ']')) {
        if (entries.count && !nori__text_need(r, ',', "',' or ']'")) {
            break;
        }
        nori__pb_entry *e = NORI__GROW(r, entries);
        nori__str key = nori__text_string(r, "a quoted key");
        nori__text_need(r, ':', "':'");
        nori__str value = nori__text_string(r, "a quoted value");
        if (e) {
            e->key = key;
            e->value = value;
        }
    }
    memcpy(list, &entries, sizeof(entries));
}

/* ---- types ---- */

bool nori__text_at_type(nori__text_in *r)
{
    nori__str w = nori__text_see_word(r);
    return nori__text_type_find(w.p, w.n) || nori__str_is(w, "undefined") || nori__str_is(w, "seq") ||
           nori__str_is(w, "map") || nori__str_is(w, "optional") || nori__str_is(w, "sparse_tensor");
}

static int32_t elem_type(nori__text_in *r)
{
    nori__str w = nori__text_word(r, "an element type (float, int64 ...)");
    int32_t type = nori__text_type_find(w.p, w.n);
    if (type == 0 && !nori__str_is(w, "undefined")) {
        nori__text_fail(r, w.p, "an element type (float, int64 ...) was expected, found %.*s",
                        (int)(w.n < 40 ? w.n : 40), w.p);
    }
    return type;
}

/* float is a scalar, float[] of any rank, float[2,N,?] of rank 3. */
static void read_shape(nori__text_in *r, nori__pb_type *type)
{
    bool open = nori__text_match(r, '[');
    if (open && nori__text_match(r, ']')) {
        return;
    }
    type->shape = nori__arena_alloc(r->arena, sizeof(*type->shape));
    if (!type->shape) {
        r->status = nori__no_memory(r->err);
        return;
    }
    for (bool more = open; more && r->status == NORI_OK;) {
        nori__pb_dim *d = NORI__GROW(r, type->shape->dims);
        if (d && !nori__text_match(r, '?')) {
            d->has_param = nori__text_at_id(r);
            d->has_value = !d->has_param;
            if (d->has_param) {
                d->param = nori__text_id(r, "a dimension");
            } else {
                d->value = nori__text_int(r, "a dimension (a size, a name or ?)");
            }
        }
        more = nori__text_match(r, ',');
    }
    if (open) {
        nori__text_need(r, ']', "',' or ']' of a shape");
    }
}

void nori__text_type(nori__text_in *r, nori__pb_type *type)
{
    nori__str w = nori__text_see_word(r);
    bool map = nori__str_is(w, "map"), optional = nori__str_is(w, "optional");
    if (!nori__text_deeper(r)) {
        return;
    }
    if (nori__str_is(w, "sparse_tensor")) {
        nori__text_word(r, "a type");
        type->kind = NORI_KIND_SPARSE;
        nori__text_need(r, '(', "'('");
        type->elem = elem_type(r);
        read_shape(r, type);
        nori__text_need(r, ')', "')'");
    } else if (map || optional || nori__str_is(w, "seq")) {
        nori__text_word(r, "a type");
        type->kind = map ? NORI_KIND_MAP : optional ? NORI_KIND_OPTIONAL : NORI_KIND_SEQUENCE;
        nori__text_need(r, '(', "'('");
        if (map) {
            type->elem = elem_type(r);
            nori__text_need(r, ',', "',' between key and value type");
        }
        type->of = nori__arena_alloc(r->arena, sizeof(*type->of));
        if (type->of) {
            nori__text_type(r, type->of);
        } else if (r->status == NORI_OK) {
            r->status = nori__no_memory(r->err);
        }
        nori__text_need(r, ')', "')'");
    } else {
        type->kind = NORI_KIND_TENSOR;
        type->elem = elem_type(r);
        read_shape(r, type);
    }
    r->depth--;
}

/* ---- tensors ---- */

static bool take_dims(nori__text_in *r, const nori__pb_type *type, const char *at, void *list)
{
    NORI__PB_LIST(int64_t) dims = {0};
    if (!type->shape) {
        return nori__text_fail(r, at, "a tensor's shape was expected: all its sizes, in [ ]");
    }
    for (size_t i = 0; i < type->shape->dims.count; i++) {
        const nori__pb_dim *d = &type->shape->dims.items[i];
        int64_t *v = NORI__GROW(r, dims);
        if (!d->has_value || d->value < 0) {
            return nori__text_fail(r, at, "a tensor's size of axis %zu must be a number", i);
        }
        if (v) {
            *v = d->value;
        }
    }
    memcpy(list, &dims, sizeof(dims));
    return r->status == NORI_OK;
}

static void fill_tensor(nori__text_in *r, nori__str name, nori__pb_tensor *t, const char *at)
{
    char *copy = name.n ? nori__arena_copy(r->arena, name.p, name.n) : NULL;
    nori_tensor *found = copy && r->main_graph && r->fill && r->fill->find
                             ? r->fill->find(r->fill->user, copy) : NULL;
    if (r->status == NORI_OK && !found) {
        nori__text_fail(r, at, "the content of tensor \"%s\" was left out of this text%s",
                        copy ? copy : "", r->fill && r->fill->find ? ", and the weights given lack it" : "");
        nori__hint(r->err, "give weights that hold it (--weights FILE), or write the text with all of "
                           "them (--inline all)");
        r->status = NORI_ERROR_UNSUPPORTED;
        if (r->err) {
            r->err->status = NORI_ERROR_UNSUPPORTED;
        }
        return;
    }
    if (!found || !nori__vec_push(r->fill->kept, found)) {
        nori_tensor_free(found);
        r->status = r->status == NORI_OK ? nori__no_memory(r->err) : r->status;
        return;
    }
    bool same = found->kind == NORI_KIND_TENSOR && found->type == t->data_type &&
                found->rank == t->dims.count && found->type != NORI_STRING;
    for (int d = 0; same && d < found->rank; d++) {
        same = found->dims[d] == t->dims.items[d];
    }
    if (!same) {
        nori__text_fail(r, at, "tensor \"%s\" has another type or shape in the weights given", copy);
        return;
    }
    t->has_raw = true;
    t->raw = nori__file_bytes(r->arena, (nori_type)found->type, found->data, found->bytes);
    r->status = t->raw.p ? r->status : nori__no_memory(r->err);
}

static int64_t bits_of(nori__text_in *r, nori_type type, bool *ok)
{
    nori__text_peek(r);
    const char *at = r->at;
    bool point;
    nori__str s = nori__text_number(r, "a number", &point);
    *ok = s.n > 0;
    r->at = at; /* read again as what it is */
    if (!*ok) {
        return 0;
    }
    if (point && type == NORI_FLOAT16) {
        return nori__f64_to_f16(nori__text_double(r, "a number"));
    }
    if (point && type == NORI_BFLOAT16) {
        return nori__f32_to_bf16(nori__text_float(r, "a number"));
    }
    return nori__text_int(r, "an integer");
}

/* One entry of the braces, as bytes of a file at out; size: of an entry. */
static void read_entry(nori__text_in *r, nori_type type, char *out, size_t size)
{
    const char *at = r->at;
    bool ok = true;
    if (type == NORI_FLOAT || type == NORI_COMPLEX64) {
        float v = nori__text_float(r, "a number");
        memcpy(out, &v, sizeof(v));
    } else if (type == NORI_DOUBLE || type == NORI_COMPLEX128) {
        double v = nori__text_double(r, "a number");
        memcpy(out, &v, sizeof(v));
    } else if (type == NORI_UINT64) {
        uint64_t v = nori__text_uint(r, "an integer of at least 0");
        memcpy(out, &v, sizeof(v));
    } else {
        int64_t v = bits_of(r, type, &ok);
        bool is_signed = type == NORI_INT8 || type == NORI_INT16 || type == NORI_INT32;
        int64_t high = is_signed ? ((int64_t)1 << (8 * size - 1)) - 1 : ((int64_t)1 << (8 * size % 64)) - 1;
        int64_t low = is_signed ? -high - 1 : 0;
        if (type == NORI_BOOL) {
            high = 1;
        }
        if (ok && type != NORI_INT64 && (v < low || v > high)) {
            nori__text_fail(r, at, "%lld does not fit %s: %lld to %lld was expected", (long long)v,
                            nori_type_name(type), (long long)low, (long long)high);
        }
        for (size_t i = 0; i < size; i++) {
            out[i] = (char)((uint64_t)v >> 8 * i);
        }
        return;
    }
    if (NORI__BIG_ENDIAN) {
        nori__turn(out, size, size);
    }
}

static void read_strings(nori__text_in *r, nori__pb_tensor *t)
{
    while (r->status == NORI_OK && nori__text_peek(r) != '}') {
        nori__str *s = NORI__GROW(r, t->strings);
        nori__str v = nori__text_string(r, "a quoted string");
        if (s) {
            *s = v;
        }
        if (!nori__text_match(r, ',')) {
            break;
        }
    }
}

/* What is between the braces; the shape says how much it must be. */
static void read_content(nori__text_in *r, nori__pb_tensor *t, const char *at)
{
    nori_type type = (nori_type)t->data_type;
    unsigned bits = nori_type_bits(type);
    int64_t count;
    size_t bytes;
    if (!nori__dims_count((int)t->dims.count, t->dims.items, &count) ||
        !nori__type_bytes(type, count, &bytes)) {
        nori__text_fail(r, at, "a tensor of this shape is larger than memory can be");
        return;
    }
    if (type == NORI_STRING) {
        read_strings(r, t);
        if (t->strings.count != (size_t)count) {
            nori__text_fail(r, at, "%lld strings were expected, found %zu", (long long)count,
                            t->strings.count);
        }
        return;
    }
    size_t size = type == NORI_COMPLEX64 || type == NORI_COMPLEX128 ? bits / 16 : bits < 8 ? 1 : bits / 8;
    size_t entries = bytes / size, n = 0, possible = (size_t)(r->end - r->at) / 2 + 1;
    /* An entry and its comma take two characters: a shape cannot ask for more memory than that. */
    char *raw = entries <= possible ? nori__arena_alloc(r->arena, bytes + 1) : NULL;
    if (!raw && entries <= possible) {
        r->status = nori__no_memory(r->err);
        return;
    }
    while (r->status == NORI_OK && nori__text_peek(r) != '}') {
        char spare[8];
        read_entry(r, type, n < entries && raw ? raw + n * size : spare, size);
        n++;
        if (!nori__text_match(r, ',')) {
            break;
        }
    }
    if (r->status == NORI_OK && n != entries) {
        nori__text_fail(r, at, "the shape asks for %zu values, %zu stand in the braces", entries, n);
    }
    t->has_raw = true;
    t->raw = (nori__str){raw, bytes};
}

void nori__text_tensor_data(nori__text_in *r, const nori__pb_type *type, nori__str name,
                            nori__pb_tensor *t)
{
    nori__text_peek(r);
    const char *at = r->at;
    if (type->kind != NORI_KIND_TENSOR || type->elem == 0) {
        nori__text_fail(r, at, "a tensor's element type and shape were expected in front of its content");
        return;
    }
    t->data_type = type->elem;
    if (r->status != NORI_OK || !take_dims(r, type, at, &t->dims)) {
        return;
    }
    if (t->dims.count > NORI_MAX_RANK) {
        nori__text_fail(r, at, "rank %zu, at most %d is taken", t->dims.count, NORI_MAX_RANK);
    } else if (nori__text_match(r, '[')) {
        t->data_location = 1;
        nori__text_entries(r, &t->external);
    } else if (nori__text_need(r, '{', "'{' and values, or '[' and where they lie,")) {
        if (r->end - r->at > 3 && memcmp(r->at, "...}", 4) == 0) {
            r->at += 4;
            fill_tensor(r, name, t, at);
            return;
        }
        read_content(r, t, at);
        nori__text_need(r, '}', "',' or '}'");
    }
}

static nori__pb_tensor *whole_tensor(nori__text_in *r, const char *what)
{
    nori__pb_tensor *t = nori__arena_alloc(r->arena, sizeof(*t));
    nori__pb_type type = {0};
    if (!t) {
        r->status = r->status == NORI_OK ? nori__no_memory(r->err) : r->status;
        return NULL;
    }
    if (!nori__text_at_type(r)) {
        nori__text_expected(r, what);
        return t;
    }
    nori__text_type(r, &type);
    if (nori__text_at_id(r)) {
        t->name = nori__text_id(r, "a name");
    }
    nori__text_match(r, '=');
    nori__text_tensor_data(r, &type, (nori__str){NULL, 0}, t);
    return t;
}

void nori__text_sparse_data(nori__text_in *r, const nori__pb_type *type, nori__str name,
                            nori__pb_sparse *s)
{
    take_dims(r, type, r->at, &s->dims);
    s->values = whole_tensor(r, "the tensor of the values that are not 0");
    nori__str at = nori__text_word(r, "at");
    if (!nori__str_is(at, "at")) {
        nori__text_fail(r, at.p ? at.p : r->at, "\"at\" and the tensor of indices were expected");
    }
    s->indices = whole_tensor(r, "the tensor of indices");
    if (s->values) {
        s->values->name = name;
    }
}

/* ---- attributes ---- */

/* What one value of an attribute's text turned out to be. */
typedef struct one_value {
    nori__pb_attr_kind kind;
    nori__pb_attr a; /* the value in the member of its kind */
} one_value;

static void note_tensor(nori__text_in *r, nori__pb_tensor *t, const nori__note_in *n)
{
    t->doc = n->doc;
    memcpy(&t->metadata, &n->metadata, sizeof(t->metadata));
    nori__text_keep(r, &t->head, n->bytes);
}

static void typed_value(nori__text_in *r, const nori__note_in *note, one_value *v)
{
    nori__pb_type *type = nori__arena_alloc(r->arena, sizeof(*type));
    if (!type) {
        r->status = nori__no_memory(r->err);
        return;
    }
    nori__text_type(r, type);
    int c = nori__text_peek(r);
    bool named = nori__text_at_id(r);
    if (c != '{' && c != '=' && !(c == '[' && type->shape) && !named) {
        v->kind = NORI__ATTR_TYPE;
        v->a.tp = type;
        return;
    }
    nori__str name = named ? nori__text_id(r, "a name") : (nori__str){NULL, 0};
    nori__text_match(r, '=');
    if (type->kind == NORI_KIND_SPARSE) {
        v->kind = NORI__ATTR_SPARSE;
        v->a.sparse = nori__arena_alloc(r->arena, sizeof(*v->a.sparse));
        if (v->a.sparse) {
            nori__text_sparse_data(r, type, name, v->a.sparse);
        }
    } else {
        v->kind = NORI__ATTR_TENSOR;
        v->a.t = nori__arena_alloc(r->arena, sizeof(*v->a.t));
        if (v->a.t) {
            v->a.t->name = name;
            note_tensor(r, v->a.t, note);
            nori__text_tensor_data(r, type, r->made, v->a.t);
        }
    }
    if (!v->a.sparse && !v->a.t && r->status == NORI_OK) {
        r->status = nori__no_memory(r->err);
    }
}

static bool float_word(nori__str w)
{
    return nori__str_is(w, "inf") || nori__str_is(w, "nan") || nori__str_is(w, "infinity");
}

static void read_value(nori__text_in *r, nori__pb_attr_kind wanted, one_value *v)
{
    nori__note_in note = {0};
    nori__str word = nori__text_see_word(r);
    int c = nori__text_peek(r);
    if (nori__text_at_type(r)) {
        note = nori__text_note(r);
        typed_value(r, &note, v);
    } else if (wanted == NORI__ATTR_GRAPH || (word.n && !float_word(word))) {
        v->kind = NORI__ATTR_GRAPH;
        v->a.g = nori__arena_alloc(r->arena, sizeof(*v->a.g));
        if (!v->a.g) {
            r->status = nori__no_memory(r->err);
            return;
        }
        nori__text_graph(r, v->a.g);
    } else if (c == '"') {
        v->kind = NORI__ATTR_STRING;
        v->a.s = nori__text_string(r, "a string");
    } else {
        const char *at = r->at;
        bool point;
        nori__str s = nori__text_number(r, "a value (number, string, tensor, type, graph or @name)",
                                        &point);
        r->at = s.n ? at : r->at;
        v->kind = point || wanted == NORI__ATTR_FLOAT ? NORI__ATTR_FLOAT : NORI__ATTR_INT;
        if (s.n && v->kind == NORI__ATTR_FLOAT) {
            v->a.f = nori__text_float(r, "a number");
        } else if (s.n) {
            v->a.i = nori__text_int(r, "an integer");
        }
    }
}

static const struct {
    nori__pb_attr_kind one, many;
} plural[] = {
    {NORI__ATTR_FLOAT, NORI__ATTR_FLOATS},   {NORI__ATTR_INT, NORI__ATTR_INTS},
    {NORI__ATTR_STRING, NORI__ATTR_STRINGS}, {NORI__ATTR_TENSOR, NORI__ATTR_TENSORS},
    {NORI__ATTR_GRAPH, NORI__ATTR_GRAPHS},   {NORI__ATTR_SPARSE, NORI__ATTR_SPARSES},
    {NORI__ATTR_TYPE, NORI__ATTR_TYPES},
};

static void add_value(nori__text_in *r, nori__pb_attr *a, const one_value *v)
{
#define ADD(list, value)                          \
    do {                                          \
        void *item = NORI__GROW(r, a->list);      \
        if (item) {                               \
            memcpy(item, value, sizeof(*a->list.items)); \
        }                                         \
    } while (0)
    switch (v->kind) {
    case NORI__ATTR_FLOAT:
        ADD(floats, &v->a.f);
        break;
    case NORI__ATTR_INT:
        ADD(ints, &v->a.i);
        break;
    case NORI__ATTR_STRING:
        ADD(strings, &v->a.s);
        break;
    case NORI__ATTR_TENSOR:
        ADD(tensors, v->a.t);
        break;
    case NORI__ATTR_GRAPH:
        ADD(graphs, &v->a.g);
        break;
    case NORI__ATTR_SPARSE:
        ADD(sparses, v->a.sparse);
        break;
    default:
        ADD(types, v->a.tp);
    }
#undef ADD
}

static bool kind_fits(nori__text_in *r, const char *at, nori__pb_attr_kind wanted,
                      nori__pb_attr_kind found)
{
    return r->status == NORI_OK &&
           (wanted == NORI__ATTR_NONE || wanted == found ||
            nori__text_fail(r, at, "a value of kind %s was expected, found one of kind %s",
                            nori__text_kind_name(wanted), nori__text_kind_name(found)));
}

static void read_list(nori__text_in *r, nori__pb_attr *a)
{
    nori__pb_attr_kind item = NORI__ATTR_NONE;
    for (size_t i = 0; i < NORI__COUNT(plural); i++) {
        item = plural[i].many == a->kind ? plural[i].one : item;
    }
    if (a->kind != NORI__ATTR_NONE && item == NORI__ATTR_NONE) {
        nori__text_fail(r, r->at, "one value of kind %s was expected, found a list",
                        nori__text_kind_name(a->kind));
    }
    for (size_t n = 0; r->status == NORI_OK && !nori__text_match(r, ']'); n++) {
        one_value v = {0};
        if (n && !nori__text_need(r, ',', "',' or ']' of a list")) {
            return;
        }
        const char *at = r->at;
        read_value(r, item, &v);
        if (!kind_fits(r, at, item, v.kind)) {
            return;
        }
        item = v.kind;
        add_value(r, a, &v);
    }
    for (size_t i = 0; i < NORI__COUNT(plural); i++) {
        a->kind = plural[i].one == item ? plural[i].many : a->kind;
    }
    if (a->kind == NORI__ATTR_NONE) {
        nori__text_fail(r, r->at, "an empty list says nothing of its kind: write \"name: ints = []\"");
    }
}

void nori__text_attr(nori__text_in *r, nori__pb_attr *a)
{
    one_value v = {0};
    if (nori__text_match(r, ':')) {
        nori__str w = nori__text_word(r, "an attribute's kind (float, ints ...)");
        a->kind = nori__text_kind_find(w.p, w.n);
        if (a->kind == NORI__ATTR_NONE) {
            nori__text_fail(r, w.p, "an attribute's kind (float, ints ...) was expected, found %.*s",
                            (int)(w.n < 40 ? w.n : 40), w.p);
        }
    }
    nori__text_need(r, '=', "'=' behind an attribute's name");
    if (nori__text_match(r, '@')) {
        a->ref_name = nori__text_id(r, "the name of a function's attribute");
        return;
    }
    nori__text_peek(r);
    const char *at = r->at;
    if (nori__text_match(r, '[')) {
        read_list(r, a);
        return;
    }
    read_value(r, a->kind, &v);
    if (!kind_fits(r, at, a->kind, v.kind)) {
        return;
    }
    a->kind = v.kind;
    a->f = v.a.f;
    a->i = v.a.i;
    a->s = v.a.s;
    a->t = v.a.t;
    a->g = v.a.g;
    a->sparse = v.a.sparse;
    a->tp = v.a.tp;
}
