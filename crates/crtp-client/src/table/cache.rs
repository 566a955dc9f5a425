//! Tables kept between connections, so that connecting takes less time. The client asks for a table by its key;
//! a cache that cannot answer costs time and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crtp::toc;
use serde::{Deserialize, Serialize};

use super::{Entry, Table, TableKey};

/// Why a cached table could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The file system said no.
    #[error("table cache {path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// The file is no table of that key.
    #[error("table cache {path}: {reason}")]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// Keeps tables.
pub trait TableCache: Send {
    /// The table with this key, if it is kept.
    ///
    /// # Errors
    /// [`CacheError`] if it is there but cannot be read; the client reports it and asks the drone.
    fn load(&mut self, key: &TableKey) -> Result<Option<Table>, CacheError>;

    /// Keeps a table.
    ///
    /// # Errors
    /// [`CacheError`] if it cannot be kept; the client reports it and goes on.
    fn store(&mut self, key: &TableKey, table: &Table) -> Result<(), CacheError>;
}

/// Keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCache;

impl TableCache for NoCache {
    fn load(&mut self, _: &TableKey) -> Result<Option<Table>, CacheError> {
        Ok(None)
    }

    fn store(&mut self, _: &TableKey, _: &Table) -> Result<(), CacheError> {
        Ok(())
    }
}

/// Keeps tables as long as it lives.
#[derive(Clone, Debug, Default)]
pub struct MemoryCache(BTreeMap<TableKey, Table>);

impl TableCache for MemoryCache {
    fn load(&mut self, key: &TableKey) -> Result<Option<Table>, CacheError> {
        Ok(self.0.get(key).cloned())
    }

    fn store(&mut self, key: &TableKey, table: &Table) -> Result<(), CacheError> {
        self.0.insert(*key, table.clone());
        Ok(())
    }
}

/// Keeps each table in a JSON file of its own, named after its key.
#[derive(Clone, Debug)]
pub struct FileCache {
    folder: PathBuf,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: u32,
    entries: Vec<Entry>,
    persistent: BTreeSet<u16>,
}

impl FileCache {
    const SCHEMA: u32 = 1;

    /// A cache in this folder, which is made when the first table is kept.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    fn path(&self, key: &TableKey) -> PathBuf {
        let table = match key.table {
            toc::Table::Log => "log",
            toc::Table::Param => "param",
        };
        let (protocol, count, crc) = (key.protocol, key.count, key.crc);
        self.folder
            .join(format!("{table}-v{protocol}-{count}-{crc:08x}.json"))
    }
}

fn io_error(path: &Path) -> impl Fn(io::Error) -> CacheError + '_ {
    |source| CacheError::Io {
        path: path.to_owned(),
        source,
    }
}

impl TableCache for FileCache {
    fn load(&mut self, key: &TableKey) -> Result<Option<Table>, CacheError> {
        let path = self.path(key);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_error(&path)(error)),
        };
        let content = |reason| CacheError::Content {
            path: path.clone(),
            reason,
        };
        let file: File = serde_json::from_str(&text).map_err(|e| content(e.to_string()))?;
        if (file.schema, file.entries.len()) != (Self::SCHEMA, key.count.into()) {
            return Err(content("is of another version or length".into()));
        }
        Ok(Some(Table::new(file.entries, file.persistent)))
    }

    /// Writes beside and renames, so that a reader never sees half a file.
    fn store(&mut self, key: &TableKey, table: &Table) -> Result<(), CacheError> {
        let path = self.path(key);
        let beside = path.with_extension(format!("{}.part", std::process::id()));
        let file = File {
            schema: Self::SCHEMA,
            entries: table.entries.clone(),
            persistent: table.persistent.clone(),
        };
        let text = serde_json::to_string(&file).map_err(|error| CacheError::Content {
            path: path.clone(),
            reason: error.to_string(),
        })?;
        fs::create_dir_all(&self.folder).map_err(io_error(&self.folder))?;
        fs::write(&beside, text).map_err(io_error(&beside))?;
        fs::rename(&beside, &path).map_err(io_error(&path))
    }
}
