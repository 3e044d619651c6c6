/* phases.c: loading and creating by what the library timed of them, and the first run. */
#include "phases.h"

static double ms(uint64_t ns)
{
    return (double)ns / 1e6;
}

void cli_phases_print(FILE *to, const cli_phases *p, const nori_session *session)
{
    nori_timing t = {.size = sizeof(t)};
    nori_session_timing(session, &t);
    fprintf(to, "%-12s %10.3f ms: read %.3f, build %.3f\n", "load", ms(p->load_ns), ms(t.read_ns),
            ms(t.build_ns));
    fprintf(to, "%-12s %10.3f ms: infer %.3f, optimize %.3f, plan %.3f\n", "create", ms(p->create_ns),
            ms(t.infer_ns), ms(t.optimize_ns), ms(t.plan_ns));
    fprintf(to, "%-12s %10.3f ms\n", "first run", ms(p->first_ns));
}

void cli_phases_json(cli_json *j, const cli_phases *p, const nori_session *session)
{
    nori_timing t = {.size = sizeof(t)};
    nori_session_timing(session, &t);
    cli_json_number(j, "load_ms", ms(p->load_ns), 6);
    cli_json_number(j, "create_ms", ms(p->create_ns), 6);
    cli_json_object(j, "phases_ms");
    cli_json_number(j, "read", ms(t.read_ns), 6);
    cli_json_number(j, "build", ms(t.build_ns), 6);
    cli_json_number(j, "infer", ms(t.infer_ns), 6);
    cli_json_number(j, "optimize", ms(t.optimize_ns), 6);
    cli_json_number(j, "plan", ms(t.plan_ns), 6);
    cli_json_end(j);
    cli_json_number(j, "first_ms", ms(p->first_ns), 6);
}
