nori_sources(
    clock.c
    cpu.c
    env.c
    file.c
    library.c
    pool.c
)
