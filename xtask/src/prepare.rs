//! What the tests need from the machine and cargo cannot bring: PostgreSQL's programs and Python's `venv`, for the test against
//! a real CRM. Installed where that can be done without asking (as root, on Debian); otherwise only said.

use std::path::Path;
use std::process::Command;

/// Installs what is missing, if it may; says so either way. Never fails: a test that cannot run reports it itself.
pub(crate) fn machine() {
    if has_postgres() && has_venv() {
        return;
    }
    let packages = ["postgresql", "python3-venv"];
    if !is_root() || !Path::new("/usr/bin/apt-get").exists() {
        println!(
            "note: the test against a real CRM needs the packages {}",
            packages.join(" and ")
        );
        return;
    }
    println!(
        "installing {} for the test against a real CRM",
        packages.join(" and ")
    );
    let apt = |arguments: &[&str]| {
        let status = Command::new("apt-get")
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .status();
        status.is_ok_and(|s| s.success())
    };
    let mut install = vec!["install", "--yes", "--quiet", "--no-install-recommends"];
    install.extend(packages);
    if !(apt(&["update", "--quiet"]) && apt(&install)) {
        println!("note: they could not be installed");
    }
}

fn has_postgres() -> bool {
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    versions
        .into_iter()
        .any(|v| v.path().join("bin/initdb").exists())
}

fn has_venv() -> bool {
    let status = Command::new("python3")
        .args(["-c", "import ensurepip, venv"])
        .status();
    status.is_ok_and(|s| s.success())
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|o| o.stdout.trim_ascii() == b"0")
}
