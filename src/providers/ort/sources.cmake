nori_sources(
    ort_library.c
    ort_options.c
    ort_provider.c
    ort_value.c
)
