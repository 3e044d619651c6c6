/* cmd_doctor.c: what this machine and this build can do. */
#include <string.h>

#include "cli.h"

static const struct {
    const char *name, *use;
    int have;
} libraries[] = {
#ifdef NORI_WITH_PNG
    {"libpng", "PNG pictures as inputs", 1},
#else
    {"libpng", "PNG pictures as inputs", 0},
#endif
#ifdef NORI_WITH_JPEG
    {"libjpeg", "JPEG pictures as inputs", 1},
#else
    {"libjpeg", "JPEG pictures as inputs", 0},
#endif
};

static int run(cli_args *args)
{
    char reason[128];
    int threads = nori_usable_threads(reason, sizeof(reason));
    if (args->json) {
        printf("{\"version\": \"%s\", \"cpu\": ", nori_version());
        cli_json_text(stdout, nori_cpu_name());
        printf(", \"features\": ");
        cli_json_text(stdout, nori_cpu_features());
        printf(", \"level\": \"%s\", \"threads\": %d, \"threads_reason\": ", nori_cpu_level(),
               threads);
        cli_json_text(stdout, reason);
        printf(", \"libraries\": {");
        for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
            printf("%s\"%s\": %s", i ? ", " : "", libraries[i].name,
                   libraries[i].have ? "true" : "false");
        }
        printf("}, \"providers\": [");
        for (size_t i = 0; nori_provider_at(i); i++) {
            printf("%s\"%s\"", i ? ", " : "", nori_provider_at(i)->name);
        }
        printf("]}\n");
        return EXIT_YES;
    }
    printf("nori       %s\n", nori_version());
    printf("CPU        %s\n", nori_cpu_name());
    printf("features   %s\n", nori_cpu_features());
    printf("level      %s (NORI_CPU=base|avx2|avx512 lowers it)\n", nori_cpu_level());
    printf("threads    %s\n", reason);
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
        printf("%-10s %s: %s\n", libraries[i].name,
               libraries[i].have ? "found" : "missing when nori was built", libraries[i].use);
    }
    printf("providers\n");
    for (size_t i = 0; nori_provider_at(i); i++) {
        printf("  %-10s %s\n", nori_provider_at(i)->name, nori_provider_at(i)->description);
    }
    return EXIT_YES;
}

const cli_verb cli_doctor = {"doctor", "look", "", "CPU, threads, libraries and providers here",
                             NULL, run, NULL};
