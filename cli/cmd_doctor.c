/* cmd_doctor.c: what this machine and this build can do. */
#include <string.h>

#include "cli.h"

static const cli_option options[] = {CLI_COMMON_OPTIONS};

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

static void print_json(int threads, const char *reason)
{
    cli_json j;
    cli_json_begin(&j, stdout);
    cli_json_string(&j, "version", nori_version());
    cli_json_string(&j, "cpu", nori_cpu_name());
    cli_json_string(&j, "features", nori_cpu_features());
    cli_json_string(&j, "level", nori_cpu_level());
    cli_json_int(&j, "threads", threads);
    cli_json_string(&j, "threads_reason", reason);
    cli_json_object(&j, "libraries");
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
        cli_json_bool(&j, libraries[i].name, libraries[i].have != 0);
    }
    cli_json_end(&j);
    cli_json_array(&j, "providers");
    for (size_t i = 0; nori_provider_at(i); i++) {
        cli_json_object(&j, NULL);
        cli_json_string(&j, "name", nori_provider_at(i)->name);
        cli_json_string(&j, "description", nori_provider_at(i)->description);
        cli_json_end(&j);
    }
    cli_json_finish(&j);
}

static int run(cli_args *args)
{
    char reason[128];
    if (args->count > 0) {
        return cli_usage(args, "no arguments were expected");
    }
    int threads = nori_usable_threads(reason, sizeof(reason));
    if (args->json) {
        print_json(threads, reason);
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
                             options, run, "  nori doctor\n"};
