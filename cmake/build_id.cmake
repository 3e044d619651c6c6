# cmake -DSOURCES=FOLDER -DOUTPUT=FILE -P build_id.cmake: a header with a name for the sources of the
# library, which changes when one of them does. Plans hold it: another build may pack weights in another way.
file(GLOB_RECURSE files ${SOURCES}/*.c ${SOURCES}/*.h ${SOURCES}/*.inc)
list(SORT files)
set(all)
foreach(file ${files})
    file(SHA256 ${file} hash)
    string(APPEND all ${hash})
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING ${hash} 0 16 hash)
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define NORI_BUILD \"${hash}\"\n" @ONLY)
string(REPLACE ";" " " files "${files}")
file(WRITE ${OUTPUT}.d "${OUTPUT}: ${files}\n")
