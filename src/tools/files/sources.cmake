nori_sources(
    group_file.c
    group_write.c
    npy.c
    npz.c
    tensor_file.c
    zip.c
)
