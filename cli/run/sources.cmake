nori_cli_sources(
    bench_profile.c
    bench_versus.c
    cmd_bench.c
    cmd_compile.c
    cmd_run.c
    phases.c
)
