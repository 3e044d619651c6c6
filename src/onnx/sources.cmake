nori_sources(
    external.c
    fields.c
    guess.c
    item.c
    read.c
    write.c
)
