//! install.8: the program for arm64, under qemu, has a bond with this machine's.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::super::{Effort, Figure};
use crate::emulator::Way;
use crate::gateway::{Bond, BondSetup, plait_program};
use crate::measure::{FileServer, Stream, Target, Transport, ping};
use crate::output::Progress;
use crate::process;
use crate::scratch::Scratch;
use crate::topology::{LinkSpec, SERVER_V4, Topology, inner_v4, inner_v6};

const SOURCE: &str = "install.8";
/// What makes it all.
const REMEDY: &str =
    "scripts/setup --packages --arm64; scripts/arm64 --pages-by target/release/plait";
/// The instruction set of an ELF header's `e_machine`, elf(5): AArch64.
const AARCH64: u16 = 183;
/// Where Debian has arm64's libraries for qemu.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu";
const LIMIT: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_secs(30);
const FILE_BYTES: u64 = 20_000_000;
const UPLOAD: Duration = Duration::from_secs(5);
const PINGS: u32 = 20;

pub(in super::super) fn check(_: Effort) -> Result<Vec<Figure>> {
    let folder = folder()?;
    let program = folder.join("plait");
    let scratch = Scratch::on_disk("arm64")?;
    let runner = runner(&program, scratch.path())?;
    let machine = machine_of(&program)?;
    let mut figures = vec![
        Figure::count("the program's instruction set (ELF)", machine.into())
            .exactly(f64::from(AARCH64), SOURCE),
        Figure::text("its package", package(&folder)?),
    ];
    let version = process::run(Command::new(&runner).arg("--version"), "", LIMIT)?;
    let own = process::run(Command::new(plait_program()?).arg("--version"), "", LIMIT)?;
    ensure!(version == own, "arm64 has {version}, this machine {own}; again: {REMEDY}");
    let mut progress = Progress::new(2, 2 * STEP);
    for end in ["customer", "provider"] {
        let _step = progress.step(&format!("the {end} is arm64"), STEP);
        figures.extend(bond(&runner, end).with_context(|| format!("the {end} is arm64"))?);
    }
    Ok(figures)
}

/// Where `scripts/arm64` put what it made.
fn folder() -> Result<PathBuf> {
    let this = std::env::current_exe().context("cannot find this program's own place")?;
    let folder = this.ancestors().nth(2).context("this program is in no folder")?.join("arm64");
    ensure!(folder.join("plait").is_file(), "no arm64 program in {}: {REMEDY}", folder.display());
    Ok(folder)
}

/// A program that runs another machine's. The gateway is started as any other is.
fn runner(program: &Path, folder: &Path) -> Result<PathBuf> {
    ensure!(Path::new(LIBRARIES).is_dir(), "{LIBRARIES} is missing: {REMEDY}");
    let runner = folder.join("plait-arm64");
    let program = program.display();
    let line = format!("#!/bin/sh\nexec qemu-aarch64 -L {LIBRARIES} {program} \"$@\"\n");
    fs::write(&runner, line)?;
    process::run(Command::new("chmod").arg("755").arg(&runner), "", LIMIT)?;
    Ok(runner)
}

fn machine_of(program: &Path) -> Result<u16> {
    let bytes = fs::read(program)?;
    let machine = bytes.get(18..20).context("no ELF file")?;
    Ok(u16::from_le_bytes([machine[0], machine[1]]))
}

/// The package's architecture, and what it depends on.
fn package(folder: &Path) -> Result<String> {
    let files = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    let is_package = |path: &PathBuf| path.to_string_lossy().ends_with("_arm64.deb");
    let file = files.filter(is_package).find(|path| !path.to_string_lossy().contains("dbgsym"));
    let file = file.with_context(|| format!("no package for arm64: {REMEDY}"))?;
    let mut command = Command::new("dpkg-deb");
    command.arg("--show").arg("--showformat=${Architecture}, needs ${Depends}").arg(file);
    process::run(&mut command, "", LIMIT)
}

/// A bond of which one end is arm64's program.
fn bond(runner: &Path, end: &str) -> Result<Vec<Figure>> {
    let topology = Topology::build(&[LinkSpec::DSL, LinkSpec::LTE])?;
    let mut setup = BondSetup::over(&["dsl", "lte"]);
    match end {
        "customer" => setup.customer_program = Some(runner.to_owned()),
        _ => setup.provider_program = Some(runner.to_owned()),
    }
    let customer = &topology.customer().netns;
    let mut bond = Bond::start(customer, &topology.provider, &setup)?;
    let mut answered = 0;
    for address in [IpAddr::from(inner_v4(1)), inner_v6(1).into()] {
        answered += u64::from(ping(customer, address, None, PINGS)?.received);
    }
    let target = Target { client: customer, server: SERVER_V4.into(), bind: None };
    let files = FileServer::start(&topology.server, SERVER_V4.into(), Transport::Tcp, FILE_BYTES)?;
    let fetched = files.fetch(target, FILE_BYTES)?;
    let stream = Stream::start(&topology, Way::Up)?;
    let begun = std::time::Instant::now();
    std::thread::sleep(UPLOAD);
    let up = stream.deliveries().rate_bps(begun, std::time::Instant::now());
    drop(stream);
    bond.ensure_both_run()?;
    bond.stop()?;
    let told = |what: &str| format!("{end} on arm64: {what}");
    Ok(vec![
        Figure::count(told("pings answered, IPv4 and IPv6"), answered)
            .exactly(f64::from(2 * PINGS), SOURCE),
        Figure::count(told("bytes of a file that arrived right"), {
            if fetched.is_intact { fetched.got_bytes } else { 0 }
        })
        .exactly(FILE_BYTES as f64, SOURCE),
        Figure::mbit(told("download, under qemu"), fetched.rate_bps()),
        Figure::mbit(told("upload, under qemu"), up),
    ])
}
