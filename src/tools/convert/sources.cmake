nori_sources(
    convert.c
    lower.c
    lower_inputs.c
    lower_meaning.c
    opset.c
    runtimes.c
)
