/* place_table.c: decisions over speeds of the link and round trips: a table of policy, as CSV and for the
 * C header. */
#include <math.h>

#include "place_job.h"

/* Steps of equal ratio. A link of the question lies in the middle of its range; else a usual one. */
static double step(double middle, double reach, int i, int n)
{
    return middle * pow(reach, 2.0 * i / (n - 1) - 1);
}

void place_table(const place_job *j, place_cell table[PLACE_SPEEDS][PLACE_TRIPS])
{
    const nori_place_question *q = &j->question;
    double speed = q->up_speed > 0 ? q->up_speed : 5e6, trip = nori_times_mean(&q->rtt);
    for (int i = 0; i < PLACE_SPEEDS; i++) {
        for (int k = 0; k < PLACE_TRIPS; k++) {
            place_cell *c = &table[i][k];
            nori_place_question asked = *q;
            nori_place_answer a = {.size = sizeof(a)};
            c->speed = step(speed, 100, i, PLACE_SPEEDS);
            c->trip = step(trip > 0 ? trip : 0.02, 30, k, PLACE_TRIPS);
            asked.down_speed = q->up_speed > 0 && q->down_speed > 0 ? q->down_speed * c->speed / q->up_speed
                                                                    : c->speed;
            asked.up_speed = c->speed;
            if (q->rate <= 0) { /* no queue to be computed, and none to be looked for */
                asked.edge.has_queue = 1;
            }
            nori_times_constant(&asked.rtt, c->trip);
            if (nori_place_decide(&asked, &a, NULL) == NORI_OK) {
                c->place = a.place;
                for (int p = 0; p < 3; p++) {
                    c->mean[p] = a.option[p].possible || (p == 2 && q->can_split) ? a.option[p].mean : NAN;
                }
            }
        }
    }
}

static void number(FILE *f, double v)
{
    if (isnan(v)) {
        fprintf(f, ",");
    } else {
        fprintf(f, ",%.6g", 1e3 * v);
    }
}

int place_policy(const place_job *j)
{
    static const char *const names[] = {"nowhere", "edge", "cloud", "split"};
    static place_cell table[PLACE_SPEEDS][PLACE_TRIPS];
    const char *path = cli_value(j->args, "--policy");
    cli_draft d;
    if (!path) {
        return EXIT_YES;
    }
    if (!cli_draft_begin(j->args, &d)) {
        return EXIT_UNSUPPORTED;
    }
    place_table(j, table);
    fprintf(d.f, "up_MB/s,rtt_ms,place,edge_ms,cloud_ms,split_ms\n");
    for (int i = 0; i < PLACE_SPEEDS; i++) {
        for (int k = 0; k < PLACE_TRIPS; k++) {
            const place_cell *c = &table[i][k];
            fprintf(d.f, "%.6g,%.6g,%s", c->speed / 1e6, 1e3 * c->trip, names[c->place]);
            for (int p = 0; p < 3; p++) {
                number(d.f, c->mean[p]);
            }
            fprintf(d.f, "\n");
        }
    }
    return cli_draft_finish(j->args, &d, path, true);
}

/* The same for the C header: limits halfway between the steps, by ratio, and a place for each cell. */
void place_header_table(const place_job *j, FILE *f)
{
    static place_cell table[PLACE_SPEEDS][PLACE_TRIPS];
    place_table(j, table);
    fprintf(f, "/* The same decided before, deadlines, queues and splits included, by speed there "
               "(bytes/s) and\n"
               " * round trip (s): 0 nowhere, 1 device, 2 server, 3 split. Limits are between the "
               "steps. */\n"
               "static inline int nori_place_by_table(double up_speed, double rtt, int online)\n{\n"
               "    static const float speeds[] = {");
    for (int i = 0; i + 1 < PLACE_SPEEDS; i++) {
        fprintf(f, "%s%.7g", i ? ", " : "", sqrt(table[i][0].speed * table[i + 1][0].speed));
    }
    fprintf(f, "};\n    static const float trips[] = {");
    for (int k = 0; k + 1 < PLACE_TRIPS; k++) {
        fprintf(f, "%s%.7g", k ? ", " : "", sqrt(table[0][k].trip * table[0][k + 1].trip));
    }
    fprintf(f, "};\n    static const unsigned char places[%d][%d] = {\n", PLACE_SPEEDS, PLACE_TRIPS);
    for (int i = 0; i < PLACE_SPEEDS; i++) {
        fprintf(f, "        {");
        for (int k = 0; k < PLACE_TRIPS; k++) {
            fprintf(f, "%s%d", k ? ", " : "", (int)table[i][k].place);
        }
        fprintf(f, "},\n");
    }
    fprintf(f, "    };\n    int i = 0, k = 0;\n    if (!online) {\n"
               "        return NORI_PLACE_EDGE_POSSIBLE;\n    }\n"
               "    while (i < %d && up_speed > speeds[i]) {\n        i++;\n    }\n"
               "    while (k < %d && rtt > trips[k]) {\n        k++;\n    }\n    return places[i][k];\n}\n\n",
            PLACE_SPEEDS - 1, PLACE_TRIPS - 1);
}
