# What CMakeLists.txt needs to put a cargo package into an ament_cmake package: the check of the interface list,
# the staging prefix with the Rust folders of interface packages, the cargo call and the installation of its
# executables. Knows neither the nodes nor the messages.

# Fails when the given interface files are not exactly those in msg/ and srv/.
function(check_interface_list)
  file(GLOB found RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS msg/*.msg srv/*.srv)
  foreach(file ${found})
    if(NOT file IN_LIST ARGN)
      message(FATAL_ERROR "${file} is not in the interface list of CMakeLists.txt: add it there")
    endif()
  endforeach()
  foreach(file ${ARGN})
    if(NOT file IN_LIST found)
      message(FATAL_ERROR "${file} is in the interface list of CMakeLists.txt, but there is no such file")
    endif()
  endforeach()
endfunction()

# Lets the ROS prefix lie below the source folder, as .ros/ does: CMake refuses to export a target whose public
# include folders lie there, and the generated Python library has NumPy's as one. Nobody builds against it.
function(hide_local_include_folders target)
  if(NOT TARGET ${target})
    return()
  endif()
  get_target_property(folders ${target} INTERFACE_INCLUDE_DIRECTORIES)
  set(hidden "")
  foreach(folder ${folders})
    string(FIND "${folder}" "${CMAKE_CURRENT_SOURCE_DIR}/" at)
    if(at EQUAL 0)
      set(folder "$<BUILD_INTERFACE:${folder}>")
    endif()
    list(APPEND hidden "${folder}")
  endforeach()
  set_property(TARGET ${target} PROPERTY INTERFACE_INCLUDE_DIRECTORIES "${hidden}")
endfunction()

# Appends `--package NAME=SHARE_DIR` to `out` when an installed interface package has no Rust folder.
macro(_rust_folder_wanted package required out)
  find_package(${package} QUIET)
  if(${package}_FOUND)
    get_filename_component(_share ${${package}_DIR} DIRECTORY)
    if(NOT EXISTS ${_share}/rust/Cargo.toml)
      list(APPEND ${out} --package ${package}=${_share})
    endif()
  elseif(${required})
    string(REPLACE "_" "-" _apt "ros-$ENV{ROS_DISTRO}-${package}")
    message(FATAL_ERROR "ROS package ${package} was not found: apt-get install ${_apt}")
  endif()
endmacro()

# Target rust_interfaces: a prefix in the build folder with share/NAME/rust of this package and of those packages
# that lack one, and with links to this package's own libraries in lib/. Sets RUST_STAGING for the caller. Our own
# folder comes from rosidl_generator_rs where that was found before the interfaces were generated.
function(stage_rust_interfaces)
  cmake_parse_arguments(arg "" "" "REQUIRED;OPTIONAL" ${ARGN})
  set(wanted "")
  foreach(package ${arg_REQUIRED})
    _rust_folder_wanted(${package} TRUE wanted)
  endforeach()
  foreach(package ${arg_OPTIONAL})
    _rust_folder_wanted(${package} FALSE wanted)
  endforeach()
  set(staging ${CMAKE_CURRENT_BINARY_DIR}/rust_staging)
  set(own_share ${staging}/share/${PROJECT_NAME})
  if(rosidl_generator_rs_FOUND)
    set(stage_own ${CMAKE_COMMAND} -E create_symlink
      ${CMAKE_CURRENT_BINARY_DIR}/rosidl_generator_rs/${PROJECT_NAME}/rust ${own_share}/rust)
  else()
    set(stage_own ${CMAKE_COMMAND} -E true)
    list(APPEND wanted --package ${PROJECT_NAME}=${CMAKE_CURRENT_BINARY_DIR}/rosidl_adapter/${PROJECT_NAME})
  endif()
  set(generate ${CMAKE_COMMAND} -E true)
  if(wanted)
    set(generate ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/cmake/rosidl_rust
      --output ${staging} ${wanted})
  endif()
  set(link_libraries "")
  foreach(part rosidl_generator_c rosidl_typesupport_c)
    list(APPEND link_libraries COMMAND ${CMAKE_COMMAND} -E create_symlink
      $<TARGET_FILE:${PROJECT_NAME}__${part}> ${staging}/lib/$<TARGET_FILE_NAME:${PROJECT_NAME}__${part}>)
  endforeach()
  add_custom_target(rust_interfaces
    COMMAND ${CMAKE_COMMAND} -E make_directory ${staging}/lib ${own_share}
    ${link_libraries}
    COMMAND ${stage_own}
    COMMAND ${generate}
    COMMENT "Rust interfaces" VERBATIM)
  add_dependencies(rust_interfaces ${PROJECT_NAME}
    ${PROJECT_NAME}__rosidl_generator_c ${PROJECT_NAME}__rosidl_typesupport_c)
  set(RUST_STAGING ${staging} PARENT_SCOPE)
endfunction()

# Target rust_executables: builds PACKAGE and the TOOLS packages with cargo. EXECUTABLES are installed to
# lib/PACKAGE; each tool is an executable of its own name and goes to bin and lib/PACKAGE.
function(add_cargo_executables)
  cmake_parse_arguments(arg "" "PACKAGE" "EXECUTABLES;TOOLS" ${ARGN})
  set(flags --profile node --locked)
  if(DEFINED ENV{CARGO_NET_OFFLINE})
    list(APPEND flags --offline)
  endif()
  set(target ${CMAKE_CURRENT_BINARY_DIR}/cargo)
  if(DEFINED ENV{CARGO_TARGET_DIR})
    set(target $ENV{CARGO_TARGET_DIR})
  endif()
  set(packages -p ${arg_PACKAGE})
  foreach(tool ${arg_TOOLS})
    list(APPEND packages -p ${tool})
  endforeach()
  add_custom_target(rust_executables ALL
    COMMAND ${CMAKE_COMMAND} -E env "AMENT_PREFIX_PATH=${RUST_STAGING}:$ENV{AMENT_PREFIX_PATH}"
      "CARGO_TARGET_DIR=${target}" ${CARGO} build ${flags} ${packages}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
    COMMENT "cargo build" USES_TERMINAL VERBATIM)
  add_dependencies(rust_executables rust_interfaces)
  foreach(name ${arg_EXECUTABLES})
    set(source ${CMAKE_CURRENT_SOURCE_DIR}/src/bin/${name})
    if(EXISTS ${source}.rs OR EXISTS ${source}/main.rs)
      install(PROGRAMS ${target}/node/${name} DESTINATION lib/${PROJECT_NAME})
    endif()
  endforeach()
  foreach(tool ${arg_TOOLS})
    install(PROGRAMS ${target}/node/${tool} DESTINATION bin)
    install(PROGRAMS ${target}/node/${tool} DESTINATION lib/${PROJECT_NAME})
  endforeach()
endfunction()
