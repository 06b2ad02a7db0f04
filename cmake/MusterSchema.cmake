# schema/**/*.proto -> protoc's descriptor set -> our generator -> build/gen/schema/*.h (accessors) and the descriptor
# set inside the binary. Targets:
#   muster_schema_gen    makes all generated headers; whoever includes one must wait for it (linking muster_schema does)
#   muster_schema_data   the embedded descriptor set and the options' own protobuf code
set(MUSTER_GEN ${CMAKE_BINARY_DIR}/gen)
file(MAKE_DIRECTORY ${MUSTER_GEN}/schema)
file(GLOB MUSTER_PROTOS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/schema/*.proto ${CMAKE_SOURCE_DIR}/schema/k8s/*.proto)
set(MUSTER_OPTIONS_PROTO ${CMAKE_SOURCE_DIR}/schema/options.proto)
list(REMOVE_ITEM MUSTER_PROTOS ${MUSTER_OPTIONS_PROTO})

add_custom_command(
  OUTPUT ${MUSTER_GEN}/schema/options.pb.cc ${MUSTER_GEN}/schema/options.pb.h
  COMMAND protobuf::protoc -I ${CMAKE_SOURCE_DIR} --cpp_out=${MUSTER_GEN} ${MUSTER_OPTIONS_PROTO}
  DEPENDS ${MUSTER_OPTIONS_PROTO}
  COMMENT "schema: options" VERBATIM)
add_library(muster_schema_options STATIC ${MUSTER_GEN}/schema/options.pb.cc)
target_link_libraries(muster_schema_options PUBLIC protobuf::libprotobuf)

add_executable(muster_schema_generate tools/schema/generate.cc tools/schema/accessors.cc
               tools/schema/descriptions.cc)
target_link_libraries(muster_schema_generate PRIVATE muster_schema_options fmt::fmt)

add_custom_command(
  OUTPUT ${MUSTER_GEN}/schema/descriptors.pb
  COMMAND protobuf::protoc -I ${CMAKE_SOURCE_DIR} --include_imports --include_source_info
          --descriptor_set_out=${MUSTER_GEN}/schema/descriptors.pb ${MUSTER_PROTOS}
  DEPENDS ${MUSTER_PROTOS} ${MUSTER_OPTIONS_PROTO}
  COMMENT "schema: descriptors" VERBATIM)

set(MUSTER_ACCESSORS)
foreach(proto ${MUSTER_PROTOS})
  get_filename_component(base ${proto} NAME_WE)
  if(base MATCHES "_")  # quantities and the envelope need no accessors
    list(APPEND MUSTER_ACCESSORS ${MUSTER_GEN}/schema/${base}.h)
  endif()
endforeach()
add_custom_command(
  OUTPUT ${MUSTER_GEN}/schema/descriptor_set.cc ${MUSTER_ACCESSORS}
  COMMAND muster_schema_generate ${MUSTER_GEN}/schema/descriptors.pb ${MUSTER_GEN}/schema
  DEPENDS muster_schema_generate ${MUSTER_GEN}/schema/descriptors.pb
  COMMENT "schema: accessors" VERBATIM)

add_custom_target(muster_schema_gen
                  DEPENDS ${MUSTER_ACCESSORS} ${MUSTER_GEN}/schema/options.pb.h)
add_library(muster_schema_data STATIC ${MUSTER_GEN}/schema/descriptor_set.cc)
target_link_libraries(muster_schema_data PUBLIC muster_schema_options)
add_dependencies(muster_schema_data muster_schema_gen)

# Prints docs/compatibility.md (tools/schema/compatibility writes it).
add_executable(muster_compatibility EXCLUDE_FROM_ALL tools/schema/compatibility.cc)
target_link_libraries(muster_compatibility PRIVATE muster_schema)
