//! Compiles the small C file that talks to rcl, and makes executables find the ROS libraries they were linked with.

use std::path::{Path, PathBuf};

fn main() {
    println!("cargo:rerun-if-env-changed=AMENT_PREFIX_PATH");
    println!("cargo:rerun-if-changed=src/rcl_raw/raw.c");
    println!("cargo:rerun-if-changed=src/rcl_raw/raw.h");
    let prefixes: Vec<PathBuf> = std::env::var_os("AMENT_PREFIX_PATH")
        .map(|paths| std::env::split_paths(&paths).collect())
        .unwrap_or_default();
    if prefixes.is_empty() {
        println!(
            "cargo:warning=AMENT_PREFIX_PATH is not set: source a ROS 2 environment, or use `make build`"
        );
    }
    compile(&prefixes);
    for prefix in &prefixes {
        println!(
            "cargo:rustc-link-arg-bins=-Wl,-rpath,{}",
            prefix.join("lib").display()
        );
    }
}

fn compile(prefixes: &[PathBuf]) {
    let mut build = cc::Build::new();
    build
        .file("src/rcl_raw/raw.c")
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
