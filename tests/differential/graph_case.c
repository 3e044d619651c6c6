/* graph_case.c: a case as a thing to copy, read and write. */
#include <sys/stat.h>

#include "graphs.h"
#include "nori/text.h"

bool graph_case_take(graph_case *c, const char *bytes, size_t size)
{
    nori__pb_model *model = NULL;
    nori__pb_report report = {0};
    char *own = nori__arena_copy(&c->m.arena, bytes, size);
    assert_non_null(own);
    if (nori__pb_read_model(&c->m.arena, (const uint8_t *)own, size, &model, &report, NULL) !=
            NORI_OK ||
        !model->graph) {
        return false;
    }
    c->m.graph = *model->graph;
    c->m.model = *model;
    c->m.model.graph = &c->m.graph;
    return true;
}

bool graph_case_copy(const graph_case *from, graph_case *to)
{
    nori__text bytes;
    nori__pb_model model = from->m.model;
    nori__pb_graph graph = from->m.graph;
    memset(to, 0, sizeof(*to));
    make_begin(&to->m, 0);
    to->moves = from->moves;
    nori__text_init(&bytes, &nori__malloc);
    model.graph = &graph;
    bool fine = nori__pb_write_model(&model, &bytes, NULL) == NORI_OK &&
                graph_case_take(to, bytes.data, bytes.size);
    nori__text_free(&bytes);
    for (size_t i = 0; fine && i < from->n_in; i++) {
        to->in[to->n_in++] = nori_tensor_retain(from->in[i]);
    }
    return fine;
}

static bool body_reads(const nori__pb_graph *g, nori__str name)
{
    bool found = false;
    for (size_t i = 0; !found && i < g->outputs.count; i++) {
        nori__str s = g->outputs.items[i].name;
        found = s.n == name.n && memcmp(s.p, name.p, name.n) == 0;
    }
    for (size_t i = 0; !found && i < g->nodes.count; i++) {
        found = graphs_reads(&g->nodes.items[i], name);
    }
    return found;
}

bool graphs_reads(const nori__pb_node *n, nori__str name)
{
    bool found = false;
    for (size_t i = 0; !found && i < n->inputs.count; i++) {
        nori__str s = n->inputs.items[i];
        found = s.n == name.n && (s.n == 0 || memcmp(s.p, name.p, name.n) == 0);
    }
    for (size_t i = 0; !found && i < n->attrs.count; i++) {
        found = n->attrs.items[i].g && body_reads(n->attrs.items[i].g, name);
    }
    return found;
}

void graph_case_free(graph_case *c)
{
    for (size_t i = 0; i < c->n_in; i++) {
        nori_tensor_free(c->in[i]);
        c->in[i] = NULL;
    }
    c->n_in = 0;
    make_end(&c->m);
}

/* ---- other sizes ---- */

int64_t graphs_other_size(nori__str name, int64_t size)
{
    unsigned sum = 0;
    for (size_t i = 0; i < name.n; i++) {
        sum += (unsigned char)name.p[i];
    }
    return size > 8 || (sum % 2 && size > 1) ? size - 1 : 2 * size + 1;
}

/* The elements of t over and over. */
static nori_tensor *repeated(const nori_tensor *t, const int64_t *dims)
{
    nori_tensor *made = NULL;
    int64_t n = nori_tensor_elements(t);
    if (nori_tensor_type(t) == NORI_STRING) {
        int64_t count = 1;
        for (int d = 0; d < nori_tensor_rank(t); d++) {
            count *= dims[d];
        }
        nori_string *list = calloc((size_t)count + 1, sizeof(*list));
        assert_non_null(list);
        for (int64_t i = 0; i < count && n > 0; i++) {
            list[i] = ((const nori_string *)nori_tensor_const_data(t))[i % n];
        }
        nori_tensor_strings(NULL, nori_tensor_rank(t), dims, list, (size_t)count, &made, NULL);
        free(list);
        return made;
    }
    size_t width = nori_type_bits(nori_tensor_type(t)) / 8;
    if (nori_tensor_create(NULL, nori_tensor_type(t), nori_tensor_rank(t), dims, &made, NULL) !=
        NORI_OK) {
        return NULL;
    }
    for (int64_t i = 0; i < nori_tensor_elements(made) && n > 0; i++) {
        if (width == 0) {
            nori__tensor_set_i64(made, i, nori__tensor_get_i64(t, i % n));
        } else {
            memcpy((char *)nori_tensor_data(made) + (size_t)i * width,
                   (const char *)nori_tensor_const_data(t) + (size_t)(i % n) * width, width);
        }
    }
    return made;
}

