//! Compiles the few C files that talk to rcl, makes executables find the ROS libraries they were linked with, and
//! lists the message types for the interoperability test.

use std::path::{Path, PathBuf};

/// What talks to rcl, in `src/rcl_raw`.
const C_FILES: [&str; 3] = ["domain.c", "service.c", "topic.c"];

fn main() {
    println!("cargo:rerun-if-env-changed=AMENT_PREFIX_PATH");
    println!("cargo:rerun-if-changed=src/rcl_raw");
    let prefixes: Vec<PathBuf> = std::env::var_os("AMENT_PREFIX_PATH")
        .map(|paths| std::env::split_paths(&paths).collect())
        .unwrap_or_default();
    if prefixes.is_empty() {
        println!(
            "cargo:warning=AMENT_PREFIX_PATH is not set: source a ROS 2 environment, or use `make build`"
        );
    }
    compile(&prefixes);
    list_interop_types(&prefixes);
    set_run_paths(&prefixes);
}

/// Installed executables find our libraries beside them and those of ROS where it is; the staging prefix belongs to
/// the build folder, which may be gone by then.
fn set_run_paths(prefixes: &[PathBuf]) {
    println!("cargo:rustc-link-arg=-Wl,-rpath,$ORIGIN/..");
    for prefix in prefixes
        .iter()
        .filter(|prefix| !prefix.ends_with("rust_staging"))
    {
        println!(
            "cargo:rustc-link-arg=-Wl,-rpath,{}",
            prefix.join("lib").display()
        );
    }
}

fn compile(prefixes: &[PathBuf]) {
    let mut build = cc::Build::new();
    build
        .files(C_FILES.map(|name| Path::new("src/rcl_raw").join(name)))
        .warnings(true)
        .extra_warnings(true)
        .flag("-Wno-missing-field-initializers");
    for include in prefixes
        .iter()
        .map(|prefix| prefix.join("include"))
        .filter(|path| path.is_dir())
    {
        for folder in package_folders(&include) {
            build.flag("-isystem").flag(folder);
        }
    }
    build.compile("openlink_raw");
    println!("cargo:rustc-link-lib=rcl");
    println!("cargo:rustc-link-lib=rmw");
    println!("cargo:rustc-link-lib=rcutils");
    println!("cargo:rustc-link-lib=rosidl_runtime_c");
    println!("cargo:rustc-link-lib=rosidl_typesupport_introspection_c");
}

/// `include` itself and its children: since Humble each package has a folder of its own below it.
fn package_folders(include: &Path) -> Vec<PathBuf> {
    let children = std::fs::read_dir(include)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    std::iter::once(include.to_owned())
        .chain(children.filter(|path| path.is_dir()))
        .collect()
}

/// Writes a function that echoes each message of this package, and of test_msgs where that has a Rust folder; says so
/// with `cfg(has_test_msgs)`.
fn list_interop_types(prefixes: &[PathBuf]) {
    println!("cargo:rustc-check-cfg=cfg(has_test_msgs)");
    println!("cargo:rerun-if-changed=msg");
    let share = |prefix: &PathBuf| prefix.join("share/test_msgs");
    let mut types = type_names(Path::new("msg"), "msg", "crazyflie_openlink");
    if prefixes
        .iter()
        .any(|prefix| share(prefix).join("rust/Cargo.toml").is_file())
    {
        println!("cargo:rustc-cfg=has_test_msgs");
        let folder = prefixes
            .iter()
            .map(|prefix| share(prefix).join("msg"))
            .find(|path| path.is_dir());
        types.extend(
            folder
                .into_iter()
                .flat_map(|path| type_names(&path, "idl", "test_msgs")),
        );
    }
    let lines: String = types
        .iter()
        .map(|name| format!("    lanes.echo::<ros_env::{name}>()?;\n"))
        .collect();
    let text = format!(
        "fn echo_all(lanes: &mut Lanes) -> Result<(), rclrs::RclrsError> {{\n{lines}    Ok(())\n}}\n"
    );
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    if let Err(error) = std::fs::write(folder.join("interop_types.rs"), text) {
        println!("cargo:error=cannot write the list of message types: {error}");
    }
}

/// `package::msg::Type` for every file of a folder with this extension.
fn type_names(folder: &Path, extension: &str, package: &str) -> Vec<String> {
    let files = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let mut names: Vec<String> = files
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .filter_map(|path| Some(format!("{package}::msg::{}", path.file_stem()?.to_str()?)))
        .collect();
    names.sort();
    names
}
