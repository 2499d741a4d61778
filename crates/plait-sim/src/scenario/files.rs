//! The files that a scenario names: conditions of links and traces. The caller reads them; this
//! crate makes no system call.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plait_toml::{Error, Place, Problems, Table};

use super::error::FileError;
use super::trace;
use crate::link::Trace;

/// Gives a file's text; [`std::fs::read_to_string`] is one.
pub type ReadFile<'a> = dyn Fn(&Path) -> io::Result<String> + 'a;

type Cached<T> = RefCell<BTreeMap<PathBuf, Result<T, FileError>>>;

/// Files read so far; each is read once for all cells of a sweep.
#[derive(Default)]
pub(super) struct Cache {
    tables: Cached<Table>,
    traces: Cached<Arc<Trace>>,
}

/// Reads the files that a scenario names, relative to the file that names them.
pub(super) struct Reader<'a> {
    pub(super) read: &'a ReadFile<'a>,
    pub(super) cache: &'a Cache,
    pub(super) problems: &'a Problems,
    /// The base of file names in settings of the command line: the scenario's folder.
    pub(super) folder: &'a Path,
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Reader<'_> {
    /// Where to note problems.
    pub(super) fn problems(&self) -> &Problems {
        self.problems
    }

    /// A TOML file named at `place`.
    pub(super) fn table(&self, place: &Place, name: &str) -> Result<Table, FileError> {
        self.load(&self.cache.tables, place, name, plait_toml::tree::parse)
    }

    /// A trace named at `place`.
    pub(super) fn trace(&self, place: &Place, name: &str) -> Result<Arc<Trace>, FileError> {
        self.load(&self.cache.traces, place, name, |file, text| {
            let place = |line| Place::Line(file.into(), line);
            let wrong = |error: trace::TraceError| Error::new(place(error.line), "", error);
            trace::parse(text).map(Arc::new).map_err(wrong)
        })
    }

    fn load<T: Clone>(
        &self,
        cache: &Cached<T>,
        place: &Place,
        name: &str,
        parse: impl Fn(&Path, &str) -> Result<T, Error>,
    ) -> Result<T, FileError> {
        let folder = place.file().and_then(Path::parent).unwrap_or(self.folder);
        let file = folder.join(name);
        if let Some(known) = cache.borrow().get(&file) {
            return known.clone();
        }
        let text = (self.read)(&file).map_err(|cause| {
            FileError::Unreadable(place.clone(), file.clone(), cause.to_string())
        })?;
        let parsed = parse(&file, &text).map_err(FileError::Content);
        cache.borrow_mut().insert(file, parsed.clone());
        parsed
    }
}
