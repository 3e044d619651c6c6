/* inspect_providers.c: who would run what, and what keeps parts apart, before anything runs. */
#include "inspect_providers.h"

#include <stdlib.h>
#include <string.h>

#define SHOWN 20 /* rows of a list in text; JSON has all */

/* Nodes of each provider, parts or not. */
typedef struct tally {
    const char *provider;
    size_t nodes;
} tally;

static size_t count_nodes(const nori_session *s, tally *list, size_t room)
{
    nori_node_info n = {.size = sizeof(n)};
    size_t count = 0;
    for (size_t i = 0; nori_session_node(s, i, &n); i++) {
        size_t k = 0;
        while (k < count && strcmp(list[k].provider, n.provider) != 0) {
            k++;
        }
        if (k == count && count < room) {
            list[count++] = (tally){n.provider, 0};
        }
        if (k < count) {
            list[k].nodes++;
        }
    }
    return count;
}

static void print_part(size_t index, const nori_part_info *p)
{
    char path[160], in[32], out[32];
    if (p->whole) {
        printf("part %zu: %s, the model as its file has it, %zu nodes: %s%s\n", index, p->provider,
               p->node_count, p->given ? "given" : "not given: ", p->why);
        return;
    }
    nori_node_path(p->first, path, sizeof(path));
    cli_bytes_text(p->in_bytes, in, sizeof(in));
    cli_bytes_text(p->out_bytes, out, sizeof(out));
    printf("part %zu: %s, %zu node%s from %s: %s%s\n", index, p->provider, p->node_count,
           p->node_count == 1 ? "" : "s", path, p->given ? "given" : "not given: ", p->why);
    printf("  estimate: %.1f us here, %.1f us there with %.1f us of copies and %.1f us to start; "
           "%zu tensors in (%s), %zu out (%s)\n",
           p->base_ns / 1e3, (p->cost_ns + p->copy_ns + p->launch_ns) / 1e3, p->copy_ns / 1e3,
           p->launch_ns / 1e3, p->in_count, in, p->out_count, out);
}

static void print_text(const nori_session *s)
{
    const char *label, *engine;
    tally tallies[16];
    nori_part_info p = {.size = sizeof(p)};
    nori_splitter_info n = {.size = sizeof(n)};
    size_t count = count_nodes(s, tallies, sizeof(tallies) / sizeof(tallies[0])), i;
    for (i = 0; nori_session_provider(s, i, &label, &engine); i++) {
        printf("provider %s%s%s\n", label, engine[0] ? ": " : "", engine);
    }
    for (i = 0; i < count; i++) {
        printf("%zu node%s on %s\n", tallies[i].nodes, tallies[i].nodes == 1 ? "" : "s",
               tallies[i].provider);
    }
    for (i = 0; nori_session_part(s, i, &p); i++) {
        if (i < SHOWN) {
            print_part(i, &p);
        }
    }
    if (i > SHOWN) {
        printf("... and %zu more parts (--json lists all)\n", i - SHOWN);
    }
    for (i = 0; nori_session_splitter(s, i, &n); i++) {
        char path[256];
        nori_node_path(n.node, path, sizeof(path));
        if (i < SHOWN) {
            printf("split by %s: parts %zu and %zu of %s: %s\n  what would join them: %s\n", path,
                   n.before, n.after, n.provider, n.reason, n.advice);
        }
    }
    if (i > SHOWN) {
        printf("... and %zu more nodes that split (--json lists all)\n", i - SHOWN);
    }
}

static void json_path(cli_json *j, const char *key, const nori_node *node)
{
    char path[256];
    nori_node_path(node, path, sizeof(path));
    cli_json_string(j, key, path);
}

static void json_parts(cli_json *j, const nori_session *s)
{
    nori_part_info p = {.size = sizeof(p)};
    cli_json_array(j, "parts");
    for (size_t i = 0; nori_session_part(s, i, &p); i++) {
        cli_json_object(j, NULL);
        cli_json_string(j, "provider", p.provider);
        cli_json_uint(j, "nodes", p.node_count);
        if (p.first) {
            json_path(j, "first", p.first);
        }
        cli_json_bool(j, "whole", p.whole);
        cli_json_bool(j, "given", p.given);
        cli_json_string(j, "why", p.why);
        if (!p.whole) {
            cli_json_number(j, "here_us", p.base_ns / 1e3, 6);
            cli_json_number(j, "there_us", p.cost_ns / 1e3, 6);
            cli_json_number(j, "copies_us", p.copy_ns / 1e3, 6);
            cli_json_number(j, "start_us", p.launch_ns / 1e3, 6);
            cli_json_uint(j, "in_bytes", p.in_bytes);
            cli_json_uint(j, "out_bytes", p.out_bytes);
        }
        cli_json_end(j);
    }
    cli_json_end(j);
}

static void print_json(const nori_session *s)
{
    cli_json j;
    const char *label, *engine;
    nori_splitter_info n = {.size = sizeof(n)};
    nori_node_info at = {.size = sizeof(at)};
    cli_json_begin(&j, stdout);
    cli_json_array(&j, "providers");
    for (size_t i = 0; nori_session_provider(s, i, &label, &engine); i++) {
        cli_json_object(&j, NULL);
        cli_json_string(&j, "name", label);
        cli_json_string(&j, "engine", engine);
        cli_json_end(&j);
    }
    cli_json_end(&j);
    json_parts(&j, s);
    cli_json_array(&j, "splits");
    for (size_t i = 0; nori_session_splitter(s, i, &n); i++) {
        cli_json_object(&j, NULL);
        json_path(&j, "node", n.node);
        cli_json_string(&j, "op", nori_node_op(n.node));
        cli_json_string(&j, "provider", n.provider);
        cli_json_uint(&j, "before", n.before);
        cli_json_uint(&j, "after", n.after);
        cli_json_string(&j, "reason", n.reason);
        cli_json_string(&j, "joined_by", n.advice);
        cli_json_end(&j);
    }
    cli_json_end(&j);
    cli_json_array(&j, "nodes");
    for (size_t i = 0; nori_session_node(s, i, &at); i++) {
        cli_json_object(&j, NULL);
        json_path(&j, "node", at.node);
        cli_json_string(&j, "op", nori_node_op(at.node));
        cli_json_string(&j, "provider", at.provider);
        if (at.part == SIZE_MAX) {
            cli_json_null(&j, "part");
        } else {
            cli_json_uint(&j, "part", at.part);
        }
        cli_json_end(&j);
    }
    cli_json_finish(&j);
}

int cli_inspect_providers(const cli_args *args, const nori_model *model, const char *providers)
{
    nori_session_options o;
    nori_session *s = NULL;
    nori_error err = {0};
    if (!cli_session_options(args, &o)) {
        return EXIT_USAGE;
    }
    o.providers = providers;
    o.split_only = 1;
    if (nori_session_create(model, &o, &s, &err) != NORI_OK) {
        return cli_fail(args, &err);
    }
    if (args->json) {
        print_json(s);
    } else {
        print_text(s);
    }
    nori_session_free(s);
    return EXIT_YES;
}
