# nori_export(NAME OUTPUT MODEL.onnx SOURCES FILE... [ARGS ARGUMENT...] [DEPENDS FILE...] [LIBRARIES ...])
#
# Exports a model as part of a build. SOURCES are a program that writes the model to the path it gets as
# its first argument (see nori/trace.h); it is built as NAME_export, and run with ARGS behind that path
# whenever it or a file of DEPENDS (weights) changes. The target NAME stands for the model, and its property
# NORI_MODEL is where the model lies: OUTPUT, relative to the build folder of the calling list.
function(nori_export name)
    cmake_parse_arguments(PARSE_ARGV 1 export "" "OUTPUT" "SOURCES;ARGS;DEPENDS;LIBRARIES")
    if(NOT export_OUTPUT OR NOT export_SOURCES OR export_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "nori_export(${name}): OUTPUT and SOURCES were expected, found ${ARGN}")
    endif()
    set(library nori::nori)
    if(NOT TARGET nori::nori)
        set(library nori::nori_static)
    endif()
    cmake_path(ABSOLUTE_PATH export_OUTPUT BASE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR} OUTPUT_VARIABLE model)
    add_executable(${name}_export ${export_SOURCES})
    set_target_properties(${name}_export PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON)
    target_link_libraries(${name}_export PRIVATE ${library} ${export_LIBRARIES})
    add_custom_command(OUTPUT ${model} COMMAND ${name}_export ${model} ${export_ARGS}
        DEPENDS ${name}_export ${export_DEPENDS} COMMENT "Exporting ${export_OUTPUT}" VERBATIM)
    add_custom_target(${name} ALL DEPENDS ${model})
    set_target_properties(${name} PROPERTIES NORI_MODEL ${model})
endfunction()
