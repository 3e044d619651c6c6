/* graph_judge.c: what is a disagreement. */
#include "graphs.h"

enum { LOOKS = 6 };

static bool fault_is(graphs_fault *f, const char *kind, const char *way, const char *text)
{
    snprintf(f->kind, sizeof(f->kind), "%s", kind);
    snprintf(f->way, sizeof(f->way), "%s", way);
    snprintf(f->text, sizeof(f->text), "%s", text);
    return true;
}

bool graphs_judge(const graph_case *c, const graphs_sets *sets, bool answered,
                  const graphs_answers *answers, graphs_fault *fault)
{
    char why[GRAPHS_TEXT] = "";
    if (!answered) {
        return fault_is(fault, "crashes", "", "the process ended, or ran longer than it may");
    }
    for (size_t i = 0; i < answers->count; i++) {
        const graphs_answer *a = &answers->items[i], *first = a;
        graphs_values *all = sets->of[a->set];
        if (!all || a->same) {
            continue;
        }
        if (a->status) {
            if (!a->excused) {
                return fault_is(fault, "fails", a->label, a->text);
            }
            continue;
        }
        for (size_t k = 0; k < c->m.graph.outputs.count; k++) {
            const graphs_value *want = graphs_find(all, c->m.graph.outputs.items[k].name);
            if (want && graphs_differ(a->out[k], want, why)) {
                return fault_is(fault, "differs", a->label, why);
            }
        }
        for (size_t j = 0; a->group && j < i; j++) {
            const graphs_answer *b = &answers->items[j];
            if (b->group == a->group && !b->status) {
                first = b;
                break;
            }
        }
        for (size_t k = 0; first != a && k < c->m.graph.outputs.count; k++) {
            if (!graphs_same_bits(a->out[k], first->out[k], why)) {
                return fault_is(fault, "bits", a->label, why);
            }
        }
    }
    return false;
}

bool graphs_faulty(graphs_workers *w, size_t i, const graph_case *c, graphs_fault *fault)
{
    graphs_sets sets;
    graphs_answers answers;
    char why[GRAPHS_TEXT] = "";
    bool answered = graphs_worker_ask(w, i, c, &answers), faulty = true;
    /* Noise that happens to spare a tie would make a fault of what is none: several looks must
     * agree. */
    for (uint64_t n = 0; faulty && n < LOOKS; n++) {
        graphs_look look = {.noise = 77 + n, .coarse = graphs_worker_is_ort(w, i)};
        faulty = graphs_measure_case(c, &sets, &look, true, why) &&
                 graphs_judge(c, &sets, answered, &answers, fault);
        graphs_sets_free(&sets);
    }
    fault->worker = i;
    graphs_answers_free(&answers);
    return faulty;
}
