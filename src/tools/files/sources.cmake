nori_sources(
    npy.c
    tensor_file.c
)
