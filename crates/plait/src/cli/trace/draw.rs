//! `plait trace draw`: the page of a trace that was written to files.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use plait_trace::course::Courses;
use plait_trace::page;
use plait_trace::sample::Sample;
use serde::Deserialize;

use super::FilterArgs;
use super::sinks::cannot_write;
use crate::advice::Advised;
use crate::cli::Outcome;

const AFTER_HELP: &str = "\
Examples:
  plait trace draw --html page.html day.jsonl
  plait trace draw --html page.html --token a1b2c3d4 day.jsonl.2 day.jsonl.1 day.jsonl

Give the files of a long trace oldest first.

Exit codes:
  0  the page is written
  1  nothing in the files is a sample that was asked for; the page is empty
  2  an error, such as a line that is no record; what stands before it is drawn";

/// Draw a trace that was written with --output or --json
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// Files of JSON Lines
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    filter: FilterArgs,
    /// The page
    #[arg(long, value_name = "FILE")]
    html: PathBuf,
}

/// A line of a trace.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Record {
    Trace(serde::de::IgnoredAny),
    Sample(Box<Sample>),
    Summary(serde::de::IgnoredAny),
}

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let filter = args.filter.filter();
    let mut courses = Courses::default();
    let mut samples = 0_u64;
    let mut take = |sample: Sample| {
        if filter.takes_ends(sample.local, sample.remote)
            && filter.takes_tokens(sample.token.as_slice())
        {
            samples += 1;
            courses.take(sample);
        }
    };
    let read = args.files.iter().try_for_each(|path| read(path, &mut take));
    let files: Vec<_> = args.files.iter().map(|path| path.display().to_string()).collect();
    let words = [format!("{samples} samples of {}", files.join(", "))];
    let text = page::trace(&words, &courses);
    fs::write(&args.html, text).map_err(|cause| cannot_write(&args.html, cause))?;
    read?;
    Ok(if samples == 0 { Outcome::No } else { Outcome::Good })
}

fn read(path: &Path, take: &mut impl FnMut(Sample)) -> Result<(), Advised> {
    let name = path.display();
    let cannot = |cause| {
        let help = "give a file of `plait trace --output` that this user may read";
        Advised::new(format!("{name} cannot be read"), help).caused_by(cause)
    };
    let file = File::open(path).map_err(cannot)?;
    for (number, line) in BufReader::new(file).lines().enumerate() {
        match serde_json::from_str(&line.map_err(cannot)?) {
            Ok(Record::Sample(sample)) => take(*sample),
            Ok(Record::Trace(_) | Record::Summary(_)) => {}
            Err(cause) => {
                let message = format!("{name}:{} is no record of a trace", number + 1);
                let help = "give files of `plait trace --output`; of one that was cut off, all \
                            but the last line is drawn";
                return Err(Advised::new(message, help).caused_by(cause));
            }
        }
    }
    Ok(())
}
