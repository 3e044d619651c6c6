nori_sources(
    module_load.c
)

# nori_module(NAME SOURCE LIBRARY): a shared object of its own, where the library it needs is there.
function(nori_module name source library)
    if(NOT NORI_${library}_TARGET)
        return()
    endif()
    add_library(nori_module_${name} MODULE ${CMAKE_CURRENT_LIST_DIR}/${source})
    target_include_directories(nori_module_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(nori_module_${name} PRIVATE ${NORI_${library}_TARGET})
    set_target_properties(nori_module_${name} PROPERTIES PREFIX "" OUTPUT_NAME nori-${name}
        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/modules)
    install(TARGETS nori_module_${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/nori)
endfunction()

nori_module(png picture_png.c PNG)
nori_module(jpeg picture_jpeg.c TURBOJPEG)
nori_module(tiff picture_tiff.c TIFF)
nori_module(webp picture_webp.c WEBP)
nori_module(jpeg2000 picture_jpeg2000.c OPENJPEG)
nori_module(regex text_regex.c PCRE2)
nori_module(sodium secrets_sodium.c SODIUM)

# Where an installed module_load.c looks: relative to bin/, and as configured.
file(RELATIVE_PATH modules_from_bin ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR}/nori)
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/module_load.c PROPERTIES COMPILE_DEFINITIONS
    "NORI_MODULES_DIR=\"${CMAKE_INSTALL_FULL_LIBDIR}/nori\";NORI_MODULES_FROM_BIN=\"${modules_from_bin}\"")
