/* place_header.c: the decision as a C header for a device that has no nori: the same inequality with
 * the numbers of this question, to be asked again with what the device measures. */
#include "place_job.h"

int place_header(const place_job *j)
{
    const char *path = cli_value(j->args, "--header");
    const nori_place_question *q = &j->question;
    const nori_place_answer *a = &j->answer;
    cli_draft d;
    if (!path) {
        return EXIT_YES;
    }
    if (!cli_draft_begin(j->args, &d)) {
        return EXIT_UNSUPPORTED;
    }
    FILE *f = d.f;
    bool edge = a->option[0].possible, cloud = a->option[1].possible;
    fprintf(f, "/* Where a call runs, written by nori place; times in seconds. */\n"
               "#ifndef NORI_PLACEMENT_H\n#define NORI_PLACEMENT_H\n\n"
               "#define NORI_PLACE_EDGE_POSSIBLE %d\n#define NORI_PLACE_CLOUD_POSSIBLE %d\n"
               "#define NORI_PLACE_EDGE_S %.9g\n#define NORI_PLACE_CLOUD_S %.9g\n"
               "#define NORI_PLACE_UP_BYTES %.0f\n#define NORI_PLACE_DOWN_BYTES %.0f\n"
               "#define NORI_PLACE_FIXED_S %.9g /* measured ways and the server's queue */\n\n",
            edge, cloud, a->option[0].mean, nori_times_mean(&q->cloud.service), q->up_bytes,
            q->down_bytes,
            nori_times_mean(&q->up) + nori_times_mean(&q->down) + a->option[1].queue);
    fprintf(f, "/* 1: on the device, 0: on the server, -1: nowhere. Speeds in bytes a second as measured\n"
               " * now, the round trip in seconds; online: whether there is a network. */\n"
               "static inline int nori_place_on_edge(double up_speed, double down_speed, double rtt,\n"
               "                                     int online)\n{\n"
               "    if (!NORI_PLACE_CLOUD_POSSIBLE || !online) {\n"
               "        return NORI_PLACE_EDGE_POSSIBLE ? 1 : -1;\n    }\n"
               "    if (!NORI_PLACE_EDGE_POSSIBLE) {\n        return 0;\n    }\n"
               "    double way = NORI_PLACE_FIXED_S + rtt;\n"
               "    way += up_speed > 0 ? NORI_PLACE_UP_BYTES / up_speed : 0;\n"
               "    way += down_speed > 0 ? NORI_PLACE_DOWN_BYTES / down_speed : 0;\n"
               "    return NORI_PLACE_EDGE_S - NORI_PLACE_CLOUD_S < way;\n}\n\n");
    place_header_table(j, f);
    fprintf(f, "#endif\n");
    return cli_draft_finish(j->args, &d, path, true);
}
