//! install.9: the OCI image runs a gateway as the package does; by runc, which needs no daemon.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::super::{Effort, Figure};
use crate::gateway::{Bond, BondSetup};
use crate::measure::{Target, WebServer, download};
use crate::output::Progress;
use crate::process;
use crate::scratch::Scratch;
use crate::topology::{LinkSpec, SERVER_V4, Topology};

const SOURCE: &str = "install.9";
const REMEDY: &str = "scripts/setup --packages; scripts/package; scripts/oci";
const LIMIT: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_secs(15);
const FILE_BYTES: u64 = 20_000_000;
/// Megabytes of the image that anybody has to load.
const IMAGE_MAX_MB: f64 = 20.0;
/// What the guide gives a container.
const CAPABILITY: &str = "CAP_NET_ADMIN";

pub(in super::super) fn check(_: Effort) -> Result<Vec<Figure>> {
    let image = image()?;
    let megabytes = fs::metadata(&image)?.len() as f64 / 1e6;
    let scratch = Scratch::on_disk("image")?;
    let bundle = unpack(&image, scratch.path())?;
    let runner = runner(&bundle, scratch.path())?;
    let mut progress = Progress::new(1, STEP);
    let _step = progress.step("a customer in a container", STEP);
    let topology = Topology::build(&[LinkSpec::DSL, LinkSpec::LTE])?;
    let mut setup = BondSetup::over(&["dsl", "lte"]);
    setup.customer_program = Some(runner);
    let customer = &topology.customer().netns;
    let mut bond = Bond::start(customer, &topology.provider, &setup)?;
    let server = WebServer::start(&topology.server, FILE_BYTES)?;
    let target = Target { client: customer, server: SERVER_V4.into(), bind: None };
    let downloaded = download(target, &server)?;
    bond.ensure_both_run()?;
    bond.stop()?;
    Ok(vec![
        Figure::number("image", megabytes, "MB").at_most(IMAGE_MAX_MB, SOURCE),
        Figure::count("shells in the image", shells(&bundle)).exactly(0.0, SOURCE),
        Figure::count("bytes of a file that arrived right", downloaded.bytes)
            .exactly(FILE_BYTES as f64, SOURCE),
        Figure::mbit("download", downloaded.throughput_bps),
    ])
}

fn image() -> Result<PathBuf> {
    let this = std::env::current_exe().context("cannot find this program's own place")?;
    let folder = this.ancestors().nth(2).context("this program is in no folder")?.join("package");
    let files = fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut images: Vec<_> =
        files.filter(|path| path.to_string_lossy().ends_with(".oci.tar")).collect();
    images.sort();
    images.pop().with_context(|| format!("there is no image in {}: {REMEDY}", folder.display()))
}

/// The image as a runtime's bundle.
fn unpack(image: &Path, folder: &Path) -> Result<PathBuf> {
    let layout = folder.join("layout");
    fs::create_dir(&layout)?;
    process::run(Command::new("tar").arg("-xf").arg(image).arg("-C").arg(&layout), "", LIMIT)?;
    let index: Value = serde_json::from_slice(&fs::read(layout.join("index.json"))?)?;
    let tag = index["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"].as_str();
    let named = format!("{}:{}", layout.display(), tag.context("the image has no tag")?);
    let bundle = folder.join("bundle");
    let mut command = Command::new("umoci");
    process::run(command.args(["unpack", "--image", &named]).arg(&bundle), "", LIMIT)
        .with_context(|| format!("umoci unpack: {REMEDY}"))?;
    Ok(bundle)
}

fn shells(bundle: &Path) -> u64 {
    let places = ["bin", "usr/bin"].map(|place| bundle.join("rootfs").join(place));
    let names = ["sh", "bash", "dash", "busybox"];
    let all = places.iter().flat_map(|place| names.map(|name| place.join(name)));
    all.filter(|path| path.exists()).count() as u64
}

/// A program that runs the image's with the same arguments, in the network namespace that it is
/// started in.
fn runner(bundle: &Path, folder: &Path) -> Result<PathBuf> {
    let template = folder.join("template.json");
    let text = fs::read_to_string(bundle.join("config.json"))?;
    fs::write(&template, configured(serde_json::from_str(&text)?)?.to_string())?;
    let runner = folder.join("plait-image");
    let (template, bundle, state) =
        (template.display(), bundle.display(), folder.join("state").display().to_string());
    let line = format!(
        "#!/bin/sh\n\
         sed -e \"s#@COMMAND@#$1#\" -e \"s#@FILE@#$2#\" -e \"s#@FOLDER@#$(dirname \"$2\")#g\" \
         {template} > {bundle}/config.json\n\
         exec runc --root {state} run --bundle {bundle} plait-lab-image\n"
    );
    fs::write(&runner, line)?;
    fs::set_permissions(&runner, fs::Permissions::from_mode(0o755))?;
    Ok(runner)
}

/// The bundle's configuration as the guide starts a container: the network of whoever starts it,
/// one right, the TUN device, the folders of the file and of the control socket.
fn configured(mut config: Value) -> Result<Value> {
    let process = config["process"].as_object_mut().context("a bundle has a process")?;
    process.insert("terminal".into(), json!(false));
    ensure!(
        process["args"][0] == "/usr/bin/plait" && process["args"][1] == "up",
        "the image starts {}, not a gateway",
        process["args"]
    );
    process.insert("args".into(), json!(["/usr/bin/plait", "@COMMAND@", "@FILE@"]));
    let sets = ["bounding", "effective", "permitted"].map(|set| (set, json!([CAPABILITY])));
    process.insert("capabilities".into(), sets.into_iter().collect());
    let linux = config["linux"].as_object_mut().context("a bundle is for Linux")?;
    linux.remove("resources");
    linux.remove("cgroupsPath");
    linux.insert("namespaces".into(), json!([{"type": "mount"}, {"type": "pid"}, {"type": "ipc"}]));
    let mounts = config["mounts"].as_array_mut().context("a bundle has mounts")?;
    mounts.retain(|mount| mount["type"] != "cgroup" && mount["type"] != "sysfs");
    for place in ["/dev/net/tun", "/run/plait", "@FOLDER@"] {
        let options = ["bind", "rw"];
        mounts.push(
            json!({"destination": place, "source": place, "type": "bind", "options": options}),
        );
    }
    if let Some(config) = config.as_object_mut() {
        config.remove("hostname");
    }
    Ok(config)
}
