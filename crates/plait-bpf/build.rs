//! Compiles `bpf/*.bpf.c` with clang into objects that the library takes in. Nothing of this
//! machine's kernel goes into them: places of fields are looked up where they are loaded (CO-RE).

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let sources = Path::new("bpf").read_dir().expect("the folder belongs to the crate");
    for source in sources.map(|entry| entry.expect("the folder can be read").path()) {
        let name = source.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let Some(name) = name.strip_suffix(".bpf.c") {
            compile(&source, &out.join(format!("{name}.bpf.o")));
        }
    }
}

/// Compiles a source for the kernel's machine.
fn compile(source: &Path, object: &Path) {
    let clang = env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    // Of libbpf-sys, which brings libbpf's headers.
    let headers = env::var("DEP_BPF_INCLUDE").expect("libbpf-sys tells where its headers are");
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it");
    let result = Command::new(&clang)
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-std=gnu11", "-Wall", "-Wextra"])
        .args(["-Werror", "-Wno-unused-parameter", "-Wno-sign-compare"])
        .arg(format!("-I{headers}"))
        // Where Debian has <asm/types.h>.
        .args(["-idirafter", &format!("/usr/include/{arch}-linux-gnu")])
        .args(["-c", "-o"])
        .args([object, source])
        .status();
    match result {
        Ok(status) if status.success() => {}
        Ok(_) => panic!("clang does not compile {}: see above", source.display()),
        Err(error) => panic!(
            "{} does not run: {error}; plait-bpf needs it: `scripts/setup --bpf` installs it, \
             or leave this crate out",
            clang.to_string_lossy()
        ),
    }
}