bool graph_case_other(const graph_case *c, nori_tensor **in)
{
    bool named = false, fine = true;
    for (size_t i = 0; c->moves && i < c->n_in; i++) {
        const nori__pb_type *type = c->m.graph.inputs.items[i].type;
        const nori_tensor *t = c->in[i];
        int64_t dims[NORI_MAX_RANK];
        for (int d = 0; d < nori_tensor_rank(t); d++) {
            const nori__pb_dim *dim = type && type->shape && (size_t)d < type->shape->dims.count
                                          ? &type->shape->dims.items[d]
                                          : NULL;
            bool free_size = dim && !dim->has_value && dim->has_param;
            dims[d] = nori_tensor_dims(t)[d];
            dims[d] = free_size ? graphs_other_size(dim->param, dims[d]) : dims[d];
            named = named || free_size;
        }
        in[i] = repeated(t, dims);
        fine = fine && in[i];
    }
    for (size_t i = 0; (!named || !fine) && i < c->n_in; i++) {
        nori_tensor_free(in[i]);
        in[i] = NULL;
    }
    return named && fine;
}

/* ---- files ---- */

static char *whole_file(const char *path, size_t *size)
{
    struct stat info;
    FILE *f = fopen(path, "rb");
    char *bytes = f && fstat(fileno(f), &info) == 0 ? malloc((size_t)info.st_size + 1) : NULL;
    *size = bytes ? fread(bytes, 1, (size_t)info.st_size, f) : 0;
    if (f) {
        fclose(f);
    }
    return bytes;
}

bool graph_case_read(const char *folder, graph_case *c, char *why)
{
    char path[4200];
    size_t size = 0;
    memset(c, 0, sizeof(*c));
    make_begin(&c->m, 0);
    c->moves = true;
    snprintf(path, sizeof(path), "%s/model.onnx", folder);
    char *bytes = whole_file(path, &size);
    bool fine = bytes && graph_case_take(c, bytes, size) && c->m.graph.inputs.count <= GRAPHS_INPUTS;
    free(bytes);
    for (size_t i = 0; fine && i < c->m.graph.inputs.count; i++) {
        nori_error err = {0};
        snprintf(path, sizeof(path), "%s/input_%zu.pb", folder, i);
        fine = nori_tensor_read(NULL, path, &c->in[i], &err) == NORI_OK;
        c->n_in += fine;
    }
    if (!fine) {
        snprintf(why, GRAPHS_TEXT, "cannot be read: %.200s", path);
        graph_case_free(c);
    }
    return fine;
}

static bool put_file(const char *folder, const char *name, const char *bytes, size_t size)
{
    char path[4200];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    bool fine = f && fwrite(bytes, 1, size, f) == size;
    return f && fclose(f) == 0 && fine;
}

bool graph_case_write(const char *folder, const graph_case *c, const char *why)
{
    nori__text bytes;
    nori__pb_model model = c->m.model;
    nori__pb_graph graph = c->m.graph;
    nori_model *loaded = NULL;
    nori_text_options o;
    char path[4200], *text = NULL;
    size_t size = 0;
    mkdir(folder, 0777);
    nori__text_init(&bytes, &nori__malloc);
    model.graph = &graph;
    bool fine = nori__pb_write_model(&model, &bytes, NULL) == NORI_OK &&
                put_file(folder, "model.onnx", bytes.data, bytes.size);
    nori_text_options_default(&o);
    o.inline_elements = INT64_MAX;
    if (nori_model_load_memory(NULL, bytes.data, bytes.size, NULL, NULL, &loaded, NULL) ==
            NORI_OK &&
        nori_model_text(loaded, &o, &text, &size, NULL, NULL) == NORI_OK) {
        put_file(folder, "model.txt", text, size);
    }
    nori_text_free(text);
    nori_model_free(loaded);
    nori__text_free(&bytes);
    for (size_t i = 0; fine && i < c->n_in; i++) {
        snprintf(path, sizeof(path), "%s/input_%zu.pb", folder, i);
        fine = nori_tensor_write(c->in[i], path, NULL) == NORI_OK;
    }
    return put_file(folder, "why.txt", why, strlen(why)) && fine;
}
