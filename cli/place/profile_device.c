/* profile_device.c: what a model takes on this device: from file to first answer, steady runs, nodes. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inputs.h"
#include "profile.h"

#define NODE_RUNS 12 /* of which the least time of a node counts */

static int run_timed(profile_job *j, nori_session *s, double *took)
{
    nori_error err = {0};
    nori_tensor **out = calloc(j->n_out + 1, sizeof(*out));
    if (!out) {
        return cli_fail_text(j->args, NORI_ERROR_MEMORY, "out of memory");
    }
    uint64_t start = nori_clock_ns();
    nori_status status = nori_session_run(s, (const nori_tensor *const *)j->in, j->n_in, out, j->n_out,
                                          &err);
    *took = (double)(nori_clock_ns() - start) / 1e9;
    for (size_t i = 0; i < j->n_out; i++) {
        nori_tensor_free(out[i]);
    }
    free(out);
    return status == NORI_OK ? EXIT_YES : cli_fail(j->args, &err);
}

static int steady(profile_job *j)
{
    profile_samples s = {0};
    int code = EXIT_YES;
    double took;
    for (long i = 0; code == EXIT_YES && i < j->runs; i++) {
        code = run_timed(j, j->session, &took);
        if (code == EXIT_YES && !profile_add(&s, took)) {
            code = cli_fail_text(j->args, NORI_ERROR_MEMORY, "out of memory");
        }
        cli_progress(j->args, "run %ld of %ld", i + 1, j->runs);
    }
    cli_progress_done(j->args);
    profile_settle(&s, &j->p.steady);
    return code;
}

/* Times of the compiled model's nodes, by the value each makes: rewrites keep these names. */
static int add_nodes(profile_job *j, const nori_session *s, const nori_costs *costs, const double *least)
{
    nori_cost c = {.size = sizeof(c)};
    size_t count = 0;
    while (nori_costs_at(costs, count, &c)) {
        count++;
    }
    j->p.nodes = calloc(count + 1, sizeof(*j->p.nodes));
    if (!j->p.nodes) {
        return cli_fail_text(j->args, NORI_ERROR_MEMORY, "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        nori_profile_row row = {.size = sizeof(row)};
        if (!nori_costs_at(costs, i, &c) || !nori_session_profile(s, i, &row) || c.inner) {
            continue; /* what a subgraph takes is part of its node */
        }
        profile_node *n = &j->p.nodes[j->p.n_nodes];
        n->value = strdup(c.output);
        n->op = strdup(c.op);
        n->s = least[i];
        if (!n->value || !n->op) {
            j->p.n_nodes++;
            return cli_fail_text(j->args, NORI_ERROR_MEMORY, "out of memory");
        }
        j->p.n_nodes++;
    }
    return EXIT_YES;
}

/* Their least times are scaled so that they add up to a steady run's mean. */
static void fit_nodes(profile *p)
{
    double sum = 0;
    for (size_t i = 0; i < p->n_nodes; i++) {
        sum += p->nodes[i].s;
    }
    for (size_t i = 0; i < p->n_nodes && sum > 0; i++) {
        p->nodes[i].s *= p->steady.mean / sum;
    }
}

static int nodes(profile_job *j, nori_session *s, const nori_costs *costs)
{
    nori_profile_row row = {.size = sizeof(row)};
    size_t count = 0;
    while (nori_session_profile(s, count, &row)) {
        count++;
    }
    double *least = calloc(count + 1, sizeof(*least)), took;
    int code = least ? EXIT_YES : cli_fail_text(j->args, NORI_ERROR_MEMORY, "out of memory");
    for (int i = 0; code == EXIT_YES && i < NODE_RUNS; i++) {
        code = run_timed(j, s, &took);
        for (size_t k = 0; code == EXIT_YES && k < count && nori_session_profile(s, k, &row); k++) {
            double t = (double)(row.last_end_ns - row.last_start_ns) / 1e9;
            least[k] = i == 0 || t < least[k] ? t : least[k];
        }
    }
    code = code == EXIT_YES ? add_nodes(j, s, costs, least) : code;
    fit_nodes(&j->p);
    free(least);
    return code;
}

static int node_times(profile_job *j)
{
    nori_session *s = NULL;
    nori_costs *costs = NULL;
    nori_error err = {0};
    int code = cli_session(j->args, j->model, 1, &s);
    if (code == EXIT_YES && nori_session_costs(s, (const nori_tensor *const *)j->in, j->n_in, &costs,
                                               &err) != NORI_OK) {
        code = cli_fail(j->args, &err);
    }
    if (code == EXIT_YES) {
        nori_cost_total total = {.size = sizeof(total)};
        nori_costs_total(costs, &total);
        j->p.activation_bytes = (double)total.activation_bytes;
        code = nodes(j, s, costs);
    }
    nori_costs_free(costs);
    nori_session_free(s);
    return code;
}

int profile_device(profile_job *j)
{
    profile *p = &j->p;
    const char *provider = cli_value(j->args, "--provider");
    p->provider = strdup(provider ? provider : "cpu");
    p->cpu = strdup(nori_cpu_name());
    p->threads = nori_env_threads(j->args->env);
    p->memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (!p->provider || !p->cpu) {
        return cli_fail_text(j->args, NORI_ERROR_MEMORY, "out of memory");
    }
    int code = run_timed(j, j->session, &p->first_s);
    code = code == EXIT_YES ? steady(j) : code;
    code = code == EXIT_YES ? node_times(j) : code;
    return code == EXIT_YES ? profile_load(j) : code;
}
