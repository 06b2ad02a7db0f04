# web/ -> npm and Vite -> a few files -> build/gen/dashboard/files.cc, compressed (docs/adr/0011). Where npm is missing
# the binary has one page instead, which says how to get the dashboard; MUSTER_WEB=OFF wants that.
option(MUSTER_WEB "build the dashboard, if npm is there" ON)
find_program(NPM npm)

add_executable(muster_web_embed tools/web/embed.cc)
target_link_libraries(muster_web_embed PRIVATE fmt::fmt ZLIB::ZLIB)

set(MUSTER_WEB_GEN ${CMAKE_BINARY_DIR}/gen/dashboard)
set(MUSTER_WEB_BUILD ${CMAKE_SOURCE_DIR}/tools/web/build)
if(MUSTER_WEB AND NPM)
  file(GLOB_RECURSE MUSTER_WEB_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/web/src/*)
  list(APPEND MUSTER_WEB_SOURCES ${CMAKE_SOURCE_DIR}/web/index.html ${CMAKE_SOURCE_DIR}/web/package-lock.json
       ${CMAKE_SOURCE_DIR}/web/vite.config.ts)
else()
  if(MUSTER_WEB)
    message(STATUS "The dashboard is left out, npm is missing: apt-get install npm, then ./quickstart --build")
  endif()
  file(GLOB MUSTER_WEB_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/web/absent/*)
  set(MUSTER_WEB_FLAG --without-npm)
endif()
file(MAKE_DIRECTORY ${MUSTER_WEB_GEN})
add_custom_command(
  OUTPUT ${MUSTER_WEB_GEN}/files.cc
  COMMAND ${MUSTER_WEB_BUILD} ${MUSTER_WEB_FLAG} ${MUSTER_WEB_GEN}/files
  COMMAND muster_web_embed ${MUSTER_WEB_GEN}/files ${MUSTER_WEB_GEN}/files.cc
  DEPENDS muster_web_embed ${MUSTER_WEB_BUILD} ${MUSTER_WEB_SOURCES}
  COMMENT "web: dashboard" VERBATIM)
add_library(muster_web_data STATIC ${MUSTER_WEB_GEN}/files.cc)
