//! A trace's files: a bounded number of them, each of bounded size.
//!
//! `FILE` is written; when it is full it becomes `FILE.1`, that one `FILE.2` and so on, and the
//! oldest goes. Each file begins with the trace's first line, so each can be read alone.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::advice::{Advised, help_to_write};

/// Files of a trace.
const FILES: u64 = 8;

/// Lines on their way into files that are never larger together than a bound.
#[derive(Debug)]
pub(super) struct Rotating {
    path: PathBuf,
    file: BufWriter<File>,
    /// The trace's first line.
    head: String,
    bytes: u64,
    file_bytes_max: u64,
}

impl Rotating {
    /// Begins the first file. None of the files' names may be taken: what is there is somebody's.
    pub(super) fn create(path: &Path, bytes_max: u64, head: String) -> Result<Self, Advised> {
        let taken =
            (0..FILES).map(|age| aged(path, age)).find(|one| one.symlink_metadata().is_ok());
        if let Some(taken) = taken {
            let message = format!("{} is there already", taken.display());
            return Err(Advised::new(message, "remove it, or give another name with --output"));
        }
        let cannot = |cause: io::Error| {
            let help = help_to_write(&cause).unwrap_or("give a file that can be made, by --output");
            Advised::new(format!("{} cannot be written", path.display()), help).caused_by(cause)
        };
        let file = BufWriter::new(create(path).map_err(cannot)?);
        let file_bytes_max = bytes_max / FILES;
        let mut rotating = Self { path: path.to_owned(), file, head, bytes: 0, file_bytes_max };
        rotating.begin().map_err(cannot)?;
        Ok(rotating)
    }

    /// Writes the first line of a file.
    fn begin(&mut self) -> io::Result<()> {
        self.file.write_all(self.head.as_bytes())?;
        self.bytes = self.head.len() as u64;
        Ok(())
    }

    /// Writes a line, which ends in a line's end. A line that no file has room for is left out.
    pub(super) fn write(&mut self, line: &str) -> io::Result<()> {
        let length = line.len() as u64;
        if self.bytes + length > self.file_bytes_max {
            if self.head.len() as u64 + length > self.file_bytes_max {
                return Ok(());
            }
            self.rotate()?;
        }
        self.file.write_all(line.as_bytes())?;
        self.bytes += length;
        Ok(())
    }

    /// Has the file system take what was written.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.file.flush()?;
        for age in (1..FILES).rev() {
            match fs::rename(aged(&self.path, age - 1), aged(&self.path, age)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                result => result?,
            }
        }
        self.file = BufWriter::new(create(&self.path)?);
        self.begin()
    }
}

/// Addresses of connections are nobody else's business, and a link in the file's place is not
/// followed.
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn aged(path: &Path, age: u64) -> PathBuf {
    if age == 0 {
        return path.to_owned();
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{age}"));
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("plait-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_hundred_times_the_bound_stays_within_it() {
        let folder = folder("rotate");
        let path = folder.join("trace.jsonl");
        let bound = 80_000;
        let mut files = Rotating::create(&path, bound, "head\n".into()).unwrap();
        for number in 0..400_000 {
            files.write(&format!("line number {number}\n")).unwrap();
        }
        files.flush().unwrap();
        let all: Vec<String> =
            (0..FILES).rev().map(|age| fs::read_to_string(aged(&path, age)).unwrap()).collect();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 8);
        let bytes: usize = all.iter().map(String::len).sum();
        assert!(bytes as u64 <= bound && bytes as u64 > bound * 8 / 10, "{bytes}");
        assert!(all.iter().all(|text| text.starts_with("head\nline number ")));
        // The newest lines are kept, and none between them is missing.
        let numbers: Vec<u32> = all
            .iter()
            .flat_map(|text| text.lines().skip(1))
            .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(numbers.last(), Some(&399_999));
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn files_that_are_there_are_not_touched() {
        let folder = folder("taken");
        let path = folder.join("trace.jsonl");
        fs::write(folder.join("trace.jsonl.3"), "mine").unwrap();
        let error = Rotating::create(&path, 1000, String::new()).unwrap_err();
        assert!(error.to_string().contains("trace.jsonl.3 is there already"), "{error}");
        assert!(!path.exists());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let Ok(full) = OpenOptions::new().write(true).open("/dev/full") else { return };
        let path = PathBuf::from("/dev/full");
        let file = BufWriter::new(full);
        let (head, file_bytes_max) = (String::new(), 1 << 20);
        let mut files = Rotating { path, file, head, bytes: 0, file_bytes_max };
        let lines = (0..1000).map(|_| files.write(&"x".repeat(100)));
        let error = lines.filter_map(Result::err).next().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
