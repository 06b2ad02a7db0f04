# The schema generator runs before anything that includes build/gen/schema/*.h.
add_custom_target(muster_schema_gen)
