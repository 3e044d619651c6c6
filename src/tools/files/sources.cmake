nori_sources(
    group_file.c
    npy.c
    tensor_file.c
)
