# Compiler flags, ccache and mold. Warnings are errors with both compilers (g++ 12, clang 19).
find_program(CCACHE ccache)
if(CCACHE)
  # base_dir and no hash_dir: a fresh clone in another folder hits the cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}
      CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=1 ${CCACHE})
endif()

add_compile_options(-Wall -Wextra -Werror -Wno-missing-field-initializers -fno-omit-frame-pointer
                    -ffile-prefix-map=${CMAKE_SOURCE_DIR}=.)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports false positives of these inside libstdc++ at -O2.
  add_compile_options(-Wno-restrict -Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overflow
                      -Wno-stringop-overread -Wno-dangling-pointer)
else()
  # clang 19 reports what libstdc++ 12 does inside std::stable_sort.
  add_compile_options(-Wno-deprecated-declarations)
endif()

if(MUSTER_SANITIZE)
  add_compile_options(-fsanitize=${MUSTER_SANITIZE})
  add_compile_definitions(MUSTER_SANITIZED)
  add_link_options(-fsanitize=${MUSTER_SANITIZE})
endif()

find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()
add_link_options(-Wl,--gc-sections)
add_compile_options(-ffunction-sections -fdata-sections)
