nori_sources(
    ort_claim.c
    ort_library.c
    ort_options.c
    ort_provider.c
    ort_value.c
)
