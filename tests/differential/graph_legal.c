/* graph_legal.c: what the kernels of a runtime take and the standard does not have. Such nodes are
 * neither drawn nor made by shrinking: runtimes may see them as they like. */
#include "graphs.h"

static bool no(char *why, const char *text)
{
    snprintf(why, GRAPHS_TEXT, "%s", text);
    return false;
}

bool graphs_is_flag(const char *name, size_t length)
{
    static const char *const names[] = {"allowzero",
                                        "antialias",
                                        "ceil_mode",
                                        "count_include_pad",
                                        "exclude_outside",
                                        "exclusive",
                                        "fmod",
                                        "inverse",
                                        "is_causal",
                                        "keepdims",
                                        "largest",
                                        "noop_with_empty_axes",
                                        "normalized",
                                        "onesided",
                                        "reverse",
                                        "saturate",
                                        "select_last_index",
                                        "sorted",
                                        "storage_order",
                                        "training_mode",
                                        "transA",
                                        "transB",
                                        "upper"};
    for (size_t i = 0; i < NORI__COUNT(names); i++) {
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0) {
            return true;
        }
    }
    return false;
}

static int64_t opset_of(const make *m)
{
    for (size_t i = 0; i < m->model.opsets.count; i++) {
        if (m->model.opsets.items[i].domain.n == 0) {
            return m->model.opsets.items[i].version;
        }
    }
    return 1;
}

/* "Accepted range is [-r, r-1]", in which a tensor without axes has none. */
static bool has_axis(const nori__pb_node *n, const graphs_values *all, int64_t fallback)
{
    const nori__pb_attr *axis = graphs_attr(n, "axis");
    const graphs_value *x =
        n->inputs.count > 0 ? graphs_find((graphs_values *)all, n->inputs.items[0]) : NULL;
    int64_t at = axis ? axis->i : fallback, rank = x ? nori_tensor_rank(x->v[0]) : 0;
    return at >= -rank && at < rank;
}

bool graphs_legal(const make *m, const nori__pb_node *n, const graphs_values *all, char *why)
{
    int64_t opset = opset_of(m);
    bool ours = n->domain.n == 0;
    for (size_t i = 0; i < n->attrs.count; i++) {
        const nori__pb_attr *a = &n->attrs.items[i];
        if (graphs_is_flag(a->name.p, a->name.n) && (a->i < 0 || a->i > 1)) {
            return no(why, "a switch that is neither 0 nor 1");
        }
    }
    if (ours && (nori__str_is(n->op_type, "Softmax") || nori__str_is(n->op_type, "LogSoftmax") ||
                 nori__str_is(n->op_type, "Hardmax"))) {
        return has_axis(n, all, opset < 13 ? 1 : -1) || no(why, "an axis that is not there");
    }
    if (ours && (nori__str_is(n->op_type, "ArgMax") || nori__str_is(n->op_type, "ArgMin"))) {
        return has_axis(n, all, 0) || no(why, "an axis that is not there");
    }
    if (ours && nori__str_is(n->op_type, "Split") && opset >= 18) {
        const nori__pb_attr *parts = graphs_attr(n, "num_outputs");
        bool listed = n->inputs.count > 1 && n->inputs.items[1].n > 0;
        return (listed != (parts != NULL) && (listed || parts->i == (int64_t)n->outputs.count)) ||
               no(why, "parts that are not said, or not all taken");
    }
    if (ours && nori__str_is(n->op_type, "If")) {
        return (graphs_attr(n, "then_branch") && graphs_attr(n, "else_branch")) ||
               no(why, "a branch is missing");
    }
    return true;
}
